/* SPDX-License-Identifier: MIT */
/*
 * faults.cu - a GPU that fails, on a machine that has one: `faults illegal` writes to an address that is none and then asks the backend for
 * work; `faults full` takes more memory than there is; `faults hold GB SECONDS` keeps memory from other processes. 77 without a GPU.
 */
#include <fornix/fornix.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__global__ static void write_to(int *nowhere)
{
	*nowhere = 1;
}

static bool says(const fx_error *err, const char *what)
{
	printf("%s\n", err->text);
	return strstr(err->text, what) != nullptr;
}

static int illegal(fx_math *m)
{
	fx_backend_choice choice;
	fx_error err = {};
	int status;

	write_to<<<1, 1>>>((int *)64);
	status = m->ops->sync(m);
	if (status == FX_OK) { /* another stream than the kernel's: wait for the device */
		cudaDeviceSynchronize();
		status = m->ops->sync(m);
	}
	if (status != FX_EIO || !says(m->err, "Its context is lost"))
		return 1;
	/* Work that has not begun may go elsewhere, and says why. */
	if (fx_backend_choose("auto", &choice, &err) != FX_OK || choice.on_device || !strstr(choice.why, "context is lost"))
		return 1;
	printf("auto: %s\n", choice.why);
	return 0;
}

static int full(fx_math *m)
{
	const int64_t dims[1] = {(int64_t)1 << 40}, some[1] = {1000};
	fx_array *a = nullptr;

	if (m->ops->array_new(m, FX_F32, 1, dims, &a) != FX_ENOMEM || a || !says(m->err, "left for an array"))
		return 1;
	*m->err = fx_error{};
	if (m->ops->array_new(m, FX_F32, 1, some, &a) != FX_OK) /* it goes on */
		return 1;
	fx_array_unref(a);
	return 0;
}

int main(int argc, char **argv)
{
	fx_error err = {};
	fx_math *m;
	int result = 2;
	void *held = nullptr;

	if (fx_math_new("cuda", 1, &err, &m) != FX_OK) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	if (argc == 2 && strcmp(argv[1], "illegal") == 0)
		result = illegal(m);
	else if (argc == 2 && strcmp(argv[1], "full") == 0)
		result = full(m);
	else if (argc == 4 && strcmp(argv[1], "hold") == 0) {
		result = cudaMalloc(&held, (size_t)(atof(argv[2]) * 1e9)) == cudaSuccess ? 0 : 1;
		printf("holding: %d\n", result);
		fflush(stdout);
		sleep((unsigned)atoi(argv[3]));
	}
	fx_math_free(m);
	return result;
}

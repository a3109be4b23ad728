/* SPDX-License-Identifier: MIT */
/*
 * fake_cuda.c - a libcuda.so.1 that finds fault, for tests on machines with and without a GPU: CUDA's runtime takes it for the driver.
 * FAKE_VERSION is the CUDA version it knows; FAKE_INIT what cuInit answers. It never gets as far as a GPU.
 */
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_SUPPORTED = 801 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *found);

EXPORT int cuInit(unsigned flags)
{
	(void)flags;
	return FAKE_INIT;
}

EXPORT int cuDriverGetVersion(int *version)
{
	*version = FAKE_VERSION;
	return SUCCESS;
}

static int nothing(void)
{
	return NOT_SUPPORTED;
}

EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *found)
{
	static const struct {
		const char *name;
		void *function;
	} all[] = {
		{"cuInit", (void *)cuInit}, {"cuDriverGetVersion", (void *)cuDriverGetVersion},
		{"cuGetProcAddress", (void *)cuGetProcAddress_v2},
	};

	(void)version;
	(void)flags;
	if (found)
		*found = 0; /* CU_GET_PROC_ADDRESS_SUCCESS */
	*function = (void *)nothing;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (strcmp(symbol, all[i].name) == 0)
			*function = all[i].function;
	return SUCCESS;
}

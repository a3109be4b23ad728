/* SPDX-License-Identifier: MIT */
/*
 * math.c - handles on a backend. The host's is part of this library; the CUDA one is a shared object of its own, which is
 * looked for beside it and loaded when it is asked for, so that one set of binaries runs with and without a GPU.
 */
#include "context.h"

#include <fornix/backend.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loaded once, never unloaded: CUDA's own threads and memory pools stay until the process ends. */
static struct {
	pthread_mutex_t lock;
	const fx_backend *cuda;
} loaded = {PTHREAD_MUTEX_INITIALIZER, NULL};

static int load_cuda(fx_error *err, const fx_backend **out)
{
	char *folder = fxi_library_folder(), *path = NULL;
	void *library;

	if (!folder || asprintf(&path, "%s/libfornix-cuda.so", folder) < 0) {
		free(folder);
		return fx_error_set(err, FX_ENOMEM, "no memory to look for the CUDA backend");
	}
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fx_error_set(err, FX_ENOTSUP, "the CUDA backend cannot be loaded: %s", dlerror());
	else
		*out = dlsym(library, "fx_backend_cuda");
	free(path);
	free(folder);
	if (!library)
		return FX_ENOTSUP;
	if (!*out)
		return fx_error_set(err, FX_ENOTSUP, "libfornix-cuda.so is no CUDA backend: it has no fx_backend_cuda");
	if ((*out)->abi != FX_ABI)
		return fx_error_set(err, FX_ENOTSUP, "libfornix-cuda.so was built for ABI %u and this is %u: install both from one build",
			(*out)->abi, FX_ABI);
	return FX_OK;
}

static int cuda_backend(fx_error *err, const fx_backend **out)
{
	int status = FX_OK;

	pthread_mutex_lock(&loaded.lock);
	if (!loaded.cuda) {
		const fx_backend *found = NULL;

		status = load_cuda(err, &found);
		if (status == FX_OK)
			loaded.cuda = found;
	}
	*out = loaded.cuda;
	pthread_mutex_unlock(&loaded.lock);
	return status;
}

bool fxi_cuda_device(const char *name, int *device)
{
	char *end;
	long n;

	*device = 0;
	if (strcmp(name, "cuda") == 0)
		return true;
	if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9')
		return false;
	n = strtol(name + 5, &end, 10);
	*device = (int)n;
	return *end == '\0' && n < 1024;
}

static int look_at(int device, fx_backend_choice *out, fx_error *err)
{
	const fx_backend *cuda = NULL;
	int status = cuda_backend(err, &cuda);

	out->device = (fx_device_info){0};
	if (status == FX_OK)
		status = cuda->about(device, &out->device, err);
	if (status != FX_OK)
		return status;
	out->on_device = true;
	snprintf(out->name, sizeof out->name, "cuda:%d", device);
	snprintf(out->why, sizeof out->why, "computes on GPU %d: %s, driver %s, %.1f of %.1f GB free", device, out->device.name,
		out->device.driver[0] ? out->device.driver : "unknown", (double)out->device.available / 1e9, (double)out->device.bytes / 1e9);
	return FX_OK;
}

/* Asked first, since the backend itself brings cuFFT along, which takes its time to load. */
static bool has_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	if (driver)
		dlclose(driver);
	return driver != NULL;
}

/* The first GPU that works and has room; else the host, with what was wrong with the first GPU that did not do. */
static void choose_for_user(fx_backend_choice *out)
{
	char why[360] = "";

	*out = (fx_backend_choice){.name = "host"};
	if (!has_driver())
		snprintf(why, sizeof why, "there is no NVIDIA driver on this machine (libcuda.so.1)");
	for (int device = 0; !why[0] || out->device.name[0]; device++) {
		fx_error err = {0};
		int status = look_at(device, out, &err);

		if (status == FX_OK && out->device.available >= FX_AUTO_BYTES)
			return;
		if (status == FX_OK)
			fx_error_set(&err, FX_ENOMEM, "GPU %d (%.100s) has %.2f GB free, and others hold the rest; auto asks for %.2f", device,
				out->device.name, (double)out->device.available / 1e9, (double)FX_AUTO_BYTES / 1e9);
		if (!why[0])
			snprintf(why, sizeof why, "%.359s", err.text);
	}
	*out = (fx_backend_choice){.name = "host"};
	snprintf(out->why, sizeof out->why, "computes on the host: %s", why);
}

int fx_backend_choose(const char *asked, fx_backend_choice *out, fx_error *err)
{
	int device;

	*out = (fx_backend_choice){.name = "host", .why = "computes on the host, as asked for"};
	if (strcmp(asked, "host") == 0)
		return FX_OK;
	if (strcmp(asked, "auto") == 0) {
		choose_for_user(out);
		return FX_OK;
	}
	if (!fxi_cuda_device(asked, &device))
		return fx_error_set(err, FX_ENOTSUP, "there is no backend '%s'; there are auto, host, cuda and cuda:N", asked);
	return look_at(device, out, err);
}

int fx_math_new(const char *backend, int n_threads, fx_error *err, fx_math **out)
{
	const fx_backend *ops = fx_backend_host();
	fx_backend_choice choice;
	int device = 0, status = FX_OK;
	fx_math *m;

	*out = NULL;
	if (strcmp(backend, "auto") == 0) {
		choose_for_user(&choice);
		backend = choice.name;
	}
	if (fxi_cuda_device(backend, &device))
		status = cuda_backend(err, &ops);
	else if (strcmp(backend, "host") != 0)
		status = fx_error_set(err, FX_ENOTSUP, "there is no backend '%s'; there are auto, host, cuda and cuda:N", backend);
	if (status != FX_OK)
		return status;
	m = fx_alloc(1, sizeof *m);
	if (!m)
		return fx_error_set(err, FX_ENOMEM, "no memory for a backend handle");
	m->ops = ops;
	m->device = device;
	m->n_threads = n_threads > 0 ? n_threads : fx_processors();
	m->err = err;
	status = m->ops->open(device, m->n_threads, &m->queue, err);
	if (status != FX_OK) {
		fx_free(m);
		return status;
	}
	*out = m;
	return FX_OK;
}

void fx_math_free(fx_math *m)
{
	if (!m)
		return;
	m->ops->close(m->queue);
	fx_free(m);
}

int fx_math_need(fx_math *m, bool there, const char *what)
{
	if (there)
		return FX_OK;
	return fx_math_fail(m, FX_ENOTSUP, "the backend '%s' has no %s; choose another method, or --backend host", m->ops->name, what);
}

int fx_math_memory(fx_math *m, int64_t *available, int64_t *most)
{
	int64_t unused;

	if (m->ops->memory)
		return m->ops->memory(m, available, most ? most : &unused);
	*available = fx_memory_available_bytes();
	if (most)
		*most = -1;
	return FX_OK;
}

bool fx_math_on_host(const fx_math *m)
{
	return m->ops == fx_backend_host();
}

int fx_math_check(fx_math *m)
{
	if (m->stopped && m->stopped(m->stopped_arg))
		return fx_math_fail(m, FX_ECANCELED, "stopped before the end");
	return FX_OK;
}

int fx_math_fail(fx_math *m, int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fx_error_setv(m->err, status, fmt, args);
	va_end(args);
	return status;
}

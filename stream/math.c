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

int fx_math_new(const char *backend, int n_threads, fx_error *err, fx_math **out)
{
	const fx_backend *ops = fx_backend_host();
	int device = 0, status = FX_OK;
	fx_math *m;

	*out = NULL;
	if (fxi_cuda_device(backend, &device))
		status = cuda_backend(err, &ops);
	else if (strcmp(backend, "auto") != 0 && strcmp(backend, "host") != 0)
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

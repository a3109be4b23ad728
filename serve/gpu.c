/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - libcuda's own symbols, looked up at run time: a machine without a driver has no such library, and this one is linked with
 * none. Called in workers only: the supervisor never initialises CUDA.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <string.h>

/* CUDA driver API, enum CUdevice_attribute: compute capability's two halves. */
#define MAJOR 75
#define MINOR 76

struct driver {
	int (*init)(unsigned flags);
	int (*version)(int *version);
	int (*count)(int *n);
	int (*device)(int *device, int index);
	int (*name)(char *name, int size, int device);
	int (*memory)(size_t *bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
};

static bool load(struct driver *d)
{
	static const char *const names[] = {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
		"cuDeviceTotalMem_v2", "cuDeviceGetAttribute"};
	void *symbols[sizeof names / sizeof names[0]], *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return false;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		symbols[i] = dlsym(library, names[i]);
		if (!symbols[i])
			return false;
	}
	_Static_assert(sizeof *d == sizeof symbols, "one pointer a symbol, in the same order");
	memcpy(d, symbols, sizeof symbols); /* C has no cast from an object's pointer to a function's */
	return true;
}

void fxi_gpus_find(fxi_link_gpus *gpus)
{
	struct driver d;
	int n = 0;

	memset(gpus, 0, sizeof *gpus);
	if (!load(&d) || d.init(0) != 0 || d.count(&n) != 0)
		return;
	d.version(&gpus->driver);
	for (int i = 0; i < n && gpus->n < FXI_LINK_GPUS; i++) {
		int device, major = 0, minor = 0;
		size_t bytes = 0;

		if (d.device(&device, i) != 0 || d.memory(&bytes, device) != 0 ||
			d.name(gpus->list[gpus->n].name, (int)sizeof gpus->list[0].name, device) != 0)
			continue;
		d.attribute(&major, MAJOR, device);
		d.attribute(&minor, MINOR, device);
		gpus->list[gpus->n].memory_bytes = (int64_t)bytes;
		gpus->list[gpus->n].capability = 10 * major + minor;
		gpus->n++;
	}
}

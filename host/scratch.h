/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - one work buffer for each thread of a parallel region, had before the region starts, so that nothing
 * inside it can run out of memory. A body takes a buffer and gives it back; which one it gets does not matter.
 */
#ifndef FORNIX_HOST_SCRATCH_H
#define FORNIX_HOST_SCRATCH_H

#include <fornix/backend.h>

#include <pthread.h>

typedef struct fxi_scratch {
	pthread_mutex_t lock;
	int n_free;
	void **free;      /**< stack of buffers that nobody holds */
	char *memory;
} fxi_scratch;

/** Buffers of `bytes` (zeroed, 64-byte aligned) for m->n_threads threads. FX_ENOMEM is explained in m->err. */
int fxi_scratch_new(fx_math *m, int64_t bytes, fxi_scratch *s);
void fxi_scratch_free(fxi_scratch *s);
void *fxi_scratch_take(fxi_scratch *s);
void fxi_scratch_give(fxi_scratch *s, void *buffer);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * pool.h - blocks of one size that one thread takes and others give back: readouts come by the hundred thousand a second, are made on the
 * thread that reads and dropped on a gadget's, and a heap that serves both makes them wait for each other.
 */
#ifndef FORNIX_STREAM_POOL_H
#define FORNIX_STREAM_POOL_H

#include <fornix/message.h>

typedef struct fxi_pool fxi_pool;

/** For blocks of `bytes`, aligned to 64. NULL when memory is short. */
fxi_pool *fxi_pool_new(size_t bytes);
/** Its owner takes no more; blocks that are out stay good, and the pool goes with the last of them. NULL is fine. */
void fxi_pool_free(fxi_pool *p);
size_t fxi_pool_bytes(const fxi_pool *p);
/** A block with whatever is in it; by the owner's thread. NULL when memory is short. */
void *fxi_pool_take(fxi_pool *p);
/** Gives a block back; from any thread. */
void fxi_pool_give(void *block);

/** A new message of that kind out of a pool of fxi_msg_bytes(); dropped as any. */
fx_msg *fxi_msg_new_in(fxi_pool *p, unsigned kind);
size_t fxi_msg_bytes(void);
/** A host array out of a pool with room for fxi_array_room(its bytes); not zeroed. FX_EINVAL where it has no room. */
int fxi_array_new_in(fxi_pool *p, int type, int n_dims, const int64_t *dims, fx_array **out);
size_t fxi_array_room(size_t bytes);

#endif

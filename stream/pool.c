/* SPDX-License-Identifier: MIT */
/*
 * pool.c - see pool.h. Blocks that come back are pushed onto a list; the owner takes that list whole, so that no block can be gone and back
 * between a look and an exchange. When the owner leaves, the list is closed by a mark, and who comes later frees its block itself.
 */
#include "pool.h"

#include <stdatomic.h>

struct block {
	struct block *next;
	fxi_pool *pool;
	_Alignas(64) unsigned char bytes[];
};

struct fxi_pool {
	size_t bytes;
	struct block *mine;             /* the owner's */
	_Atomic(struct block *) given;  /* back from others; `closed` when the owner left */
	atomic_llong n_blocks;          /* that exist */
};

static struct block closed;         /* an address, never written to */

fxi_pool *fxi_pool_new(size_t bytes)
{
	fxi_pool *p = fx_alloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->bytes = bytes;
	atomic_init(&p->given, NULL);
	atomic_init(&p->n_blocks, 0);
	return p;
}

size_t fxi_pool_bytes(const fxi_pool *p)
{
	return p->bytes;
}

static void free_block(fxi_pool *p, struct block *b)
{
	fx_free(b);
	if (atomic_fetch_sub(&p->n_blocks, 1) == 1)
		fx_free(p);
}

void fxi_pool_free(fxi_pool *p)
{
	struct block *lists[2];

	if (!p)
		return;
	/* One more than there are, so that the pool is still there when the last of these goes. */
	atomic_fetch_add(&p->n_blocks, 1);
	lists[0] = p->mine;
	lists[1] = atomic_exchange(&p->given, &closed);
	for (int i = 0; i < 2; i++)
		while (lists[i]) {
			struct block *b = lists[i];

			lists[i] = b->next;
			free_block(p, b);
		}
	if (atomic_fetch_sub(&p->n_blocks, 1) == 1)
		fx_free(p);
}

void *fxi_pool_take(fxi_pool *p)
{
	struct block *b;

	if (!p->mine)
		p->mine = atomic_exchange(&p->given, NULL);
	b = p->mine;
	if (b) {
		p->mine = b->next;
		return b->bytes;
	}
	b = fx_alloc(1, sizeof *b + p->bytes);
	if (!b)
		return NULL;
	b->pool = p;
	atomic_fetch_add(&p->n_blocks, 1);
	return b->bytes;
}

void fxi_pool_give(void *block)
{
	struct block *b = (struct block *)(void *)((unsigned char *)block - offsetof(struct block, bytes));
	struct block *head = atomic_load(&b->pool->given);

	do {
		if (head == &closed) {
			free_block(b->pool, b);
			return;
		}
		b->next = head;
	} while (!atomic_compare_exchange_weak(&b->pool->given, &head, b));
}

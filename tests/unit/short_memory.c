/* SPDX-License-Identifier: MIT */
/* short_memory.c - fx_alloc as the library has it, but for the call that must fail: this one goes before the library's. */
#include "unit/short_memory.h"

#include <fornix/base.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool armed;
static atomic_llong calls, failing;

void short_memory_at(int64_t n)
{
	atomic_store(&calls, 0);
	atomic_store(&failing, n);
	atomic_store(&armed, true);
}

int64_t short_memory_off(void)
{
	atomic_store(&armed, false);
	return atomic_load(&calls);
}

void *fx_alloc(int64_t count, size_t size)
{
	int64_t bytes;
	void *memory = NULL;

	if (atomic_load(&armed) && atomic_fetch_add(&calls, 1) == atomic_load(&failing))
		return NULL;
	if (!fx_mul_size(count, (int64_t)size, &bytes) || bytes > INT64_MAX - 64)
		return NULL;
	if (posix_memalign(&memory, 64, bytes ? (size_t)bytes : 64) != 0)
		return NULL;
	memset(memory, 0, (size_t)bytes);
	return memory;
}

/* SPDX-License-Identifier: MIT */
/*
 * short_memory.h - makes fx_alloc fail when a test wants it to: everything whose size comes from input is allocated
 * there, and must fail cleanly.
 */
#ifndef FORNIX_TESTS_SHORT_MEMORY_H
#define FORNIX_TESTS_SHORT_MEMORY_H

#include <stdint.h>

/** From now on, the n-th call of fx_alloc (counted from 0, over all threads) fails, and that one alone. */
void short_memory_at(int64_t n);
/** Memory is there again. Returns how many calls there were since short_memory_at. */
int64_t short_memory_off(void);

#endif

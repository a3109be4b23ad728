/* SPDX-License-Identifier: MIT */
/* bench.h - what the programs of this folder share: an error ends them, with its words; a clock; an order for medians. */
#ifndef FORNIX_BENCH_H
#define FORNIX_BENCH_H

#include <fornix/fornix.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static fx_error error;

static inline void check(int status)
{
	if (status == FX_OK)
		return;
	fprintf(stderr, "%s\n", error.text);
	exit(1);
}

/* Seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* For qsort of doubles. */
static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#endif

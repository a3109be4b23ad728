/* SPDX-License-Identifier: MIT */
/* sums.h - what the exact sums share, direct.c and separable.c: phases, and the shapes that they take. */
#ifndef FORNIX_HOST_SUMS_H
#define FORNIX_HOST_SUMS_H

#include <fornix/backend.h>

#include <math.h>

/** k as a fraction of a cycle of 2^64, rounded to the fixed point: the only rounding that a phase ever sees. */
static inline uint64_t fxi_phase_f64(double k)
{
	double f = k - floor(k); /* [0, 1], 1 by rounding only */

	/* The halves are converted apart, since 2^64 f may not fit where 2^32 f would. */
	double high = floor(f * 0x1p32);

	return ((uint64_t)high << 32) + (uint64_t)((f * 0x1p32 - high) * 0x1p32);
}

/** Likewise of 2^32. */
static inline uint32_t fxi_phase_f32(double k)
{
	return (uint32_t)((fxi_phase_f64(k) + 0x80000000u) >> 32);
}

/** Whether work is given up, from any thread of the pool, so without a word in the error slot. */
static inline bool fxi_given_up(const fx_math *m)
{
	return m->stopped && m->stopped(m->stopped_arg);
}

/** FX_EINVAL, explained, unless k {3, M}, samples {M, n} and image {x, y, z, n} go together. */
int fxi_sums_need(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *image);

#endif

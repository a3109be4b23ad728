/* SPDX-License-Identifier: MIT */
/*
 * tensor_math.h - logarithm and exponential of a vector of floats, without branches or tables.
 *
 * Both are series with more terms than single precision holds, so rounding alone is left: ln m = 2 atanh((m - 1)/(m + 1))
 * on [sqrt(1/2), sqrt(2)], cut off at 2e-9 relative; e^r on |r| <= ln(2)/2, cut off at 6e-9.
 */
#ifndef FORNIX_HOST_KERNELS_TENSOR_MATH_H
#define FORNIX_HOST_KERNELS_TENSOR_MATH_H

#include "lanes.h"

#include <stdint.h>

typedef int32_t whole __attribute__((vector_size(4 * LANES), may_alias));

/* ln 2 in two parts, the first of 10 bits: its product with an exponent is exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440054690583e-4f
#define SMALLEST 1e-37f /* below, numbers are soon denormal */

/** a where the bits of `mask` are set, else 0. */
static inline __attribute__((always_inline)) lanes keep(whole mask, lanes a)
{
	return (lanes)(mask & (whole)a);
}

static inline __attribute__((always_inline)) lanes choose(whole mask, lanes a, lanes b)
{
	return (lanes)((mask & (whole)a) | (~mask & (whole)b));
}

/** All bits set where s is a signal to take the logarithm of. */
static inline __attribute__((always_inline)) whole usable(lanes s)
{
	return (whole)(s >= SMALLEST) & (whole)(s <= 3.4028234e38f);
}

/** ln s of usable s; anything elsewhere. */
static inline __attribute__((always_inline)) lanes logarithm(lanes s)
{
	const int32_t root_half = 0x3f3504f3; /* sqrt(1/2): the mantissa is taken from [sqrt(1/2), sqrt(2)) */
	whole bits = (whole)s - root_half, exponent = bits >> 23;
	lanes m = (lanes)((bits & 0x007fffff) + root_half), e = __builtin_convertvector(exponent, lanes);
	lanes t = (m - 1) / (m + 1), u = t * t;
	lanes p = ((u * (2.0f / 9) + 2.0f / 7) * u + 2.0f / 5) * u + 2.0f / 3;

	return e * LN2_HIGH + (2 * t + (t * u * p + e * LN2_LOW));
}

/** e^x; x beyond +-87 counts as that, NaN as -87. */
static inline __attribute__((always_inline)) lanes exponential(lanes x)
{
	const float shift = 0x1.8p23f; /* added, it leaves the nearest integer in the low bits */
	lanes at = choose((whole)(x > -87), x, -87 + (lanes){0}), shifted, n, r, p;

	at = choose((whole)(at < 87), at, 87 + (lanes){0});
	shifted = at * 1.44269504088896341f + shift;
	n = shifted - shift;
	r = (at - n * LN2_HIGH) - n * LN2_LOW;
	p = r * (1.0f / 5040) + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r * r + r;
	return (1 + p) * (lanes)((((whole)shifted - 0x4b400000) + 127) << 23);
}

#endif

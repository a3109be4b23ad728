/* SPDX-License-Identifier: MIT */
/*
 * seeds_random.c - numbers that are addressed, not drawn: seed i of a run is the same whichever thread or batch asks for it, and
 * whatever was asked before. And directions spread evenly over the sphere.
 */
#include <fornix/diffusion.h>

#include <math.h>

#define GOLDEN_ANGLE 2.39996322972865332 /* pi (3 - sqrt 5) */

static uint64_t rotate(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* SplitMix64's output function (Steele, Lea, Flood 2014): one to one, and every bit of x moves half of the result's. */
static uint64_t mix(uint64_t x)
{
	uint64_t z = x + 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

double fx_random_at(uint64_t seed, uint64_t stream, uint64_t i)
{
	/* A state of xoshiro256** (Blackman & Vigna 2021) of its own for each address. Its first output is a function of s[1] alone,
	   so the second is taken, which three words went into. */
	uint64_t x = mix(mix(mix(seed) ^ stream) ^ i);
	uint64_t s1 = mix(x) ^ mix(x + 1) ^ mix(x + 2); /* after one step: s[1] ^ s[2] ^ s[0] */

	return (double)((rotate(s1 * 5, 7) * 9) >> 11) * 0x1p-53;
}

int fx_fibonacci_sphere(int64_t n, fx_array **out)
{
	int status = n < 1 ? FX_EINVAL : fx_array_new2(FX_F64, 3, n, out);

	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < n; i++) {
		double *v = FX_F64_OF(*out) + 3 * i;
		double z = 1 - (2 * (double)i + 1) / (double)n, r = sqrt(1 - z * z);
		double azimuth = fmod((double)i * GOLDEN_ANGLE, 2 * M_PI);

		v[0] = r * cos(azimuth);
		v[1] = r * sin(azimuth);
		v[2] = z;
	}
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * phantom_noise.c - seeded complex Gaussian noise, correlated between coils by a covariance that is known.
 *
 * Only +, -, *, / and sqrt touch the numbers, never the C library's log or cos, whose last bit differs between
 * versions and processors: a seed gives the same noise everywhere. C11 mode keeps gcc from fusing products and sums.
 */
#include "recon/phantom.h"

#include <complex.h>
#include <math.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define PHASE_STEP 0.7 /* radians between neighbouring coils */

static uint64_t rotate(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

/* SplitMix64 (Steele, Lea, Flood 2014): fills a state from a seed. */
static uint64_t split_mix(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void fxi_random_start(fxi_random *r, uint64_t seed, uint64_t stream)
{
	uint64_t x = seed, y;

	y = split_mix(&x) ^ stream;
	for (int i = 0; i < 4; i++)
		r->state[i] = split_mix(&y);
}

static uint64_t next(fxi_random *r)
{
	uint64_t *s = r->state, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

double fxi_random_uniform(fxi_random *r)
{
	return (double)(next(r) >> 11) * 0x1p-53;
}

/* ln x for finite x > 0: ln m = 2 atanh((m-1)/(m+1)) with m in [sqrt(1/2), sqrt 2); the last term is under 1e-17. */
static double logarithm(double x)
{
	int exponent;
	double m = frexp(x, &exponent), t, v, sum = 0;

	if (m < 0.70710678118654752440) {
		m *= 2;
		exponent--;
	}
	t = (m - 1) / (m + 1);
	v = t * t;
	for (int n = 21; n >= 1; n -= 2)
		sum = sum * v + 1.0 / n;
	return 2 * t * sum + exponent * 0.69314718055994530942;
}

void fxi_random_normal(fxi_random *r, double pair[2])
{
	double u, v, s, factor;

	do {
		u = 2 * fxi_random_uniform(r) - 1;
		v = 2 * fxi_random_uniform(r) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	factor = sqrt(-2 * logarithm(s) / s);
	pair[0] = u * factor;
	pair[1] = v * factor;
}

static double coil_sigma(const fxi_noise *noise, int64_t c)
{
	return noise->sigma * (1 + noise->gain_spread * (double)((5 * c) % 8) / 8);
}

fx_cf64 fxi_noise_covariance(const fxi_noise *noise, int64_t a, int64_t b)
{
	double apart = (double)(a > b ? a - b : b - a);
	double size = 2 * coil_sigma(noise, a) * coil_sigma(noise, b) * (apart > 0 ? pow(noise->correlation, apart) : 1);

	return size * cexp(I * PHASE_STEP * (double)(a - b));
}

/*
 * An autoregression over the coils has this covariance: n_0 = g_0, n_c = r e^{i step} n_{c-1} + sqrt(1 - r^2) g_c.
 * cos and sin of the step are written out, so that no library rounds them.
 */
void fxi_noise_add(const fxi_noise *noise, uint64_t stream, double factor, int64_t n, int64_t n_coils, fx_cf32 *data)
{
	const double step_re = 0.76484218728448849500, step_im = 0.64421768723769101683;
	double r = noise->correlation, fresh = sqrt(1 - r * r);
	fxi_random random;

	if (noise->sigma == 0)
		return;
	fxi_random_start(&random, noise->seed, stream);
	for (int64_t i = 0; i < n; i++) {
		double re = 0, im = 0;

		for (int64_t c = 0; c < n_coils; c++) {
			double g[2], s = factor * coil_sigma(noise, c), last = re;
			double own = c > 0 ? fresh : 1, carried = c > 0 ? r : 0;

			fxi_random_normal(&random, g);
			re = carried * (step_re * re - step_im * im) + own * g[0];
			im = carried * (step_im * last + step_re * im) + own * g[1];
			((float *)data)[2 * (i + n * c)] += (float)(s * re);
			((float *)data)[2 * (i + n * c) + 1] += (float)(s * im);
		}
	}
}

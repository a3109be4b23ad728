/* SPDX-License-Identifier: MIT */
/* walsh.c - products, sums and power iterations of Walsh maps, many voxels side by side. */
#include "walsh.h"

#include <math.h>

#define LANES FXI_WALSH_LANES

void FXI_NAME(fxi_walsh_products)(int64_t n_coils, int64_t n, int64_t stride, const float *re, const float *im, float *out)
{
	for (int64_t a = 0; a < n_coils; a++) {
		const float *restrict ar = re + a * stride, *restrict ai = im + a * stride;
		float *restrict diagonal = out + a * stride;

#pragma omp simd
		for (int64_t x = 0; x < n; x++)
			diagonal[x] = ar[x] * ar[x] + ai[x] * ai[x];
		for (int64_t b = a + 1; b < n_coils; b++) {
			const float *restrict br = re + b * stride, *restrict bi = im + b * stride;
			float *restrict pr = out + fxi_walsh_row(n_coils, a, b) * stride;
			float *restrict pi = pr + stride;

#pragma omp simd
			for (int64_t x = 0; x < n; x++) {
				pr[x] = ar[x] * br[x] + ai[x] * bi[x];
				pi[x] = ai[x] * br[x] - ar[x] * bi[x];
			}
		}
	}
}

void FXI_NAME(fxi_walsh_add)(int64_t n, const float *restrict from, float *restrict to)
{
#pragma omp simd
	for (int64_t x = 0; x < n; x++)
		to[x] += from[x];
}

/* (re, im)[a] = sum_b R_ab (vr, vi)[b] in every lane. */
static void multiply(int64_t n_coils, const float *restrict r, const float *restrict vr, const float *restrict vi,
	float *restrict re, float *restrict im)
{
	for (int64_t a = 0; a < n_coils; a++) {
		float sr[LANES], si[LANES];

#pragma omp simd
		for (int t = 0; t < LANES; t++) {
			sr[t] = r[a * LANES + t] * vr[a * LANES + t];
			si[t] = r[a * LANES + t] * vi[a * LANES + t];
		}
		for (int64_t b = 0; b < a; b++) { /* R_ab = conj(R_ba) */
			const float *restrict pr = r + fxi_walsh_row(n_coils, b, a) * LANES, *restrict pi = pr + LANES;
			const float *restrict br = vr + b * LANES, *restrict bi = vi + b * LANES;

#pragma omp simd
			for (int t = 0; t < LANES; t++) {
				sr[t] += pr[t] * br[t] + pi[t] * bi[t];
				si[t] += pr[t] * bi[t] - pi[t] * br[t];
			}
		}
		for (int64_t b = a + 1; b < n_coils; b++) {
			const float *restrict pr = r + fxi_walsh_row(n_coils, a, b) * LANES, *restrict pi = pr + LANES;
			const float *restrict br = vr + b * LANES, *restrict bi = vi + b * LANES;

#pragma omp simd
			for (int t = 0; t < LANES; t++) {
				sr[t] += pr[t] * br[t] - pi[t] * bi[t];
				si[t] += pr[t] * bi[t] + pi[t] * br[t];
			}
		}
#pragma omp simd
		for (int t = 0; t < LANES; t++) {
			re[a * LANES + t] = sr[t];
			im[a * LANES + t] = si[t];
		}
	}
}

/* Norm 1 in every lane; a vector of 0 stays 0. */
static void normalise(int64_t n_coils, float *restrict re, float *restrict im)
{
	float factor[LANES] = {0};

	for (int64_t a = 0; a < n_coils; a++)
#pragma omp simd
		for (int t = 0; t < LANES; t++)
			factor[t] += re[a * LANES + t] * re[a * LANES + t] + im[a * LANES + t] * im[a * LANES + t];
	for (int t = 0; t < LANES; t++)
		factor[t] = factor[t] > 0 ? 1 / sqrtf(factor[t]) : 0;
	for (int64_t a = 0; a < n_coils; a++)
#pragma omp simd
		for (int t = 0; t < LANES; t++) {
			re[a * LANES + t] *= factor[t];
			im[a * LANES + t] *= factor[t];
		}
}

/* Starts from the column of the coil with the largest diagonal element, over that element: never near 0 as a whole. */
static void start(int64_t n_coils, const float *restrict r, float *restrict re, float *restrict im)
{
	for (int t = 0; t < LANES; t++) {
		int64_t best = 0;
		float factor;

		for (int64_t a = 1; a < n_coils; a++)
			if (r[a * LANES + t] > r[best * LANES + t])
				best = a;
		factor = r[best * LANES + t] > 0 ? 1 / r[best * LANES + t] : 0;
		for (int64_t a = 0; a < n_coils; a++) {
			int64_t row = a < best ? fxi_walsh_row(n_coils, a, best) : fxi_walsh_row(n_coils, best, a);

			re[a * LANES + t] = a == best ? (factor > 0) : r[row * LANES + t] * factor;
			im[a * LANES + t] = a == best ? 0 : (a < best ? 1.0f : -1.0f) * r[(row + 1) * LANES + t] * factor;
		}
	}
}

/* Turns every vector so that its reference coil is real and not negative. */
static void turn(int64_t n_coils, int64_t reference, float *restrict re, float *restrict im)
{
	float c[LANES], s[LANES];

	for (int t = 0; t < LANES; t++) {
		float magnitude = hypotf(re[reference * LANES + t], im[reference * LANES + t]);

		c[t] = magnitude > 0 ? re[reference * LANES + t] / magnitude : 1;
		s[t] = magnitude > 0 ? im[reference * LANES + t] / magnitude : 0;
	}
	for (int64_t a = 0; a < n_coils; a++)
#pragma omp simd
		for (int t = 0; t < LANES; t++) {
			float x = re[a * LANES + t], y = im[a * LANES + t];

			re[a * LANES + t] = x * c[t] + y * s[t];
			im[a * LANES + t] = y * c[t] - x * s[t];
		}
	for (int t = 0; t < LANES; t++)
		im[reference * LANES + t] = 0; /* but for rounding, it is */
}

void FXI_NAME(fxi_walsh_solve)(int64_t n_coils, int n_iterations, int64_t reference, const float *r, float *re, float *im,
	float *work)
{
	float *wr = work, *wi = work + n_coils * LANES;

	start(n_coils, r, re, im);
	normalise(n_coils, re, im);
	for (int i = 0; i < n_iterations; i++) {
		multiply(n_coils, r, re, im, wr, wi);
		normalise(n_coils, wr, wi);
		for (int64_t j = 0; j < n_coils * LANES; j++) {
			re[j] = wr[j];
			im[j] = wi[j];
		}
	}
	turn(n_coils, reference, re, im);
}

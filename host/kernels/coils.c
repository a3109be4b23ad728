/* SPDX-License-Identifier: MIT */
/*
 * coils.c - products with coil maps over one block of voxels. Complex numbers are walked as pairs of floats, which
 * both compilers turn into full-width vectors; a block's accumulator stays in the first-level cache.
 */
#include "coils.h"

void FXI_NAME(fxi_coil_multiply)(int64_t n, const float *restrict a, const float *restrict b, float *restrict out)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) {
		float ar = a[2 * i], ai = a[2 * i + 1], br = b[2 * i], bi = b[2 * i + 1];

		out[2 * i] = ar * br - ai * bi;
		out[2 * i + 1] = ar * bi + ai * br;
	}
}

void FXI_NAME(fxi_coil_add_conjugate)(int64_t n, const float *restrict a, const float *restrict b, float *restrict out)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) {
		float ar = a[2 * i], ai = a[2 * i + 1], br = b[2 * i], bi = b[2 * i + 1];

		out[2 * i] += ar * br + ai * bi;
		out[2 * i + 1] += ar * bi - ai * br;
	}
}

void FXI_NAME(fxi_coil_add_power)(int64_t n, const float *restrict a, float *restrict out)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		out[i] += a[2 * i] * a[2 * i] + a[2 * i + 1] * a[2 * i + 1];
}

void FXI_NAME(fxi_coil_add_scaled)(int64_t n, float re, float im, const float *restrict a, float *restrict out)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++) {
		float ar = a[2 * i], ai = a[2 * i + 1];

		out[2 * i] += re * ar - im * ai;
		out[2 * i + 1] += re * ai + im * ar;
	}
}

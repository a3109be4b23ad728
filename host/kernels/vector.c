/* SPDX-License-Identifier: MIT */
/*
 * vector.c - dot products and updates of complex vectors. They stream through memory once, so plain loops that the
 * compiler vectorises are as fast as anything.
 */
#include "vector.h"

#define LANES 16

void FXI_NAME(fxi_vector_dot)(int64_t n, const float *x, const float *y, double sum[2])
{
	/* One partial sum a lane, added up in lane order: the order is the code's, not the vectoriser's choice. */
	double re[LANES] = {0}, im[LANES] = {0};
	int64_t whole = n / LANES * LANES;

	for (int64_t i = 0; i < whole; i += LANES) {
#pragma omp simd
		for (int l = 0; l < LANES; l++) {
			double xr = x[2 * (i + l)], xi = x[2 * (i + l) + 1];
			double yr = y[2 * (i + l)], yi = y[2 * (i + l) + 1];

			re[l] += xr * yr + xi * yi;
			im[l] += xr * yi - xi * yr;
		}
	}
	for (int64_t i = whole; i < n; i++) {
		double xr = x[2 * i], xi = x[2 * i + 1], yr = y[2 * i], yi = y[2 * i + 1];

		re[i - whole] += xr * yr + xi * yi;
		im[i - whole] += xr * yi - xi * yr;
	}
	sum[0] = sum[1] = 0;
	for (int l = 0; l < LANES; l++) {
		sum[0] += re[l];
		sum[1] += im[l];
	}
}

void FXI_NAME(fxi_vector_axpby)(int64_t n, float a, const float *x, float b, float *y)
{
#pragma omp simd
	for (int64_t i = 0; i < 2 * n; i++)
		y[i] = a * x[i] + b * y[i];
}

void FXI_NAME(fxi_vector_scale)(int64_t n, float a, float *x)
{
#pragma omp simd
	for (int64_t i = 0; i < 2 * n; i++)
		x[i] *= a;
}

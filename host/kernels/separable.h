/* SPDX-License-Identifier: MIT */
/*
 * separable.h - inner loops around the matrix product of separable.c: its factors are made by them, a sample a row, and
 * what it gives is summed by them.
 *
 * Complex numbers are pairs (re, im). Phases are unsigned integers, a cycle being 2^32 (2^64 in double). `row` below is the distance of
 * rows in complex numbers.
 */
#ifndef FORNIX_HOST_KERNELS_SEPARABLE_H
#define FORNIX_HOST_KERNELS_SEPARABLE_H

#include "kernels.h"

/** Rows of waves are written in whole vectors: `row` is a multiple of this, in complex numbers. */
#define FXI_SEPARABLE_LANES 16

/** out[m][v] = e^{i step[m] (first + v)} for v < count (and what else fits in the last vector). */
FXI_DECLARE(void, fxi_separable_waves_f32, (int64_t n, const uint32_t *step, int64_t first, int64_t count, int64_t row,
	float *out));
FXI_DECLARE(void, fxi_separable_waves_f64, (int64_t n, const uint64_t *step, int64_t first, int64_t count, int64_t row,
	double *out));

/** out[m][j * count + v] = factor[m * factor_row + j] in[m][v]; rows of out are n_factors * count long. */
FXI_DECLARE(void, fxi_separable_products_f32, (int64_t n, int64_t n_factors, const float *factor, int64_t factor_row,
	int64_t count, const float *in, int64_t row, float *out));
FXI_DECLARE(void, fxi_separable_products_f64, (int64_t n, int64_t n_factors, const double *factor, int64_t factor_row,
	int64_t count, const double *in, int64_t row, double *out));

/** sum[m] += sum over v < count of a[m][v] b[m][v], of rows of `count`, into double. */
FXI_DECLARE(void, fxi_separable_dots_f32, (int64_t n, int64_t count, const float *a, const float *b, double *sum));
FXI_DECLARE(void, fxi_separable_dots_f64, (int64_t n, int64_t count, const double *a, const double *b, double *sum));

/** sum[i] += part[i], real numbers. */
FXI_DECLARE(void, fxi_separable_add_f32, (int64_t n, const float *part, double *sum));
FXI_DECLARE(void, fxi_separable_add_f64, (int64_t n, const double *part, double *sum));

#endif

/* SPDX-License-Identifier: MIT */
/*
 * separable.h - inner loops of separable.c: the matrix product, and the factors it takes.
 *
 * Complex numbers have their parts apart. A matrix {row, 2, n} is n rows of first the real, then the imaginary parts of `row`
 * numbers. The left factor of a product stands in bands of L = FXI_SEPARABLE_BYTES / sizeof(real) numbers, in the order
 * that the product reads it: {L, 2, FXI_SEPARABLE_DEPTH, bands}. Rows are multiples of FXI_SEPARABLE_ROW, so whole bands.
 * Phases are unsigned integers, a cycle being 2^32 (2^64 in double).
 */
#ifndef FORNIX_HOST_KERNELS_SEPARABLE_H
#define FORNIX_HOST_KERNELS_SEPARABLE_H

#include "kernels.h"

#define FXI_SEPARABLE_BYTES 64
#define FXI_SEPARABLE_ROW 16
/** Most terms of a sum of a product. */
#define FXI_SEPARABLE_DEPTH 256

/** out {row, 2, n}: e^{i step[m] (first + v)} for v < count, and what else the last band holds. */
FXI_DECLARE(void, fxi_separable_waves_f32, (int64_t n, const uint32_t *step, int64_t first, int64_t count, int64_t row,
	float *out));
FXI_DECLARE(void, fxi_separable_waves_f64, (int64_t n, const uint64_t *step, int64_t first, int64_t count, int64_t row,
	double *out));

/** Left factor of n terms: wave {row, 2, n} times the complex pairs value[m], in row / L bands. */
FXI_DECLARE(void, fxi_separable_left_f32, (int64_t n, const float *value, int64_t row, const float *wave, float *left));
FXI_DECLARE(void, fxi_separable_left_f64, (int64_t n, const double *value, int64_t row, const double *wave, double *left));

/** Right factor {row, 2, n}: number z * n_y + y of row m is y's of wave_y {row_y, 2, n} times z's of wave_z. */
FXI_DECLARE(void, fxi_separable_right_f32, (int64_t n, int64_t n_y, int64_t row_y, const float *wave_y, int64_t n_z, int64_t row_z,
	const float *wave_z, int64_t row, float *right));
FXI_DECLARE(void, fxi_separable_right_f64, (int64_t n, int64_t n_y, int64_t row_y, const double *wave_y, int64_t n_z, int64_t row_z,
	const double *wave_z, int64_t row, double *right));

/** What stands where in the right factor: real part of term k, column c at k * term + c * column, the imaginary one `im` on. */
typedef struct fxi_separable_steps {
	int64_t term, column, im;
} fxi_separable_steps;

/** product {row, 2, n_columns} = sum over n_terms of left (row / L bands) times right. */
FXI_DECLARE(void, fxi_separable_product_f32, (int64_t n_terms, int64_t row, int64_t n_columns, const float *left, const float *right,
	const fxi_separable_steps *at, float *product));
FXI_DECLARE(void, fxi_separable_product_f64, (int64_t n_terms, int64_t row, int64_t n_columns, const double *left,
	const double *right, const fxi_separable_steps *at, double *product));

/** sum[m] (complex pairs) += sum over v < count of a times b, {row, 2, n} both, into double. */
FXI_DECLARE(void, fxi_separable_dots_f32, (int64_t n, int64_t count, int64_t row, const float *a, const float *b, double *sum));
FXI_DECLARE(void, fxi_separable_dots_f64, (int64_t n, int64_t count, int64_t row, const double *a, const double *b, double *sum));

/** sum[i] += part[i], real numbers. */
FXI_DECLARE(void, fxi_separable_add_f32, (int64_t n, const float *part, double *sum));
FXI_DECLARE(void, fxi_separable_add_f64, (int64_t n, const double *part, double *sum));

#endif

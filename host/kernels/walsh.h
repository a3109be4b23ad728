/* SPDX-License-Identifier: MIT */
/* walsh.h - the inner loops of Walsh maps. A Hermitian matrix of n coils is n^2 rows of floats, see fxi_walsh_row. */
#ifndef FORNIX_HOST_KERNELS_WALSH_H
#define FORNIX_HOST_KERNELS_WALSH_H

#include "kernels.h"

/** Voxels that one call of fxi_walsh_solve works on side by side. */
#define FXI_WALSH_LANES 16

/**
 * Row of the real (imaginary: + 1) part of element (a, b), a < b, of I_a conj(I_b); the diagonal's rows are 0..n-1.
 */
static inline int64_t fxi_walsh_row(int64_t n_coils, int64_t a, int64_t b)
{
	return n_coils + 2 * (a * (n_coils - 1) - a * (a - 1) / 2 + b - a - 1);
}

/** out[row][x] = the elements of I I^H for `n` voxels; re and im are {stride, coils}, out {stride, coils^2}. */
FXI_DECLARE(void, fxi_walsh_products, (int64_t n_coils, int64_t n, int64_t stride, const float *re, const float *im,
	float *out));
/** to[x] += from[x]. */
FXI_DECLARE(void, fxi_walsh_add, (int64_t n, const float *from, float *to));
/**
 * The dominant eigenvectors of FXI_WALSH_LANES matrices r {lanes, coils^2}, by power iterations from the column of the
 * strongest coil: norm 1, element `reference` real and not negative; 0 where the matrix is 0. re, im are {lanes, coils};
 * work is {lanes, 2 coils}.
 */
FXI_DECLARE(void, fxi_walsh_solve, (int64_t n_coils, int n_iterations, int64_t reference, const float *r, float *re,
	float *im, float *work));

#endif

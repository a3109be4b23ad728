/* SPDX-License-Identifier: MIT */
/*
 * direct.h - inner loops of the exact sums: a block of outputs against a run of inputs.
 *
 * Phases are unsigned integers, a cycle being 2^32 (2^64 in double), so that they wrap by themselves and stay exact
 * whatever the matrix. `lanes` below is FXI_DIRECT_BYTES / sizeof(real): one vector of the widest machine.
 */
#ifndef FORNIX_HOST_KERNELS_DIRECT_H
#define FORNIX_HOST_KERNELS_DIRECT_H

#include "kernels.h"

#define FXI_DIRECT_BYTES 64
/** Coils that share a phase's sine and cosine in one pass. */
#define FXI_DIRECT_COILS 4
/** Vectors of outputs of one pass: with one coil, and with several (registers are what limits it). */
#define FXI_DIRECT_VECTORS 4

/**
 * Gather over samples. sum[2c], sum[2c+1] (re, im of coil c, n_vectors * lanes each) = sum_m value_m e^{+i phase},
 * phase = base[m] + v step[m] for voxel v. values[2c], values[2c+1] hold re, im of coil c. n_coils is 1, 2 or 4 and
 * n_vectors 1, 2 or 4, at most 2 where n_coils is not 1.
 */
FXI_DECLARE(void, fxi_direct_voxels_f32, (int n_coils, int n_vectors, int64_t n, const uint32_t *base,
	const uint32_t *step, const float *const *values, float *const *sum));
FXI_DECLARE(void, fxi_direct_voxels_f64, (int n_coils, int n_vectors, int64_t n, const uint64_t *base,
	const uint64_t *step, const double *const *values, double *const *sum));

/**
 * Gather over the n voxels of a line. sum (as above, a sample a lane) = sum_v value_v e^{-i phase}, phase =
 * base[lane] + v step[lane]; values[c] is the first complex number of coil c's line and `stride` the distance of its voxels in
 * complex numbers.
 */
FXI_DECLARE(void, fxi_direct_samples_f32, (int n_coils, int n_vectors, int64_t n, const uint32_t *base,
	const uint32_t *step, const float *const *values, int64_t stride, float *const *sum));
FXI_DECLARE(void, fxi_direct_samples_f64, (int n_coils, int n_vectors, int64_t n, const uint64_t *base,
	const uint64_t *step, const double *const *values, int64_t stride, double *const *sum));

/** base[m] = p0[m] x0 + p1[m] x1 + p2[m] x2, wrapping. */
FXI_DECLARE(void, fxi_direct_base_f32, (int64_t n, const uint32_t *const p[3], const int64_t x[3], uint32_t *base));
FXI_DECLARE(void, fxi_direct_base_f64, (int64_t n, const uint64_t *const p[3], const int64_t x[3], uint64_t *base));

#endif

/* SPDX-License-Identifier: MIT */
/*
 * fixed.cuh - sums in 64-bit fixed point, which atomics may take in any order: the bits of the result do not depend on it. All
 * samples' magnitudes together are the largest number there is, so that nothing can overflow.
 */
#ifndef FORNIX_CUDA_FIXED_CUH
#define FORNIX_CUDA_FIXED_CUH

#include "cuda.cuh"

/* Sums of magnitudes of all samples of a coil, in double and in a fixed order: what the fixed point's unit comes from. */
template <typename REAL> __global__ static void fxi_magnitudes(int64_t n, const REAL *samples, double *sum)
{
	__shared__ double part[1024];
	double own = 0;

	for (int64_t i = threadIdx.x; i < n; i += 1024)
		own += fabs((double)samples[i]);
	part[threadIdx.x] = own;
	__syncthreads();
	for (int half = 512; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		*sum = part[0];
}

/* 7/8 of 2^62: kernel values are at most 1, and rounding adds a little */
#define FXI_FIXED_UNIT 4035225266123964416.0

/* fine += what was summed; a sum that had no unit (samples that are not finite) becomes NaN. */
template <typename REAL> __global__ static void fxi_add_fixed(int64_t n, const long long *grid, const double *total, REAL *fine)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	if (!isfinite(*total))
		fine[i] = NAN;
	else if (grid[i] != 0)
		fine[i] += (REAL)((double)grid[i] * (*total / FXI_FIXED_UNIT));
}

#endif

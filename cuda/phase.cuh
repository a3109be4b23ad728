/* SPDX-License-Identifier: MIT */
/*
 * phase.cuh - phases of the exact sums as integers: k's fraction of a cycle in fixed point times whole numbers of voxels, which wraps
 * exactly, and the wave at the end of it.
 */
#ifndef FORNIX_CUDA_PHASE_CUH
#define FORNIX_CUDA_PHASE_CUH

#include <stdint.h>

__device__ static inline void fxi_fixed(double k, uint32_t *out)
{
	*out = (uint32_t)(int64_t)llrint((k - rint(k)) * 4294967296.0);
}

__device__ static inline void fxi_fixed(double k, uint64_t *out)
{
	/* 2^63 would not fit where the fraction is exactly one half: it wraps to the same phase */
	double f = k - rint(k);

	*out = (uint64_t)(int64_t)llrint(f * 9223372036854775808.0) << 1;
}

/* e^{i 2 pi phase}. */
__device__ static inline float2 fxi_cis(uint32_t phase)
{
	float2 w;

	sincospif((float)(int32_t)phase * 4.656612873077393e-10f, &w.y, &w.x); /* 2^-31: half cycles */
	return w;
}

__device__ static inline double2 fxi_cis(uint64_t phase)
{
	double2 w;

	sincospi((double)(int64_t)phase * 1.0842021724855044e-19, &w.y, &w.x); /* 2^-63 */
	return w;
}

template <typename REAL2> __device__ static inline REAL2 fxi_times(REAL2 a, REAL2 b)
{
	return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * separable_half.cuh - tensor cores on numbers split into two half-precision terms. x = hi + lo with hi = half(x) and lo = half(x - hi):
 * 22 bits of x, or 2^-25 where lo is subnormal. Of the four products of two such numbers lo lo is left out: 2^-24 of the largest.
 *
 * mma.sync m16n8k16 (sm_80 and later), two m16n8k8 (sm_75).
 */
#ifndef FORNIX_CUDA_SEPARABLE_HALF_CUH
#define FORNIX_CUDA_SEPARABLE_HALF_CUH

#include "separable.cuh"

#include <cuda_fp16.h>

/* d += a b: 16 x 16 times 16 x 8 halves, sums in single. */
__device__ static inline void fxi_mma(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
	asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b0));
	asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

__device__ static inline uint32_t fxi_bits(half2 h)
{
	return *reinterpret_cast<uint32_t *>(&h);
}

/* Two numbers as two terms each. */
__device__ static inline void fxi_split(float x, float y, uint32_t *hi, uint32_t *lo)
{
	half2 h = __floats2half2_rn(x, y);
	float2 back = __half22float2(h);

	*hi = fxi_bits(h);
	*lo = fxi_bits(__floats2half2_rn(x - back.x, y - back.y));
}

/* 16 bytes from device to shared memory, behind the threads' backs where the chip can. */
__device__ static inline void fxi_fetch16(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
	*(uint4 *)to = *(const uint4 *)from;
#endif
}

__device__ static inline void fxi_fetch_commit()
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All but the last `pending` groups are there, for this thread. */
template <int pending> __device__ static inline void fxi_fetch_wait()
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}

/* The power of two that takes numbers up to `most` to below 2^13; 0 where there are none, or none that are finite. */
__device__ static inline int fxi_half_exponent(float most)
{
	int e = 0;

	if (!(most > 0) || !isfinite(most))
		return 0;
	frexpf(most, &e);
	e = 13 - e;
	return e > 120 ? 120 : e;
}

__device__ static inline float fxi_power_of_two(int e)
{
	return __int_as_float((e + 127) << 23);
}

#endif

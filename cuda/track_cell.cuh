/* SPDX-License-Identifier: MIT */
/*
 * track_cell.cuh - the forms in which a fibre reads the field. A cell's eight corners stay in registers while the fibre is in it: at a tenth of a
 * voxel a step, memory is asked once in some eight steps, not sixteen times; every evaluation between is eight products a number.
 * The texture forms ask the texture units each time instead.
 */
#ifndef FORNIX_CUDA_TRACK_CELL_CUH
#define FORNIX_CUDA_TRACK_CELL_CUH

#include "track.cuh"

#include <cuda_fp16.h>

namespace track {

/* Weights of a cell's corners; bit 0 of a corner is x. Fractions beyond the outermost centres are held there. */
__device__ static inline void weights(const float f[3], float w[8])
{
	float x = __saturatef(f[0]), y = __saturatef(f[1]), z = __saturatef(f[2]);
	float x0 = 1 - x, y0 = 1 - y, z0 = 1 - z, a = x0 * y0, b = x * y0, c = x0 * y, d = x * y;

	w[0] = a * z0;
	w[1] = b * z0;
	w[2] = c * z0;
	w[3] = d * z0;
	w[4] = a * z;
	w[5] = b * z;
	w[6] = c * z;
	w[7] = d * z;
}

/* Without a branch, to two roundings; numbers here are far from where single precision ends. */
__device__ static inline float inverse_root(float x)
{
	float y;

	asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

__device__ static inline float inverse(float x)
{
	float y;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* Voxels are numbered in 32 bits: track_prepare refuses fields that have no room for that. */
__device__ static inline uint32_t voxel_of(const fxi_track_view &g, const int c[3])
{
	return ((uint32_t)c[2] * (uint32_t)g.dims[1] + (uint32_t)c[1]) * (uint32_t)g.dims[0] + (uint32_t)c[0];
}

__device__ static inline uint32_t corner_of(const fxi_track_view &g, int corner)
{
	return (corner & 1 ? g.stride[0] : 0) + (corner & 2 ? g.stride[1] : 0) + (corner & 4 ? g.stride[2] : 0);
}

/* Trilinear value of a map of one number a voxel. */
__device__ static inline float sample(const fxi_track_view &g, const float *map, const int c[3], const float f[3])
{
	const float *at = map + voxel_of(g, c);
	float w[8], sum = 0;

	weights(f, w);
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum += w[i] * __ldg(at + corner_of(g, i));
	return sum;
}

/* T tensors, from number `first` on, at the eight corners. */
template <int T> struct corners {
	float at[8][T][6];

	__device__ void eval(const fxi_track_view &, const int *, const float f[3], float out[T][6]) const
	{
		float w[8];

		weights(f, w);
#pragma unroll
		for (int t = 0; t < T; t++)
#pragma unroll
			for (int k = 0; k < 6; k++) {
				float sum = w[0] * at[0][t][k];

#pragma unroll
				for (int i = 1; i < 8; i++)
					sum += w[i] * at[i][t][k];
				out[t][k] = sum;
			}
	}
};

/* STRIDE floats a voxel. */
template <int T, int STRIDE> struct plain_cell : corners<T> {
	__device__ void load(const fxi_track_view &g, const int c[3], int first)
	{
		uint32_t base = voxel_of(g, c);

#pragma unroll
		for (int i = 0; i < 8; i++) {
			const float2 *p = (const float2 *)g.field + (STRIDE / 2 * (base + corner_of(g, i)) + 3u * (uint32_t)first);
			float *to = &this->at[i][0][0];

			if (T % 2 == 0 && STRIDE % 4 == 0) {
#pragma unroll
				for (int k = 0; k < 6 * T / 4; k++) {
					float4 q = __ldg((const float4 *)p + k);

					to[4 * k] = q.x;
					to[4 * k + 1] = q.y;
					to[4 * k + 2] = q.z;
					to[4 * k + 3] = q.w;
				}
			} else {
#pragma unroll
				for (int k = 0; k < 3 * T; k++) {
					float2 q = __ldg(p + k);

					to[2 * k] = q.x;
					to[2 * k + 1] = q.y;
				}
			}
		}
	}
};

/* A tensor in sixteen bytes; OF tensors a voxel. */
template <int T, int OF> struct half_cell : corners<T> {
	__device__ void load(const fxi_track_view &g, const int c[3], int first)
	{
		uint32_t base = voxel_of(g, c);

#pragma unroll
		for (int i = 0; i < 8; i++)
#pragma unroll
			for (int t = 0; t < T; t++) {
				uint4 q = __ldg((const uint4 *)g.packed + (OF * (base + corner_of(g, i)) + (uint32_t)(first + t)));
				float2 a = __half22float2(*(const __half2 *)&q.x), b = __half22float2(*(const __half2 *)&q.y);
				float2 d = __half22float2(*(const __half2 *)&q.z);
				float *to = this->at[i][t];

				to[0] = a.x;
				to[1] = a.y;
				to[2] = b.x;
				to[3] = b.y;
				to[4] = d.x;
				to[5] = d.y;
			}
	}
};

/* Six numbers of voxel i; false where they are not finite: no metric there. */
__device__ static inline bool read6(const float *field, uint32_t i, float out[6])
{
	const float2 *p = (const float2 *)field + 3 * i;

#pragma unroll
	for (int k = 0; k < 3; k++) {
		float2 q = __ldg(p + k);

		out[2 * k] = q.x;
		out[2 * k + 1] = q.y;
	}
	return isfinite(out[0]);
}

/* Derivative at voxel i, which is number `at` of n along its axis: central, else one-sided of second order, else of first, else 0. */
__device__ static __noinline__ void differ(const float *field, uint32_t i, uint32_t step, int at, int n, float out[6])
{
	float low[6], high[6], own[6], far[6];
	bool has_low = at > 0 && read6(field, i - step, low), has_high = at + 1 < n && read6(field, i + step, high);
	bool one = has_low != has_high, two;
	int second = at + (has_high ? 2 : -2);
	float sign = has_high ? 1.0f : -1.0f;

	read6(field, i, own);
	two = one && second >= 0 && second < n && read6(field, has_high ? i + 2 * step : i - 2 * step, far);
	for (int k = 0; k < 6; k++) {
		float near = has_high ? high[k] : low[k];

		if (has_low && has_high)
			out[k] = 0.5f * (high[k] - low[k]);
		else
			out[k] = two ? sign * (2 * near - 1.5f * own[k] - 0.5f * far[k]) : one ? sign * (near - own[k]) : 0;
	}
}

/*
 * Six numbers a voxel: tensor 0 is g, tensor 1 + a its derivative along axis a, taken when the cell is entered. Where nothing is near a border,
 * all are half a sum or half a difference of two voxels, g of one voxel twice: threads of all tensors do the same.
 */
template <int T> struct compact_cell : corners<T> {
	__device__ void load(const fxi_track_view &g, const int c[3], int first)
	{
		const float *field = (const float *)g.packed;
		uint32_t base = voxel_of(g, c);

#pragma unroll
		for (int t = 0; t < T; t++) {
			int axis = first + t - 1;
			uint32_t step = axis < 0 ? 0 : axis == 0 ? 1 : axis == 1 ? (uint32_t)g.dims[0] : (uint32_t)g.dims[0] * (uint32_t)g.dims[1];
			int here = axis == 0 ? c[0] : axis == 1 ? c[1] : c[2], n = axis == 0 ? g.dims[0] : axis == 1 ? g.dims[1] : g.dims[2];
			bool plain = axis < 0 || (here > 0 && here + 2 < n);
			uint32_t reach = plain ? step : 0;
			float low = axis < 0 ? 0.5f : -0.5f, sum = 0;

#pragma unroll
			for (int i = 0; i < 8; i++) {
				uint32_t voxel = base + corner_of(g, i);
				float a[6], b[6];

				read6(field, voxel + reach, a);
				read6(field, voxel - reach, b);
#pragma unroll
				for (int k = 0; k < 6; k++)
					this->at[i][t][k] = 0.5f * a[k] + low * b[k];
				sum += this->at[i][t][0];
			}
			if (axis >= 0 && !(plain && isfinite(sum)))
				for (int i = 0; i < 8; i++) {
					float out[6];

					differ(field, base + corner_of(g, i), step, here + (n > 1 ? i >> axis & 1 : 0), n, out);
#pragma unroll
					for (int k = 0; k < 6; k++)
#pragma unroll
						for (int which = 0; which < 8; which++)
							if (which == i)
								this->at[which][t][k] = out[k];
				}
		}
	}
};

/* N textures of four numbers: what the units give, each time. */
template <int T> struct texture_cell {
	__device__ void load(const fxi_track_view &, const int *, int) {}	__device__ void eval(const fxi_track_view &g, const int c[3], const float f[3], float out[T][6]) const
	{
		float x = (float)c[0] + f[0] + 0.5f, y = (float)c[1] + f[1] + 0.5f, z = (float)c[2] + f[2] + 0.5f;
		float *to = &out[0][0];

#pragma unroll
		for (int k = 0; k < (6 * T + 3) / 4; k++) {
			float4 q = tex3D<float4>(g.textures[k], x, y, z);

			to[4 * k] = q.x;
			to[4 * k + 1] = q.y;
			if (4 * k + 2 < 6 * T) {
				to[4 * k + 2] = q.z;
				to[4 * k + 3] = q.w;
			}
		}
	}
};

} // namespace track

#endif

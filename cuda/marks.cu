/* SPDX-License-Identifier: MIT */
/*
 * marks.cu - marks a voxel (masks, flags) and magnitudes: each element once, counts as sums of whole numbers, which come out the same in
 * whatever order. One path for every architecture, limited by memory.
 */
#include "cuda.cuh"

#define THREADS 256
#define MOST_BLOCKS 2048

static unsigned blocks_of(int64_t n)
{
	int64_t blocks = (n + THREADS - 1) / THREADS;

	return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

struct change {
	unsigned bits;
	int yes, no;
	const uint8_t *a, *within; /* within may be NULL */
	uint8_t *out;              /* or NULL */
	unsigned long long *counts;/* or NULL */
};

__global__ static void mark_each(int64_t n, change c)
{
	__shared__ unsigned total[9];
	unsigned own[9] = {0};

	if (threadIdx.x < 9)
		total[threadIdx.x] = 0;
	__syncthreads();
	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) {
		unsigned a = c.a[i];
		uint8_t v = (uint8_t)(c.within && !c.within[i] ? 0 : a & c.bits ? c.yes : c.no);

#pragma unroll
		for (int k = 0; k < 8; k++)
			own[k] += a >> k & 1;
		own[8] += v != 0;
		if (c.out)
			c.out[i] = v;
	}
	if (!c.counts)
		return;
#pragma unroll
	for (int k = 0; k < 9; k++)
		if (own[k])
			atomicAdd(&total[k], own[k]);
	__syncthreads();
	if (threadIdx.x < 9 && total[threadIdx.x])
		atomicAdd(&c.counts[threadIdx.x], (unsigned long long)total[threadIdx.x]);
}

int fxi_cuda_marks(fx_math *m, const fx_array *a, unsigned bits, int yes, int no, const fx_array *within, fx_array *out,
	int64_t counts[9])
{
	fxi_counts result(m, counts ? 9 : 0);
	change c = {bits, yes, no, nullptr, nullptr, nullptr, nullptr};
	fxi_use use(m);
	int status = result.status();

	if (a->type != FX_U8 || (within && (within->type != FX_U8 || within->n != a->n)) ||
		(out && (out->type != FX_U8 || out->n != a->n)))
		return fx_math_fail(m, FX_EINVAL, "marks are u8 arrays of one size");
	c.a = out == a ? (const uint8_t *)use.out(out) : (const uint8_t *)use.in(a);
	c.within = within ? (const uint8_t *)use.in(within) : nullptr;
	c.out = out == a ? (uint8_t *)a->data : out ? (uint8_t *)use.out(out) : nullptr;
	c.counts = counts ? result.device() : nullptr;
	if (status == FX_OK)
		status = use.ready();
	if (status == FX_OK && a->n > 0) {
		mark_each<<<blocks_of(a->n), THREADS, 0, fxi_stream_of(m)>>>(a->n, c);
		status = use.done("marks");
	}
	return status == FX_OK && counts ? result.get(counts) : status;
}

__global__ static void look_at_each(int64_t n, const float *x, unsigned long long *any)
{
	bool seen = false;

	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
		seen = seen || x[i] > 0;
	if (seen)
		*any = 1; /* whoever writes, writes the same */
}

__global__ static void size_of_each(int64_t n, const float2 *x, float *out, unsigned long long *any)
{
	bool seen = false;

	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS) {
		double re = x[i].x, im = x[i].y;

		seen = seen || re != 0 || im != 0;
		if (out)
			out[i] = (float)sqrt(re * re + im * im);
	}
	if (seen)
		*any = 1;
}

int fxi_cuda_magnitude(fx_math *m, const fx_array *x, fx_array *out, bool *any)
{
	fxi_counts result(m, 1);
	int64_t seen = 0;
	fxi_use use(m);
	int status = result.status();

	if ((x->type != FX_CF32 && (x->type != FX_F32 || out)) || (out && (out->type != FX_F32 || out->n != x->n)))
		return fx_math_fail(m, FX_EINVAL, "a magnitude is f32, of a cf32 array of its size");
	const void *from = use.in(x);
	float *to = out ? (float *)use.out(out) : nullptr;
	if (status == FX_OK)
		status = use.ready();
	if (status == FX_OK && x->n > 0) {
		if (x->type == FX_F32)
			look_at_each<<<blocks_of(x->n), THREADS, 0, fxi_stream_of(m)>>>(x->n, (const float *)from, result.device());
		else
			size_of_each<<<blocks_of(x->n), THREADS, 0, fxi_stream_of(m)>>>(x->n, (const float2 *)from, to, result.device());
		status = use.done("magnitudes");
	}
	if (status == FX_OK)
		status = result.get(&seen);
	*any = seen != 0;
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * vector.cu - dot products and updates of cf32 vectors. A reduction has a fixed number of blocks, each with a fixed share,
 * summed in double in a fixed tree: the same bits on every GPU.
 */
#include "cuda.cuh"

#define BLOCKS 1024
#define THREADS 256

static int need_cf32(fx_math *m, const char *op, const fx_array *x, const fx_array *y)
{
	if (x->type != FX_CF32 || y->type != FX_CF32 || x->n != y->n)
		return fx_math_fail(m, FX_EINVAL, "%s takes two cf32 arrays of one size, not %s of %lld and %s of %lld", op,
			fx_type_name(x->type), (long long)x->n, fx_type_name(y->type), (long long)y->n);
	return FX_OK;
}

__device__ static double2 sum_block(double2 v)
{
	__shared__ double2 part[THREADS];

	part[threadIdx.x] = v;
	__syncthreads();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half) {
			part[threadIdx.x].x += part[threadIdx.x + half].x;
			part[threadIdx.x].y += part[threadIdx.x + half].y;
		}
		__syncthreads();
	}
	return part[0];
}

__global__ static void dot_blocks(int64_t n, const float2 *x, const float2 *y, double2 *partial)
{
	double2 sum = {0, 0};

	for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < n; i += (int64_t)BLOCKS * THREADS) {
		float2 a = x[i], b = y[i];

		sum.x += (double)a.x * b.x + (double)a.y * b.y;
		sum.y += (double)a.x * b.y - (double)a.y * b.x;
	}
	sum = sum_block(sum);
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum;
}

__global__ static void dot_finish(double2 *partial, double2 *result)
{
	double2 sum = {0, 0};

	for (int i = threadIdx.x; i < BLOCKS; i += THREADS) {
		sum.x += partial[i].x;
		sum.y += partial[i].y;
	}
	sum = sum_block(sum);
	if (threadIdx.x == 0)
		*result = sum;
}

int fxi_cuda_dot(fx_math *m, const fx_array *x, const fx_array *y, double *re, double *im)
{
	fxi_cuda_queue *q = fxi_queue(m);
	int status = need_cf32(m, "dot", x, y);
	fxi_use use(m);

	*re = *im = 0;
	if (status != FX_OK || x->n == 0)
		return status;
	const float2 *a = (const float2 *)use.in(x), *b = (const float2 *)use.in(y);
	if (use.ready() != FX_OK)
		return use.ready();
	/* The pinned result is written by the device itself: no copy of its own. */
	dot_blocks<<<BLOCKS, THREADS, 0, fxi_stream_of(m)>>>(x->n, a, b, (double2 *)q->partial);
	dot_finish<<<1, THREADS, 0, fxi_stream_of(m)>>>((double2 *)q->partial, (double2 *)q->result);
	status = use.done("a dot product");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "a dot product");
	if (status == FX_OK) {
		*re = q->result[0];
		*im = q->result[1];
	}
	return status;
}

/* y = a x + b y, element by element; x may be NULL. */
__global__ static void axpby_each(int64_t n, float a, const float2 *x, float b, float2 *y)
{
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
		float2 v = y[i], u = x ? x[i] : make_float2(0, 0);

		y[i] = make_float2(a * u.x + b * v.x, a * u.y + b * v.y);
	}
}

static int axpby(fx_math *m, const char *op, double a, const fx_array *x, double b, fx_array *y)
{
	int status = x ? need_cf32(m, op, x, y) : need_cf32(m, op, y, y);
	fxi_use use(m);

	if (status != FX_OK || y->n == 0)
		return status;
	const float2 *from = x ? (const float2 *)use.in(x) : nullptr;
	float2 *to = (float2 *)use.out(y);
	if (use.ready() != FX_OK)
		return use.ready();
	axpby_each<<<(unsigned)((y->n + 1023) / 1024 < 65536 ? (y->n + 1023) / 1024 : 65536), 256, 0, fxi_stream_of(m)>>>(y->n,
		(float)a, from, (float)b, to);
	return use.done(op);
}

int fxi_cuda_axpy(fx_math *m, double a, const fx_array *x, fx_array *y)
{
	return axpby(m, "axpy", a, x, 1, y);
}

int fxi_cuda_xpay(fx_math *m, const fx_array *x, double a, fx_array *y)
{
	return axpby(m, "xpay", 1, x, a, y);
}

int fxi_cuda_scale(fx_math *m, double a, fx_array *x)
{
	return axpby(m, "scale", 0, nullptr, a, x);
}

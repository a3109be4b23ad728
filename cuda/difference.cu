/* SPDX-License-Identifier: MIT */
/* difference.cu - W^H W of weighted first differences: a thread a voxel gathers from its six neighbours in a fixed order. */
#include "cuda.cuh"

struct lattice {
	int64_t dims[3], voxels;
};

__global__ static void gather(lattice l, float factor, const float *w, const float2 *x, float2 *y)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	int64_t step = 1;
	float2 own, sum;

	if (i >= l.voxels)
		return;
	int64_t at[3] = {i % l.dims[0], i / l.dims[0] % l.dims[1], i / (l.dims[0] * l.dims[1])};
	own = x[i];
	sum = y[i];
	for (int d = 0; d < 3; d++) {
		if (at[d] + 1 < l.dims[d]) {
			float a = factor * w[d * l.voxels + i];

			sum.x += a * (own.x - x[i + step].x);
			sum.y += a * (own.y - x[i + step].y);
		}
		if (at[d] > 0) {
			float a = factor * w[d * l.voxels + i - step];

			sum.x += a * (own.x - x[i - step].x);
			sum.y += a * (own.y - x[i - step].y);
		}
		step *= l.dims[d];
	}
	y[i] = sum;
}

int fxi_cuda_difference_normal(fx_math *m, const fx_array *weights, double factor, const fx_array *x, fx_array *y)
{
	bool fits = x->type == FX_CF32 && fx_array_same_shape(x, y) && weights->type == FX_F32 && weights->dims[3] == 3 &&
		weights->n == 3 * x->n;
	lattice l = {{x->dims[0], x->dims[1], x->dims[2]}, x->n};
	fxi_use use(m);

	for (int d = 0; d < 3; d++)
		fits = fits && weights->dims[d] == x->dims[d];
	if (!fits || (x->n > 0 && x->data == y->data))
		return fx_math_fail(m, FX_EINVAL,
			"difference_normal takes two different cf32 images {x,y,z} and f32 weights {x,y,z,3}");
	if (x->n == 0)
		return FX_OK;
	const float *w = (const float *)use.in(weights);
	const float2 *from = (const float2 *)use.in(x);
	float2 *to = (float2 *)use.out(y);
	if (use.ready() != FX_OK)
		return use.ready();
	gather<<<(unsigned)((x->n + 255) / 256), 256, 0, fxi_stream_of(m)>>>(l, (float)factor, w, from, to);
	return use.done("the prior's differences");
}

/* SPDX-License-Identifier: MIT */
/* coils.cu - coil maps and channel mixing: a thread a voxel walks through the coils in their order. Bound by memory. */
#include "cuda.cuh"

#define THREADS 256

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

/* Coils in `coils` over the voxels of `image`, both of the given types; -1 where they do not fit together. */
static int64_t coils_of(const fx_array *image, int image_type, const fx_array *coils)
{
	if (image->type != image_type || coils->type != FX_CF32)
		return -1;
	for (int d = 0; d < 3; d++)
		if (image->dims[d] != coils->dims[d])
			return -1;
	if (image->n != image->dims[0] * image->dims[1] * image->dims[2])
		return -1;
	return image->n ? coils->n / image->n : 0;
}

__global__ static void expand(int64_t n, int64_t n_coils, const float2 *maps, const float2 *image, float2 *coils)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= n)
		return;
	float2 v = image[i];
	for (int64_t c = 0; c < n_coils; c++) {
		float2 s = maps[c * n + i];

		coils[c * n + i] = make_float2(s.x * v.x - s.y * v.y, s.x * v.y + s.y * v.x);
	}
}

int fxi_cuda_coil_expand(fx_math *m, const fx_array *maps, const fx_array *image, fx_array *coils)
{
	int64_t n_coils = coils_of(image, FX_CF32, maps);
	fxi_use use(m);

	if (n_coils < 0 || !fx_array_same_shape(maps, coils))
		return fx_math_fail(m, FX_EINVAL, "coil_expand: maps, image and coil images differ in shape or type");
	if (coils->n == 0)
		return FX_OK;
	const float2 *s = (const float2 *)use.in(maps), *v = (const float2 *)use.in(image);
	float2 *to = (float2 *)use.out(coils);
	if (use.ready() != FX_OK)
		return use.ready();
	expand<<<blocks_for(image->n), THREADS, 0, fxi_stream_of(m)>>>(image->n, n_coils, s, v, to);
	return use.done("expanding an image to coils");
}

__global__ static void combine(int64_t n, int64_t n_coils, const float2 *maps, const float2 *coils, float2 *image)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	float2 sum = {0, 0};

	if (i >= n)
		return;
	for (int64_t c = 0; c < n_coils; c++) {
		float2 s = maps[c * n + i], v = coils[c * n + i];

		sum.x += s.x * v.x + s.y * v.y;
		sum.y += s.x * v.y - s.y * v.x;
	}
	image[i] = sum;
}

int fxi_cuda_coil_combine(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array *image)
{
	int64_t n_coils = coils_of(image, FX_CF32, maps);
	fxi_use use(m);

	if (n_coils < 0 || !fx_array_same_shape(maps, coils))
		return fx_math_fail(m, FX_EINVAL, "coil_combine: maps, coil images and image differ in shape or type");
	if (image->n == 0)
		return FX_OK;
	const float2 *s = (const float2 *)use.in(maps), *v = (const float2 *)use.in(coils);
	float2 *to = (float2 *)use.out(image);
	if (use.ready() != FX_OK)
		return use.ready();
	combine<<<blocks_for(image->n), THREADS, 0, fxi_stream_of(m)>>>(image->n, n_coils, s, v, to);
	return use.done("combining coils");
}

__global__ static void power_of(int64_t n, int64_t n_coils, const float2 *coils, float *power)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	float sum = 0;

	if (i >= n)
		return;
	for (int64_t c = 0; c < n_coils; c++) {
		float2 v = coils[c * n + i];

		sum += v.x * v.x + v.y * v.y;
	}
	power[i] = sum;
}

int fxi_cuda_coil_power(fx_math *m, const fx_array *coils, fx_array *power)
{
	int64_t n_coils = coils_of(power, FX_F32, coils);
	fxi_use use(m);

	if (n_coils < 0)
		return fx_math_fail(m, FX_EINVAL, "coil_power: coil images and power differ in shape or type");
	if (power->n == 0)
		return FX_OK;
	const float2 *v = (const float2 *)use.in(coils);
	float *to = (float *)use.out(power);
	if (use.ready() != FX_OK)
		return use.ready();
	power_of<<<blocks_for(power->n), THREADS, 0, fxi_stream_of(m)>>>(power->n, n_coils, v, to);
	return use.done("the coils' power");
}

__global__ static void finish(int64_t n, const float *power, bool has_maps, float2 *image)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= n)
		return;
	float p = power[i];
	float2 v = image[i];
	if (!has_maps)
		image[i] = make_float2(sqrtf(p), 0);
	else
		image[i] = p > 0 ? make_float2(v.x / p, v.y / p) : make_float2(0, 0);
}

int fxi_cuda_coil_finish(fx_math *m, const fx_array *power, bool has_maps, fx_array *image)
{
	fxi_use use(m);

	if (power->type != FX_F32 || image->type != FX_CF32 || power->n != image->n)
		return fx_math_fail(m, FX_EINVAL, "coil_finish: power and image differ in shape or type");
	if (image->n == 0)
		return FX_OK;
	const float *p = (const float *)use.in(power);
	float2 *to = (float2 *)use.out(image);
	if (use.ready() != FX_OK)
		return use.ready();
	finish<<<blocks_for(image->n), THREADS, 0, fxi_stream_of(m)>>>(image->n, p, has_maps, to);
	return use.done("finishing a combined image");
}

__global__ static void mix(int64_t n, int64_t n_in, const float2 *matrix, const float2 *in, float2 *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, o = blockIdx.y;
	float2 sum = {0, 0};

	if (i >= n)
		return;
	for (int64_t c = 0; c < n_in; c++) {
		float2 a = matrix[o * n_in + c], v = in[c * n + i];

		sum.x += a.x * v.x - a.y * v.y;
		sum.y += a.x * v.y + a.y * v.x;
	}
	out[o * n + i] = sum;
}

int fxi_cuda_coil_mix(fx_math *m, const fx_array *matrix, const fx_array *in, fx_array *out)
{
	int64_t n = in->dims[0], n_in = matrix->dims[0], n_out = matrix->dims[1];
	fxi_use use(m);

	if (matrix->type != FX_CF32 || in->type != FX_CF32 || out->type != FX_CF32 || in->n != n * n_in || out->dims[0] != n ||
		out->n != n * n_out || (in->n > 0 && in->data == out->data) || n_out > 65535)
		return fx_math_fail(m, FX_EINVAL, "coil_mix: a matrix {%lld, %lld} does not take {%lld, ...} of %lld to %lld samples",
			(long long)n_in, (long long)n_out, (long long)n, (long long)in->n, (long long)out->n);
	if (out->n == 0)
		return FX_OK;
	const float2 *a = (const float2 *)use.in(matrix), *v = (const float2 *)use.in(in);
	float2 *to = (float2 *)use.out(out);
	if (use.ready() != FX_OK)
		return use.ready();
	mix<<<dim3(blocks_for(n), (unsigned)n_out), THREADS, 0, fxi_stream_of(m)>>>(n, n_in, a, v, to);
	return use.done("mixing channels");
}

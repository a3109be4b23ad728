/* SPDX-License-Identifier: MIT */
/*
 * smooth.cu - tensor_smooth: six components times their weight and the weight itself as seven planes, so that threads along x read whole
 * lines whichever axis is smoothed; sums in double, in the host's order. One path for every architecture; neighbours come from the caches.
 */
#include "cuda.cuh"

#include <math.h>

#define THREADS 256
#define CHANNELS 7

struct field {
	int64_t n;
	const float *d;
	const uint8_t *mask, *flags; /* or NULL */
	unsigned skip;
};

__device__ static bool counts(const field &f, int64_t i)
{
	if ((f.mask && !f.mask[i]) || (f.flags && (f.flags[i] & f.skip)))
		return false;
	for (int c = 0; c < 6; c++)
		if (!isfinite(f.d[6 * i + c]))
			return false;
	return true;
}

__global__ static void spread_out(field f, float *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	bool in = i < f.n && counts(f, i);

	for (int c = 0; i < f.n && c < CHANNELS; c++)
		out[c * f.n + i] = !in ? 0 : c < 6 ? f.d[6 * i + c] : 1;
}

__global__ static void weights_of(double sigma, int64_t radius, double *kernel)
{
	for (int64_t i = threadIdx.x; i <= radius; i += THREADS)
		kernel[i] = exp(-0.5 * (double)(i * i) / (sigma * sigma));
}

struct line {
	int64_t n, length, step, radius; /* n: voxels; of the axis: its length, voxels between neighbours */
};

__global__ static void smooth_axis(line l, const double *kernel, const float *in, float *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= l.n)
		return;
	int64_t at = i / l.step % l.length, first = at > l.radius ? -l.radius : -at;
	int64_t last = at + l.radius < l.length - 1 ? l.radius : l.length - 1 - at;

	for (int c = 0; c < CHANNELS; c++) {
		const float *v = in + c * l.n + i;
		double sum = 0;

		for (int64_t k = first; k <= last; k++)
			sum += kernel[k < 0 ? -k : k] * (double)v[k * l.step];
		out[c * l.n + i] = (float)sum;
	}
}

__global__ static void bring_together(field f, const float *in, float *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= f.n)
		return;
	bool inside = counts(f, i); /* others stay as they are: the mask does not grow */
	float weight = in[6 * f.n + i];

	for (int c = 0; c < 6; c++)
		out[6 * i + c] = inside ? in[c * f.n + i] / weight : f.d[6 * i + c];
}

static int one_axis(fx_math *m, line l, double sigma, const float *in, float *out)
{
	fxi_work kernel(m, l.radius + 1, sizeof(double));

	if (kernel.status() != FX_OK)
		return kernel.status();
	weights_of<<<1, THREADS, 0, fxi_stream_of(m)>>>(sigma, l.radius, (double *)kernel.get());
	smooth_axis<<<(unsigned)((l.n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(l, (const double *)kernel.get(), in, out);
	return fxi_cuda_launched(m, "smoothing tensors");
}

int fxi_cuda_tensor_smooth(fx_math *m, const fx_array *tensors, const fx_array *mask, const fx_array *flags, unsigned skip_flags,
	const double sigma[3], fx_array *out)
{
	field f = {tensors->n / 6, nullptr, nullptr, nullptr, skip_flags};
	unsigned blocks = (unsigned)((f.n + THREADS - 1) / THREADS);
	line l = {f.n, 0, 1, 0};
	int now = 0, status;
	fxi_use use(m);

	if (tensors->type != FX_F32 || tensors->n_dims != 4 || tensors->dims[0] != 6 || !fx_array_same_shape(tensors, out) ||
		out->type != FX_F32 || (mask && mask->n != f.n) || (flags && flags->n != f.n) || (f.n > 0 && tensors->data == out->data))
		return fx_math_fail(m, FX_EINVAL, "tensor_smooth takes two different f32 tensor fields {6,x,y,z} and u8 marks of as many voxels");
	if (f.n == 0)
		return FX_OK;
	fxi_work a(m, f.n, CHANNELS * sizeof(float)), b(m, f.n, CHANNELS * sizeof(float));
	float *work[2] = {(float *)a.get(), (float *)b.get()};

	f.d = (const float *)use.in(tensors);
	f.mask = mask ? (const uint8_t *)use.in(mask) : nullptr;
	f.flags = flags ? (const uint8_t *)use.in(flags) : nullptr;
	float *to = (float *)use.out(out);
	status = use.ready() != FX_OK ? use.ready() : a.status() != FX_OK ? a.status() : b.status();
	if (status != FX_OK)
		return status;
	spread_out<<<blocks, THREADS, 0, fxi_stream_of(m)>>>(f, work[0]);
	for (int d = 0; d < 3 && status == FX_OK; d++) {
		l.length = tensors->dims[d + 1];
		l.radius = (int64_t)ceil(3 * sigma[d]);
		if (l.length > 1) {
			status = one_axis(m, l, sigma[d], work[now], work[1 - now]);
			now = 1 - now;
		}
		l.step *= l.length;
	}
	if (status == FX_OK)
		bring_together<<<blocks, THREADS, 0, fxi_stream_of(m)>>>(f, work[now], to);
	return status == FX_OK ? use.done("smoothing tensors") : status;
}

/* SPDX-License-Identifier: MIT */
/*
 * separable.cu - the exact sums as matrix products on tensor cores: which axis is which, how the work is cut, and sums of parts. Single
 * precision goes to separable_half_*.cu, double to separable_double.cu; separable.cuh has the form.
 */
#include "separable.cuh"

#define THREADS 256
#define MOST_PARTS 16
#define MOST_BYTES (256 << 20)

int fxi_separable_parts(fx_math *m, int64_t blocks, int64_t most, int64_t bytes_each)
{
	int64_t at_once = fxi_queue(m)->n_processors, best = 1;
	double least = 1e300;

	if (most > MOST_PARTS)
		most = MOST_PARTS;
	if (most > MOST_BYTES / bytes_each)
		most = MOST_BYTES / bytes_each;
	for (int64_t parts = 1; parts <= most; parts++) {
		double time = (double)((blocks * parts + at_once - 1) / at_once) / (double)parts;

		/* each part costs a pass over the result: a gain below 5 % is none */
		if (time < 0.95 * least) {
			least = time;
			best = parts;
		}
	}
	return (int)best;
}

template <typename FROM, typename TO> __global__ static void gather(int64_t n, int parts, const FROM *from, double scale, bool add, TO *to)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double re = 0, im = 0;

	if (i >= n)
		return;
	for (int p = 0; p < parts; p++) {
		re += from[p * n + i].x;
		im += from[p * n + i].y;
	}
	re = scale * re + (add ? to[i].x : 0);
	im = scale * im + (add ? to[i].y : 0);
	to[i].x = (decltype(to[i].x))re;
	to[i].y = (decltype(to[i].y))im;
}

template <typename FROM, typename TO> static int launch_gather(fx_math *m, int64_t n, int parts, const FROM *from, double scale, bool add,
	TO *to)
{
	if (n > 0)
		gather<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(n, parts, from, scale, add, to);
	return fxi_cuda_launched(m, "sums of parts");
}

int fxi_separable_gather(fx_math *m, int64_t n, int parts, const float2 *from, double scale, bool add, float2 *to)
{
	return launch_gather(m, n, parts, from, scale, add, to);
}

int fxi_separable_gather(fx_math *m, int64_t n, int parts, const double2 *from, double scale, bool add, float2 *to)
{
	return launch_gather(m, n, parts, from, scale, add, to);
}

int fxi_separable_gather(fx_math *m, int64_t n, int parts, const double2 *from, double scale, bool add, double2 *to)
{
	return launch_gather(m, n, parts, from, scale, add, to);
}

fxi_separable fxi_separable_shape(const fx_array *image, int64_t coils)
{
	const int64_t stride[3] = {1, image->dims[0], image->dims[0] * image->dims[1]};
	fxi_separable s = {};
	int order[3] = {0, 1, 2};

	for (int a = 0; a < 2; a++)
		for (int b = a + 1; b < 3; b++)
			if (image->dims[order[b]] > image->dims[order[a]]) {
				int t = order[a];

				order[a] = order[b];
				order[b] = t;
			}
	for (int a = 0; a < 3; a++) {
		s.axis[a] = order[a];
		s.n[a] = (int)image->dims[order[a]];
		s.stride[a] = stride[order[a]];
	}
	s.n_voxels = image->dims[0] * image->dims[1] * image->dims[2];
	s.coils = coils;
	s.even = s.n[0] % 2 == 0;
	s.pairs = (s.n[0] + 1) / 2;
	return s;
}

/* The FP64 tensor cores came with sm_80: before, double goes through the direct sums, whose recurrence costs 6 FMA a pair. */
static bool has_double(fx_math *m)
{
	return fxi_queue(m)->major >= 8;
}

int fxi_cuda_separable_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	int64_t n = k->dims[1];
	int status = fxi_cuda_direct_need(m, k, samples, image);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0 || samples->n == 0)
		return status;
	if (samples->type == FX_CF64 && !has_double(m))
		return fxi_cuda_direct_adjoint(m, k, samples, scale, image);
	const double *kd = (const double *)use.in(k);
	const void *from = use.in(samples);
	void *to = use.out(image);
	fxi_separable s = fxi_separable_shape(image, samples->n / n);
	status = use.ready();
	if (status == FX_OK && samples->type == FX_CF32)
		status = fxi_separable_half_adjoint(m, s, n, kd, (const float2 *)from, scale, (float2 *)to);
	else if (status == FX_OK)
		status = fxi_separable_double_adjoint(m, s, n, kd, (const double2 *)from, scale, (double2 *)to);
	return status == FX_OK ? use.done("the separable sums") : status;
}

int fxi_cuda_separable_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	int64_t n = k->dims[1];
	int status = fxi_cuda_direct_need(m, k, samples, image);
	fxi_use use(m);

	if (status != FX_OK || samples->n == 0)
		return status;
	if (samples->type == FX_CF64 && !has_double(m))
		return fxi_cuda_direct_forward(m, k, image, scale, samples);
	const double *kd = (const double *)use.in(k);
	const void *from = use.in(image);
	void *to = use.out(samples);
	fxi_separable s = fxi_separable_shape(image, samples->n / n);
	status = use.ready();
	if (status == FX_OK && samples->type == FX_CF32)
		status = fxi_separable_half_forward(m, s, n, kd, (const float2 *)from, scale, (float2 *)to);
	else if (status == FX_OK)
		status = fxi_separable_double_forward(m, s, n, kd, (const double2 *)from, scale, (double2 *)to);
	return status == FX_OK ? use.done("the separable sums") : status;
}

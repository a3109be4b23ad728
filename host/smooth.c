/* SPDX-License-Identifier: MIT */
/*
 * smooth.c - tensor_smooth on the CPU: what counts is copied with a weight of 1 beside it, axis by axis each line is convolved alone, and
 * at the end what came together is divided by its weight. The same bytes whatever the threads.
 */
#include "host.h"

#include <math.h>
#include <string.h>

#define CHANNELS 7 /* six components times their weight, and the weight */

struct pass {
	const float *in;
	float *out;
	int64_t n, step, lines_before;  /* voxels of a line, floats between them, lines in the memory of one step */
	int64_t radius;
	const double *kernel;           /* of distance 0..radius */
};

static void smooth_line(void *arg, int64_t line)
{
	const struct pass *p = arg;
	int64_t start = (line / p->lines_before) * p->n * p->step + (line % p->lines_before) * CHANNELS;

	for (int64_t i = 0; i < p->n; i++) {
		double sum[CHANNELS] = {0};
		int64_t first = i > p->radius ? i - p->radius : 0, last = i + p->radius < p->n - 1 ? i + p->radius : p->n - 1;

		for (int64_t k = first; k <= last; k++) {
			const float *v = p->in + start + k * p->step;
			double w = p->kernel[k > i ? k - i : i - k];

			for (int c = 0; c < CHANNELS; c++)
				sum[c] += w * (double)v[c];
		}
		for (int c = 0; c < CHANNELS; c++)
			p->out[start + i * p->step + c] = (float)sum[c];
	}
}

/* What is smoothed. */
struct field {
	const float *d;
	const uint8_t *mask, *flags; /* or NULL */
	unsigned skip;
};

static bool counts(const struct field *f, int64_t i)
{
	const float *d = f->d + 6 * i;

	if ((f->mask && !f->mask[i]) || (f->flags && (f->flags[i] & f->skip)))
		return false;
	for (int c = 0; c < 6; c++)
		if (!isfinite(d[c]))
			return false;
	return true;
}

static int one_axis(fx_math *m, const int64_t dims[3], int axis, double sigma, const float *in, float *out)
{
	int64_t radius = (int64_t)ceil(3 * sigma), before = 1;
	double *kernel = fx_alloc(radius + 1, sizeof *kernel);
	struct pass p = {.in = in, .out = out, .n = dims[axis], .radius = radius, .kernel = kernel};

	if (!kernel)
		return fx_math_fail(m, FX_ENOMEM, "no memory to smooth tensors");
	for (int64_t i = 0; i <= radius; i++)
		kernel[i] = exp(-0.5 * (double)(i * i) / (sigma * sigma));
	for (int a = 0; a < axis; a++)
		before *= dims[a];
	p.step = CHANNELS * before;
	p.lines_before = before;
	fx_parallel(m->n_threads, dims[0] * dims[1] * dims[2] / dims[axis], smooth_line, &p);
	fx_free(kernel);
	return FX_OK;
}

int fxi_host_tensor_smooth(fx_math *m, const fx_array *tensors, const fx_array *mask, const fx_array *flags, unsigned skip_flags,
	const double sigma[3], fx_array *out)
{
	const struct field f = {tensors->data, mask ? mask->data : NULL, flags ? flags->data : NULL, skip_flags};
	const int64_t *dims = tensors->dims + 1;
	int64_t voxels = dims[0] * dims[1] * dims[2];
	float *work[2] = {fx_alloc(voxels, CHANNELS * sizeof(float)), fx_alloc(voxels, CHANNELS * sizeof(float))};
	int now = 0, status = work[0] && work[1] ? FX_OK : FX_ENOMEM;

	if (status != FX_OK)
		fx_math_fail(m, status, "no memory to smooth %lld tensors", (long long)voxels);
	for (int64_t i = 0; status == FX_OK && i < voxels; i++)
		if (counts(&f, i)) {
			memcpy(work[0] + CHANNELS * i, f.d + 6 * i, 6 * sizeof(float));
			work[0][CHANNELS * i + 6] = 1;
		}
	for (int a = 0; a < 3 && status == FX_OK; a++)
		if (dims[a] > 1) {
			status = one_axis(m, dims, a, sigma[a], work[now], work[1 - now]);
			now = 1 - now;
		}
	for (int64_t i = 0; status == FX_OK && i < voxels; i++) {
		const float *v = work[now] + CHANNELS * i;
		bool inside = counts(&f, i); /* others stay as they are: the mask does not grow */

		for (int c = 0; c < 6; c++)
			FX_F32_OF(out)[6 * i + c] = inside ? v[c] / v[6] : f.d[6 * i + c];
	}
	fx_free(work[0]);
	fx_free(work[1]);
	return status;
}

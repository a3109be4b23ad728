/* SPDX-License-Identifier: MIT */
/*
 * fft.c - the centred FFT over the first three axes: a pass of 1-D transforms an axis (host/lines.h). The origin at
 * floor(N/2) on both sides is where an element is put into its line, so odd and even lengths cost the same.
 */
#include "host.h"
#include "lines.h"

static void multiply(fx_array *a, double scale)
{
	if (a->type == FX_CF32)
		for (int64_t i = 0; i < a->n; i++)
			FX_CF32_OF(a)[i] *= (float)scale;
	else
		for (int64_t i = 0; i < a->n; i++)
			FX_CF64_OF(a)[i] *= scale;
}

/* `scale` for each element of the last pass's lines, in the array's own precision. */
static int constant_weight(fx_math *m, int type, int64_t n, double scale, void **out)
{
	*out = fx_alloc(n, type == FX_CF32 ? sizeof(float) : sizeof(double));
	if (!*out)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the weights of an axis of %lld", (long long)n);
	for (int64_t i = 0; i < n; i++)
		if (type == FX_CF32)
			((float *)*out)[i] = (float)scale;
		else
			((double *)*out)[i] = scale;
	return FX_OK;
}

int fxi_host_fft(fx_math *m, fx_array *a, int sign, double scale)
{
	int64_t inner = 1;
	int last = -1, status = FX_OK;
	void *weight = NULL;

	if (a->type != FX_CF32 && a->type != FX_CF64)
		return fx_math_fail(m, FX_EINVAL, "a Fourier transform takes cf32 or cf64, not %s", fx_type_name(a->type));
	if (a->n == 0)
		return FX_OK;
	for (int d = 0; d < 3; d++)
		if (a->dims[d] > 1)
			last = d;
	if (last < 0) {
		multiply(a, scale);
		return FX_OK;
	}
	if (scale != 1)
		status = constant_weight(m, a->type, a->dims[last], scale, &weight);
	for (int d = 0; d < 3 && status == FX_OK; d++) {
		int64_t n = a->dims[d], outer = a->n / (inner * n);
		/* Along the contiguous axis all lines are one group; along the others each slab of `inner` lines is one. */
		fxi_line_side side = {.data = a->data, .group = inner * n, .line = 1, .element = inner, .count = n, .centre = n / 2};
		fxi_lines pass = {.type = a->type, .sign = sign, .n = n, .n_lines = inner, .n_groups = outer};

		if (inner == 1) {
			side.line = n;
			side.group = 0;
			pass.n_lines = outer;
			pass.n_groups = 1;
		}
		pass.from = pass.to = side;
		if (d == last)
			pass.to.weight = weight;
		if (n > 1)
			status = fxi_lines_run(m, &pass);
		inner *= n;
	}
	fx_free(weight);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* normal.c - the normal operator of multi-coil data: coil maps around the Toeplitz operator, and the prior's weight. */
#include <fornix/recon.h>

#include <math.h>

static int apply_coils(fx_math *m, const fx_array *kernel, const fx_array *maps, const fx_array *x, fx_array **work,
	fx_array *y)
{
	int status = FX_OK;

	if (*work && !fx_array_same_shape(*work, maps)) {
		fx_array_unref(*work);
		*work = NULL;
	}
	if (!*work)
		status = m->ops->array_new(m, FX_CF32, maps->n_dims, maps->dims, work);
	if (status == FX_OK)
		status = m->ops->coil_expand(m, maps, x, *work);
	if (status == FX_OK)
		status = m->ops->toeplitz_apply(m, kernel, *work, *work);
	if (status == FX_OK)
		status = m->ops->coil_combine(m, maps, *work, y);
	return status;
}

int fx_normal_apply(fx_math *m, const fx_array *kernel, const fx_array *maps, const fx_array *w, double lambda_abs,
	const fx_array *x, fx_array **work, fx_array *y)
{
	int status;

	if (x->data == y->data && x->n > 0)
		return fx_math_fail(m, FX_EINVAL, "the normal operator does not work in place");
	if (m->ops->normal_apply)
		return m->ops->normal_apply(m, &(fx_normal){kernel, maps, w, lambda_abs}, x, y);
	if (maps)
		status = apply_coils(m, kernel, maps, x, work, y);
	else
		status = m->ops->toeplitz_apply(m, kernel, x, y);
	if (status == FX_OK && lambda_abs != 0)
		status = fx_prior_apply(m, w, lambda_abs, x, y);
	return status;
}

int fx_lambda_absolute(fx_math *m, const fx_frame *frame, double *lambda_abs)
{
	double power = 1, im, value;

	*lambda_abs = 0;
	if (!frame->has_prior || frame->lambda == 0)
		return FX_OK;
	if (frame->maps) {
		const int64_t *dims = frame->maps->dims;
		int status = m->ops->dot(m, frame->maps, frame->maps, &power, &im);

		if (status != FX_OK)
			return status;
		power /= (double)dims[0] * (double)dims[1] * (double)dims[2];
	}
	/* every column of F has the squared norm scale^2 sum |phi|^2: that is the trace of F^H F over its size */
	value = frame->lambda * frame->scale * frame->scale * frame->phi2_sum * power;
	if (!isfinite(value) || value < 0)
		return fx_math_fail(m, FX_EDATA,
			"lambda %g becomes %g in the units of F^H F (scale %g, sum |phi|^2 %g, mean coil power %g): it must "
			"be finite and not negative; look for NaN or infinite values in the coil maps",
			frame->lambda, value, frame->scale, frame->phi2_sum, power);
	*lambda_abs = value;
	return FX_OK;
}

int fx_to_single(fx_math *m, fx_array *take, fx_array **out)
{
	fx_array *here = NULL, *single = NULL;
	int status;

	*out = NULL;
	if (take->type == FX_CF32) {
		*out = take;
		return FX_OK;
	}
	status = m->ops->download(m, take, &here);
	fx_array_unref(take);
	if (status == FX_OK && fx_array_convert(here, FX_CF32, &single) != FX_OK)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a copy in single precision");
	fx_array_unref(here);
	if (status == FX_OK)
		status = m->ops->upload(m, single, out);
	fx_array_unref(single);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* frame_solve.c - the normal equations that a frame's arrays stand for, as cg and the predictions solve them. */
#include <fornix/recon.h>

/* What one application of A needs. */
struct normal {
	fx_math *m;
	const fx_frame *frame;
	double lambda_abs;
	fx_array *work;       /* coil images */
	fx_array *difference; /* W^H W x */
};

static int apply(void *arg, const fx_array *x, fx_array *y)
{
	struct normal *n = arg;

	return fx_normal_apply(n->m, n->frame->kernel, n->frame->maps, n->frame->w, n->lambda_abs, x, &n->work, y);
}

static int penalty(void *arg, const fx_array *x, double *value)
{
	struct normal *n = arg;
	const fx_backend *ops = n->m->ops;
	double im;
	int status = FX_OK;

	if (!n->frame->w)
		return ops->dot(n->m, x, x, value, &im);
	if (!n->difference)
		status = ops->array_new(n->m, FX_CF32, 3, x->dims, &n->difference);
	else
		status = ops->scale(n->m, 0, n->difference);
	if (status == FX_OK)
		status = fx_prior_apply(n->m, n->frame->w, 1, x, n->difference);
	return status == FX_OK ? ops->dot(n->m, x, n->difference, value, &im) : status;
}

int fx_frame_right_side(fx_math *m, const fx_frame *f, fx_array **b)
{
	int status = m->ops->array_new(m, FX_CF32, 3, f->grid, b);

	if (status != FX_OK)
		return status;
	if (f->maps)
		return m->ops->coil_combine(m, f->maps, f->fhd, *b);
	return m->ops->axpy(m, 1, f->fhd, *b);
}

int fx_frame_solve(fx_math *m, const fx_frame *f, double lambda_abs, double data_norm2, const fx_array *b,
	const fx_cg_options *options, fx_array *x, fx_cg_report *report)
{
	struct normal n = {.m = m, .frame = f, .lambda_abs = lambda_abs};
	const fx_normal normal = {f->kernel, f->maps, f->w, lambda_abs};
	fx_cg_options with_penalty = *options;
	int status;

	*report = (fx_cg_report){0};
	if (!f->kernel)
		return fx_math_fail(m, FX_EINVAL, "frame %lld has no normal operator; put <toeplitz/> in front", (long long)f->id);
	if (f->n_coils > 1 && !f->maps)
		return fx_math_fail(m, FX_EINVAL, "frame %lld has %lld coils and no maps; put <coil_maps/> in front",
			(long long)f->id, (long long)f->n_coils);
	with_penalty.penalty = penalty;
	with_penalty.normal = &normal;
	status = fx_cg_solve(m, apply, &n, b, lambda_abs, data_norm2, &with_penalty, x, report);
	fx_array_unref(n.work);
	fx_array_unref(n.difference);
	return status;
}

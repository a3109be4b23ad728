/* SPDX-License-Identifier: MIT */
/*
 * metric.c - the metric of a tensor field: checks what was asked, hands the arithmetic to the backend, and says in the result's
 * origin what was done to how many voxels.
 */
#include "tensor.h"

#include <math.h>
#include <stdio.h>

static const char *const kinds[] = {"inverse", "adjugate", "sharpened"};

static int check_spec(fx_math *m, const fx_metric_spec *s)
{
	if (s->kind < FX_METRIC_INVERSE || s->kind > FX_METRIC_SHARPENED)
		return fx_math_fail(m, FX_EINVAL, "there is no metric kind %d", s->kind);
	if (!(s->floor > 0) || !isfinite(s->floor))
		return fx_math_fail(m, FX_EINVAL, "an eigenvalue floor of %g um^2/ms leaves tensors without an inverse; 0.05 is usual",
			s->floor);
	if (s->kind == FX_METRIC_SHARPENED && (!(s->power > 0) || s->power > 16))
		return fx_math_fail(m, FX_EINVAL, "tensors can be sharpened by a power above 0 and up to 16, not %g", s->power);
	if (!(s->smooth_mm >= 0) || s->smooth_mm > 1000)
		return fx_math_fail(m, FX_EINVAL, "tensors can be smoothed by a sigma of 0 (not) to 1000 mm, not %g", s->smooth_mm);
	if (s->csf == FX_CSF_MASK && !(s->csf_md > 0))
		return fx_math_fail(m, FX_EINVAL, "to mask fluid above an MD of %g um^2/ms masks everything; 2 is usual", s->csf_md);
	return FX_OK;
}

static int plan_of(fx_math *m, const fx_lattice *l, const fx_metric_spec *s, fx_metric_plan *plan)
{
	double inverse[3][4]; /* asked for to see that there is one: a flat lattice has no metric */
	int status = fx_lattice_inverse(l, inverse, m->err);

	*plan = (fx_metric_plan){.kind = s->kind, .power = s->power, .floor = s->floor,
		.csf_md = s->csf == FX_CSF_MASK ? s->csf_md : INFINITY, .count_md = s->csf_md,
		.skip_flags = (unsigned)FX_TENSOR_OUTSIDE | (unsigned)FX_TENSOR_UNFITTED};
	for (int i = 0; i < 3 && status == FX_OK; i++)
		for (int k = 0; k < 3; k++)
			plan->to_mm[i][k] = l->affine[i][k];
	return status;
}

static int new_arrays(fx_math *m, const int64_t n[3], fx_metric_arrays *a)
{
	const int64_t field[4] = {24, n[0], n[1], n[2]}, d[4] = {6, n[0], n[1], n[2]};
	int status = m->ops->array_new(m, FX_F32, 4, field, &a->field);

	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 4, d, &a->d);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 3, n, &a->fa);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 3, n, &a->md);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_U8, 3, n, &a->mask);
	return status;
}

static void tell(const fx_tensors *t, const fx_metric_spec *s, const fx_metric_counts *c, char text[FX_ORIGIN_TEXT])
{
	char power[32] = "", smooth[32] = "";

	if (s->kind == FX_METRIC_SHARPENED)
		snprintf(power, sizeof power, ", power %g", s->power);
	if (s->smooth_mm > 0)
		snprintf(smooth, sizeof smooth, ", smoothed by %g mm", s->smooth_mm);
	/* What was done stands in front: where the text is too long, the tensors' own origin is what is cut. */
	snprintf(text, FX_ORIGIN_TEXT, "metric %s%s%s, floor %g: %lld voxels, %lld floored, %lld unusable, %lld fluid; %.*s",
		kinds[s->kind], power, smooth, s->floor, (long long)c->n_inside, (long long)c->n_floored, (long long)c->n_bad,
		(long long)c->n_csf, FX_ORIGIN_TEXT / 3, t->origin);
}

int fx_metric_build(fx_math *m, const fx_tensors *t, const fx_metric_spec *spec, fx_msg **out)
{
	fx_metric_plan plan;
	fx_metric_counts counts;
	fx_metric_arrays a = {0};
	fx_metric *metric;
	fx_array *d = fx_array_ref(t->d);
	int status = check_spec(m, spec);

	*out = NULL;
	if (status == FX_OK)
		status = fxi_tensors_check(m, t);
	if (status == FX_OK)
		status = plan_of(m, &t->lattice, spec, &plan);
	if (status == FX_OK)
		status = new_arrays(m, t->d->dims + 1, &a);
	if (status == FX_OK && spec->smooth_mm > 0) {
		fx_array_unref(d);
		d = NULL;
		status = fx_tensors_smooth(m, t, spec->smooth_mm, &d);
	}
	if (status == FX_OK)
		status = m->ops->metric_build(m, &plan, d, t->mask, t->flags, &a, &counts);
	fx_array_unref(d);
	if (status == FX_OK && counts.n_inside == 0)
		status = fx_math_fail(m, FX_EDATA, "no voxel is left for a metric: %lld are unusable (not finite, or no positive "
			"eigenvalue), %lld are fluid, the others outside the mask", (long long)counts.n_bad, (long long)counts.n_csf);
	if (status == FX_OK && !(*out = fx_msg_new(FX_METRIC)))
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a metric");
	if (status != FX_OK) {
		fx_array *const all[] = {a.field, a.d, a.fa, a.md, a.mask};

		for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
			fx_array_unref(all[i]);
		return status;
	}
	metric = fx_msg_metric(*out);
	metric->lattice = t->lattice;
	metric->kind = spec->kind;
	metric->power = spec->kind == FX_METRIC_SHARPENED ? spec->power : 1;
	metric->field = a.field;
	metric->d = a.d;
	metric->fa = a.fa;
	metric->md = a.md;
	metric->mask = a.mask;
	metric->n_voxels = counts.n_inside;
	metric->n_above = counts.n_above;
	metric->caveats = t->caveats;
	tell(t, spec, &counts, metric->origin);
	return FX_OK;
}

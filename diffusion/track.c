/* SPDX-License-Identifier: MIT */
/* track.c - the tracker: checks what was asked, takes seeds to voxel indices, and makes a tract message of what the backend gives. */
#include "diffusion/track_bits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const integrators[] = {"euler", "rk2", "rk4", "frozen"};
static const char *const metrics[] = {"inverse", "adjugate", "sharpened"};

struct fx_tracker {
	fx_math *m;
	const fx_metric *metric;
	fx_track_spec spec;
	fx_track_plan plan;
	double inverse[3][4];
	fx_metric_arrays arrays; /* where the backend works */
	void *prepared;
	fx_track_keep keep;      /* bits NULL: everything is kept */
	int64_t n_missed;
};

static int check_spec(fx_math *m, const fx_track_spec *s)
{
	if (s->method != FX_TRACK_GEODESIC && s->method != FX_TRACK_STREAMLINE)
		return fx_math_fail(m, FX_EINVAL, "there is no tracking method %d", s->method);
	if (s->integrator < FX_INTEGRATOR_EULER || s->integrator > FX_INTEGRATOR_FROZEN)
		return fx_math_fail(m, FX_EINVAL, "there is no integrator %d", s->integrator);
	if (s->method == FX_TRACK_STREAMLINE && s->integrator == FX_INTEGRATOR_FROZEN)
		return fx_math_fail(m, FX_EINVAL, "the frozen integrator is for geodesics: a streamline has no Christoffel symbols to freeze; "
			"take euler, rk2 or rk4");
	if (s->form < 0 || s->form >= FX_N_TRACK_FORMS)
		return fx_math_fail(m, FX_EINVAL, "there is no form %d of a field", s->form);
	if (!(s->step > 0) || !isfinite(s->step))
		return fx_math_fail(m, FX_EINVAL, "a step of %g cannot be taken; it must be above 0", s->step);
	if (s->max_steps < 1)
		return fx_math_fail(m, FX_EINVAL, "at most %lld steps give no fibre; take 1 at least", (long long)s->max_steps);
	if (!(s->max_length_mm >= 0) || !(s->min_length_mm >= 0) || (s->max_length_mm > 0 && s->max_length_mm < s->min_length_mm))
		return fx_math_fail(m, FX_EINVAL, "no fibre is at least %g and at most %g mm long", s->min_length_mm, s->max_length_mm);
	if (!(s->stop_angle >= 0 && s->stop_angle <= 180))
		return fx_math_fail(m, FX_EINVAL, "an angle between directions is 0 to 180 degrees, not %g", s->stop_angle);
	return FX_OK;
}

static bool is_volume(const fx_array *a, int type, int64_t parts, const fx_lattice *l)
{
	int first = parts > 1;

	if (!a || a->type != type || a->n_dims != 3 + first || (first && a->dims[0] != parts))
		return false;
	for (int i = 0; i < 3; i++)
		if (a->dims[i + first] != l->dims[i])
			return false;
	return true;
}

static int check_metric(fx_math *m, const fx_metric *metric, const fx_track_spec *s)
{
	const fx_lattice *l = &metric->lattice;

	if (l->dims[0] < 1 || l->dims[1] < 1 || l->dims[2] < 1)
		return fx_math_fail(m, FX_EDATA, "a metric of %lld x %lld x %lld voxels has nothing to track in", (long long)l->dims[0],
			(long long)l->dims[1], (long long)l->dims[2]);
	if (!is_volume(metric->field, FX_F32, 24, l) || !is_volume(metric->d, FX_F32, 6, l) ||
		(metric->mask && !is_volume(metric->mask, FX_U8, 1, l)) || (s->stop_fa > 0 && !is_volume(metric->fa, FX_F32, 1, l)) ||
		(s->stop_md > 0 && !is_volume(metric->md, FX_F32, 1, l)))
		return fx_math_fail(m, FX_EINVAL, "the arrays of a metric of %lld x %lld x %lld voxels do not fit it", (long long)l->dims[0],
			(long long)l->dims[1], (long long)l->dims[2]);
	return FX_OK;
}

static int make_plan(fx_tracker *t)
{
	const fx_track_spec *s = &t->spec;
	const fx_lattice *l = &t->metric->lattice;
	double mm[3], voxel;
	int status = fx_lattice_inverse(l, t->inverse, t->m->err);

	if (status != FX_OK)
		return status;
	fx_lattice_voxel_mm(l, mm);
	voxel = fmin(mm[0], fmin(mm[1], mm[2]));
	t->plan = (fx_track_plan){.method = s->method, .integrator = s->integrator, .form = s->form,
		.step = s->step_in_voxels ? s->step * voxel : s->step, .voxel = voxel, .max_steps = s->max_steps,
		.max_length = s->max_length_mm, .min_length = s->min_length_mm, .both_ways = s->both_ways,
		.stop_mask = s->stop_mask, .stop_fa = s->stop_fa, .stop_angle = s->stop_angle, .stop_md = s->stop_md};
	memcpy(t->plan.affine, l->affine, sizeof t->plan.affine);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			t->plan.to_mm[i][k] = l->affine[i][k];
			t->plan.to_index[i][k] = t->inverse[i][k];
		}
	return FX_OK;
}

/* What the steps read, where the backend works; what they do not read stays where it is. */
static int place_metric(fx_tracker *t)
{
	const fx_track_spec *s = &t->spec;
	const fx_metric *g = t->metric;
	const struct {
		fx_array *from, **to;
	} all[] = {
		{g->field, &t->arrays.field}, {g->d, &t->arrays.d}, {g->mask, &t->arrays.mask},
		{s->stop_fa > 0 ? g->fa : NULL, &t->arrays.fa}, {s->stop_md > 0 ? g->md : NULL, &t->arrays.md},
	};
	int status = FX_OK;

	for (size_t i = 0; i < sizeof all / sizeof all[0] && status == FX_OK; i++)
		if (all[i].from)
			status = t->m->ops->upload(t->m, all[i].from, all[i].to);
	return status == FX_OK ? t->m->ops->track_prepare(t->m, &t->plan, &t->arrays, &t->prepared) : status;
}

int fx_tracker_new(fx_math *m, const fx_metric *metric, const fx_track_spec *spec, fx_tracker **out)
{
	int status = check_spec(m, spec);
	fx_tracker *t;

	*out = NULL;
	if (status == FX_OK)
		status = fx_math_need(m, m->ops->track_prepare && m->ops->track_batch, "fibre tracking");
	if (status == FX_OK)
		status = check_metric(m, metric, spec);
	if (status != FX_OK)
		return status;
	t = fx_alloc(1, sizeof *t);
	if (!t)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a tracker");
	t->m = m;
	t->metric = metric;
	t->spec = *spec;
	status = make_plan(t);
	if (status == FX_OK)
		status = place_metric(t);
	if (status != FX_OK) {
		fx_tracker_free(t);
		return status;
	}
	*out = t;
	return FX_OK;
}

void fx_tracker_free(fx_tracker *t)
{
	if (!t)
		return;
	if (t->prepared)
		t->m->ops->track_release(t->m, t->prepared);
	fx_array_unref(t->arrays.field);
	fx_array_unref(t->arrays.d);
	fx_array_unref(t->arrays.fa);
	fx_array_unref(t->arrays.md);
	fx_array_unref(t->arrays.mask);
	fx_array_unref((fx_array *)(uintptr_t)t->keep.bits);
	fx_free(t);
}

int fx_tracker_keep(fx_tracker *t, const fx_regions *sources, const fx_regions *targets, int require)
{
	fx_array *bits = NULL, *there = NULL;
	int status = fxi_track_bits(t->m, &t->metric->lattice, sources, targets, require, &bits, &t->keep.any, &t->keep.all);

	if (status == FX_OK)
		status = t->m->ops->upload(t->m, bits, &there);
	fx_array_unref(bits);
	fx_array_unref((fx_array *)(uintptr_t)t->keep.bits);
	t->keep.bits = there;
	return status;
}

int64_t fx_tracker_missed(const fx_tracker *t)
{
	return t->n_missed;
}

/* Seeds in voxel indices, directions in voxels (new, where the backend works). */
static int starts_of(fx_tracker *t, const fx_array *seeds, fx_array **out)
{
	fx_array *host = NULL;
	int status = fx_array_new2(FX_F64, 6, seeds->dims[1], &host);
	const double *from = seeds->data;
	double *to;

	if (status != FX_OK)
		return fx_math_fail(t->m, status, "no memory for %lld seeds", (long long)seeds->dims[1]);
	to = host->data;
	for (int64_t i = 0; i < seeds->dims[1]; i++, from += 6, to += 6) {
		double direction[3] = {from[3], from[4], from[5]};

		fx_affine_apply((const double (*)[4])t->inverse, from, to);
		for (int k = 0; k < 3; k++)
			to[3 + k] = t->inverse[k][0] * direction[0] + t->inverse[k][1] * direction[1] + t->inverse[k][2] * direction[2];
	}
	status = t->m->ops->upload(t->m, host, out);
	fx_array_unref(host);
	return status;
}

static void drop(fx_track_arrays *a)
{
	fx_array_unref(a->offsets);
	fx_array_unref(a->points);
	fx_array_unref(a->riemann);
	fx_array_unref(a->values);
	fx_array_unref(a->seeds);
}

/* Each array on the host: *a is replaced. */
static int download(fx_math *m, fx_array **a)
{
	fx_array *host = NULL;
	int status = *a ? m->ops->download(m, *a, &host) : FX_OK;

	if (*a && status == FX_OK)
		fx_slot_take(a, host);
	return status;
}

static int message_of(fx_tracker *t, fx_tracts_info *info, fx_track_arrays *a, int64_t first_seed, fx_msg **out)
{
	fx_array **all[] = {&a->offsets, &a->points, &a->riemann, &a->values, &a->seeds};
	int status = FX_OK;
	fx_tracts *tracts;
	uint32_t *seeds;

	for (size_t i = 0; i < sizeof all / sizeof all[0] && status == FX_OK; i++)
		status = download(t->m, all[i]);
	if (status == FX_OK)
		status = fx_array_own(&a->seeds);
	if (status == FX_OK && !(*out = fx_msg_new(FX_TRACTS)))
		status = FX_ENOMEM;
	if (status != FX_OK)
		return fx_math_fail(t->m, status, "no memory for a batch of fibres");
	seeds = a->seeds->data;
	for (int64_t i = 0; i < a->seeds->n; i++)
		seeds[i] += (uint32_t)first_seed;
	tracts = fx_msg_tracts(*out);
	tracts->info = fx_tracts_info_ref(info);
	tracts->n = a->seeds->n;
	tracts->offsets = a->offsets;
	tracts->points = a->points;
	tracts->riemann = a->riemann;
	tracts->values = a->values;
	tracts->seeds = a->seeds;
	*a = (fx_track_arrays){0};
	return FX_OK;
}

int fx_tracker_run(fx_tracker *t, fx_tracts_info *info, const fx_array *seeds, int64_t first_seed, fx_msg **out, int64_t *n_outside)
{
	fx_array *starts = NULL;
	fx_track_counts counts = {0};
	fx_track_arrays a = {0};
	int status;

	*out = NULL;
	*n_outside = 0;
	if (seeds->type != FX_F64 || seeds->n_dims != 2 || seeds->dims[0] != 6)
		return fx_math_fail(t->m, FX_EINVAL, "seeds are f64 {6, n}, not %s in %d dimensions of which the first is %lld",
			fx_type_name(seeds->type), seeds->n_dims, (long long)seeds->dims[0]);
	if (first_seed < 0 || first_seed > (int64_t)UINT32_MAX - seeds->dims[1])
		return fx_math_fail(t->m, FX_ENOTSUP, "seeds are numbered up to 4294967295, and these start at %lld", (long long)first_seed);
	status = starts_of(t, seeds, &starts);
	if (status == FX_OK)
		status = t->m->ops->track_batch(t->m, &t->plan, &t->arrays, t->prepared, t->keep.bits ? &t->keep : NULL, starts, &a, &counts);
	*n_outside = counts.n_outside;
	t->n_missed += counts.n_missed;
	fx_array_unref(starts);
	if (status == FX_OK)
		status = message_of(t, info, &a, first_seed, out);
	drop(&a);
	return status;
}

int fx_tracker_info(const fx_tracker *t, fx_tracts_info *info)
{
	static const char names[FX_N_VALUES][FX_TRACT_NAME] = {"length_mm", "riemann", "measure", "drift", "stop_start", "stop_end",
		"seed_point"};
	const fx_metric *metric = t->metric;
	char kind[64] = "";

	info->lattice = metric->lattice;
	info->method = t->spec.method;
	info->metric_kind = metric->kind;
	info->power = metric->power;
	info->step_mm = t->plan.step;
	info->n_values = FX_N_VALUES;
	memcpy(info->names, names, sizeof names);
	info->caveats = metric->caveats;
	if (t->spec.method == FX_TRACK_GEODESIC)
		snprintf(kind, sizeof kind, "%s metric (power %g), ", metrics[metric->kind], metric->power);
	snprintf(info->origin, sizeof info->origin, "%s, %s%s%s, steps of %g mm; %.*s",
		t->spec.method == FX_TRACK_GEODESIC ? "geodesics" : "streamlines", kind, integrators[t->spec.integrator],
		t->spec.integrator == FX_INTEGRATOR_FROZEN ? " (symbols of the step's start)" : "",
		t->plan.step, 60, metric->origin);
	return FX_OK;
}

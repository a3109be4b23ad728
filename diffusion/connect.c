/* SPDX-License-Identifier: MIT */
/* connect.c - connections between regions from a stream of fibres: what is looked at, checked and counted. */
#include "diffusion/connect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PAIRS (INT64_C(1) << 26)

int fx_connect_new(fx_math *m, const fx_connect_spec *spec, const fx_regions *sources, const fx_regions *targets,
	const fx_regions *exclude, fx_connect **out)
{
	fx_connect *c = fx_alloc(1, sizeof *c);
	int64_t n;

	*out = NULL;
	if (!c)
		return fx_error_set(m->err, FX_ENOMEM, "no memory for the connections");
	c->m = m;
	c->spec = *spec;
	c->sources = sources;
	c->targets = targets;
	c->exclude = exclude;
	c->same_regions = !sources || strcmp(sources->name, targets->name) == 0;
	c->n_sources = sources ? sources->n : targets->n;
	if (!fx_mul_size(c->n_sources + 1, targets->n, &n) || n > MOST_PAIRS) {
		fx_connect_free(c);
		return fx_error_set(m->err, FX_EINVAL, "%lld source and %lld target regions make too many pairs; list fewer labels",
			(long long)c->n_sources, (long long)targets->n);
	}
	c->pair_at = fx_alloc(n, sizeof *c->pair_at);
	if (!c->pair_at) {
		fx_connect_free(c);
		return fx_error_set(m->err, FX_ENOMEM, "no memory for %lld pairs of regions", (long long)n);
	}
	*out = c;
	return FX_OK;
}

void fx_connect_free(fx_connect *c)
{
	if (!c)
		return;
	for (int64_t i = 0; i < c->n_pairs; i++)
		fxi_pair_free(c->pairs[i]);
	fx_free(c->pairs);
	fx_free(c->pair_at);
	for (int i = 0; i < 3; i++)
		fxi_visits_free(&c->visits[i]);
	fx_drop(c->metric);
	fx_tracts_info_unref(c->info);
	fx_tracts_info_unref(c->out_info);
	fx_free(c);
}

int fx_connect_metric(fx_connect *c, fx_msg *metric)
{
	const fx_metric *g = fx_msg_metric(metric);

	if (!g || !g->field || g->field->type != FX_F32 || g->field->place != FX_HOST || g->field->dims[0] != 24
		|| g->field->dims[1] != g->lattice.dims[0] || g->field->dims[2] != g->lattice.dims[1]
		|| g->field->dims[3] != g->lattice.dims[2])
		return fx_error_set(c->m->err, FX_EDATA, "a metric without its field {24, x, y, z}");
	fx_drop(c->metric);
	c->metric = fx_msg_ref(metric);
	return FX_OK;
}

/* Measures of different metrics have different units: one ranking never holds both. */
static int same_metric(fx_connect *c, int kind, double power)
{
	if (c->info->metric_kind == kind && (kind != FX_METRIC_SHARPENED || c->info->power == power))
		return FX_OK;
	return fx_error_set(c->m->err, FX_EDATA, "fibres come of another metric (%s) than those before (%s): measures of "
		"different metrics are not comparable and are never ranked together; make a run of each", fxi_metric_name(kind),
		fxi_metric_name(c->info->metric_kind));
}

static int first_info(fx_connect *c, fx_tracts_info *info)
{
	const fx_regions *images[] = {c->sources, c->targets, c->exclude};
	double mm[3];

	c->seed_value = -1;
	for (int i = 0; i < info->n_values && i < FX_TRACT_VALUES; i++)
		if (strcmp(info->names[i], "seed_point") == 0)
			c->seed_value = i;
	if (info->n_values < 0 || info->n_values + FXI_CONNECT_VALUES - (c->seed_value >= 0) > FX_TRACT_VALUES)
		return fx_error_set(c->m->err, FX_EDATA, "fibres with %d values each leave no room for the %d of a connection (the most is "
			"%d)", info->n_values, FXI_CONNECT_VALUES, FX_TRACT_VALUES);
	for (int i = 0; i < 3 && !c->spec.resample; i++)
		if (images[i] && fx_regions_same_space(images[i], &info->lattice, c->m->err) != FX_OK)
			return FX_EDATA;
	fx_lattice_voxel_mm(&info->lattice, mm);
	c->cluster_mm = c->spec.cluster_mm > 0 ? c->spec.cluster_mm : 2 * fmin(mm[0], fmin(mm[1], mm[2]));
	if (!(c->cluster_mm > 0))
		return fx_error_set(c->m->err, FX_EDATA, "the fibres' image has no voxel size; set cluster_mm");
	if (c->metric && info->method == FX_TRACK_GEODESIC && (fx_msg_metric(c->metric)->kind != info->metric_kind
		|| !fx_lattice_same(&fx_msg_metric(c->metric)->lattice, &info->lattice, 1e-3)))
		return fx_error_set(c->m->err, FX_EDATA, "the fibres were not tracked in the metric that came before them: their Jacobi "
			"determinants would be of another field; set jacobi=false");
	c->info = fx_tracts_info_ref(info);
	return FX_OK;
}

int fxi_connect_check_info(fx_connect *c, fx_tracts_info *info)
{
	int status = c->info ? FX_OK : first_info(c, info);

	if (status != FX_OK || c->info == info)
		return status;
	if (info->method != c->info->method)
		return fx_error_set(c->m->err, FX_EDATA, "geodesics and streamlines come mixed: they are ranked by different things");
	if (info->n_values != c->info->n_values || memcmp(info->names, c->info->names, sizeof info->names) != 0)
		return fx_error_set(c->m->err, FX_EDATA, "fibres come with other values than those before");
	return info->method == FX_TRACK_GEODESIC ? same_metric(c, info->metric_kind, info->power) : FX_OK;
}

void fx_connect_count(const fx_connect *c, fx_connect_counts *out)
{
	*out = c->counts;
}

int64_t fxi_connect_source_label(const struct fx_connect *c, int32_t source)
{
	return source == 0 ? 0 : c->sources ? c->sources->labels[source - 1] : c->targets->labels[source - 1];
}

int64_t fxi_connect_target_label(const struct fx_connect *c, int32_t target)
{
	return c->targets->labels[target - 1];
}

const char *fxi_metric_name(int kind)
{
	static const char *const names[] = {[FX_METRIC_INVERSE] = "inverse", [FX_METRIC_ADJUGATE] = "adjugate",
		[FX_METRIC_SHARPENED] = "sharpened"};

	return kind >= 0 && kind <= FX_METRIC_SHARPENED ? names[kind] : "unknown";
}

/* g = D^-1 has lengths of mm / sqrt(um^2/ms), so m is in sqrt(um^2/ms); (D^p)^-1 likewise; adj D is of D squared. */
void fx_measure_unit(int metric_kind, double power, char *text, size_t size)
{
	if (metric_kind == FX_METRIC_ADJUGATE)
		snprintf(text, size, "ms/um^2");
	else if (metric_kind == FX_METRIC_SHARPENED && power != 1)
		snprintf(text, size, "(um^2/ms)^%g", power / 2);
	else
		snprintf(text, size, "sqrt(um^2/ms)");
}

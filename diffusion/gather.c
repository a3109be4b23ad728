/* SPDX-License-Identifier: MIT */
/*
 * gather.c - a diffusion series out of images that come in any order. Each image is kept (its data shared) until its
 * volume is whole; the lattice and the table are those of the first whole volume, and every other one must fit them.
 */
#include "gather.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* s/mm^2: up to it motion between shots turns no phase worth the name. */
#define B0_MOST 50.0

struct fx_gather {
	fx_math *m;
	fx_gather_spec spec;
	fx_gather_report report;
	int dimension;             /* NONE: to be found at the end */
	bool hold;                 /* nothing leaves before the end */
	bool three_d;
	int64_t n_slices;          /* expected; 0: unknown */
	int64_t n;                 /* rows of the table */
	int64_t n_images;
	fxi_gathered_list kept;
	int64_t *here;             /* images of each volume that are kept */
	bool *sent;
	fx_series_info *info;      /* once the lattice is known */
	fxi_slices slices;
	int64_t *index;            /* volume's number in what leaves; -1: dropped */
	int type;                  /* FX_F32 or FX_CF32; 0 before the first image */
	int image_type;
	unsigned caveats;
};

/* ---- the table -------------------------------------------------------------------------------- */

static int read_gradients(fx_gather *g, fx_gradient *out, const fx_lattice *lattice)
{
	const fx_gather_spec *s = &g->spec;

	if (s->grad)
		return fx_gradients_from_mrtrix(s->grad, g->n, out, g->m->err);
	if (s->bvals)
		return fx_gradients_from_fsl(s->bvals, s->bvecs, lattice, g->n, out, &g->report.n_scaled, g->m->err);
	return fx_gradients_from_header(s->scan, out, &g->report.n_scaled, g->m->err);
}

/* b of a row, before the lattice is known. */
static double b_of(const fx_gather *g, int64_t volume)
{
	const fx_gather_spec *s = &g->spec;

	return s->grad ? FX_F64_OF(s->grad)[4 * volume + 3] : s->bvals ? FX_F64_OF(s->bvals)[volume] :
		s->scan->diffusion[volume].b;
}

/* ---- life ------------------------------------------------------------------------------------- */

static int64_t rows_of(const fx_gather_spec *s)
{
	return s->grad ? s->grad->dims[1] : s->bvals ? s->bvals->n : s->scan->n_diffusion;
}

/* What is wrong with a table is told before the scan starts; where it lies in space comes later. */
static int check_table(fx_gather *g)
{
	fx_lattice unit = {.affine = {{1}, {0, 1}, {0, 0, 1}}};
	fx_gradient *all = fx_alloc(g->n, sizeof *all);
	int status = all ? read_gradients(g, all, &unit) : fx_math_fail(g->m, FX_ENOMEM, "no memory for a gradient table");

	fx_free(all);
	return status;
}

int fx_gather_new(fx_math *m, const fx_gather_spec *spec, fx_gather **out)
{
	const fx_header *scan = spec->scan;
	int64_t n = rows_of(spec);
	const fx_limit *slices = scan->n_encodings > 0 ? &scan->encodings[0].limits[FX_SLICE] : NULL;
	fx_gather *g;
	int status;

	*out = NULL;
	if (n < 1)
		return fx_math_fail(m, FX_EINVAL, "there is no gradient table: the scan header has no sequenceParameters/diffusion; "
			"give bval= and bvec= (FSL's files), or grad= (MRtrix's)");
	g = fx_alloc(1, sizeof *g);
	if (g) {
		g->here = fx_alloc(n, sizeof *g->here);
		g->sent = fx_alloc(n, sizeof *g->sent);
		g->index = fx_alloc(n, sizeof *g->index);
	}
	if (!g || !g->here || !g->sent || !g->index) {
		fx_gather_free(g);
		return fx_math_fail(m, FX_ENOMEM, "no memory for a series of %lld volumes", (long long)n);
	}
	g->m = m;
	g->spec = *spec;
	g->n = n;
	for (int64_t v = 0; v < n; v++)
		g->index[v] = v;
	g->dimension = spec->counter != FX_DIFFUSION_NONE ? spec->counter : scan->diffusion_dimension;
	if (g->dimension != FX_DIFFUSION_NONE)
		snprintf(g->report.counter, sizeof g->report.counter, "%s, %s", fx_diffusion_dimension_name(g->dimension),
			spec->counter != FX_DIFFUSION_NONE ? "as set" : "as the scan header says");
	/* A count of 1 is what converters write that know nothing better. */
	g->n_slices = slices && slices->present && slices->max > slices->min ? slices->max - slices->min + 1 : 0;
	g->hold = g->dimension == FX_DIFFUSION_NONE || spec->average || spec->drop_missing;
	status = check_table(g);
	if (status != FX_OK) {
		fx_gather_free(g);
		return status;
	}
	*out = g;
	return FX_OK;
}

void fx_gather_free(fx_gather *g)
{
	if (!g)
		return;
	fxi_gathered_clear(&g->kept);
	fx_series_info_unref(g->info);
	fx_free(g->slices.along);
	fx_free(g->here);
	fx_free(g->sent);
	fx_free(g->index);
	fx_free(g);
}

const fx_gather_report *fx_gather_report_of(const fx_gather *g)
{
	return &g->report;
}

/* Lattice, table and origin of what leaves: the volumes whose `index` is not -1. */
static int make_info(fx_gather *g, int64_t volume)
{
	fx_gradient *all = fx_alloc(g->n, sizeof *all);
	fx_lattice lattice;
	int64_t n = 0;
	int status = all ? fxi_gather_lattice(&g->kept, volume, &g->slices, &lattice, g->m->err) : FX_ENOMEM;

	if (status == FX_OK)
		status = read_gradients(g, all, &lattice);
	for (int64_t v = 0; v < g->n; v++)
		n += g->index[v] >= 0;
	if (status == FX_OK && !(g->info = fx_series_info_new(n)))
		status = FX_ENOMEM;
	if (status != FX_OK) {
		fx_free(all);
		return fx_math_fail(g->m, status, "no memory for a table of %lld gradients", (long long)g->n);
	}
	g->info->lattice = lattice;
	g->info->caveats = g->caveats;
	for (int64_t v = 0; v < g->n; v++)
		if (g->index[v] >= 0)
			g->info->gradients[g->index[v]] = all[v];
	snprintf(g->info->origin, sizeof g->info->origin, "%.120s, by %s", g->spec.table ? g->spec.table : "MRD header",
		fx_diffusion_dimension_name(g->dimension));
	g->report.n_slices = lattice.dims[2];
	fx_free(all);
	return FX_OK;
}

/* ---- one image -------------------------------------------------------------------------------- */

/* Diffusion gradients turn motion into phase, another one in every shot (Anderson and Gore, Magn. Reson. Med. 32:379, 1994). */
static int judge_shots(fx_gather *g, const fxi_gathered *e)
{
	double b = b_of(g, e->volume);

	if (!(b > B0_MOST))
		return FX_OK;
	if (e->shots == 0) {
		g->report.n_unjudged++;
		return FX_OK;
	}
	g->report.most_shots = e->shots > g->report.most_shots ? e->shots : g->report.most_shots;
	if (e->shots == 1)
		return FX_OK;
	g->caveats |= FX_CAVEAT_SHOT_PHASE;
	if (g->spec.allow_shots)
		return FX_OK;
	return fx_math_fail(g->m, FX_EDATA, "volume %lld (b = %g) was made from %lld shots, and nothing refers their phases to one "
		"another: the diffusion gradients turn motion into phase, so that shots cancel. Use single-shot EPI or spiral data, or "
		"data whose shot phases are corrected; shot_phase=allow goes on and marks the products", (long long)e->volume + 1, b,
		(long long)e->shots);
}

/* By the counter that is known: the volume of an entry. */
static int find_volume(fx_gather *g, fxi_gathered *e)
{
	int64_t value = e->counters[g->dimension];
	const char *name = fx_diffusion_dimension_name(g->dimension);

	if (value < 0)
		return fx_math_fail(g->m, FX_EDATA, "image %u does not tell its %s, by which the series is to be gathered: MRD's image "
			"header has none; set counter= to one that it has", e->head.image_index, name);
	if (value >= g->n)
		return fx_math_fail(g->m, FX_EDATA, "image %u is of %s %lld, but the gradient table has %lld rows, for 0 to %lld: is it "
			"the table of this scan?", e->head.image_index, name, (long long)value, (long long)g->n, (long long)g->n - 1);
	e->volume = value;
	if (g->sent[value])
		return fx_math_fail(g->m, FX_EDATA, "image %u (slice %u, %s %lld) comes after its volume was whole; set averages=mean "
			"if slices come several times", e->head.image_index, e->head.slice, name, (long long)value);
	g->here[value]++;
	return FX_OK;
}

static int check_kind(fx_gather *g, const fx_image *image)
{
	int type = image->data->type >= FX_CF32 ? FX_CF32 : FX_F32;

	if (g->type == 0) {
		g->type = type;
		g->image_type = image->head.image_type;
		g->three_d = image->data->dims[2] > 1;
		if (g->three_d)
			g->n_slices = 1; /* each image is a volume */
		g->hold = g->hold || g->n_slices == 0;
	}
	if (type != g->type || image->head.image_type != g->image_type || (image->data->dims[2] > 1) != g->three_d)
		return fx_math_fail(g->m, FX_EDATA, "image %u is of another kind than the first one (%s, MRD image type %u, %lld "
			"slices): a series is all complex or all magnitude, all slices or all volumes", image->head.image_index,
			type == FX_CF32 ? "complex" : "real", image->head.image_type, (long long)image->data->dims[2]);
	return FX_OK;
}

/* ---- volumes ---------------------------------------------------------------------------------- */

/* Adds one image to its place: as it is, or its magnitude to a mean of `count`. */
static int add_slice(fx_gather *g, const fxi_gathered *e, bool magnitude, int64_t count, fx_array *volume)
{
	fx_array *plane = NULL;
	int64_t at;
	int status = fx_array_convert(e->data, e->data->type >= FX_CF32 ? FX_CF32 : FX_F32, &plane);

	if (status != FX_OK)
		return fx_math_fail(g->m, status, "no memory for a slice");
	at = g->three_d ? 0 : e->slice * plane->n;
	if (volume->type == FX_CF32)
		memcpy(FX_CF32_OF(volume) + at, plane->data, (size_t)plane->bytes);
	else if (!magnitude)
		memcpy(FX_F32_OF(volume) + at, plane->data, (size_t)plane->bytes);
	else
		for (int64_t i = 0; i < plane->n; i++)
			FX_F32_OF(volume)[at + i] += (plane->type == FX_CF32 ? cabsf(FX_CF32_OF(plane)[i]) :
				fabsf(FX_F32_OF(plane)[i])) / (float)count;
	fx_array_unref(plane);
	return FX_OK;
}

/* How many images each slice of a volume has, into counts; FX_EDATA for several where that is not allowed. */
static int count_slices(fx_gather *g, int64_t volume, int64_t *counts)
{
	memset(counts, 0, (size_t)g->slices.n * sizeof *counts);
	for (int64_t i = 0; i < g->kept.n; i++) {
		fxi_gathered *e = &g->kept.list[i];
		int status;

		if (e->volume != volume)
			continue;
		status = fxi_gather_slice(&g->slices, &g->info->lattice, e, g->m->err);
		if (status != FX_OK)
			return status;
		if (++counts[e->slice] > 1 && !g->spec.average)
			return fx_math_fail(g->m, FX_EDATA, "volume %lld (%s) has slice %u more than once; set averages=mean for the mean "
				"of their magnitudes, or counter= to another counter if these are other volumes", (long long)volume + 1,
				fx_diffusion_dimension_name(g->dimension), e->head.slice);
	}
	return FX_OK;
}

static int emit_volume(fx_gather *g, int64_t volume, int64_t *counts, bool magnitude, fx_msg_list *ready)
{
	fx_msg *msg = fx_msg_new(FX_SERIES);
	fx_series *s = fx_msg_series(msg);
	int status = count_slices(g, volume, counts);

	if (!msg)
		return fx_math_fail(g->m, FX_ENOMEM, "no memory for a volume");
	if (status == FX_OK && fx_array_new(magnitude ? FX_F32 : g->type, 3, g->info->lattice.dims, &s->data) != FX_OK)
		status = fx_math_fail(g->m, FX_ENOMEM, "no memory for a volume of %lld x %lld x %lld voxels",
			(long long)g->info->lattice.dims[0], (long long)g->info->lattice.dims[1], (long long)g->info->lattice.dims[2]);
	for (int64_t i = 0; i < g->kept.n && status == FX_OK; i++) {
		const fxi_gathered *e = &g->kept.list[i];

		if (e->volume == volume)
			status = add_slice(g, e, magnitude, counts[e->slice], s->data);
	}
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	s->info = fx_series_info_ref(g->info);
	s->volume = g->index[volume];
	fxi_gathered_drop(&g->kept, volume);
	g->sent[volume] = true;
	g->report.n_volumes++;
	return fx_msg_list_push(ready, msg);
}

/* Before the lattice is known: two images of a volume in one place, which would look like a gap elsewhere. */
static int refuse_doubles(fx_gather *g, int64_t volume)
{
	for (int64_t i = 0; i < g->kept.n; i++)
		for (int64_t j = 0; j < i; j++) {
			const fxi_gathered *a = &g->kept.list[i], *b = &g->kept.list[j];

			if (a->volume != volume || b->volume != volume || a->placed != b->placed ||
			    !(fabs(a->along - b->along) <= FXI_SAME_MM) || a->head.slice != b->head.slice)
				continue;
			return fx_math_fail(g->m, FX_EDATA, "volume %lld (%s) has slice %u more than once; set averages=mean for the mean "
				"of their magnitudes, or counter= to another counter if these are other volumes", (long long)volume + 1,
				fx_diffusion_dimension_name(g->dimension), a->head.slice);
		}
	return FX_OK;
}

/* A volume that has as many images as the series has slices: makes the lattice, if it is the first one, and leaves. */
static int whole(fx_gather *g, int64_t volume, fx_msg_list *ready)
{
	int64_t *counts;
	int status = g->info ? FX_OK : refuse_doubles(g, volume);

	if (status == FX_OK && !g->info)
		status = make_info(g, volume);
	if (status == FX_OK && g->slices.n != g->n_slices)
		return fx_math_fail(g->m, FX_EDATA, "volume %lld has %lld images at %lld places, where the scan header counts %lld slices; "
			"set averages=mean if slices come several times", (long long)volume + 1, (long long)g->here[volume],
			(long long)g->slices.n, (long long)g->n_slices);
	if (status != FX_OK)
		return status;
	counts = fx_alloc(g->slices.n, sizeof *counts);
	if (!counts)
		return fx_math_fail(g->m, FX_ENOMEM, "no memory for a volume");
	status = emit_volume(g, volume, counts, false, ready);
	fx_free(counts);
	return status;
}

int fx_gather_add(fx_gather *g, const fx_image *image, fx_msg_list *ready)
{
	fxi_gathered *e;
	int status = fxi_gathered_add(&g->kept, image, g->spec.scan, g->m->err);

	if (status == FX_OK)
		status = check_kind(g, image);
	if (status != FX_OK)
		return status;
	g->n_images++;
	g->report.held_most = g->kept.n > g->report.held_most ? g->kept.n : g->report.held_most;
	e = &g->kept.list[g->kept.n - 1];
	if (e->partial)
		g->caveats |= FX_CAVEAT_PARTIAL;
	if (g->dimension == FX_DIFFUSION_NONE)
		return FX_OK;
	status = find_volume(g, e);
	if (status == FX_OK)
		status = judge_shots(g, e);
	if (status == FX_OK && !g->hold && g->here[e->volume] == g->n_slices)
		status = whole(g, e->volume, ready);
	return status;
}

/* ---- the end ---------------------------------------------------------------------------------- */

static int end_mark(fx_gather *g, fx_msg_list *ready)
{
	fx_msg *msg = fx_msg_new(FX_SERIES);
	fx_series *s = fx_msg_series(msg);

	if (!msg)
		return fx_math_fail(g->m, FX_ENOMEM, "no memory for a series' end");
	s->info = fx_series_info_ref(g->info);
	s->end = true;
	s->caveats = g->caveats;
	return fx_msg_list_push(ready, msg);
}

/* Volumes that lack slices, as a list for people; returns how many there are. */
static int64_t list_missing(fx_gather *g, char *text, size_t size)
{
	int64_t n = 0;
	size_t used = 0;

	text[0] = '\0';
	for (int64_t v = 0; v < g->n; v++) {
		if (g->index[v] >= 0)
			continue;
		if (n++ < 12)
			used += (size_t)snprintf(text + used, size - used, "%s%lld", n > 1 ? ", " : "", (long long)v + 1);
	}
	if (n > 12)
		snprintf(text + used, size - used, " and %lld more", (long long)n - 12);
	return n;
}

/* What has to be known before the held volumes can leave: counter, slices, and which volumes are whole. */
static int settle(fx_gather *g, bool cut)
{
	fxi_slices slices = {0};
	fx_lattice lattice;
	char missing[256];
	int64_t *counts = NULL, n = 0;
	int status = FX_OK;

	if (g->dimension == FX_DIFFUSION_NONE) {
		status = fxi_gather_find_counter(&g->kept, g->n, &g->dimension, g->report.counter, sizeof g->report.counter, g->m->err);
		for (int64_t i = 0; i < g->kept.n && status == FX_OK; i++)
			status = judge_shots(g, &g->kept.list[i]);
	}
	if (status == FX_OK)
		status = fxi_gather_lattice(&g->kept, -1, &slices, &lattice, g->m->err);
	if (status == FX_OK && !(counts = fx_alloc(slices.n * g->n, sizeof *counts)))
		status = fx_math_fail(g->m, FX_ENOMEM, "no memory to count slices");
	for (int64_t i = 0; i < g->kept.n && status == FX_OK; i++) {
		fxi_gathered *e = &g->kept.list[i];

		status = fxi_gather_slice(&slices, &lattice, e, g->m->err);
		if (status == FX_OK && counts[e->volume * slices.n + e->slice]++ > 0)
			g->report.n_averaged++;
	}
	/* What broke off before any volume had its last slice has all places of a smaller stack. */
	if (status == FX_OK && cut && g->n_slices > slices.n)
		status = fx_math_fail(g->m, FX_EDATA, "the input broke off: there are %lld slices of the %lld that the scan header counts",
			(long long)slices.n, (long long)g->n_slices);
	for (int64_t v = 0; v < g->n && status == FX_OK; v++) {
		int64_t have = 0;

		for (int64_t z = 0; z < slices.n; z++)
			have += counts[v * slices.n + z] > 0;
		g->index[v] = have == slices.n ? n++ : -1;
	}
	fx_free(slices.along);
	fx_free(counts);
	if (status != FX_OK)
		return status;
	g->report.n_dropped = list_missing(g, missing, sizeof missing);
	if (g->report.n_dropped == 0)
		return FX_OK;
	g->caveats |= FX_CAVEAT_PARTIAL;
	if (n == 0 || !g->spec.drop_missing)
		return fx_math_fail(g->m, FX_EDATA, "%s%lld of %lld volumes are missing or lack slices: %s%s",
			cut ? "the input broke off; " : "", (long long)g->report.n_dropped, (long long)g->n, missing,
			n == 0 ? "" : "; set missing=drop to go on without them");
	return FX_OK;
}

int fx_gather_end(fx_gather *g, bool cut, fx_msg_list *ready)
{
	char missing[256];
	int64_t *counts;
	bool magnitude;
	int status = FX_OK;

	if (g->n_images == 0)
		return FX_OK;
	if (g->info) { /* volumes have left already: the rest cannot be whole */
		for (int64_t v = 0; v < g->n; v++)
			g->index[v] = g->sent[v] ? v : -1;
		g->report.n_dropped = list_missing(g, missing, sizeof missing);
		if (g->report.n_dropped > 0)
			return fx_math_fail(g->m, FX_EDATA, "%s%lld of %lld volumes are missing or lack slices: %s; set missing=drop to go on "
				"without them", cut ? "the input broke off; " : "", (long long)g->report.n_dropped, (long long)g->n, missing);
		return end_mark(g, ready);
	}
	status = settle(g, cut);
	if (status == FX_OK)
		status = make_info(g, -1);
	if (status != FX_OK)
		return status;
	counts = fx_alloc(g->slices.n, sizeof *counts);
	if (!counts)
		return fx_math_fail(g->m, FX_ENOMEM, "no memory for a volume");
	magnitude = g->report.n_averaged > 0;
	for (int64_t v = 0; v < g->n && status == FX_OK; v++) {
		if (g->index[v] >= 0)
			status = emit_volume(g, v, counts, magnitude, ready);
		if (status == FX_OK)
			status = fx_math_check(g->m);
	}
	fx_free(counts);
	return status == FX_OK ? end_mark(g, ready) : status;
}

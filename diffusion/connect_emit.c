/* SPDX-License-Identifier: MIT */
/* connect_emit.c - the end of the stream: pairs in order, and their fibres as batches of a new tract set. */
#include "diffusion/connect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_FIBRES 1024
#define BATCH_POINTS (INT64_C(1) << 20)

static int compare_pairs(const void *a, const void *b)
{
	const struct fxi_pair *x = *(struct fxi_pair *const *)a, *y = *(struct fxi_pair *const *)b;

	return x->source != y->source ? (x->source > y->source) - (x->source < y->source)
		: (x->target > y->target) - (x->target < y->target);
}

static void count_pair(fx_connect *c, const struct fxi_pair *p)
{
	c->counts.n_kept += p->n_kept;
	c->counts.n_families += p->n_families;
	for (int64_t i = 0; i < p->n_families; i++)
		c->counts.n_degenerate += p->families[i].degenerate;
	for (int64_t i = 0; i < p->n_kept; i++)
		c->counts.n_undetermined += p->kept[i]->asked && isnan(p->kept[i]->jacobi);
}

/* The new set's info: values but "seed_point", which a cut fibre no longer has, then our own. */
static int make_info(fx_connect *c)
{
	static const char *const own[FXI_CONNECT_VALUES] = {"rank", "source", "target", "family", "jacobi"};
	fx_tracts_info *info = fx_tracts_info_new();
	const char *what = c->info->method == FX_TRACK_GEODESIC ? "measure" : "length";

	if (!info)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for the tract set's description");
	info->lattice = c->info->lattice;
	info->method = c->info->method;
	info->metric_kind = c->info->metric_kind;
	info->power = c->info->power;
	info->step_mm = c->info->step_mm;
	info->caveats = c->caveats;
	for (int i = 0; i < c->info->n_values; i++)
		if (i != c->seed_value)
			memcpy(info->names[info->n_values++], c->info->names[i], sizeof info->names[0]);
	for (int i = 0; i < FXI_CONNECT_VALUES; i++)
		snprintf(info->names[info->n_values++], sizeof info->names[0], "%s", own[i]);
	snprintf(info->origin, sizeof info->origin, "connect, ranked by %s; %.*s", what,
		(int)(sizeof info->origin - 40), c->info->origin);
	c->out_info = info;
	return FX_OK;
}

int fx_connect_finish(fx_connect *c, unsigned caveats)
{
	int status = FX_OK;

	if (c->finished)
		return FX_OK;
	c->finished = true;
	c->caveats |= caveats;
	if (c->n_pairs > 0)
		qsort(c->pairs, (size_t)c->n_pairs, sizeof c->pairs[0], compare_pairs);
	for (int64_t i = 0; i < c->n_pairs && status == FX_OK; i++) {
		status = fx_math_check(c->m);
		if (status == FX_OK)
			status = fxi_pair_finish(c, c->pairs[i]);
		if (status == FX_OK)
			count_pair(c, c->pairs[i]);
	}
	c->counts.n_pairs = c->n_pairs;
	return status == FX_OK && c->info ? make_info(c) : status;
}

/* What the value `name` of the cut fibre is, given the whole fibre's. */
static double value_of(const struct fxi_connection *k, const char *name, float whole)
{
	if (strcmp(name, "length_mm") == 0)
		return k->length_mm;
	if (strcmp(name, "riemann") == 0)
		return k->riemann;
	if (strcmp(name, "measure") == 0)
		return k->measure;
	if (strcmp(name, "stop_start") == 0 || strcmp(name, "stop_end") == 0)
		return FX_TRACK_STOP_TARGET;
	return (double)whole;
}

static void fill_values(const fx_connect *c, const struct fxi_pair *p, int64_t rank, float *out)
{
	const struct fxi_connection *k = p->kept[rank];
	int n = 0;

	for (int i = 0; i < c->info->n_values; i++)
		if (i != c->seed_value)
			out[n++] = (float)value_of(k, c->info->names[i], k->values[i]);
	out[n++] = (float)(rank + 1);
	out[n++] = (float)fxi_connect_source_label(c, p->source);
	out[n++] = (float)fxi_connect_target_label(c, p->target);
	out[n++] = (float)(k->family + 1);
	out[n] = (float)k->jacobi;
}

struct extent {
	int64_t n, n_points, pair, kept; /* fibres and points of the batch; where the next one begins */
};

static struct extent batch_extent(const fx_connect *c)
{
	struct extent e = {.pair = c->next_pair, .kept = c->next_kept};

	while (e.pair < c->n_pairs && e.n < BATCH_FIBRES && e.n_points < BATCH_POINTS) {
		if (e.kept >= c->pairs[e.pair]->n_kept) {
			e.pair++;
			e.kept = 0;
			continue;
		}
		e.n_points += c->pairs[e.pair]->kept[e.kept++]->n_points;
		e.n++;
	}
	return e;
}

static int batch_arrays(const fx_connect *c, const struct extent *e, fx_tracts *t)
{
	int status = fx_array_new1(FX_U32, e->n + 1, &t->offsets);

	if (status == FX_OK)
		status = fx_array_new2(FX_F32, 3, e->n_points, &t->points);
	if (status == FX_OK && c->info->method == FX_TRACK_GEODESIC)
		status = fx_array_new1(FX_F32, e->n_points, &t->riemann);
	if (status == FX_OK)
		status = fx_array_new2(FX_F32, c->out_info->n_values, e->n, &t->values);
	if (status == FX_OK)
		status = fx_array_new1(FX_U32, e->n, &t->seeds);
	if (status != FX_OK)
		fx_error_set(c->m->err, status, "no memory for %lld fibres of %lld points", (long long)e->n, (long long)e->n_points);
	return status;
}

static void fill_batch(fx_connect *c, fx_tracts *t)
{
	uint32_t *offsets = t->offsets->data;

	for (int64_t i = 0; i < t->n; i++) {
		const struct fxi_connection *k;

		while (c->next_kept >= c->pairs[c->next_pair]->n_kept) {
			c->next_pair++;
			c->next_kept = 0;
		}
		k = c->pairs[c->next_pair]->kept[c->next_kept];
		memcpy(FX_F32_OF(t->points) + 3 * (int64_t)offsets[i], k->points, (size_t)k->n_points * 3 * sizeof(float));
		if (t->riemann && k->lengths)
			memcpy(FX_F32_OF(t->riemann) + offsets[i], k->lengths, (size_t)k->n_points * sizeof(float));
		fill_values(c, c->pairs[c->next_pair], c->next_kept, FX_F32_OF(t->values) + i * c->out_info->n_values);
		((uint32_t *)t->seeds->data)[i] = (uint32_t)k->seed;
		offsets[i + 1] = offsets[i] + (uint32_t)k->n_points;
		c->next_kept++;
	}
}

int fx_connect_next(fx_connect *c, fx_msg **out)
{
	struct extent e = batch_extent(c);
	fx_tracts *t;
	int status = FX_OK;

	*out = NULL;
	if (c->ended || !c->out_info)
		return FX_OK;
	*out = fx_msg_new(FX_TRACTS);
	if (!*out)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for a batch of fibres");
	t = fx_msg_tracts(*out);
	t->info = fx_tracts_info_ref(c->out_info);
	t->first = c->n_sent;
	t->n = e.n;
	t->end = c->ended = e.n == 0;
	if (e.n > 0)
		status = batch_arrays(c, &e, t);
	if (status != FX_OK) {
		fx_drop(*out);
		*out = NULL;
		return status;
	}
	if (e.n > 0)
		fill_batch(c, t);
	c->n_sent += e.n;
	return FX_OK;
}

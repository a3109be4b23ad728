/* SPDX-License-Identifier: MIT */
/* connect_add.c - each fibre of a batch: which regions it visits, which pairs it joins, what is kept of it. */
#include "diffusion/connect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASK_EVERY 256 /* fibres between questions whether the run goes on */

static bool holds(const fx_array *a, int type, int64_t n)
{
	return a && a->type == type && a->place == FX_HOST && a->n == n;
}

static int check_batch(fx_connect *c, const fx_tracts *t)
{
	const uint32_t *offsets;
	bool sound;

	if (!t->info || !holds(t->offsets, FX_U32, t->n + 1) || !t->points || t->points->type != FX_F32
		|| t->points->place != FX_HOST || (t->info->n_values > 0 && !holds(t->values, FX_F32, t->n * t->info->n_values))
		|| (t->seeds && !holds(t->seeds, FX_U32, t->n)) || (t->riemann && !holds(t->riemann, FX_F32, t->points->n / 3)))
		return fx_error_set(c->m->err, FX_EDATA, "a batch of %lld fibres whose arrays do not fit it", (long long)t->n);
	offsets = t->offsets->data;
	sound = offsets[0] == 0 && (int64_t)offsets[t->n] * 3 <= t->points->n;
	for (int64_t i = 0; i < t->n; i++)
		sound = sound && offsets[i] <= offsets[i + 1];
	if (!sound)
		return fx_error_set(c->m->err, FX_EDATA, "a batch of %lld fibres whose offsets do not fit its points", (long long)t->n);
	return FX_OK;
}

static int pair_of(fx_connect *c, int32_t source, int32_t target, struct fxi_pair **out)
{
	int32_t *at = &c->pair_at[(int64_t)source * c->targets->n + target - 1];

	if (*at == 0 && c->n_pairs == c->pairs_capacity) {
		int64_t more = c->pairs_capacity > 0 ? 2 * c->pairs_capacity : 64;
		struct fxi_pair **list = fx_alloc(more, sizeof *list);

		if (!list)
			return fx_error_set(c->m->err, FX_ENOMEM, "no memory for %lld pairs of regions", (long long)more);
		if (c->n_pairs > 0)
			memcpy(list, c->pairs, (size_t)c->n_pairs * sizeof *list);
		fx_free(c->pairs);
		c->pairs = list;
		c->pairs_capacity = more;
	}
	if (*at == 0) {
		c->pairs[c->n_pairs] = fxi_pair_new(source, target);
		if (!c->pairs[c->n_pairs])
			return fx_error_set(c->m->err, FX_ENOMEM, "no memory for a pair of regions");
		*at = (int32_t)++c->n_pairs;
	}
	*out = c->pairs[*at - 1];
	return FX_OK;
}

/* What one fibre joins: of each pair its best connection. */
struct found {
	int64_t n, capacity;
	struct one {
		int32_t source, target;
		struct fxi_connection *best;
	} *list;
};

struct looking {
	fx_connect *c;
	const struct fxi_fibre *fibre;
	struct found found;
};

static int grow(fx_connect *c, struct found *f)
{
	int64_t more = f->capacity > 0 ? 2 * f->capacity : 8;
	struct one *list = fx_alloc(more, sizeof *list);

	if (!list)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for the connections of a fibre");
	if (f->n > 0)
		memcpy(list, f->list, (size_t)f->n * sizeof *list);
	fx_free(f->list);
	f->list = list;
	f->capacity = more;
	return FX_OK;
}

static int take_span(void *arg, const struct fxi_span *span)
{
	struct looking *l = arg;
	struct fxi_connection *k;
	int status = fxi_connection_cut(l->c, l->fibre, span, &k);

	if (status != FX_OK || !k)
		return status;
	for (int64_t i = 0; i < l->found.n; i++) {
		struct one *o = &l->found.list[i];

		if (o->source == span->source && o->target == span->target) {
			bool better = fxi_connection_before(k, o->best);

			fxi_connection_free(better ? o->best : k);
			if (better)
				o->best = k;
			return FX_OK;
		}
	}
	if (l->found.n == l->found.capacity && grow(l->c, &l->found) != FX_OK) {
		fxi_connection_free(k);
		return FX_ENOMEM;
	}
	l->found.list[l->found.n++] = (struct one){span->source, span->target, k};
	return FX_OK;
}

/* Gives what was found to its pairs. */
static int hand_out(struct looking *l)
{
	int status = FX_OK;

	for (int64_t i = 0; i < l->found.n; i++) {
		struct one *o = &l->found.list[i];
		struct fxi_pair *pair = NULL;

		if (status == FX_OK)
			status = pair_of(l->c, o->source, o->target, &pair);
		if (status == FX_OK)
			status = fxi_pair_add(l->c, pair, o->best);
		else
			fxi_connection_free(o->best);
	}
	return status;
}

static bool all_finite(const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i] * 0; /* NaN where one is not finite, else 0 */
	return sum == 0;
}

static int look_at(struct looking *l)
{
	fx_connect *c = l->c;
	const struct fxi_fibre *f = l->fibre;
	const fx_regions *images[] = {c->sources, c->targets, c->exclude};
	double seed = c->seed_value >= 0 ? (double)f->values[c->seed_value] : 0;
	int status = FX_OK, result = FXI_SPANS_NONE;

	if (!all_finite(f->points, 3 * f->n) || (f->riemann && !all_finite(f->riemann, f->n))) {
		c->counts.n_unusable++;
		return FX_OK;
	}
	if (!(seed >= 0 && seed <= (double)(f->n - 1)))
		seed = 0;
	for (int i = 0; i < 3 && status == FX_OK; i++) {
		c->visits[i].n = 0;
		if (images[i] && (i < 2 || c->visits[1].n > 0))
			status = fxi_regions_visits(images[i], f->points, f->n, &c->visits[i], c->m->err);
	}
	l->found.n = 0;
	if (status == FX_OK)
		status = fxi_connect_spans(c, seed, take_span, l, &result);
	if (status == FX_OK)
		status = hand_out(l);
	else
		for (int64_t i = 0; i < l->found.n; i++)
			fxi_connection_free(l->found.list[i].best);
	c->counts.n_connected += l->found.n > 0;
	c->counts.n_unusable += result == FXI_SPANS_SOME && l->found.n == 0;
	c->counts.n_excluded += result == FXI_SPANS_EXCLUDED;
	c->counts.n_incomplete += result == FXI_SPANS_INCOMPLETE;
	return status;
}

int fx_connect_add(fx_connect *c, const fx_tracts *t)
{
	struct looking l = {.c = c};
	int status;

	if (c->finished)
		return fx_error_set(c->m->err, FX_EINVAL, "fibres came after the connections were finished");
	if (t->info)
		c->caveats |= t->info->caveats;
	if (t->end || t->n == 0)
		return t->info ? fxi_connect_check_info(c, t->info) : FX_OK;
	status = check_batch(c, t);
	if (status == FX_OK)
		status = fxi_connect_check_info(c, t->info);
	for (int64_t i = 0; i < t->n && status == FX_OK; i++) {
		const uint32_t *offsets = t->offsets->data;
		struct fxi_fibre f = {
			.points = FX_F32_OF(t->points) + 3 * (int64_t)offsets[i], .n = (int64_t)offsets[i + 1] - offsets[i],
			.riemann = t->riemann ? FX_F32_OF(t->riemann) + offsets[i] : NULL, .n_values = t->info->n_values,
			.values = t->info->n_values > 0 ? FX_F32_OF(t->values) + i * t->info->n_values : NULL,
			.number = c->counts.n_fibres,
		};

		f.seed = t->seeds ? (int64_t)((const uint32_t *)t->seeds->data)[i] : f.number;
		l.fibre = &f;
		if (i % ASK_EVERY == 0)
			status = fx_math_check(c->m);
		if (status == FX_OK && f.n > 0)
			status = look_at(&l);
		c->counts.n_fibres++;
	}
	fx_free(l.found.list);
	return status;
}

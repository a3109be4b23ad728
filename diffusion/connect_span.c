/* SPDX-License-Identifier: MIT */
/* connect_span.c - where connections lie along a fibre, from the regions that it visits. */
#include "diffusion/connect.h"

#include <string.h>

/*
 * The rule: a connection is the gap between a visit to a source and a visit to a target, either before or behind it, with
 * nothing else of interest in the gap. Without a source image the seed is the source, so this is the walk from the seed
 * outwards, cut where it first enters a target.
 */

/* True where the visit reaches into the open gap. */
static bool within(const struct fxi_visit *v, double from, double to)
{
	return v->from < to && v->to > from;
}

static bool blocked(const struct fxi_visits *v, double from, double to, int32_t region /* 0: any */)
{
	for (int64_t i = 0; i < v->n; i++)
		if ((region == 0 || v->list[i].region == region) && within(&v->list[i], from, to))
			return true;
	return false;
}

/* Without source regions: those visits to targets that are of the seed's own region become sources, or the seed itself does. */
static int sources_of_seed(struct fx_connect *c, double seed)
{
	struct fxi_visits *from = &c->visits[0];
	const struct fxi_visits *all = &c->visits[1];
	int32_t home = 0;
	int status = FX_OK;

	for (int64_t i = 0; i < all->n; i++)
		if (all->list[i].from <= seed && seed <= all->list[i].to)
			home = all->list[i].region;
	from->n = 0;
	if (home == 0)
		return fxi_visits_push(from, seed, seed, 0, c->m->err);
	for (int64_t i = 0; i < all->n && status == FX_OK; i++)
		if (all->list[i].region == home)
			status = fxi_visits_push(from, all->list[i].from, all->list[i].to, home, c->m->err);
	return status;
}

/* True where every target has a visit. */
static bool meets_all(const struct fx_connect *c)
{
	const struct fxi_visits *v = &c->visits[1];

	for (int32_t region = 1; region <= c->targets->n; region++) {
		bool met = false;

		for (int64_t i = 0; i < v->n && !met; i++)
			met = v->list[i].region == region;
		if (!met)
			return false;
	}
	return true;
}

/* Labels are compared, since different ones may be listed of an image. */
static bool is_itself(const struct fx_connect *c, int32_t source, int32_t target)
{
	return source > 0 && fxi_connect_source_label(c, source) == fxi_connect_target_label(c, target);
}

/* The gap between two visits, whichever comes first. False where they overlap or touch. */
static bool gap(const struct fxi_visit *source, const struct fxi_visit *target, struct fxi_span *out)
{
	*out = (struct fxi_span){.source = source->region, .target = target->region};
	if (source->to < target->from) {
		out->from = source->to;
		out->to = target->from;
		return true;
	}
	out->from = target->to;
	out->to = source->from;
	out->reversed = true;
	return out->from < out->to;
}

int fxi_connect_spans(struct fx_connect *c, double seed, fxi_span_fn take, void *arg, int *result)
{
	bool all = c->spec.require == FX_REQUIRE_ALL;
	int status = FX_OK;

	*result = FXI_SPANS_NONE;
	if (c->visits[1].n == 0)
		return FX_OK;
	if (all && !meets_all(c)) {
		*result = FXI_SPANS_INCOMPLETE;
		return FX_OK;
	}
	if (!c->sources)
		status = sources_of_seed(c, seed);
	for (int64_t i = 0; i < c->visits[0].n && status == FX_OK; i++)
		for (int64_t j = 0; j < c->visits[1].n && status == FX_OK; j++) {
			const struct fxi_visit *s = &c->visits[0].list[i], *t = &c->visits[1].list[j];
			struct fxi_span span;

			if ((c->same_regions && is_itself(c, s->region, t->region)) || !gap(s, t, &span)
				|| blocked(&c->visits[0], span.from, span.to, all ? s->region : 0)
				|| blocked(&c->visits[1], span.from, span.to, all ? t->region : 0))
				continue;
			if (blocked(&c->visits[2], span.from, span.to, 0)) {
				if (*result == FXI_SPANS_NONE)
					*result = FXI_SPANS_EXCLUDED;
				continue;
			}
			*result = FXI_SPANS_SOME;
			status = take(arg, &span);
		}
	return status;
}

/* SPDX-License-Identifier: MIT */
/* connections.h - a set of fibres through fx_connect, and what comes out of it. */
#ifndef FORNIX_TESTS_CONNECTIONS_H
#define FORNIX_TESTS_CONNECTIONS_H

#include "fibres.h"

#include "diffusion/connect.h"

#include <glib.h>

typedef struct result {
	int status;
	fx_error err;
	fx_math *m;
	fx_connect *c;
	fx_connect_counts n;
	fx_msg *out[8];      /* batches, then the end mark */
	int n_out;
	GString *json, *csv;
} result;

typedef struct question {
	fx_connect_spec spec;
	const fx_regions *sources, *targets, *exclude;
	fx_msg *metric;      /* borrowed */
	int64_t batch;       /* fibres a batch; 0: all in one */
} question;

static inline int keep_text(void *arg, const char *text)
{
	g_string_append(arg, text);
	return FX_OK;
}

static inline void take_out(result *r)
{
	fx_msg *msg;

	while ((r->status = fx_connect_next(r->c, &msg)) == FX_OK && msg && r->n_out < 8)
		r->out[r->n_out++] = msg;
	CU_ASSERT_PTR_NULL(msg);
	r->json = g_string_new(NULL);
	r->csv = g_string_new(NULL);
	CU_ASSERT_EQUAL(fx_connect_json(r->c, keep_text, r->json), FX_OK);
	CU_ASSERT_EQUAL(fx_connect_csv(r->c, keep_text, r->csv), FX_OK);
	fx_connect_count(r->c, &r->n);
}

/** Unset fields of the spec get the gadget's defaults. Release with result_free. */
static inline void connect_fibres(result *r, const question *q, const fibres *f)
{
	fx_connect_spec spec = q->spec;
	int64_t step = q->batch > 0 ? q->batch : f->n > 0 ? f->n : 1;

	memset(r, 0, sizeof *r);
	spec.best = spec.best > 0 ? spec.best : 10;
	spec.families = spec.families > 0 ? spec.families : 10;
	spec.degenerate = spec.degenerate > 0 ? spec.degenerate : 0.05;
	r->m = math_of(1);
	r->status = fx_connect_new(r->m, &spec, q->sources, q->targets, q->exclude, &r->c);
	if (r->status == FX_OK && q->metric)
		r->status = fx_connect_metric(r->c, q->metric);
	for (int64_t i = 0; i < f->n && r->status == FX_OK; i += step) {
		fx_msg *batch = fibres_batch(f, i, i + step < f->n ? step : f->n - i);

		r->status = fx_connect_add(r->c, fx_msg_tracts(batch));
		fx_drop(batch);
	}
	if (r->status == FX_OK) {
		fx_msg *end = fibres_end(f);

		r->status = fx_connect_add(r->c, fx_msg_tracts(end));
		fx_drop(end);
	}
	if (r->status == FX_OK)
		r->status = fx_connect_finish(r->c, 0);
	if (r->status == FX_OK)
		take_out(r);
	r->err = *r->m->err;
}

static inline void result_free(result *r)
{
	for (int i = 0; i < r->n_out; i++)
		fx_drop(r->out[i]);
	if (r->json)
		g_string_free(r->json, TRUE);
	if (r->csv)
		g_string_free(r->csv, TRUE);
	fx_connect_free(r->c);
	fx_math_free(r->m);
}

/** Value of kept fibre i (of the first batch) by name; NaN where there is none. */
static inline double value(const result *r, int64_t i, const char *name)
{
	const fx_tracts *t = r->n_out > 0 ? fx_msg_tracts(r->out[0]) : NULL;

	if (!t || i >= t->n)
		return NAN;
	for (int v = 0; v < t->info->n_values; v++)
		if (strcmp(t->info->names[v], name) == 0)
			return (double)FX_F32_OF(t->values)[i * t->info->n_values + v];
	return NAN;
}

static inline int64_t seed_of(const result *r, int64_t i)
{
	const fx_tracts *t = r->n_out > 0 ? fx_msg_tracts(r->out[0]) : NULL;

	return t && i < t->n ? (int64_t)((const uint32_t *)t->seeds->data)[i] : -1;
}

/** First or last point of kept fibre i. */
static inline const float *end_of(const result *r, int64_t i, bool last)
{
	const fx_tracts *t = fx_msg_tracts(r->out[0]);
	const uint32_t *offsets = t->offsets->data;

	return FX_F32_OF(t->points) + 3 * (int64_t)(last ? offsets[i + 1] - 1 : offsets[i]);
}

/** The pair of these labels, or NULL. */
static inline const struct fxi_pair *pair_of(const result *r, int64_t source, int64_t target)
{
	for (int64_t i = 0; i < r->c->n_pairs; i++)
		if (fxi_connect_source_label(r->c, r->c->pairs[i]->source) == source
			&& fxi_connect_target_label(r->c, r->c->pairs[i]->target) == target)
			return r->c->pairs[i];
	return NULL;
}

#endif

/* SPDX-License-Identifier: MIT */
/*
 * track.c - track_batch: each thread keeps its lanes full of fibres from one common row of seeds. Which lane tracks a seed changes
 * nothing, since lanes do not mix; fibres are put in the order of their seeds at the end.
 */
#include "track.h"

#include <math.h>
#include <string.h>

#include "host.h"

#define CHECK_EVERY 64 /* steps of all lanes between two questions whether to stop */
#define COPY_BLOCK 64  /* seeds that one thread copies at a time */

struct worker {
	fxi_track_lanes state;
	fxi_lane lanes[FXI_TRACK_LANES];
};

static void give_up(fxi_track_job *j, int status)
{
	int none = FX_OK;

	atomic_compare_exchange_strong(&j->status, &none, status);
}

static void look(const fxi_track_job *j, fxi_track_lanes *s)
{
	if (j->plan->method == FX_TRACK_STREAMLINE)
		FXI_PICK(fxi_track_look_along)(&j->field, s);
	else
		FXI_PICK(fxi_track_look)(&j->field, s);
}

static void advance(const fxi_track_job *j, fxi_track_lanes *s)
{
	if (j->plan->method == FX_TRACK_STREAMLINE)
		FXI_PICK(fxi_track_advance_along)(&j->field, s);
	else
		FXI_PICK(fxi_track_advance)(&j->field, s);
}

/* One look, one step of all lanes; the number of lanes that are still on a fibre, or -1 where memory ran out. */
static int round_of(fxi_track_job *j, struct worker *w)
{
	fxi_track_lanes *s = &w->state;
	int n_active = 0;

	look(j, s);
	for (int l = 0; l < j->n_lanes; l++)
		if (w->lanes[l].active && !fxi_lane_accept(j, &w->lanes[l], s, l))
			return -1;
	advance(j, s);
	for (int l = 0; l < j->n_lanes; l++) {
		fxi_lane *lane = &w->lanes[l];

		/* A lane whose half ended before the step made it too; that does not count. */
		if (lane->active && !lane->set_out && !s->inside[l]) {
			bool lost = isnan(s->x[0][l]) || isnan(s->x[1][l]) || isnan(s->x[2][l]);

			if (!fxi_lane_end(j, lane, lost ? FX_TRACK_STOP_UNDEFINED : FX_TRACK_STOP_VOLUME))
				return -1;
		}
		if (lane->active && lane->set_out)
			fxi_lane_set_out(lane, s, l);
		if (!lane->active)
			fxi_lane_load(j, lane, s, l);
		n_active += lane->active;
	}
	return n_active;
}

static void work(void *arg, int64_t i)
{
	fxi_track_job *j = arg;
	struct worker *w = fx_alloc(1, sizeof *w);
	int n_active = 1;

	(void)i;
	if (!w) {
		give_up(j, FX_ENOMEM);
		return;
	}
	for (int l = 0; l < j->n_lanes; l++)
		fxi_lane_load(j, &w->lanes[l], &w->state, l);
	for (int64_t n = 1; n_active > 0 && atomic_load_explicit(&j->status, memory_order_relaxed) == FX_OK; n++) {
		n_active = round_of(j, w);
		if (n_active < 0)
			give_up(j, FX_ENOMEM);
		if (n % CHECK_EVERY == 0 && j->m->stopped && j->m->stopped(j->m->stopped_arg))
			give_up(j, FX_ECANCELED);
	}
	for (int l = 0; l < FXI_TRACK_LANES; l++)
		fx_free(w->lanes[l].points);
	fx_free(w);
}

struct copy {
	const fxi_track_job *j;
	const int64_t *place;  /* of each seed's fibre among those kept; -1: none */
	const fx_track_arrays *out;
};

static void copy_block(void *arg, int64_t block)
{
	const struct copy *c = arg;
	const uint32_t *offsets = c->out->offsets->data;
	int64_t end = (block + 1) * COPY_BLOCK < c->j->n ? (block + 1) * COPY_BLOCK : c->j->n;

	for (int64_t seed = block * COPY_BLOCK; seed < end; seed++) {
		const fxi_fibre *f = &c->j->fibres[seed];
		int64_t at = c->place[seed];
		float *points, *riemann;

		if (at < 0)
			continue;
		points = FX_F32_OF(c->out->points) + 3 * (int64_t)offsets[at];
		riemann = c->out->riemann ? FX_F32_OF(c->out->riemann) + offsets[at] : NULL;
		for (int64_t i = 0; i < f->n; i++) {
			memcpy(points + 3 * i, f->points + 4 * i, 3 * sizeof *points);
			if (riemann)
				riemann[i] = f->points[4 * i + 3];
		}
		memcpy(FX_F32_OF(c->out->values) + FX_N_VALUES * at, f->values, sizeof f->values);
		((uint32_t *)c->out->seeds->data)[at] = (uint32_t)seed;
	}
}

static int new_arrays(fx_math *m, bool riemann, int64_t n, int64_t n_points, fx_track_arrays *out)
{
	const int64_t offsets[1] = {n + 1}, points[2] = {3, n_points}, values[2] = {FX_N_VALUES, n};
	int status = m->ops->array_new(m, FX_U32, 1, offsets, &out->offsets);

	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 2, points, &out->points);
	if (status == FX_OK && riemann)
		status = m->ops->array_new(m, FX_F32, 1, &points[1], &out->riemann);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_F32, 2, values, &out->values);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_U32, 1, &values[1], &out->seeds);
	return status;
}

/* The fibres of all seeds, one behind the other. */
static int collect(fxi_track_job *j, fx_track_arrays *out)
{
	int64_t n = 0, n_points = 0, *place = fx_alloc(j->n, sizeof *place);
	struct copy c = {.j = j, .place = place, .out = out};
	int status;

	if (!place && j->n > 0)
		return fx_math_fail(j->m, FX_ENOMEM, "no memory to order %lld fibres", (long long)j->n);
	for (int64_t i = 0; i < j->n; i++) {
		place[i] = j->fibres[i].points ? n++ : -1;
		n_points += j->fibres[i].n;
	}
	if (n_points > UINT32_MAX) {
		fx_free(place);
		return fx_math_fail(j->m, FX_ENOTSUP, "%lld seeds gave %lld points, and a batch of fibres has room for 4294967295: track fewer "
			"seeds at a time", (long long)j->n, (long long)n_points);
	}
	status = new_arrays(j->m, j->plan->method == FX_TRACK_GEODESIC, n, n_points, out);
	if (status == FX_OK) {
		uint32_t *offsets = out->offsets->data;

		for (int64_t i = 0; i < j->n; i++)
			if (place[i] >= 0)
				offsets[place[i] + 1] = offsets[place[i]] + (uint32_t)j->fibres[i].n;
		fx_parallel(j->m->n_threads, (j->n + COPY_BLOCK - 1) / COPY_BLOCK, copy_block, &c);
	}
	fx_free(place);
	return status;
}

static void set_field(fxi_track_job *j)
{
	const fx_track_plan *p = j->plan;
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	const fx_array *a = p->method == FX_TRACK_STREAMLINE ? j->metric->d : j->metric->field;

	j->field = (fxi_track_field){.field = a->data, .integrator = p->integrator, .step = (float)p->step};
	for (int i = 0; i < 3; i++) {
		j->field.dims[i] = a->dims[i + 1];
		for (int k = 0; k < 3; k++)
			j->field.to_index[i][k] = (float)p->to_index[i][k];
	}
	for (int c = 0; c < 6; c++) {
		double sum = 0;

		for (int i = 0; i < 3; i++)
			sum += p->to_mm[i][row[c]] * p->to_mm[i][column[c]];
		j->field.square[c] = (float)sum;
	}
}

int fxi_host_track_prepare(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void **prepared)
{
	(void)metric;
	*prepared = NULL;
	if (plan->form != FX_TRACK_FORM_AUTO && plan->form != FX_TRACK_FORM_KERNEL)
		return fx_math_fail(m, FX_ENOTSUP, "the host reads fields in single precision alone (form auto or kernel); the other forms are a "
			"GPU's: set the backend to cuda, or the form to auto");
	return FX_OK;
}

void fxi_host_track_release(fx_math *m, void *prepared)
{
	(void)m;
	(void)prepared;
}

int fxi_host_track_batch(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void *prepared, const fx_track_keep *keep,
	const fx_array *starts, fx_track_arrays *out, fx_track_counts *counts)
{
	int64_t n = starts->dims[1], n_workers = m->n_threads < n ? m->n_threads : n;
	fxi_track_job j = {.m = m, .plan = plan, .metric = metric, .keep = keep, .starts = starts->data, .n = n,
		.cos_angle = (float)cos(plan->stop_angle * acos(-1) / 180)};
	int status;

	(void)prepared;
	*out = (fx_track_arrays){0};
	set_field(&j);
	j.fibres = fx_alloc(n, sizeof *j.fibres);
	if (!j.fibres && n > 0)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the fibres of %lld seeds", (long long)n);
	j.n_lanes = n_workers > 0 ? (n + n_workers - 1) / n_workers : 0;
	if (j.n_lanes > FXI_TRACK_LANES)
		j.n_lanes = FXI_TRACK_LANES;
	fx_parallel(m->n_threads, n_workers, work, &j);
	status = j.status;
	if (status == FX_ENOMEM)
		fx_math_fail(m, status, "no memory for the points of %lld fibres: track fewer seeds at a time", (long long)n);
	else if (status == FX_ECANCELED)
		fx_math_fail(m, status, "stopped before the end");
	else
		status = collect(&j, out);
	*counts = (fx_track_counts){.n_outside = j.n_outside, .n_missed = j.n_missed};
	for (int64_t i = 0; i < n; i++)
		fx_free(j.fibres[i].points);
	fx_free(j.fibres);
	return status;
}

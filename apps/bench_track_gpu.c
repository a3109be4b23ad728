/* SPDX-License-Identifier: MIT */
/*
 * bench_track_gpu.c - van Aart et al.'s workload on the CUDA backend: every form of the field and every share of threads, the paper's figure 6 (steps of
 * 0.05 to 0.5 voxel), and the throughput of a million fibres. The clock is the host's around work that is waited for; the field and the
 * seeds are on the device before, the fibres' points stay there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench_track.h"

#define MANY 1000000        /* fibres of the throughput's rows */
#define MANY_STEPS 512
#define COPY_BYTES (2000000000)

/* Floating-point operations of an RK2 step, counted in track_geodesic.cuh: twice (weights 14, 24 numbers x 8 corners x 2, products with the
 * four tensors 80, the sum of w 33, solving 53) and 60 of the update; the shares that threads repeat do not count. */
#define STEP_FLOPS (2.0 * (14 + 384 + 80 + 33 + 53) + 60)

static const char *const names[FX_N_TRACK_FORMS] = {"auto", "kernel", "half", "texture", "texture_half", "compact"};
/* Bytes that the eight corners of a fetch hold, per fetch, as each form keeps them (compact: 32 voxels of 24 bytes). */
static const double fetch_bytes[FX_N_TRACK_FORMS] = {768, 768, 512, 768, 384, 768};

struct gpu {
	fxi_track_bench *b;
	fx_math *m;
	fx_metric_arrays arrays;
	fx_array *starts;
	double copy;                /* bytes a second, read and written */
};

struct case_of {
	const char *what;
	int form, lanes, integrator;
	double step;
	int64_t n_steps;
};

static double now(void)
{
	return fxi_bench_clock_s(CLOCK_MONOTONIC);
}

static void drop_arrays(fx_track_arrays *a)
{
	fx_array_unref(a->offsets);
	fx_array_unref(a->points);
	fx_array_unref(a->riemann);
	fx_array_unref(a->values);
	fx_array_unref(a->seeds);
	*a = (fx_track_arrays){0};
}

static fx_track_plan plan_of(const struct case_of *c)
{
	fx_track_plan p = {.integrator = c->integrator, .form = c->form, .lanes = c->lanes, .step = c->step, .voxel = 1, .max_steps = c->n_steps};

	for (int i = 0; i < 3; i++)
		p.affine[i][i] = p.to_mm[i][i] = p.to_index[i][i] = 1;
	return p;
}

static void tell(struct gpu *g, const struct case_of *c, double median, double best, int64_t n_points, double preparing)
{
	double n = (double)(n_points - g->starts->dims[1]), rate = n / median;

	printf("%-12s %-12s %5d %6.2f %9.3f %9.3f %9.2f %9.1f %9.2f %9.1f\n", c->what, names[c->form], c->lanes, c->step, 1e3 * median, 1e3 * best,
		1e-9 * rate, 1e-12 * rate * STEP_FLOPS, 1e-12 * rate * 2 * fetch_bytes[c->form], 1e3 * preparing);
	fflush(stdout);
	json_builder_begin_object(g->b->json);
	json_builder_set_member_name(g->b->json, "workload");
	json_builder_add_string_value(g->b->json, c->what);
	json_builder_set_member_name(g->b->json, "form");
	json_builder_add_string_value(g->b->json, names[c->form]);
	fxi_track_put(g->b->json, "lanes", c->lanes);
	fxi_track_put(g->b->json, "integrator", c->integrator);
	fxi_track_put(g->b->json, "step_voxels", c->step);
	fxi_track_put(g->b->json, "fibres", (double)g->starts->dims[1]);
	fxi_track_put(g->b->json, "points", (double)n_points);
	fxi_track_put(g->b->json, "seconds_median", median);
	fxi_track_put(g->b->json, "seconds_best", best);
	fxi_track_put(g->b->json, "steps_per_second", rate);
	fxi_track_put(g->b->json, "flops_per_second", rate * STEP_FLOPS);
	fxi_track_put(g->b->json, "field_bytes_used_per_second", rate * 2 * fetch_bytes[c->form]);
	fxi_track_put(g->b->json, "point_bytes_per_second", rate * 16);
	fxi_track_put(g->b->json, "seconds_preparing", preparing);
	json_builder_end_object(g->b->json);
}

/* One case: a warm-up, then the median and the best of the runs. */
static int measure(struct gpu *g, const struct case_of *c)
{
	const fx_track_plan plan = plan_of(c);
	int n_runs = g->b->o->n_runs, status;
	double *seconds = fx_alloc(n_runs, sizeof *seconds), preparing, start = now();
	int64_t n_points = 0;
	void *prepared = NULL;

	if (!seconds)
		return fx_error_set(g->b->err, FX_ENOMEM, "no memory for %d times", n_runs);
	status = g->m->ops->track_prepare(g->m, &plan, &g->arrays, &prepared);
	if (status == FX_OK)
		status = g->m->ops->sync(g->m);
	preparing = now() - start;
	for (int i = -1; i < n_runs && status == FX_OK; i++) {
		fx_track_arrays out = {0};
		fx_track_counts counts;

		start = now();
		status = g->m->ops->track_batch(g->m, &plan, &g->arrays, prepared, NULL, g->starts, &out, &counts);
		if (status == FX_OK)
			status = g->m->ops->sync(g->m);
		if (i >= 0)
			seconds[i] = now() - start;
		n_points = status == FX_OK ? out.points->dims[1] : 0;
		drop_arrays(&out);
	}
	if (prepared)
		g->m->ops->track_release(g->m, prepared);
	if (status == FX_OK) {
		qsort(seconds, (size_t)n_runs, sizeof *seconds, fxi_track_ascending);
		tell(g, c, seconds[n_runs / 2], seconds[0], n_points, preparing);
	}
	fx_free(seconds);
	return status;
}

static int place(struct gpu *g)
{
	const fx_metric *metric = fx_msg_metric(g->b->metric);
	int status = g->m->ops->upload(g->m, metric->field, &g->arrays.field);

	if (status == FX_OK)
		status = g->m->ops->upload(g->m, metric->d, &g->arrays.d);
	if (status == FX_OK)
		status = g->m->ops->upload(g->m, g->b->seeds, &g->starts);
	return status;
}

static void unplace(struct gpu *g)
{
	fx_array_unref(g->arrays.field);
	fx_array_unref(g->arrays.d);
	fx_array_unref(g->starts);
	g->arrays = (fx_metric_arrays){0};
	g->starts = NULL;
}

/* The ceiling of device memory: a copy that is far larger than the cache, best of five. */
static int measure_copy(struct gpu *g)
{
	const int64_t n[1] = {COPY_BYTES / 4};
	fx_array *from = NULL, *to = NULL;
	double best = INFINITY;
	int status = g->m->ops->array_new(g->m, FX_F32, 1, n, &from);

	if (status == FX_OK)
		status = g->m->ops->array_new(g->m, FX_F32, 1, n, &to);
	for (int i = 0; i < 6 && status == FX_OK; i++) {
		double start;

		g->m->ops->sync(g->m);
		start = now();
		status = g->m->ops->copy(g->m, from, 0, n[0], to, 0);
		if (status == FX_OK)
			status = g->m->ops->sync(g->m);
		best = i > 0 ? fmin(best, now() - start) : best;
	}
	fx_array_unref(from);
	fx_array_unref(to);
	g->copy = 2.0 * COPY_BYTES / best;
	return status;
}

static int measure_paper(struct gpu *g)
{
	static const double steps[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5};
	static const int integrators[] = {FX_INTEGRATOR_EULER, FX_INTEGRATOR_FROZEN, FX_INTEGRATOR_RK4};
	int status = place(g);

	for (int form = FX_TRACK_FORM_KERNEL; form < FX_N_TRACK_FORMS && status == FX_OK; form++)
		for (int lanes = 4; lanes >= 1 && status == FX_OK; lanes /= 2) {
			bool texture = form == FX_TRACK_FORM_TEXTURE || form == FX_TRACK_FORM_TEXTURE_HALF;
			const struct case_of c = {"paper", form, lanes, FX_INTEGRATOR_RK2, 0.1, g->b->o->n_steps};

			if (texture ? lanes == 1 : lanes > 1 || form == FX_TRACK_FORM_KERNEL)
				status = measure(g, &c);
		}
	for (size_t i = 0; i < sizeof integrators / sizeof integrators[0] && status == FX_OK; i++) {
		const struct case_of c = {integrators[i] == FX_INTEGRATOR_RK4 ? "rk4" : integrators[i] == FX_INTEGRATOR_FROZEN ? "frozen" : "euler",
			FX_TRACK_FORM_KERNEL, 0, integrators[i], 0.1, g->b->o->n_steps};

		status = measure(g, &c);
	}
	for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == FX_OK; i++)
		for (int k = 0; k < 2 && status == FX_OK; k++) {
			const struct case_of c = {"figure 6", k ? FX_TRACK_FORM_TEXTURE : FX_TRACK_FORM_KERNEL, 0, FX_INTEGRATOR_RK2, steps[i], g->b->o->n_steps};

			status = measure(g, &c);
		}
	unplace(g);
	return status;
}

/* A million fibres from places at random, in no order, through a smaller field. */
static int measure_many(struct gpu *g)
{
	const fxi_track_options o = {.matrix = {128, 128, 64}, .n_seeds = MANY, .n_steps = MANY_STEPS, .n_threads = g->b->o->n_threads,
		.n_runs = g->b->o->n_runs};
	fxi_track_bench many = {.o = &o, .err = g->b->err, .json = g->b->json};
	fxi_track_bench *paper = g->b;
	int status = fxi_track_prepare(&many);

	g->b = &many;
	if (status == FX_OK)
		status = place(g);
	json_builder_set_member_name(g->b->json, "many");
	json_builder_begin_array(g->b->json);
	for (int form = FX_TRACK_FORM_KERNEL; form < FX_N_TRACK_FORMS && status == FX_OK; form++)
		for (int lanes = 4; lanes >= 1 && status == FX_OK; lanes /= 2) {
			bool texture = form == FX_TRACK_FORM_TEXTURE || form == FX_TRACK_FORM_TEXTURE_HALF;
			const struct case_of c = {"million", form, lanes, FX_INTEGRATOR_RK2, 0.1, MANY_STEPS};

			if (texture ? lanes == 1 : lanes > 1 || form == FX_TRACK_FORM_KERNEL)
				status = measure(g, &c);
		}
	json_builder_end_array(g->b->json);
	unplace(g);
	fxi_track_drop(&many);
	g->b = paper;
	return status;
}

int fxi_track_measure_gpu(fxi_track_bench *b)
{
	struct gpu g = {.b = b};
	int status = fx_math_new("cuda", b->o->n_threads, b->err, &g.m);

	if (status == FX_OK)
		status = measure_copy(&g);
	if (status == FX_OK) {
		printf("copying within device memory: %.2f TB/s, read and written\n\n", 1e-12 * g.copy);
		fxi_track_put(b->json, "copy_bytes_per_second", g.copy);
		printf("%-12s %-12s %5s %6s %9s %9s %9s %9s %9s %9s\n", "", "form", "lanes", "step", "ms", "best", "Gstep/s", "Tflop/s", "field TB/s",
			"prep. ms");
		json_builder_set_member_name(b->json, "rows");
		json_builder_begin_array(b->json);
		status = measure_paper(&g);
		json_builder_end_array(b->json);
	}
	if (status == FX_OK)
		status = measure_many(&g);
	fx_math_free(g.m);
	return status;
}

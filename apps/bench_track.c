/* SPDX-License-Identifier: MIT */
/*
 * bench_track.c - `fornix bench track`: geodesics on the workload of van Aart et al. (2011), a synthetic field of 1024 x 64 x 64 voxels,
 * 2048 seeds, 4096 steps and no stop but the volume.
 *
 * The field is the ring about the long axis whose geodesics are exact circles, so that fibres neither leave nor settle in one place;
 * seeds are spread over the whole field, and start tangentially.
 */
#include <fornix/fornix.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench_track.h"
#include "apps/common.h"

static const char summary[] =
	"Geodesics on the workload of van Aart et al. (2011): steps a second by the clock and by processor time, over threads,\n"
	"integrators and step lengths. A step of rk2 reads 24 floats at 8 corners twice.";

struct row {
	const char *method;
	int kind, integrator, n_threads;
	double step;
};

/* The fibres' median drift. */
static double median_drift(const fx_tracts *t)
{
	double *all = fx_alloc(t->n, sizeof *all), median = NAN;

	for (int64_t i = 0; all && i < t->n; i++)
		all[i] = (double)FX_F32_OF(t->values)[FX_N_VALUES * i + FX_VALUE_DRIFT];
	if (all) {
		qsort(all, (size_t)t->n, sizeof *all, fxi_track_ascending);
		median = all[t->n / 2];
	}
	fx_free(all);
	return median;
}

/* One run; points and the median drift of it. */
static int run_once(fxi_track_bench *b, fx_math *m, const struct row *r, int64_t *n_points, double *drift)
{
	const fx_track_spec spec = {.method = r->kind, .integrator = r->integrator, .step = r->step, .step_in_voxels = true,
		.max_steps = b->o->n_steps};
	fx_tracts_info *info = fx_tracts_info_new();
	fx_tracker *t = NULL;
	fx_msg *out = NULL;
	int64_t n_outside;
	int status = info ? fx_tracker_new(m, fx_msg_metric(b->metric), &spec, &t) : FX_ENOMEM;

	if (status == FX_OK)
		status = fx_tracker_run(t, info, b->seeds, 0, &out, &n_outside);
	if (status == FX_OK) {
		const fx_tracts *tracts = fx_msg_tracts(out);

		*n_points = tracts->points->dims[1];
		*drift = tracts->n > 0 ? median_drift(tracts) : 0;
	}
	fx_drop(out);
	fx_tracker_free(t);
	fx_tracts_info_unref(info);
	return status;
}

static void tell(fxi_track_bench *b, const struct row *r, int64_t n_points, double wall, double cpu, double drift)
{
	double n = (double)(n_points - b->o->n_seeds); /* steps that gave a point */

	printf("%-18s %7d %6.2f %10.1f %10.2f %14.2f %9.1e\n", r->method, r->n_threads, r->step, 1e3 * wall, 1e-6 * n / wall,
		1e-6 * n / cpu, drift);
	fflush(stdout);
	json_builder_begin_object(b->json);
	json_builder_set_member_name(b->json, "method");
	json_builder_add_string_value(b->json, r->method);
	json_builder_set_member_name(b->json, "threads");
	json_builder_add_int_value(b->json, r->n_threads);
	fxi_track_put(b->json, "step_voxels", r->step);
	json_builder_set_member_name(b->json, "points");
	json_builder_add_int_value(b->json, n_points);
	fxi_track_put(b->json, "seconds", wall);
	fxi_track_put(b->json, "processor_seconds", cpu);
	fxi_track_put(b->json, "steps_per_second", n / wall);
	fxi_track_put(b->json, "steps_per_processor_second", n / cpu);
	fxi_track_put(b->json, "median_drift", drift);
	json_builder_end_object(b->json);
}

/* Best of the runs. */
static int measure_row(fxi_track_bench *b, const struct row *r)
{
	double wall = INFINITY, cpu = INFINITY, drift = 0;
	int64_t n_points = 0;
	fx_math *m = NULL;
	int status = fx_math_new("host", r->n_threads, b->err, &m);

	for (int i = 0; i < b->o->n_runs && status == FX_OK; i++) {
		double start = fxi_bench_clock_s(CLOCK_MONOTONIC), spent = fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID);

		status = run_once(b, m, r, &n_points, &drift);
		wall = fmin(wall, fxi_bench_clock_s(CLOCK_MONOTONIC) - start);
		cpu = fmin(cpu, fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID) - spent);
	}
	if (status == FX_OK)
		tell(b, r, n_points, wall, cpu, drift);
	fx_math_free(m);
	return status;
}

static int measure_all(fxi_track_bench *b)
{
	static const struct row others[] = {
		{"geodesic frozen", FX_TRACK_GEODESIC, FX_INTEGRATOR_FROZEN, 0, 0.1}, {"geodesic euler", FX_TRACK_GEODESIC, FX_INTEGRATOR_EULER, 0, 0.1},
		{"geodesic rk4", FX_TRACK_GEODESIC, FX_INTEGRATOR_RK4, 0, 0.1}, {"streamline rk2", FX_TRACK_STREAMLINE, FX_INTEGRATOR_RK2, 0, 0.1},
		{"geodesic rk2", FX_TRACK_GEODESIC, FX_INTEGRATOR_RK2, 0, 0.05}, {"geodesic rk2", FX_TRACK_GEODESIC, FX_INTEGRATOR_RK2, 0, 0.2},
		{"geodesic rk2", FX_TRACK_GEODESIC, FX_INTEGRATOR_RK2, 0, 0.5},
	};
	int status = FX_OK, most = b->o->n_threads;

	printf("%-18s %7s %6s %10s %10s %14s %9s\n", "", "threads", "step", "ms", "Msteps/s", "a processor s", "drift");
	json_builder_set_member_name(b->json, "rows");
	json_builder_begin_array(b->json);
	for (int threads = 1; status == FX_OK; threads = threads * 2 < most ? threads * 2 : most) {
		const struct row r = {"geodesic rk2", FX_TRACK_GEODESIC, FX_INTEGRATOR_RK2, threads, 0.1};

		status = measure_row(b, &r);
		if (threads == most)
			break;
	}
	for (size_t i = 0; i < sizeof others / sizeof others[0] && status == FX_OK; i++) {
		struct row r = others[i];

		r.n_threads = most;
		status = measure_row(b, &r);
	}
	json_builder_end_array(b->json);
	return status;
}

static int measure(const fxi_track_options *o, bool gpu, const char *path)
{
	fx_error err = {0};
	fxi_track_bench b = {.o = o, .err = &err, .json = fxi_bench_record("track")};
	int status, written;

	json_builder_set_member_name(b.json, "matrix");
	json_builder_begin_array(b.json);
	for (int a = 0; a < 3; a++)
		json_builder_add_int_value(b.json, o->matrix[a]);
	json_builder_end_array(b.json);
	json_builder_set_member_name(b.json, "seeds");
	json_builder_add_int_value(b.json, o->n_seeds);
	json_builder_set_member_name(b.json, "steps");
	json_builder_add_int_value(b.json, o->n_steps);
	status = fxi_track_prepare(&b);
	if (status == FX_OK)
		status = gpu ? fxi_track_measure_gpu(&b) : measure_all(&b);
	fxi_track_drop(&b);
	written = fxi_bench_record_end(b.json, status == FX_OK ? path : NULL, &err);
	if (status == FX_OK && written == FX_OK)
		return FXI_EXIT_DONE;
	fxi_apps_say("bench track: %s", err.text);
	return FXI_EXIT_FAILED;
}

int fxi_bench_track(int argc, char **argv)
{
	fxi_track_options o = {.matrix = {1024, 64, 64}, .n_seeds = 2048, .n_steps = 4096, .n_threads = fx_processors(), .n_runs = 3};
	char *matrix = NULL, *json = NULL, *backend = NULL;
	const GOptionEntry entries[] = {
		{"matrix", 'm', 0, G_OPTION_ARG_STRING, &matrix, "Voxels (1024,64,64)", "X,Y,Z"},
		{"seeds", 's', 0, G_OPTION_ARG_INT, &o.n_seeds, "Seeds (2048)", "N"},
		{"steps", 'n', 0, G_OPTION_ARG_INT, &o.n_steps, "Steps of each (4096)", "N"},
		{"threads", 't', 0, G_OPTION_ARG_INT, &o.n_threads, "The most threads (all processors)", "N"},
		{"runs", 'r', 0, G_OPTION_ARG_INT, &o.n_runs, "Runs of each, of which the best counts (3)", "N"},
		{"backend", 'b', 0, G_OPTION_ARG_STRING, &backend, "host or cuda (host)", "NAME"},
		{"json", 'j', 0, G_OPTION_ARG_FILENAME, &json, "Write the result, with machine, date and version, here", "FILE"},
		{NULL, 0, 0, 0, NULL, NULL, NULL},
	};
	int result = FXI_EXIT_USAGE;

	if (!fxi_apps_options("track", summary, entries, 0, 0, &argc, &argv))
		;
	else if (matrix && !fxi_bench_matrix(matrix, o.matrix))
		fxi_apps_say("bench track: --matrix %s: three numbers from 1 to 4096 belong there, as in 1024,64,64", matrix);
	else if (o.n_seeds < 1 || o.n_steps < 1 || o.n_threads < 1 || o.n_runs < 1)
		fxi_apps_say("bench track: --seeds, --steps, --threads and --runs are 1 or more");
	else if (backend && strcmp(backend, "host") != 0 && strcmp(backend, "cuda") != 0)
		fxi_apps_say("bench track: --backend %s: host or cuda belongs there", backend);
	else
		result = measure(&o, backend && strcmp(backend, "cuda") == 0, json);
	g_free(backend);
	g_free(matrix);
	g_free(json);
	return result;
}

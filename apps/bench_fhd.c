/* SPDX-License-Identifier: MIT */
/*
 * bench_fhd.c - `fornix bench fhd`: every way there is to F^H D, on the same random samples. bench_fhd_run.c runs one of them, on the
 * host or where a backend's arrays are.
 */
#include <fornix/fornix.h>
#include <stdio.h>

#include "apps/bench.h"
#include "apps/bench_fhd.h"
#include "apps/common.h"

static const char summary[] =
	"F^H D of random samples by the plain C loops of Kirk & Hwu's chapter (one thread), and by the library's methods; with\n"
	"--backend cuda by the chapter's kernels and by what a GPU of today does better: pairs of sample and voxel a second by the\n"
	"clock and by processor time, relative l2 error and PSNR (the largest voxel over the root mean square error) against a sum\n"
	"in double at some of the voxels.";

static const fxi_fhd_rung on_host[] = {
	{"sequential", "the chapter's Fig. 17.4: Mu inside, voxels innermost", .loop = fxi_ladder_sequential},
	{"fissioned", "Mu first", .loop = fxi_ladder_fissioned},
	{"interchanged", "samples innermost: gather", .loop = fxi_ladder_gather},
	{"registers", "gather, voxel and sum in registers", .loop = fxi_ladder_registers},
	{"direct", "the library: SIMD, own sine and cosine", .method = FX_FOURIER_DIRECT},
	{"separable", "the library: matrix products", .method = FX_FOURIER_SEPARABLE},
	{"nufft 1e-3", "the library: gridding and FFT", .method = FX_FOURIER_NUFFT, .tolerance = 1e-3},
	{"nufft 1e-5", "likewise", .method = FX_FOURIER_NUFFT, .tolerance = 1e-5},
};

/* The tuned kernel with everything else the same: what constant memory does with more samples than its nearest cache (2 kB) holds. */
#define CONSTANT(n) {FX_DIRECT_TUNED, 256, 4, 1, n, 2}

static const fxi_fhd_rung on_device[] = {
	{"scatter", "a thread a sample, atomic additions", .plan = {FX_DIRECT_SCATTER, 0, 0, 0, 0, 0}},
	{"gather", "a thread a voxel, sums in memory", .plan = {FX_DIRECT_GATHER, 0, 0, 0, 0, 0}},
	{"registers", "voxel and sums in registers", .plan = {FX_DIRECT_REGISTERS, 0, 0, 0, 0, 0}},
	{"constant", "samples in constant memory, 2048 at once", .plan = {FX_DIRECT_CONSTANT, 0, 0, 0, 0, 0}},
	{"aos", "a structure a sample, 1024 at once", .plan = {FX_DIRECT_AOS, 0, 0, 0, 0, 0}},
	{"hardware", "sine and cosine of the special function units", .plan = {FX_DIRECT_HARDWARE, 0, 0, 0, 0, 0}},
	{"constant 2048", "that, unrolled by 4, 40 kB of samples at once", .plan = CONSTANT(2048)},
	{"constant 96", "1.9 kB at once: they fit the constant cache", .plan = CONSTANT(96)},
	{"shared 1", "samples in shared memory instead", .plan = {FX_DIRECT_TUNED, 256, 4, 1, 256, 1}},
	{"shared 8", "and 8 voxels a thread for each that is read", .plan = {FX_DIRECT_TUNED, 256, 2, 8, 256, 1}},
	{"tuned", "what `fornix tune` found, or its default", .plan = {FX_DIRECT_TUNED, 0, 0, 0, 0, 0}},
	{"direct", "exact phases, a row's cosines and sines shared", .method = FX_FOURIER_DIRECT},
	{"separable", "exact phases, split halves on tensor cores", .method = FX_FOURIER_SEPARABLE},
	{"direct f64", "in double", .method = FX_FOURIER_DIRECT, .is_double = true},
	{"separable f64", "in double, on tensor cores", .method = FX_FOURIER_SEPARABLE, .is_double = true},
	{"nufft 1e-3", "gridding and FFT, samples from the host", .method = FX_FOURIER_NUFFT, .tolerance = 1e-3},
	{"nufft 1e-5", "likewise", .method = FX_FOURIER_NUFFT, .tolerance = 1e-5},
};

static void put_number(JsonBuilder *j, const char *name, double value)
{
	json_builder_set_member_name(j, name);
	json_builder_add_double_value(j, value);
}

static void put_rung(const fxi_fhd *b, const fxi_fhd_rung *r, const fxi_fhd_outcome *o, JsonBuilder *j)
{
	double pairs = (double)b->n_samples * (double)b->n_voxels;

	json_builder_begin_object(j);
	json_builder_set_member_name(j, "name");
	json_builder_add_string_value(j, r->name);
	put_number(j, "seconds", o->wall_s);
	put_number(j, "processor_seconds", o->cpu_s);
	put_number(j, "pairs_per_second", pairs / o->wall_s);
	put_number(j, "pairs_per_processor_second", pairs / o->cpu_s);
	put_number(j, "relative_error", o->error);
	put_number(j, "psnr_db", o->psnr_db);
	json_builder_set_member_name(j, "runs");
	json_builder_add_int_value(j, o->n_runs);
	json_builder_end_object(j);
}

static void put_head(const fxi_fhd *b, JsonBuilder *j)
{
	const int64_t *n = b->o->matrix;
	char what[256] = "";

	json_builder_set_member_name(j, "matrix");
	json_builder_begin_array(j);
	for (int a = 0; a < 3; a++)
		json_builder_add_int_value(j, n[a]);
	json_builder_end_array(j);
	json_builder_set_member_name(j, "samples");
	json_builder_add_int_value(j, b->n_samples);
	json_builder_set_member_name(j, "threads");
	json_builder_add_int_value(j, b->o->n_threads);
	json_builder_set_member_name(j, "backend");
	json_builder_add_string_value(j, b->m->ops->name);
	if (b->m->ops->describe && b->m->ops->describe(b->m, what, sizeof what) == FX_OK) {
		json_builder_set_member_name(j, "device");
		json_builder_add_string_value(j, what);
	}
	printf("F^H D, %lld x %lld x %lld voxels, %lld samples, ", (long long)n[0], (long long)n[1], (long long)n[2], (long long)b->n_samples);
	if (*what)
		printf("%s\n\n", what);
	else
		printf("single precision, library on %d thread%s\n\n", b->o->n_threads, b->o->n_threads == 1 ? "" : "s");
	printf("%-14s %12s %16s %10s %7s\n", "", "Mpairs/s", "a processor s", "error", "PSNR");
}

static int climb_all(fxi_fhd *b, JsonBuilder *j)
{
	double pairs = (double)b->n_samples * (double)b->n_voxels;
	const fxi_fhd_rung *rungs = b->device ? on_device : on_host;
	size_t n = b->device ? sizeof on_device / sizeof on_device[0] : sizeof on_host / sizeof on_host[0];
	int status = FX_OK;

	put_head(b, j);
	json_builder_set_member_name(j, "rungs");
	json_builder_begin_array(j);
	for (size_t i = 0; i < n && status == FX_OK; i++) {
		fxi_fhd_outcome o;

		if (b->o->library_only && (rungs[i].loop || rungs[i].plan.kernel != FX_DIRECT_AUTO))
			continue;
		status = fxi_fhd_climb(b, &rungs[i], &o);
		if (status != FX_OK)
			break;
		printf("%-14s %12.1f %16.1f %10.1e %7.1f  %s\n", rungs[i].name, 1e-6 * pairs / o.wall_s, 1e-6 * pairs / o.cpu_s, o.error,
			o.psnr_db, rungs[i].what);
		fflush(stdout);
		put_rung(b, &rungs[i], &o, j);
	}
	json_builder_end_array(j);
	return status;
}

static int measure(const fxi_fhd_options *o, JsonBuilder *j, fx_error *err)
{
	fxi_fhd b;
	int status = fxi_fhd_begin(o, err, &b);

	if (status == FX_OK)
		status = climb_all(&b, j);
	fxi_fhd_end(&b);
	return status;
}

static int measure_and_write(const fxi_fhd_options *o, const char *path)
{
	JsonBuilder *j = fxi_bench_record("fhd");
	fx_error err = {0};
	int status = measure(o, j, &err), written = fxi_bench_record_end(j, status == FX_OK ? path : NULL, &err);

	if (status == FX_OK && written == FX_OK)
		return FXI_EXIT_DONE;
	fxi_apps_say("bench fhd: %s", err.text);
	return FXI_EXIT_FAILED;
}

int fxi_bench_fhd(int argc, char **argv)
{
	fxi_fhd_options o = {.matrix = {32, 32, 32}, .n_samples = 4096, .n_threads = 1, .seconds = 0.2};
	char *matrix = NULL, *json = NULL, *backend = NULL;
	const GOptionEntry entries[] = {
		{"backend", 'b', 0, G_OPTION_ARG_STRING, &backend, "host (default), cuda or auto", "NAME"},
		{"matrix", 'm', 0, G_OPTION_ARG_STRING, &matrix, "Voxels (32,32,32)", "X,Y,Z"},
		{"samples", 's', 0, G_OPTION_ARG_INT, &o.n_samples, "Samples (4096)", "M"},
		{"threads", 't', 0, G_OPTION_ARG_INT, &o.n_threads, "Threads of the library's operations (1)", "N"},
		{"library-only", 'l', 0, G_OPTION_ARG_NONE, &o.library_only, "Leave out the chapter's loops and kernels, which take long on large matrices", NULL},
		{"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &o.seconds, "Repeat an operation for this long, keep the best (0.2)", "S"},
		{"json", 'j', 0, G_OPTION_ARG_FILENAME, &json, "Write the result, with machine, date and version, here", "FILE"},
		{NULL, 0, 0, 0, NULL, NULL, NULL},
	};
	int result = FXI_EXIT_USAGE;

	if (!fxi_apps_options("fhd", summary, entries, 0, 0, &argc, &argv))
		;
	else if (matrix && !fxi_bench_matrix(matrix, o.matrix))
		fxi_apps_say("bench fhd: --matrix %s: three numbers from 1 to 4096 belong there, as in 32,32,32", matrix);
	else if (o.n_samples < 1 || o.n_threads < 1 || !(o.seconds >= 0))
		fxi_apps_say("bench fhd: --samples and --threads are 1 or more, --seconds 0 or more");
	else {
		o.backend = backend ? backend : "host";
		result = measure_and_write(&o, json);
	}
	g_free(backend);
	g_free(matrix);
	g_free(json);
	return result;
}

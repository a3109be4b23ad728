/* SPDX-License-Identifier: MIT */
/* bench_fhd.c - `fornix bench fhd`: every way there is to F^H D, on the same random samples. */
#include <complex.h>
#include <fornix/fornix.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "apps/bench.h"
#include "apps/bench_ladder.h"
#include "apps/common.h"

/* Voxels at which the sum in double is taken; an odd step through the image meets all of its rows and columns. */
#define N_CHECKED 509

static const char summary[] =
	"F^H D of random samples by the plain C loops of Kirk & Hwu's chapter (one thread), and by the library's methods: pairs of\n"
	"sample and voxel a second by the clock and by processor time, and the relative l2 error against a sum in double at\n"
	"some of the voxels.";

struct options {
	int64_t matrix[3];
	int n_samples, n_threads;  /* threads of the library's operations */
	gboolean library_only;     /* the plain loops take long on large matrices */
	double seconds;            /* an operation is repeated for this long, once at least */
};

struct bench {
	const struct options *o;
	fx_math *m;
	int64_t n_samples, n_voxels;
	fxi_ladder ladder;
	float *memory;             /* of the ladder */
	fx_array *k, *mu, *image;
	int64_t n_checked, step;   /* voxel i * step of each of n_checked */
	double _Complex *truth;
};

struct rung {
	const char *name, *what;
	void (*loop)(fxi_ladder *l); /* NULL: the library's */
	int method;
	double tolerance;
};

static const struct rung rungs[] = {
	{"sequential", "the chapter's Fig. 17.4: Mu inside, voxels innermost", fxi_ladder_sequential, 0, 0},
	{"fissioned", "Mu first", fxi_ladder_fissioned, 0, 0},
	{"interchanged", "samples innermost: gather", fxi_ladder_gather, 0, 0},
	{"registers", "gather, voxel and sum in registers", fxi_ladder_registers, 0, 0},
	{"direct", "the library: SIMD, own sine and cosine", NULL, FX_FOURIER_DIRECT, 0},
	{"separable", "the library: matrix products", NULL, FX_FOURIER_SEPARABLE, 0},
	{"nufft 1e-3", "the library: gridding and FFT", NULL, FX_FOURIER_NUFFT, 1e-3},
	{"nufft 1e-5", "likewise", NULL, FX_FOURIER_NUFFT, 1e-5},
};
#define N_RUNGS (sizeof rungs / sizeof rungs[0])

struct outcome {
	double wall_s, cpu_s, error;
	int64_t n_runs;
};

/* splitmix64 (Steele et al. 2014), uniform in [-0.5, 0.5). */
static double next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

static void clear(struct bench *b)
{
	fx_free(b->memory);
	fx_free(b->truth);
	fx_array_unref(b->k);
	fx_array_unref(b->mu);
	fx_array_unref(b->image);
	fx_math_free(b->m);
}

static int allocate(struct bench *b, fx_error *err)
{
	fxi_ladder *l = &b->ladder;
	float **of_samples[] = {&l->kx, &l->ky, &l->kz, &l->r_phi, &l->i_phi, &l->r_d, &l->i_d, &l->r_mu, &l->i_mu};
	float **of_voxels[] = {&l->x, &l->y, &l->z, &l->r_out, &l->i_out};
	float *at;

	b->n_checked = b->n_voxels < N_CHECKED ? b->n_voxels : N_CHECKED;
	b->step = b->n_voxels / b->n_checked;
	b->memory = fx_alloc(9 * b->n_samples + 5 * b->n_voxels, sizeof *b->memory);
	b->truth = fx_alloc(b->n_checked, sizeof *b->truth);
	if (!b->memory || !b->truth || fx_array_new2(FX_F64, 3, b->n_samples, &b->k) != FX_OK ||
		fx_array_new2(FX_CF32, b->n_samples, 1, &b->mu) != FX_OK)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld samples and %lld voxels", (long long)b->n_samples,
			(long long)b->n_voxels);
	at = b->memory;
	for (size_t i = 0; i < 9; i++, at += b->n_samples)
		*of_samples[i] = at;
	for (size_t i = 0; i < 5; i++, at += b->n_voxels)
		*of_voxels[i] = at;
	l->n_samples = b->n_samples;
	l->n_voxels = b->n_voxels;
	return FX_OK;
}

/* The same numbers for the ladder, in single, and for the library: k is rounded to single first. */
static void fill(struct bench *b)
{
	const int64_t *n = b->o->matrix;
	fxi_ladder *l = &b->ladder;
	uint64_t seed = 1;

	for (int64_t m = 0; m < b->n_samples; m++) {
		float *k[3] = {l->kx + m, l->ky + m, l->kz + m};

		for (int a = 0; a < 3; a++) {
			*k[a] = (float)next_random(&seed);
			FX_F64_OF(b->k)[3 * m + a] = (double)*k[a];
		}
		l->r_phi[m] = (float)next_random(&seed);
		l->i_phi[m] = (float)next_random(&seed);
		l->r_d[m] = (float)next_random(&seed);
		l->i_d[m] = (float)next_random(&seed);
		FX_CF32_OF(b->mu)[m] = (l->r_phi[m] - (fx_cf32)I * l->i_phi[m]) * (l->r_d[m] + (fx_cf32)I * l->i_d[m]);
	}
	for (int64_t v = 0; v < b->n_voxels; v++) {
		l->x[v] = (float)(v % n[0] - n[0] / 2);
		l->y[v] = (float)(v / n[0] % n[1] - n[1] / 2);
		l->z[v] = (float)(v / n[0] / n[1] - n[2] / 2);
	}
}

static void take_truth(struct bench *b)
{
	const fxi_ladder *l = &b->ladder;
	const double two_pi = 2 * acos(-1);

	for (int64_t i = 0; i < b->n_checked; i++) {
		int64_t v = i * b->step;
		double _Complex sum = 0;

		for (int64_t m = 0; m < b->n_samples; m++) {
			double cycles = (double)l->kx[m] * (double)l->x[v] + (double)l->ky[m] * (double)l->y[v] +
				(double)l->kz[m] * (double)l->z[v];
			double _Complex phi = (double)l->r_phi[m] + I * (double)l->i_phi[m];
			double _Complex d = (double)l->r_d[m] + I * (double)l->i_d[m];

			sum += conj(phi) * d * cexp(I * two_pi * remainder(cycles, 1));
		}
		b->truth[i] = sum;
	}
}

static double error_of(const struct bench *b, const struct rung *r)
{
	double away = 0, whole = 0;

	for (int64_t i = 0; i < b->n_checked; i++) {
		int64_t v = i * b->step;
		double _Complex got = r->loop ? (double)b->ladder.r_out[v] + I * (double)b->ladder.i_out[v]
			: (double _Complex)FX_CF32_OF(b->image)[v];
		double _Complex off = got - b->truth[i];

		away += creal(off) * creal(off) + cimag(off) * cimag(off);
		whole += creal(b->truth[i]) * creal(b->truth[i]) + cimag(b->truth[i]) * cimag(b->truth[i]);
	}
	return sqrt(away / whole);
}

static int run_once(struct bench *b, const struct rung *r, fx_fourier *f)
{
	if (!r->loop) {
		fx_slot_take(&b->image, NULL);
		return fx_fourier_adjoint(f, b->k, b->mu, &b->image);
	}
	memset(b->ladder.r_out, 0, (size_t)b->n_voxels * sizeof(float));
	memset(b->ladder.i_out, 0, (size_t)b->n_voxels * sizeof(float));
	r->loop(&b->ladder);
	return FX_OK;
}

static int climb(struct bench *b, const struct rung *r, struct outcome *out)
{
	const int64_t *n = b->o->matrix;
	fx_fourier_spec spec = {.method = r->method, .type = FX_CF32, .tolerance = r->tolerance, .dims = {n[0], n[1], n[2]}, .scale = 1};
	fx_fourier *f = NULL;
	double begun = fxi_bench_clock_s(CLOCK_MONOTONIC);
	int status = r->loop ? FX_OK : fx_fourier_new(b->m, &spec, &f);

	*out = (struct outcome){.wall_s = (double)INFINITY, .cpu_s = (double)INFINITY};
	do {
		double wall = fxi_bench_clock_s(CLOCK_MONOTONIC), cpu = fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID);

		if (status == FX_OK)
			status = run_once(b, r, f);
		out->cpu_s = fmin(out->cpu_s, fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		out->wall_s = fmin(out->wall_s, fxi_bench_clock_s(CLOCK_MONOTONIC) - wall);
		out->n_runs++;
	} while (status == FX_OK && fxi_bench_clock_s(CLOCK_MONOTONIC) - begun < b->o->seconds);
	if (status == FX_OK)
		out->error = error_of(b, r);
	fx_fourier_free(f);
	return status;
}

static void put_number(JsonBuilder *j, const char *name, double value)
{
	json_builder_set_member_name(j, name);
	json_builder_add_double_value(j, value);
}

static void put_rung(const struct bench *b, const struct rung *r, const struct outcome *o, JsonBuilder *j)
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
	json_builder_set_member_name(j, "runs");
	json_builder_add_int_value(j, o->n_runs);
	json_builder_end_object(j);
}

static int climb_all(struct bench *b, JsonBuilder *j)
{
	double pairs = (double)b->n_samples * (double)b->n_voxels;
	int status = FX_OK;

	printf("F^H D, %lld x %lld x %lld voxels, %lld samples, single precision, library on %d thread%s\n\n", (long long)b->o->matrix[0],
		(long long)b->o->matrix[1], (long long)b->o->matrix[2], (long long)b->n_samples, b->o->n_threads,
		b->o->n_threads == 1 ? "" : "s");
	printf("%-14s %12s %16s %10s\n", "", "Mpairs/s", "a processor s", "error");
	json_builder_set_member_name(j, "rungs");
	json_builder_begin_array(j);
	for (size_t i = 0; i < N_RUNGS && status == FX_OK; i++) {
		struct outcome o;

		if (b->o->library_only && rungs[i].loop)
			continue;
		status = climb(b, &rungs[i], &o);
		if (status != FX_OK)
			break;
		printf("%-14s %12.1f %16.1f %10.1e  %s\n", rungs[i].name, 1e-6 * pairs / o.wall_s, 1e-6 * pairs / o.cpu_s, o.error,
			rungs[i].what);
		fflush(stdout);
		put_rung(b, &rungs[i], &o, j);
	}
	json_builder_end_array(j);
	return status;
}

static int measure(const struct options *o, JsonBuilder *j, fx_error *err)
{
	struct bench b = {.o = o, .n_samples = o->n_samples, .n_voxels = o->matrix[0] * o->matrix[1] * o->matrix[2]};
	int status = fx_math_new("host", o->n_threads, err, &b.m);

	json_builder_set_member_name(j, "matrix");
	json_builder_begin_array(j);
	for (int a = 0; a < 3; a++)
		json_builder_add_int_value(j, o->matrix[a]);
	json_builder_end_array(j);
	json_builder_set_member_name(j, "samples");
	json_builder_add_int_value(j, o->n_samples);
	json_builder_set_member_name(j, "threads");
	json_builder_add_int_value(j, o->n_threads);
	if (status == FX_OK)
		status = allocate(&b, err);
	if (status == FX_OK) {
		fill(&b);
		take_truth(&b);
		status = climb_all(&b, j);
	}
	clear(&b);
	return status;
}

static int measure_and_write(const struct options *o, const char *path)
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
	struct options o = {.matrix = {32, 32, 32}, .n_samples = 4096, .n_threads = 1, .seconds = 0.2};
	char *matrix = NULL, *json = NULL;
	const GOptionEntry entries[] = {
		{"matrix", 'm', 0, G_OPTION_ARG_STRING, &matrix, "Voxels (32,32,32)", "X,Y,Z"},
		{"samples", 's', 0, G_OPTION_ARG_INT, &o.n_samples, "Samples (4096)", "M"},
		{"threads", 't', 0, G_OPTION_ARG_INT, &o.n_threads, "Threads of the library's operations (1)", "N"},
		{"library-only", 'l', 0, G_OPTION_ARG_NONE, &o.library_only, "Leave out the plain loops, which take long on large matrices", NULL},
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
	else
		result = measure_and_write(&o, json);
	g_free(matrix);
	g_free(json);
	return result;
}

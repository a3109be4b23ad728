/* SPDX-License-Identifier: MIT */
/*
 * tune.c - `fornix tune`: the chapter's last kernel in every form that is compiled in, timed on this GPU (its step 4: block size, unrolling,
 * voxels a thread, chunk), and the fastest kept in the cache for this GPU, driver and size of image, where fhd.kernel=tuned finds it.
 */
#include <fornix/fornix.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apps/apps.h"
#include "apps/bench.h"
#include "apps/common.h"
#include "io/cache.h"

static const char summary[] =
	"Times the chapter's direct sum on a GPU in every form that is compiled in - samples in constant or shared memory, chunk,\n"
	"unrolling, voxels a thread, threads a block - and keeps the fastest in the cache, for this GPU and driver and images of about\n"
	"this size (powers of two an axis). fhd.kernel=tuned takes it. fhd.kernel=auto, faster still and exact, needs no tuning.";

static const int blocks[] = {64, 128, 256, 512}, chunks[] = {64, 256, 1024, 2048}, counts[] = {1, 2, 4, 8};
#define N_FORMS 512 /* memory, block, chunk, unroll, voxels */

struct trial {
	fx_direct_plan plan;
	double s;
};

struct bench {
	fx_math *m;
	int64_t matrix[3], n_samples;
	fx_array *k, *mu, *image;  /* where the backend works */
	struct trial trials[N_FORMS];
};

static int fill(struct bench *b)
{
	fx_array *k = NULL, *mu = NULL;
	uint64_t state = 1;
	int status = fx_array_new2(FX_F64, 3, b->n_samples, &k);

	if (status == FX_OK)
		status = fx_array_new2(FX_CF32, b->n_samples, 1, &mu);
	if (status != FX_OK)
		fx_math_fail(b->m, status, "no memory for %lld samples", (long long)b->n_samples);
	for (int64_t i = 0; i < 3 * b->n_samples && status == FX_OK; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		FX_F64_OF(k)[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
		FX_CF32_OF(mu)[i / 3] = (fx_cf32)FX_F64_OF(k)[i];
	}
	if (status == FX_OK)
		status = b->m->ops->upload(b->m, k, &b->k);
	if (status == FX_OK)
		status = b->m->ops->upload(b->m, mu, &b->mu);
	if (status == FX_OK)
		status = b->m->ops->array_new(b->m, FX_CF32, 4, (int64_t[]){b->matrix[0], b->matrix[1], b->matrix[2], 1}, &b->image);
	fx_array_unref(k);
	fx_array_unref(mu);
	return status;
}

static int time_once(struct bench *b, const fx_direct_plan *plan, double *s)
{
	double begun;
	int status = b->m->ops->sync(b->m);

	begun = fxi_bench_clock_s(CLOCK_MONOTONIC);
	if (status == FX_OK)
		status = plan->kernel == FX_DIRECT_AUTO ? b->m->ops->direct_adjoint(b->m, b->k, b->mu, 1, b->image)
			: b->m->ops->direct_ladder(b->m, plan, b->k, b->mu, 1, b->image);
	if (status == FX_OK)
		status = b->m->ops->sync(b->m);
	*s = fxi_bench_clock_s(CLOCK_MONOTONIC) - begun;
	return status;
}

/* Twice, and once more where it may be the best; the first run of a kernel also loads it. */
static int try_all(struct bench *b)
{
	double best = (double)INFINITY;
	int status = FX_OK;

	for (int i = 0; i < N_FORMS && status == FX_OK; i++) {
		struct trial *t = &b->trials[i];

		t->plan = (fx_direct_plan){.kernel = FX_DIRECT_TUNED, .block = blocks[i % 4], .chunk = chunks[i / 4 % 4], .unroll = counts[i / 16 % 4],
			.voxels = counts[i / 64 % 4], .shared = 1 + i / 256};
		t->s = (double)INFINITY;
		for (int run = 0; run < 3 && status == FX_OK; run++) {
			double s;

			if (run == 2 && t->s > 1.1 * best)
				break;
			status = time_once(b, &t->plan, &s);
			t->s = fmin(t->s, s);
		}
		best = fmin(best, t->s);
	}
	return status;
}

static int fastest_first(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;

	return (x->s > y->s) - (x->s < y->s);
}

static void warn(void *arg, const char *text)
{
	(void)arg;
	fxi_apps_say("tune: %s", text);
}

/* Twice, so that it goes to disk: the cache leaves nothing there that is used once. */
static int keep(struct bench *b, const fx_direct_plan *plan)
{
	fxi_cache *cache = NULL;
	fx_array *packed = NULL, *back = NULL;
	char key[80];
	int status = fx_direct_tuned_key(b->m, b->matrix, key);

	if (status == FX_OK)
		status = fxi_cache_open(NULL, FXI_CACHE_DEFAULT_BYTES, b->m->err, &cache);
	if (status != FX_OK)
		return status;
	cache->warn = warn;
	status = fx_direct_plan_pack(plan, &packed);
	if (status != FX_OK)
		fx_math_fail(b->m, status, "no memory for a plan");
	if (status == FX_OK)
		status = cache->put(cache, key, packed, b->m->err);
	if (status == FX_OK)
		status = cache->get(cache, key, &back, b->m->err);
	fx_array_unref(packed);
	fx_array_unref(back);
	cache->close(cache);
	return status;
}

static void print_trial(const struct bench *b, const struct trial *t)
{
	double pairs = (double)b->n_samples * (double)b->matrix[0] * (double)b->matrix[1] * (double)b->matrix[2];

	printf("%10.4f %10.3f %8d %8d %8d %8d  %s\n", 1e3 * t->s, 1e-12 * pairs / t->s, t->plan.block, t->plan.unroll, t->plan.voxels, t->plan.chunk,
		t->plan.shared == 1 ? "shared" : "constant");
}

static int tune(struct bench *b)
{
	char what[256] = "";
	struct trial exact = {.s = (double)INFINITY};
	int status = FX_OK;

	if (!b->m->ops->direct_ladder)
		return fx_math_fail(b->m, FX_ENOTSUP, "the backend '%s' has nothing to tune: its sums choose their instructions by themselves",
			b->m->ops->name);
	if (b->m->ops->describe)
		status = b->m->ops->describe(b->m, what, sizeof what);
	if (status == FX_OK)
		status = fill(b);
	if (status == FX_OK)
		status = try_all(b);
	for (int run = 0; run < 3 && status == FX_OK; run++) {
		double s;

		status = time_once(b, &exact.plan, &s);
		exact.s = fmin(exact.s, s);
	}
	if (status != FX_OK)
		return status;
	qsort(b->trials, N_FORMS, sizeof *b->trials, fastest_first);
	printf("%s\n%lld x %lld x %lld voxels, %lld samples, %d forms; the five fastest, and the slowest:\n\n", what, (long long)b->matrix[0],
		(long long)b->matrix[1], (long long)b->matrix[2], (long long)b->n_samples, N_FORMS);
	printf("%10s %10s %8s %8s %8s %8s  %s\n", "ms", "Tpairs/s", "block", "unroll", "voxels", "chunk", "samples in");
	for (int i = 0; i < 5; i++)
		print_trial(b, &b->trials[i]);
	print_trial(b, &b->trials[N_FORMS - 1]);
	printf("\nfor comparison, kernel=auto takes %.4f ms\n", 1e3 * exact.s);
	return keep(b, &b->trials[0].plan);
}

int fxi_app_tune(int argc, char **argv)
{
	struct bench *b = g_new0(struct bench, 1);
	char *matrix = NULL, *backend = NULL;
	int n_samples = 1024, result = FXI_EXIT_USAGE;
	fx_error err = {0};
	const GOptionEntry entries[] = {
		{"backend", 'b', 0, G_OPTION_ARG_STRING, &backend, "cuda (default) or auto", "NAME"},
		{"matrix", 'm', 0, G_OPTION_ARG_STRING, &matrix, "Voxels of the images to come (128,128,128)", "X,Y,Z"},
		{"samples", 's', 0, G_OPTION_ARG_INT, &n_samples, "Samples to time it with (1024)", "M"},
		{NULL, 0, 0, 0, NULL, NULL, NULL},
	};

	for (int a = 0; a < 3; a++)
		b->matrix[a] = 128;
	if (!fxi_apps_options("", summary, entries, 0, 0, &argc, &argv))
		;
	else if (matrix && !fxi_bench_matrix(matrix, b->matrix))
		fxi_apps_say("tune: --matrix %s: three numbers from 1 to 4096 belong there, as in 128,128,128", matrix);
	else if (n_samples < 1)
		fxi_apps_say("tune: --samples is 1 or more");
	else {
		b->n_samples = n_samples;
		result = fx_math_new(backend ? backend : "cuda", 0, &err, &b->m) == FX_OK && tune(b) == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
		if (result == FXI_EXIT_FAILED)
			fxi_apps_say("tune: %s", err.text);
	}
	fx_array_unref(b->k);
	fx_array_unref(b->mu);
	fx_array_unref(b->image);
	fx_math_free(b->m);
	g_free(b);
	g_free(matrix);
	g_free(backend);
	return result;
}

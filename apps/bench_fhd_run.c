/* SPDX-License-Identifier: MIT */
/*
 * bench_fhd_run.c - one problem for every way to F^H D, and the time and error of one of them. On a GPU the exact sums are timed on
 * arrays that are there already; a NUFFT as the library's users call it, samples from the host.
 */
#include "apps/bench_fhd.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "apps/bench.h"
#include "io/cache.h"

/* Voxels at which the sum in double is taken; an odd step through the image meets all of its rows and columns. */
#define N_CHECKED 509

/* splitmix64 (Steele et al. 2014), uniform in [-0.5, 0.5). */
static double next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 - 0.5;
}

void fxi_fhd_end(fxi_fhd *b)
{
	fx_array *all[] = {b->k, b->mu, b->wide, b->there_k, b->there_mu, b->there_wide, b->image};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	fx_free(b->memory);
	fx_free(b->truth);
	fx_math_free(b->m);
}

static int allocate(fxi_fhd *b, fx_error *err)
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
		fx_array_new2(FX_CF32, b->n_samples, 1, &b->mu) != FX_OK || fx_array_new2(FX_CF64, b->n_samples, 1, &b->wide) != FX_OK)
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
static void fill(fxi_fhd *b)
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
		FX_CF64_OF(b->wide)[m] = ((double)l->r_phi[m] - I * (double)l->i_phi[m]) * ((double)l->r_d[m] + I * (double)l->i_d[m]);
		FX_CF32_OF(b->mu)[m] = (l->r_phi[m] - (fx_cf32)I * l->i_phi[m]) * (l->r_d[m] + (fx_cf32)I * l->i_d[m]);
	}
	for (int64_t v = 0; v < b->n_voxels; v++) {
		l->x[v] = (float)(v % n[0] - n[0] / 2);
		l->y[v] = (float)(v / n[0] % n[1] - n[1] / 2);
		l->z[v] = (float)(v / n[0] / n[1] - n[2] / 2);
	}
}

static void take_truth(fxi_fhd *b)
{
	const fxi_ladder *l = &b->ladder;
	const double two_pi = 2 * acos(-1);

	for (int64_t i = 0; i < b->n_checked; i++) {
		int64_t v = i * b->step;
		double _Complex sum = 0;

		for (int64_t m = 0; m < b->n_samples; m++) {
			const double *k = FX_F64_OF(b->k) + 3 * m;
			double cycles = k[0] * (double)l->x[v] + k[1] * (double)l->y[v] + k[2] * (double)l->z[v];

			sum += FX_CF64_OF(b->wide)[m] * cexp(I * two_pi * remainder(cycles, 1));
		}
		b->truth[i] = sum;
	}
}

int fxi_fhd_begin(const fxi_fhd_options *o, fx_error *err, fxi_fhd *b)
{
	int status;

	*b = (fxi_fhd){.o = o, .n_samples = o->n_samples, .n_voxels = o->matrix[0] * o->matrix[1] * o->matrix[2]};
	status = fx_math_new(o->backend, o->n_threads, err, &b->m);
	if (status == FX_OK)
		status = allocate(b, err);
	if (status != FX_OK)
		return status;
	fill(b);
	take_truth(b);
	b->device = !fx_math_on_host(b->m);
	if (b->device)
		status = b->m->ops->upload(b->m, b->k, &b->there_k);
	if (b->device && status == FX_OK)
		status = b->m->ops->upload(b->m, b->mu, &b->there_mu);
	if (b->device && status == FX_OK)
		status = b->m->ops->upload(b->m, b->wide, &b->there_wide);
	return status;
}

static void compare(const fxi_fhd *b, const fxi_fhd_rung *r, fxi_fhd_outcome *out)
{
	double away = 0, whole = 0, peak = 0;

	for (int64_t i = 0; i < b->n_checked; i++) {
		int64_t v = i * b->step;
		double _Complex got = r->loop ? (double)b->ladder.r_out[v] + I * (double)b->ladder.i_out[v]
			: r->is_double ? FX_CF64_OF(b->image)[v] : (double _Complex)FX_CF32_OF(b->image)[v];
		double _Complex off = got - b->truth[i];

		away += creal(off) * creal(off) + cimag(off) * cimag(off);
		whole += creal(b->truth[i]) * creal(b->truth[i]) + cimag(b->truth[i]) * cimag(b->truth[i]);
		peak = fmax(peak, cabs(b->truth[i]));
	}
	out->error = sqrt(away / whole);
	out->psnr_db = 20 * log10(peak / sqrt(away / (double)b->n_checked));
}

/* What `fornix tune` kept, into a plan that asks for it and says nothing else. */
static int take_tuned(fxi_fhd *b, fx_direct_plan *plan)
{
	fxi_cache *cache = NULL;
	fx_array *kept = NULL;
	char key[80];
	int status;

	if (plan->kernel != FX_DIRECT_TUNED || plan->block)
		return FX_OK;
	status = fx_direct_tuned_key(b->m, b->o->matrix, key);
	if (status == FX_OK)
		status = fxi_cache_open(NULL, FXI_CACHE_DEFAULT_BYTES, b->m->err, &cache);
	if (status == FX_OK)
		status = cache->get(cache, key, &kept, b->m->err);
	if (status == FX_OK && kept && !fx_direct_plan_unpack(kept, plan))
		plan->kernel = FX_DIRECT_TUNED;
	fx_array_unref(kept);
	if (cache)
		cache->close(cache);
	return status;
}

static int apply(fxi_fhd *b, const fxi_fhd_rung *r, const fx_direct_plan *plan, fx_array *image)
{
	const fx_backend *ops = b->m->ops;
	const fx_array *mu = r->is_double ? b->there_wide : b->there_mu;
	int status;

	if (plan->kernel != FX_DIRECT_AUTO)
		status = ops->direct_ladder(b->m, plan, b->there_k, mu, 1, image);
	else if (r->method == FX_FOURIER_DIRECT)
		status = ops->direct_adjoint(b->m, b->there_k, mu, 1, image);
	else
		status = ops->separable_adjoint(b->m, b->there_k, mu, 1, image);
	return status == FX_OK ? ops->sync(b->m) : status;
}

/* An exact sum on arrays that are there; the image is zeroed outside of the time. */
static int run_there(fxi_fhd *b, const fxi_fhd_rung *r, const fx_direct_plan *plan, double *wall_s)
{
	const int64_t *n = b->o->matrix;
	fx_array *image = NULL, *back = NULL;
	int status = b->m->ops->array_new(b->m, r->is_double ? FX_CF64 : FX_CF32, 4, (int64_t[]){n[0], n[1], n[2], 1}, &image);

	if (status == FX_OK)
		status = b->m->ops->sync(b->m);
	*wall_s = fxi_bench_clock_s(CLOCK_MONOTONIC);
	if (status == FX_OK)
		status = apply(b, r, plan, image);
	*wall_s = fxi_bench_clock_s(CLOCK_MONOTONIC) - *wall_s;
	if (status == FX_OK)
		status = b->m->ops->download(b->m, image, &back);
	if (status == FX_OK)
		fx_slot_take(&b->image, back);
	fx_array_unref(image);
	return status;
}

static int run_here(fxi_fhd *b, const fxi_fhd_rung *r, fx_fourier *f, double *wall_s)
{
	fx_array *image = NULL, *back = NULL;
	int status = FX_OK;

	*wall_s = fxi_bench_clock_s(CLOCK_MONOTONIC);
	if (r->loop) {
		memset(b->ladder.r_out, 0, (size_t)b->n_voxels * sizeof(float));
		memset(b->ladder.i_out, 0, (size_t)b->n_voxels * sizeof(float));
		r->loop(&b->ladder);
	} else {
		status = fx_fourier_adjoint(f, b->k, b->mu, &image);
		if (status == FX_OK)
			status = b->m->ops->sync(b->m);
	}
	*wall_s = fxi_bench_clock_s(CLOCK_MONOTONIC) - *wall_s;
	if (status == FX_OK && !r->loop)
		status = b->m->ops->download(b->m, image, &back);
	if (status == FX_OK && !r->loop)
		fx_slot_take(&b->image, back);
	fx_array_unref(image);
	return status;
}

int fxi_fhd_climb(fxi_fhd *b, const fxi_fhd_rung *r, fxi_fhd_outcome *out)
{
	const int64_t *n = b->o->matrix;
	fx_fourier_spec spec = {.method = r->method, .type = FX_CF32, .tolerance = r->tolerance, .dims = {n[0], n[1], n[2]}, .scale = 1};
	bool there = b->device && !r->loop && r->method != FX_FOURIER_NUFFT;
	fx_direct_plan plan = r->plan;
	fx_fourier *f = NULL;
	double begun = fxi_bench_clock_s(CLOCK_MONOTONIC), wall;
	int status = r->loop || there ? take_tuned(b, &plan) : fx_fourier_new(b->m, &spec, &f);

	*out = (fxi_fhd_outcome){.wall_s = (double)INFINITY, .cpu_s = (double)INFINITY};
	do {
		double cpu = fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID);

		if (status == FX_OK)
			status = there ? run_there(b, r, &plan, &wall) : run_here(b, r, f, &wall);
		if (status != FX_OK)
			break;
		out->cpu_s = fmin(out->cpu_s, fxi_bench_clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		out->wall_s = fmin(out->wall_s, wall);
		out->n_runs++;
	} while (fxi_bench_clock_s(CLOCK_MONOTONIC) - begun < b->o->seconds);
	if (status == FX_OK)
		compare(b, r, out);
	fx_fourier_free(f);
	return status;
}

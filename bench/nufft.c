/* SPDX-License-Identifier: MIT */
/*
 * nufft.c - a backend's NUFFT, step by step: sorting a trajectory, type 1 (samples to image) and type 2, at tolerances of 1e-3 and
 * 1e-5, 524,288 and 4,194,304 samples of radial spokes on 128^3 voxels, one coil and eight; and Q's grid, real and 256^3. Prints one
 * JSON object a line; bench/nufft_peer.py measures cuFINUFFT in the same way. Errors are l2, against a NUFFT in double at 1e-8.
 * usage: bench_nufft [BACKEND [SPOKES TOLERANCE COILS]]: all of it, or one case (2048 spokes are 524,288 samples; 0
 * coils: Q's grid)
 */
#include "bench.h"

#include <math.h>
#include <string.h>

#define ROUNDS 9
#define IN_A_ROW 4

static fx_math *m;

struct job {
	const fx_fine_grid *grid;
	void *points;
	int64_t coils;
	fx_array *k, *samples, *image, *fine;
};

/* Milliseconds of one, the median of rounds of several in a row between synchronisations. */
static double ms(void (*body)(struct job *), struct job *j)
{
	double t[ROUNDS];

	for (int i = -2; i < ROUNDS; i++) {
		double start;

		check(m->ops->sync(m));
		start = now();
		for (int r = 0; r < IN_A_ROW; r++)
			body(j);
		check(m->ops->sync(m));
		if (i >= 0)
			t[i] = 1e3 * (now() - start) / IN_A_ROW;
	}
	qsort(t, ROUNDS, sizeof *t, by_value);
	return t[ROUNDS / 2];
}

static void set_points(struct job *j)
{
	m->ops->points_free(m, j->points);
	check(m->ops->points_new(m, j->grid, j->k, &j->points));
}

static fx_array *fine_of(const struct job *j)
{
	const fx_fine_grid *g = j->grid;
	fx_array *fine;
	int type = g->real ? (g->type == FX_CF32 ? FX_F32 : FX_F64) : g->type;

	check(m->ops->array_new(m, type, 4, (int64_t[]){g->fine[0], g->fine[1], g->fine[2], j->coils}, &fine));
	return fine;
}

static void spread(struct job *j)
{
	check(m->ops->spread(m, j->grid, j->points, j->samples, j->fine));
}

static void to_image(struct job *j)
{
	check(m->ops->fine_to_image(m, j->grid, j->fine, 1, j->image));
}

static void type1(struct job *j)
{
	fx_array_unref(j->fine);
	j->fine = fine_of(j);
	spread(j);
	to_image(j);
}

static void to_fine(struct job *j)
{
	check(m->ops->image_to_fine(m, j->grid, j->image, 1, j->fine));
}

static void interpolate(struct job *j)
{
	check(m->ops->interpolate(m, j->grid, j->points, j->fine, j->samples));
}

static void type2(struct job *j)
{
	to_fine(j);
	interpolate(j);
}

/* Spokes through the centre in Fibonacci directions. */
static fx_array *radial(int64_t n, int64_t spokes)
{
	int64_t each = 2 * n;
	fx_array *k, *there;

	check(fx_array_new(FX_F64, 2, (int64_t[]){3, spokes * each}, &k));
	for (int64_t s = 0; s < spokes; s++) {
		double z = 1 - (2 * (double)s + 1) / (double)spokes, r = sqrt(1 - z * z), a = 2.399963229728653 * (double)s;

		for (int64_t i = 0; i < each; i++) {
			double t = ((double)i - (double)n) / (double)each;
			double *v = FX_F64_OF(k) + 3 * (s * each + i);

			v[0] = t * r * cos(a);
			v[1] = t * r * sin(a);
			v[2] = t * z;
		}
	}
	check(m->ops->upload(m, k, &there));
	if (there != k)
		fx_array_unref(k);
	return there;
}

/* Numbers without a pattern, the same for real and complex. */
static fx_array *numbers(int type, int64_t n, int64_t coils)
{
	fx_array *single, *a, *there;
	uint64_t state = 7;

	check(fx_array_new(type == FX_F32 || type == FX_F64 ? FX_F32 : FX_CF32, 2, (int64_t[]){n, coils}, &single));
	for (int64_t i = 0; i < single->bytes / 4; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		FX_F32_OF(single)[i] = (float)((double)(state >> 11) / 4503599627370496.0 - 1);
	}
	check(fx_array_convert(single, type, &a));
	fx_array_unref(single);
	check(m->ops->upload(m, a, &there));
	if (there != a)
		fx_array_unref(a);
	return there;
}

/* What the two transforms give, once: images of the samples, and samples of those images. */
static void once(struct job *j, fx_array **image, fx_array **samples)
{
	fx_array *made = NULL;

	*samples = NULL;
	type1(j);
	check(m->ops->download(m, j->image, image));
	if (!j->grid->real) {
		made = j->samples;
		check(m->ops->array_new(m, made->type, 2, made->dims, &j->samples));
		type2(j);
		check(m->ops->download(m, j->samples, samples));
		fx_array_unref(j->samples);
		j->samples = made;
	}
}

static double distance(const fx_array *a, const fx_array *b)
{
	double d2 = 0, n2 = 0;
	fx_array *x, *y;

	check(fx_array_convert(a, FX_CF64, &x));
	check(fx_array_convert(b, FX_CF64, &y));
	for (int64_t i = 0; i < 2 * x->n; i++) {
		double d = FX_F64_OF(x)[i] - FX_F64_OF(y)[i];

		d2 += d * d;
		n2 += FX_F64_OF(y)[i] * FX_F64_OF(y)[i];
	}
	fx_array_unref(x);
	fx_array_unref(y);
	return sqrt(d2 / n2);
}

static void job_new(struct job *j, const fx_fourier *f, fx_array *k, int64_t coils)
{
	const fx_fine_grid *g = fx_fourier_grid(f);

	*j = (struct job){.grid = g, .k = k, .coils = coils};
	set_points(j);
	j->samples = numbers(g->real ? (g->type == FX_CF32 ? FX_F32 : FX_F64) : g->type, k->dims[1], coils);
	check(m->ops->array_new(m, g->type, 4, (int64_t[]){g->dims[0], g->dims[1], g->dims[2], coils}, &j->image));
	j->fine = fine_of(j);
}

static void job_free(struct job *j)
{
	m->ops->points_free(m, j->points);
	fx_array_unref(j->samples);
	fx_array_unref(j->image);
	fx_array_unref(j->fine);
}

static void bench(int64_t n, fx_array *k, double tolerance, int64_t coils, bool real)
{
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = tolerance, .dims = {n, n, n}, .scale = 1,
		.real_samples = real};
	fx_array *image, *samples, *image2, *samples2;
	fx_fourier *f;
	struct job j;

	check(fx_fourier_new(m, &spec, &f));
	job_new(&j, f, k, coils);
	printf("{\"backend\": \"%s\", \"n\": %lld, \"samples\": %lld, \"tolerance\": %g, \"coils\": %lld, \"real\": %s, \"fine\": %lld, \"width\": %d",
		m->ops->name, (long long)n, (long long)k->dims[1], tolerance, (long long)coils, real ? "true" : "false",
		(long long)j.grid->fine[0], j.grid->width);
	printf(", \"set_points_ms\": %.4f", ms(set_points, &j));
	printf(", \"type1_ms_per_coil\": %.4f", ms(type1, &j) / (double)coils);
	printf(", \"spread_ms_per_coil\": %.4f", ms(spread, &j) / (double)coils);
	printf(", \"fine_to_image_ms_per_coil\": %.4f", ms(to_image, &j) / (double)coils);
	if (!real) {
		printf(", \"type2_ms_per_coil\": %.4f", ms(type2, &j) / (double)coils);
		printf(", \"interpolate_ms_per_coil\": %.4f", ms(interpolate, &j) / (double)coils);
	}
	if (coils == 1) {
		fx_fourier_spec exact = spec;

		fx_array_unref(j.samples);
		j.samples = numbers(real ? FX_F32 : FX_CF32, k->dims[1], coils);
		once(&j, &image, &samples);
		job_free(&j);
		fx_fourier_free(f);
		exact.type = FX_CF64;
		exact.tolerance = 1e-8;
		check(fx_fourier_new(m, &exact, &f));
		job_new(&j, f, k, coils);
		once(&j, &image2, &samples2);
		printf(", \"type1_error\": %.2e", distance(image, image2));
		if (!real)
			printf(", \"type2_error\": %.2e", distance(samples, samples2));
		fx_array_unref(image);
		fx_array_unref(image2);
		fx_array_unref(samples);
		fx_array_unref(samples2);
	}
	printf("}\n");
	fflush(stdout);
	job_free(&j);
	fx_fourier_free(f);
}

int main(int argc, char **argv)
{
	const double tolerances[] = {1e-3, 1e-5};

	check(fx_math_new(argc > 1 ? argv[1] : "host", 0, &error, &m));
	if (argc == 5) {
		fx_array *k = radial(128, atoll(argv[2]));

		bench(atoll(argv[4]) ? 128 : 256, k, atof(argv[3]), atoll(argv[4]) ? atoll(argv[4]) : 1, atoll(argv[4]) == 0);
		fx_array_unref(k);
	}
	for (int64_t spokes = 2048; spokes <= 16384 && argc != 5; spokes *= 8) {
		fx_array *k = radial(128, spokes);

		for (int t = 0; t < 2; t++)
			for (int64_t coils = 1; coils <= 8; coils *= 8)
				bench(128, k, tolerances[t], coils, false);
		for (int t = 0; t < 2 && spokes == 2048; t++)
			bench(256, k, tolerances[t], 1, true);
		fx_array_unref(k);
	}
	fx_math_free(m);
	return 0;
}

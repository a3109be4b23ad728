/* SPDX-License-Identifier: MIT */
/*
 * separable.c - the exact sums of a backend against each other: milliseconds, Tpairs/s and the error against a sum in double at some of the
 * voxels (samples), uniform and centre-heavy. usage: bench_separable [BACKEND [N [SAMPLES]]]
 */
#include "bench.h"

#include <complex.h>
#include <math.h>

#define CHECKED 211
#define CHECKED_SAMPLES 13 /* each is a sum over all voxels */

static fx_math *m;

static double next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

typedef int operation(fx_math *m, const fx_array *k, const fx_array *from, double scale, fx_array *to);

static double _Complex at(const fx_array *a, int64_t i)
{
	return a->type == FX_CF32 ? (double _Complex)FX_CF32_OF(a)[i] : FX_CF64_OF(a)[i];
}

/* Relative l2 error over some of the outputs. */
static double error_of(int64_t n, const fx_array *k, const fx_array *from, const fx_array *to, bool forward)
{
	int64_t checked = forward ? CHECKED_SAMPLES : CHECKED;
	double away = 0, whole = 0;

	for (int64_t c = 0; c < checked; c++) {
		int64_t o = c * (to->n / checked);
		double _Complex sum = 0;

		for (int64_t i = 0; i < from->n; i++) {
			int64_t v = forward ? i : o, s = forward ? o : i;
			const double *at_k = FX_F64_OF(k) + 3 * s;
			double cycles = at_k[0] * (double)(v % n - n / 2) + at_k[1] * (double)(v / n % n - n / 2) +
				at_k[2] * (double)(v / n / n - n / 2);

			sum += at(from, i) * cexp((forward ? -2 : 2) * I * acos(-1) * remainder(cycles, 1));
		}
		away += pow(cabs(sum - at(to, o)), 2);
		whole += pow(cabs(sum), 2);
	}
	return sqrt(away / whole);
}

static void measure(const char *name, operation *op, bool forward, int64_t n, const fx_array *k, const fx_array *from, int type, bool checked)
{
	const int64_t dims[4] = {n, n, n, 1};
	fx_array *gk, *gf, *to, *back;
	double best = 1e9, pairs = (double)k->dims[1] * (double)(n * n * n);

	check(m->ops->upload(m, k, &gk));
	check(m->ops->upload(m, from, &gf));
	check(m->ops->array_new(m, type, forward ? 2 : 4, forward ? (int64_t[]){k->dims[1], 1} : dims, &to));
	for (int i = 0; i < 4; i++) {
		double t;

		check(m->ops->sync(m));
		t = now();
		check(op(m, gk, gf, 1, to));
		check(m->ops->sync(m));
		t = now() - t;
		best = i > 0 && t < best ? t : best;
	}
	fx_array_unref(to);
	check(m->ops->array_new(m, type, forward ? 2 : 4, forward ? (int64_t[]){k->dims[1], 1} : dims, &to));
	check(op(m, gk, gf, 1, to));
	check(m->ops->download(m, to, &back));
	printf("{\"what\": \"%s\", \"type\": \"%s\", \"ms\": %.3f, \"Tpairs_per_s\": %.2f", name, fx_type_name(type), 1e3 * best, 1e-12 * pairs / best);
	if (checked)
		printf(", \"relative_error\": %.2e", error_of(n, k, from, back, forward));
	printf("}\n");
	fflush(stdout);
	fx_array_unref(gk);
	fx_array_unref(gf);
	fx_array_unref(to);
	fx_array_unref(back);
}

/* heavy: magnitudes fall with the square of the distance from the centre, over six decades. */
static void fill(int64_t n_samples, bool heavy, fx_array *k, fx_array *samples)
{
	uint64_t seed = 5;

	for (int64_t i = 0; i < n_samples; i++) {
		double *at_k = FX_F64_OF(k) + 3 * i, r, re, im;

		for (int a = 0; a < 3; a++)
			at_k[a] = next_random(&seed);
		r = sqrt(at_k[0] * at_k[0] + at_k[1] * at_k[1] + at_k[2] * at_k[2]);
		r = heavy ? 1 / (1e-6 + r * r) : 1;
		re = r * next_random(&seed);
		im = r * next_random(&seed);
		if (samples->type == FX_CF32)
			FX_CF32_OF(samples)[i] = (fx_cf32)(re + I * im);
		else
			FX_CF64_OF(samples)[i] = re + I * im;
	}
}

int main(int argc, char **argv)
{
	int64_t n = argc > 2 ? atoll(argv[2]) : 128, n_samples = argc > 3 ? atoll(argv[3]) : 131072;

	check(fx_math_new(argc > 1 ? argv[1] : "host", 0, &error, &m));
	for (int type = FX_CF32; type <= FX_CF64; type++) {
		int64_t some = type == FX_CF32 ? n_samples : n_samples / 4;
		fx_array *k, *samples, *image;

		check(fx_array_new2(FX_F64, 3, some, &k));
		check(fx_array_new2(type, some, 1, &samples));
		check(fx_array_new(type, 4, (int64_t[]){n, n, n, 1}, &image));
		for (int64_t i = 0; i < image->n; i++)
			if (type == FX_CF32)
				FX_CF32_OF(image)[i] = (fx_cf32)(sinf((float)(i % 9973)) + (double)I * 0.5);
			else
				FX_CF64_OF(image)[i] = sin((double)(i % 9973)) + I * 0.5;
		fill(some, true, k, samples);
		measure("separable adjoint, centre-heavy", m->ops->separable_adjoint, false, n, k, samples, type, true);
		fill(some, false, k, samples);
		measure("separable adjoint", m->ops->separable_adjoint, false, n, k, samples, type, true);
		measure("separable forward", m->ops->separable_forward, true, n, k, image, type, type == FX_CF32);
		measure("direct adjoint", m->ops->direct_adjoint, false, n, k, samples, type, true);
		measure("direct forward", m->ops->direct_forward, true, n, k, image, type, false);
		fx_array_unref(k);
		fx_array_unref(samples);
		fx_array_unref(image);
	}
	return 0;
}

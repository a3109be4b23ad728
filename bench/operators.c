/* SPDX-License-Identifier: MIT */
/*
 * operators.c - the times of a backend's operators at the sizes of the performance page: 128^3 voxels, 524,288 samples of
 * radial spokes, 8 coils. Prints one JSON object. usage: bench_operators [BACKEND [N]]
 */
#include "bench.h"

#include <math.h>
#include <string.h>

#define ROUNDS 11

static fx_math *m;

struct job {
	fx_fourier *f;
	const fx_array *k, *samples;
	fx_array *image, *kernel, *x, *y;
};

static double median_ms(void (*body)(struct job *), struct job *j)
{
	double t[ROUNDS];

	for (int i = -2; i < ROUNDS; i++) {
		double start;

		check(m->ops->sync(m));
		start = now();
		body(j);
		check(m->ops->sync(m));
		if (i >= 0)
			t[i] = 1e3 * (now() - start);
	}
	qsort(t, ROUNDS, sizeof *t, by_value);
	return t[ROUNDS / 2];
}

static void toeplitz(struct job *j)
{
	check(m->ops->toeplitz_apply(m, j->kernel, j->x, j->y));
}

static void adjoint(struct job *j)
{
	fx_array *image;

	check(fx_fourier_adjoint(j->f, j->k, j->samples, &image));
	fx_array_unref(image);
}

static void forward(struct job *j)
{
	fx_array *samples;

	check(fx_fourier_forward(j->f, j->k, j->x, &samples));
	fx_array_unref(samples);
}

static void dot(struct job *j)
{
	double re, im;

	check(m->ops->dot(m, j->x, j->y, &re, &im));
}

static void kernel(struct job *j)
{
	fx_array *made;

	check(fx_toeplitz_kernel(m, FX_FOURIER_NUFFT, 1e-4, j->x->dims, 1, j->k, NULL, &made));
	fx_array_unref(made);
}

/* Spokes through the centre in Fibonacci directions. */
static fx_array *radial(int64_t n, int64_t spokes)
{
	int64_t each = 2 * n;
	fx_array *k;

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
	return k;
}

static fx_array *upload(fx_array *a)
{
	fx_array *b;

	check(m->ops->upload(m, a, &b));
	fx_array_unref(a);
	return b;
}

static fx_array *host_filled(int n_dims, const int64_t *dims)
{
	fx_array *a;

	check(fx_array_new(FX_CF32, n_dims, dims, &a));
	for (int64_t i = 0; i < 2 * a->n; i++)
		FX_F32_OF(a)[i] = sinf((float)(i % 9973));
	return a;
}

int main(int argc, char **argv)
{
	int64_t n = argc > 2 ? atoll(argv[2]) : 128, coils = 8, dims[4] = {n, n, n, coils};
	const double tolerances[] = {1e-3, 1e-5};
	struct job j = {0};

	check(fx_math_new(argc > 1 ? argv[1] : "host", 0, &error, &m));
	j.k = radial(n, 2048 * n * n / (128 * 128));
	j.x = upload(host_filled(4, dims));
	check(m->ops->array_new(m, FX_CF32, 4, dims, &j.y));
	j.samples = host_filled(2, (int64_t[]){j.k->dims[1], coils});
	check(fx_toeplitz_kernel(m, FX_FOURIER_NUFFT, 1e-4, dims, 1, j.k, NULL, &j.kernel));
	printf("{\"backend\": \"%s\", \"n\": %lld, \"coils\": %lld, \"samples\": %lld", m->ops->name, (long long)n, (long long)coils,
		(long long)j.k->dims[1]);
	printf(", \"toeplitz_ms_per_coil\": %.4f", median_ms(toeplitz, &j) / (double)coils);
	printf(", \"kernel_ms\": %.3f", median_ms(kernel, &j));
	printf(", \"dot_ms\": %.4f", median_ms(dot, &j));
	for (size_t i = 0; i < sizeof tolerances / sizeof tolerances[0]; i++) {
		fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = tolerances[i], .dims = {n, n, n}, .scale = 1};

		check(fx_fourier_new(m, &spec, &j.f));
		printf(", \"adjoint_%g_ms_per_coil\": %.4f", tolerances[i], median_ms(adjoint, &j) / (double)coils);
		printf(", \"forward_%g_ms_per_coil\": %.4f", tolerances[i], median_ms(forward, &j) / (double)coils);
		fx_fourier_free(j.f);
	}
	printf("}\n");
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.c - times one application of the Toeplitz operator. With cf32 N^3 images:
 *
 *   cc -O2 -Iinclude bench/toeplitz.c -Lbuild/lib -Wl,-rpath,build/lib -lfornix -lfftw3f -lm -o build/bench_toeplitz
 *   build/bench_toeplitz N COILS THREADS [plain]
 *
 * "plain" times the textbook instead: FFTW's 3-D transform of a zero-padded volume (one thread), and prints how far
 * apart the two results are.
 */
#include <fornix/fornix.h>

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(fx_array *a)
{
	unsigned seed = 1;

	for (int64_t i = 0; i < a->bytes / 4; i++) {
		seed = seed * 1664525u + 1013904223u;
		((float *)a->data)[i] = (float)(seed >> 8) / 8388608.0f - 1;
	}
}

static void plain(int n, const float *spectrum, const fx_cf32 *x, fx_cf32 *y)
{
	int64_t f = 2 * n, cells = f * f * f;
	fftwf_complex *a = fftwf_alloc_complex((size_t)cells);
	fftwf_plan go = fftwf_plan_dft_3d((int)f, (int)f, (int)f, a, a, FFTW_FORWARD, FFTW_ESTIMATE);
	fftwf_plan back = fftwf_plan_dft_3d((int)f, (int)f, (int)f, a, a, FFTW_BACKWARD, FFTW_ESTIMATE);
	double best = 1e9;

	for (int repeat = 0; repeat < 3; repeat++) {
		double start = now(), took;

		memset(a, 0, (size_t)cells * sizeof *a);
		for (int64_t z = 0; z < n; z++)
			for (int64_t r = 0; r < n; r++)
				memcpy(a + (z * f + r) * f, x + (z * n + r) * n, (size_t)n * sizeof *x);
		fftwf_execute(go);
		for (int64_t i = 0; i < cells; i++)
			a[i] *= spectrum[i] / (float)cells;
		fftwf_execute(back);
		for (int64_t z = 0; z < n; z++)
			for (int64_t r = 0; r < n; r++)
				memcpy(y + (z * n + r) * n, a + (z * f + r) * f, (size_t)n * sizeof *x);
		took = now() - start;
		best = took < best ? took : best;
	}
	printf("plain padded FFTW: %.1f ms a coil\n", 1e3 * best);
	fftwf_destroy_plan(go);
	fftwf_destroy_plan(back);
	fftwf_free(a);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 128, coils = argc > 2 ? atoi(argv[2]) : 1;
	int threads = argc > 3 ? atoi(argv[3]) : 0, repeats = n > 100 ? 5 : 20;
	fx_error error = {0};
	fx_math *m;
	fx_array *x, *y, *s, *reference;
	double best = 1e9;

	if (fx_math_new("host", threads, &error, &m) || fx_array_new4(FX_CF32, n, n, n, coils, &x) ||
		fx_array_new4(FX_CF32, n, n, n, coils, &y) || fx_array_new4(FX_CF32, n, n, n, 1, &reference) ||
		fx_array_new(FX_F32, 3, (int64_t[]){2 * n, 2 * n, 2 * n}, &s)) {
		fprintf(stderr, "no memory\n");
		return 1;
	}
	fill(x);
	fill(s);
	for (int i = 0; i < repeats; i++) {
		double start = now(), took;

		if (m->ops->toeplitz_apply(m, s, x, y)) {
			fprintf(stderr, "%s\n", error.text);
			return 1;
		}
		took = now() - start;
		best = took < best ? took : best;
	}
	printf("%d^3, %d coils, %d threads: %.1f ms, %.1f ms a coil\n", n, coils, m->n_threads, 1e3 * best,
		1e3 * best / coils);
	if (argc > 4 && strcmp(argv[4], "plain") == 0) {
		double above = 0, below = 0;

		plain(n, FX_F32_OF(s), FX_CF32_OF(x), FX_CF32_OF(reference));
		for (int64_t i = 0; i < reference->n; i++) {
			above += pow(cabsf(FX_CF32_OF(reference)[i] - FX_CF32_OF(y)[i]), 2);
			below += pow(cabsf(FX_CF32_OF(reference)[i]), 2);
		}
		printf("relative difference %.2g\n", sqrt(above / below));
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Whitening and compression matrices. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <fornix/fornix.h>
#include <math.h>
#include <string.h>

#define N 6
#define SAMPLES 4001

/* Correlated samples {SAMPLES, N}: a fixed lower triangle times independent ones. Coil `twin` repeats coil 0. */
static fx_array *correlated(int twin, int dead)
{
	uint64_t state = 11;
	fx_array *x;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, SAMPLES, N, &x), FX_OK);
	for (int64_t i = 0; i < SAMPLES; i++) {
		fx_cf64 w[N];

		for (int c = 0; c < N; c++) {
			double part[2];

			for (int p = 0; p < 2; p++) {
				state = state * 6364136223846793005u + 1442695040888963407u;
				part[p] = (double)(state >> 40) / (1 << 24) - 0.5;
			}
			w[c] = part[0] + I * part[1];
			fx_cf64 sum = w[c] * (1 + c);
			for (int b = 0; b < c; b++)
				sum += w[b] * (0.3 * b - 0.2 * I * c);
			FX_CF32_OF(x)[i + SAMPLES * c] = c == dead ? 0 : (fx_cf32)(1e-6 * sum);
		}
		if (twin > 0)
			FX_CF32_OF(x)[i + SAMPLES * twin] = FX_CF32_OF(x)[i];
	}
	return x;
}

static fx_array *gram_of(fx_math *m, const fx_array *x, double factor)
{
	fx_array *g;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, N, N, &g), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_gram_add(m, x, g), FX_OK);
	for (int i = 0; i < N * N; i++)
		FX_CF64_OF(g)[i] *= factor;
	return g;
}

static fx_array *mixed(fx_math *m, const fx_array *matrix, const fx_array *x)
{
	fx_array *y;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, SAMPLES, matrix->dims[1], &y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(m->ops->coil_mix(m, matrix, x, y), FX_OK);
	return y;
}

static void whitened_noise_has_unit_covariance(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	fx_array *x = correlated(0, -1), *c = gram_of(&m, x, 1.0 / SAMPLES), *w, *y, *unit;
	double worst = 0;

	CU_ASSERT_EQUAL_FATAL(fx_whitening_matrix(&m, c, &w), FX_OK);
	y = mixed(&m, w, x);
	unit = gram_of(&m, y, 1.0 / SAMPLES);
	for (int i = 0; i < N * N; i++)
		worst = fmax(worst, cabs(FX_CF64_OF(unit)[i] - (i % (N + 1) == 0)));
	CU_ASSERT(worst < 1e-5); /* the samples are single precision; the covariance's condition is about 100 */
	fx_array_unref(unit);
	fx_array_unref(y);
	fx_array_unref(w);
	fx_array_unref(c);
	fx_array_unref(x);
}

static void a_gram_matrix_sums(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	fx_array *x, *g;
	fx_cf32 values[] = {1 + 2 * I, 3, -I, 2, 1 + I, 4 - I};

	/* three samples of two coils: gram[a + n b] = sum x_a conj(x_b), added to what is there */
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 3, 2, &x), FX_OK);
	memcpy(x->data, values, sizeof values);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, 2, 2, &g), FX_OK);
	CU_ASSERT_EQUAL(fx_gram_add(&m, x, g), FX_OK);
	CU_ASSERT_EQUAL(fx_gram_add(&m, x, g), FX_OK);
	CU_ASSERT(FX_CF64_OF(g)[0] == 30);
	CU_ASSERT(FX_CF64_OF(g)[3] == 46);
	CU_ASSERT(FX_CF64_OF(g)[0 + 2 * 1] == 2 * (2 * (1 + 2 * I) + 3 * (1 - I) + (-I) * (4 + I)));
	CU_ASSERT(FX_CF64_OF(g)[1 + 2 * 0] == conj(FX_CF64_OF(g)[0 + 2 * 1]));
	fx_array_unref(x);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 0, 2, &x), FX_OK);
	CU_ASSERT_EQUAL(fx_gram_add(&m, x, g), FX_OK);
	CU_ASSERT(FX_CF64_OF(g)[0] == 30);
	fx_array_unref(x);
	fx_array_unref(g);
}

static void coils_that_cannot_be_whitened_are_named(void)
{
	fx_error dead = {0}, twin = {0}, broken = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2};
	fx_array *x, *c, *w;

	m.err = &dead;
	x = correlated(0, 3);
	c = gram_of(&m, x, 1);
	CU_ASSERT_EQUAL(fx_whitening_matrix(&m, c, &w), FX_EDATA);
	CU_ASSERT_PTR_NULL(w);
	CU_ASSERT_PTR_NOT_NULL(strstr(dead.text, "coil 3"));
	fx_array_unref(x);
	fx_array_unref(c);
	m.err = &twin;
	x = correlated(4, -1);
	c = gram_of(&m, x, 1);
	CU_ASSERT_EQUAL(fx_whitening_matrix(&m, c, &w), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(twin.text, "coil 4"));
	m.err = &broken;
	FX_CF64_OF(c)[2] = NAN;
	CU_ASSERT_EQUAL(fx_whitening_matrix(&m, c, &w), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(broken.text, "coil 2"));
	fx_array_unref(x);
	fx_array_unref(c);
}

static void compression_keeps_what_it_says(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	fx_array *x = correlated(0, -1), *g = gram_of(&m, x, 1), *matrix, *y, *after;
	double total = 0, kept, kept_all, sum = 0;

	for (int i = 0; i < N; i++)
		total += creal(FX_CF64_OF(g)[i * (N + 1)]);
	CU_ASSERT_EQUAL_FATAL(fx_compression_matrix(&m, g, 3, 0, &matrix, &kept), FX_OK);
	CU_ASSERT_EQUAL_FATAL(matrix->dims[1], 3);
	y = mixed(&m, matrix, x);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, 3, 3, &after), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_gram_add(&m, y, after), FX_OK);
	for (int a = 0; a < 3; a++) {
		sum += creal(FX_CF64_OF(after)[4 * a]);
		for (int b = 0; b < a; b++) /* principal components do not correlate: single precision of the samples */
			CU_ASSERT(cabs(FX_CF64_OF(after)[a + 3 * b]) < 1e-6 * total);
	}
	CU_ASSERT(creal(FX_CF64_OF(after)[0]) >= creal(FX_CF64_OF(after)[4]));
	CU_ASSERT(fabs(sum / total - kept) < 1e-6);
	fx_array_unref(after);
	fx_array_unref(y);
	fx_array_unref(matrix);
	/* the same energy asks for as many; a little more for one more; all of it for all */
	CU_ASSERT_EQUAL_FATAL(fx_compression_matrix(&m, g, 0, kept - 1e-9, &matrix, &kept_all), FX_OK);
	CU_ASSERT_EQUAL(matrix->dims[1], 3);
	fx_array_unref(matrix);
	CU_ASSERT_EQUAL_FATAL(fx_compression_matrix(&m, g, 0, kept + 1e-9, &matrix, &kept_all), FX_OK);
	CU_ASSERT_EQUAL(matrix->dims[1], 4);
	fx_array_unref(matrix);
	CU_ASSERT_EQUAL_FATAL(fx_compression_matrix(&m, g, 99, 0, &matrix, &kept_all), FX_OK);
	CU_ASSERT_EQUAL(matrix->dims[1], N);
	CU_ASSERT(fabs(kept_all - 1) < 1e-12);
	fx_array_unref(matrix);
	CU_ASSERT_EQUAL(fx_compression_matrix(&m, g, 0, 1.5, &matrix, &kept_all), FX_EINVAL);
	CU_ASSERT_EQUAL(fx_compression_matrix(&m, g, 0, NAN, &matrix, &kept_all), FX_EINVAL);
	memset(g->data, 0, (size_t)g->bytes);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_compression_matrix(&m, g, 2, 0, &matrix, &kept_all), FX_EDATA);
	CU_ASSERT_PTR_NULL(matrix);
	fx_array_unref(g);
	fx_array_unref(x);
}

static CU_TestInfo tests[] = {
	{"whitened noise has unit covariance", whitened_noise_has_unit_covariance},
	{"a Gram matrix sums", a_gram_matrix_sums},
	{"coils that cannot be whitened are named", coils_that_cannot_be_whitened_are_named},
	{"compression keeps what it says", compression_keeps_what_it_says},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_coil_matrices = {"coil_matrices", NULL, NULL, NULL, NULL, tests};

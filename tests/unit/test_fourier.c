/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "plain_sums.h"

static const struct {
	int64_t dims[3], n_samples, n_coils;
} cases[] = {
	{{16, 16, 16}, 500, 1}, {{15, 9, 4}, 300, 3}, {{32, 1, 1}, 70, 1}, {{31, 33, 1}, 777, 2}, {{8, 8, 8}, 1, 1}, {{1, 5, 40}, 90, 9},
	{{1, 1, 1}, 3, 1}, {{7, 6, 5}, 0, 2}, {{2, 3, 1}, 40, 1}, {{64, 2, 3}, 200, 1}, {{1, 1, 100}, 50, 2},
};
#define N_CASES (sizeof cases / sizeof cases[0])

static const struct {
	int method, type;
	double tolerance;
} methods[] = {
	{FX_FOURIER_DIRECT, FX_CF32, 2e-6},
	{FX_FOURIER_DIRECT, FX_CF64, 1e-13},
	{FX_FOURIER_SEPARABLE, FX_CF32, 2e-6},
	{FX_FOURIER_SEPARABLE, FX_CF64, 1e-13},
	{FX_FOURIER_NUFFT, FX_CF32, 1e-2},
	{FX_FOURIER_NUFFT, FX_CF32, 1e-3},
	{FX_FOURIER_NUFFT, FX_CF32, 1e-4},
	{FX_FOURIER_NUFFT, FX_CF32, 1e-5},
	{FX_FOURIER_NUFFT, FX_CF32, 1e-6},
	{FX_FOURIER_NUFFT, FX_CF64, 1e-3},
	{FX_FOURIER_NUFFT, FX_CF64, 1e-6},
	{FX_FOURIER_NUFFT, FX_CF64, 1e-9},
};
#define N_METHODS (sizeof methods / sizeof methods[0])

static fx_fourier *operator_of(fx_math *m, int method, int type, double tolerance, const int64_t *dims)
{
	fx_fourier_spec spec = {.method = method, .type = type, .tolerance = tolerance, .dims = {dims[0], dims[1], dims[2]},
		.scale = 0.3};
	fx_fourier *f = NULL;

	if (fx_fourier_new(m, &spec, &f) != FX_OK)
		CU_FAIL_FATAL("no Fourier operator");
	return f;
}

/* The bound is the method's tolerance itself; exact sums keep to what backend.h's formats give (test_direct.c). */
static void both_ways_keep_the_tolerance(void)
{
	for (size_t i = 0; i < N_CASES; i++)
		for (size_t t = 0; t < N_METHODS; t++) {
			fx_math *m = math_of(2);
			int64_t shape[4] = {cases[i].dims[0], cases[i].dims[1], cases[i].dims[2], cases[i].n_coils};
			fx_fourier *f = operator_of(m, methods[t].method, methods[t].type, methods[t].tolerance, shape);
			fx_array *k = trajectory(cases[i].n_samples, i + 5), *samples, *image, *got = NULL, *expected;

			samples = random_array(methods[t].type, 2, (int64_t[]){cases[i].n_samples, cases[i].n_coils}, i);
			image = random_array(methods[t].type, 4, shape, i + 100);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &got), FX_OK);
			expected = plain_adjoint(k, samples, shape, 0.3);
			CU_ASSERT(distance(got, expected) <= methods[t].tolerance);
			fx_array_unref(got);
			fx_array_unref(expected);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(f, k, image, &got), FX_OK);
			expected = plain_forward(k, image, 0.3);
			CU_ASSERT(distance(got, expected) <= methods[t].tolerance);
			fx_array_unref(got);
			fx_array_unref(expected);
			fx_array_unref(k);
			fx_array_unref(samples);
			fx_array_unref(image);
			fx_fourier_free(f);
			fx_math_free(m);
		}
}

static double _Complex inner(const fx_array *x, const fx_array *y)
{
	double _Complex sum = 0;

	for (int64_t i = 0; i < x->n; i++)
		sum += conj(element_of(x, i)) * element_of(y, i);
	return sum;
}

static double norm(const fx_array *x)
{
	return sqrt(creal(inner(x, x)));
}

/* Transposes share their kernel and their FFT, so even a loose tolerance leaves rounding only. */
static void adjoint_is_the_adjoint(void)
{
	for (size_t i = 0; i < N_CASES; i++)
		for (size_t t = 0; t < N_METHODS; t++) {
			fx_math *m = math_of(2);
			int64_t shape[4] = {cases[i].dims[0], cases[i].dims[1], cases[i].dims[2], cases[i].n_coils};
			fx_fourier *f = operator_of(m, methods[t].method, methods[t].type, methods[t].tolerance, shape);
			fx_array *k = trajectory(cases[i].n_samples, i + 7), *x, *y, *ax = NULL, *ahy = NULL;

			x = random_array(methods[t].type, 4, shape, i + 1);
			y = random_array(methods[t].type, 2, (int64_t[]){cases[i].n_samples, cases[i].n_coils}, i + 2);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(f, k, x, &ax), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, y, &ahy), FX_OK);
			CU_ASSERT(cabs(inner(ax, y) - inner(x, ahy)) <= (methods[t].type == FX_CF32 ? 1e-5 : 1e-13) * norm(ax) * norm(y));
			fx_array_unref(k);
			fx_array_unref(x);
			fx_array_unref(y);
			fx_array_unref(ax);
			fx_array_unref(ahy);
			fx_fourier_free(f);
			fx_math_free(m);
		}
}

/* A trajectory as MRI has it: spokes through the centre, so that some tiles are crowded. */
static fx_array *spokes(int64_t n_spokes, int64_t n)
{
	fx_array *k = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n_spokes * n, &k), FX_OK);
	for (int64_t s = 0; s < n_spokes; s++)
		for (int64_t i = 0; i < n; i++) {
			double r = (double)(i - n / 2) / (double)n, z = 2 * ((double)s + 0.5) / (double)n_spokes - 1;
			double *at = FX_F64_OF(k) + 3 * (s * n + i);

			at[0] = r * sqrt(1 - z * z) * cos(2.4 * (double)s);
			at[1] = r * sqrt(1 - z * z) * sin(2.4 * (double)s);
			at[2] = r * z;
		}
	return k;
}

static fx_array *columns(const fx_array *a, int64_t first, int64_t n)
{
	int64_t dims[2] = {a->dims[0], n}, rows = a->dims[0], coils;
	fx_array *b = NULL;

	if (a->type == FX_F64) { /* trajectory */
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F64, 2, dims, &b), FX_OK);
		memcpy(b->data, FX_F64_OF(a) + rows * first, (size_t)b->bytes);
		return b;
	}
	coils = a->n / rows;
	if (a->n_dims == 1)
		CU_ASSERT_EQUAL_FATAL(fx_array_new1(a->type, n, &b), FX_OK)
	else
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(a->type, n, coils, &b), FX_OK)
	for (int64_t c = 0; c < coils; c++)
		memcpy((char *)b->data + (size_t)(c * n) * fx_type_size(a->type),
			(const char *)a->data + (size_t)(c * rows + first) * fx_type_size(a->type), (size_t)n * fx_type_size(a->type));
	return b;
}

/* All of `samples` in pieces of `step` samples. */
static fx_array *accumulated(fx_fourier *f, const fx_array *k, const fx_array *samples, const fx_array *weights, int64_t step)
{
	fx_accumulator *a = NULL;
	fx_array *image = NULL;
	int64_t n = k->dims[1];

	CU_ASSERT_EQUAL_FATAL(fx_accumulator_new(f, samples->dims[1], &a), FX_OK);
	for (int64_t i = 0; i < n; i += step) {
		int64_t part = n - i < step ? n - i : step;
		fx_array *some_k = columns(k, i, part), *some = columns(samples, i, part), *w = weights ? columns(weights, i, part) : NULL;

		CU_ASSERT_EQUAL(fx_accumulator_add(a, some_k, some, w), FX_OK);
		fx_array_unref(some_k);
		fx_array_unref(some);
		fx_array_unref(w);
	}
	CU_ASSERT_EQUAL_FATAL(fx_accumulator_finish(a, &image), FX_OK);
	return image;
}

static void same_bytes_however_it_is_cut(void)
{
	static const int64_t steps[] = {500, 65536, 131072, 300000};
	const int64_t dims[3] = {9, 8, 7};
	/* More than two chunks, and not a multiple. */
	fx_array *k = spokes(4200, 64), *samples = random_array(FX_CF32, 2, (int64_t[]){k->dims[1], 2}, 3);
	fx_array *weights = random_array(FX_F32, 1, (int64_t[]){k->dims[1]}, 4);

	for (int method = FX_FOURIER_DIRECT; method <= FX_FOURIER_SEPARABLE; method++) {
		fx_array *first = NULL;

		for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
			fx_math *m = math_of((int)i % 3 + 1);
			fx_fourier *f = operator_of(m, method, FX_CF32, 1e-3, dims);
			fx_array *image;

			/* The direct sums take long: one short and one whole cutting will do. */
			if (method == FX_FOURIER_DIRECT && i % 3 != 0)
				;
			else if (!first)
				first = accumulated(f, k, samples, weights, steps[i]);
			else {
				image = accumulated(f, k, samples, weights, steps[i]);
				CU_ASSERT(memcmp(first->data, image->data, (size_t)image->bytes) == 0);
				fx_array_unref(image);
			}
			fx_fourier_free(f);
			fx_math_free(m);
		}
		fx_array_unref(first);
	}
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_array_unref(weights);
}

static void threads_do_not_change_bits(void)
{
	static const int64_t dims[][3] = {{24, 22, 20}, {64, 60, 1}, {200, 1, 1}};
	fx_array *k = spokes(1000, 48), *samples = random_array(FX_CF32, 2, (int64_t[]){k->dims[1], 3}, 3);

	for (size_t d = 0; d < 3; d++) {
		fx_array *first = NULL, *first_samples = NULL;

		for (int t = 1; t <= 3; t++) {
			fx_math *m = math_of(t);
			fx_fourier *f = operator_of(m, FX_FOURIER_NUFFT, FX_CF32, 1e-4, dims[d]);
			fx_array *image = NULL, *back = NULL;

			CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &image), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(f, k, image, &back), FX_OK);
			if (first) {
				CU_ASSERT(memcmp(first->data, image->data, (size_t)image->bytes) == 0);
				CU_ASSERT(memcmp(first_samples->data, back->data, (size_t)back->bytes) == 0);
				fx_array_unref(image);
				fx_array_unref(back);
			} else {
				first = image;
				first_samples = back;
			}
			fx_fourier_free(f);
			fx_math_free(m);
		}
		fx_array_unref(first);
		fx_array_unref(first_samples);
	}
	fx_array_unref(k);
	fx_array_unref(samples);
}

static void weights_multiply(void)
{
	const int64_t dims[3] = {12, 10, 8};
	fx_math *m = math_of(2);
	fx_array *k = trajectory(400, 3), *samples = random_array(FX_CF32, 2, (int64_t[]){400, 2}, 1), *weighted = NULL;
	fx_array *weights = random_array(FX_F32, 1, (int64_t[]){400}, 2), *expected;

	CU_ASSERT_EQUAL_FATAL(fx_array_convert(samples, FX_CF64, &weighted), FX_OK);
	for (int64_t i = 0; i < 800; i++)
		FX_CF64_OF(weighted)[i] *= (double)FX_F32_OF(weights)[i % 400];
	expected = plain_adjoint(k, weighted, dims, 0.3);
	for (int method = FX_FOURIER_DIRECT; method <= FX_FOURIER_SEPARABLE; method++) {
		fx_fourier *f = operator_of(m, method, FX_CF32, 1e-4, dims);
		fx_array *image = accumulated(f, k, samples, weights, 150);

		CU_ASSERT(distance(image, expected) <= (method == FX_FOURIER_NUFFT ? 1e-4 : 2e-6));
		fx_array_unref(image);
		fx_fourier_free(f);
	}
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_array_unref(weighted);
	fx_array_unref(weights);
	fx_array_unref(expected);
	fx_math_free(m);
}

/* Q's case: the transform of real samples, by half of the work. */
static void real_samples_give_the_same(void)
{
	for (size_t i = 0; i < N_CASES; i++)
		for (size_t t = 0; t < N_METHODS; t++) {
			fx_math *m = math_of(2);
			const int64_t *n = cases[i].dims;
			fx_fourier_spec spec = {.method = methods[t].method, .type = methods[t].type, .tolerance = methods[t].tolerance,
				.dims = {n[0], n[1], n[2]}, .scale = 0.3, .real_samples = true};
			fx_array *k = trajectory(cases[i].n_samples, i), *got = NULL, *expected;
			fx_array *samples = random_array(methods[t].type == FX_CF32 ? FX_F32 : FX_F64, 2,
				(int64_t[]){cases[i].n_samples, cases[i].n_coils}, i);
			fx_fourier *f = NULL;

			CU_ASSERT_EQUAL_FATAL(fx_fourier_new(m, &spec, &f), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &got), FX_OK);
			expected = plain_adjoint(k, samples, n, 0.3);
			CU_ASSERT(distance(got, expected) <= methods[t].tolerance);
			fx_array_unref(k);
			fx_array_unref(got);
			fx_array_unref(expected);
			fx_array_unref(samples);
			fx_fourier_free(f);
			fx_math_free(m);
		}
}

static void refusals_explain(void)
{
	fx_math *m = math_of(1);
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = 1e-9, .dims = {16, 16, 16}, .scale = 1};
	fx_fourier *f = NULL;
	fx_accumulator *a = NULL;
	fx_array *k = trajectory(10, 1), *samples = random_array(FX_CF32, 2, (int64_t[]){10, 1}, 1);

	CU_ASSERT_EQUAL(fx_fourier_new(m, &spec, &f), FX_EINVAL);
	CU_ASSERT(strstr(m->err->text, "1e-09") && strstr(m->err->text, "direct"));
	*m->err = (fx_error){0};
	spec.tolerance = 1e-3;
	for (int d = 0; d < 3; d++)
		spec.dims[d] = 100000;
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(m, &spec, &f), FX_OK);
	CU_ASSERT_EQUAL(fx_accumulator_new(f, 8, &a), FX_ENOMEM);
	CU_ASSERT(strstr(m->err->text, "100000") && strstr(m->err->text, "MB"));
	fx_fourier_free(f);
	*m->err = (fx_error){0};
	f = operator_of(m, FX_FOURIER_NUFFT, FX_CF32, 1e-3, (int64_t[]){16, 16, 1});
	CU_ASSERT_EQUAL_FATAL(fx_accumulator_new(f, 2, &a), FX_OK);
	CU_ASSERT_EQUAL(fx_accumulator_add(a, k, samples, NULL), FX_EDATA);
	*m->err = (fx_error){0};
	fx_accumulator_free(a);
	CU_ASSERT_EQUAL_FATAL(fx_accumulator_new(f, 1, &a), FX_OK);
	FX_F64_OF(k)[4] = NAN;
	CU_ASSERT_EQUAL(fx_accumulator_add(a, k, samples, NULL), FX_EDATA);
	CU_ASSERT(strstr(m->err->text, "sample 1 ") != NULL);
	fx_accumulator_free(a);
	fx_fourier_free(f);
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_math_free(m);
}

/* A backend without an operation is refused when the operator is made, and by name, not when a NULL is called. */
static void what_a_backend_lacks(void)
{
	fx_math *m = math_of(1);
	fx_backend poor = *m->ops;
	fx_math handle = *m;
	fx_fourier_spec spec = {.method = FX_FOURIER_SEPARABLE, .type = FX_CF32, .dims = {8, 8, 1}, .scale = 1};
	fx_fourier *f = NULL;

	poor.name = "poor";
	poor.separable_forward = NULL;
	handle.ops = &poor;
	CU_ASSERT_EQUAL(fx_fourier_new(&handle, &spec, &f), FX_ENOTSUP);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT(strstr(m->err->text, "poor") && strstr(m->err->text, "separable"));
	CU_ASSERT_FALSE(fx_math_on_host(&handle));
	CU_ASSERT_TRUE(fx_math_on_host(m));
	spec.method = FX_FOURIER_DIRECT;
	*m->err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_fourier_new(&handle, &spec, &f), FX_OK);
	fx_fourier_free(f);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"what a backend lacks is refused", what_a_backend_lacks},
	{"both ways keep the tolerance, any shape", both_ways_keep_the_tolerance},
	{"the adjoint is the adjoint", adjoint_is_the_adjoint},
	{"the same bytes however the samples are cut", same_bytes_however_it_is_cut},
	{"threads do not change a bit", threads_do_not_change_bits},
	{"weights multiply", weights_multiply},
	{"real samples give the same", real_samples_give_the_same},
	{"refusals explain", refusals_explain},
	CU_TEST_INFO_NULL
};

extern CU_SuiteInfo suite_fourier;
CU_SuiteInfo suite_fourier = {"fourier", NULL, NULL, NULL, NULL, tests};

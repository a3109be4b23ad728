/* SPDX-License-Identifier: MIT */
/*
 * toeplitz: the spectrum and the product on the host against F^H |phi|^2 F as two sums in double, for even, odd,
 * prime, non-cubic and one-voxel sizes.
 */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toeplitz_reference.h"

static fx_error error;
static fx_math *math;

static int set_up(void)
{
	memset(&error, 0, sizeof error);
	return fx_math_new("host", 2, &error, &math);
}

static int tear_down(void)
{
	fx_math_free(math);
	return 0;
}

static fx_array *spectrum_of(const struct problem *p)
{
	fx_array *q = reference_q(p), *spectrum;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &spectrum), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, spectrum), FX_OK);
	fx_array_unref(q);
	return spectrum;
}

static const int64_t shapes[][4] = {
	{6, 5, 4, 3}, {7, 7, 7, 1}, {8, 8, 8, 2}, {1, 1, 1, 2}, {9, 1, 1, 1}, {64, 1, 1, 2}, {1, 12, 1, 1}, {1, 1, 10, 1},
	{21, 18, 1, 3}, {16, 33, 1, 1}, {1, 6, 5, 1}, {5, 1, 6, 2}, {17, 3, 2, 1}, {2, 2, 2, 1}, {34, 20, 3, 1},
	{13, 11, 1, 1}, {3, 4, 19, 1}, {53, 2, 1, 1}, {2, 37, 3, 1},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

/*
 * Q is rounded to 24 bits (6e-8), its spectrum and the two transforms add a few roundings for each factor of the
 * length: 1e-6 has room for that and none for a wrong lag.
 */
#define TOLERANCE 1e-6

static void equals_two_sums(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		struct problem p = problem_new(shapes[s], 40, (unsigned)s);
		fx_array *spectrum = spectrum_of(&p), *x = random_array(FX_CF32, 4, shapes[s], 77), *y, *want;
		double difference;

		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shapes[s], &y), FX_OK);
		CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, spectrum, x, y), FX_OK);
		want = reference_normal(&p, x);
		difference = relative_difference(y, want);
		if (!(difference < TOLERANCE))
			printf("\n    %lld x %lld x %lld: %.2g ", (long long)shapes[s][0], (long long)shapes[s][1],
				(long long)shapes[s][2], difference);
		CU_ASSERT(difference < TOLERANCE);
		fx_array_unref(spectrum);
		fx_array_unref(x);
		fx_array_unref(y);
		fx_array_unref(want);
		problem_free(&p);
	}
}

static void in_place_is_the_same(void)
{
	struct problem p = problem_new(shapes[0], 40, 5);
	fx_array *spectrum = spectrum_of(&p), *x = random_array(FX_CF32, 4, shapes[0], 78), *y;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shapes[0], &y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, spectrum, x, y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, spectrum, x, x), FX_OK);
	CU_ASSERT_EQUAL(memcmp(x->data, y->data, (size_t)x->bytes), 0);
	fx_array_unref(spectrum);
	fx_array_unref(x);
	fx_array_unref(y);
	problem_free(&p);
}

/* Coils are batched by the number of threads, lines are shared out: neither may show. */
static void threads_do_not_matter(void)
{
	static const int64_t sizes[][4] = {{20, 18, 16, 3}, {40, 30, 1, 7}, {6, 5, 4, 9}};

	for (size_t s = 0; s < 3; s++) {
		struct problem p = problem_new(sizes[s], 10, 6);
		fx_array *spectrum = spectrum_of(&p), *x = random_array(FX_CF32, 4, sizes[s], 79), *first = NULL;

		for (int n_threads = 1; n_threads <= 5; n_threads++) {
			fx_math *m;
			fx_array *y;

			CU_ASSERT_EQUAL_FATAL(fx_math_new("host", n_threads, &error, &m), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, sizes[s], &y), FX_OK);
			CU_ASSERT_EQUAL_FATAL(m->ops->toeplitz_apply(m, spectrum, x, y), FX_OK);
			fx_math_free(m);
			if (first) {
				CU_ASSERT_EQUAL(memcmp(first->data, y->data, (size_t)y->bytes), 0);
				fx_array_unref(y);
			} else {
				first = y;
			}
		}
		fx_array_unref(spectrum);
		fx_array_unref(x);
		fx_array_unref(first);
		problem_free(&p);
	}
}

/* <T x, y> = <x, T y>, and <x, T x> = ||F x||^2, which is positive. Sums of 1e-7 roundings: 1e-5 as asked. */
static void hermitian_and_positive(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		struct problem p = problem_new(shapes[s], 60, 7);
		fx_array *spectrum = spectrum_of(&p), *tx, *ty;
		fx_array *x = random_array(FX_CF32, 4, shapes[s], 80), *y = random_array(FX_CF32, 4, shapes[s], 81);
		fx_cf64 a, b, power;

		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shapes[s], &tx), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shapes[s], &ty), FX_OK);
		CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, spectrum, x, tx), FX_OK);
		CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, spectrum, y, ty), FX_OK);
		a = inner_product(tx, y);
		b = inner_product(x, ty);
		power = inner_product(x, tx);
		CU_ASSERT(cabs(a - b) <= 1e-5 * norm_of(tx) * norm_of(y));
		CU_ASSERT(creal(power) > 0);
		CU_ASSERT(fabs(cimag(power)) <= 1e-5 * creal(power));
		fx_array_unref(spectrum);
		fx_array_unref(x);
		fx_array_unref(y);
		fx_array_unref(tx);
		fx_array_unref(ty);
		problem_free(&p);
	}
}

static void refusals(void)
{
	fx_array *x = random_array(FX_CF32, 4, (int64_t[]){4, 3, 2, 1}, 1), *y = random_array(FX_CF32, 4, x->dims, 2);
	fx_array *small = random_array(FX_F32, 3, (int64_t[]){8, 6, 2}, 3);
	fx_array *right = random_array(FX_F32, 3, (int64_t[]){8, 6, 4}, 3), *q = random_array(FX_CF32, 3, right->dims, 4);
	fx_array *none, *nan;

	CU_ASSERT_EQUAL(math->ops->toeplitz_apply(math, small, x, y), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->toeplitz_apply(math, x, x, y), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->toeplitz_spectrum(math, q, small), FX_EINVAL);
	error.status = FX_OK;
	CU_ASSERT_EQUAL(math->ops->toeplitz_spectrum(math, q, right), FX_EDATA); /* random numbers: not Hermitian */
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "Hermitian"));
	memset(&error, 0, sizeof error);
	nan = random_array(FX_CF32, 3, right->dims, 4);
	FX_CF32_OF(nan)[77] = NAN;
	CU_ASSERT_EQUAL(math->ops->toeplitz_spectrum(math, nan, right), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "finite"));
	memset(&error, 0, sizeof error);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, (int64_t[]){4, 3, 2, 0}, &none), FX_OK);
	CU_ASSERT_EQUAL(math->ops->toeplitz_apply(math, right, none, none), FX_OK);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_array_unref(small);
	fx_array_unref(right);
	fx_array_unref(q);
	fx_array_unref(none);
	fx_array_unref(nan);
}

static CU_TestInfo tests[] = {
	{"T x equals F^H |phi|^2 F x as two sums", equals_two_sums},
	{"in place is the same", in_place_is_the_same},
	{"threads do not matter", threads_do_not_matter},
	{"Hermitian and positive", hermitian_and_positive},
	{"what does not fit is refused", refusals},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_toeplitz = {"toeplitz", set_up, tear_down, NULL, NULL, tests};

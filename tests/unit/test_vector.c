/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <string.h>

#include "check.h"

/* Not a multiple of the block or of the lanes, and more than one block. */
#define N 50003

static void dot_is_the_plain_sum(void)
{
	fx_array *x = random_array(FX_CF32, 1, (int64_t[]){N}, 1), *y = random_array(FX_CF32, 1, (int64_t[]){N}, 2);
	double _Complex sum = 0;
	double re[3], im[3];

	for (int64_t i = 0; i < N; i++)
		sum += conj((double _Complex)FX_CF32_OF(x)[i]) * (double _Complex)FX_CF32_OF(y)[i];
	for (int t = 0; t < 3; t++) {
		fx_math *m = math_of(t + 1);

		CU_ASSERT_EQUAL(m->ops->dot(m, x, y, &re[t], &im[t]), FX_OK);
		fx_math_free(m);
	}
	/* Double sums of products that are exact in double: N roundings of 1e-16 relative to sqrt(N). */
	CU_ASSERT_DOUBLE_EQUAL(re[0], creal(sum), 1e-10);
	CU_ASSERT_DOUBLE_EQUAL(im[0], cimag(sum), 1e-10);
	CU_ASSERT(re[0] == re[1] && re[1] == re[2] && im[0] == im[1] && im[1] == im[2]);
	fx_array_unref(x);
	fx_array_unref(y);
}

static void updates_are_the_plain_loops(void)
{
	fx_math *m = math_of(2);
	fx_array *x = random_array(FX_CF32, 1, (int64_t[]){N}, 3), *y = random_array(FX_CF32, 1, (int64_t[]){N}, 4);
	fx_array *z = NULL;
	float worst = 0;

	CU_ASSERT_EQUAL_FATAL(fx_array_convert(y, FX_CF32, &z), FX_OK);
	CU_ASSERT_EQUAL(m->ops->axpy(m, 0.5, x, z), FX_OK);
	for (int64_t i = 0; i < N; i++)
		worst = fmaxf(worst, cabsf(FX_CF32_OF(z)[i] - (0.5f * FX_CF32_OF(x)[i] + FX_CF32_OF(y)[i])));
	memcpy(z->data, y->data, (size_t)y->bytes);
	CU_ASSERT_EQUAL(m->ops->xpay(m, x, -3, z), FX_OK);
	for (int64_t i = 0; i < N; i++)
		worst = fmaxf(worst, cabsf(FX_CF32_OF(z)[i] - (FX_CF32_OF(x)[i] - 3 * FX_CF32_OF(y)[i])));
	memcpy(z->data, y->data, (size_t)y->bytes);
	CU_ASSERT_EQUAL(m->ops->scale(m, 7, z), FX_OK);
	for (int64_t i = 0; i < N; i++)
		worst = fmaxf(worst, cabsf(FX_CF32_OF(z)[i] - 7 * FX_CF32_OF(y)[i]));
	/* One rounding of numbers below 8, fused or not: 2 * 8 * 6e-8. */
	CU_ASSERT(worst <= 1e-6f);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_array_unref(z);
	fx_math_free(m);
}

static void sizes_must_agree(void)
{
	fx_math *m = math_of(1);
	fx_array *x = random_array(FX_CF32, 1, (int64_t[]){4}, 3), *y = random_array(FX_CF32, 1, (int64_t[]){5}, 4);
	double re, im;

	CU_ASSERT_EQUAL(m->ops->dot(m, x, y, &re, &im), FX_EINVAL);
	CU_ASSERT(strstr(m->err->text, "dot") != NULL);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"dot is the plain sum, whatever the threads", dot_is_the_plain_sum},
	{"axpy, xpay and scale are the plain loops", updates_are_the_plain_loops},
	{"sizes must agree", sizes_must_agree},
	CU_TEST_INFO_NULL
};

extern CU_SuiteInfo suite_vector;
CU_SuiteInfo suite_vector = {"vector", NULL, NULL, NULL, NULL, tests};

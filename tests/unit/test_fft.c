/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check.h"

/* The definition along one axis, in double: origin floor(N/2) on both sides. */
static void plain_axis(double _Complex *a, int64_t n, int64_t stride, int sign)
{
	double _Complex *in = fx_alloc(n, sizeof *in);
	double tau = 2 * acos(-1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(in);
	for (int64_t i = 0; i < n; i++)
		in[i] = a[i * stride];
	for (int64_t i = 0; i < n; i++) {
		a[i * stride] = 0;
		for (int64_t j = 0; j < n; j++)
			a[i * stride] += in[j] * cexp(I * (sign * tau * (double)((i - n / 2) * (j - n / 2) % n) / (double)n));
	}
	fx_free(in);
}

static fx_array *plain(const fx_array *a, int sign, double scale)
{
	fx_array *b = NULL;
	int64_t stride = 1;

	CU_ASSERT_EQUAL_FATAL(fx_array_convert(a, FX_CF64, &b), FX_OK);
	for (int d = 0; d < 3; d++) {
		for (int64_t i = 0; i < b->n; i++)
			if (i / stride % b->dims[d] == 0)
				plain_axis(FX_CF64_OF(b) + i, b->dims[d], stride, sign);
		stride *= b->dims[d];
	}
	for (int64_t i = 0; i < b->n; i++)
		FX_CF64_OF(b)[i] *= scale;
	return b;
}

static const int64_t shapes[][4] = {
	{16, 16, 16, 1}, {15, 9, 4, 1}, {32, 1, 1, 1}, {31, 33, 1, 3}, {1, 1, 1, 2}, {1, 17, 2, 1}, {2, 1, 40, 2}, {64, 3, 5, 2},
	{37, 1, 1, 40},
};

static void matches_the_definition(void)
{
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (int type = FX_CF32; type <= FX_CF64; type++)
			for (int sign = -1; sign <= 1; sign += 2) {
				fx_math *m = math_of(2);
				fx_array *a = random_array(type, 4, shapes[s], s + 1), *b = plain(a, sign, 0.25);

				CU_ASSERT_EQUAL(m->ops->fft(m, a, sign, 0.25), FX_OK);
				/* A few roundings of 6e-8 (1.1e-16) grow with sqrt(log n); the plain sum's own with n. */
				CU_ASSERT(distance(a, b) <= (type == FX_CF32 ? 4e-7 : 1e-14));
				fx_array_unref(a);
				fx_array_unref(b);
				fx_math_free(m);
			}
}

static void threads_do_not_change_bits(void)
{
	fx_array *first = NULL;

	for (int t = 1; t <= 3; t++) {
		fx_math *m = math_of(t);
		fx_array *a = random_array(FX_CF32, 4, (int64_t[]){45, 30, 22, 2}, 9);

		CU_ASSERT_EQUAL(m->ops->fft(m, a, 1, 0.5), FX_OK);
		if (first) {
			CU_ASSERT(memcmp(a->data, first->data, (size_t)a->bytes) == 0);
			fx_array_unref(a);
		} else {
			first = a;
		}
		fx_math_free(m);
	}
	fx_array_unref(first);
}

static void empty_and_wrong(void)
{
	fx_math *m = math_of(1);
	fx_array *a = NULL, *b = random_array(FX_F32, 1, (int64_t[]){8}, 1);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 8, 8, 8, 0, &a), FX_OK);
	CU_ASSERT_EQUAL(m->ops->fft(m, a, 1, 1), FX_OK);
	CU_ASSERT_EQUAL(m->ops->fft(m, b, 1, 1), FX_EINVAL);
	fx_array_unref(a);
	fx_array_unref(b);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"matches the definition, any shape, both precisions", matches_the_definition},
	{"threads do not change a bit", threads_do_not_change_bits},
	{"nothing to do, and wrong types", empty_and_wrong},
	CU_TEST_INFO_NULL
};

extern CU_SuiteInfo suite_fft;
CU_SuiteInfo suite_fft = {"fft", NULL, NULL, NULL, NULL, tests};

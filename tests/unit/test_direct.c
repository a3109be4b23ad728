/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check.h"
#include "plain_sums.h"

static const struct {
	int64_t dims[3], n_samples, n_coils;
} cases[] = {
	{{16, 16, 16}, 500, 1}, {{15, 9, 4}, 300, 3}, {{32, 1, 1}, 70, 1}, {{31, 33, 1}, 777, 2}, {{8, 8, 8}, 1, 1}, {{1, 5, 40}, 90, 7},
	{{1, 1, 1}, 3, 1}, {{7, 6, 5}, 0, 2}, {{300, 2, 1}, 65, 5},
};
#define N_CASES (sizeof cases / sizeof cases[0])

static void both_ways_match_the_plain_sums(void)
{
	for (size_t i = 0; i < N_CASES; i++)
		for (int type = FX_CF32; type <= FX_CF64; type++) {
			fx_math *m = math_of(2);
			int64_t shape[4] = {cases[i].dims[0], cases[i].dims[1], cases[i].dims[2], cases[i].n_coils};
			fx_array *k = trajectory(cases[i].n_samples, i + 5);
			fx_array *samples = random_array(type, 2, (int64_t[]){cases[i].n_samples, cases[i].n_coils}, i);
			fx_array *image = random_array(type, 4, shape, i + 100), *before = NULL;
			fx_array *adjoint = plain_adjoint(k, samples, shape, 0.3), *forward = plain_forward(k, image, 0.3);
			/* Single: phases to 2^-33 cycles a voxel and sums of 256 terms; double: 53 bits of both. */
			double limit = type == FX_CF32 ? 2e-6 : 1e-13;

			CU_ASSERT_EQUAL_FATAL(fx_array_convert(image, FX_CF64, &before), FX_OK);
			for (int64_t v = 0; v < before->n; v++)
				FX_CF64_OF(adjoint)[v] += FX_CF64_OF(before)[v];
			CU_ASSERT_EQUAL(m->ops->direct_adjoint(m, k, samples, 0.3, image), FX_OK);
			CU_ASSERT(distance(image, adjoint) <= limit);
			for (int64_t v = 0; v < image->n; v++)
				if (type == FX_CF32)
					FX_CF32_OF(image)[v] = (fx_cf32)FX_CF64_OF(before)[v];
				else
					FX_CF64_OF(image)[v] = FX_CF64_OF(before)[v];
			CU_ASSERT_EQUAL(m->ops->direct_forward(m, k, image, 0.3, samples), FX_OK);
			CU_ASSERT(distance(samples, forward) <= limit);
			fx_array_unref(k);
			fx_array_unref(samples);
			fx_array_unref(image);
			fx_array_unref(before);
			fx_array_unref(adjoint);
			fx_array_unref(forward);
			fx_math_free(m);
		}
}

/* A point far out on a large line: a phase taken in single precision and reduced afterwards would be off by 1e-4. */
static void phases_wrap_exactly(void)
{
	fx_math *m = math_of(1);
	fx_array *k = trajectory(1, 1), *one = NULL, *image = NULL, *expected;

	FX_F64_OF(k)[0] = 0.4999999;
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 1, 1, &one), FX_OK);
	FX_CF32_OF(one)[0] = 1;
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 4096, 1, 1, 1, &image), FX_OK);
	CU_ASSERT_EQUAL(m->ops->direct_adjoint(m, k, one, 1, image), FX_OK);
	expected = plain_adjoint(k, one, image->dims, 1);
	for (int64_t i = 0; i < image->n; i++)
		/* 2048 voxels times half of 2^-32 cycles is 1.5e-6 rad; a few roundings of 6e-8. */
		CU_ASSERT(cabs(element_of(image, i) - element_of(expected, i)) <= 2e-6);
	fx_array_unref(k);
	fx_array_unref(one);
	fx_array_unref(image);
	fx_array_unref(expected);
	fx_math_free(m);
}

static void threads_do_not_change_bits(void)
{
	fx_array *k = trajectory(1000, 3), *samples = random_array(FX_CF32, 2, (int64_t[]){1000, 3}, 4), *first = NULL;

	for (int t = 1; t <= 3; t++) {
		fx_math *m = math_of(t);
		fx_array *image = random_array(FX_CF32, 4, (int64_t[]){70, 6, 5, 3}, 8);

		CU_ASSERT_EQUAL(m->ops->direct_adjoint(m, k, samples, 1, image), FX_OK);
		if (first) {
			CU_ASSERT(memcmp(image->data, first->data, (size_t)image->bytes) == 0);
			fx_array_unref(image);
		} else {
			first = image;
		}
		fx_math_free(m);
	}
	fx_array_unref(first);
	fx_array_unref(k);
	fx_array_unref(samples);
}

static void shapes_must_agree(void)
{
	fx_math *m = math_of(1);
	fx_array *k = trajectory(10, 3), *samples = random_array(FX_CF32, 2, (int64_t[]){11, 1}, 4);
	fx_array *image = random_array(FX_CF32, 4, (int64_t[]){4, 4, 4, 1}, 8);

	CU_ASSERT_EQUAL(m->ops->direct_adjoint(m, k, samples, 1, image), FX_EINVAL);
	CU_ASSERT(strstr(m->err->text, "11") != NULL);
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_array_unref(image);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"both ways match the plain sums, any shape, both precisions", both_ways_match_the_plain_sums},
	{"phases wrap exactly", phases_wrap_exactly},
	{"threads do not change a bit", threads_do_not_change_bits},
	{"shapes must agree", shapes_must_agree},
	CU_TEST_INFO_NULL
};

extern CU_SuiteInfo suite_direct;
CU_SuiteInfo suite_direct = {"direct", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check.h"
#include "plain_sums.h"

static const struct {
	int64_t dims[3], n_samples, n_coils;
} cases[] = {
	{{16, 16, 16}, 500, 1}, {{15, 9, 4}, 300, 3}, {{32, 1, 1}, 70, 1}, {{31, 33, 1}, 777, 2}, {{8, 8, 8}, 1, 1}, {{1, 5, 40}, 90, 7},
	{{1, 1, 1}, 3, 1}, {{7, 6, 5}, 0, 2}, {{300, 2, 1}, 65, 5},
	/* separable: several blocks along every axis, and coils that fill two passes */
	{{10, 40, 41}, 300, 6}, {{150, 140, 1}, 60, 1},
};
#define N_CASES (sizeof cases / sizeof cases[0])

/* The direct sums, and the separable ones. */
static int adjoint_of(fx_math *m, bool separable, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	return (separable ? m->ops->separable_adjoint : m->ops->direct_adjoint)(m, k, samples, scale, image);
}

static int forward_of(fx_math *m, bool separable, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	return (separable ? m->ops->separable_forward : m->ops->direct_forward)(m, k, image, scale, samples);
}

static void copy_into(fx_array *to, const fx_array *cf64)
{
	for (int64_t i = 0; i < to->n; i++)
		if (to->type == FX_CF32)
			FX_CF32_OF(to)[i] = (fx_cf32)FX_CF64_OF(cf64)[i];
		else
			FX_CF64_OF(to)[i] = FX_CF64_OF(cf64)[i];
}

static void both_ways_match_the_plain_sums(void)
{
	for (size_t i = 0; i < N_CASES; i++)
		for (int type = FX_CF32; type <= FX_CF64; type++) {
			fx_math *m = math_of(2);
			int64_t shape[4] = {cases[i].dims[0], cases[i].dims[1], cases[i].dims[2], cases[i].n_coils};
			fx_array *k = trajectory(cases[i].n_samples, i + 5);
			fx_array *samples = random_array(type, 2, (int64_t[]){cases[i].n_samples, cases[i].n_coils}, i);
			fx_array *transformed = random_array(type, 2, (int64_t[]){cases[i].n_samples, cases[i].n_coils}, 1);
			fx_array *image = random_array(type, 4, shape, i + 100), *before = NULL;
			fx_array *adjoint = plain_adjoint(k, samples, shape, 0.3), *forward = plain_forward(k, image, 0.3);
			/* Single: phases to 2^-33 cycles a voxel and sums of 256 terms; double: 53 bits of both. */
			double limit = type == FX_CF32 ? 2e-6 : 1e-13;

			CU_ASSERT_EQUAL_FATAL(fx_array_convert(image, FX_CF64, &before), FX_OK);
			for (int64_t v = 0; v < before->n; v++)
				FX_CF64_OF(adjoint)[v] += FX_CF64_OF(before)[v];
			for (int separable = 0; separable < 2; separable++) {
				copy_into(image, before);
				CU_ASSERT_EQUAL(adjoint_of(m, separable, k, samples, 0.3, image), FX_OK);
				CU_ASSERT(distance(image, adjoint) <= limit);
				copy_into(image, before);
				CU_ASSERT_EQUAL(forward_of(m, separable, k, image, 0.3, transformed), FX_OK);
				CU_ASSERT(distance(transformed, forward) <= limit);
			}
			fx_array_unref(transformed);
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
	expected = plain_adjoint(k, one, image->dims, 1);
	for (int separable = 0; separable < 2; separable++) {
		memset(image->data, 0, (size_t)image->bytes);
		CU_ASSERT_EQUAL(adjoint_of(m, separable, k, one, 1, image), FX_OK);
		for (int64_t i = 0; i < image->n; i++)
			/* 2048 voxels times half of 2^-32 cycles is 1.5e-6 rad; a few roundings of 6e-8. */
			CU_ASSERT(cabs(element_of(image, i) - element_of(expected, i)) <= 2e-6);
	}
	fx_array_unref(k);
	fx_array_unref(one);
	fx_array_unref(image);
	fx_array_unref(expected);
	fx_math_free(m);
}

static void threads_do_not_change_bits(void)
{
	fx_array *k = trajectory(1000, 3), *samples = random_array(FX_CF32, 2, (int64_t[]){1000, 3}, 4);

	for (int separable = 0; separable < 2; separable++) {
		fx_array *first = NULL, *first_samples = NULL;

		for (int t = 1; t <= 3; t++) {
			fx_math *m = math_of(t);
			fx_array *image = random_array(FX_CF32, 4, (int64_t[]){45, 41, 11, 3}, 8);
			fx_array *back = random_array(FX_CF32, 2, (int64_t[]){1000, 3}, 4);

			CU_ASSERT_EQUAL(forward_of(m, separable, k, image, 1, back), FX_OK);
			CU_ASSERT_EQUAL(adjoint_of(m, separable, k, samples, 1, image), FX_OK);
			if (first) {
				CU_ASSERT(memcmp(image->data, first->data, (size_t)image->bytes) == 0);
				CU_ASSERT(memcmp(back->data, first_samples->data, (size_t)back->bytes) == 0);
				fx_array_unref(image);
				fx_array_unref(back);
			} else {
				first = image;
				first_samples = back;
			}
			fx_math_free(m);
		}
		fx_array_unref(first);
		fx_array_unref(first_samples);
	}
	fx_array_unref(k);
	fx_array_unref(samples);
}

static void shapes_must_agree(void)
{
	fx_math *m = math_of(1);
	fx_array *k = trajectory(10, 3), *samples = random_array(FX_CF32, 2, (int64_t[]){11, 1}, 4);
	fx_array *image = random_array(FX_CF32, 4, (int64_t[]){4, 4, 4, 1}, 8);

	for (int separable = 0; separable < 2; separable++) {
		*m->err = (fx_error){0};
		CU_ASSERT_EQUAL(adjoint_of(m, separable, k, samples, 1, image), FX_EINVAL);
		CU_ASSERT(strstr(m->err->text, "11") != NULL);
	}
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

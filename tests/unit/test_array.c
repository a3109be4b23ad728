/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

static void sizes_overflow(void)
{
	fx_array *a = (fx_array *)1;

	CU_ASSERT_EQUAL(fx_array_new2(FX_CF32, INT64_MAX / 2, 4, &a), FX_ENOMEM);
	CU_ASSERT_PTR_NULL(a);
	CU_ASSERT_EQUAL(fx_array_new1(FX_F32, -1, &a), FX_EINVAL);
	CU_ASSERT_EQUAL(fx_array_new1(99, 1, &a), FX_EINVAL);
	CU_ASSERT_PTR_NULL(fx_alloc(INT64_MAX / 4, 16));
}

static void empty_is_fine(void)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 0, 8, &a), FX_OK);
	CU_ASSERT_EQUAL(a->n, 0);
	CU_ASSERT_PTR_NULL(a->data);
	CU_ASSERT_EQUAL(fx_array_own(&a), FX_OK);
	fx_array_unref(a);
}

static void own_copies_only_when_shared(void)
{
	fx_array *a, *b;

	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, 3, &a), FX_OK);
	FX_F32_OF(a)[1] = 5;
	b = fx_array_ref(a);
	CU_ASSERT_EQUAL(fx_array_own(&b), FX_OK);
	CU_ASSERT_PTR_NOT_EQUAL(a, b);
	FX_F32_OF(b)[1] = 7;
	CU_ASSERT_EQUAL(FX_F32_OF(a)[1], 5);
	fx_array *same = b;
	CU_ASSERT_EQUAL(fx_array_own(&b), FX_OK);
	CU_ASSERT_PTR_EQUAL(same, b);
	fx_array_unref(a);
	fx_array_unref(b);
}

static void conversions(void)
{
	fx_array *a, *b;

	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_I16, 2, &a), FX_OK);
	((int16_t *)a->data)[0] = -3;
	CU_ASSERT_EQUAL_FATAL(fx_array_convert(a, FX_CF32, &b), FX_OK);
	CU_ASSERT(FX_CF32_OF(b)[0] == -3.0f);
	fx_array_unref(a);
	CU_ASSERT_EQUAL(fx_array_convert(b, FX_F32, &a), FX_EINVAL);
	CU_ASSERT_PTR_NULL(a);
	fx_array_unref(b);
}

static CU_TestInfo tests[] = {
	{"sizes that overflow are refused", sizes_overflow},
	{"an empty array is fine", empty_is_fine},
	{"own copies only when shared", own_copies_only_when_shared},
	{"conversions", conversions},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_array = {"array", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
#include "check.h"

static void box_is_a_product_of_sincs(void)
{
	fx_math *m = math_of(1);
	fx_array *k = NULL, *phi = NULL;
	const int64_t dims[3] = {8, 8, 1};

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 2, &k), FX_OK);
	FX_F64_OF(k)[3] = 0.5;
	FX_F64_OF(k)[4] = -0.25;
	FX_F64_OF(k)[5] = 0.3; /* along an axis of 1: not counted */
	CU_ASSERT_EQUAL_FATAL(fx_voxel_function(m, FX_VOXEL_BOX, k, dims, &phi), FX_OK);
	CU_ASSERT(FX_CF32_OF(phi)[0] == 1);
	/* sinc(1/2) sinc(1/4) = (2/pi) (4/pi) sqrt(1/2); one rounding to single. */
	CU_ASSERT_DOUBLE_EQUAL(creal(FX_CF32_OF(phi)[1]), 8 * sqrt(0.5) / (acos(-1) * acos(-1)), 6e-8);
	CU_ASSERT(cimagf(FX_CF32_OF(phi)[1]) == 0);
	fx_array_unref(phi);
	CU_ASSERT_EQUAL_FATAL(fx_voxel_function(m, FX_VOXEL_DELTA, k, dims, &phi), FX_OK);
	CU_ASSERT(FX_CF32_OF(phi)[1] == 1);
	fx_array_unref(phi);
	CU_ASSERT_EQUAL(fx_voxel_function(m, 7, k, dims, &phi), FX_EINVAL);
	CU_ASSERT_PTR_NULL(phi);
	fx_array_unref(k);
	fx_math_free(m);
}

/* A complex phi: a missing conj would show. */
static void mu_is_conj_phi_times_data(void)
{
	fx_math *m = math_of(1);
	fx_array *phi = random_array(FX_CF32, 1, (int64_t[]){50}, 1), *d = random_array(FX_CF32, 2, (int64_t[]){50, 3}, 2);
	fx_array *before = NULL, *phi2 = NULL, *none = (fx_array *)1;
	double norm2 = 0, expected = 0, same = 0;

	CU_ASSERT_EQUAL_FATAL(fx_array_convert(d, FX_CF64, &before), FX_OK);
	for (int64_t i = 0; i < 150; i++)
		expected += creal(FX_CF64_OF(before)[i] * conj(FX_CF64_OF(before)[i]));
	CU_ASSERT_EQUAL(fx_apply_mu(m, NULL, d, &none, &same), FX_OK);
	CU_ASSERT_PTR_NULL(none);
	CU_ASSERT_EQUAL_FATAL(fx_apply_mu(m, phi, d, &phi2, &norm2), FX_OK);
	/* Sums of 300 squares in double. */
	CU_ASSERT_DOUBLE_EQUAL(norm2, expected, 1e-12 * expected);
	CU_ASSERT(norm2 == same);
	for (int64_t i = 0; i < 150; i++) {
		double _Complex p = FX_CF32_OF(phi)[i % 50], mu = conj(p) * FX_CF64_OF(before)[i];

		/* Products of numbers below 1.5, two single roundings each. */
		CU_ASSERT(cabs(FX_CF32_OF(d)[i] - mu) <= 4e-7);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(phi2)[i % 50], creal(p * conj(p)), 4e-7);
	}
	fx_array_unref(phi);
	fx_array_unref(d);
	fx_array_unref(before);
	fx_array_unref(phi2);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"a box voxel is a product of sincs", box_is_a_product_of_sincs},
	{"Mu is conj(phi) D", mu_is_conj_phi_times_data},
	CU_TEST_INFO_NULL
};

extern CU_SuiteInfo suite_voxel;
CU_SuiteInfo suite_voxel = {"voxel", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* Metrics in closed cases and against numbers from an independent numpy program (whose SSIM is scikit-image's inside). */
#include <string.h>

#include "check.h"
#include "recon/metrics.h"

static fx_array *patterned(bool reference)
{
	fx_array *a = NULL;

	CU_ASSERT_FATAL(fx_array_new(FX_F64, 3, (int64_t[]){13, 9, 6}, &a) == FX_OK);
	for (int i = 0; i < 13 * 9 * 6; i++) {
		double b = (double)((i * 7919) % 101) / 50 - 1;

		FX_F64_OF(a)[i] = reference ? b : b + ((double)((i * 104729) % 17) / 17 - 0.5) * 0.6;
	}
	return a;
}

static void known_figures(void)
{
	fx_array *a = patterned(false), *b = patterned(true), *map, *flat_a, *flat_b;
	fxi_metrics m;
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_compare(a, b, NULL, false, 2, &err, &m) == FX_OK);
	CU_ASSERT_EQUAL(m.n, 13 * 9 * 6);
	CU_ASSERT_DOUBLE_EQUAL(m.nrmse, 0.298550239245302, 1e-13);
	CU_ASSERT_DOUBLE_EQUAL(m.ssim, 0.433537639337390, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(m.psnr_db, 20 * log10(1 / m.rmse), 1e-12);
	CU_ASSERT_FATAL(fxi_ssim(a, b, 1, 3, &err, &map) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(map)[4 + 13 * (3 + 9 * 2)], -0.010226918502313, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(map)[0], -0.330326788406633, 1e-12);
	fx_array_unref(map);
	/* the first plane alone: the window has no third axis */
	CU_ASSERT_FATAL(fx_array_new(FX_F64, 2, (int64_t[]){13, 9}, &flat_a) == FX_OK);
	CU_ASSERT_FATAL(fx_array_new(FX_F64, 2, (int64_t[]){13, 9}, &flat_b) == FX_OK);
	memcpy(flat_a->data, a->data, (size_t)flat_a->bytes);
	memcpy(flat_b->data, b->data, (size_t)flat_b->bytes);
	CU_ASSERT_FATAL(fxi_compare(flat_a, flat_b, NULL, false, 1, &err, &m) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(m.ssim, 0.665721266656898, 1e-12);
	fx_array_unref(flat_a);
	fx_array_unref(flat_b);
	fx_array_unref(a);
	fx_array_unref(b);
}

static void equal_images(void)
{
	fx_array *b = random_array(FX_CF32, 4, (int64_t[]){7, 6, 5, 2}, 3);
	fxi_metrics m;
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_compare(b, b, NULL, false, 2, &err, &m) == FX_OK);
	CU_ASSERT(m.complex_values);
	CU_ASSERT_EQUAL(m.nrmse, 0);
	CU_ASSERT(isinf(m.psnr_db) && m.psnr_db > 0);
	CU_ASSERT_DOUBLE_EQUAL(m.ssim, 1, 1e-12);
	fx_array_unref(b);
}

/* b = c a exactly: without the fit |1/c - 1| tells, with it nothing is left and c comes out. */
static void complex_scale_fits(void)
{
	fx_array *a = random_array(FX_CF64, 2, (int64_t[]){9, 8}, 5), *b = random_array(FX_CF64, 2, (int64_t[]){9, 8}, 5);
	const fx_cf64 c = 0.3 - 1.7 * I;
	fxi_metrics m;
	fx_error err = {0};

	for (int64_t i = 0; i < b->n; i++)
		FX_CF64_OF(b)[i] *= c;
	CU_ASSERT_FATAL(fxi_compare(a, b, NULL, false, 2, &err, &m) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(m.nrmse, cabs(1 - c) / cabs(c), 1e-13);
	CU_ASSERT_EQUAL(m.scale_re, 1);
	CU_ASSERT_FATAL(fxi_compare(a, b, NULL, true, 2, &err, &m) == FX_OK);
	CU_ASSERT(m.nrmse < 1e-14);
	CU_ASSERT_DOUBLE_EQUAL(m.scale_re, 0.3, 1e-13);
	CU_ASSERT_DOUBLE_EQUAL(m.scale_im, -1.7, 1e-13);
	fx_array_unref(a);
	fx_array_unref(b);
}

/* A complex image and its own magnitude are equal once magnitudes are compared; a phase must not count. */
static void magnitudes_against_complex(void)
{
	fx_array *a = random_array(FX_CF32, 1, (int64_t[]){50}, 8), *b = NULL;
	fxi_metrics m;
	fx_error err = {0};

	CU_ASSERT_FATAL(fx_array_new1(FX_F32, 50, &b) == FX_OK);
	for (int i = 0; i < 50; i++)
		FX_F32_OF(b)[i] = cabsf(FX_CF32_OF(a)[i]);
	CU_ASSERT_FATAL(fxi_compare(a, b, NULL, false, 1, &err, &m) == FX_OK);
	CU_ASSERT(!m.complex_values);
	CU_ASSERT(m.nrmse < 1e-7); /* single precision */
	fx_array_unref(a);
	fx_array_unref(b);
}

static void masks_select(void)
{
	fx_array *a = random_array(FX_F32, 4, (int64_t[]){4, 4, 2, 3}, 1), *b = random_array(FX_F32, 4, (int64_t[]){4, 4, 2, 3}, 1);
	fx_array *mask = NULL, *wrong = NULL;
	fxi_metrics m;
	fx_error err = {0};

	CU_ASSERT_FATAL(fx_array_new(FX_U8, 3, (int64_t[]){4, 4, 2}, &mask) == FX_OK);
	CU_ASSERT_FATAL(fx_array_new(FX_U8, 3, (int64_t[]){4, 4, 3}, &wrong) == FX_OK);
	/* a differs in voxel 5 of each volume alone, which the mask leaves out */
	memset(mask->data, 1, 32);
	((uint8_t *)mask->data)[5] = 0;
	for (int v = 0; v < 3; v++)
		FX_F32_OF(a)[5 + 32 * v] += 2;
	CU_ASSERT_FATAL(fxi_compare(a, b, mask, false, 1, &err, &m) == FX_OK);
	CU_ASSERT_EQUAL(m.nrmse, 0);
	CU_ASSERT_EQUAL(m.n, 31 * 3);
	CU_ASSERT_FATAL(fxi_compare(a, b, NULL, false, 1, &err, &m) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(m.rmse, sqrt(3 * 4.0 / 96), 1e-7);
	CU_ASSERT_EQUAL(fxi_compare(a, b, wrong, false, 1, &err, &m), FX_EINVAL);
	CU_ASSERT(strstr(err.text, "mask is 4 x 4 x 3") != NULL);
	memset(mask->data, 0, 32);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_compare(a, b, mask, false, 1, &err, &m), FX_EDATA);
	fx_array_unref(a);
	fx_array_unref(b);
	fx_array_unref(mask);
	fx_array_unref(wrong);
}

static void refusals(void)
{
	fx_array *a = random_array(FX_F32, 2, (int64_t[]){4, 6}, 1), *b = random_array(FX_F32, 2, (int64_t[]){6, 4}, 1);
	fx_array *zero = NULL;
	fxi_metrics m;
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_compare(a, b, NULL, false, 1, &err, &m), FX_EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, "the image is 4 x 6, the reference 6 x 4");
	CU_ASSERT_FATAL(fx_array_new2(FX_F32, 4, 6, &zero) == FX_OK);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_compare(a, zero, NULL, false, 1, &err, &m), FX_EDATA);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_compare(zero, a, NULL, true, 1, &err, &m), FX_EDATA);
	FX_F32_OF(a)[3] = NAN;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_compare(a, zero, NULL, false, 1, &err, &m), FX_EDATA);
	CU_ASSERT(strstr(err.text, "1 values that are not finite") != NULL);
	fx_array_unref(a);
	fx_array_unref(b);
	fx_array_unref(zero);
}

static CU_TestInfo tests[] = {
	{"known figures", known_figures},
	{"equal images", equal_images},
	{"a complex scale is fitted", complex_scale_fits},
	{"magnitudes against complex", magnitudes_against_complex},
	{"masks select", masks_select},
	{"refusals", refusals},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_metrics = {"metrics", NULL, NULL, NULL, NULL, tests};

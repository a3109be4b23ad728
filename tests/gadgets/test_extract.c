/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>

#include "gadgets/harness.h"

static fx_msg *image(int type)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	fx_image *i = fx_msg_image(msg);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(type, 2, 1, 1, 1, &i->data), FX_OK);
	fx_image_describe(i);
	return msg;
}

static void every_part(void)
{
	static const struct {
		const char *chain;
		float first, second;
		int type;
	} cases[] = {
		{"extract", 5, 2, ISMRMRD_IMTYPE_MAGNITUDE},
		{"extract part=phase", 2.2142974f, -1.5707964f, ISMRMRD_IMTYPE_PHASE}, /* atan2(4, -3), -pi/2 */
		{"extract part=real", -3, 0, ISMRMRD_IMTYPE_REAL},
		{"extract part=imaginary", 4, -2, ISMRMRD_IMTYPE_IMAG},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_msg *in = image(FX_CF32);
		float *v = fx_msg_image(in)->data->data;
		harness h;

		v[0] = -3;
		v[1] = 4;
		v[3] = -2;
		harness_run(&h, cases[i].chain, NULL, &in, 1);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
		const fx_image *out = fx_msg_image(h.out[0]);
		CU_ASSERT_EQUAL(out->data->type, FX_F32);
		CU_ASSERT_EQUAL(out->head.image_type, cases[i].type);
		CU_ASSERT_EQUAL(out->head.data_type, ISMRMRD_FLOAT);
		/* libm's last bit of single precision */
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out->data)[0], cases[i].first, 5e-7);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out->data)[1], cases[i].second, 5e-7);
		harness_free(&h);
	}
}

/* A real image has a phase of 0 or pi. */
static void real_images(void)
{
	fx_msg *in = image(FX_I16);
	harness h;

	((int16_t *)fx_msg_image(in)->data->data)[0] = -7;
	harness_run(&h, "extract part=phase", NULL, &in, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], M_PI, 5e-7);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[1], 0);
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"every part", every_part},
	{"real images", real_images},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_extract = {"extract", NULL, NULL, NULL, NULL, tests};

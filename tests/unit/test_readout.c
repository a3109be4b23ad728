/* SPDX-License-Identifier: MIT */
/* Readouts cut and joined, and volumes resized about their centre. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <math.h>
#include <string.h>

static fx_error err;
static fx_math *m;

static int set_up(void)
{
	memset(&err, 0, sizeof err);
	return fx_math_new("host", 1, &err, &m) == FX_OK ? 0 : 1;
}

static int tear_down(void)
{
	fx_math_free(m);
	return 0;
}

static fx_msg *readout(int64_t samples, int64_t coils)
{
	fx_msg *msg = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a = fx_msg_acquisition(msg);

	fx_array_new2(FX_CF32, samples, coils, &a->data);
	fx_array_new2(FX_F32, 2, samples, &a->traj);
	for (int64_t i = 0; i < a->data->n; i++)
		FX_CF32_OF(a->data)[i] = (float)i;
	for (int64_t i = 0; i < a->traj->n; i++)
		FX_F32_OF(a->traj)[i] = (float)i;
	a->head.number_of_samples = (uint16_t)samples;
	a->head.center_sample = (uint16_t)(samples / 2);
	return msg;
}

static void trim_applies_discards(void)
{
	fx_msg *msg = readout(10, 2);
	fx_acquisition *a = fx_msg_acquisition(msg);

	a->head.discard_pre = 3;
	a->head.discard_post = 1;
	CU_ASSERT_EQUAL_FATAL(fx_readout_trim(m, a), FX_OK);
	CU_ASSERT_EQUAL(a->data->dims[0], 6);
	CU_ASSERT_EQUAL(a->head.number_of_samples, 6);
	CU_ASSERT_EQUAL(a->head.center_sample, 2);
	CU_ASSERT_EQUAL(a->head.discard_pre + a->head.discard_post, 0);
	CU_ASSERT(FX_CF32_OF(a->data)[0] == 3.0f);
	CU_ASSERT(FX_CF32_OF(a->data)[6] == 13.0f); /* second coil begins 10 further on */
	CU_ASSERT(FX_F32_OF(a->traj)[0] == 6.0f);
	fx_drop(msg);
}

static void trim_refuses_more_than_there_is(void)
{
	fx_msg *msg = readout(4, 1);

	fx_msg_acquisition(msg)->head.discard_pre = 3;
	fx_msg_acquisition(msg)->head.discard_post = 2;
	err.status = FX_OK;
	CU_ASSERT_EQUAL(fx_readout_trim(m, fx_msg_acquisition(msg)), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "discard_pre"));
	err.status = FX_OK;
	fx_msg_acquisition(msg)->head.discard_post = 1;
	CU_ASSERT_EQUAL(fx_readout_trim(m, fx_msg_acquisition(msg)), FX_OK); /* nothing left is a readout of 0 samples */
	CU_ASSERT_EQUAL(fx_msg_acquisition(msg)->data->n, 0);
	fx_drop(msg);
}

static void crop_does_not_touch_shared_arrays(void)
{
	fx_msg *msg = readout(8, 1);
	fx_acquisition *a = fx_msg_acquisition(msg);
	fx_array *shared = fx_array_ref(a->data);

	CU_ASSERT_EQUAL(fx_readout_crop(m, a, 2, 3), FX_OK);
	CU_ASSERT_EQUAL(shared->dims[0], 8);
	CU_ASSERT(FX_CF32_OF(shared)[7] == 7.0f);
	CU_ASSERT_EQUAL(fx_readout_crop(m, a, 2, 3), FX_EINVAL); /* 2 + 3 of the 3 that are left */
	err.status = FX_OK;
	fx_array_unref(shared);
	fx_drop(msg);
}

static void finite_names_the_sample(void)
{
	fx_msg *msg = readout(5, 3);
	fx_acquisition *a = fx_msg_acquisition(msg);

	a->head.scan_counter = 17;
	CU_ASSERT_EQUAL(fx_readout_finite(m, a), FX_OK);
	((float *)a->data->data)[2 * (5 * 2 + 3) + 1] = NAN;
	err.status = FX_OK;
	CU_ASSERT_EQUAL(fx_readout_finite(m, a), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "readout 17"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "sample 3 of coil 2"));
	err.status = FX_OK;
	fx_drop(msg);
}

static void join_keeps_coils_apart(void)
{
	fx_msg *a = readout(2, 2), *b = readout(3, 2);
	fx_array *pieces[] = {fx_msg_acquisition(a)->data, fx_msg_acquisition(b)->data};
	static const float expected[] = {0, 1, 0, 1, 2, 2, 3, 3, 4, 5};
	fx_array *joined;

	CU_ASSERT_EQUAL_FATAL(fx_join_samples(m, pieces, 2, &joined), FX_OK);
	for (int i = 0; i < 10; i++)
		CU_ASSERT(FX_CF32_OF(joined)[i] == expected[i]);
	fx_array_unref(joined);
	fx_drop(a);
	fx_drop(b);
}

/* The centre voxel floor(N/2) must stay the centre voxel for every parity, growing and shrinking. */
static void resize_keeps_the_centre(void)
{
	for (int64_t from = 1; from <= 9; from++)
		for (int64_t to = 1; to <= 9; to++) {
			fx_array *a, *b;
			int64_t n = 0;

			CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, from, from, 1, 2, &a), FX_OK);
			FX_F32_OF(a)[from * from + (from / 2) * from + from / 2] = 1;
			CU_ASSERT_EQUAL_FATAL(fx_resize_centred(m, a, (int64_t[]){to, to, 1}, &b), FX_OK);
			CU_ASSERT(FX_F32_OF(b)[to * to + (to / 2) * to + to / 2] == 1);
			for (int64_t i = 0; i < b->n; i++)
				n += FX_F32_OF(b)[i] != 0;
			CU_ASSERT_EQUAL(n, 1);
			fx_array_unref(a);
			fx_array_unref(b);
		}
}

static CU_TestInfo tests[] = {
	{"trim applies discards", trim_applies_discards},
	{"trim refuses more than there is", trim_refuses_more_than_there_is},
	{"crop does not touch shared arrays", crop_does_not_touch_shared_arrays},
	{"a sample that is not finite is named", finite_names_the_sample},
	{"join keeps coils apart", join_keeps_coils_apart},
	{"resize keeps the centre", resize_keeps_the_centre},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_readout = {"readout", set_up, tear_down, NULL, NULL, tests};

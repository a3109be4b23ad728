/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"

static fx_msg *spoke(double top, int64_t samples, int64_t columns, int64_t n)
{
	fx_msg *msg = harness_acquisition(samples, 1, columns);
	fx_acquisition *a = fx_msg_acquisition(msg);

	a->head.scan_counter = (uint32_t)n;
	a->head.idx.kspace_encode_step_1 = (uint16_t)n;
	for (int64_t i = 0; i < samples; i++)
		FX_F32_OF(a->traj)[i * columns] = (float)(top * (2 * (double)i / (double)samples - 1));
	return msg;
}

static char *header(int64_t nx, int64_t nz, double fov)
{
	return harness_header((int64_t[]){nx, nx, nz}, (double[]){fov, fov, fov}, "radial", 0);
}

static void guesses_the_unit(void)
{
	fx_msg *in[] = {spoke(32, 64, 2, 0), spoke(32, 64, 2, 1)};
	char *xml = header(64, 1, 240);
	harness h;

	harness_run(&h, "trajectory", xml, in, 2);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	const fx_acquisition *a = fx_msg_acquisition(h.out[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(a->k);
	CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(a->k)[0], -0.5, 1e-9);
	CU_ASSERT_EQUAL(a->matrix[0], 64);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "unit", 0), fx_unit_name(FX_UNIT_CYCLES_PER_FOV));
	harness_free(&h);
	free(xml);
}

/* A first readout near the centre says nothing: it waits for one that does, and order is kept. */
static void waits_for_a_telling_readout(void)
{
	fx_msg *in[] = {spoke(0.01, 8, 2, 0), spoke(0.5, 8, 2, 1), spoke(0.2, 8, 2, 2)};
	char *xml = header(64, 1, 240);
	harness h;

	harness_run(&h, "trajectory", xml, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 3);
	for (uint32_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[i])->head.scan_counter, i);
	harness_free(&h);
	free(xml);
}

static void refuses_what_it_cannot_decide(void)
{
	fx_msg *in[] = {spoke(0, 8, 2, 0)};
	char *xml = header(64, 1, 240);
	harness h;

	harness_run(&h, "trajectory", xml, in, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_EQUAL(h.n_out, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "trajectory"));
	harness_free(&h);
	free(xml);
}

/* What looked like cycles/voxel turns out to be cycles/FOV: an error that names the readout, not a silent change. */
static void does_not_change_its_mind(void)
{
	fx_msg *in[] = {spoke(0.5, 8, 2, 0), spoke(32, 8, 2, 1)};
	char *xml = header(64, 1, 240);
	harness h;

	harness_run(&h, "trajectory", xml, in, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "readout 1"));
	harness_free(&h);
	free(xml);
}

static void outside(void)
{
	static const struct {
		const char *chain;
		int status;
		int64_t samples, matrix;
	} cases[] = {
		{"trajectory unit=cycles_per_voxel", FX_OK, 13, 64},
		{"trajectory unit=cycles_per_voxel outside=error", FX_EDATA, 0, 0},
		{"trajectory unit=cycles_per_voxel outside=grow", FX_OK, 16, 78}, /* 0.6 * 2 * 64 = 76.8, by whole pairs */
	};
	char *xml = header(64, 1, 240);

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_msg *in[] = {spoke(0.6, 16, 2, 0)};
		harness h;

		harness_run(&h, cases[i].chain, xml, in, 1);
		CU_ASSERT_EQUAL(h.status, cases[i].status);
		if (cases[i].status == FX_OK && h.n_out == 1) {
			const fx_acquisition *a = fx_msg_acquisition(h.out[0]);

			CU_ASSERT_EQUAL(a->data->dims[0], cases[i].samples);
			CU_ASSERT_EQUAL(a->head.number_of_samples, cases[i].samples);
			CU_ASSERT_EQUAL(a->matrix[0], cases[i].matrix);
			CU_ASSERT_EQUAL(harness_count(&h, 0, "samples_outside"), 16 - cases[i].samples);
			CU_ASSERT_EQUAL(harness_warned(&h, "beyond the matrix"), cases[i].samples < 16);
		}
		harness_free(&h);
	}
	free(xml);
}

/* The third column of a one-slice scan is no kz, whatever it holds; with more voxels along z it is. */
static void third_column(void)
{
	for (int64_t nz = 1; nz <= 16; nz += 15) {
		fx_msg *in[] = {spoke(0.5, 8, 3, 0)};
		char *xml = header(64, nz, 240);
		harness h;

		for (int64_t i = 0; i < 8; i++)
			FX_F32_OF(fx_msg_acquisition(in[0])->traj)[3 * i + 2] = 0.25f;
		harness_run(&h, "trajectory unit=cycles_per_voxel", xml, in, 1);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
		CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(fx_msg_acquisition(h.out[0])->k)[2], nz == 1 ? 0 : 0.25, 0);
		harness_free(&h);
		free(xml);
	}
}

static void bad_readouts(void)
{
	char *xml = header(64, 1, 240);
	fx_msg *no_traj[] = {harness_acquisition(8, 1, 0)}, *nan_traj[] = {spoke(0.5, 8, 2, 3)};
	fx_msg *nan_data[] = {spoke(0.5, 8, 2, 4)};
	harness h;

	harness_run(&h, "trajectory", xml, no_traj, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "cartesian.xml"));
	harness_free(&h);
	FX_F32_OF(fx_msg_acquisition(nan_traj[0])->traj)[2] = NAN;
	harness_run(&h, "trajectory", xml, nan_traj, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "readout 3"));
	harness_free(&h);
	FX_CF32_OF(fx_msg_acquisition(nan_data[0])->data)[5] = INFINITY;
	harness_run(&h, "trajectory", xml, nan_data, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "sample 5 of coil 0"));
	harness_free(&h);
	free(xml);
}

static void auxiliary_readouts_are_counted(void)
{
	fx_msg *in[] = {spoke(0.5, 8, 2, 0), spoke(0.5, 8, 2, 1), harness_acquisition(0, 0, 0)};
	char *xml = header(64, 1, 240);
	harness h;

	fx_msg_acquisition(in[1])->head.flags = UINT64_C(1) << (ISMRMRD_ACQ_IS_NAVIGATION_DATA - 1);
	harness_run(&h, "trajectory", xml, in, 3);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 1);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "readouts_not_imaging"), 2);
	harness_free(&h);
	free(xml);
}

static CU_TestInfo tests[] = {
	{"guesses the unit", guesses_the_unit},
	{"waits for a telling readout", waits_for_a_telling_readout},
	{"refuses what it cannot decide", refuses_what_it_cannot_decide},
	{"does not change its mind", does_not_change_its_mind},
	{"samples beyond the matrix", outside},
	{"third column", third_column},
	{"bad readouts", bad_readouts},
	{"auxiliary readouts are counted", auxiliary_readouts_are_counted},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_trajectory = {"trajectory", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* A file's trajectory into cycles/voxel, and samples beyond the matrix. */
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

static fx_msg *readout(const float *traj, int64_t columns, int64_t samples)
{
	fx_msg *msg = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a = fx_msg_acquisition(msg);

	fx_array_new2(FX_CF32, samples, 1, &a->data);
	fx_array_new2(FX_F32, columns, samples, &a->traj);
	memcpy(a->traj->data, traj, (size_t)(columns * samples) * sizeof *traj);
	for (int64_t i = 0; i < samples; i++)
		FX_CF32_OF(a->data)[i] = (float)(i + 1);
	return msg;
}

static fx_encoding encoding(int64_t nx, int64_t ny, int64_t nz, double fov_mm)
{
	return (fx_encoding){.encoded = {{nx, ny, nz}, {fov_mm, fov_mm, fov_mm}}};
}

static void units(void)
{
	/* half a cycle per voxel of a 64-matrix, 256 mm: 0.5 cycles/voxel, pi rad/voxel, 32 cycles/FOV, 125 /m */
	static const struct {
		int unit;
		float value;
	} cases[] = {{FX_UNIT_CYCLES_PER_VOXEL, 0.5f}, {FX_UNIT_RAD_PER_VOXEL, (float)M_PI}, {FX_UNIT_CYCLES_PER_FOV, 32},
		{FX_UNIT_PER_M, 125}};
	fx_encoding e = encoding(64, 64, 1, 256);

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_msg *msg = readout((float[]){cases[i].value, -cases[i].value / 2}, 2, 1);
		fx_acquisition *a = fx_msg_acquisition(msg);

		CU_ASSERT_EQUAL_FATAL(fx_trajectory_convert(m, a, &e, cases[i].unit, 2, e.encoded.matrix), FX_OK);
		/* float pi is the only one that is not exact: 2^-24 relative */
		CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(a->k)[0], 0.5, 1e-7);
		CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(a->k)[1], -0.25, 1e-7);
		CU_ASSERT_EQUAL(FX_F64_OF(a->k)[2], 0);
		fx_drop(msg);
	}
}

static void field_of_view_needed(void)
{
	fx_encoding e = encoding(64, 64, 1, 0);
	fx_msg *msg = readout((float[]){1, 1}, 2, 1);

	err.status = FX_OK;
	CU_ASSERT_EQUAL(fx_trajectory_convert(m, fx_msg_acquisition(msg), &e, FX_UNIT_PER_M, 2, e.encoded.matrix), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "field of view"));
	err.status = FX_OK;
	fx_drop(msg);
}

static void outside_is_dropped_never_wrapped(void)
{
	fx_encoding e = encoding(32, 32, 32, 200);
	fx_msg *msg = readout((float[]){0, 0, 0, 0.5f, 0, 0, 0.51f, 0, 0, 0, -0.5f, 0.2f, 0, 0, -0.7f}, 3, 5);
	fx_acquisition *a = fx_msg_acquisition(msg);

	CU_ASSERT_EQUAL_FATAL(fx_trajectory_convert(m, a, &e, FX_UNIT_CYCLES_PER_VOXEL, 3, e.encoded.matrix), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_trajectory_keep_inside(m, a), FX_OK);
	CU_ASSERT_EQUAL(a->n_outside, 2);
	CU_ASSERT_EQUAL_FATAL(a->data->dims[0], 3);
	CU_ASSERT(FX_CF32_OF(a->data)[1] == 2.0f);
	CU_ASSERT(FX_CF32_OF(a->data)[2] == 4.0f);
	CU_ASSERT_DOUBLE_EQUAL(FX_F64_OF(a->k)[3 * 2 + 1], -0.5, 0);
	fx_drop(msg);
}

static void growing_makes_room(void)
{
	fx_encoding e = encoding(240, 241, 1, 240);
	double max_abs[3] = {0.5612, 0.5612, 0};
	int64_t matrix[3];
	fx_msg *msg = readout((float[]){0.5612f, -0.5612f}, 2, 1);

	fx_trajectory_grow(&e, FX_UNIT_CYCLES_PER_VOXEL, max_abs, matrix);
	CU_ASSERT_EQUAL(matrix[0], 270); /* 2 * 0.5612 * 240 = 269.4, grown by whole pairs */
	CU_ASSERT_EQUAL(matrix[1], 271);
	CU_ASSERT_EQUAL(matrix[2], 1);
	CU_ASSERT_EQUAL(fx_trajectory_convert(m, fx_msg_acquisition(msg), &e, FX_UNIT_CYCLES_PER_VOXEL, 2, matrix), FX_OK);
	CU_ASSERT_EQUAL(fx_trajectory_keep_inside(m, fx_msg_acquisition(msg)), FX_OK);
	CU_ASSERT_EQUAL(fx_msg_acquisition(msg)->n_outside, 0);
	fx_drop(msg);
}

static CU_TestInfo tests[] = {
	{"every unit gives the same k", units},
	{"a field of view of 0 is refused where it is needed", field_of_view_needed},
	{"samples outside are dropped, never wrapped", outside_is_dropped_never_wrapped},
	{"growing makes room for every sample", growing_makes_room},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_trajectory_units = {"trajectory_units", set_up, tear_down, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <math.h>
#include <string.h>

static int decide(double kx, double ky, double kz, int64_t nx, int64_t ny, int64_t nz, double fov_mm, fx_error *err)
{
	fx_error own = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 1, .err = err ? err : &own};
	int unit = -1;
	int status = fx_unit_decide(&m, (double[]){kx, ky, kz}, (int64_t[]){nx, ny, nz},
		(double[]){fov_mm, fov_mm, fov_mm}, &unit);

	CU_ASSERT_EQUAL(status, m.err->status);
	return status == FX_OK ? unit : status;
}

/* Extents of real files, one of each tool that writes them. */
static void real_files(void)
{
	CU_ASSERT_EQUAL(decide(0.49982, 0.49982, 0, 256, 256, 1, 240, NULL), FX_UNIT_CYCLES_PER_VOXEL);
	CU_ASSERT_EQUAL(decide(0.5612, 0.5612, 0, 240, 240, 1, 240, NULL), FX_UNIT_CYCLES_PER_VOXEL);
	CU_ASSERT_EQUAL(decide(10.9, 16.0, 0.585, 32, 32, 32, 240, NULL), FX_UNIT_CYCLES_PER_FOV);
	CU_ASSERT_EQUAL(decide(10.9, 16.0, 0.585, 64, 64, 64, 240, NULL), FX_UNIT_CYCLES_PER_FOV);
	CU_ASSERT_EQUAL(decide(110, 110, 1, 220, 220, 1, 220, NULL), FX_UNIT_CYCLES_PER_FOV);
	CU_ASSERT_EQUAL(decide(0.5, 0.5, 0, 256, 256, 1, 0, NULL), FX_UNIT_CYCLES_PER_VOXEL);
}

static void other_units(void)
{
	CU_ASSERT_EQUAL(decide(3.14159, 3.14159, 3.14159, 64, 64, 64, 240, NULL), FX_UNIT_RAD_PER_VOXEL);
	/* 128 voxels of 2 mm: Nyquist is 250 1/m, which no other unit reaches */
	CU_ASSERT_EQUAL(decide(250, 250, 0, 128, 128, 1, 256, NULL), FX_UNIT_PER_M);
	/* the same numbers without a field of view: 1/m cannot be told, and cycles/FOV does not fit */
	CU_ASSERT_EQUAL(decide(250, 250, 0, 128, 128, 1, 0, NULL), FX_EDATA);
	CU_ASSERT_EQUAL(decide(0.5, 0.5, 0.5, 3, 3, 3, 240, NULL), FX_UNIT_CYCLES_PER_VOXEL);
	CU_ASSERT_EQUAL(decide(0.5, 0, 0, 2, 1, 1, 240, NULL), FX_UNIT_CYCLES_PER_VOXEL);
	/* a field of view of 1 m makes 1/m and cycles/FOV the same thing */
	CU_ASSERT_EQUAL(decide(64, 64, 0, 128, 128, 1, 1000, NULL), FX_UNIT_CYCLES_PER_FOV);
}

static void an_axis_of_one_voxel_does_not_count(void)
{
	CU_ASSERT_EQUAL(decide(0.5, 0.5, 3.0, 64, 64, 1, 240, NULL), FX_UNIT_CYCLES_PER_VOXEL);
	CU_ASSERT_EQUAL(decide(0, 0, 0.5, 64, 64, 1, 240, NULL), FX_EDATA);
	CU_ASSERT_EQUAL(decide(0.5, 0.5, 0.5, 1, 1, 1, 240, NULL), FX_EDATA);
}

static void doubt_is_an_error_with_the_candidates(void)
{
	fx_error err = {0};

	/* 8 voxels: cycles/FOV and rad/voxel are a factor of 1.27 apart */
	CU_ASSERT_EQUAL(decide(3.5, 3.5, 3.5, 8, 8, 8, 240, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ambiguous"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cycles/FOV fills 0.875"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "rad/voxel fills 1.11"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(decide(0, 0, 0, 64, 64, 64, 240, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "zero"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(decide(0.5, NAN, 0, 64, 64, 1, 240, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not finite"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(decide(4e27, 1, 0, 64, 64, 1, 240, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no unit"));
}

static void factors(void)
{
	int64_t matrix[3] = {64, 32, 1};
	double fov_mm[3] = {128, 0, 5};

	CU_ASSERT_EQUAL(fx_unit_factor(FX_UNIT_CYCLES_PER_VOXEL, 0, matrix, fov_mm), 1);
	CU_ASSERT_DOUBLE_EQUAL(fx_unit_factor(FX_UNIT_RAD_PER_VOXEL, 0, matrix, fov_mm) * 2 * acos(-1), 1, 1e-15);
	CU_ASSERT_EQUAL(fx_unit_factor(FX_UNIT_CYCLES_PER_FOV, 1, matrix, fov_mm), 1.0 / 32);
	CU_ASSERT_DOUBLE_EQUAL(fx_unit_factor(FX_UNIT_PER_M, 0, matrix, fov_mm), 0.002, 1e-18); /* a rounding of 2 mm */
	CU_ASSERT(isnan(fx_unit_factor(FX_UNIT_PER_M, 1, matrix, fov_mm)));
	CU_ASSERT(isnan(fx_unit_factor(FX_UNIT_AUTO, 0, matrix, fov_mm)));
	CU_ASSERT_STRING_EQUAL(fx_unit_name(FX_UNIT_PER_M), "1/m");
	CU_ASSERT_STRING_EQUAL(fx_unit_name(17), "?");
}

static CU_TestInfo tests[] = {
	{"extents of real files", real_files},
	{"radians, 1/m and tiny matrices", other_units},
	{"an axis of one voxel does not count", an_axis_of_one_voxel_does_not_count},
	{"doubt is an error with the candidates", doubt_is_an_error_with_the_candidates},
	{"factors", factors},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_units = {"units", NULL, NULL, NULL, NULL, tests};

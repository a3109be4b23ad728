/* SPDX-License-Identifier: MIT */
/*
 * test_gradients.c - gradient tables into RAS: the sign rule in closed form, both layouts, rows without a direction,
 * what is refused. Real tables beside MRtrix: tests/system/test_gradient_tables.py.
 */
#include "unit/check.h"

#include <string.h>

static fx_array *table(int64_t columns, int64_t rows, const double *values)
{
	fx_array *a = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, columns, rows, &a), FX_OK);
	memcpy(a->data, values, (size_t)a->bytes);
	return a;
}

static fx_lattice diagonal(double x, double y, double z)
{
	fx_lattice l = {.dims = {4, 5, 6}, .has_affine = true};

	l.affine[0][0] = x;
	l.affine[1][1] = y;
	l.affine[2][2] = z;
	return l;
}

/* One vector (0.6, 0.8, 0) in image axes under this affine, expected in RAS. */
static void one_vector(const fx_lattice *l, double x, double y, double z)
{
	const double b = 1000, v[3] = {0.6, 0.8, 0};
	fx_array *bvals = table(1, 1, &b), *bvecs = table(3, 1, v);
	fx_gradient g;
	fx_error err = {0};
	int64_t n_scaled;

	CU_ASSERT_EQUAL(fx_gradients_from_fsl(bvals, bvecs, l, 1, &g, &n_scaled, &err), FX_OK);
	CU_ASSERT_EQUAL(n_scaled, 0);
	CU_ASSERT_EQUAL(g.b, 1000);
	CU_ASSERT_DOUBLE_EQUAL(g.dir[0], x, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(g.dir[1], y, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(g.dir[2], z, 1e-15);
	fx_array_unref(bvals);
	fx_array_unref(bvecs);
}

static void the_sign_rule(void)
{
	fx_lattice l = diagonal(-2, 2, 2.5);   /* radiological: the vectors as they are, in image axes */

	one_vector(&l, -0.6, 0.8, 0);
	l = diagonal(2, 2, 2.5);               /* neurological: x turned round first, so the same in space */
	one_vector(&l, -0.6, 0.8, 0);
	l = diagonal(2, -2, 2.5);
	one_vector(&l, 0.6, -0.8, 0);
	l = diagonal(-2, -2, 2.5);             /* det > 0 again */
	one_vector(&l, 0.6, -0.8, 0);
	l = diagonal(-2, 2, -2.5);
	one_vector(&l, 0.6, 0.8, 0);
	/* x, y, z of the image along y, z, x of space: a cyclic turn, det > 0. Different lengths do not bend directions. */
	l = (fx_lattice){.affine = {{0, 0, 9, 0}, {1, 0, 0, 0}, {0, 3, 0, 0}}};
	one_vector(&l, 0, -0.6, 0.8);
	l.affine[1][0] = -1;                   /* det < 0 */
	one_vector(&l, 0, -0.6, 0.8);
}

static void both_layouts(void)
{
	const double b[4] = {0, 1000, 2000, 3000};
	const double rows[12] = {0, 1, 0, 0, /**/ 0, 0, 1, 0, /**/ 0, 0, 0, 1}, columns[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
	fx_lattice l = diagonal(-1, 1, 1);
	fx_array *bvals[2] = {table(4, 1, b), table(1, 4, b)}, *bvecs[2] = {table(4, 3, rows), table(3, 4, columns)};

	for (int i = 0; i < 4; i++) {
		fx_gradient g[4];
		fx_error err = {0};
		int64_t n_scaled;

		CU_ASSERT_EQUAL_FATAL(fx_gradients_from_fsl(bvals[i & 1], bvecs[i >> 1], &l, 4, g, &n_scaled, &err), FX_OK);
		CU_ASSERT_EQUAL(n_scaled, 0);
		for (int v = 0; v < 4; v++) {
			CU_ASSERT_EQUAL(g[v].b, b[v]);
			CU_ASSERT_EQUAL(g[v].dir[0], v == 1 ? -1 : 0);
			CU_ASSERT_EQUAL(g[v].dir[1], v == 2 ? 1 : 0);
			CU_ASSERT_EQUAL(g[v].dir[2], v == 3 ? 1 : 0);
		}
	}
	for (int i = 0; i < 2; i++) {
		fx_array_unref(bvals[i]);
		fx_array_unref(bvecs[i]);
	}
}

/* Three vectors in a 3 x 3 table: rows are x, y, z, as FSL has them. */
static void three_by_three(void)
{
	const double b[3] = {1, 1, 1}, v[9] = {0, 0, 1, /**/ 1, 0, 0, /**/ 0, 1, 0};
	fx_lattice l = diagonal(-1, 1, 1);
	fx_array *bvals = table(3, 1, b), *bvecs = table(3, 3, v);
	fx_gradient g[3];
	fx_error err = {0};
	int64_t n_scaled;

	CU_ASSERT_EQUAL_FATAL(fx_gradients_from_fsl(bvals, bvecs, &l, 3, g, &n_scaled, &err), FX_OK);
	CU_ASSERT_EQUAL(g[0].dir[1], 1);
	CU_ASSERT_EQUAL(g[1].dir[2], 1);
	CU_ASSERT_EQUAL(g[2].dir[0], -1);
	fx_array_unref(bvals);
	fx_array_unref(bvecs);
}

static void rows_without_a_direction(void)
{
	double nan = (double)NAN;
	const double b[5] = {0, 5, 0, 5, 700}, v[15] = {nan, nan, nan, 0, 0, 0, 0, 0, 0, -0.5, -0.5, -0.7071, 0, 3, 4};
	fx_lattice l = diagonal(-1, 1, 1);
	fx_array *bvals = table(5, 1, b), *bvecs = table(3, 5, v);
	fx_gradient g[5];
	fx_error err = {0};
	int64_t n_scaled;

	CU_ASSERT_EQUAL_FATAL(fx_gradients_from_fsl(bvals, bvecs, &l, 5, g, &n_scaled, &err), FX_OK);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(fabs(g[i].dir[0]) + fabs(g[i].dir[1]) + fabs(g[i].dir[2]), 0);
	CU_ASSERT_EQUAL(g[1].b, 5);
	CU_ASSERT_DOUBLE_EQUAL(g[3].dir[2], -0.7071 / sqrt(0.5 + 0.7071 * 0.7071), 1e-15);
	CU_ASSERT_EQUAL(n_scaled, 1); /* 3 4 5 */
	CU_ASSERT_EQUAL(g[4].b, 700);
	CU_ASSERT_DOUBLE_EQUAL(g[4].dir[1], 0.6, 1e-15);
	fx_array_unref(bvals);
	fx_array_unref(bvecs);
}

static void refused(const fx_array *bvals, const fx_array *bvecs, const fx_lattice *l, int64_t n, int status,
	const char *word)
{
	fx_gradient g[8];
	fx_error err = {0};
	int64_t n_scaled;

	CU_ASSERT_EQUAL(fx_gradients_from_fsl(bvals, bvecs, l, n, g, &n_scaled, &err), status);
	if (!strstr(err.text, word)) {
		CU_FAIL("the message lacks a word");
		fprintf(stderr, "no '%s' in: %s\n", word, err.text);
	}
}

static void tables_that_are_refused(void)
{
	const double b[3] = {0, 1000, 1000}, v[9] = {0, 1, 0, /**/ 0, 0, 1, /**/ 0, 0, 0};
	fx_lattice l = diagonal(-1, 1, 1), flat = diagonal(-1, 1, 0);
	fx_array *bvals = table(3, 1, b), *bvecs = table(3, 3, v), *four = table(1, 4, v), *two = table(2, 4, v), *whole = NULL;

	refused(bvals, bvecs, &l, 4, FX_EDATA, "3 b-values and 3 b-vectors for 4 volumes");
	refused(four, bvecs, &l, 3, FX_EDATA, "4 b-values and 3 b-vectors for 3 volumes");
	refused(bvals, two, &l, 3, FX_EDATA, "4 rows of 2");
	refused(bvals, bvecs, &flat, 3, FX_EDATA, "sform");
	FX_F64_OF(bvals)[2] = -5;
	refused(bvals, bvecs, &l, 3, FX_EDATA, "volume 3 is -5");
	FX_F64_OF(bvals)[2] = (double)NAN;
	refused(bvals, bvecs, &l, 3, FX_EDATA, "volume 3 is");
	FX_F64_OF(bvals)[2] = (double)INFINITY;
	refused(bvals, bvecs, &l, 3, FX_EDATA, "volume 3 is inf");
	FX_F64_OF(bvals)[2] = 1000;
	FX_F64_OF(bvals)[0] = 60; /* beyond what counts as b0 */
	refused(bvals, bvecs, &l, 3, FX_EDATA, "b = 60 but no direction");
	FX_F64_OF(bvals)[0] = 0;
	FX_F64_OF(bvecs)[0] = (double)INFINITY;
	refused(bvals, bvecs, &l, 3, FX_EDATA, "finite");
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, 3, &whole), FX_OK);
	refused(whole, bvecs, &l, 3, FX_EINVAL, "f32");
	fx_array_unref(bvals);
	fx_array_unref(bvecs);
	fx_array_unref(four);
	fx_array_unref(two);
	fx_array_unref(whole);
}

static void mrtrix_tables(void)
{
	const double unit[12] = {0, 0, 0, 0, 0.6, 0, -0.8, 1500, /* within 1 % of |g|^2: */ 0, 1.004, 0, 3000};
	const double scaled[12] = {0, 0, 0, 0, 0, 0, 2, 500, 0, 1.004, 0, 3000};
	fx_array *a = table(4, 3, unit), *b = table(4, 3, scaled);
	fx_gradient g[3];
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fx_gradients_from_mrtrix(a, 3, g, &err), FX_OK);
	CU_ASSERT_EQUAL(g[0].b, 0);
	CU_ASSERT_EQUAL(g[1].b, 1500);
	CU_ASSERT_DOUBLE_EQUAL(g[1].dir[2], -0.8, 1e-15);
	CU_ASSERT_EQUAL(g[2].b, 3000);
	CU_ASSERT_EQUAL(g[2].dir[1], 1);
	CU_ASSERT_EQUAL_FATAL(fx_gradients_from_mrtrix(b, 3, g, &err), FX_OK);
	CU_ASSERT_EQUAL(g[1].b, 2000);
	CU_ASSERT_EQUAL(g[1].dir[2], 1);
	CU_ASSERT_DOUBLE_EQUAL(g[2].b, 3000 * 1.004 * 1.004, 1e-9); /* one row far off scales them all */
	CU_ASSERT_EQUAL(fx_gradients_from_mrtrix(b, 4, g, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "3 rows for 4 volumes"));
	err = (fx_error){0};
	fx_array_unref(a);
	a = table(3, 4, unit);
	CU_ASSERT_EQUAL(fx_gradients_from_mrtrix(a, 4, g, &err), FX_EDATA);
	fx_array_unref(a);
	fx_array_unref(b);
}

static CU_TestInfo tests[] = {
	{"FSL's sign rule", the_sign_rule},
	{"3 x n and n x 3", both_layouts},
	{"3 x 3 is x, y, z", three_by_three},
	{"rows without a direction", rows_without_a_direction},
	{"tables that are refused", tables_that_are_refused},
	{"MRtrix's tables", mrtrix_tables},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_gradients = {"gradients", NULL, NULL, NULL, NULL, tests};

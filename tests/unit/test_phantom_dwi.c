/* SPDX-License-Identifier: MIT */
/* Fibre bundles: tensors, signals and voxels against closed forms. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diffusion/phantom_dwi.h"

#define PI 3.14159265358979323846

static const double fov[3] = {120, 120, 60};

/* g^T D g without the library */
static double along(const double d[6], const double v[3])
{
	const double rows[3][3] = {{d[0], d[1], d[3]}, {d[1], d[2], d[4]}, {d[3], d[4], d[5]}};
	double sum = 0;

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			sum += v[i] * rows[i][k] * v[k];
	return sum;
}

/* The fibre runs along t: 1.7 there, 0.3 across, and nothing mixed in between. */
static void expect_fibre(const double d[6], const double t[3])
{
	double length = sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
	const double unit[3] = {t[0] / length, t[1] / length, t[2] / length};

	CU_ASSERT_DOUBLE_EQUAL(along(d, unit), 1.7, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(d[0] + d[2] + d[5], 2.3, 1e-12);
	/* with the trace, the determinant leaves 0.3 twice */
	CU_ASSERT_DOUBLE_EQUAL(d[0] * (d[2] * d[5] - d[4] * d[4]) - d[1] * (d[1] * d[5] - d[4] * d[3]) + d[3] * (d[1] * d[4] - d[2] * d[3]),
		1.7 * 0.3 * 0.3, 1e-12);
}

static void rings_go_round(void)
{
	fxi_dwi_object o;
	fxi_dwi_point p;
	fx_error err = {0};

	fxi_dwi_defaults(FXI_DWI_RING, fov, &o);
	o.centre[0] = 3;
	o.centre[2] = -7;
	CU_ASSERT_EQUAL(fxi_dwi_check(&o, &err), FX_OK);
	for (int i = 0; i < 24; i++) {
		double angle = PI / 12 * i, r = o.radius + (i % 5 - 2) * o.width / 5;
		const double x[3] = {3 + r * cos(angle), r * sin(angle), -7}, tangent[3] = {-sin(angle), cos(angle), 0};

		fxi_dwi_at(&o, x, 2, &p);
		CU_ASSERT_EQUAL_FATAL(p.n, 1);
		CU_ASSERT_EQUAL(p.bundles, 1);
		expect_fibre(p.d[0], tangent);
		CU_ASSERT_EQUAL(p.label, i % 6 != 0 || i == 18 ? 0 : i / 6 + 1);
	}
	/* a torus is gone where a shell still is: at the corner of its section */
	const double corner[3] = {3 + o.radius + 0.45 * o.width, 0, -7 + 0.45 * o.width};

	fxi_dwi_at(&o, corner, 2, &p);
	CU_ASSERT_EQUAL(p.bundles, 0);
	o.height = o.width;
	fxi_dwi_at(&o, corner, 2, &p);
	CU_ASSERT_EQUAL(p.bundles, 1);
}

static void helices_follow_their_centre_line(void)
{
	fxi_dwi_object o;
	fxi_dwi_point p;

	fxi_dwi_defaults(FXI_DWI_HELIX, fov, &o);
	for (int i = 1; i < 40; i++) {
		double x[3], before[3], after[3], tangent[3];

		fxi_dwi_centre_line(&o, 0, i / 40.0, x);
		fxi_dwi_centre_line(&o, 0, i / 40.0 - 1e-6, before);
		fxi_dwi_centre_line(&o, 0, i / 40.0 + 1e-6, after);
		for (int d = 0; d < 3; d++)
			tangent[d] = after[d] - before[d];
		fxi_dwi_at(&o, x, 0, &p);
		CU_ASSERT_EQUAL_FATAL(p.bundles, 1);
		/* the difference quotient's direction is off by the square of its step */
		expect_fibre(p.d[0], tangent);
	}
	/* a point off the centre line stays in the bundle along its own helix, and leaves it half a width off */
	for (int i = 0; i < 20; i++) {
		double turn = (i - 9.5) / 10 * PI, r = o.radius + 0.3 * o.width, z = o.pitch * turn / (2 * PI);

		fxi_dwi_at(&o, (double[3]){r * cos(turn), r * sin(turn), z + 0.3 * o.width}, 0, &p);
		CU_ASSERT_EQUAL(p.bundles, 1);
		fxi_dwi_at(&o, (double[3]){r * cos(turn), r * sin(turn), z + 0.45 * o.width}, 0, &p);
		CU_ASSERT_EQUAL(p.bundles, 0);
	}
}

static void crossings_hold_both(void)
{
	const fx_gradient g = {.b = 1000, .dir = {1, 0, 0}};
	fxi_dwi_object o;
	fxi_dwi_point p;
	double c = cos(35 * PI / 180), s = sin(35 * PI / 180);

	fxi_dwi_defaults(FXI_DWI_CROSSING, fov, &o);
	o.angle_deg = 70;
	o.lake_mm = 10;
	fxi_dwi_at(&o, (double[3]){0, 0, 0}, 1, &p);
	CU_ASSERT_EQUAL(p.bundles, 2);
	CU_ASSERT_EQUAL(p.label, 0);
	/* x sees both at 35 degrees: 1.7 cos^2 + 0.3 sin^2 */
	CU_ASSERT_DOUBLE_EQUAL(fxi_dwi_signal(&p, &g), exp(-1.7 * c * c - 0.3 * s * s), 1e-12);
	/* along the second bundle the first is seen at 70 degrees: a mean of signals, not of tensors */
	double c2 = cos(70 * PI / 180) * cos(70 * PI / 180);

	CU_ASSERT_DOUBLE_EQUAL(fxi_dwi_signal(&p, &(fx_gradient){.b = 1000, .dir = {c, s, 0}}),
		0.5 * exp(-1.7) + 0.5 * exp(-1.7 * c2 - 0.3 * (1 - c2)), 1e-12);
	for (int end = 0; end < 4; end++) {
		double far = (end % 2 ? 1 : -1) * (o.length / 2 - 1), side = end < 2 ? -1 : 1;

		fxi_dwi_at(&o, (double[3]){far * c, far * s * side, 0}, 1, &p);
		CU_ASSERT_EQUAL(p.bundles, 1);
		CU_ASSERT_EQUAL(p.label, end + 1);
		expect_fibre(p.d[0], (double[3]){c, s * side, 0});
	}
	/* the lake touches both bundles, and lies between them */
	double y = (10 + o.width / 2) / c;

	fxi_dwi_at(&o, (double[3]){0, y, 9.9}, 1, &p);
	CU_ASSERT_EQUAL_FATAL(p.n, 1);
	CU_ASSERT_EQUAL(p.bundles, 0);
	CU_ASSERT_DOUBLE_EQUAL(fxi_dwi_signal(&p, &g), 2 * exp(-3), 1e-12);
	fxi_dwi_at(&o, (double[3]){9.9 * s, y - 9.9 * c, 0}, 1, &p);
	CU_ASSERT_EQUAL(p.bundles, 0);
	fxi_dwi_at(&o, (double[3]){10.1 * s, y - 10.1 * c, 0}, 1, &p);
	CU_ASSERT_EQUAL(p.bundles, 1);
}

/* The top of a shell cuts voxels in half: half the points are fibre, half tissue; odd sizes, sheared and oblique axes. */
static void voxels_average_signals(void)
{
	const fx_gradient g[2] = {{.b = 0}, {.b = 1000, .dir = {0, 1, 0}}};
	fxi_dwi_object o;
	fxi_dwi_grid grid = {.detail = 2, .n_threads = 2, .lattice = {.dims = {3, 1, 2}, .has_affine = true,
		.affine = {{1, 0.2, 0, 0}, {0.1, 1, 0, 0}, {0, 0, 2, 0}}}};
	fxi_dwi_truth t = {0};
	fx_array *series = NULL;
	fx_error err = {0};

	fxi_dwi_defaults(FXI_DWI_RING, fov, &o);
	o.height = 20;
	grid.lattice.affine[0][3] = o.radius - 1;
	grid.lattice.affine[2][3] = 8; /* planes at 8 and 10: well inside, and cut by the top at 10 */
	CU_ASSERT_EQUAL_FATAL(fxi_dwi_series(&o, &grid, g, 2, &err, &series), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_dwi_truth_new(&o, &grid, &err, &t), FX_OK);
	for (int i = 0; i < 3; i++) {
		const float *s = FX_F32_OF(series) + i;

		CU_ASSERT_DOUBLE_EQUAL(s[0], 1, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(s[3], 0.5 * 1 + 0.5 * 1.2, 1e-6);
		/* beside y = 0 the fibre runs along y but for (0.4 mm / 33 mm)^2 of its 1.4 */
		CU_ASSERT_DOUBLE_EQUAL(s[6], exp(-1.7), 1e-3);
		CU_ASSERT_DOUBLE_EQUAL(s[9], 0.5 * exp(-1.7) + 0.6 * exp(-0.8), 1e-3);
		CU_ASSERT_EQUAL(((uint8_t *)t.bundle->data)[i], 1);
		CU_ASSERT_EQUAL(((uint8_t *)t.bundle->data)[i + 3], 0);
		/* FA of (1.7, 0.3, 0.3): sqrt(3/2) sqrt((1.7-.7667)^2 + 2 (.4667)^2)/sqrt(1.7^2 + 2 .3^2) */
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t.fa)[i], 0.79898, 1e-4);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t.md)[i], 2.3 / 3, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t.s0)[i + 3], 1.1, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t.tensors)[i + 3 + 6 * 2], (1.7 + 1.2 * 0.8) / 2.2, 1e-3);
	}
	fxi_dwi_truth_clear(&t);
	fx_array_unref(series);
}

static void gradients_are_spread(void)
{
	fx_gradient g[66];
	double moment[3][3] = {{0}};
	int n_b0 = 0;

	fxi_dwi_gradients(6, 60, 1200, g);
	CU_ASSERT_EQUAL(g[0].b, 0);
	for (int v = 0; v < 66; v++) {
		n_b0 += g[v].b == 0;
		for (int i = 0; i < 3; i++)
			for (int k = 0; k < 3; k++)
				moment[i][k] += g[v].dir[i] * g[v].dir[k] / 60;
		CU_ASSERT_DOUBLE_EQUAL(g[v].dir[0] * g[v].dir[0] + g[v].dir[1] * g[v].dir[1] + g[v].dir[2] * g[v].dir[2], g[v].b > 0 ? 1 : 0,
			1e-12);
		CU_ASSERT(g[v].b == 0 || g[v].b == 1200);
	}
	CU_ASSERT_EQUAL(n_b0, 6);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) /* an even cover has I/3; a golden spiral of n is off by some 1/n */
			CU_ASSERT_DOUBLE_EQUAL(moment[i][k], i == k ? 1.0 / 3 : 0, 0.02);
	fxi_dwi_gradients(0, 5, 700, g);
	for (int v = 0; v < 5; v++)
		CU_ASSERT_EQUAL(g[v].b, 700);
	fxi_dwi_gradients(3, 0, 700, g);
	for (int v = 0; v < 3; v++)
		CU_ASSERT_EQUAL(g[v].b, 0);
}

/* FSL looks at x from the other side where the affine's determinant is positive. */
static void bvecs_have_fsls_sign(void)
{
	const fx_gradient g[2] = {{.b = 0}, {.b = 1500, .dir = {0.6, 0, 0.8}}};
	fx_lattice l = {.dims = {4, 4, 4}, .has_affine = true, .affine = {{2, 0, 0, 1}, {0, 2, 0, 1}, {0, 0, 3, 1}}};
	char *bvals = NULL, *bvecs = NULL;
	double v[6];
	fx_error err = {0};

	for (int flip = 0; flip < 2; flip++) {
		l.affine[0][0] = flip ? -2 : 2;
		CU_ASSERT_EQUAL_FATAL(fxi_dwi_fsl_texts(g, 2, &l, &err, &bvals, &bvecs), FX_OK);
		CU_ASSERT_STRING_EQUAL(bvals, "0 1500\n");
		CU_ASSERT_EQUAL_FATAL(sscanf(bvecs, "%lf %lf\n%lf %lf\n%lf %lf", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]), 6);
		CU_ASSERT_DOUBLE_EQUAL(v[1], -0.6, 1e-8); /* both: image x is RAS x and turned, or -x and kept */
		CU_ASSERT_DOUBLE_EQUAL(v[3], 0, 1e-8);
		CU_ASSERT_DOUBLE_EQUAL(v[5], 0.8, 1e-8);
		free(bvals);
		free(bvecs);
	}
}

static void impossible_bundles_are_refused(void)
{
	fxi_dwi_object good, o;
	fx_error err;

	for (int i = 0; i < 6; i++) {
		fxi_dwi_defaults(i == 4 ? FXI_DWI_CROSSING : i == 5 ? FXI_DWI_HELIX : FXI_DWI_RING, fov, &good);
		o = good;
		o.width = i == 0 ? 0 : o.width;
		o.radius = i == 1 ? o.width / 3 : o.radius;
		o.across = i == 2 ? -0.1 : o.across;
		o.along = i == 3 ? NAN : o.along;
		o.angle_deg = i == 4 ? 0 : o.angle_deg;
		o.pitch = i == 5 ? o.width : o.pitch;
		err = (fx_error){0};
		CU_ASSERT_EQUAL(fxi_dwi_check(&good, &err), FX_OK);
		CU_ASSERT_EQUAL(fxi_dwi_check(&o, &err), FX_EINVAL);
		CU_ASSERT(strlen(err.text) > 20);
	}
}

static CU_TestInfo tests[] = {
	{"rings go round", rings_go_round},
	{"helices follow their centre line", helices_follow_their_centre_line},
	{"crossings hold both", crossings_hold_both},
	{"voxels average signals", voxels_average_signals},
	{"gradients are spread", gradients_are_spread},
	{"bvecs have FSL's sign", bvecs_have_fsls_sign},
	{"impossible bundles are refused", impossible_bundles_are_refused},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_phantom_dwi = {.pName = "phantom_dwi", .pTests = tests};

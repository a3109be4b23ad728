/* SPDX-License-Identifier: MIT */
/* Jacobi determinants against the closed forms of spaces of constant curvature, on callbacks and on sampled metrics. */
#include "fields.h"

#include "diffusion/jacobi.h"

#include <stdio.h>

/* Differences of neighbours 1e-4 apart err by about its square; RK4 with 800 steps by less. */
#define APART 1e-4
#define CLOSE 1e-6

static double at_length(const field *f, const double x[3], const double v[3], double length, int64_t *conjugate)
{
	fxi_jacobi j;

	if (!fxi_jacobi_along(field_metric, f, x, v, length, 800, APART, &j))
		return NAN;
	if (conjugate)
		*conjugate = j.conjugate;
	return j.determinant;
}

static void flat(const double x[3], double d[6], double dd[3][6])
{
	static const double full[6] = {1.5, 0.3, 0.9, -0.2, 0.1, 0.5};

	(void)x;
	memcpy(d, full, sizeof full);
	memset(dd, 0, 3 * sizeof *dd);
}

static void flat_space(void)
{
	const field f = {.d = flat};
	int64_t conjugate;

	CU_ASSERT_DOUBLE_EQUAL(at_length(&f, (double[]){1, 2, 3}, (double[]){0.3, -2, 0.7}, 7, &conjugate), 1, CLOSE);
	CU_ASSERT_EQUAL(conjugate, 0);
}

/* Curvature -1: sinh(s)/s for each of the two fields. */
static void hyperbolic(void)
{
	const field f = {.d = half_space};
	double s = 1.7;

	CU_ASSERT_DOUBLE_EQUAL(at_length(&f, (double[]){0, 0, 1.3}, (double[]){1.3, 0.4, 0.2}, s, NULL), pow(sinh(s) / s, 2),
		10 * CLOSE);
}

/* Curvature 1/R^2: sin(s/R) R/s for each; both turn over at the antipode, a conjugate point counted twice. */
static void sphere_case(void)
{
	const field f = {.d = sphere};
	const double angles[] = {0.3, 1.5, 3.0, 3.14159265358979, 3.4, 5};

	for (size_t i = 0; i < sizeof angles / sizeof angles[0]; i++) {
		int64_t conjugate;
		double a = angles[i], j = at_length(&f, (double[]){0.7, 0, 0.2}, (double[]){0, 1, 0.3}, a * SPHERE_R, &conjugate);

		CU_ASSERT_DOUBLE_EQUAL(j, pow(sin(a) / a, 2), CLOSE);
		CU_ASSERT(i == 3 || conjugate == (a > M_PI ? 2 : 0));
	}
}

/* A sphere of two dimensions times a line: one field turns over, the other grows as in flat space. */
static void sphere_and_line(const double x[3], double d[6], double dd[3][6])
{
	double f = (SPHERE_R * SPHERE_R + x[0] * x[0] + x[1] * x[1]) / (2 * SPHERE_R * SPHERE_R);

	memset(d, 0, 6 * sizeof *d);
	memset(dd, 0, 3 * sizeof *dd);
	d[0] = d[2] = f * f;
	d[5] = 1;
	for (int l = 0; l < 2; l++)
		dd[l][0] = dd[l][2] = 2 * f * x[l] / (SPHERE_R * SPHERE_R);
}

static void simple_conjugate_point(void)
{
	const field f = {.d = sphere_and_line};
	const double angles[] = {2, 4};

	for (int i = 0; i < 2; i++) {
		int64_t conjugate;
		double a = angles[i], j = at_length(&f, (double[]){0.7, 0, 5}, (double[]){0, 1, 0}, a * SPHERE_R, &conjugate);

		CU_ASSERT_DOUBLE_EQUAL(j, sin(a) / a, CLOSE);
		CU_ASSERT_EQUAL(conjugate, i);
	}
}

/* The sphere on a lattice of 0.1 mm, oblique: 1.5e-2 is what its linear interpolation leaves at this spacing (second order in it). */
static void sampled(void)
{
	const double c = cos(0.3), s = sin(0.3);
	const double angles[] = {1.0, 2.0, 3.0};
	double axes[3][3] = {{0.1 * c, -0.1 * s, 0}, {0.1 * s, 0.1 * c, 0}, {0, 0, 0.1}}, inverse[3][4], x[3], v[3] = {0};
	const double origin[3] = {-2.1 * c + 2.1 * s, -2.1 * s - 2.1 * c, -0.6}, from[3] = {1.5, 0, 0}, along[3] = {-0.8, 0.6, 0.1};
	const field f = {.d = sphere};
	const fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 1e-4};
	fx_lattice l = lattice_of(43, 43, 13, axes, origin);
	fx_math *m = math_of(1);
	fx_msg *metric = sampled_metric(m, &f, &l, &spec);

	CU_ASSERT_EQUAL_FATAL(fx_lattice_inverse(&l, inverse, m->err), FX_OK);
	fx_affine_apply((const double (*)[4])inverse, from, x);
	for (int i = 0; i < 9; i++)
		v[i / 3] += inverse[i / 3][i % 3] * along[i % 3];
	for (int i = 0; i < 3; i++) {
		double a = angles[i];
		fxi_jacobi j;

		CU_ASSERT_FATAL(fxi_jacobi_along(fxi_metric_sampled, fx_msg_metric(metric), x, v, a * SPHERE_R, 400, 0.5, &j));
		CU_ASSERT_DOUBLE_EQUAL(j.determinant, pow(sin(a) / a, 2), 1.5e-2);
		CU_ASSERT_EQUAL(j.conjugate, 0);
	}
	fx_drop(metric);
	fx_math_free(m);
}

static void refusals(void)
{
	const field f = {.d = half_space};
	fxi_jacobi j;

	CU_ASSERT_FALSE(fxi_jacobi_along(field_metric, &f, (double[]){0, 0, 0}, (double[]){1, 0, 0}, 1, 10, APART, &j)); /* D = 0 */
	CU_ASSERT_FALSE(fxi_jacobi_along(field_metric, &f, (double[]){0, 0, 1}, (double[]){0, 0, 0}, 1, 10, APART, &j));
	CU_ASSERT_FALSE(fxi_jacobi_along(field_metric, &f, (double[]){0, 0, 1}, (double[]){1, 0, 0}, 0, 10, APART, &j));
	CU_ASSERT_FALSE(fxi_jacobi_along(field_metric, &f, (double[]){0, 0, 1}, (double[]){NAN, 0, 0}, 1, 10, APART, &j));
}

static CU_TestInfo tests[] = {
	{"flat space: 1", flat_space},
	{"hyperbolic space: (sinh s / s)^2", hyperbolic},
	{"sphere: (sin(s/R) R/s)^2, a double conjugate point", sphere_case},
	{"sphere times a line: a simple one", simple_conjugate_point},
	{"a sampled, oblique sphere", sampled},
	{"no metric, no direction, no length", refusals},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_jacobi = {"jacobi", NULL, NULL, NULL, NULL, tests};

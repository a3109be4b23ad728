/* SPDX-License-Identifier: MIT */
/* Geodesics in double: orders of the integrators, closed forms, invariants, and the fields sampled on lattices. */
#include "fields.h"

#include <stdio.h>

static double apart(const double a[3], const double b[3])
{
	return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

/* Distance of the end of a shot in n steps from where it must be. */
static double end_error(fxi_metric_at at, const void *arg, int integrator, double length, int64_t n, const double from[3],
	const double v0[3], const double to[3])
{
	double x[3], v[3];

	memcpy(x, from, sizeof x);
	memcpy(v, v0, sizeof v);
	if (fxi_geodesic_shoot(at, arg, integrator, length / (double)n, n, x, v, NULL) != n)
		return INFINITY;
	return apart(x, to);
}

/* The observed order between n and 2 n steps is the expected one to 0.15: the next term of the error is a step smaller. */
static void check_orders(const field *f, double length, const double from[3], const double v[3], const double to[3])
{
	static const struct { int integrator; double order; int64_t n; } all[] = {{FX_INTEGRATOR_EULER, 1, 800},
		{FX_INTEGRATOR_RK2, 2, 200}, {FX_INTEGRATOR_RK4, 4, 60}, {FX_INTEGRATOR_FROZEN, 1, 800}};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		double coarse = end_error(field_metric, f, all[i].integrator, length, all[i].n, from, v, to);
		double fine = end_error(field_metric, f, all[i].integrator, length, 2 * all[i].n, from, v, to);

		CU_ASSERT_DOUBLE_EQUAL(log2(coarse / fine), all[i].order, 0.15);
		CU_ASSERT(coarse < 0.05);
	}
}

static void half_space_orders(void)
{
	const field f = {.d = half_space};
	const double from[3] = {0, 0, 1.3}, v[3] = {1.3, 0, 0}, to[3] = {1.3 * tanh(1.2), 0, 1.3 / cosh(1.2)};

	check_orders(&f, 1.2, from, v, to);
}

static void bent_orders(void)
{
	const field f = {.d = bent};
	const double u0[3] = {0.1, -0.2, 0.3}, du[3] = {0.9, 0.4, -0.3}, u1[3] = {1.0, 0.2, 0.0};
	double from[3], v[3], to[3];

	psi(u0, from);
	psi_slope(u0[0], du, v);
	psi(u1, to);
	check_orders(&f, 1, from, v, to);
}

static void sheared_orders(void)
{
	const field f = {.d = half_space, .a = {{1.1, 0.4, -0.2}, {0.1, 0.8, 0.3}, {-0.3, 0.2, 1.2}}};
	const double from[3] = {0, 0, 1}, v[3] = {1, 0, 0}, to[3] = {tanh(1), 0, 1 / cosh(1)};
	double y0[3] = {0}, w[3] = {0}, y1[3] = {0};

	for (int i = 0; i < 9; i++) {
		y0[i / 3] += f.a[i / 3][i % 3] * from[i % 3];
		w[i / 3] += f.a[i / 3][i % 3] * v[i % 3];
		y1[i / 3] += f.a[i / 3][i % 3] * to[i % 3];
	}
	check_orders(&f, 1, y0, w, y1);
}

static void constant(const double x[3], double d[6], double dd[3][6])
{
	static const double full[6] = {1.5, 0.3, 0.9, -0.2, 0.1, 0.5};

	(void)x;
	memcpy(d, full, sizeof full);
	memset(dd, 0, 3 * sizeof *dd);
}

static void straight_lines(void)
{
	const field f = {.d = constant};
	const double from[3] = {1, 2, 3}, v[3] = {0.3, -0.5, 0.8}, to[3] = {1.3, 1.5, 3.8};

	for (int i = FX_INTEGRATOR_EULER; i <= FX_INTEGRATOR_FROZEN; i++)
		CU_ASSERT(end_error(field_metric, &f, i, 1, 100, from, v, to) < 1e-13); /* 100 roundings of numbers near 3 */
}

static void sphere_circles_and_antipode(void)
{
	const field f = {.d = sphere};
	const double a = 0.6, r2 = SPHERE_R * SPHERE_R, p[3] = {0.5, -0.3, 0.4}, square = 0.5;
	double x[3] = {a, 0, 0}, v[3] = {0, 1, 0}, points[3 * 401], worst = 0;

	fxi_geodesic_shoot(field_metric, &f, FX_INTEGRATOR_RK4, 0.005, 400, x, v, points);
	for (int i = 0; i <= 400; i++)
		worst = fmax(worst, fabs(hypot(points[3 * i] - (a * a - r2) / (2 * a), points[3 * i + 1]) - (a * a + r2) / (2 * a)));
	CU_ASSERT(worst < 1e-9); /* RK4: 400 steps of 0.005 leave some 1e-11 */
	CU_ASSERT(apart(points, x) > 1);
	for (int shot = 0; shot < 5; shot++) {
		fxi_metric_point here;
		const double to[3] = {-r2 * p[0] / square, -r2 * p[1] / square, -r2 * p[2] / square};
		double speed, dir[3] = {cos(shot + 0.5), sin(shot * 2.0), cos(3.0 * shot)};

		CU_ASSERT(field_metric(&f, p, &here));
		speed = sqrt(fxi_metric_square(&here, dir));
		for (int k = 0; k < 3; k++)
			dir[k] /= speed;
		/* 2000 steps of pi R / 2000: RK4's error of 1e-11 times the stretch of the projection near the antipode */
		CU_ASSERT(end_error(field_metric, &f, FX_INTEGRATOR_RK4, acos(-1) * SPHERE_R, 2000, p, dir, to) < 1e-7);
	}
}

/* r/r_0 against angle, worst over a path from (1, 0, 0) along y up to 90 degrees. */
static double ring_error(const field *f, double alpha)
{
	double x[3] = {1, 0, 0}, v[3] = {0, 1, 0}, worst = 0, phi = 0;

	for (int i = 0; i < 4000 && phi < acos(0); i++) {
		if (!fxi_geodesic_step(field_metric, f, FX_INTEGRATOR_RK4, 1e-3, x, v))
			return INFINITY;
		phi = atan2(x[1], x[0]);
		worst = fmax(worst, fabs(hypot(x[0], x[1]) - 1 / cos(alpha * phi)));
	}
	return phi < acos(0) ? INFINITY : worst;
}

static void rings(void)
{
	const field open = {.d = ring}, closed = {.d = round_ring};

	CU_ASSERT(ring_error(&open, sqrt(RING_ACROSS / RING_ALONG)) < 1e-10); /* RK4, steps of 1e-3 */
	CU_ASSERT(ring_error(&closed, 0) < 1e-10);
}

static void helix_invariants(void)
{
	const field f = {.d = ring};
	double x[3] = {1, 0, 0}, v[3] = {0.1, 1, 0.4}, first[3] = {0}, drift = 0;

	for (int i = 0; i <= 2000; i++) {
		fxi_metric_point here;
		double g[6], p[3], now[3];

		CU_ASSERT_FATAL(field_metric(&f, x, &here) && fx_tensor_inverse(here.contra, g));
		p[0] = g[0] * v[0] + g[1] * v[1] + g[3] * v[2];
		p[1] = g[1] * v[0] + g[2] * v[1] + g[4] * v[2];
		p[2] = g[3] * v[0] + g[4] * v[1] + g[5] * v[2];
		now[0] = x[0] * p[1] - x[1] * p[0];
		now[1] = p[2];
		now[2] = fxi_metric_square(&here, v) / 2;
		for (int k = 0; k < 3; k++) {
			if (i == 0)
				first[k] = now[k];
			drift = fmax(drift, fabs(now[k] / first[k] - 1));
		}
		fxi_geodesic_step(field_metric, &f, FX_INTEGRATOR_RK4, 1e-3, x, v);
	}
	CU_ASSERT(drift < 1e-10);
	CU_ASSERT(x[2] > 0.5);
}

static void christoffel_agrees(void)
{
	const field f = {.d = bent, .a = {{1.1, 0.4, -0.2}, {0.1, 0.8, 0.3}, {-0.3, 0.2, 1.2}}};
	uint64_t seed = 3;

	for (int i = 0; i < 50; i++) {
		double x[3], v[3], a[3], symbols[3][6];
		fxi_metric_point here;

		for (int k = 0; k < 3; k++) {
			x[k] = random_next(&seed);
			v[k] = random_next(&seed);
		}
		CU_ASSERT(field_metric(&f, x, &here));
		fxi_geodesic_acceleration(&here, v, a);
		fxi_christoffel(&here, symbols);
		for (int k = 0; k < 3; k++) {
			const double *s = symbols[k];
			double sum = s[0] * v[0] * v[0] + s[2] * v[1] * v[1] + s[5] * v[2] * v[2] +
				2 * (s[1] * v[0] * v[1] + s[3] * v[0] * v[2] + s[4] * v[1] * v[2]);

			CU_ASSERT_DOUBLE_EQUAL(a[k], -sum, 1e-12);
		}
	}
}

/* x' = D p, p'_l = -(1/2) p^T (d_l D) p: needs no inverse, and so shares nothing with the ODE under test. */
static void hamilton(const field *f, const double x[3], const double p[3], double dx[3], double dp[3])
{
	double d[6], dd[3][6];

	field_tensor(f, x, d, dd);
	for (int l = -1; l < 3; l++) {
		const double *t = l < 0 ? d : dd[l];
		const double tp[3] = {t[0] * p[0] + t[1] * p[1] + t[3] * p[2], t[1] * p[0] + t[2] * p[1] + t[4] * p[2],
			t[3] * p[0] + t[4] * p[1] + t[5] * p[2]};

		if (l < 0)
			memcpy(dx, tp, sizeof tp);
		else
			dp[l] = -0.5 * (p[0] * tp[0] + p[1] * tp[1] + p[2] * tp[2]);
	}
}

static void hamilton_agrees(void)
{
	const field f = {.d = ring, .a = {{1.1, 0.4, -0.2}, {0.1, 0.8, 0.3}, {-0.3, 0.2, 1.2}}};
	double x[3] = {1.1, 0.1, -0.3}, p[3] = {0.2, 0.7, 0.5}, y[3], v[3], unused[3];
	const double h = 1e-3;

	memcpy(y, x, sizeof y);
	hamilton(&f, x, p, v, unused);
	for (int i = 0; i < 1000; i++) {
		double kx[4][3], kp[4][3], at[3], q[3];

		for (int s = 0; s < 4; s++) {
			double ahead = s == 0 ? 0 : s == 3 ? h : h / 2;

			for (int k = 0; k < 3; k++) {
				at[k] = x[k] + (s ? ahead * kx[s - 1][k] : 0);
				q[k] = p[k] + (s ? ahead * kp[s - 1][k] : 0);
			}
			hamilton(&f, at, q, kx[s], kp[s]);
		}
		for (int k = 0; k < 3; k++) {
			x[k] += h / 6 * (kx[0][k] + 2 * kx[1][k] + 2 * kx[2][k] + kx[3][k]);
			p[k] += h / 6 * (kp[0][k] + 2 * kp[1][k] + 2 * kp[2][k] + kp[3][k]);
		}
	}
	CU_ASSERT_EQUAL(fxi_geodesic_shoot(field_metric, &f, FX_INTEGRATOR_RK4, h, 1000, y, v, NULL), 1000);
	CU_ASSERT(apart(x, y) < 1e-9); /* both of order 4, some 1e-11 each */
}

/* ---- sampled fields ---- */

struct shot {
	field f;
	double from[3], v[3], to[3], length; /* `v` in mm per unit of length */
	double low[3], high[3];              /* the box that is sampled */
};

/* Error of the end, mm, with n voxels along the box's longest edge; the lattice's axes may be turned and unequal. */
static double sampled_error(const struct shot *s, int64_t n)
{
	fx_math *m = math_of(1);
	const fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 1e-3};
	double h = 0, axes[3][3] = {{0}}, x[3], v[3], end[3];
	int64_t dims[3];
	fx_msg *metric;
	fx_lattice l;

	for (int k = 0; k < 3; k++)
		h = fmax(h, (s->high[k] - s->low[k]) / (double)(n - 1));
	for (int k = 0; k < 3; k++) {
		dims[k] = 1 + (int64_t)ceil((s->high[k] - s->low[k]) / h);
		axes[k][k] = h;
		x[k] = (s->from[k] - s->low[k]) / h;
		v[k] = s->v[k] / h;
	}
	l = lattice_of(dims[0], dims[1], dims[2], axes, s->low);
	metric = sampled_metric(m, &s->f, &l, &spec);
	CU_ASSERT_EQUAL(fxi_geodesic_shoot(fxi_metric_sampled, fx_msg_metric(metric), FX_INTEGRATOR_RK4, s->length / 400, 400,
		x, v, NULL), 400);
	place_of(&l, x, end);
	fx_drop(metric);
	fx_math_free(m);
	return apart(end, s->to);
}

/*
 * Halving the voxel divides the error by 4 within the spread that the path's place in its cells brings (2.8 to 5.7, half an
 * octave), and the finest grid is within 0.05 voxel: 0.03 is what an independent program found for the semicircle.
 */
static void check_sampled(const char *name, const struct shot *s)
{
	double e[3], edge = 0;

	for (int k = 0; k < 3; k++)
		edge = fmax(edge, s->high[k] - s->low[k]);
	for (int i = 0; i < 3; i++)
		e[i] = sampled_error(s, (16 << i) + 1);
	printf("\n    %s, N = 17, 33, 65: %.1e, %.1e, %.1e mm (%.4f voxel)", name, e[0], e[1], e[2], e[2] * 64 / edge);
	CU_ASSERT(sqrt(e[0] / e[2]) > 2.8 && sqrt(e[0] / e[2]) < 5.7);
	CU_ASSERT(e[2] * 64 / edge < 0.05);
}

static void sampled_orders(void)
{
	const double half = sqrt(0.5);
	struct shot semi = {.f = {.d = half_space}, .from = {0, 0, 1.3}, .v = {1.3, 0, 0},
		.to = {1.3 * tanh(1.2), 0, 1.3 / cosh(1.2)}, .length = 1.2, .low = {-0.1, -0.1, 0.5}, .high = {1.3, 0.1, 1.5}};
	struct shot curved = {.f = {.d = bent}, .length = 1, .low = {0, -0.3, 0}, .high = {1.1, 0.7, 0.6}};
	struct shot circle = {.f = {.d = round_ring}, .from = {1, 0, 0}, .v = {0, 1, 0}, .to = {half, half, 0},
		.length = acos(half), .low = {0.5, -0.1, -0.1}, .high = {1.2, 0.9, 0.1}};
	const double u0[3] = {0.1, -0.2, 0.3}, du[3] = {0.9, 0.4, -0.3}, u1[3] = {1.0, 0.2, 0.0};

	psi(u0, curved.from);
	psi_slope(u0[0], du, curved.v);
	psi(u1, curved.to);
	check_sampled("semicircle", &semi);
	check_sampled("bent, full tensor", &curved);
	check_sampled("circle", &circle);
}

static CU_TestInfo tests[] = {
	{"half space: orders 1, 2, 4 and 1", half_space_orders},
	{"a full tensor, bent space: the same orders", bent_orders},
	{"sheared: the same orders", sheared_orders},
	{"constant tensors: straight lines", straight_lines},
	{"sphere: circles, and all shots meet at the antipode", sphere_circles_and_antipode},
	{"rings: r0 sec(alpha phi), and the exact circle", rings},
	{"helix: conserved momenta and energy", helix_invariants},
	{"the 18 Christoffel symbols give the same acceleration", christoffel_agrees},
	{"Hamilton's equations give the same path", hamilton_agrees},
	{"sampled fields: error of second order in the voxel", sampled_orders},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_geodesic = {"geodesic", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/*
 * geodesic.c - geodesics by Euler, midpoint, Runge-Kutta 4, and the midpoint rule as van Aart et al. (2011) must have run it, since they
 * count one fetch of the tensors a step: with the start's Christoffel symbols at the midpoint too, of order 1.
 */
#include "geodesic.h"

#include <math.h>

static void times(const double d[6], const double v[3], double out[3])
{
	out[0] = d[0] * v[0] + d[1] * v[1] + d[3] * v[2];
	out[1] = d[1] * v[0] + d[2] * v[1] + d[4] * v[2];
	out[2] = d[3] * v[0] + d[4] * v[1] + d[5] * v[2];
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void fxi_geodesic_acceleration(const fxi_metric_point *p, const double v[3], double a[3])
{
	double w[3] = {0, 0, 0}, dgv[3];

	for (int l = 0; l < 3; l++) {
		times(p->dg[l], v, dgv);
		for (int k = 0; k < 3; k++)
			w[k] += v[l] * dgv[k];
		w[l] -= 0.5 * dot(v, dgv);
	}
	times(p->contra, w, a);
	for (int k = 0; k < 3; k++)
		a[k] = -a[k];
}

void fxi_christoffel(const fxi_metric_point *p, double symbols[3][6])
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	static const int at[3][3] = {{0, 1, 3}, {1, 2, 4}, {3, 4, 5}};

	for (int k = 0; k < 3; k++)
		for (int c = 0; c < 6; c++) {
			int i = row[c], j = column[c];

			symbols[k][c] = 0;
			for (int l = 0; l < 3; l++)
				symbols[k][c] += 0.5 * p->contra[at[k][l]] *
					(p->dg[i][at[j][l]] + p->dg[j][at[i][l]] - p->dg[l][at[i][j]]);
		}
}

double fxi_metric_square(const fxi_metric_point *p, const double v[3])
{
	double g[6], gv[3];

	if (!fx_tensor_inverse(p->contra, g))
		return NAN;
	times(g, v, gv);
	return dot(v, gv);
}

/* to = from + h by */
static void advance(const double from[3], double h, const double by[3], double to[3])
{
	for (int k = 0; k < 3; k++)
		to[k] = from[k] + h * by[k];
}

static bool midpoint_step(fxi_metric_at at, const void *arg, bool frozen, double h, double x[3], double v[3])
{
	fxi_metric_point p;
	double a[3], half_x[3], half_v[3];

	if (!at(arg, x, &p))
		return false;
	fxi_geodesic_acceleration(&p, v, a);
	advance(x, h / 2, v, half_x);
	advance(v, h / 2, a, half_v);
	if (!frozen && !at(arg, half_x, &p))
		return false;
	fxi_geodesic_acceleration(&p, half_v, a);
	advance(x, h, half_v, x);
	advance(v, h, a, v);
	return true;
}

static bool runge_kutta_step(fxi_metric_at at, const void *arg, double h, double x[3], double v[3])
{
	static const double ahead[4] = {0, 0.5, 0.5, 1}, weight[4] = {1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0};
	double a[3] = {0, 0, 0}, u[3] = {0, 0, 0}, dx[3] = {0, 0, 0}, dv[3] = {0, 0, 0}, there[3];
	fxi_metric_point p;

	for (int stage = 0; stage < 4; stage++) {
		advance(x, ahead[stage] * h, u, there);
		advance(v, ahead[stage] * h, a, u);
		if (!at(arg, there, &p))
			return false;
		fxi_geodesic_acceleration(&p, u, a);
		advance(dx, weight[stage], u, dx);
		advance(dv, weight[stage], a, dv);
	}
	advance(x, h, dx, x);
	advance(v, h, dv, v);
	return true;
}

bool fxi_geodesic_step(fxi_metric_at at, const void *arg, int integrator, double h, double x[3], double v[3])
{
	fxi_metric_point p;
	double a[3];

	if (integrator == FX_INTEGRATOR_RK4)
		return runge_kutta_step(at, arg, h, x, v);
	if (integrator != FX_INTEGRATOR_EULER)
		return midpoint_step(at, arg, integrator == FX_INTEGRATOR_FROZEN, h, x, v);
	if (!at(arg, x, &p))
		return false;
	fxi_geodesic_acceleration(&p, v, a);
	advance(x, h, v, x);
	advance(v, h, a, v);
	return true;
}

int64_t fxi_geodesic_shoot(fxi_metric_at at, const void *arg, int integrator, double h, int64_t n, double x[3], double v[3],
	double *points)
{
	int64_t i = 0;

	for (;; i++) {
		for (int k = 0; points && k < 3; k++)
			points[3 * i + k] = x[k];
		if (i == n || !fxi_geodesic_step(at, arg, integrator, h, x, v))
			return i;
	}
}

bool fxi_metric_sampled(const void *metric, const double x[3], fxi_metric_point *p)
{
	const fx_metric *m = metric;
	const float *field = m->field->data;
	int64_t cell[3], stride[3], at = 0, step = 24;
	double part[3], sums[24] = {0};

	for (int a = 0; a < 3; a++) {
		int64_t n = m->lattice.dims[a];

		if (!isfinite(x[a]))
			return false;
		cell[a] = n < 2 || x[a] < 0 ? 0 : x[a] >= (double)(n - 1) ? n - 2 : (int64_t)x[a];
		part[a] = fmin(1, fmax(0, n < 2 ? 0 : x[a] - (double)cell[a]));
		stride[a] = n < 2 ? 0 : step;
		at += cell[a] * step;
		step *= n;
	}
	for (int corner = 0; corner < 8; corner++) {
		int64_t from = at;
		double weight = 1;

		for (int a = 0; a < 3; a++) {
			int up = corner >> a & 1;

			from += up * stride[a];
			weight *= up ? part[a] : 1 - part[a];
		}
		for (int c = 0; c < 24; c++)
			sums[c] += weight * (double)field[from + c];
	}
	for (int c = 0; c < 6; c++)
		for (int l = 0; l < 3; l++)
			p->dg[l][c] = sums[6 + 6 * l + c];
	return fx_tensor_inverse(sums, p->contra);
}

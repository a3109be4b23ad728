/* SPDX-License-Identifier: MIT */
/*
 * fields.h - diffusion tensor fields whose geodesics are known in closed form, with their exact derivatives: on their own, and
 * sampled on a lattice.
 */
#ifndef FORNIX_TESTS_FIELDS_H
#define FORNIX_TESTS_FIELDS_H

#include "check.h"

#include "diffusion/geodesic.h"

#include <string.h>

/** D and its three derivatives at a point. */
typedef void (*field_d)(const double x[3], double d[6], double dd[3][6]);

typedef struct field {
	field_d d;
	double a[3][3]; /**< the field is that of `d` sheared by x -> a x; all 0: as it is */
} field;

/** D = z^2 I: geodesics are semicircles in vertical planes. */
static inline void half_space(const double x[3], double d[6], double dd[3][6])
{
	for (int c = 0; c < 6; c++) {
		bool on = c == 0 || c == 2 || c == 5;

		d[c] = on ? x[2] * x[2] : 0;
		dd[0][c] = dd[1][c] = 0;
		dd[2][c] = on ? 2 * x[2] : 0;
	}
}

#define SPHERE_R 1.5
/** D = ((R^2 + r^2)/2R^2)^2 I: a sphere seen by stereographic projection; geodesics are circles. */
static inline void sphere(const double x[3], double d[6], double dd[3][6])
{
	double f = (SPHERE_R * SPHERE_R + x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) / (2 * SPHERE_R * SPHERE_R);

	for (int c = 0; c < 6; c++) {
		bool on = c == 0 || c == 2 || c == 5;

		d[c] = on ? f * f : 0;
		for (int l = 0; l < 3; l++)
			dd[l][c] = on ? 2 * f * x[l] / (SPHERE_R * SPHERE_R) : 0;
	}
}

#define RING_ALONG 1.7
#define RING_ACROSS 0.3
/** The tangential tensor of a ring about z times r^2, a polynomial. */
static inline void ring_times_square(const double x[3], double d[6], double dd[3][6])
{
	double more = RING_ALONG - RING_ACROSS, square = x[0] * x[0] + x[1] * x[1];
	const double tt[6] = {x[1] * x[1], -x[0] * x[1], x[0] * x[0], 0, 0, 0};
	const double dtt[2][6] = {{0, -x[1], 2 * x[0], 0, 0, 0}, {2 * x[1], -x[0], 0, 0, 0, 0}};

	for (int c = 0; c < 6; c++) {
		bool on = c == 0 || c == 2 || c == 5;

		d[c] = more * tt[c] + (on ? RING_ACROSS * square : 0);
		for (int l = 0; l < 2; l++)
			dd[l][c] = more * dtt[l][c] + (on ? RING_ACROSS * 2 * x[l] : 0);
		dd[2][c] = 0;
	}
}

/** Ring with D r^2 (r_0 = 1): circles are geodesics. */
static inline void round_ring(const double x[3], double d[6], double dd[3][6])
{
	ring_times_square(x, d, dd);
}

/** Ring: geodesics that start tangentially follow r_0 sec(alpha phi), alpha = sqrt(across/along). */
static inline void ring(const double x[3], double d[6], double dd[3][6])
{
	double square = x[0] * x[0] + x[1] * x[1];

	ring_times_square(x, d, dd);
	for (int c = 0; c < 6; c++) {
		d[c] /= square;
		for (int l = 0; l < 2; l++)
			dd[l][c] = (dd[l][c] - 2 * x[l] * d[c]) / square;
	}
}

#define PSI_A 0.3
#define PSI_K 2.0
#define PSI_B 0.4
/** psi(u, v, w) = (u, v + a sin ku, w + b u^2), under which straight lines become the geodesics of D = J J^T. */
static inline void psi(const double u[3], double x[3])
{
	x[0] = u[0];
	x[1] = u[1] + PSI_A * sin(PSI_K * u[0]);
	x[2] = u[2] + PSI_B * u[0] * u[0];
}

static inline void psi_slope(double u, const double v[3], double out[3])
{
	out[0] = v[0];
	out[1] = v[1] + PSI_A * PSI_K * cos(PSI_K * u) * v[0];
	out[2] = v[2] + 2 * PSI_B * u * v[0];
}

static inline void bent(const double x[3], double d[6], double dd[3][6])
{
	double p = PSI_A * PSI_K * cos(PSI_K * x[0]), q = 2 * PSI_B * x[0];
	double dp = -PSI_A * PSI_K * PSI_K * sin(PSI_K * x[0]), dq = 2 * PSI_B;
	const double now[6] = {1, p, 1 + p * p, q, p * q, 1 + q * q};
	const double slope[6] = {0, dp, 2 * p * dp, dq, dp * q + p * dq, 2 * q * dq};

	memcpy(d, now, sizeof now);
	memset(dd, 0, 3 * sizeof *dd);
	memcpy(dd[0], slope, sizeof slope);
}

static inline bool field_invert(double a[3][3], double out[3][3])
{
	double det = 0;

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int r0 = (j + 1) % 3, r1 = (j + 2) % 3, c0 = (i + 1) % 3, c1 = (i + 2) % 3;

			out[i][j] = a[r0][c0] * a[r1][c1] - a[r0][c1] * a[r1][c0];
		}
	for (int j = 0; j < 3; j++)
		det += a[0][j] * out[j][0];
	for (int i = 0; i < 9; i++)
		out[i / 3][i % 3] /= det;
	return det != 0;
}

/** D and its derivatives of a field, sheared where it says so: D(y) = a D(a^-1 y) a^T. */
static inline void field_tensor(const field *f, const double y[3], double d[6], double dd[3][6])
{
	double a[3][3], back[3][3], x[3] = {0, 0, 0}, d0[6], dd0[3][6], turned[3][6];

	if (f->a[0][0] == 0 && f->a[1][1] == 0) {
		f->d(y, d, dd);
		return;
	}
	memcpy(a, f->a, sizeof a);
	if (!field_invert(a, back))
		CU_FAIL_FATAL("a test's shear is singular");
	for (int i = 0; i < 9; i++)
		x[i / 3] += back[i / 3][i % 3] * y[i % 3];
	f->d(x, d0, dd0);
	const double by[3][3] = {{a[0][0], a[0][1], a[0][2]}, {a[1][0], a[1][1], a[1][2]}, {a[2][0], a[2][1], a[2][2]}};

	fx_tensor_turn(by, d0, d);
	for (int m = 0; m < 3; m++)
		fx_tensor_turn(by, dd0[m], turned[m]);
	for (int l = 0; l < 3; l++)
		for (int c = 0; c < 6; c++)
			dd[l][c] = turned[0][c] * back[0][l] + turned[1][c] * back[1][l] + turned[2][c] * back[2][l];
}

/** The metric D^-1 of a field: dg = -g dD g. */
static inline bool field_metric(const void *arg, const double x[3], fxi_metric_point *p)
{
	double dd[3][6], g[6];

	field_tensor(arg, x, p->contra, dd);
	if (!fx_tensor_inverse(p->contra, g))
		return false;
	const double full[3][3] = {{g[0], g[1], g[3]}, {g[1], g[2], g[4]}, {g[3], g[4], g[5]}};

	for (int l = 0; l < 3; l++) {
		fx_tensor_turn(full, dd[l], p->dg[l]);
		for (int c = 0; c < 6; c++)
			p->dg[l][c] = -p->dg[l][c];
	}
	return true;
}

/** Lattice of n voxels whose voxel (0, 0, 0) is at `origin`, with these axes (columns, mm). */
static inline fx_lattice lattice_of(int64_t nx, int64_t ny, int64_t nz, double axes[3][3], const double origin[3])
{
	fx_lattice l = {.dims = {nx, ny, nz}, .has_affine = true};

	for (int i = 0; i < 3; i++) {
		for (int k = 0; k < 3; k++)
			l.affine[i][k] = axes[i][k];
		l.affine[i][3] = origin[i];
	}
	return l;
}

/** RAS mm of a voxel index position. */
static inline void place_of(const fx_lattice *l, const double index[3], double mm[3])
{
	for (int i = 0; i < 3; i++)
		mm[i] = l->affine[i][0] * index[0] + l->affine[i][1] * index[1] + l->affine[i][2] * index[2] + l->affine[i][3];
}

/** A tensors message of a field sampled on a lattice; drop it. */
static inline fx_msg *sampled_tensors(const field *f, const fx_lattice *l)
{
	const int64_t dims[4] = {6, l->dims[0], l->dims[1], l->dims[2]};
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t;
	float *to;

	if (!msg || fx_array_new(FX_F32, 4, dims, &fx_msg_tensors(msg)->d) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's tensors");
	t = fx_msg_tensors(msg);
	t->lattice = *l;
	to = t->d->data;
	for (int64_t i = 0; i < t->d->n / 6; i++) {
		const double index[3] = {(double)(i % dims[1]), (double)(i / dims[1] % dims[2]), (double)(i / dims[1] / dims[2])};
		double x[3], d[6], dd[3][6];

		place_of(l, index, x);
		field_tensor(f, x, d, dd);
		for (int c = 0; c < 6; c++)
			to[6 * i + c] = (float)d[c];
	}
	return msg;
}

/** The metric message of a field on a lattice. */
static inline fx_msg *sampled_metric(fx_math *m, const field *f, const fx_lattice *l, const fx_metric_spec *spec)
{
	fx_msg *tensors = sampled_tensors(f, l), *metric = NULL;

	if (fx_metric_build(m, fx_msg_tensors(tensors), spec, &metric) != FX_OK) {
		printf("\n%s\n", m->err->text);
		CU_FAIL_FATAL("a test's metric could not be built");
	}
	fx_drop(tensors);
	return metric;
}

#endif

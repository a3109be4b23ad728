/* SPDX-License-Identifier: MIT */
/* jacobi.c - Jacobi fields along a geodesic by differences of neighbouring geodesics: is its end a conjugate point? */
#include "diffusion/jacobi.h"

#include <math.h>
#include <string.h>

#define NEIGHBOURS 5 /* the geodesic itself, then +e1, -e1, +e2, -e2 */

struct state {
	double x[3], v[3];
};

static void times(const double m[6], const double v[3], double out[3])
{
	out[0] = m[0] * v[0] + m[1] * v[1] + m[3] * v[2];
	out[1] = m[1] * v[0] + m[2] * v[1] + m[4] * v[2];
	out[2] = m[3] * v[0] + m[4] * v[1] + m[5] * v[2];
}

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static double triple(const double a[3], const double b[3], const double c[3])
{
	return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

static double determinant(const double m[6])
{
	return m[0] * (m[2] * m[5] - m[4] * m[4]) - m[1] * (m[1] * m[5] - m[4] * m[3]) + m[3] * (m[1] * m[4] - m[2] * m[3]);
}

/* v, e1, e2 made g-orthonormal, e1 and e2 from those two axes that v has least of. False where g is not positive. */
static bool frame(const double g[6], double v[3], double e[2][3])
{
	double *vectors[3] = {v, e[0], e[1]}, along[3];
	int axis = 0;

	for (int i = 1; i < 3; i++)
		if (fabs(v[i]) > fabs(v[axis]))
			axis = i;
	memset(e, 0, 2 * sizeof e[0]);
	e[0][(axis + 1) % 3] = e[1][(axis + 2) % 3] = 1;
	for (int n = 0; n < 3; n++) {
		double norm2;

		for (int k = 0; k < n; k++) {
			double share;

			times(g, vectors[k], along);
			share = dot(vectors[n], along);
			for (int i = 0; i < 3; i++)
				vectors[n][i] -= share * vectors[k][i];
		}
		times(g, vectors[n], along);
		norm2 = dot(vectors[n], along);
		if (!(norm2 > 0) || !isfinite(norm2))
			return false;
		for (int i = 0; i < 3; i++)
			vectors[n][i] /= sqrt(norm2);
	}
	return true;
}

struct follow {
	fxi_metric_at at;
	const void *arg;
	double h, turn, sign;         /* of affine parameter; of directions; orientation of (e1, e2, v) */
	struct state s[NEIGHBOURS];
	double j[2][3];               /* the Jacobi fields now */
	double determinant;
};

/* One step of all five; the fields and their determinant after it, at parameter t. */
static bool advance(struct follow *f, double t)
{
	fxi_metric_point here;

	for (int n = 0; n < NEIGHBOURS; n++)
		if (!fxi_geodesic_step(f->at, f->arg, FX_INTEGRATOR_RK4, f->h, f->s[n].x, f->s[n].v))
			return false;
	if (!f->at(f->arg, f->s[0].x, &here))
		return false;
	for (int e = 0; e < 2; e++)
		for (int i = 0; i < 3; i++)
			f->j[e][i] = (f->s[1 + 2 * e].x[i] - f->s[2 + 2 * e].x[i]) / (2 * f->turn);
	f->determinant = f->sign * triple(f->j[0], f->j[1], f->s[0].v) / (sqrt(determinant(here.contra)) * t * t);
	return isfinite(f->determinant);
}

static bool start(struct follow *f, const double x0[3], const double v0[3], double length, double apart)
{
	double g[6], v[3], e[2][3], longest = 0;
	fxi_metric_point here;

	memcpy(v, v0, sizeof v);
	if (!f->at(f->arg, x0, &here) || !fx_tensor_inverse(here.contra, g) || !frame(g, v, e))
		return false;
	for (int n = 0; n < 2; n++)
		longest = fmax(longest, sqrt(dot(e[n], e[n])));
	f->turn = apart / (length * longest);
	f->sign = triple(e[0], e[1], v) > 0 ? 1 : -1;
	for (int n = 0; n < NEIGHBOURS; n++) {
		double by = n == 0 ? 0 : n % 2 == 1 ? f->turn : -f->turn;

		for (int i = 0; i < 3; i++) {
			f->s[n].x[i] = x0[i];
			f->s[n].v[i] = v[i] + by * e[n > 2][i];
		}
	}
	return true;
}

bool fxi_jacobi_along(fxi_metric_at at, const void *arg, const double x0[3], const double v0[3], double length,
	int64_t n_steps, double apart, fxi_jacobi *out)
{
	struct follow f = {.at = at, .arg = arg, .h = length / (double)n_steps};
	double last_j[2][3] = {{0}}, last = 0;

	*out = (fxi_jacobi){0};
	if (!(length > 0) || n_steps < 1 || !start(&f, x0, v0, length, apart))
		return false;
	for (int64_t n = 1; n <= n_steps; n++) {
		if (!advance(&f, f.h * (double)n))
			return false;
		if (n > 1) {
			/* A simple zero turns the volume over. At a double one (a sphere's antipode) both fields turn over at once. */
			if (last * f.determinant < 0)
				out->conjugate++;
			else if (dot(f.j[0], last_j[0]) < 0 && dot(f.j[1], last_j[1]) < 0)
				out->conjugate += 2;
		}
		memcpy(last_j, f.j, sizeof last_j);
		last = f.determinant;
	}
	out->determinant = f.determinant;
	memcpy(out->end, f.s[0].x, sizeof out->end);
	return true;
}

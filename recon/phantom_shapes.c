/* SPDX-License-Identifier: MIT */
/*
 * phantom_shapes.c - ellipses and ellipsoids: placing them on a matrix, cutting slices, voxel averages.
 *
 * Every shape is an affine image of the unit ball, so that matrices that are not cubic, rotations and cuts need no
 * special cases: the quadratic form G = (A A^T)^-1 says what is inside, |A^T k| what its transform is.
 */
#include "recon/phantom.h"

#include <fornix/backend.h>

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

void fxi_phantom_free(fxi_phantom *p)
{
	if (!p)
		return;
	fx_free(p->shapes);
	fx_free(p);
}

static int phantom_alloc(int n_dims, int64_t n, fx_error *err, fxi_phantom **out)
{
	fxi_phantom *p = fx_alloc(1, sizeof *p);

	*out = NULL;
	if (!p)
		return fx_error_set(err, FX_ENOMEM, "no memory for a phantom");
	p->n_dims = n_dims;
	p->shapes = n > 0 ? fx_alloc(n, sizeof *p->shapes) : NULL;
	if (n > 0 && !p->shapes) {
		fx_free(p);
		return fx_error_set(err, FX_ENOMEM, "no memory for a phantom of %lld shapes", (long long)n);
	}
	*out = p;
	return FX_OK;
}

/* Rotation matrix of Euler angles z-x-z, column a is where axis a goes. */
static void rotation(const double angle_deg[3], double r[3][3])
{
	double c[3], s[3];

	for (int i = 0; i < 3; i++) {
		c[i] = cos(angle_deg[i] * PI / 180);
		s[i] = sin(angle_deg[i] * PI / 180);
	}
	r[0][0] = c[0] * c[2] - s[0] * c[1] * s[2];
	r[0][1] = -c[0] * s[2] - s[0] * c[1] * c[2];
	r[0][2] = s[0] * s[1];
	r[1][0] = s[0] * c[2] + c[0] * c[1] * s[2];
	r[1][1] = -s[0] * s[2] + c[0] * c[1] * c[2];
	r[1][2] = -c[0] * s[1];
	r[2][0] = s[1] * s[2];
	r[2][1] = s[1] * c[2];
	r[2][2] = c[1];
}

static bool usable(const fxi_ellipsoid *e, int n_dims)
{
	bool fine = isfinite(e->amplitude);

	for (int d = 0; d < n_dims; d++)
		fine = fine && isfinite(e->centre[d]) && isfinite(e->angle_deg[d]) && isfinite(e->half_axes[d]) &&
			e->half_axes[d] > 0;
	return fine;
}

int fxi_phantom_new(int n_dims, const int64_t matrix[3], const fxi_ellipsoid *list, int64_t n, fx_error *err,
	fxi_phantom **out)
{
	int status = phantom_alloc(n_dims, n, err, out);

	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < n; i++) {
		fxi_ellipsoid e = list[i];
		fxi_shape *shape = &(*out)->shapes[i];
		double r[3][3];

		if (!usable(&e, n_dims)) {
			fxi_phantom_free(*out);
			*out = NULL;
			return fx_error_set(err, FX_EINVAL, "shape %lld: half axes must be above 0 and every value finite",
				(long long)(i + 1));
		}
		if (n_dims == 2)
			e.angle_deg[1] = e.angle_deg[2] = 0;
		rotation(e.angle_deg, r);
		shape->amplitude = e.amplitude;
		for (int d = 0; d < n_dims; d++) {
			shape->centre[d] = e.centre[d] * 0.5 * (double)matrix[d];
			for (int a = 0; a < n_dims; a++)
				shape->axis[a][d] = r[d][a] * e.half_axes[a] * 0.5 * (double)matrix[d];
		}
	}
	(*out)->n_shapes = n;
	return FX_OK;
}

static const fxi_ellipsoid head_2d[] = {
	{1.0, {0, 0}, {0.69, 0.92}, {0}},
	{-0.8, {0, -0.0184}, {0.6624, 0.874}, {0}},
	{-0.2, {0.22, 0}, {0.11, 0.31}, {-18}},
	{-0.2, {-0.22, 0}, {0.16, 0.41}, {18}},
	{0.1, {0, 0.35}, {0.21, 0.25}, {0}},
	{0.1, {0, 0.1}, {0.046, 0.046}, {0}},
	{0.1, {0, -0.1}, {0.046, 0.046}, {0}},
	{0.1, {-0.08, -0.605}, {0.046, 0.023}, {0}},
	{0.1, {0, -0.606}, {0.023, 0.023}, {0}},
	{0.1, {0.06, -0.605}, {0.023, 0.046}, {0}},
};

static const fxi_ellipsoid head_3d[] = {
	{1.0, {0, 0, 0}, {0.69, 0.92, 0.81}, {0}},
	{-0.8, {0, -0.0184, 0}, {0.6624, 0.874, 0.78}, {0}},
	{-0.2, {0.22, 0, 0}, {0.11, 0.31, 0.22}, {-18}},
	{-0.2, {-0.22, 0, 0}, {0.16, 0.41, 0.28}, {18}},
	{0.1, {0, 0.35, -0.15}, {0.21, 0.25, 0.41}, {0}},
	{0.1, {0, 0.1, 0.25}, {0.046, 0.046, 0.05}, {0}},
	{0.1, {0, -0.1, 0.25}, {0.046, 0.046, 0.05}, {0}},
	{0.1, {-0.08, -0.605, 0}, {0.046, 0.023, 0.05}, {0}},
	{0.1, {0, -0.606, 0}, {0.023, 0.023, 0.02}, {0}},
	{0.1, {0.06, -0.605, 0}, {0.023, 0.046, 0.02}, {0}},
};

int fxi_phantom_shepp_logan(int n_dims, const int64_t matrix[3], fx_error *err, fxi_phantom **out)
{
	if (n_dims == 2)
		return fxi_phantom_new(2, matrix, head_2d, sizeof head_2d / sizeof head_2d[0], err, out);
	return fxi_phantom_new(3, matrix, head_3d, sizeof head_3d / sizeof head_3d[0], err, out);
}

/* G = (A A^T)^-1: x is inside where (x - centre)^T G (x - centre) <= 1. 2-D leaves the third row and column 0. */
static void quadratic_form(const fxi_shape *s, int n_dims, double g[3][3])
{
	double p[3][3] = {{0}};

	memset(g, 0, 9 * sizeof(double));
	for (int i = 0; i < n_dims; i++)
		for (int j = 0; j < n_dims; j++)
			for (int a = 0; a < n_dims; a++)
				p[i][j] += s->axis[a][i] * s->axis[a][j];
	if (n_dims == 2) {
		double det = p[0][0] * p[1][1] - p[0][1] * p[1][0];

		g[0][0] = p[1][1] / det;
		g[1][1] = p[0][0] / det;
		g[0][1] = g[1][0] = -p[0][1] / det;
		return;
	}
	/* adjugate of a symmetric matrix: cofactors by cyclic indices */
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;

			g[i][j] = p[j1][i1] * p[j2][i2] - p[j1][i2] * p[j2][i1];
		}
	double det = p[0][0] * g[0][0] + p[0][1] * g[1][0] + p[0][2] * g[2][0];

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			g[i][j] /= det;
}

double fxi_phantom_at(const fxi_phantom *p, const double x[3])
{
	double sum = 0;

	for (int64_t i = 0; i < p->n_shapes; i++) {
		const fxi_shape *s = &p->shapes[i];
		double g[3][3], value = 0;

		quadratic_form(s, p->n_dims, g);
		for (int a = 0; a < p->n_dims; a++)
			for (int b = 0; b < p->n_dims; b++)
				value += (x[a] - s->centre[a]) * g[a][b] * (x[b] - s->centre[b]);
		if (value <= 1)
			sum += s->amplitude;
	}
	return sum;
}

/* The ellipse that the plane z cuts out of one ellipsoid; false where it misses. */
static bool cut(const fxi_shape *s, double z, fxi_shape *out)
{
	double g[3][3], shift[2], d = z - s->centre[2], rest, r, l00, l10, l11;

	quadratic_form(s, 3, g);
	double det = g[0][0] * g[1][1] - g[0][1] * g[0][1];

	/* the minimum over the plane lies at -G2^-1 (gxz, gyz) d, and is rest * d^2 there */
	shift[0] = -(g[1][1] * g[0][2] - g[0][1] * g[1][2]) / det;
	shift[1] = -(g[0][0] * g[1][2] - g[0][1] * g[0][2]) / det;
	rest = g[2][2] + g[0][2] * shift[0] + g[1][2] * shift[1];
	if (rest * d * d >= 1)
		return false;
	r = sqrt(1 - rest * d * d);
	/* G2 = L L^T, so the axes are the columns of r L^-T */
	l00 = sqrt(g[0][0]);
	l10 = g[0][1] / l00;
	l11 = sqrt(g[1][1] - l10 * l10);
	*out = (fxi_shape){
		.amplitude = s->amplitude,
		.centre = {s->centre[0] + shift[0] * d, s->centre[1] + shift[1] * d, 0},
		.axis = {{r / l00, 0, 0}, {-r * l10 / (l00 * l11), r / l11, 0}, {0, 0, 0}},
	};
	return true;
}

int fxi_phantom_slice(const fxi_phantom *whole, double z, fx_error *err, fxi_phantom **out)
{
	int status = phantom_alloc(2, whole->n_shapes, err, out);

	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < whole->n_shapes; i++)
		if (cut(&whole->shapes[i], z, &(*out)->shapes[(*out)->n_shapes]))
			(*out)->n_shapes++;
	return FX_OK;
}

/* ---- voxel averages ---- */

struct truth_job {
	const fxi_phantom *p;
	const int64_t *matrix;
	double (*forms)[3][3];
	int64_t lines_y, lines_z; /* sub-lines a voxel */
	float *out;
	_Atomic int failed;
};

/* Adds weight * (length of [from, to] inside each voxel) to one row; voxel i spans i - centre +- 0.5. */
static void add_chord(double *row, int64_t n, double from, double to, double weight)
{
	double offset = (double)(n / 2) + 0.5;
	double a = fmax(from + offset, 0), b = fmin(to + offset, (double)n);

	if (!(b > a))
		return;
	int64_t first = (int64_t)a, last = (int64_t)b;

	if (first == last) {
		row[first] += weight * (b - a);
		return;
	}
	row[first] += weight * ((double)(first + 1) - a);
	for (int64_t i = first + 1; i < last; i++)
		row[i] += weight;
	if (last < n)
		row[last] += weight * (b - (double)last);
}

/* Where the line (., y, z) meets a shape: solves the quadratic in x. */
static void add_shape(const struct truth_job *job, int64_t i, double y, double z, double weight, double *row)
{
	const fxi_shape *s = &job->p->shapes[i];
	double (*g)[3] = job->forms[i];
	double dy = y - s->centre[1], dz = job->p->n_dims == 3 ? z - s->centre[2] : 0;
	double half = (g[0][1] * dy + g[0][2] * dz) / g[0][0];
	double c = g[1][1] * dy * dy + 2 * g[1][2] * dy * dz + g[2][2] * dz * dz - 1;
	double disc = half * half - c / g[0][0];

	if (disc <= 0)
		return;
	disc = sqrt(disc);
	add_chord(row, job->matrix[0], s->centre[0] - half - disc, s->centre[0] - half + disc, weight * s->amplitude);
}

static void truth_row(void *arg, int64_t index)
{
	struct truth_job *job = arg;
	int64_t nx = job->matrix[0], iy = index % job->matrix[1], iz = index / job->matrix[1];
	double weight = 1 / (double)(job->lines_y * job->lines_z);
	double *row = fx_alloc(nx, sizeof *row);

	if (!row) {
		job->failed = 1;
		return;
	}
	for (int64_t sz = 0; sz < job->lines_z; sz++)
		for (int64_t sy = 0; sy < job->lines_y; sy++) {
			double y = (double)(iy - job->matrix[1] / 2) + ((double)sy + 0.5) / (double)job->lines_y - 0.5;
			double z = (double)(iz - job->matrix[2] / 2) + ((double)sz + 0.5) / (double)job->lines_z - 0.5;

			for (int64_t i = 0; i < job->p->n_shapes; i++)
				add_shape(job, i, y, z, weight, row);
		}
	for (int64_t ix = 0; ix < nx; ix++)
		job->out[index * nx + ix] = (float)row[ix];
	fx_free(row);
}

int fxi_phantom_truth(const fxi_phantom *p, const int64_t matrix[3], int n_threads, fx_error *err, fx_array **out)
{
	int status = fx_array_new(FX_F32, 3, matrix, out);
	struct truth_job job = {.p = p, .matrix = matrix};

	if (status != FX_OK)
		return fx_error_set(err, status, "no memory for a truth of %lld x %lld x %lld voxels", (long long)matrix[0],
			(long long)matrix[1], (long long)matrix[2]);
	job.lines_y = p->n_dims == 3 ? 16 : 64;
	job.lines_z = p->n_dims == 3 ? 16 : 1;
	job.out = FX_F32_OF(*out);
	job.forms = fx_alloc(p->n_shapes ? p->n_shapes : 1, sizeof *job.forms);
	if (job.forms) {
		for (int64_t i = 0; i < p->n_shapes; i++)
			quadratic_form(&p->shapes[i], p->n_dims, job.forms[i]);
		fx_parallel(n_threads, matrix[1] * matrix[2], truth_row, &job);
	}
	if (!job.forms || job.failed) {
		fx_array_unref(*out);
		*out = NULL;
		status = fx_error_set(err, FX_ENOMEM, "no memory for the phantom's voxel averages");
	}
	fx_free(job.forms);
	return status;
}

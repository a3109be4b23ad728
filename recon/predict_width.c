/* SPDX-License-Identifier: MIT */
/* predict_width.c - the local response of the linear estimate: how wide A^-1 A0 makes a point, from combs of points. */
#include <fornix/recon.h>

#include "phantom.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#define SPACING 8 /* voxels between points: a response wider than this runs into its neighbours' */

struct comb {
	const int64_t *dims;
	int64_t first[3], n[3]; /* of the points along each axis */
};

static struct comb comb_of(const int64_t dims[3], int pass)
{
	struct comb c = {.dims = dims};

	for (int d = 0; d < 3; d++) {
		int64_t offset = dims[d] < SPACING ? dims[d] / 2 : pass >> d & 1 ? 3 * SPACING / 4 : SPACING / 4;

		c.first[d] = offset;
		c.n[d] = dims[d] < SPACING ? 1 : (dims[d] - 1 - offset) / SPACING + 1;
	}
	return c;
}

static int64_t point(const struct comb *c, int64_t p)
{
	int64_t x = c->first[0] + SPACING * (p % c->n[0]), y = c->first[1] + SPACING * (p / c->n[0] % c->n[1]);

	return x + c->dims[0] * (y + c->dims[1] * (c->first[2] + SPACING * (p / c->n[0] / c->n[1])));
}

/* The point whose cell a voxel lies in. */
static int64_t cell(const struct comb *c, int64_t voxel)
{
	int64_t at[3] = {voxel % c->dims[0], voxel / c->dims[0] % c->dims[1], voxel / c->dims[0] / c->dims[1]}, p[3];

	for (int d = 0; d < 3; d++) {
		p[d] = (at[d] - c->first[d] + SPACING / 2 + SPACING) / SPACING - 1;
		p[d] = p[d] < 0 ? 0 : p[d] >= c->n[d] ? c->n[d] - 1 : p[d];
	}
	return p[0] + c->n[0] * (p[1] + c->n[1] * p[2]);
}

/* Squared distance of a voxel to its cell's point. */
static int64_t distance2(const struct comb *c, int64_t voxel)
{
	int64_t p = point(c, cell(c, voxel)), sum = 0, step = 1;

	for (int d = 0; d < 3; d++) {
		int64_t apart = voxel / step % c->dims[d] - p / step % c->dims[d];

		sum += apart * apart;
		step *= c->dims[d];
	}
	return sum;
}

/* response (host) = A^-1 A0 comb. */
static int respond(fx_math *m, const fx_frame *f, double lambda_abs, const fx_predict_options *o, const struct comb *c,
	int pass, fx_array **response)
{
	fx_cg_options cg = {.iterations = o->iterations, .tolerance = o->tolerance};
	fx_cg_report report = {0};
	fx_array *host = NULL, *points = NULL, *b = NULL, *x = NULL, *work = NULL;
	fxi_random random;
	int status = fx_array_new(FX_CF32, 3, f->grid, &host);

	*response = NULL;
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a map of the resolution");
	fxi_random_start(&random, o->seed, (uint64_t)pass);
	for (int64_t p = 0; p < c->n[0] * c->n[1] * c->n[2]; p++)
		FX_CF32_OF(host)[point(c, p)] = fxi_random_uniform(&random) < 0.5 ? -1 : 1;
	status = m->ops->upload(m, host, &points);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 3, f->grid, &b);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 3, f->grid, &x);
	if (status == FX_OK)
		status = fx_normal_apply(m, f->kernel, f->maps, NULL, 0, points, &work, b);
	if (status == FX_OK)
		status = fx_frame_solve(m, f, lambda_abs, 0, b, &cg, x, &report);
	if (status == FX_OK)
		status = m->ops->download(m, x, response);
	fx_cg_report_free(&report);
	fx_array_unref(host);
	fx_array_unref(points);
	fx_array_unref(b);
	fx_array_unref(x);
	fx_array_unref(work);
	return status;
}

/* The energy of each cell of the response, as a width at the cell's voxels, where this comb's point is the nearest so far. */
static int spread_widths(fx_math *m, const struct comb *c, const fx_array *response, double unit, int n_axes,
	int64_t *nearest, fx_array *width)
{
	int64_t cells = c->n[0] * c->n[1] * c->n[2];
	double *energy = fx_alloc(cells, sizeof *energy);

	if (!energy)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a map of the resolution");
	for (int64_t i = 0; i < response->n; i++) {
		double a = cabs((fx_cf64)FX_CF32_OF(response)[i]);

		energy[cell(c, i)] += a * a;
	}
	for (int64_t i = 0; i < response->n; i++) {
		int64_t p = cell(c, i), d2 = distance2(c, i);
		double peak = cabs((fx_cf64)FX_CF32_OF(response)[point(c, p)]);

		if (d2 >= nearest[i])
			continue;
		nearest[i] = d2;
		FX_F32_OF(width)[i] = peak > 0 ? (float)(unit * pow(energy[p] / (peak * peak), 1.0 / n_axes)) : 0;
	}
	fx_free(energy);
	return FX_OK;
}

/* A Gaussian's FWHM over its energy width, times the geometric mean of the voxel's sides. */
static double unit_of(const fx_frame *f, int *n_axes)
{
	const fx_geometry *g = &f->geometry;
	double product = 1;
	bool known = true;

	*n_axes = 0;
	for (int d = 0; d < 3; d++) {
		if (f->grid[d] == 1)
			continue;
		known = known && g->fov_mm[d] > 0 && g->matrix[d] > 0;
		product *= known ? g->fov_mm[d] / (double)g->matrix[d] : 1;
		++*n_axes;
	}
	*n_axes = *n_axes > 0 ? *n_axes : 1;
	return 2 * sqrt(2 * log(2) / acos(-1.0)) * (known ? pow(product, 1.0 / *n_axes) : 1);
}

int fx_predict_resolution(fx_math *m, const fx_frame *f, double lambda_abs, const fx_predict_options *o, fx_array **width)
{
	int64_t *nearest = NULL;
	int n_axes, passes = 0;
	double unit = unit_of(f, &n_axes);
	int status = fx_array_new(FX_F32, 3, f->grid, width);

	if (status == FX_OK)
		nearest = fx_alloc((*width)->n, sizeof *nearest);
	if (!nearest) {
		fx_slot_take(width, NULL);
		return fx_math_fail(m, FX_ENOMEM, "no memory for a map of the resolution");
	}
	for (int64_t i = 0; i < (*width)->n; i++)
		nearest[i] = INT64_MAX;
	for (int pass = 0; pass < 8 && status == FX_OK; pass++) {
		struct comb c = comb_of(f->grid, pass);
		fx_array *response = NULL;
		bool again = false;

		for (int d = 0; d < 3; d++) /* an axis without room has one point, in one pass */
			again = again || ((pass >> d & 1) && f->grid[d] < SPACING);
		if (again)
			continue;
		status = respond(m, f, lambda_abs, o, &c, passes++, &response);
		if (status == FX_OK)
			status = spread_widths(m, &c, response, unit, n_axes, nearest, *width);
		fx_array_unref(response);
	}
	fx_free(nearest);
	if (status != FX_OK)
		fx_slot_take(width, NULL);
	return status;
}

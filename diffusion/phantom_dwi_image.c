/* SPDX-License-Identifier: MIT */
/* phantom_dwi_image.c - see phantom_dwi.h: bundles as voxels, and the answer beside them. */
#include "phantom_dwi.h"

#include <fornix/backend.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* One row of voxels after the other, on the pool. */
struct rows {
	const fxi_dwi_object *o;
	const fxi_dwi_grid *grid;
	const fx_gradient *gradients;
	int64_t n;               /* volumes */
	double label_mm;
	float *series;
	fxi_dwi_truth *truth;
};

/* Point p of detail^3 of a voxel, RAS mm. */
static void point_of(const fxi_dwi_grid *g, const int64_t voxel[3], int p, double x[3])
{
	int at[3] = {p % g->detail, p / g->detail % g->detail, p / g->detail / g->detail};

	for (int i = 0; i < 3; i++) {
		x[i] = g->lattice.affine[i][3];
		for (int d = 0; d < 3; d++)
			x[i] += g->lattice.affine[i][d] * ((double)voxel[d] + ((double)at[d] + 0.5) / g->detail - 0.5);
	}
}

static void series_row(void *arg, int64_t row)
{
	const struct rows *r = arg;
	const int64_t *dims = r->grid->lattice.dims;
	int points = r->grid->detail * r->grid->detail * r->grid->detail;
	int64_t all = dims[0] * dims[1] * dims[2];

	for (int64_t i = 0; i < dims[0]; i++) {
		const int64_t voxel[3] = {i, row % dims[1], row / dims[1]};

		for (int p = 0; p < points; p++) {
			fxi_dwi_point point;
			double x[3];

			point_of(r->grid, voxel, p, x);
			fxi_dwi_at(r->o, x, 0, &point);
			for (int64_t v = 0; point.n > 0 && v < r->n; v++)
				r->series[i + dims[0] * row + all * v] += (float)(fxi_dwi_signal(&point, &r->gradients[v]) / points);
		}
	}
}

int fxi_dwi_series(const fxi_dwi_object *o, const fxi_dwi_grid *grid, const fx_gradient *gradients, int64_t n, fx_error *err,
	fx_array **out)
{
	const int64_t *dims = grid->lattice.dims;
	int status = fx_array_new4(FX_F32, dims[0], dims[1], dims[2], n, out);
	struct rows r = {.o = o, .grid = grid, .gradients = gradients, .n = n};

	if (status != FX_OK)
		return fx_error_set(err, status, "no memory for %lld volumes of %lld x %lld x %lld voxels", (long long)n, (long long)dims[0],
			(long long)dims[1], (long long)dims[2]);
	r.series = FX_F32_OF(*out);
	fx_parallel(grid->n_threads, dims[1] * dims[2], series_row, &r);
	return FX_OK;
}

/* FA without eigenvalues: sqrt(3/2) |D - md I| / |D|, Frobenius norms. */
static double fa_of(const double d[6])
{
	static const int diagonal[6] = {1, 0, 1, 0, 0, 1};
	double md = (d[0] + d[2] + d[5]) / 3, whole = 0, rest = 0;

	for (int i = 0; i < 6; i++) {
		double times = diagonal[i] ? 1 : 2, off = d[i] - (diagonal[i] ? md : 0);

		whole += times * d[i] * d[i];
		rest += times * off * off;
	}
	return whole > 0 ? sqrt(1.5 * rest / whole) : 0;
}

static void truth_voxel(const struct rows *r, const int64_t voxel[3], int64_t at)
{
	const fxi_dwi_grid *g = r->grid;
	int points = g->detail * g->detail * g->detail, whole = 0;
	int64_t all = g->lattice.dims[0] * g->lattice.dims[1] * g->lattice.dims[2];
	double d[6] = {0}, s0 = 0, x[3];
	fxi_dwi_point point;

	for (int p = 0; p < points; p++) {
		point_of(g, voxel, p, x);
		fxi_dwi_at(r->o, x, 0, &point);
		whole += point.n == 1 && point.bundles == 1;
		for (int c = 0; c < point.n; c++) {
			s0 += point.s0[c];
			for (int i = 0; i < 6; i++)
				d[i] += point.s0[c] * point.d[c][i];
		}
	}
	for (int i = 0; i < 6; i++) {
		d[i] = s0 > 0 ? d[i] / s0 : 0;
		FX_F32_OF(r->truth->tensors)[at + all * i] = (float)d[i];
	}
	FX_F32_OF(r->truth->fa)[at] = (float)fa_of(d);
	FX_F32_OF(r->truth->md)[at] = (float)((d[0] + d[2] + d[5]) / 3);
	FX_F32_OF(r->truth->s0)[at] = (float)(s0 / points);
	((uint8_t *)r->truth->bundle->data)[at] = whole == points;
	for (int i = 0; i < 3; i++) {
		x[i] = g->lattice.affine[i][3];
		for (int k = 0; k < 3; k++)
			x[i] += g->lattice.affine[i][k] * (double)voxel[k];
	}
	fxi_dwi_at(r->o, x, r->label_mm, &point);
	((uint8_t *)r->truth->labels->data)[at] = (uint8_t)point.label;
}

static void truth_row(void *arg, int64_t row)
{
	const struct rows *r = arg;
	const int64_t *dims = r->grid->lattice.dims;

	for (int64_t i = 0; i < dims[0]; i++)
		truth_voxel(r, (int64_t[3]){i, row % dims[1], row / dims[1]}, i + dims[0] * row);
}

void fxi_dwi_truth_clear(fxi_dwi_truth *t)
{
	fx_array **arrays[] = {&t->tensors, &t->fa, &t->md, &t->s0, &t->bundle, &t->labels};

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		fx_array_unref(*arrays[i]);
		*arrays[i] = NULL;
	}
}

int fxi_dwi_truth_new(const fxi_dwi_object *o, const fxi_dwi_grid *grid, fx_error *err, fxi_dwi_truth *out)
{
	const int64_t *dims = grid->lattice.dims;
	fx_array **arrays[] = {&out->fa, &out->md, &out->s0, &out->bundle, &out->labels};
	struct rows r = {.o = o, .grid = grid, .truth = out};
	int status = fx_array_new4(FX_F32, dims[0], dims[1], dims[2], 6, &out->tensors);

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays && status == FX_OK; i++)
		status = fx_array_new(i < 3 ? FX_F32 : FX_U8, 3, dims, arrays[i]);
	if (status != FX_OK) {
		fxi_dwi_truth_clear(out);
		return fx_error_set(err, status, "no memory for the truth of %lld x %lld x %lld voxels", (long long)dims[0],
			(long long)dims[1], (long long)dims[2]);
	}
	for (int d = 0; d < 3; d++) /* three voxels thick, as the longest edge has it */
		r.label_mm = fmax(r.label_mm, 1.5 * sqrt(pow(grid->lattice.affine[0][d], 2) + pow(grid->lattice.affine[1][d], 2) +
			pow(grid->lattice.affine[2][d], 2)));
	fx_parallel(grid->n_threads, dims[1] * dims[2], truth_row, &r);
	return FX_OK;
}

static double determinant(const double a[3][4])
{
	return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
		a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

int fxi_dwi_fsl_texts(const fx_gradient *gradients, int64_t n, const fx_lattice *lattice, fx_error *err, char **bvals,
	char **bvecs)
{
	size_t size[2] = {0};
	FILE *b = open_memstream(bvals, &size[0]), *v = open_memstream(bvecs, &size[1]);
	double sign = determinant(lattice->affine) > 0 ? -1 : 1;
	bool failed = !b || !v;

	for (int64_t i = 0; !failed && i < n; i++)
		fprintf(b, "%s%g", i ? " " : "", gradients[i].b);
	for (int d = 0; !failed && d < 3; d++)
		for (int64_t i = 0; i < n; i++) {
			double along = 0, length = 0;

			for (int k = 0; k < 3; k++) {
				along += lattice->affine[k][d] * gradients[i].dir[k];
				length += lattice->affine[k][d] * lattice->affine[k][d];
			}
			fprintf(v, "%s%.9f%s", i ? " " : "", (d == 0 ? sign : 1) * along / sqrt(length), i == n - 1 ? "\n" : "");
		}
	if (!failed)
		fputc('\n', b);
	failed = (b && fclose(b) != 0) || failed;
	failed = (v && fclose(v) != 0) || failed;
	if (!failed)
		return FX_OK;
	free(*bvals);
	free(*bvecs);
	*bvals = *bvecs = NULL;
	return fx_error_set(err, FX_ENOMEM, "no memory for the text of %lld gradients", (long long)n);
}

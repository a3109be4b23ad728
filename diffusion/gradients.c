/* SPDX-License-Identifier: MIT */
/*
 * gradients.c - gradient tables of FSL and MRtrix into b-values and unit vectors in RAS axes. The sign rule is where
 * programs err: FSL's vectors live in the image's index axes with x turned round wherever the affine does not mirror.
 */
#include <fornix/diffusion.h>

#include <math.h>
#include <string.h>

/* A vector this far from unit length is told: three written digits round by half as much at most. */
#define UNIT_TOLERANCE 1e-2
/* s/mm^2; up to it a volume counts as b = 0 everywhere in the field, and needs no direction: some scanners write b = 5. */
#define B0_MOST 50.0
/* MRtrix scales b by |g|^2 where the logarithm of |g|^2 is above this for some row (core/dwi/gradient.h, 3.0). */
#define MRTRIX_TOLERANCE 0.01

static int no_numbers(const char *what, const fx_array *a, fx_error *err)
{
	return fx_error_set(err, FX_EINVAL, "%s are f64 numbers, not %s", what, fx_type_name(a->type));
}

/* Checks b and makes the vector a unit one; `number` counts from 1. *norm is its length, 0 where there is none. */
static int take_row(double b, const double v[3], int64_t number, fx_gradient *out, double *norm, fx_error *err)
{
	double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);

	*out = (fx_gradient){.b = b};
	*norm = 0;
	if (isinf(length))
		return fx_error_set(err, FX_EDATA, "gradient table: the direction of volume %lld is %g %g %g; it must be finite "
			"(nan or 0 0 0 stand for b = 0)", (long long)number, v[0], v[1], v[2]);
	if (!(isfinite(b) && b >= 0))
		return fx_error_set(err, FX_EDATA, "gradient table: b of volume %lld is %g; it must be 0 or more, in s/mm^2",
			(long long)number, b);
	if (!(length > 0)) {
		if (b > B0_MOST)
			return fx_error_set(err, FX_EDATA, "gradient table: volume %lld has b = %g but no direction (%g %g %g); a "
				"trace image or a spherically encoded one says nothing of directions: leave it out", (long long)number, b,
				v[0], v[1], v[2]);
		return FX_OK;
	}
	*norm = length;
	for (int i = 0; i < 3; i++)
		out->dir[i] = v[i] / length;
	return FX_OK;
}

/* 3 rows of n (what FSL writes) or n rows of 3: the distances between components and between vectors, and n. */
static int layout(const fx_array *bvecs, int64_t *component, int64_t *vector, int64_t *n, fx_error *err)
{
	int64_t columns = bvecs->dims[0], rows = bvecs->dims[1];

	if (bvecs->n_dims > 2 || (rows != 3 && columns != 3))
		return fx_error_set(err, FX_EDATA, "b-vectors are 3 rows of n numbers or n rows of 3; these are %lld rows of %lld",
			(long long)rows, (long long)columns);
	*n = rows == 3 ? columns : rows;
	*component = rows == 3 ? columns : 1;
	*vector = rows == 3 ? 1 : 3;
	return FX_OK;
}

int fx_gradients_from_fsl(const fx_array *bvals, const fx_array *bvecs, const fx_lattice *lattice, int64_t n,
	fx_gradient *out, int64_t *n_scaled, fx_error *err)
{
	double axes[3][3], flip;
	int64_t component = 0, vector = 0, n_vectors = 0;
	int status;

	*n_scaled = 0;
	if (bvals->type != FX_F64 || bvecs->type != FX_F64)
		return no_numbers("b-values and b-vectors", bvals->type != FX_F64 ? bvals : bvecs, err);
	status = layout(bvecs, &component, &vector, &n_vectors, err);
	if (status != FX_OK)
		return status;
	if (bvals->n != n_vectors || n_vectors != n)
		return fx_error_set(err, FX_EDATA, "the gradient table has %lld b-values and %lld b-vectors for %lld volumes; they "
			"must be as many: is the table of another series?", (long long)bvals->n, (long long)n_vectors, (long long)n);
	if (!fx_lattice_axes(lattice, axes))
		return fx_error_set(err, FX_EDATA, "the image's affine spans no volume, so that b-vectors, which are in its axes, "
			"cannot be turned into space; repair the file's sform or give a table in scanner axes (grad=)");
	flip = axes[0][0] * (axes[1][1] * axes[2][2] - axes[1][2] * axes[2][1]) -
		axes[0][1] * (axes[1][0] * axes[2][2] - axes[1][2] * axes[2][0]) +
		axes[0][2] * (axes[1][0] * axes[2][1] - axes[1][1] * axes[2][0]) > 0 ? -1 : 1;
	for (int64_t v = 0; v < n; v++) {
		const double *from = FX_F64_OF(bvecs) + v * vector;
		double g[3] = {flip * from[0], from[component], from[2 * component]}, norm;

		status = take_row(FX_F64_OF(bvals)[v], g, v + 1, &out[v], &norm, err);
		if (status != FX_OK)
			return status;
		memcpy(g, out[v].dir, sizeof g);
		for (int i = 0; i < 3; i++) /* the axes are orthogonal: a unit vector stays one */
			out[v].dir[i] = axes[i][0] * g[0] + axes[i][1] * g[1] + axes[i][2] * g[2];
		if (norm > 0 && fabs(norm - 1) > UNIT_TOLERANCE)
			++*n_scaled;
	}
	return FX_OK;
}

int fx_gradients_from_header(const fx_header *scan, fx_gradient *out, int64_t *n_scaled, fx_error *err)
{
	*n_scaled = 0;
	if (scan->n_diffusion == 0)
		return fx_error_set(err, FX_EDATA, "the scan header has no list of diffusion weightings (sequenceParameters/diffusion); "
			"give the table with bval= and bvec=, or grad=");
	for (int64_t v = 0; v < scan->n_diffusion; v++) {
		double norm;
		int status = take_row(scan->diffusion[v].b, scan->diffusion[v].dir, v + 1, &out[v], &norm, err);

		if (status != FX_OK)
			return status;
		if (norm > 0 && fabs(norm - 1) > UNIT_TOLERANCE)
			++*n_scaled;
	}
	return FX_OK;
}

int fx_gradients_from_mrtrix(const fx_array *table, int64_t n, fx_gradient *out, fx_error *err)
{
	bool scale = false;

	if (table->type != FX_F64)
		return no_numbers("MRtrix's gradient tables", table, err);
	if (table->dims[0] != 4 || table->n != 4 * table->dims[1])
		return fx_error_set(err, FX_EDATA, "MRtrix's gradient table has rows of 4 numbers (x y z b); this one has rows of "
			"%lld", (long long)table->dims[0]);
	if (table->dims[1] != n)
		return fx_error_set(err, FX_EDATA, "the gradient table has %lld rows for %lld volumes; they must be as many: is the "
			"table of another series?", (long long)table->dims[1], (long long)n);
	for (int64_t v = 0; v < n; v++) {
		const double *row = FX_F64_OF(table) + 4 * v;
		double norm;
		int status = take_row(row[3], row, v + 1, &out[v], &norm, err);

		if (status != FX_OK)
			return status;
		scale = scale || (norm > 0 && fabs(2 * log(norm)) > MRTRIX_TOLERANCE);
	}
	for (int64_t v = 0; v < n && scale; v++) {
		const double *row = FX_F64_OF(table) + 4 * v;
		double norm2 = row[0] * row[0] + row[1] * row[1] + row[2] * row[2];

		if (norm2 > 0)
			out[v].b *= norm2;
	}
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * tensor_voxel.c - the tensor fit of one voxel in double: what the vector code in single is not trusted with, that is
 * voxels whose few usable signals, or whose weights of many orders of magnitude, nearly leave a direction undetermined.
 */
#include "tensor.h"

#include <fornix/diffusion.h>

#include <math.h>

#define X 7
#define SINGULAR 1e-12 /* of a pivot to its diagonal element; rounding leaves some 1e-15 of them */

static double fitted(const double *q, const double z[X])
{
	double f = 0;

	for (int k = 0; k < X; k++)
		f += q[k] * z[k];
	return f;
}

/* z += (Q^T W Q)^-1 Q^T W r by Cholesky; false where it is singular. */
static bool correct(const fx_tensor_design *design, const double *w, const double *r, double z[X])
{
	double a[X][X] = {{0}}, g[X] = {0};

	for (int64_t i = 0; i < design->n; i++)
		for (int k = 0; k < X; k++) {
			double weighted = w[i] * design->q[X * i + k];

			g[k] += weighted * r[i];
			for (int l = 0; l <= k; l++)
				a[k][l] += weighted * design->q[X * i + l];
		}
	for (int k = 0; k < X; k++) {
		double diagonal = a[k][k];

		for (int l = 0; l <= k; l++) {
			for (int j = 0; j < l; j++)
				a[k][l] -= a[k][j] * a[l][j];
			if (l < k)
				a[k][l] /= a[l][l];
		}
		if (!(a[k][k] > SINGULAR * diagonal) || !isfinite(a[k][k]))
			return false;
		a[k][k] = sqrt(a[k][k]);
		for (int l = 0; l < k; l++)
			g[k] -= a[k][l] * g[l];
		g[k] /= a[k][k];
	}
	for (int k = X - 1; k >= 0; k--) {
		for (int l = k + 1; l < X; l++)
			g[k] -= a[l][k] * g[l];
		g[k] /= a[k][k];
	}
	for (int k = 0; k < X; k++)
		z[k] += g[k];
	return true;
}

bool fxi_tensor_voxel(const fx_tensor_design *design, const float *s, double *work, fxi_voxel_fit *out)
{
	int64_t n = design->n, used = 0;
	double *y = work, *w = work + n, *r = w + n, *f = r + n, squares = 0;
	int n_fits = 1 + (design->from_signals ? 1 : 0) + design->reweightings;

	*out = (fxi_voxel_fit){0};
	for (int64_t i = 0; i < n; i++) {
		y[i] = s[i] > 0 ? log(s[i]) : 0;
		used += s[i] > 0;
		f[i] = 0;
	}
	if (used < X)
		return false;
	for (int fit = 0; fit < n_fits; fit++) {
		double most = -INFINITY;

		for (int64_t i = 0; i < n; i++) {
			w[i] = fit == 0 ? 0 : 2 * (fit == 1 && design->from_signals ? y[i] : f[i]);
			if (s[i] > 0)
				most = fmax(most, w[i]);
			r[i] = y[i] - f[i];
		}
		for (int64_t i = 0; i < n; i++)
			w[i] = s[i] > 0 ? exp(w[i] - most) : 0;
		if (!correct(design, w, r, out->z))
			return false;
		for (int64_t i = 0; i < n; i++)
			f[i] = fitted(design->q + X * i, out->z);
	}
	for (int64_t i = 0; i < n; i++)
		if (s[i] > 0)
			squares += (s[i] - exp(f[i])) * (s[i] - exp(f[i]));
	out->residual = sqrt(squares / (double)used);
	return isfinite(out->residual);
}

/* Whether all eigenvalues are above the floor by leading minors, which is quick; false where it is a near thing. */
static bool clearly_above(const double d[6], double floor)
{
	double a = d[0] - floor, b = d[2] - floor, c = d[5] - floor, minor = a * b - d[1] * d[1];
	double det = c * minor - a * d[4] * d[4] - b * d[3] * d[3] + 2 * d[1] * d[3] * d[4];

	return a > 0 && minor > 1e-12 * a * b && det > 1e-12 * a * b * c;
}

void fxi_tensor_put(const fx_tensor_design *design, const double z[7], int64_t i, unsigned flags, const fx_tensor_arrays *out)
{
	double x[X];
	bool good = true;

	for (int k = 0; k < X; k++) {
		x[k] = fitted(design->to_x[k], z);
		good = good && fabs(x[k]) < 1e30; /* and not NaN */
	}
	if (good && (flags & FX_TENSOR_ISOTROPIC))
		for (int k = 1; k < X; k++)
			x[k] = 0; /* but for rounding, it is */
	if (good && !clearly_above(x + 1, design->floor) && fx_tensor_raise(x + 1, design->floor))
		flags |= FX_TENSOR_CLAMPED;
	if (!good) {
		flags |= FX_TENSOR_UNFITTED;
		for (int k = 0; k < X; k++)
			x[k] = 0;
	}
	FX_F32_OF(out->s0)[i] = good ? (float)exp(x[0]) : 0;
	for (int k = 0; k < 6; k++)
		FX_F32_OF(out->d)[6 * i + k] = (float)x[1 + k];
	((uint8_t *)out->flags->data)[i] = (uint8_t)flags;
}

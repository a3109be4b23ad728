/* SPDX-License-Identifier: MIT */
/*
 * fit_design.c - the design matrix of ln S = ln S0 - b g^T D g in the basis of its orthonormal columns, and its rank.
 * Sums in that basis need no inverse to be understood, and lose no digits to the design: see host/kernels/tensor.c.
 */
#include "fit.h"

#include <lapacke.h>
#include <math.h>

#define X FXI_FIT_X
/* Below it the noise of some combination of D's components would be a thousand times that of the signals. */
#define RANK_LIMIT 1e-3

static void fill_row(const fx_gradient *g, double row[X])
{
	double b = g->b * 1e-3; /* ms/um^2, for D in um^2/ms */
	const double *d = g->dir;

	row[0] = 1;
	row[1] = -b * d[0] * d[0];
	row[2] = -2 * b * d[0] * d[1];
	row[3] = -b * d[1] * d[1];
	row[4] = -2 * b * d[0] * d[2];
	row[5] = -2 * b * d[1] * d[2];
	row[6] = -b * d[2] * d[2];
}

static double column_dot(const double *q, int64_t n, int k, int l)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += q[X * i + k] * q[X * i + l];
	return sum;
}

/* q = q r with orthonormal columns, by Gram and Schmidt, twice over: the second time takes off what rounding left. */
static void orthogonalise(double *q, int64_t n, double r[X][X])
{
	for (int k = 0; k < X; k++) {
		double norm;

		for (int pass = 0; pass < 2; pass++)
			for (int l = 0; l < k; l++) {
				double dot = column_dot(q, n, l, k);

				r[l][k] += dot;
				for (int64_t i = 0; i < n; i++)
					q[X * i + k] -= dot * q[X * i + l];
			}
		norm = sqrt(column_dot(q, n, k, k));
		r[k][k] = norm;
		for (int64_t i = 0; norm > 0 && i < n; i++)
			q[X * i + k] /= norm;
	}
}

static int rank_of(double r[X][X])
{
	double a[X * X], s[X] = {0}, superb[X];
	int rank = 0;

	for (int k = 0; k < X; k++)
		for (int l = 0; l < X; l++)
			a[k * X + l] = r[k][l];
	if (LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', X, X, a, X, s, NULL, 1, NULL, 1, superb) != 0)
		return 0;
	while (rank < X && s[rank] > RANK_LIMIT * s[0])
		rank++;
	return rank;
}

/* to_x = S^-1 R^-1, S the norms of the columns */
static void invert(double r[X][X], const double norm[X], double to_x[X][X])
{
	for (int c = 0; c < X; c++)
		for (int k = X - 1; k >= 0; k--) {
			double sum = k == c;

			for (int l = k + 1; l <= c; l++)
				sum -= r[k][l] * to_x[l][c];
			to_x[k][c] = sum / r[k][k];
		}
	for (int k = 0; k < X; k++)
		for (int c = 0; c < X; c++)
			to_x[k][c] /= norm[k];
}

int fxi_design_new(fx_math *m, const fx_series_info *info, const int64_t *volumes, int64_t n, fxi_design *out)
{
	double r[X][X] = {{0}}, norm[X];
	double *q = fx_alloc(n > 0 ? n : 1, X * sizeof(double));

	*out = (fxi_design){.q = q, .of = {.n = n, .q = q}};
	if (!q)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the design of %lld volumes", (long long)n);
	for (int64_t i = 0; i < n; i++)
		fill_row(&info->gradients[volumes[i]], q + X * i);
	for (int k = 0; k < X; k++) {
		norm[k] = sqrt(column_dot(q, n, k, k));
		for (int64_t i = 0; norm[k] > 0 && i < n; i++)
			q[X * i + k] /= norm[k];
	}
	orthogonalise(q, n, r);
	out->rank = rank_of(r);
	if (out->rank == X)
		invert(r, norm, out->of.to_x);
	return FX_OK;
}

void fxi_design_free(fxi_design *d)
{
	fx_free(d->q);
	*d = (fxi_design){0};
}

/* SPDX-License-Identifier: MIT */
/*
 * fit_reference.h - series of known tensors, and a plain fit in double to compare with: normal equations in the tensor's own
 * components, solved by Gauss with partial pivoting. Shares nothing with the code under test but the model.
 */
#ifndef FORNIX_TESTS_FIT_REFERENCE_H
#define FORNIX_TESTS_FIT_REFERENCE_H

#include "check.h"

#include <string.h>

/* The first n_b0 volumes are b0; the others cycle over the b-values (n_shells) and over directions of a spiral on the half sphere. */
static inline fx_series_info *table_of(int64_t n, int64_t n_b0, const double *b, int n_shells, const int64_t dims[3])
{
	fx_series_info *info = fx_series_info_new(n);

	if (!info)
		CU_FAIL_FATAL("no memory for a test's table");
	info->lattice = (fx_lattice){.dims = {dims[0], dims[1], dims[2]}, .affine = {{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 2, 0}},
		.has_affine = true};
	strcpy(info->origin, "a test");
	for (int64_t i = n_b0; i < n; i++) {
		double z = 1 - ((double)(i - n_b0) + 0.5) / (double)(n - n_b0), r = sqrt(1 - z * z), a = 2.4 * (double)i;

		info->gradients[i] = (fx_gradient){b[i % n_shells], {r * cos(a), r * sin(a), z}};
	}
	return info;
}

static inline void design_row(const fx_gradient *g, double row[7])
{
	double b = g->b / 1000;

	row[0] = 1;
	row[1] = -b * g->dir[0] * g->dir[0];
	row[2] = -2 * b * g->dir[0] * g->dir[1];
	row[3] = -b * g->dir[1] * g->dir[1];
	row[4] = -2 * b * g->dir[0] * g->dir[2];
	row[5] = -2 * b * g->dir[1] * g->dir[2];
	row[6] = -b * g->dir[2] * g->dir[2];
}

/* A random positive tensor with eigenvalues of tissue: a sum of three dyads of random vectors, and some ball. */
static inline void random_tensor(uint64_t *seed, double d[6])
{
	static const int at[6][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}};

	for (int e = 0; e < 6; e++)
		d[e] = at[e][0] == at[e][1] ? 0.3 : 0;
	for (int k = 0; k < 3; k++) {
		double v[3];

		for (int i = 0; i < 3; i++)
			v[i] = 0.7 * random_next(seed);
		for (int e = 0; e < 6; e++)
			d[e] += v[at[e][0]] * v[at[e][1]];
	}
}

static inline double signal_of(const fx_gradient *g, double s0, const double d[6])
{
	double row[7], exponent = 0;

	design_row(g, row);
	for (int k = 0; k < 6; k++)
		exponent += row[k + 1] * d[k];
	return s0 * exp(exponent);
}

/* Volumes of random tensors; noise is the standard deviation of (uniform) noise relative to S0, never below a tenth of a per mille. */
static inline fx_array **series_of(const fx_series_info *info, double s0, double noise, uint64_t seed, double *truth)
{
	const int64_t *dims = info->lattice.dims;
	int64_t n = dims[0] * dims[1] * dims[2];
	fx_array **volumes = fx_alloc(info->n_volumes, sizeof *volumes);

	for (int64_t i = 0; i < info->n_volumes; i++)
		if (fx_array_new(FX_F32, 3, dims, &volumes[i]) != FX_OK)
			CU_FAIL_FATAL("no memory for a test's series");
	for (int64_t v = 0; v < n; v++) {
		double d[6];

		random_tensor(&seed, d);
		for (int k = 0; truth && k < 6; k++)
			truth[6 * v + k] = d[k];
		for (int64_t i = 0; i < info->n_volumes; i++) {
			double s = signal_of(&info->gradients[i], s0, d) + s0 * noise * random_next(&seed);

			FX_F32_OF(volumes[i])[v] = (float)fmax(s, noise > 0 ? 1e-4 * s0 : 0);
		}
	}
	return volumes;
}

static inline void free_series(fx_array **volumes, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		fx_array_unref(volumes[i]);
	fx_free(volumes);
}

static inline bool gauss(double a[7][8], double x[7])
{
	for (int k = 0; k < 7; k++) {
		int p = k;

		for (int i = k + 1; i < 7; i++)
			if (fabs(a[i][k]) > fabs(a[p][k]))
				p = i;
		for (int j = 0; j < 8; j++) {
			double swap = a[k][j];

			a[k][j] = a[p][j];
			a[p][j] = swap;
		}
		if (a[k][k] == 0)
			return false;
		for (int i = k + 1; i < 7; i++)
			for (int j = 7; j >= k; j--)
				a[i][j] -= a[i][k] / a[k][k] * a[k][j];
	}
	for (int k = 6; k >= 0; k--) {
		x[k] = a[k][7];
		for (int j = k + 1; j < 7; j++)
			x[k] -= a[k][j] * x[j];
		x[k] /= a[k][k];
	}
	return true;
}

/* One fit with weights w. */
static inline bool weighted(const fx_series_info *info, const double *w, const double *y, double x[7])
{
	double a[7][8] = {{0}};

	for (int64_t i = 0; i < info->n_volumes; i++) {
		double row[7];

		design_row(&info->gradients[i], row);
		for (int k = 0; k < 7; k++) {
			for (int l = 0; l < 7; l++)
				a[k][l] += w[i] * row[k] * row[l];
			a[k][7] += w[i] * row[k] * y[i];
		}
	}
	return gauss(a, x);
}

/* The whole fit of voxel v as fx_fit_spec says it; x = ln S0 and D; *residual the root mean square of S - S_fit. */
static inline bool reference_fit(const fx_series_info *info, fx_array **volumes, int64_t v, const fx_fit_spec *spec, double x[7],
	double *residual)
{
	int64_t n = info->n_volumes, used = 0;
	double *w = fx_alloc(3 * n, sizeof *w), *y = w + n, *s = y + n, squares = 0;
	bool good = true;

	for (int64_t i = 0; i < n; i++) {
		s[i] = FX_F32_OF(volumes[i])[v];
		y[i] = s[i] > 0 && isfinite(s[i]) ? log(s[i]) : 0;
		w[i] = s[i] > 0 && isfinite(s[i]);
		used += w[i] > 0;
		if (w[i] > 0 && spec->method == FX_FIT_WLS && spec->start == FX_START_SIGNALS)
			w[i] = s[i] * s[i];
	}
	good = weighted(info, w, y, x);
	for (int fit = 0; good && fit < (spec->method == FX_FIT_WLS ? spec->reweightings : 0); fit++) {
		for (int64_t i = 0; i < n; i++) {
			double row[7], f = 0;

			design_row(&info->gradients[i], row);
			for (int k = 0; k < 7; k++)
				f += row[k] * x[k];
			w[i] = w[i] > 0 ? exp(2 * f) : 0;
		}
		good = weighted(info, w, y, x);
	}
	for (int64_t i = 0; i < n; i++) {
		double row[7], f = 0;

		design_row(&info->gradients[i], row);
		for (int k = 0; k < 7; k++)
			f += row[k] * x[k];
		squares += w[i] > 0 ? (s[i] - exp(f)) * (s[i] - exp(f)) : 0;
	}
	*residual = sqrt(squares / (double)used);
	fx_free(w);
	return good;
}

static inline fx_fit *fit_of(fx_math *m, fx_series_info *info, fx_array **volumes, const fx_fit_spec *spec)
{
	fx_fit *f = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_fit_new(m, info, spec, &f), FX_OK);
	for (int64_t i = info->n_volumes - 1; i >= 0; i--)
		CU_ASSERT_EQUAL_FATAL(fx_fit_add(f, i, volumes[i]), FX_OK);
	return f;
}

static inline fx_msg *finished(fx_series_info *info, fx_array **volumes, const fx_fit_spec *spec, const fx_array *mask, int n_threads)
{
	fx_math *m = math_of(n_threads);
	fx_fit *f = fit_of(m, info, volumes, spec);
	fx_msg *out = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_fit_finish(f, mask, 0, &out), FX_OK);
	fx_fit_free(f);
	fx_math_free(m);
	return out;
}

#endif

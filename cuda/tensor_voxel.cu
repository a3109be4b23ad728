/* SPDX-License-Identifier: MIT */
/*
 * tensor_voxel.cu - the tensor fit in double of voxels that single precision is not trusted with, as host/tensor_voxel.c: few usable
 * signals, or weights of many orders of magnitude. They are rare; a thread does one from beginning to end and keeps nothing but z:
 * what a pass needs of the last one is computed again. One path for every architecture.
 */
#include "tensor.cuh"

#define X FXI_TENSOR_X
#define THREADS 64
#define SINGULAR 1e-12 /* of a pivot to its diagonal element; rounding leaves some 1e-15 of them */

__device__ static double fitted(const double *q, const double z[X])
{
	double f = 0;

	for (int k = 0; k < X; k++)
		f += q[k] * z[k];
	return f;
}

/* z += A^-1 g by Cholesky; false where A is singular. */
__device__ static bool correct(double a[X][X], double g[X], double z[X])
{
	for (int k = 0; k < X; k++) {
		double diagonal = a[k][k];

		for (int l = 0; l <= k; l++) {
			for (int i = 0; i < l; i++)
				a[k][l] -= a[k][i] * a[l][i];
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

/* Twice the logarithm of a signal's weight in this fit, up to a constant. */
__device__ static double log_weight(const fxi_fit_job &j, int fit, int row, float s, const double z[X])
{
	if (fit == 0)
		return 0;
	return 2 * (fit == 1 && j.design.from_signals ? log((double)s) : fitted(j.q_double + X * row, z));
}

__device__ static bool fit_voxel(const fxi_fit_job &j, int64_t i, double z[X], double *residual)
{
	int n_fits = 1 + (j.design.from_signals ? 1 : 0) + j.design.reweightings, used = 0;
	double squares = 0;

	for (int k = 0; k < X; k++)
		z[k] = 0;
	for (int fit = 0; fit < n_fits; fit++) {
		double most = -INFINITY, a[X][X] = {{0}}, g[X] = {0};

		for (int v = 0; v < j.n_volumes; v++)
			if (fxi_usable(j.volumes[v][i]))
				most = fmax(most, log_weight(j, fit, v, j.volumes[v][i], z));
		for (int v = 0; v < j.n_volumes; v++) {
			const double *q = j.q_double + X * v;
			float s = j.volumes[v][i];

			if (!fxi_usable(s))
				continue;
			double w = exp(log_weight(j, fit, v, s, z) - most), r = log((double)s) - fitted(q, z);

			for (int k = 0; k < X; k++) {
				g[k] += w * q[k] * r;
				for (int l = 0; l <= k; l++)
					a[k][l] += w * q[k] * q[l];
			}
		}
		if (!correct(a, g, z))
			return false;
	}
	for (int v = 0; v < j.n_volumes; v++) {
		float s = j.volumes[v][i];

		if (fxi_usable(s)) {
			double d = (double)s - exp(fitted(j.q_double + X * v, z));

			squares += d * d;
			used++;
		}
	}
	*residual = sqrt(squares / used);
	return isfinite(*residual);
}

__global__ static void __launch_bounds__(THREADS) fit_marked(const __grid_constant__ fxi_fit_job j, const uint8_t *again)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double z[X], residual = 0;
	unsigned what = i < j.n ? again[i] : 0;

	if (!(what & FXI_FIT_AGAIN))
		return;
	bool good = fit_voxel(j, i, z, &residual);

	if (!good)
		z[0] = NAN; /* which fxi_put_tensor tells of */
	fxi_put_tensor(j, z, i, (what & FXI_FIT_DROPPED ? (unsigned)FX_TENSOR_DROPPED : 0u) |
		(good && !(what & FXI_FIT_DIFFERS) ? (unsigned)FX_TENSOR_ISOTROPIC : 0u));
	j.residual[i] = good ? (float)residual : 0;
}

void fxi_fit_again(fx_math *m, const fxi_fit_job &j, const uint8_t *again)
{
	fit_marked<<<(unsigned)((j.n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(j, again);
}

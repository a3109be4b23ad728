/* SPDX-License-Identifier: MIT */
/*
 * density.c - iterative density weights (Pipe & Menon 1999).
 *
 * The kernel is the quadratic B-spline, three Cartesian cells wide along each axis. It integrates to 1, so the weights
 * come out as k-space area or volume in cells, and its transform, sinc^3, is small beyond the field of view, where the
 * point spread function does not matter. The convolved weights are brought not to 1 but to the kernel's mass within the
 * part of k-space that the trajectory covers: so weights do not rise at its edge, and a Cartesian grid weighs 1 throughout.
 *
 * Looking at the density only where samples are overrates it when they are irregular, since more of them lie where it is
 * high. So at last the weights are matched once more to the covered volume, smoothed and taken on a regular grid.
 *
 * Samples are sorted here, on the host, where trajectories are; the backend iterates.
 */
#include "density.h"

int fx_density_iterative(fx_math *m, const fx_array *k, const int64_t dims[3], int64_t n_iterations, fx_array **weights)
{
	int64_t n = k->dims[1];
	fx_density_cells cells;
	float *by_point;
	int status;

	*weights = NULL;
	if (k->type != FX_F64 || k->dims[0] != 3 || n_iterations < 1)
		return fx_math_fail(m, FX_EINVAL, "density weights need a trajectory f64 {3, samples} and at least one iteration");
	status = fx_array_new1(FX_F32, n, weights);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for the density weights of %lld samples", (long long)n);
	if (n == 0)
		return FX_OK;
	status = fxi_cells_new(m, k, dims, &cells);
	if (status != FX_OK)
		goto failed;
	by_point = fx_alloc(cells.n_points, sizeof *by_point);
	if (by_point)
		status = m->ops->density_iterate(m, &cells, n_iterations, by_point);
	else
		status = fx_math_fail(m, FX_ENOMEM, "no memory for the density weights of %lld points", (long long)cells.n_points);
	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		int64_t p = cells.point_of[i];

		FX_F32_OF(*weights)[i] = by_point[p] / cells.count[p];
	}
	fx_free(by_point);
	fxi_cells_free(&cells);
	if (status == FX_OK)
		return FX_OK;
failed:
	fx_array_unref(*weights);
	*weights = NULL;
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * geodesic.h - geodesics in double precision over any metric that can be asked at a point: what the fast tracker is compared
 * with, and what `connect` shoots with.
 *
 * The ODE is x''^k = -Gamma^k_ij x'^i x'^j. With w_l = x'^i (d_i g x')_l - (1/2) x'^T (d_l g) x' it is x'' = -G w: no
 * Christoffel symbol is needed. Coordinates are whatever the metric is given in.
 */
#ifndef FORNIX_DIFFUSION_GEODESIC_H
#define FORNIX_DIFFUSION_GEODESIC_H

#include <fornix/diffusion.h>

/** A metric at one point, symmetric tensors as xx, xy, yy, xz, yz, zz. */
typedef struct fxi_metric_point {
	double contra[6]; /**< G = g^-1 */
	double dg[3][6];  /**< dg/dx, dg/dy, dg/dz */
} fxi_metric_point;

/** The metric at x; false where it is undefined. */
typedef bool (*fxi_metric_at)(const void *arg, const double x[3], fxi_metric_point *p);

/** a = -G w. */
void fxi_geodesic_acceleration(const fxi_metric_point *p, const double v[3], double a[3]);
/** Gamma^k_ij of the second kind, 18 of the 27 unique: symbols[k][ij], ij as in a tensor. */
void fxi_christoffel(const fxi_metric_point *p, double symbols[3][6]);
/** g(v, v) = v^T G^-1 v; NaN where G is singular. */
double fxi_metric_square(const fxi_metric_point *p, const double v[3]);

/** One step of length h in the affine parameter (enum fx_integrator), in place; false where the metric was undefined. */
bool fxi_geodesic_step(fxi_metric_at at, const void *arg, int integrator, double h, double x[3], double v[3]);
/**
 * n such steps. `points` {3, n + 1}, where not NULL, gets the start and every point. Returns the number of steps made: n
 * unless the metric was undefined.
 */
int64_t fxi_geodesic_shoot(fxi_metric_at at, const void *arg, int integrator, double h, int64_t n, double x[3], double v[3],
	double *points);

/**
 * A fx_metric at a voxel index position: the trilinear interpolation of its 24 numbers, in double. The position is held within the centres
 * of the first and last voxels; false where a corner is undefined. `arg` is a fx_metric whose arrays lie on the host.
 */
bool fxi_metric_sampled(const void *metric, const double x[3], fxi_metric_point *p);

#endif

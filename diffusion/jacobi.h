/* SPDX-License-Identifier: MIT */
/* jacobi.h - how geodesics spread from a point: the determinant that vanishes where they meet again. */
#ifndef FORNIX_DIFFUSION_JACOBI_H
#define FORNIX_DIFFUSION_JACOBI_H

#include "diffusion/geodesic.h"

typedef struct fxi_jacobi {
	double determinant;  /* at the end; 1 in flat space */
	int64_t conjugate;   /* conjugate points passed on the way, with their multiplicity */
	double end[3];       /* of the geodesic that was integrated */
} fxi_jacobi;

/*
 * Follows the geodesic from x0 along v0 (any length) over the g-length `length`, and four neighbours whose directions differ
 * by a little in the two directions g-perpendicular to v0, by RK4 in double with n_steps steps. The neighbours are turned so little that in
 * flat space they would end `apart` away, in the unit of x. J_1 and J_2 are central differences of them;
 * determinant = vol_g(J_1, J_2, x'/|x'|) / s^2, so 1 in flat space, (sin(s/R) R/s)^2 on a sphere of radius R (do Carmo, Riemannian
 * Geometry, ch. 5). False where the metric ends on the way.
 */
bool fxi_jacobi_along(fxi_metric_at at, const void *arg, const double x0[3], const double v0[3], double length,
	int64_t n_steps, double apart, fxi_jacobi *out);

#endif

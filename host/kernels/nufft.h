/* SPDX-License-Identifier: MIT */
/*
 * nufft.h - inner loops of spreading and interpolation, in single and double, for complex and real samples.
 *
 * The kernel's value at the j-th cell that a sample touches is a polynomial of degree `degree` in u in [-1, 1), the
 * sample's place between cells: coefficients are [degree + 1][FXI_WIDTHS], highest power first, column j for cell j.
 */
#ifndef FORNIX_HOST_KERNELS_NUFFT_H
#define FORNIX_HOST_KERNELS_NUFFT_H

#include "kernels.h"

/** The widest kernel there is, and the padded length of a row of coefficients. */
#define FXI_WIDTHS 16
/** Coils that share a sample's kernel values in one pass. */
#define FXI_NUFFT_COILS 8

typedef struct fxi_nufft_grid {
	int64_t fine[3];   /**< axes of 1 come last */
	int width[3];      /**< 1 along axes of 1 */
	int components;    /**< 2 complex, 1 real */
	int degree;
	const void *coefficients; /**< float or double */
} fxi_nufft_grid;

typedef struct fxi_point_f32 {
	int32_t cell[3];   /**< first cell touched, 0..fine-1; the footprint may wrap around the end */
	uint32_t index;    /**< which sample */
	float u[3];
} fxi_point_f32;

typedef struct fxi_point_f64 {
	int32_t cell[3];
	uint32_t index;
	double u[3];
} fxi_point_f64;

/**
 * What one task does: `n` points, `n_coils` (at most FXI_NUFFT_COILS) coils. A task may own only some of the rows that its
 * points touch: those of which the place along `axis` (2, or 1), counted from cell `origin` on, is in [low, high).
 */
typedef struct fxi_nufft_part {
	int64_t n;
	int n_coils;
	int64_t sample_stride, fine_stride; /**< from coil to coil, in reals */
	int axis;
	int64_t origin, low, high;
} fxi_nufft_part;

FXI_DECLARE(void, fxi_nufft_spread_f32, (const fxi_nufft_grid *g, const fxi_nufft_part *p, const fxi_point_f32 *points,
	const float *samples, float *fine));
FXI_DECLARE(void, fxi_nufft_spread_f64, (const fxi_nufft_grid *g, const fxi_nufft_part *p, const fxi_point_f64 *points,
	const double *samples, double *fine));
/* Interpolation owns samples, so axis, origin, low and high are not looked at. */
FXI_DECLARE(void, fxi_nufft_gather_f32, (const fxi_nufft_grid *g, const fxi_nufft_part *p, const fxi_point_f32 *points,
	const float *fine, float *samples));
FXI_DECLARE(void, fxi_nufft_gather_f64, (const fxi_nufft_grid *g, const fxi_nufft_part *p, const fxi_point_f64 *points,
	const double *fine, double *samples));

#endif

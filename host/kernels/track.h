/* SPDX-License-Identifier: MIT */
/*
 * track.h - inner loops of track_batch: FXI_TRACK_LANES fibres side by side. Every lane does the same operations whatever the others
 * hold, so a fibre does not depend on its neighbours.
 */
#ifndef FORNIX_HOST_KERNELS_TRACK_H
#define FORNIX_HOST_KERNELS_TRACK_H

#include "kernels.h"

#define FXI_TRACK_LANES 16

/** What all fibres share. */
typedef struct fxi_track_field {
	const float *field;      /**< f32 {n_parts, x, y, z}: 24 numbers of the metric, or 6 of D */
	int64_t dims[3];
	int integrator;          /**< enum fx_integrator */
	float step;              /**< mm */
	float square[6];         /**< A^T A: the square of a velocity in voxels is its length in mm, squared */
	float to_index[3][3];    /**< A^-1: directions in mm to voxels */
} fxi_track_field;

/**
 * State of the fibres. Positions are voxel indices in double: 4096 steps of a tenth of a voxel at index 1000 would lose 0.01
 * voxel in single. Geodesics: v is the velocity in voxels whose length is 1 mm; streamlines: a unit vector in RAS.
 */
typedef struct fxi_track_lanes {
	double x[3][FXI_TRACK_LANES];
	double length[FXI_TRACK_LANES];          /**< mm so far */
	double riemann[FXI_TRACK_LANES];         /**< Riemannian length so far */
	float v[3][FXI_TRACK_LANES];
	float scale[FXI_TRACK_LANES];            /**< product of the lengths that were divided out of the velocity */
	float square[FXI_TRACK_LANES];           /**< g(v, v) of v as it is; streamlines: of the principal direction, g = D^-1 */
	float parts[24][FXI_TRACK_LANES];        /**< the field at x */
	int32_t defined[FXI_TRACK_LANES];        /**< the field at x is finite and positive */
	int32_t inside[FXI_TRACK_LANES];         /**< x is in the volume */
} __attribute__((aligned(64))) fxi_track_lanes;

/** Fetches the metric at x: fills parts, square, defined. */
FXI_DECLARE(void, fxi_track_look, (const fxi_track_field *f, fxi_track_lanes *s));
/** One step from there: x, v, scale, length, riemann, inside. */
FXI_DECLARE(void, fxi_track_advance, (const fxi_track_field *f, fxi_track_lanes *s));
/** The same of streamlines; look turns v into the principal direction at x, on the side where v was. */
FXI_DECLARE(void, fxi_track_look_along, (const fxi_track_field *f, fxi_track_lanes *s));
FXI_DECLARE(void, fxi_track_advance_along, (const fxi_track_field *f, fxi_track_lanes *s));

#endif

/* SPDX-License-Identifier: MIT */
/* tract_distance.h - from each fibre of a set to the nearest of another. */
#ifndef FORNIX_DIFFUSION_TRACT_DISTANCE_H
#define FORNIX_DIFFUSION_TRACT_DISTANCE_H

#include <fornix/base.h>

/** Fibres one after the other: fibre i has the points [offsets[i], offsets[i + 1]) of f32 {3, ...} RAS mm. */
typedef struct fxi_tract_set {
	int64_t n, n_points, room, room_points;
	int64_t *offsets;
	float *points;
} fxi_tract_set;

/** Adds a fibre; FX_ENOMEM, explained. Start the set zeroed. */
int fxi_tract_set_add(fxi_tract_set *s, const float *points, int64_t n, fx_error *err);
/** Empties it; its memory stays. */
void fxi_tract_set_clear(fxi_tract_set *s);
void fxi_tract_set_free(fxi_tract_set *s);

/**
 * Lowers nearest[i] (start with infinity) to the distance, as fx_tract_distance, from fibre i of a to the nearest of b, where
 * that is smaller. Fibres without points have no distance. FX_ENOMEM, explained.
 */
int fxi_tract_nearest(const fxi_tract_set *a, const fxi_tract_set *b, int n_threads, double *nearest, fx_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* density.h - the samples of a trajectory sorted into Cartesian cells, for sums over neighbours. */
#ifndef FORNIX_RECON_DENSITY_H
#define FORNIX_RECON_DENSITY_H

#include <fornix/recon.h>

/** At most so many bins is a cell divided into: 63 along one axis, 7 x 7, 3 x 3 x 3. */
#define FXI_BINS 64
/** Empty cells on every side along encoded axes: the reach of the kernels. */
#define FXI_RIM 2

/**
 * Samples of one bin are one point. Points are in order of their cells, x fastest: `first[cell]` to `first[cell + 1]`.
 * Positions are in cells from the corner of cell 0; a cell's centre is at a whole number and a half. The sample furthest
 * down along each axis lies in the centre of its cell, so a Cartesian grid, wherever it lies, has a sample in every centre.
 */
typedef struct fxi_cells {
	int64_t n_cells[3], n_points;
	bool encoded[3];       /**< axes that count; the others have one cell */
	int64_t *first;        /**< {cells + 1} */
	float *position[3];    /**< {points}: centroids */
	float *count;          /**< {points}: samples in the bin */
	int64_t *point_of;     /**< {M}: a sample's point */
	uint8_t *covered;      /**< {cells}: 1 where the trajectory covers k-space, gaps of up to two cells included */
} fxi_cells;

/** Sorts k f64 {3, M}, cycles/voxel of `dims`; axes of 1 do not count. M must not be 0. */
int fxi_cells_new(fx_math *m, const fx_array *k, const int64_t dims[3], fxi_cells *out);
void fxi_cells_free(fxi_cells *c);

#endif

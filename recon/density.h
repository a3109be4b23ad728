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
 * Samples of one bin are one point (fx_density_cells). The sample furthest down along each axis lies in the centre of its cell, so a
 * Cartesian grid, wherever it lies, has a sample in every centre.
 * Sorts k f64 {3, M}, cycles/voxel of `dims`; axes of 1 do not count. M must not be 0.
 */
int fxi_cells_new(fx_math *m, const fx_array *k, const int64_t dims[3], fx_density_cells *out);
void fxi_cells_free(fx_density_cells *c);

#endif

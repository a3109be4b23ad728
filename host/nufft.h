/* SPDX-License-Identifier: MIT */
/* nufft.h - what nufft.c (spreading) and fine.c (the oversampled grid's FFT) share. */
#ifndef FORNIX_HOST_NUFFT_H
#define FORNIX_HOST_NUFFT_H

#include "host.h"
#include "kernels/nufft.h"

/** A grid with its axes of 1 moved to the end, which changes nothing in memory; order[a] is the caller's axis. */
typedef struct fxi_squeezed {
	int n_axes;          /**< axes longer than 1 */
	int order[3];
	int64_t dims[3], fine[3];
} fxi_squeezed;

/** Checks a caller's grid and squeezes it. */
int fxi_squeeze(fx_math *m, const fx_fine_grid *g, fxi_squeezed *s);

/**
 * Fine grids are centred: k = 0 is cell fine/2, so that the densest samples of most trajectories do not wrap.
 * Checks that `fine` is this grid's with the type that it should have; *n is how many there are in it.
 */
int fxi_need_fine(fx_math *m, const fx_fine_grid *g, const fx_array *fine, int64_t *n);

#endif

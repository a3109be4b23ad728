/* SPDX-License-Identifier: MIT */
/* tensor.h - the inner loops of tensor fits: logarithms, and weighted least squares of many voxels side by side. */
#ifndef FORNIX_HOST_KERNELS_TENSOR_H
#define FORNIX_HOST_KERNELS_TENSOR_H

#include "kernels.h"

/** Voxels of a tile: rows of this many floats. A multiple of every vector's width. */
#define FXI_TENSOR_TILE 64
/** Unknowns, and elements of their normal matrix. */
#define FXI_TENSOR_X 7
#define FXI_TENSOR_XX 28

/** A design in the basis of its orthonormal columns. */
typedef struct fxi_tensor_rows {
	int64_t n;             /* volumes */
	const float *q;        /* {7, n}; q[7 i] is 1/sqrt(n) */
	const float *qq;       /* {28, n}: products of the elements of a row, (k, l <= k) at k (k + 1)/2 + l */
	bool from_signals;     /* weights S^2 before the reweightings */
	int reweightings;
} fxi_tensor_rows;

/** One tile of voxels, its rows TILE floats long. */
typedef struct fxi_tensor_tile {
	const uint8_t *wanted; /* {tile}: vectors of voxels with none are skipped */
	float *s;              /* {tile, n}: signals; those that are of no use become 0 */
	float *y;              /* {tile, n}: work */
	float *work;           /* {tile, 2 n} */
	float *z;              /* {tile, 7}: out: the solution in the basis Q */
	float *residual;       /* {tile}: out: root mean square of S - S_fit over the signals used */
	float *used;           /* {tile}: out: how many signals were of use */
	float *pivot;          /* {tile}: out: smallest pivot of a normal matrix relative to its diagonal element; not above 0 or NaN: failed */
	float *differs;        /* {tile}: out: 0 where all signals used are the same, to the bit */
} fxi_tensor_tile;

/** y = ln s, within 2 units in the last place (of ln s, or 1e-7 near s = 1); NaN where s is not positive, not finite or below 1e-37. */
FXI_DECLARE(void, fxi_tensor_log, (int64_t n, const float *s, float *y));
/** y = e^x, within 2 units in the last place; x is taken within +-87. */
FXI_DECLARE(void, fxi_tensor_exp, (int64_t n, const float *x, float *y));
FXI_DECLARE(void, fxi_tensor_fit, (const fxi_tensor_rows *rows, fxi_tensor_tile *tile));
/**
 * sums {stride, 7} += row ln s for n voxels. seen |= 1 where s is of no use (it adds nothing), |= 2 where it is not `first`.
 */
FXI_DECLARE(void, fxi_tensor_accumulate, (int64_t n, int64_t stride, const float *row, const float *s, const float *first,
	float *sums, uint8_t *seen));

#endif

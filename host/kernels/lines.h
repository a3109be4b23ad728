/* SPDX-License-Identifier: MIT */
/*
 * lines.h - moves between an array and the block of contiguous lines that FFTW works on, in cf32 and cf64.
 *
 * Element j of a line goes to (from) position (j - centre) mod n of the block's line; that is the whole of the centring,
 * for even and odd n. `weight` (per element, or NULL for 1) is multiplied in on the way.
 */
#ifndef FORNIX_HOST_KERNELS_LINES_H
#define FORNIX_HOST_KERNELS_LINES_H

#include "kernels.h"

/** Lines in a block, whether all are used or not: one FFTW plan a length, and the same code for every line. */
#define FXI_LINES 16

/** Where the lines of a block lie in the array, counted in complex numbers. */
typedef struct fxi_line_layout {
	int n_lines;     /**< 1..FXI_LINES */
	int64_t line;    /**< from one line to the next */
	int64_t element; /**< from one element of a line to the next */
	int64_t count;   /**< elements of a line in the array, at most n */
	int64_t centre;  /**< the element that is the origin, 0..n-1 */
	int64_t n, ld;   /**< the block: transform length, and distance of its lines */
} fxi_line_layout;

/* Block from array; positions without an element become zero, and so do the lines beyond n_lines. */
FXI_DECLARE(void, fxi_lines_gather_f32, (const fxi_line_layout *l, const fx_cf32 *array, const float *weight,
	fx_cf32 *block));
FXI_DECLARE(void, fxi_lines_gather_f64, (const fxi_line_layout *l, const fx_cf64 *array, const double *weight,
	fx_cf64 *block));
/* Array from block. */
FXI_DECLARE(void, fxi_lines_scatter_f32, (const fxi_line_layout *l, const fx_cf32 *block, const float *weight,
	fx_cf32 *array));
FXI_DECLARE(void, fxi_lines_scatter_f64, (const fxi_line_layout *l, const fx_cf64 *block, const double *weight,
	fx_cf64 *array));

#endif

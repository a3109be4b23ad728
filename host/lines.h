/* SPDX-License-Identifier: MIT */
/*
 * lines.h - passes of 1-D Fourier transforms over the lines of an array, zero-padding and cropping on the way.
 *
 * Lines are gathered in blocks into a cache-sized scratch, transformed there and scattered. In single precision, for lengths without
 * large primes, that is one line a vector lane (host/vfft.h); else each line is made contiguous and FFTW (ESTIMATE: the same plan,
 * so the same bits, in every run) does it. A pass may work in place: a block's lines are
 * read whole before they are written. fft.c and fine.c are made of such passes.
 */
#ifndef FORNIX_HOST_LINES_H
#define FORNIX_HOST_LINES_H

#include "kernels/lines.h"
#include "kernels/vfft.h"
#include "scratch.h"

/** One side of a pass. Distances are in complex numbers. */
typedef struct fxi_line_side {
	void *data;
	int64_t group;    /**< from one group of lines to the next */
	int64_t line;     /**< from one line of a group to the next */
	int64_t element;  /**< from one element of a line to the next */
	int64_t count;    /**< elements of a line here, at most n */
	int64_t centre;   /**< which of them is the origin */
	const void *weight; /**< per element, float or double as the type asks; NULL means 1 */
} fxi_line_side;

typedef struct fxi_lines {
	int type;                 /**< FX_CF32, FX_CF64 */
	int sign;                 /**< exponent: -1 or +1 */
	int64_t n;                /**< transform length */
	int64_t n_lines, n_groups;
	fxi_line_side from, to;   /**< the same array and strides for a pass in place */
	int64_t ld;               /**< filled by fxi_lines_plan, as are the plans, of which one is set */
	const void *plan;         /**< FFTW's */
	const fxi_vfft *lanes;
} fxi_lines;

/** Finds or makes the plan. FX_ENOMEM, explained, where there is no memory for it. */
int fxi_lines_plan(fx_math *m, fxi_lines *p);
/** Bytes of scratch that one thread needs for the (planned) pass. */
int64_t fxi_lines_scratch(const fxi_lines *p);
/** Runs one block (FXI_LINES lines from FXI_LINES * block on) of one group on the calling thread. */
void fxi_lines_block(const fxi_lines *p, int64_t group, int64_t block, void *scratch);
/** A plan for one line a lane, or NULL, explained in m->err. It lives as long as the process. */
const fxi_vfft *fxi_lanes_plan(fx_math *m, int64_t n);
/**
 * An FFTW plan (ESTIMATE, in place) of FXI_LINES real-to-complex transforms in double of even length n, exponent -1, lines *ld complex
 * numbers apart; NULL, explained in m->err, where there is no memory.
 */
const void *fxi_real_plan(fx_math *m, int64_t n, int64_t *ld);
/** Plans and runs all of the pass on the pool. */
int fxi_lines_run(fx_math *m, fxi_lines *p);

#endif

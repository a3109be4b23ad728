/* SPDX-License-Identifier: MIT */
/*
 * vfft.h - short FFTs of many lines at once, one line in each lane of a vector register.
 *
 * No shuffle is ever needed inside a transform and twiddle factors are scalars, so a transform runs close to the
 * rate of its additions, for any length. Lines are kept as "columns": element i of all lanes is `lanes` real parts
 * followed by `lanes` imaginary parts.
 */
#ifndef FORNIX_HOST_KERNELS_VFFT_H
#define FORNIX_HOST_KERNELS_VFFT_H

#include "kernels.h"

#define FXI_VFFT_STAGES 40

/** A transform length: its radices and, for each stage, twiddle factors. Made by fxi_vfft_new (host/vfft.c). */
typedef struct fxi_vfft {
	int64_t n;
	int n_stages;
	struct {
		int radix;
		const float *twiddles; /**< (radix - 1) pairs for each of the stage's n / radix groups but the first */
		const float *roots;    /**< odd radices above 5: cos and sin of 2 pi j / radix */
	} stage[FXI_VFFT_STAGES];
	const float *half;             /**< n pairs exp(-i pi j / n): what shifts frequencies by half a step */
	int largest_odd;               /**< the largest radix that needs `work`; 0 where none does */
	void *tables;
} fxi_vfft;

/** Lanes of this instruction set's vectors. */
FXI_DECLARE(int64_t, fxi_vfft_lanes, (void));

/**
 * What the first and the last stage do besides, which saves passes over the column. All 0: nothing. Of `weights`,
 * `add` and a bare `out` one at most.
 */
typedef struct fxi_vfft_ends {
	int64_t in_step;       /**< floats between the columns of `in`; 0: they follow each other */
	bool twist;            /**< multiply input j by half[j] (inverse: its conjugate) */
	float *out;            /**< where the result goes; NULL: to a or b */
	int64_t out_step;      /**< floats between its columns; 0: they follow each other */
	const float *weights;  /**< multiply result j by norm and, lane by lane, by weights[weight_step * j ...] */
	int64_t weight_step;
	float norm;
	const float *add;      /**< result j becomes add[j] + half[j] (inverse: its conjugate) times result j */
} fxi_vfft_ends;

/**
 * Unnormalised transform e^{-i} (inverse: e^{+i}) of the column `in`, for n > 1. Returns where the result is: `a`, `b`
 * or ends->out. `in` may be `b` or ends->out, not `a`.
 */
FXI_DECLARE(float *, fxi_vfft_run, (const fxi_vfft *plan, int inverse, const fxi_vfft_ends *ends, const float *in,
	float *a, float *b, float *work));

#endif

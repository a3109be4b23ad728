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
 * Unnormalised transform e^{-i} of the column `in`, or with `inverse` e^{+i}. Returns where the result is: `in`
 * itself (n = 1), `a` or `b`. in may be b, not a. work: 2 * largest_odd * lanes floats.
 */
FXI_DECLARE(float *, fxi_vfft_run,
	(const fxi_vfft *plan, int inverse, float *in, float *a, float *b, float *work));

#endif

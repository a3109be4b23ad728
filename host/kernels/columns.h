/* SPDX-License-Identifier: MIT */
/* columns.h - blocks of lines in single precision, gathered into columns of lanes, transformed there, and scattered. */
#ifndef FORNIX_HOST_KERNELS_COLUMNS_H
#define FORNIX_HOST_KERNELS_COLUMNS_H

#include "lines.h"
#include "vfft.h"

/** Floats of scratch for transforms of length n, whatever the instruction set. */
#define FXI_COLUMNS_SCRATCH(n) (4 * 32 * ((n) + 2))

/** What fxi_lines_gather_f32, a transform and fxi_lines_scatter_f32 do to one block. */
FXI_DECLARE(void, fxi_columns_pass, (const fxi_vfft *plan, int inverse, const fxi_line_layout *in, const float *from,
	const float *weight_in, const fxi_line_layout *out, float *to, const float *weight_out, float *scratch));

/**
 * n_rows rows of plan->n (even) real numbers, `pitch` apart, centred: each is transformed (e^{+i}) and its positions 0..half-1,
 * times weight, take the place of the row as complex numbers. Two rows share one complex transform.
 */
FXI_DECLARE(void, fxi_columns_real, (const fxi_vfft *plan, int64_t n_rows, int64_t pitch, int64_t half,
	const float *weight, float *rows, float *scratch));

#endif

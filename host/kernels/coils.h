/* SPDX-License-Identifier: MIT */
/* coils.h - inner loops of host/coils.c over `n` complex numbers; no two arguments overlap. */
#ifndef FORNIX_HOST_KERNELS_COILS_H
#define FORNIX_HOST_KERNELS_COILS_H

#include "kernels.h"

/** out = a b */
FXI_DECLARE(void, fxi_coil_multiply, (int64_t n, const float *restrict a, const float *restrict b, float *restrict out));
/** out += conj(a) b */
FXI_DECLARE(void, fxi_coil_add_conjugate,
	(int64_t n, const float *restrict a, const float *restrict b, float *restrict out));
/** out (real) += |a|^2 */
FXI_DECLARE(void, fxi_coil_add_power, (int64_t n, const float *restrict a, float *restrict out));
/** out += (re + i im) a */
FXI_DECLARE(void, fxi_coil_add_scaled, (int64_t n, float re, float im, const float *restrict a, float *restrict out));

#endif

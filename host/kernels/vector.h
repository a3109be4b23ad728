/* SPDX-License-Identifier: MIT */
/* vector.h - inner loops of vector.c over n complex numbers of which re and im alternate. */
#ifndef FORNIX_HOST_KERNELS_VECTOR_H
#define FORNIX_HOST_KERNELS_VECTOR_H

#include "kernels.h"

/** sum[0] + i sum[1] = sum conj(x) y, in double. */
FXI_DECLARE(void, fxi_vector_dot, (int64_t n, const float *x, const float *y, double sum[2]));
/** y = a x + b y, over 2n reals. */
FXI_DECLARE(void, fxi_vector_axpby, (int64_t n, float a, const float *x, float b, float *y));
FXI_DECLARE(void, fxi_vector_scale, (int64_t n, float a, float *x));

#endif

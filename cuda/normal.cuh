/* SPDX-License-Identifier: MIT */
/* normal.cuh - what normal.cu and solve.cu share: the Toeplitz product that a normal operator stands for. */
#ifndef FORNIX_CUDA_NORMAL_CUH
#define FORNIX_CUDA_NORMAL_CUH

#include "toeplitz.cuh"

/** Box, coils and batch of the operator on images like this one; the pointers are the caller's to set. FX_EINVAL where they do not fit. */
int fxi_normal_of(fx_math *m, const fx_normal *a, const fx_array *image, fxi_product *p);

#endif

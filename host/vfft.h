/* SPDX-License-Identifier: MIT */
/* vfft.h - tables for the transforms of kernels/vfft.h. */
#ifndef FORNIX_HOST_VFFT_H
#define FORNIX_HOST_VFFT_H

#include "kernels/vfft.h"

/** Tables for length n >= 1. FX_ENOMEM, or FX_EINVAL for a length beyond 2^30. */
int fxi_vfft_new(int64_t n, fxi_vfft *plan);
void fxi_vfft_free(fxi_vfft *plan);

#endif

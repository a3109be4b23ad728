/* SPDX-License-Identifier: MIT */
/* espirit.h - what the two halves of ESPIRiT share: kernels from calibration k-space, and maps from kernels. */
#ifndef FORNIX_RECON_ESPIRIT_H
#define FORNIX_RECON_ESPIRIT_H

#include <fornix/recon.h>

/**
 * The averaged projection onto what the calibration data's windows span, as kernels of a convolution of k-space:
 * coil b of the projected k-space at n is sum_a sum_m R_ab[m] d_a[n + m]. Its image-domain matrix at x is
 * M[b][a] = sum_m R_ab[m] e^{-i2pi m.x/N}, Hermitian, eigenvalues 0..1. Pair a <= b is a + b (b + 1)/2.
 */
typedef struct fxi_espirit_kernels {
	int64_t n_coils, n_pairs;
	int64_t half[3];     /**< m runs from -half to half along each axis */
	int64_t n_kept;      /**< singular vectors above the threshold */
	float *re, *im;      /**< {pairs, mx, my, mz}, pairs fastest */
} fxi_espirit_kernels;

/** Kernels of a calibration block cf32 {x,y,z,c} of k-space, scaled to a mean square about 1. */
int fxi_espirit_kernels_new(fx_math *m, const fx_array *block, int64_t kernel_size, double threshold,
	fxi_espirit_kernels *out);
void fxi_espirit_kernels_clear(fxi_espirit_kernels *k);

#endif

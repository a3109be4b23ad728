/* SPDX-License-Identifier: MIT */
/* toeplitz.h - the passes of the block-Toeplitz product; host/toeplitz.c has the whole picture. */
#ifndef FORNIX_HOST_KERNELS_TOEPLITZ_H
#define FORNIX_HOST_KERNELS_TOEPLITZ_H

#include "vfft.h"

/** Sizes and tables of one product. Axes: 0 x, 1 y, 2 z. */
typedef struct fxi_toeplitz {
	int64_t n[3];        /**< image */
	int64_t f[3];        /**< doubled grid: 2 n, or 1 where n is 1 */
	int64_t blocks_x;    /**< blocks of `lanes` voxels along x of the image */
	int64_t blocks_f;    /**< the same of the doubled grid */
	fxi_vfft plan[3];    /**< of length n */
	float norm;          /**< 1 / (f0 f1 f2): of the inverse transform */
	const float *spectrum;
	int64_t buffer;      /**< floats of one line buffer in a thread's scratch */
} fxi_toeplitz;

/** Floats of a thread's scratch: four line buffers, the odd radices' work, and a plane transformed along x. */
#define FXI_TOEPLITZ_BUFFERS 4

/**
 * Row y of the image {x, y, z} at `image`, transformed along z, into `planes`: for each z frequency a plane of rows
 * y, each of blocks_x columns.
 */
FXI_DECLARE(void, fxi_toeplitz_z_forward,
	(const fxi_toeplitz *t, int64_t y, const float *image, float *planes, float *scratch));
/** Back again; overwrites row y of `image`. */
FXI_DECLARE(void, fxi_toeplitz_z_inverse,
	(const fxi_toeplitz *t, int64_t y, const float *planes, float *image, float *scratch));
/** Transforms one plane along x and y, multiplies with the spectrum, transforms back. */
FXI_DECLARE(void, fxi_toeplitz_plane, (const fxi_toeplitz *t, int64_t fz, float *plane, float *scratch));

#endif

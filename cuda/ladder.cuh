/* SPDX-License-Identifier: MIT */
/* ladder.cuh - what the files of the chapter's kernels share: samples and voxels as it keeps them. */
#ifndef FORNIX_CUDA_LADDER_CUH
#define FORNIX_CUDA_LADDER_CUH

#include "cuda.cuh"

#define FXI_LADDER_CHUNK 2048 /* samples: 40 of the 64 kB of constant memory */
#define FXI_LADDER_TWO_PI 6.2831853071795864769f

/** A sample as one structure. */
typedef struct fxi_ladder_sample {
	float kx, ky, kz, r_mu, i_mu;
} fxi_ladder_sample;

/** One coil's sum: samples as arrays and as structures, voxels in voxels from the centre, sums apart. All on the device. */
typedef struct fxi_ladder {
	int n_samples;
	int64_t n_voxels;
	float *kx, *ky, *kz, *r_mu, *i_mu;
	fxi_ladder_sample *all;
	float *x, *y, *z, *r_out, *i_out;
} fxi_ladder;

/** The forms of FX_DIRECT_TUNED (ladder_tuned.cu); the plan is checked. Constant memory is the caller's meanwhile. */
int fxi_ladder_tuned(fx_math *m, const fx_direct_plan *plan, const fxi_ladder *l);
/** FX_EINVAL, explained, where a plan asks for what there is not; 0 becomes the default. */
int fxi_ladder_plan(fx_math *m, fx_direct_plan *plan);

#endif

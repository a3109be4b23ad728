/* SPDX-License-Identifier: MIT */
/* tensor.cuh - what the files of the tensor fit share: the job as kernels see it, and how a voxel's tensor is put in its place. */
#ifndef FORNIX_CUDA_TENSOR_CUH
#define FORNIX_CUDA_TENSOR_CUH

#include "cuda.cuh"
#include "symmetric.cuh"

#include <fornix/diffusion.h>

#define FXI_TENSOR_X 7

struct fxi_fit_job {
	int64_t n;                      /* voxels */
	int n_volumes;
	struct {
		double to_x[FXI_TENSOR_X][FXI_TENSOR_X], floor;
		int reweightings;
		bool from_signals;
	} design;
	const float *q;                 /* {7, n_volumes} */
	const double *q_double;         /* the same */
	const float *const *volumes;
	const uint8_t *mask;            /* or NULL */
	float *d, *s0, *residual;
	uint8_t *flags;
};

/* What fit_each leaves for the fit in double. */
#define FXI_FIT_AGAIN 1u
#define FXI_FIT_DROPPED 2u /* some signals are of no use */
#define FXI_FIT_DIFFERS 4u /* signals are not all the same */

/** Behind fit_each on the same stream: voxels it marked, in double. The caller asks whether the launch went well. */
void fxi_fit_again(fx_math *m, const fxi_fit_job &j, const uint8_t *again);

/* Normal numbers that are positive and finite; the rest says nothing. */
__device__ static __forceinline__ bool fxi_usable(float s)
{
	return s >= 1e-37f && s <= 3.402823466e38f;
}

/* Whether all eigenvalues are above the floor by leading minors, which is quick; false where it is a near thing. */
__device__ static __forceinline__ bool fxi_clearly_above(const double d[6], double floor)
{
	double a = d[0] - floor, b = d[2] - floor, c = d[5] - floor, minor = a * b - d[1] * d[1];
	double det = c * minor - a * d[4] * d[4] - b * d[3] * d[3] + 2 * d[1] * d[3] * d[4];

	return a > 0 && minor > 1e-12 * a * b && det > 1e-12 * a * b * c;
}

/* Eigenvalues raised to the floor; false where none was below. A power of two in front keeps squares from overflowing. */
__device__ static __noinline__ bool fxi_raise(double d[6], double floor)
{
	double most = 0, scaled[6], values[3], scale;
	bool raised = false;
	int exponent;
	fxi_eigen e;

	for (int c = 0; c < 6; c++)
		most = fmax(most, fabs(d[c]));
	if (!(most > 0)) {
		raised = 0 < floor;
		for (int c = 0; raised && c < 6; c++)
			d[c] = c == 0 || c == 2 || c == 5 ? floor : 0;
		return raised;
	}
	frexp(most, &exponent);
	scale = ldexp(1.0, exponent - 1);
	for (int c = 0; c < 6; c++)
		scaled[c] = d[c] / scale;
	fxi_eigen_solve(e, scaled);
	values[0] = scale * e.xx, values[1] = scale * e.yy, values[2] = scale * e.zz;
	for (int k = 0; k < 3; k++) {
		raised = raised || values[k] < floor;
		values[k] = fmax(values[k], floor);
	}
	if (raised)
		fxi_compose(values, e.v, d);
	return raised;
}

/** Puts x = to_x z into voxel i, its eigenvalues raised to the floor; `flags` are what is known. */
__device__ static __forceinline__ void fxi_put_tensor(const fxi_fit_job &j, const double z[FXI_TENSOR_X], int64_t i, unsigned flags)
{
	double x[FXI_TENSOR_X];
	bool good = true;

#pragma unroll
	for (int k = 0; k < FXI_TENSOR_X; k++) {
		x[k] = 0;
#pragma unroll
		for (int l = 0; l < FXI_TENSOR_X; l++)
			x[k] += j.design.to_x[k][l] * z[l];
		good = good && fabs(x[k]) < 1e30; /* and not NaN */
	}
	if (good && (flags & FX_TENSOR_ISOTROPIC))
#pragma unroll
		for (int k = 1; k < FXI_TENSOR_X; k++)
			x[k] = 0; /* but for rounding, it is */
	if (good && !fxi_clearly_above(x + 1, j.design.floor) && fxi_raise(x + 1, j.design.floor))
		flags |= FX_TENSOR_CLAMPED;
	if (!good)
		flags |= FX_TENSOR_UNFITTED;
	j.s0[i] = good ? (float)exp(x[0]) : 0;
#pragma unroll
	for (int k = 0; k < 6; k++)
		j.d[6 * i + k] = good ? (float)x[1 + k] : 0;
	j.flags[i] = (uint8_t)flags;
}

#endif

/* SPDX-License-Identifier: MIT */
/* tensor.h - what the files of the tensor fit share. */
#ifndef FORNIX_HOST_TENSOR_H
#define FORNIX_HOST_TENSOR_H

#include <fornix/backend.h>

/** A voxel's solution. */
typedef struct fxi_voxel_fit {
	double z[7];
	double residual;  /* root mean square of S - S_fit over the signals used */
} fxi_voxel_fit;

/**
 * The fit of one voxel in double: n signals s, those not above 0 of no use; work is {4, n}. False where the rest does not
 * determine a tensor.
 */
bool fxi_tensor_voxel(const fx_tensor_design *design, const float *s, double *work, fxi_voxel_fit *out);

/** Puts x = to_x z into voxel `i` of the arrays, its eigenvalues raised to the floor; `flags` are what is known. */
void fxi_tensor_put(const fx_tensor_design *design, const double z[7], int64_t i, unsigned flags, const fx_tensor_arrays *out);

/** y = ln s and y = e^x by the vector code of this processor's instruction set, for tests. */
void fxi_host_tensor_log(int64_t n, const float *s, float *y);
void fxi_host_tensor_exp(int64_t n, const float *x, float *y);

#endif

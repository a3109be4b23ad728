/* SPDX-License-Identifier: MIT */
/*
 * separable.cuh - what the files of the separable sums share. On a grid e^{i2pi k.x} is a product of one factor an axis, and the longest
 * axis has a symmetry: with positions t either side of its middle, e^{i2pi kt} = cos + i sin and e^{-i2pi kt} = cos - i sin. So
 * image[+-t, c] = C +- iS with C = sum_m cos(2pi k_m t) T[m, c], S = sum_m sin(2pi k_m t) T[m, c] and T[m, c] = s_m e^{i2pi(ky y + kz z)}:
 * a real matrix times a complex one, 4 flop a pair of sample and voxel where the complex product has 8.
 *
 * An axis of an even number of voxels has its middle between two of them: positions are (2j + 1)/2, and the half voxel goes into T.
 */
#ifndef FORNIX_CUDA_SEPARABLE_CUH
#define FORNIX_CUDA_SEPARABLE_CUH

#include "cuda.cuh"
#include "phase.cuh"

/** The image's axes, the longest first, and its coils. */
typedef struct fxi_separable {
	int axis[3], n[3];
	int64_t stride[3], n_voxels, coils;
	int even;           /* the longest axis */
	int pairs;          /* positions t >= 0 of it */
	int tile, n_tiles;  /* pairs that are worked on at once, and how many such tiles */
} fxi_separable;

/** Fixed point of k/2 along the longest axis, so that a position is a whole number: 2j + 1 or 2j. */
__device__ static inline uint64_t fxi_half_step(double k)
{
	uint64_t h;

	fxi_fixed((k - rint(k)) / 2, &h);
	return h;
}

__device__ static inline uint64_t fxi_pair_position(const fxi_separable &s, int pair)
{
	return (uint64_t)(2 * pair + s.even);
}

/** Index along the longest axis of position +t or -t of a pair. */
__device__ static inline int fxi_pair_index(const fxi_separable &s, int pair, bool minus)
{
	return s.n[0] / 2 + (minus ? -pair - s.even : pair);
}

/** The shape of an image of `coils` coils; tile and n_tiles are left to whoever cuts it. */
fxi_separable fxi_separable_shape(const fx_array *image, int64_t coils);
/**
 * How to cut the samples or the image so that every multiprocessor has about as much to do: 1 to `most` parts, whose results of so many
 * bytes each take no more than 256 MB.
 */
int fxi_separable_parts(fx_math *m, int64_t blocks, int64_t most, int64_t bytes_each);
/** to[i] += (or, forward, =) scale times the sum of `parts` arrays of n complex numbers, in order and in double. */
int fxi_separable_gather(fx_math *m, int64_t n, int parts, const float2 *from, double scale, bool add, float2 *to);
int fxi_separable_gather(fx_math *m, int64_t n, int parts, const double2 *from, double scale, bool add, float2 *to);
int fxi_separable_gather(fx_math *m, int64_t n, int parts, const double2 *from, double scale, bool add, double2 *to);

/* The sums of one precision, for n_samples > 0; pointers are the device's. */
int fxi_separable_half_adjoint(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const float2 *samples, double scale,
	float2 *image);
int fxi_separable_half_forward(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const float2 *image, double scale,
	float2 *samples);
int fxi_separable_double_adjoint(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const double2 *samples, double scale,
	double2 *image);
int fxi_separable_double_forward(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const double2 *image, double scale,
	double2 *samples);

#endif

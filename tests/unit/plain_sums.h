/* SPDX-License-Identifier: MIT */
/* plain_sums.h - the Fourier sums as double loops over their definition, sharing no code with the library. */
#ifndef FORNIX_TESTS_PLAIN_SUMS_H
#define FORNIX_TESTS_PLAIN_SUMS_H

#include "check.h"

/** Random k in [-0.5, 0.5) cycles/voxel; the first samples sit on the edges and in the centre. */
static inline fx_array *trajectory(int64_t n, uint64_t seed)
{
	static const double special[] = {-0.5, 0.4999999, 0, -0.4999999, 0.25};
	fx_array *k = random_array(FX_F64, 2, (int64_t[]){3, n}, seed);

	for (int64_t i = 0; i < k->n; i++)
		FX_F64_OF(k)[i] = n > 8 && i / 3 < 5 ? special[(i / 3 + i % 3) % 5] : FX_F64_OF(k)[i] / 2;
	return k;
}

/** e^{sign i2pi k.x}; the integer part of each axis's product is taken off before they are added. */
static inline double _Complex plain_phase(const double *k, int64_t x, int64_t y, int64_t z, int sign)
{
	double cycles = remainder(k[0] * (double)x, 1) + remainder(k[1] * (double)y, 1) + remainder(k[2] * (double)z, 1);

	return cexp(sign * 2 * acos(-1) * cycles * (double _Complex)I);
}

/** cf64 {x, y, z, coils} = scale sum_m s_m e^{+i2pi k_m.x}; axes of 1 have their only voxel at 0. */
static inline fx_array *plain_adjoint(const fx_array *k, const fx_array *samples, const int64_t *dims, double scale)
{
	int64_t n_m = k->dims[1], n_c = samples->dims[1];
	fx_array *image = NULL;
	int64_t i = 0;

	if (fx_array_new4(FX_CF64, dims[0], dims[1], dims[2], n_c, &image) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's image");
	for (int64_t z = 0; z < dims[2]; z++)
		for (int64_t y = 0; y < dims[1]; y++)
			for (int64_t x = 0; x < dims[0]; x++, i++)
				for (int64_t s = 0; s < n_m; s++) {
					double _Complex e = plain_phase(FX_F64_OF(k) + 3 * s, x - dims[0] / 2, y - dims[1] / 2, z - dims[2] / 2, 1);

					for (int64_t c = 0; c < n_c; c++)
						FX_CF64_OF(image)[i + c * dims[0] * dims[1] * dims[2]] += scale * element_of(samples, s + c * n_m) * e;
				}
	return image;
}

/** cf64 {M, coils} = scale sum_x image e^{-i2pi k_m.x}. */
static inline fx_array *plain_forward(const fx_array *k, const fx_array *image, double scale)
{
	const int64_t *dims = image->dims;
	int64_t n_m = k->dims[1], n_c = dims[3], i = 0;
	fx_array *samples = NULL;

	if (fx_array_new2(FX_CF64, n_m, n_c, &samples) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's samples");
	for (int64_t z = 0; z < dims[2]; z++)
		for (int64_t y = 0; y < dims[1]; y++)
			for (int64_t x = 0; x < dims[0]; x++, i++)
				for (int64_t s = 0; s < n_m; s++) {
					double _Complex e = plain_phase(FX_F64_OF(k) + 3 * s, x - dims[0] / 2, y - dims[1] / 2, z - dims[2] / 2, -1);

					for (int64_t c = 0; c < n_c; c++)
						FX_CF64_OF(samples)[s + c * n_m] += scale * element_of(image, i + c * dims[0] * dims[1] * dims[2]) * e;
				}
	return samples;
}

#endif

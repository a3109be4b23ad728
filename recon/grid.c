/* SPDX-License-Identifier: MIT */
/*
 * grid.c - gridding and an inverse FFT, the baselines that iterative reconstruction is measured against.
 *
 * Convolution gridding is the adjoint NUFFT at the accuracy that is customary for it. The bilinear variant is the
 * simplest there is: each sample shared out to the nearest two cells along each axis of the matrix itself, with no
 * correction of the image for it. k-space is periodic in both, as the exact sums over voxels are.
 */
#include <fornix/recon.h>

#include <math.h>

/* A kernel about four cells wide at twofold oversampling: below the artefacts of gridding itself. */
#define CONVOLUTION_TOLERANCE 1e-3

static int check_finite(fx_math *m, const fx_array *k)
{
	for (int64_t i = 0; i < k->n; i++)
		if (!isfinite(FX_F64_OF(k)[i]))
			return fx_math_fail(m, FX_EDATA, "sample %lld of the trajectory is not a finite number", (long long)(i / 3));
	return FX_OK;
}

/* *weighted = samples times weights, or the samples themselves, on the host. */
static int weigh(fx_math *m, const fx_array *samples, const fx_array *weights, fx_array **weighted)
{
	fx_array *factors = NULL;
	int status = m->ops->download(m, samples, weighted);

	if (status == FX_OK && weights)
		status = m->ops->download(m, weights, &factors);
	if (status == FX_OK && factors) {
		status = fx_array_own(weighted);
		if (status != FX_OK)
			fx_math_fail(m, status, "no memory for %.1f MB of weighted samples", (double)(*weighted)->bytes / 1e6);
	}
	if (status == FX_OK && factors)
		for (int64_t i = 0; i < (*weighted)->n; i++)
			FX_CF32_OF(*weighted)[i] *= FX_F32_OF(factors)[i % factors->n];
	fx_array_unref(factors);
	return status;
}

static int bilinear(fx_math *m, const int64_t dims[3], double scale, const fx_array *k, const fx_array *samples,
	const fx_array *weights, fx_array **image)
{
	fx_array *host_k = NULL, *weighted = NULL, *k_there = NULL, *samples_there = NULL;
	int status = m->ops->download(m, k, &host_k);

	if (status == FX_OK)
		status = check_finite(m, host_k);
	if (status == FX_OK)
		status = weigh(m, samples, weights, &weighted);
	if (status == FX_OK)
		status = m->ops->upload(m, host_k, &k_there);
	if (status == FX_OK)
		status = m->ops->upload(m, weighted, &samples_there);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 4, (int64_t[]){dims[0], dims[1], dims[2], samples->dims[1]}, image);
	if (status == FX_OK)
		status = m->ops->share_out(m, k_there, samples_there, *image);
	if (status == FX_OK)
		status = m->ops->fft(m, *image, +1, scale);
	fx_array_unref(host_k);
	fx_array_unref(weighted);
	fx_array_unref(k_there);
	fx_array_unref(samples_there);
	return status;
}

static int convolution(fx_math *m, const int64_t dims[3], double scale, const fx_array *k, const fx_array *samples,
	const fx_array *weights, fx_array **image)
{
	fx_fourier_spec spec = {
		.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = CONVOLUTION_TOLERANCE,
		.dims = {dims[0], dims[1], dims[2]}, .scale = scale,
	};
	fx_array *weighted = NULL;
	fx_fourier *f = NULL;
	int status = weigh(m, samples, weights, &weighted);

	if (status == FX_OK)
		status = fx_fourier_new(m, &spec, &f);
	if (status == FX_OK)
		status = fx_fourier_adjoint(f, k, weighted, image);
	fx_fourier_free(f);
	fx_array_unref(weighted);
	return status;
}

int fx_grid_image(fx_math *m, int kernel, const int64_t dims[3], double scale, const fx_array *k, const fx_array *samples,
	const fx_array *weights, fx_array **image)
{
	int status;

	*image = NULL;
	if (k->type != FX_F64 || k->dims[0] != 3 || samples->type != FX_CF32 || samples->dims[0] != k->dims[1] ||
	    (weights && (weights->type != FX_F32 || weights->n != k->dims[1])) || dims[0] < 1 || dims[1] < 1 || dims[2] < 1)
		return fx_math_fail(m, FX_EINVAL, "gridding needs a trajectory f64 {3, samples}, samples cf32 {samples, coils}, "
			"weights f32 {samples} or none, and a matrix of at least one voxel an axis");
	status = kernel == FX_GRID_BILINEAR ? bilinear(m, dims, scale, k, samples, weights, image) :
		convolution(m, dims, scale, k, samples, weights, image);
	if (status != FX_OK) {
		fx_array_unref(*image);
		*image = NULL;
	}
	return status;
}

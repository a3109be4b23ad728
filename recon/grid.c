/* SPDX-License-Identifier: MIT */
/*
 * grid.c - gridding and an inverse FFT, the baselines that iterative reconstruction is measured against.
 *
 * Convolution gridding is the adjoint NUFFT at the accuracy that is customary for it. The bilinear variant is the
 * simplest there is: each sample shared out to the nearest two cells along each axis of the matrix itself, with no
 * correction of the image for it. k-space is periodic in both, as the exact sums over voxels are.
 */
#include <fornix/recon.h>

#include <complex.h>
#include <math.h>

/* A kernel about four cells wide at twofold oversampling: below the artefacts of gridding itself. */
#define CONVOLUTION_TOLERANCE 1e-3

struct job {
	const double *k;
	const fx_cf32 *samples;
	const float *weights;
	fx_cf32 *cells;
	int64_t dims[3], n_samples, n_cells;
};

/* The two cells along an axis and the upper one's share. */
static float share(const struct job *j, int axis, double k, int64_t cell[2])
{
	int64_t n = j->dims[axis];
	double u, low;

	if (n == 1) {
		cell[0] = cell[1] = 0;
		return 0;
	}
	/* One period of k-space, so that the product with n is exact enough however far out k lies. */
	u = (k - floor(k)) * (double)n;
	low = floor(u);
	cell[0] = ((int64_t)low + n / 2) % n;
	cell[1] = (cell[0] + 1) % n;
	return (float)(u - low);
}

/* One coil after the other, samples in their order: the same sums on any number of threads. */
static void grid_coil(void *arg, int64_t coil)
{
	const struct job *j = arg;
	const fx_cf32 *samples = j->samples + coil * j->n_samples;
	fx_cf32 *cells = j->cells + coil * j->n_cells;

	for (int64_t m = 0; m < j->n_samples; m++) {
		fx_cf32 s = j->weights ? j->weights[m] * samples[m] : samples[m];
		float upper[3];
		int64_t cell[3][2];

		for (int axis = 0; axis < 3; axis++)
			upper[axis] = share(j, axis, j->k[3 * m + axis], cell[axis]);
		for (int corner = 0; corner < 8; corner++) {
			int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
			float f = (x ? upper[0] : 1 - upper[0]) * (y ? upper[1] : 1 - upper[1]) * (z ? upper[2] : 1 - upper[2]);

			if (f != 0)
				cells[(cell[2][z] * j->dims[1] + cell[1][y]) * j->dims[0] + cell[0][x]] += f * s;
		}
	}
}

static int check_finite(fx_math *m, const fx_array *k)
{
	for (int64_t i = 0; i < k->n; i++)
		if (!isfinite(FX_F64_OF(k)[i]))
			return fx_math_fail(m, FX_EDATA, "sample %lld of the trajectory is not a finite number", (long long)(i / 3));
	return FX_OK;
}

static int bilinear(fx_math *m, const int64_t dims[3], double scale, const fx_array *k, const fx_array *samples,
	const fx_array *weights, fx_array **image)
{
	struct job j = {.dims = {dims[0], dims[1], dims[2]}, .n_samples = k->dims[1], .n_cells = dims[0] * dims[1] * dims[2]};
	fx_array *host[3] = {NULL}, *cells = NULL;
	int status = m->ops->download(m, k, &host[0]);

	if (status == FX_OK)
		status = m->ops->download(m, samples, &host[1]);
	if (status == FX_OK && weights)
		status = m->ops->download(m, weights, &host[2]);
	if (status == FX_OK)
		status = check_finite(m, host[0]);
	if (status != FX_OK)
		goto done;
	status = fx_array_new4(FX_CF32, dims[0], dims[1], dims[2], samples->dims[1], &cells);
	if (status != FX_OK) {
		fx_math_fail(m, status, "no memory for an image of %lld x %lld x %lld voxels and %lld coils", (long long)dims[0],
			(long long)dims[1], (long long)dims[2], (long long)samples->dims[1]);
		goto done;
	}
	j.k = host[0]->data;
	j.samples = host[1]->data;
	j.weights = host[2] ? host[2]->data : NULL;
	j.cells = cells->data;
	fx_parallel(m->n_threads, samples->dims[1], grid_coil, &j);
	status = m->ops->upload(m, cells, image);
	if (status == FX_OK)
		status = m->ops->fft(m, *image, +1, scale);
done:
	for (int i = 0; i < 3; i++)
		fx_array_unref(host[i]);
	fx_array_unref(cells);
	return status;
}

/* *weighted = samples times weights, or the samples themselves. */
static int weigh(fx_math *m, const fx_array *samples, const fx_array *weights, fx_array **weighted)
{
	fx_array *factors = NULL, *host = NULL;
	int status = m->ops->download(m, samples, &host);

	*weighted = NULL;
	if (status == FX_OK && weights)
		status = m->ops->download(m, weights, &factors);
	if (status == FX_OK && factors) {
		status = fx_array_own(&host);
		if (status != FX_OK)
			fx_math_fail(m, status, "no memory for %.1f MB of weighted samples", (double)host->bytes / 1e6);
	}
	if (status == FX_OK && factors)
		for (int64_t i = 0; i < host->n; i++)
			FX_CF32_OF(host)[i] *= FX_F32_OF(factors)[i % factors->n];
	if (status == FX_OK)
		status = m->ops->upload(m, host, weighted);
	fx_array_unref(host);
	fx_array_unref(factors);
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

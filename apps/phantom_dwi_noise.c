/* SPDX-License-Identifier: MIT */
/*
 * phantom_dwi_noise.c - how noisy samples must be for an image of a wanted SNR. Trajectory and coils decide how noise reaches the
 * image, so it is predicted by solving for noise alone what the iterative pipelines solve for data.
 */
#include "apps/phantom_dwi.h"

#include <math.h>
#include <string.h>

#include <fornix/recon.h>

#define LAMBDA 0.01  /* of the iterative pipelines */
#define PROBES 4     /* the mean over a few hundred voxels is then known to about 1 % */
#define ITERATIONS 20
#define TOLERANCE 1e-3
#define KERNEL_TOLERANCE 1e-5

/* One frame as the pipelines would have it, with the true coil maps. */
static int make_frame(const fxi_phantom_job *job, fx_math *m, fx_frame *f)
{
	const fxi_sampling *s = &job->sampling;
	int64_t samples = s->n_readouts * s->n_samples, step[2], at = 0, voxels;
	fx_cf64 *maps = fx_alloc(job->n_coils, sizeof *maps);
	fx_array *host = NULL;
	int status = fx_array_new2(FX_F64, 3, samples, &f->k);

	memcpy(f->grid, s->matrix, sizeof f->grid);
	voxels = f->grid[0] * f->grid[1] * f->grid[2];
	f->n_coils = job->n_coils;
	f->phi2_sum = (double)samples;
	f->scale = 1 / sqrt((double)(job->encoded[0] * job->encoded[1] * job->encoded[2]));
	f->lambda = LAMBDA;
	f->has_prior = true;
	if (status == FX_OK)
		status = fx_array_new4(FX_CF32, f->grid[0], f->grid[1], f->grid[2], job->n_coils, &host);
	if (status != FX_OK || !maps) {
		fx_free(maps);
		fx_array_unref(host);
		return fx_math_fail(m, FX_ENOMEM, "no memory for the noise of a frame");
	}
	for (int64_t i = 0; i < s->n_readouts; i++)
		fxi_sampling_readout(s, i, FX_F64_OF(f->k) + 3 * i * s->n_samples, step);
	for (int64_t z = 0; z < f->grid[2]; z++)
		for (int64_t y = 0; y < f->grid[1]; y++)
			for (int64_t x = 0; x < f->grid[0]; x++, at++) {
				fxi_coils_at(job->coils, (double[3]){(double)(x - f->grid[0] / 2), (double)(y - f->grid[1] / 2),
					(double)(z - f->grid[2] / 2)}, maps);
				for (int64_t c = 0; c < job->n_coils; c++)
					FX_CF32_OF(host)[at + voxels * c] = (fx_cf32)maps[c];
			}
	fx_free(maps);
	status = m->ops->upload(m, host, &f->maps);
	fx_array_unref(host);
	if (status == FX_OK)
		status = fx_toeplitz_kernel(m, FX_FOURIER_NUFFT, KERNEL_TOLERANCE, f->grid, f->scale, f->k, NULL, &f->kernel);
	return status;
}

/* u8 {x, y, z} of a frame: where some slice has a fibre. */
static int fibres(const fxi_phantom_job *job, const fx_frame *f, fx_array **mask, int64_t *n)
{
	const fxi_dwi_grid *g = &job->dwi->grid;
	const int64_t *dims = g->lattice.dims;
	int64_t frame = f->grid[0] * f->grid[1] * f->grid[2];
	int status = fx_array_new(FX_U8, 3, f->grid, mask);

	*n = 0;
	for (int64_t i = 0; status == FX_OK && i < dims[0] * dims[1] * dims[2]; i++) {
		const double voxel[3] = {(double)(i % dims[0]), (double)(i / dims[0] % dims[1]), (double)(i / dims[0] / dims[1])};
		uint8_t *there = (uint8_t *)(*mask)->data + i % frame;
		fxi_dwi_point point;
		double x[3];

		for (int k = 0; k < 3; k++)
			x[k] = g->lattice.affine[k][3] + g->lattice.affine[k][0] * voxel[0] + g->lattice.affine[k][1] * voxel[1] +
				g->lattice.affine[k][2] * voxel[2];
		fxi_dwi_at(&job->dwi->object, x, 0, &point);
		*n += point.bundles > 0 && !*there;
		*there |= point.bundles > 0;
	}
	return status;
}

int fxi_phantom_dwi_noise(const fxi_phantom_job *job, fx_error *err, double *sigma)
{
	const fx_predict_options options = {.noise_sigma = 1, .n_probes = PROBES, .seed = job->noise.seed, .iterations = ITERATIONS,
		.tolerance = TOLERANCE};
	fx_array **right = NULL, *mask = NULL, *map = NULL;
	fx_frame f = {0};
	fx_error why = {0};
	fx_math *m = NULL;
	int64_t n = 0;
	double lambda;
	int status = fx_math_new("host", job->n_threads, &why, &m);

	if (status != FX_OK)
		return fx_error_set(err, status, "%s", why.text);
	status = make_frame(job, m, &f);
	if (status == FX_OK)
		status = fx_predict_noise(m, &f, &options, &right);
	if (status == FX_OK)
		status = fx_lambda_absolute(m, &f, &lambda);
	if (status == FX_OK)
		status = fx_predict_sigma(m, &f, lambda, &options, right, &map);
	if (status == FX_OK && fibres(job, &f, &mask, &n) != FX_OK)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a mask");
	if (status == FX_OK)
		*sigma = fx_mean_sigma(map, n > 0 ? mask : NULL);
	else
		fx_error_set(err, status, "%s", m->err->text);
	fx_arrays_free(right, PROBES);
	fx_array_unref(f.k);
	fx_array_unref(f.maps);
	fx_array_unref(f.kernel);
	fx_array_unref(mask);
	fx_array_unref(map);
	fx_math_free(m);
	return status;
}

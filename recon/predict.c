/* SPDX-License-Identifier: MIT */
/*
 * predict.c - the noise of the linear estimate rho = A^-1 F^H D, by pseudo replicas (Robson et al. 2008): noise goes
 * through F^H with the frame's own trajectory, which gives it A0's covariance exactly, and one system with the known Q is
 * solved for each realisation. |.|^2 of that is positive and unbiased; a probe of diag(A^-1 A0 A^-1) by random signs needs two.
 * (Drawing from Q's spectrum on the doubled grid needs no trajectory, but that spectrum is not everywhere positive.)
 */
#include <fornix/recon.h>

#include "phantom.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOISE_TOLERANCE 1e-4 /* of the NUFFT: far below what a finite number of probes resolves */

void fx_arrays_free(fx_array **list, int64_t n)
{
	for (int64_t i = 0; list && i < n; i++)
		fx_array_unref(list[i]);
	fx_free(list);
}

/* conj(phi) n has the distribution of |phi| n: its phase does not matter to circular noise. */
static int draw(fx_math *m, const fx_frame *f, const fx_predict_options *o, int64_t probe, fx_array **samples)
{
	int64_t n = f->k->dims[1];
	fxi_noise noise = {.sigma = o->noise_sigma, .seed = o->seed};
	int status = fx_array_new2(FX_CF32, n, f->n_coils, samples);

	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for %lld samples of noise", (long long)n);
	fxi_noise_add(&noise, (uint64_t)probe, 1, n, f->n_coils, FX_CF32_OF(*samples));
	if (f->phi2)
		for (int64_t i = 0; i < (*samples)->n; i++)
			FX_CF32_OF(*samples)[i] *= sqrtf(FX_F32_OF(f->phi2)[i % n]);
	return FX_OK;
}

static int realisation(fx_math *m, const fx_frame *f, const fx_predict_options *o, fx_fourier *fourier, int64_t p,
	fx_array **right)
{
	fx_array *samples = NULL, *coils = NULL;
	int status = draw(m, f, o, p, &samples);

	if (status == FX_OK)
		status = fx_fourier_adjoint(fourier, f->k, samples, &coils);
	fx_array_unref(samples);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 3, f->grid, right);
	if (status == FX_OK)
		status = f->maps ? m->ops->coil_combine(m, f->maps, coils, *right) : m->ops->axpy(m, 1, coils, *right);
	fx_array_unref(coils);
	return status;
}

int fx_predict_noise(fx_math *m, const fx_frame *f, const fx_predict_options *o, fx_array ***right)
{
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = NOISE_TOLERANCE, .scale = f->scale};
	fx_fourier *fourier = NULL;
	int status;

	*right = NULL;
	if (!f->k || (f->n_coils > 1 && !f->maps))
		return fx_math_fail(m, FX_EINVAL, "frame %lld has no trajectory, or several coils and no maps: its noise cannot be "
			"predicted; put <trajectory/>, <fhd/> and <coil_maps/> in front", (long long)f->id);
	memcpy(spec.dims, f->grid, sizeof spec.dims);
	*right = fx_alloc(o->n_probes, sizeof(fx_array *));
	if (!*right)
		return fx_math_fail(m, FX_ENOMEM, "no memory for %lld noise realisations", (long long)o->n_probes);
	status = fx_fourier_new(m, &spec, &fourier);
	for (int64_t p = 0; p < o->n_probes && status == FX_OK; p++)
		status = realisation(m, f, o, fourier, p, &(*right)[p]);
	fx_fourier_free(fourier);
	if (status != FX_OK) {
		fx_arrays_free(*right, o->n_probes);
		*right = NULL;
	}
	return status;
}

int fx_predict_sigma(fx_math *m, const fx_frame *f, double lambda_abs, const fx_predict_options *o,
	fx_array *const *right, fx_array **sigma)
{
	fx_cg_options cg = {.iterations = o->iterations, .tolerance = o->tolerance};
	int status = fx_array_new(FX_F32, 3, f->grid, sigma);

	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a map of the noise");
	for (int64_t p = 0; p < o->n_probes && status == FX_OK; p++) {
		fx_array *x = NULL, *host = NULL;
		fx_cg_report report = {0};

		status = m->ops->array_new(m, FX_CF32, 3, f->grid, &x);
		if (status == FX_OK)
			status = fx_frame_solve(m, f, lambda_abs, 0, right[p], &cg, x, &report);
		if (status == FX_OK)
			status = m->ops->download(m, x, &host);
		for (int64_t i = 0; status == FX_OK && i < host->n; i++) {
			float re = crealf(FX_CF32_OF(host)[i]), im = cimagf(FX_CF32_OF(host)[i]);

			FX_F32_OF(*sigma)[i] += re * re + im * im;
		}
		fx_cg_report_free(&report);
		fx_array_unref(x);
		fx_array_unref(host);
	}
	for (int64_t i = 0; i < (*sigma)->n; i++) /* real and imaginary part have the same variance */
		FX_F32_OF(*sigma)[i] = sqrtf(FX_F32_OF(*sigma)[i] / (float)(2 * o->n_probes));
	if (status != FX_OK)
		fx_slot_take(sigma, NULL);
	return status;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

int fx_object_mask(fx_math *m, const fx_array *magnitude, fx_array **mask, int64_t *n)
{
	float *sorted = fx_alloc(magnitude->n, sizeof *sorted), least;
	int status = fx_array_new(FX_U8, 3, magnitude->dims, mask);

	*n = 0;
	if (!sorted || status != FX_OK || magnitude->n == 0) {
		fx_free(sorted);
		return fx_math_fail(m, FX_ENOMEM, "no memory for a mask of the object, or no voxels");
	}
	memcpy(sorted, magnitude->data, (size_t)magnitude->n * sizeof *sorted);
	qsort(sorted, (size_t)magnitude->n, sizeof *sorted, by_value);
	least = 0.2f * sorted[magnitude->n - 1 - magnitude->n / 50];
	fx_free(sorted);
	for (int64_t i = 0; i < magnitude->n; i++) {
		bool in = FX_F32_OF(magnitude)[i] > least;

		((uint8_t *)(*mask)->data)[i] = in;
		*n += in;
	}
	return FX_OK;
}

double fx_mean_sigma(const fx_array *sigma, const fx_array *mask)
{
	double sum = 0, n = 0;

	for (int64_t i = 0; i < sigma->n; i++) {
		if (mask && !((const uint8_t *)mask->data)[i])
			continue;
		sum += (double)FX_F32_OF(sigma)[i] * (double)FX_F32_OF(sigma)[i];
		n++;
	}
	return n > 0 ? sqrt(sum / n) : 0;
}

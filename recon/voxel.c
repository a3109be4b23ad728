/* SPDX-License-Identifier: MIT */
/*
 * voxel.c - the voxel function's transform phi, and Mu = conj(phi) D: the first half of the chapter's fissioned loop
 * (Stone et al. 2008; Kirk & Hwu, "computation of F^H D").
 */
#include <fornix/recon.h>

#include <complex.h>
#include <math.h>

static double sinc(double k)
{
	double x = acos(-1) * k;

	return fabs(x) < 1e-8 ? 1 : sin(x) / x;
}

int fx_voxel_function(fx_math *m, int voxel, const fx_array *k, const int64_t dims[3], fx_array **phi)
{
	int64_t n = k->dims[1];

	*phi = NULL;
	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * n)
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)n);
	if (voxel != FX_VOXEL_DELTA && voxel != FX_VOXEL_BOX)
		return fx_math_fail(m, FX_EINVAL, "there is no voxel function %d", voxel);
	if (fx_array_new1(FX_CF32, n, phi) != FX_OK)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the voxel function of %lld samples", (long long)n);
	for (int64_t i = 0; i < n; i++) {
		double value = 1;

		for (int a = 0; a < 3 && voxel == FX_VOXEL_BOX; a++)
			value *= dims[a] > 1 ? sinc(FX_F64_OF(k)[3 * i + a]) : 1;
		FX_CF32_OF(*phi)[i] = (float)value;
	}
	return FX_OK;
}

int fx_apply_mu(fx_math *m, const fx_array *phi, fx_array *samples, fx_array **phi2, double *norm2)
{
	int64_t n = samples->dims[0];
	double sum = 0;

	*phi2 = NULL;
	*norm2 = 0;
	if (samples->type != FX_CF32)
		return fx_math_fail(m, FX_EINVAL, "samples are cf32, not %s", fx_type_name(samples->type));
	if (phi && (phi->type != FX_CF32 || phi->n != n))
		return fx_math_fail(m, FX_EINVAL, "a voxel function of %lld %s for %lld samples", (long long)phi->n,
			fx_type_name(phi->type), (long long)n);
	for (int64_t i = 0; i < samples->n; i++) {
		double re = crealf(FX_CF32_OF(samples)[i]), im = cimagf(FX_CF32_OF(samples)[i]);

		sum += re * re + im * im;
	}
	*norm2 = sum;
	if (!phi)
		return FX_OK;
	if (fx_array_new1(FX_F32, n, phi2) != FX_OK)
		return fx_math_fail(m, FX_ENOMEM, "no memory for |phi|^2 of %lld samples", (long long)n);
	for (int64_t i = 0; i < n; i++) {
		float re = crealf(FX_CF32_OF(phi)[i]), im = cimagf(FX_CF32_OF(phi)[i]);

		FX_F32_OF(*phi2)[i] = re * re + im * im;
	}
	for (int64_t c = 0; n > 0 && c < samples->n / n; c++)
		for (int64_t i = 0; i < n; i++)
			FX_CF32_OF(samples)[c * n + i] *= conjf(FX_CF32_OF(phi)[i]);
	return FX_OK;
}

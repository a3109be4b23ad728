/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.c - the kernel of the normal operator, made from a trajectory: Q[n] = scale^2 sum_m |phi_m|^2
 * e^{i2pi k_m.n} on the doubled grid is itself an adjoint sum, of real weights, so fx_fourier makes it; the backend
 * turns it into its spectrum.
 *
 * Precision: single does for Q, also where a hundred thousand samples meet at lag 0 (docs/performance.md), since the
 * sums are taken in blocks and the spectrum is f32 in any case. Only NUFFT tolerances below 1e-6 use double.
 */
#include <fornix/recon.h>

#include <glib.h>
#include <string.h>

#define SINGLE_TOLERANCE 1e-6

fx_fourier_spec fx_toeplitz_spec(int method, double tolerance, const int64_t dims[3], double scale)
{
	fx_fourier_spec spec = {
		.method = method,
		.type = method == FX_FOURIER_NUFFT && tolerance < SINGLE_TOLERANCE ? FX_CF64 : FX_CF32,
		.tolerance = tolerance,
		.scale = scale * scale,
		.real_samples = true,
	};

	for (int d = 0; d < 3; d++)
		spec.dims[d] = dims[d] > 1 ? 2 * dims[d] : 1;
	return spec;
}

int fx_toeplitz_from_q(fx_math *m, fx_array *q_take, fx_array **kernel)
{
	fx_array *q = q_take;
	int status = FX_OK;

	*kernel = NULL;
	if (q->type == FX_CF64) {
		status = fx_to_single(m, q_take, &q);
	} else if (q->place == FX_HOST) {
		status = fx_array_own(&q);
		if (status != FX_OK)
			fx_math_fail(m, status, "no memory for a copy of Q");
	}
	if (status != FX_OK)
		return status;
	status = m->ops->array_new(m, FX_F32, 3, q->dims, kernel);
	if (status == FX_OK)
		status = m->ops->toeplitz_spectrum(m, q, *kernel);
	fx_array_unref(q);
	if (status != FX_OK) {
		fx_array_unref(*kernel);
		*kernel = NULL;
	}
	return status;
}

int fx_toeplitz_samples(fx_math *m, const fx_fourier_spec *spec, int64_t n, const fx_array *phi2, fx_array **out)
{
	int real = spec->type == FX_CF64 ? FX_F64 : FX_F32;
	int status;

	if (phi2)
		status = fx_array_convert(phi2, real, out);
	else
		status = fx_array_new1(real, n, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for the weights of %lld samples", (long long)n);
	if (!phi2)
		for (int64_t i = 0; i < n; i++) {
			if (real == FX_F64)
				FX_F64_OF(*out)[i] = 1;
			else
				FX_F32_OF(*out)[i] = 1;
		}
	return FX_OK;
}

int fx_toeplitz_kernel(fx_math *m, int method, double tolerance, const int64_t dims[3], double scale,
	const fx_array *k, const fx_array *phi2, fx_array **kernel)
{
	fx_fourier_spec spec = fx_toeplitz_spec(method, tolerance, dims, scale);
	fx_fourier *f = NULL;
	fx_array *weights = NULL, *q = NULL;
	int status;

	*kernel = NULL;
	if (phi2 && phi2->n != k->dims[1])
		return fx_math_fail(m, FX_EINVAL, "%lld samples of |phi|^2 do not go with %lld points of a trajectory",
			(long long)phi2->n, (long long)k->dims[1]);
	status = fx_toeplitz_samples(m, &spec, k->dims[1], phi2, &weights);
	if (status == FX_OK)
		status = fx_fourier_new(m, &spec, &f);
	if (status == FX_OK)
		status = fx_fourier_adjoint(f, k, weights, &q);
	fx_fourier_free(f);
	fx_array_unref(weights);
	if (status == FX_OK)
		status = fx_toeplitz_from_q(m, q, kernel);
	return status;
}

/* ---- digest ---- */

/* Numbers gathered for the checksum, which is slow to take few bytes at a time. */
struct digest {
	GChecksum *sum;
	size_t n;
	guchar bytes[4096];
};

/* In little-endian order whatever the machine. */
static void put_u64(struct digest *d, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		d->bytes[d->n++] = (guchar)(v >> (8 * i));
	if (d->n == sizeof d->bytes) {
		g_checksum_update(d->sum, d->bytes, (gssize)d->n);
		d->n = 0;
	}
}

static void put_f64(struct digest *d, double v)
{
	uint64_t bits;

	v += 0.0; /* -0 is 0 */
	memcpy(&bits, &v, sizeof bits);
	put_u64(d, bits);
}

void fx_toeplitz_digest(int method, double tolerance, const int64_t dims[3], double scale, const fx_array *k,
	const fx_array *phi2, char digest[65])
{
	struct digest d = {.sum = g_checksum_new(G_CHECKSUM_SHA256)};

	put_u64(&d, 1); /* of this list of ingredients; another number for another */
	put_u64(&d, (uint64_t)method);
	/* a direct sum has no tolerance: what the field holds does not matter */
	put_f64(&d, method == FX_FOURIER_NUFFT ? tolerance : 0);
	for (int i = 0; i < 3; i++)
		put_u64(&d, (uint64_t)dims[i]);
	put_f64(&d, scale);
	put_u64(&d, (uint64_t)k->n);
	for (int64_t i = 0; i < k->n; i++)
		put_f64(&d, FX_F64_OF(k)[i]);
	put_u64(&d, phi2 ? (uint64_t)phi2->n : UINT64_MAX); /* absent is not empty */
	for (int64_t i = 0; phi2 && i < phi2->n; i++)
		put_f64(&d, (double)FX_F32_OF(phi2)[i]);
	g_checksum_update(d.sum, d.bytes, (gssize)d.n);
	memcpy(digest, g_checksum_get_string(d.sum), 65);
	g_checksum_free(d.sum);
}

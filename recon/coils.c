/* SPDX-License-Identifier: MIT */
/*
 * coils.c - what is done with several coils: whitening and compression matrices, coil maps, one image out of many.
 * Matrices of coils are small; they are factored on the host, in double, by LAPACK on one thread.
 */
#include <fornix/recon.h>

#include <cblas.h>
#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* One thread: the pool is Fornix's own, and a split that depends on the machine would change bits. */
static void one_blas_thread(void)
{
	openblas_set_num_threads(1);
}

static void quiet_blas(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, one_blas_thread);
}

/* A writable host copy of a square cf64 matrix, checked. */
static int square(fx_math *m, const fx_array *matrix, const char *what, fx_array **copy)
{
	int64_t n = matrix->dims[0];
	int status;

	*copy = NULL;
	if (matrix->type != FX_CF64 || matrix->n_dims != 2 || matrix->dims[1] != n || n < 1 || n > 65535)
		return fx_math_fail(m, FX_EINVAL, "a %s matrix must be cf64 {coils, coils}", what);
	status = fx_array_new2(FX_CF64, n, n, copy);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a %s matrix of %lld coils", what, (long long)n);
	memcpy((*copy)->data, matrix->data, (size_t)matrix->bytes);
	for (int64_t i = 0; i < n * n; i++) {
		fx_cf64 z = FX_CF64_OF(*copy)[i];

		if (isfinite(creal(z)) && isfinite(cimag(z)))
			continue;
		fx_array_unref(*copy);
		*copy = NULL;
		return fx_math_fail(m, FX_EDATA, "the %s of coil %lld is not a finite number; its samples are damaged", what,
			(long long)(i % n));
	}
	return FX_OK;
}

static int check_variances(fx_math *m, const fx_array *covariance)
{
	int64_t n = covariance->dims[0];

	for (int64_t i = 0; i < n; i++)
		if (!(creal(FX_CF64_OF(covariance)[i + n * i]) > 0))
			return fx_math_fail(m, FX_EDATA, "coil %lld recorded no noise at all (variance %g): it is dead or not "
				"connected; leave it out of the scan, or run without noise_adjust",
				(long long)i, creal(FX_CF64_OF(covariance)[i + n * i]));
	return FX_OK;
}

int fx_whitening_matrix(fx_math *m, const fx_array *covariance, fx_array **matrix)
{
	fx_array *l = NULL;
	int64_t n = covariance->dims[0];
	lapack_int bad;
	int status;

	*matrix = NULL;
	quiet_blas();
	status = square(m, covariance, "noise covariance", &l);
	if (status == FX_OK)
		status = check_variances(m, l);
	if (status != FX_OK)
		goto done;
	bad = LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'L', (lapack_int)n, l->data, (lapack_int)n);
	/* A pivot that is rounding alone (1e-12 of the variance, in double) is a duplicate that happened to stay positive. */
	for (int64_t i = 0; bad == 0 && i < n; i++) {
		double pivot = creal(FX_CF64_OF(l)[i + n * i]);

		if (pivot * pivot < 1e-12 * creal(FX_CF64_OF(covariance)[i + n * i]))
			bad = (lapack_int)(i + 1);
	}
	if (bad != 0) {
		status = fx_math_fail(m, FX_EDATA, "the noise of coil %d is a combination of the coils before it, so the noise "
			"covariance cannot be inverted: the coil is duplicated, or there are fewer noise samples than coils; leave "
			"the coil out, or run without noise_adjust", (int)bad - 1);
		goto done;
	}
	LAPACKE_ztrtri(LAPACK_COL_MAJOR, 'L', 'N', (lapack_int)n, l->data, (lapack_int)n);
	status = fx_array_new2(FX_CF32, n, n, matrix);
	if (status != FX_OK) {
		fx_math_fail(m, status, "no memory for a whitening matrix of %lld coils", (long long)n);
		goto done;
	}
	for (int64_t o = 0; o < n; o++)
		for (int64_t c = 0; c <= o; c++)
			FX_CF32_OF(*matrix)[c + n * o] = (fx_cf32)FX_CF64_OF(l)[o + n * c];
done:
	fx_array_unref(l);
	return status;
}

/* How many of the n eigenvalues (ascending) to keep. */
static int64_t how_many(const double *values, int64_t n, int64_t n_keep, double energy, double total)
{
	double sum = 0;
	int64_t k;

	if (n_keep > 0)
		return n_keep < n ? n_keep : n;
	for (k = 0; k < n && (k == 0 || sum < energy * total); k++)
		sum += fmax(values[n - 1 - k], 0);
	return k;
}

/* One row of the compression matrix: the conjugate eigenvector, turned so that its largest element is real. */
static void put_component(const fx_cf64 *vector, int64_t n, fx_cf32 *row)
{
	int64_t largest = 0;
	fx_cf64 turn;

	for (int64_t c = 1; c < n; c++)
		if (cabs(vector[c]) > cabs(vector[largest]))
			largest = c;
	turn = vector[largest] / cabs(vector[largest]);
	for (int64_t c = 0; c < n; c++)
		row[c] = (fx_cf32)(conj(vector[c]) * turn);
}

int fx_compression_matrix(fx_math *m, const fx_array *gram, int64_t n_keep, double energy, fx_array **matrix,
	double *kept_energy)
{
	fx_array *vectors = NULL, *values = NULL;
	int64_t n = gram->dims[0], n_out;
	double total = 0, kept = 0;
	int status;

	*matrix = NULL;
	*kept_energy = 0;
	quiet_blas();
	if (n_keep < 1 && !(energy > 0 && energy <= 1))
		return fx_math_fail(m, FX_EINVAL, "coil compression needs a number of coils to keep, or an energy above 0 and at "
			"most 1, not %g", energy);
	status = square(m, gram, "Gram", &vectors);
	if (status != FX_OK)
		return status;
	status = fx_array_new1(FX_F64, n, &values);
	if (status != FX_OK || LAPACKE_zheev(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)n, vectors->data, (lapack_int)n,
			values->data) != 0) {
		status = fx_math_fail(m, status ? status : FX_EDATA, "cannot take the principal components of %lld coils",
			(long long)n);
		goto done;
	}
	for (int64_t i = n - 1; i >= 0; i--)
		total += fmax(FX_F64_OF(values)[i], 0);
	if (!(total > 0)) {
		status = fx_math_fail(m, FX_EDATA, "every sample of every coil is 0: there is nothing to compress");
		goto done;
	}
	n_out = how_many(values->data, n, n_keep, energy, total);
	status = fx_array_new2(FX_CF32, n, n_out, matrix);
	if (status != FX_OK) {
		fx_math_fail(m, status, "no memory for a compression matrix of %lld coils", (long long)n);
		goto done;
	}
	for (int64_t o = 0; o < n_out; o++) {
		put_component(FX_CF64_OF(vectors) + n * (n - 1 - o), n, FX_CF32_OF(*matrix) + n * o);
		kept += fmax(FX_F64_OF(values)[n - 1 - o], 0);
	}
	*kept_energy = kept / total;
done:
	fx_array_unref(vectors);
	fx_array_unref(values);
	return status;
}

int fx_gram_add(fx_math *m, const fx_array *samples, fx_array *gram)
{
	int64_t n_samples = samples->dims[0], n = samples->dims[1];
	fx_array *host = NULL;
	int status;

	if (samples->type != FX_CF32 || gram->type != FX_CF64 || gram->dims[0] != n || gram->dims[1] != n)
		return fx_math_fail(m, FX_EINVAL, "a Gram matrix of %lld coils cannot take samples of %lld",
			(long long)gram->dims[0], (long long)n);
	status = m->ops->download(m, samples, &host);
	if (status != FX_OK)
		return status;
	for (int64_t b = 0; b < n; b++)
		for (int64_t a = 0; a <= b; a++) {
			const float *x = (const float *)host->data + 2 * n_samples * a;
			const float *y = (const float *)host->data + 2 * n_samples * b;
			double re = 0, im = 0;

#pragma omp simd reduction(+ : re, im)
			for (int64_t i = 0; i < n_samples; i++) {
				re += (double)x[2 * i] * y[2 * i] + (double)x[2 * i + 1] * y[2 * i + 1];
				im += (double)x[2 * i + 1] * y[2 * i] - (double)x[2 * i] * y[2 * i + 1];
			}
			FX_CF64_OF(gram)[a + n * b] += FX_CF64(re, a == b ? 0 : im);
			if (a != b)
				FX_CF64_OF(gram)[b + n * a] += FX_CF64(re, -im);
		}
	fx_array_unref(host);
	return FX_OK;
}

int fx_coil_maps_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array **maps)
{
	int status;

	*maps = NULL;
	if (coils->type != FX_CF32 || coils->n_dims != 4)
		return fx_math_fail(m, FX_EINVAL, "coil maps are made from cf32 coil images {x, y, z, coils}");
	status = m->ops->array_new(m, FX_CF32, 4, coils->dims, maps);
	if (status == FX_OK)
		status = m->ops->walsh(m, coils, radius, n_iterations, *maps);
	if (status != FX_OK) {
		fx_array_unref(*maps);
		*maps = NULL;
	}
	return status;
}

/* Replaces *a by a host array that only the caller holds. */
static int to_host(fx_math *m, fx_array **a)
{
	fx_array *host = NULL;
	int status = m->ops->download(m, *a, &host);

	if (status != FX_OK)
		return status;
	fx_array_unref(*a);
	*a = host;
	status = fx_array_own(a);
	return status == FX_OK ? FX_OK : fx_math_fail(m, status, "no memory for an image of %.1f MB", (double)(*a)->bytes / 1e6);
}

/* image[i] / power[i], 0 where the maps are; or sqrt(power) where there are none. */
static void finish_image(const fx_array *power, bool has_maps, fx_array *image)
{
	for (int64_t i = 0; i < image->n; i++) {
		float p = FX_F32_OF(power)[i];

		if (!has_maps)
			FX_CF32_OF(image)[i] = sqrtf(p);
		else
			FX_CF32_OF(image)[i] = p > 0 ? FX_CF32_OF(image)[i] / p : 0;
	}
}

int fx_coils_to_image(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array **image)
{
	fx_array *power = NULL, *sum = NULL;
	int status;

	*image = NULL;
	if (coils->type != FX_CF32 || (maps && !fx_array_same_shape(maps, coils)))
		return fx_math_fail(m, FX_EINVAL, "coil images must be cf32 {x, y, z, coils}, and coil maps of the same shape");
	status = m->ops->array_new(m, FX_F32, 3, coils->dims, &power);
	if (status == FX_OK)
		status = m->ops->array_new(m, FX_CF32, 3, coils->dims, &sum);
	if (status == FX_OK)
		status = m->ops->coil_power(m, maps ? maps : coils, power);
	if (status == FX_OK && maps)
		status = m->ops->coil_combine(m, maps, coils, sum);
	if (status == FX_OK && m->ops->coil_finish) {
		status = m->ops->coil_finish(m, power, maps != NULL, sum);
		if (status == FX_OK)
			*image = fx_array_ref(sum);
	} else if (status == FX_OK) {
		status = to_host(m, &power);
		if (status == FX_OK)
			status = to_host(m, &sum);
		if (status == FX_OK) {
			finish_image(power, maps != NULL, sum);
			status = m->ops->upload(m, sum, image);
		}
	}
	fx_array_unref(power);
	fx_array_unref(sum);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* ESPIRiT: maps against those a phantom was made with, and against the definition taken voxel by voxel in double. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <fornix/fornix.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/phantom.h"

#define PI 3.14159265358979323846

static fx_error error;

static fx_math math_of(int n_threads)
{
	memset(&error, 0, sizeof error);
	return (fx_math){.ops = fx_backend_host(), .n_threads = n_threads, .err = &error};
}

/* ---- the maps that a phantom was made with ----------------------------------------------------------- */

/* Coil images of a head from its exact k-space on the full Cartesian matrix. */
static fx_array *head(const int64_t matrix[3], const fxi_phantom *p, const fxi_coils *coils)
{
	fx_math m = math_of(2);
	int64_t n = matrix[0] * matrix[1] * matrix[2];
	double *k = malloc((size_t)(3 * n) * sizeof *k);
	fx_array *a;

	CU_ASSERT_PTR_NOT_NULL_FATAL(k);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, matrix[0], matrix[1], matrix[2], coils->n_coils, &a), FX_OK);
	for (int64_t i = 0; i < n; i++) {
		int64_t x[3] = {i % matrix[0], i / matrix[0] % matrix[1], i / matrix[0] / matrix[1]};

		for (int d = 0; d < 3; d++)
			k[3 * i + d] = (double)(x[d] - matrix[d] / 2) / (double)matrix[d];
	}
	CU_ASSERT_EQUAL_FATAL(fxi_phantom_samples(p, coils, k, n, 1 / sqrt((double)n), 2, &error, FX_CF32_OF(a)), FX_OK);
	CU_ASSERT_EQUAL_FATAL(m.ops->fft(&m, a, +1, 1 / sqrt((double)n)), FX_OK);
	free(k);
	return a;
}

static void known_maps(const int64_t matrix[3], int64_t n_coils, const fx_espirit_options *options, double least)
{
	fx_math m = math_of(2), one = math_of(1), three = math_of(3);
	int64_t n = matrix[0] * matrix[1] * matrix[2], inside = 0, outside = 0;
	fxi_phantom *p;
	fxi_coils *coils;
	fx_array *images, *truth, *maps, *again;
	double worst = 1;

	CU_ASSERT_EQUAL_FATAL(fxi_phantom_shepp_logan(matrix[2] > 1 ? 3 : 2, matrix, &error, &p), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_coils_new(n_coils, matrix[2] > 1 ? 3 : 2, matrix, &error, &coils), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_phantom_truth(p, matrix, 2, &error, &truth), FX_OK);
	images = head(matrix, p, coils);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, images, options, &maps), FX_OK);
	for (int64_t i = 0; i < n; i++) {
		int64_t v[3] = {i % matrix[0], i / matrix[0] % matrix[1], i / matrix[0] / matrix[1]};
		fx_cf64 s[64], sum = 0;
		double x[3], power = 0;

		for (int d = 0; d < 3; d++)
			x[d] = (double)(v[d] - matrix[d] / 2);
		fxi_coils_at(coils, x, s);
		for (int64_t c = 0; c < n_coils; c++) {
			fx_cf64 e = (fx_cf64)FX_CF32_OF(maps)[i + n * c];

			sum += conj(s[c]) * e;
			power += creal(e * conj(e));
		}
		CU_ASSERT(power == 0 || fabs(power - 1) < 1e-5); /* norm 1 in single precision */
		/* tissue is 0.2 and more; less is the ventricles, and voxels that the skull only clips */
		if (FX_F32_OF(truth)[i] > 0.15F) {
			inside++;
			worst = fmin(worst, cabs(sum));
		}
		outside += power == 0;
	}
	CU_ASSERT(inside > n / 5);
	CU_ASSERT(outside > n / 20 && outside < n / 2); /* the head's corners are empty */
	CU_ASSERT(worst >= least);
	if (!(worst >= least) || !(outside > n / 20 && outside < n / 2))
		printf("worst %g, outside %lld of %lld ", worst, (long long)outside, (long long)n);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&one, images, options, &again), FX_OK);
	CU_ASSERT_EQUAL(memcmp(maps->data, again->data, (size_t)maps->bytes), 0);
	fx_array_unref(again);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&three, images, options, &again), FX_OK);
	CU_ASSERT_EQUAL(memcmp(maps->data, again->data, (size_t)maps->bytes), 0);
	fx_array_unref(again);
	fx_array_unref(maps);
	fx_array_unref(images);
	fx_array_unref(truth);
	fxi_coils_free(coils);
	fxi_phantom_free(p);
}

/* Voxels with signal, edges and Gibbs' ringing included: the issue asks for 0.99. */
static void phantom_2d(void)
{
	const fx_espirit_options usual = {24, 6, 0.02, 0.8};

	known_maps((int64_t[]){64, 64, 1}, 8, &usual, 0.99);
	known_maps((int64_t[]){63, 70, 1}, 5, &usual, 0.99);
}

static void phantom_3d(void)
{
	const fx_espirit_options small = {14, 4, 0.02, 0.8};

	known_maps((int64_t[]){24, 21, 20}, 4, &small, 0.99);
}

/* ---- the definition --------------------------------------------------------------------------------- */

static double noise(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 40) / (1 << 24) - 0.5;
}

static fx_array *coil_images(const int64_t dims[4], uint64_t seed)
{
	int64_t nv = dims[0] * dims[1] * dims[2];
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, dims, &a), FX_OK);
	for (int64_t i = 0; i < nv; i++) {
		double x = (double)(i % dims[0]) / (double)dims[0], y = (double)(i / dims[0] % dims[1]) / (double)dims[1];
		double rho = 1 + noise(&seed);

		for (int64_t c = 0; c < dims[3]; c++)
			FX_CF32_OF(a)[i + nv * c] = (fx_cf32)(rho * (1.2 + cos((double)c + 3 * x)) * cexp(I * ((double)c * y + x)) +
				0.1 * (noise(&seed) + I * noise(&seed)));
	}
	return a;
}

/* One element of the calibration matrix: window w, unknown i; k-space centred in `k`, windows in its centre block. */
static fx_cf64 element(const fx_array *k, const int64_t *block, const int64_t *kernel, int64_t w, int64_t i)
{
	int64_t samples = kernel[0] * kernel[1] * kernel[2], at = 0, c = i / samples;

	i %= samples;
	for (int d = 2; d >= 0; d--) {
		int64_t windows_below = 1, kernel_below = 1, here;

		for (int e = 0; e < d; e++) {
			windows_below *= block[e] - kernel[e] + 1;
			kernel_below *= kernel[e];
		}
		here = k->dims[d] / 2 - block[d] / 2 + w / windows_below % (block[d] - kernel[d] + 1) + i / kernel_below % kernel[d];
		at = at * k->dims[d] + here;
	}
	return (fx_cf64)FX_CF32_OF(k)[at + c * k->dims[0] * k->dims[1] * k->dims[2]];
}

/* Eigenvectors (columns, ascending values) of a Hermitian matrix, in place. */
static void eigen(int64_t n, fx_cf64 *a, double *values)
{
	CU_ASSERT_EQUAL_FATAL(LAPACKE_zheev(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)n, a, (lapack_int)n, values), 0);
}

/* sum over kept vectors of g g^H / samples, g_c = sum_k conj(v_ck) e^{+i2pi k.x/N}. Column-major {c, c}. */
static void matrix_at(const int64_t *dims, const int64_t *kernel, int64_t n, int64_t first, const fx_cf64 *v, const int64_t *x,
	fx_cf64 *out)
{
	int64_t samples = kernel[0] * kernel[1] * kernel[2], nc = n / samples;

	memset(out, 0, (size_t)(nc * nc) * sizeof *out);
	for (int64_t r = first; r < n; r++) {
		fx_cf64 g[16] = {0};

		for (int64_t i = 0; i < n; i++) {
			int64_t k[3] = {i % samples % kernel[0], i % samples / kernel[0] % kernel[1],
				i % samples / (kernel[0] * kernel[1])};
			double turn = 0;

			for (int d = 0; d < 3; d++)
				turn += (double)(k[d] * (x[d] - dims[d] / 2)) / (double)dims[d];
			g[i / samples] += conj(v[i + n * r]) * cexp(I * 2 * PI * turn);
		}
		for (int64_t b = 0; b < nc; b++)
			for (int64_t a = 0; a < nc; a++)
				out[a + nc * b] += g[a] * conj(g[b]) / (double)samples;
	}
}

static void by_definition(const int64_t dims[4], int64_t size, int64_t kernel_size, double threshold)
{
	fx_math m = math_of(2);
	const fx_espirit_options options = {size, kernel_size, threshold, 0};
	fx_array *images = coil_images(dims, 5), *k = coil_images(dims, 5), *maps;
	int64_t kernel[3], block[3], n = dims[3], rows = 1, nv = dims[0] * dims[1] * dims[2], first = 0, compared = 0;
	double *values, worst = 0;
	fx_cf64 *gram;

	for (int d = 0; d < 3; d++) {
		block[d] = size < dims[d] ? size : dims[d];
		kernel[d] = kernel_size < block[d] ? kernel_size : block[d];
		rows *= block[d] - kernel[d] + 1;
		n *= kernel[d];
	}
	CU_ASSERT_EQUAL_FATAL(m.ops->fft(&m, k, -1, 1), FX_OK);
	gram = calloc((size_t)(n * n), sizeof *gram);
	values = calloc((size_t)n, sizeof *values);
	CU_ASSERT_FATAL(gram != NULL && values != NULL);
	for (int64_t w = 0; w < rows; w++)
		for (int64_t b = 0; b < n; b++)
			for (int64_t a = 0; a < n; a++)
				gram[a + n * b] += conj(element(k, block, kernel, w, a)) * element(k, block, kernel, w, b);
	eigen(n, gram, values);
	while (first < n - 1 && sqrt(fmax(values[first], 0) / values[n - 1]) <= threshold)
		first++;
	/* nothing near the threshold: both sides keep the same vectors */
	for (int64_t i = 0; i < n; i++)
		CU_ASSERT_FATAL(fabs(sqrt(fmax(values[i], 0) / values[n - 1]) / threshold - 1) > 1e-3);
	CU_ASSERT_FATAL(first > 0);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, images, &options, &maps), FX_OK);
	for (int64_t i = 0; i < nv; i++) {
		int64_t nc = dims[3], x[3] = {i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]};
		double eigenvalues[16];
		fx_cf64 a[256], sum = 0;

		matrix_at(dims, kernel, n, first, gram, x, a);
		eigen(nc, a, eigenvalues);
		CU_ASSERT(eigenvalues[nc - 1] < 1 + 1e-9);
		if (eigenvalues[nc - 2] > 0.9 * eigenvalues[nc - 1])
			continue;
		compared++;
		for (int64_t c = 0; c < nc; c++)
			sum += conj(a[nc * (nc - 1) + c]) * FX_CF32_OF(maps)[i + nv * c];
		worst = fmax(worst, fabs(cabs(sum) - 1));
	}
	CU_ASSERT(compared > nv / 4);
	/* Sums of some hundred products in single precision; a power iteration that has 200 steps at a ratio of 0.9. */
	CU_ASSERT(worst < 1e-5);
	if (!(worst < 1e-5) || compared <= nv / 4)
		printf("worst %g of %lld ", worst, (long long)compared);
	free(gram);
	free(values);
	fx_array_unref(maps);
	fx_array_unref(images);
	fx_array_unref(k);
}

static void definition(void)
{
	by_definition((int64_t[]){9, 12, 1, 3}, 9, 3, 0.15);
	by_definition((int64_t[]){7, 6, 5, 2}, 6, 2, 0.2);
	by_definition((int64_t[]){20, 1, 1, 2}, 12, 3, 0.1);
}

/* ---- the rest --------------------------------------------------------------------------------------- */

static void odd_inputs(void)
{
	fx_math m = math_of(2);
	fx_espirit_options o = {24, 6, 0.02, 0.8};
	fx_array *a, *maps;
	double power = 0;

	/* one coil: nothing to find out */
	a = coil_images((int64_t[]){5, 4, 3, 1}, 1);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	for (int64_t i = 0; i < maps->n; i++)
		CU_ASSERT(FX_CF32_OF(maps)[i] == 1);
	fx_array_unref(maps);
	memset(a->data, 0, (size_t)a->bytes);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	for (int64_t i = 0; i < maps->n; i++)
		CU_ASSERT(FX_CF32_OF(maps)[i] == 0);
	fx_array_unref(maps);
	fx_array_unref(a);
	/* two coils of zeros; of very small numbers; one voxel */
	a = coil_images((int64_t[]){8, 7, 1, 2}, 1);
	for (int64_t i = 0; i < a->n; i++)
		FX_CF32_OF(a)[i] *= 1e-30F;
	o.crop = 0;
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(hypotf(cabsf(FX_CF32_OF(maps)[28]), cabsf(FX_CF32_OF(maps)[28 + 56])), 1, 1e-5);
	fx_array_unref(maps);
	memset(a->data, 0, (size_t)a->bytes);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	CU_ASSERT(FX_CF32_OF(maps)[8 * 3 + 4] == 0);
	fx_array_unref(maps);
	FX_CF32_OF(a)[60] = NAN;
	CU_ASSERT_EQUAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_EDATA);
	CU_ASSERT_PTR_NULL(maps);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "coil 1"));
	fx_array_unref(a);
	m = math_of(2);
	a = coil_images((int64_t[]){1, 1, 1, 3}, 2);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	for (int c = 0; c < 3; c++)
		power += pow(cabsf(FX_CF32_OF(a)[c]), 2);
	for (int c = 0; c < 3; c++) /* one window: its own direction */
		CU_ASSERT_DOUBLE_EQUAL(cabsf(FX_CF32_OF(maps)[c]), cabsf(FX_CF32_OF(a)[c]) / sqrt(power), 1e-6);
	fx_array_unref(maps);
	fx_array_unref(a);
	/* more unknowns than can be solved, and no voxels */
	a = coil_images((int64_t[]){24, 24, 24, 8}, 2);
	o.kernel_size = 12;
	CU_ASSERT_EQUAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "kernel_size"));
	fx_array_unref(a);
	m = math_of(2);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 0, 4, 1, 3, &a), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(&m, a, &o, &maps), FX_OK);
	fx_array_unref(maps);
	fx_array_unref(a);
}

static CU_TestInfo tests[] = {
	{"the maps a 2-D phantom was made with", phantom_2d},
	{"the maps a 3-D phantom was made with", phantom_3d},
	{"the definition, in double", definition},
	{"one coil, zeros, NaN, one voxel, too much, nothing", odd_inputs},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_espirit = {"espirit", NULL, NULL, NULL, NULL, tests};

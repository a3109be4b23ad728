/* SPDX-License-Identifier: MIT */
/*
 * normal: the multi-coil operator and the prior's weight against the chapter's sums in double; the digest that a cached
 * kernel is found by.
 */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "toeplitz_reference.h"

static fx_error error;
static fx_math *math;

static int set_up(void)
{
	memset(&error, 0, sizeof error);
	return fx_math_new("host", 2, &error, &math);
}

static int tear_down(void)
{
	fx_math_free(math);
	return 0;
}

static const int64_t shape[4] = {6, 5, 4, 3};

/* A x = sum_c conj(S_c) F^H F S_c x + lambda x, with reused work space and without maps. */
static void coils_and_prior(void)
{
	struct problem p = problem_new(shape, 60, 14);
	fx_array *q = reference_q(&p), *kernel, *y, *coils, *normal, *work = NULL;
	fx_array *maps = random_array(FX_CF32, 4, shape, 15), *x = random_array(FX_CF32, 3, shape, 16), *want;
	const double lambda = 0.3;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, shape, &y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF64, 3, shape, &want), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shape, &coils), FX_OK);
	for (int64_t i = 0; i < coils->n; i++)
		FX_CF32_OF(coils)[i] = FX_CF32_OF(maps)[i] * FX_CF32_OF(x)[i % x->n];
	normal = reference_normal(&p, coils);
	for (int64_t i = 0; i < coils->n; i++)
		FX_CF64_OF(want)[i % x->n] += conj((fx_cf64)FX_CF32_OF(maps)[i]) * FX_CF64_OF(normal)[i];
	for (int64_t i = 0; i < x->n; i++)
		FX_CF64_OF(want)[i] += lambda * (fx_cf64)FX_CF32_OF(x)[i];
	for (int repeat = 0; repeat < 2; repeat++) {
		CU_ASSERT_EQUAL_FATAL(fx_normal_apply(math, kernel, maps, NULL, lambda, x, &work, y), FX_OK);
		CU_ASSERT(relative_difference(y, want) < 1e-6); /* sums of 24-bit numbers */
	}
	fx_array_unref(work);
	work = NULL;
	fx_array_unref(want);
	want = reference_normal(&p, x);
	for (int64_t i = 0; i < x->n; i++)
		FX_CF64_OF(want)[i] += lambda * (fx_cf64)FX_CF32_OF(x)[i];
	CU_ASSERT_EQUAL_FATAL(fx_normal_apply(math, kernel, NULL, NULL, lambda, x, &work, y), FX_OK);
	CU_ASSERT(relative_difference(y, want) < 1e-6);
	CU_ASSERT_EQUAL(fx_normal_apply(math, kernel, NULL, NULL, lambda, x, &work, x), FX_EINVAL);
	memset(&error, 0, sizeof error);
	fx_array *all[] = {q, kernel, y, coils, normal, work, maps, x, want};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	problem_free(&p);
}

/* The mean of A's diagonal, taken from A itself by unit vectors, is what lambda is relative to. */
static void lambda_is_relative_to_the_mean_eigenvalue(void)
{
	struct problem p = problem_new(shape, 60, 18);
	fx_array *q = reference_q(&p), *kernel, *x, *y, *work = NULL, *maps = random_array(FX_CF32, 4, shape, 19);
	fx_frame frame = {.scale = p.scale, .lambda = 0.01, .has_prior = true, .maps = maps};
	double lambda, trace = 0;

	for (int64_t i = 0; i < p.m; i++)
		frame.phi2_sum += (double)FX_F32_OF(p.phi2)[i];
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, shape, &x), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, shape, &y), FX_OK);
	for (int64_t i = 0; i < x->n; i++) {
		FX_CF32_OF(x)[i] = 1;
		CU_ASSERT_EQUAL_FATAL(fx_normal_apply(math, kernel, maps, NULL, 0, x, &work, y), FX_OK);
		trace += creal((fx_cf64)FX_CF32_OF(y)[i]);
		FX_CF32_OF(x)[i] = 0;
	}
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &frame, &lambda), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(lambda, 0.01 * trace / (double)x->n, 1e-6 * lambda); /* the product's own error */
	frame.maps = NULL;
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &frame, &lambda), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(lambda, 0.01 * p.scale * p.scale * frame.phi2_sum, 1e-12 * lambda);
	frame.has_prior = false;
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &frame, &lambda), FX_OK);
	CU_ASSERT_EQUAL(lambda, 0);
	frame.has_prior = true;
	frame.maps = maps;
	FX_CF32_OF(maps)[9] = NAN;
	CU_ASSERT_EQUAL(fx_lambda_absolute(math, &frame, &lambda), FX_EDATA);
	CU_ASSERT_EQUAL(lambda, 0);
	memset(&error, 0, sizeof error);
	fx_array *all[] = {q, kernel, x, y, work, maps};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	problem_free(&p);
}

static void digest_tells_all_apart(void)
{
	const int64_t dims[3] = {8, 8, 8}, other[3] = {8, 8, 9};
	struct problem p = problem_new(dims, 20, 21);
	char digests[10][65], again[65];
	int n = 0;

	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.5, p.k, p.phi2, digests[n++]);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.5, p.k, p.phi2, again);
	CU_ASSERT_STRING_EQUAL(digests[0], again);
	CU_ASSERT_EQUAL(strlen(again), 64);
	CU_ASSERT_EQUAL(strspn(again, "0123456789abcdef"), 64);
	fx_toeplitz_digest(FX_FOURIER_DIRECT, 1e-3, dims, 0.5, p.k, p.phi2, digests[n++]);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-4, dims, 0.5, p.k, p.phi2, digests[n++]);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, other, 0.5, p.k, p.phi2, digests[n++]);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.25, p.k, p.phi2, digests[n++]);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.5, p.k, NULL, digests[n++]);
	FX_F64_OF(p.k)[59] = nextafter(FX_F64_OF(p.k)[59], 1);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.5, p.k, p.phi2, digests[n++]);
	FX_F32_OF(p.phi2)[19] = nextafterf(FX_F32_OF(p.phi2)[19], 2);
	fx_toeplitz_digest(FX_FOURIER_NUFFT, 1e-3, dims, 0.5, p.k, p.phi2, digests[n++]);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(digests[i], digests[j]);
	/* a direct sum is the same whatever the unused tolerance says */
	fx_toeplitz_digest(FX_FOURIER_DIRECT, 1e-3, dims, 0.5, p.k, p.phi2, digests[0]);
	fx_toeplitz_digest(FX_FOURIER_DIRECT, 1e-5, dims, 0.5, p.k, p.phi2, digests[1]);
	CU_ASSERT_STRING_EQUAL(digests[0], digests[1]);
	problem_free(&p);
}

static CU_TestInfo tests[] = {
	{"coil maps and prior", coils_and_prior},
	{"lambda is relative to the mean eigenvalue", lambda_is_relative_to_the_mean_eigenvalue},
	{"the digest tells all ingredients apart", digest_tells_all_apart},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_normal = {"normal", set_up, tear_down, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/*
 * toeplitz_kernel: the kernel made from a trajectory, by every method and tolerance, against the chapter's sums in
 * double.
 */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdio.h>
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

static const int64_t shapes[][4] = {
	{6, 5, 4, 3}, {7, 7, 7, 1}, {16, 16, 16, 1}, {9, 1, 1, 1}, {24, 17, 1, 2}, {1, 12, 9, 1}, {12, 10, 8, 1},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static double kernel_error(const int64_t *shape, int method, double tolerance, bool with_phi)
{
	struct problem p = problem_new(shape, 300, 12);
	fx_array *kernel, *x = random_array(FX_CF32, 4, shape, 13), *y, *want;
	double difference;

	if (!with_phi)
		for (int64_t i = 0; i < p.m; i++)
			FX_F32_OF(p.phi2)[i] = 1;
	CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(math, method, tolerance, shape, p.scale, p.k, with_phi ? p.phi2 : NULL,
				      &kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, shape, &y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_apply(math, kernel, x, y), FX_OK);
	want = reference_normal(&p, x);
	difference = relative_difference(y, want);
	fx_array_unref(kernel);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_array_unref(want);
	problem_free(&p);
	return difference;
}

static void expect_within(double difference, double bound, const int64_t *shape)
{
	if (!(difference <= bound))
		printf("\n    %lld x %lld x %lld: %.2g instead of %.2g ", (long long)shape[0], (long long)shape[1],
			(long long)shape[2], difference, bound);
	CU_ASSERT(difference <= bound);
}

/* What the project promises of F^H F: 1e-5. */
static void exact_kernels(void)
{
	static const int methods[] = {FX_FOURIER_DIRECT, FX_FOURIER_SEPARABLE};

	for (size_t s = 0; s < N_SHAPES; s++)
		for (size_t i = 0; i < 2; i++) {
			expect_within(kernel_error(shapes[s], methods[i], 0, true), 1e-5, shapes[s]);
			expect_within(kernel_error(shapes[s], methods[i], 0, false), 1e-5, shapes[s]);
		}
}

/*
 * Q's relative error is at most the tolerance; T x weighs Q's errors as it weighs Q, for these random images about
 * evenly, so the product may be off by a few tolerances. Below 1e-5 single precision adds its own.
 */
static void nufft_kernel(void)
{
	static const struct {
		double tolerance, bound;
	} cases[] = {{1e-2, 4e-2}, {1e-3, 4e-3}, {1e-4, 4e-4}, {1e-6, 1e-5}, {1e-8, 1e-6}};

	for (size_t s = 0; s < N_SHAPES; s++)
		for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
			expect_within(kernel_error(shapes[s], FX_FOURIER_NUFFT, cases[i].tolerance, true),
				cases[i].bound, shapes[s]);
}

static CU_TestInfo tests[] = {
	{"kernel of a trajectory, exact sums", exact_kernels},
	{"kernel of a trajectory, nufft", nufft_kernel},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_toeplitz_kernel = {"toeplitz_kernel", set_up, tear_down, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/*
 * direct.c - the exact sums, direct and separable, CUDA against the host's direct sums (a different order of work, the same integer
 * phases), on awkward shapes; samples that span many decades; the chapter's kernels.
 */
#include "parity.h"

#include <complex.h>
#include <math.h>
#include <string.h>

typedef int operation(fx_math *m, const fx_array *k, const fx_array *from, double scale, fx_array *to);

static const int64_t shapes[][4] = {
	{7, 6, 5, 2}, {16, 1, 1, 1}, {33, 18, 1, 3}, {1, 1, 1, 1}, {1, 19, 1, 2}, {5, 40, 9, 1}, {12, 17, 35, 1}, {130, 3, 2, 1}, {260, 4, 1, 1},
	{64, 20, 3, 2}, {3, 2, 96, 1}, {2, 2, 2, 1},
};

static void free_all(fx_array **all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fx_array_unref(all[i]);
}

/* One shape: the adjoint twice into the same image (it adds), the same bits twice, and the forward sum. */
static void one_shape(const int64_t d[4], int type, int64_t n, operation *adjoint, operation *forward, double bound)
{
	fx_array *k = parity_trajectory(d, n, 3), *samples = parity_random(type, 2, (int64_t[]){n, d[3]}, 4);
	fx_array *image = zeros(host, type, 4, d), *gk = to_gpu(k), *gs = to_gpu(samples), *gi = zeros(gpu, type, 4, d);
	fx_array *again = zeros(gpu, type, 4, d), *a = NULL, *b = NULL;

	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(host->ops->direct_adjoint(host, k, samples, 0.1, image), FX_OK);
		CU_ASSERT_EQUAL(adjoint(gpu, gk, gs, 0.1, gi), FX_OK);
		CU_ASSERT_EQUAL(adjoint(gpu, gk, gs, 0.1, again), FX_OK);
	}
	CU_ASSERT_TRUE(parity_distance(gi, image) < bound);
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, gi, &a), FX_OK);
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, again, &b), FX_OK);
	CU_ASSERT_TRUE(memcmp(a->data, b->data, (size_t)a->bytes) == 0);
	CU_ASSERT_EQUAL(host->ops->direct_forward(host, k, image, 0.1, samples), FX_OK);
	CU_ASSERT_EQUAL(forward(gpu, gk, gi, 0.1, gs), FX_OK);
	CU_ASSERT_TRUE(parity_distance(gs, samples) < 2 * bound);
	free_all((fx_array *[]){k, samples, image, gk, gs, gi, again, a, b}, 9);
}

static void direct(void)
{
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (int64_t n = 1; n <= 1401; n += 700) {
			/* the host's sums and ours differ by roundings; in single our phases have their last bit half a voxel off */
			one_shape(shapes[s], FX_CF32, n, gpu->ops->direct_adjoint, gpu->ops->direct_forward, 2e-6);
			one_shape(shapes[s], FX_CF64, n, gpu->ops->direct_adjoint, gpu->ops->direct_forward, 5e-15);
		}
}

static void separable(void)
{
	CU_ASSERT_FATAL(gpu->ops->separable_adjoint && gpu->ops->separable_forward);
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (int64_t n = 1; n <= 1401; n += 700) {
			/* single: tensor cores cut sums off, up to 48 additions of 2^-24 each; double: as direct */
			one_shape(shapes[s], FX_CF32, n, gpu->ops->separable_adjoint, gpu->ops->separable_forward, 4e-6);
			one_shape(shapes[s], FX_CF64, n, gpu->ops->separable_adjoint, gpu->ops->separable_forward, 5e-15);
		}
}

/* Several slices of samples, and parts of each. */
static void many_samples(void)
{
	const int64_t d[4] = {24, 20, 3, 1};

	one_shape(d, FX_CF32, 40001, gpu->ops->separable_adjoint, gpu->ops->separable_forward, 4e-6);
	one_shape(d, FX_CF64, 40001, gpu->ops->separable_adjoint, gpu->ops->separable_forward, 3e-14);
	one_shape(d, FX_CF32, 40001, gpu->ops->direct_adjoint, gpu->ops->direct_forward, 3e-6);
	one_shape(d, FX_CF64, 40001, gpu->ops->direct_adjoint, gpu->ops->direct_forward, 3e-14);
}

/* Magnitudes fall by seven decades from the first sample on, as k-space does from its centre: in order, and mixed within chunks. */
static void decades(bool mixed, operation *adjoint)
{
	const int64_t d[4] = {32, 31, 4, 1}, n = 4000;
	fx_array *k = parity_trajectory(d, n, 7), *samples = parity_random(FX_CF32, 2, (int64_t[]){n, 1}, 8), *gi, *gk, *gs, *exact, *wide;
	fx_array *image = zeros(host, FX_CF32, 4, d);

	gi = zeros(gpu, FX_CF32, 4, d);
	exact = zeros(host, FX_CF64, 4, d);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, n, 1, &wide), FX_OK);
	for (int64_t m = 0; m < n; m++) {
		int64_t at = mixed ? m * 1237 % n : m;

		FX_CF32_OF(samples)[m] *= (float)(1e6 * pow(10, -7 * (double)at / (double)n));
		FX_CF64_OF(wide)[m] = FX_CF32_OF(samples)[m];
	}
	gk = to_gpu(k);
	gs = to_gpu(samples);
	CU_ASSERT_EQUAL(host->ops->direct_adjoint(host, k, wide, 1, exact), FX_OK);
	CU_ASSERT_EQUAL(adjoint(gpu, gk, gs, 1, gi), FX_OK);
	for (int64_t v = 0; v < image->n; v++)
		FX_CF32_OF(image)[v] = (fx_cf32)FX_CF64_OF(exact)[v];
	CU_ASSERT_TRUE(parity_distance(gi, image) < 4e-6);
	free_all((fx_array *[]){k, samples, gi, gk, gs, exact, wide, image}, 8);
}

static void centre_heavy(void)
{
	decades(false, gpu->ops->separable_adjoint);
	decades(true, gpu->ops->separable_adjoint);
	decades(true, gpu->ops->direct_adjoint);
}

/* The weak chunks alone: their share must be right to the same relative error, not only beside what outweighs it. */
static void tiny_and_huge(void)
{
	const double factors[] = {1e-30, 1e-12, 1e12, 1e30};
	const int64_t d[4] = {18, 16, 2, 1}, n = 600;

	for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
		fx_array *k = parity_trajectory(d, n, 11), *samples = parity_random(FX_CF32, 2, (int64_t[]){n, 1}, 12);
		fx_array *image = zeros(host, FX_CF32, 4, d), *gi = zeros(gpu, FX_CF32, 4, d), *gk = to_gpu(k), *gs;

		for (int64_t m = 0; m < n; m++)
			FX_CF32_OF(samples)[m] *= (float)factors[i];
		gs = to_gpu(samples);
		CU_ASSERT_EQUAL(host->ops->direct_adjoint(host, k, samples, 0.1, image), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->separable_adjoint(gpu, gk, gs, 0.1, gi), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gi, image) < 4e-6);
		CU_ASSERT_EQUAL(host->ops->direct_forward(host, k, image, 0.1, samples), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->separable_forward(gpu, gk, gi, 0.1, gs), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gs, samples) < 8e-6);
		free_all((fx_array *[]){k, samples, image, gi, gk, gs}, 6);
	}
}

/* A sample that is no number makes the image none, and no samples change nothing. */
static void edges(void)
{
	const int64_t d[4] = {10, 9, 1, 1};
	fx_array *k = parity_trajectory(d, 40, 3), *samples = parity_random(FX_CF32, 2, (int64_t[]){40, 1}, 4), *gi, *back, *gk, *gs;

	FX_F32_OF(samples)[21] = NAN;
	gi = zeros(gpu, FX_CF32, 4, d);
	gk = to_gpu(k);
	gs = to_gpu(samples);
	CU_ASSERT_EQUAL(gpu->ops->separable_adjoint(gpu, gk, gs, 1, gi), FX_OK);
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, gi, &back), FX_OK);
	CU_ASSERT_TRUE(isnan(FX_F32_OF(back)[0]) && isnan(FX_F32_OF(back)[2 * back->n - 1]));
	free_all((fx_array *[]){k, samples, gi, back, gk, gs}, 6);
	k = zeros(gpu, FX_F64, 2, (int64_t[]){3, 0});
	samples = zeros(gpu, FX_CF32, 2, (int64_t[]){0, 1});
	gi = to_gpu(gs = parity_random(FX_CF32, 4, d, 5));
	CU_ASSERT_EQUAL(gpu->ops->separable_adjoint(gpu, k, samples, 1, gi), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->direct_adjoint(gpu, k, samples, 1, gi), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->separable_forward(gpu, k, gi, 1, samples), FX_OK);
	CU_ASSERT_TRUE(parity_distance(gi, gs) == 0);
	free_all((fx_array *[]){k, samples, gi, gs}, 4);
}

static void one_plan(const fx_direct_plan *plan, const int64_t d[4], const fx_array *k, const fx_array *samples, const fx_array *image)
{
	fx_array *gk = to_gpu(k), *gs = to_gpu(samples), *gi = zeros(gpu, FX_CF32, 4, d);

	CU_ASSERT_EQUAL(gpu->ops->direct_ladder(gpu, plan, gk, gs, 0.1, gi), FX_OK);
	/* phases of up to 60 rad in single precision, rounded four times: 1.4e-5 each at most; the special function units add 5e-7 */
	CU_ASSERT_TRUE(parity_distance(gi, image) < 1.5e-5);
	free_all((fx_array *[]){gk, gs, gi}, 3);
}

/* The chapter's kernels, and the tuned one in all its forms; chunks that do not divide the samples. */
static void ladder(void)
{
	static const int64_t shaped[][4] = {{17, 9, 6, 2}, {1, 33, 1, 1}, {1, 1, 1, 1}};
	static const int64_t counts[] = {1, 1, 2500};
	fx_direct_plan wrong[] = {{.kernel = FX_DIRECT_TUNED, .unroll = 3}, {.kernel = FX_DIRECT_TUNED, .chunk = 4096},
		{.kernel = FX_DIRECT_TUNED, .block = 100}, {.kernel = FX_DIRECT_AUTO}, {.kernel = 99}};

	for (size_t i = 0; i < sizeof shaped / sizeof shaped[0]; i++) {
		const int64_t *d = shaped[i], n = counts[2 - i];
		fx_array *k = parity_trajectory(d, n, 21), *samples = parity_random(FX_CF32, 2, (int64_t[]){n, d[3]}, 22);
		fx_array *image = zeros(host, FX_CF32, 4, d);

		CU_ASSERT_EQUAL(host->ops->direct_adjoint(host, k, samples, 0.1, image), FX_OK);
		for (int kernel = FX_DIRECT_SCATTER; kernel < FX_DIRECT_KERNELS; kernel++)
			one_plan(&(fx_direct_plan){.kernel = kernel}, d, k, samples, image);
		for (int form = 0; form < 32; form++)
			one_plan(&(fx_direct_plan){.kernel = FX_DIRECT_TUNED, .block = 32 << form % 5, .unroll = 1 << form % 4, .voxels = 1 << form / 4 % 4,
				.chunk = 77, .shared = 1 + form / 16}, d, k, samples, image);
		for (size_t w = 0; w < sizeof wrong / sizeof wrong[0] && i == 0; w++) {
			fx_array *gk = to_gpu(k), *gs = to_gpu(samples), *gi = zeros(gpu, FX_CF32, 4, d);

			CU_ASSERT_EQUAL(gpu->ops->direct_ladder(gpu, &wrong[w], gk, gs, 1, gi), FX_EINVAL);
			gpu_error = (fx_error){0};
			free_all((fx_array *[]){gk, gs, gi}, 3);
		}
		free_all((fx_array *[]){k, samples, image}, 3);
	}
}

static CU_TestInfo tests[] = {
	{"direct sums, odd shapes", direct}, {"separable sums, odd shapes", separable}, {"many samples", many_samples},
	{"centre-heavy k-space", centre_heavy}, {"tiny and huge samples", tiny_and_huge}, {"no numbers, no samples", edges},
	{"the chapter's ladder", ladder},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_direct = {"parity: exact sums", NULL, NULL, NULL, NULL, tests};

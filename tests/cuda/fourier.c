/* SPDX-License-Identifier: MIT */
/* fourier.c - transforms, spreading and the Toeplitz product, CUDA against the host, on awkward shapes. */
#include "parity.h"

#include <math.h>
#include <string.h>

static const int64_t shapes[][4] = {
	{1, 1, 1, 1}, {7, 5, 3, 1}, {33, 1, 1, 2}, {1, 17, 1, 3}, {16, 16, 16, 4}, {31, 29, 27, 2}, {64, 48, 1, 3}, {128, 128, 1, 2},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static void ffts(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int type = FX_CF32; type <= FX_CF64; type++)
			for (int sign = -1; sign <= 1; sign += 2) {
				fx_array *a = parity_random(type, 4, shapes[s], (unsigned)s), *g = to_gpu(a);

				CU_ASSERT_EQUAL(host->ops->fft(host, a, sign, 0.37), FX_OK);
				CU_ASSERT_EQUAL(gpu->ops->fft(gpu, g, sign, 0.37), FX_OK);
				/* a few roundings for each factor of the length, of either transform */
				CU_ASSERT_TRUE(parity_distance(g, a) < (type == FX_CF32 ? 1e-6 : 2e-15));
				fx_array_unref(a);
				fx_array_unref(g);
			}
}

static void direct(void)
{
	static const int64_t cases[][4] = {{7, 6, 5, 2}, {16, 1, 1, 1}, {33, 18, 1, 3}, {1, 1, 1, 1}};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++)
		for (int type = FX_CF32; type <= FX_CF64; type++) {
			const int64_t *d = cases[s];
			int64_t n = 700;
			/* the host's sums of chunks and ours differ by roundings; phases are the same integers */
			double bound = type == FX_CF32 ? 2e-6 : 5e-15;
			fx_array *k = parity_trajectory(d, n, 3), *samples = parity_random(type, 2, (int64_t[]){n, d[3]}, 4);
			fx_array *image = zeros(host, type, 4, d), *gk = to_gpu(k), *gs = to_gpu(samples), *gi = zeros(gpu, type, 4, d);

			CU_ASSERT_EQUAL(host->ops->direct_adjoint(host, k, samples, 0.1, image), FX_OK);
			CU_ASSERT_EQUAL(gpu->ops->direct_adjoint(gpu, gk, gs, 0.1, gi), FX_OK);
			CU_ASSERT_TRUE(parity_distance(gi, image) < bound);
			CU_ASSERT_EQUAL(host->ops->direct_forward(host, k, image, 0.1, samples), FX_OK);
			CU_ASSERT_EQUAL(gpu->ops->direct_forward(gpu, gk, gi, 0.1, gs), FX_OK);
			CU_ASSERT_TRUE(parity_distance(gs, samples) < 2 * bound);
			fx_array_unref(k);
			fx_array_unref(samples);
			fx_array_unref(image);
			fx_array_unref(gk);
			fx_array_unref(gs);
			fx_array_unref(gi);
		}
}

/* Adjoint, forward and real adjoint through recon's own operator, which chooses grid and kernel. */
static void one_nufft(const int64_t *d, int type, double tolerance, bool real)
{
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = type, .tolerance = tolerance, .dims = {d[0], d[1], d[2]},
		.scale = 0.2, .real_samples = real};
	int64_t n = 900;
	int sample_type = !real ? type : type == FX_CF32 ? FX_F32 : FX_F64;
	fx_array *k = parity_trajectory(d, n, 5), *samples = parity_random(sample_type, 2, (int64_t[]){n, d[3]}, 6);
	fx_array *image = NULL, *gi = NULL, *gi2 = NULL, *back = NULL, *gback = NULL;
	fx_fourier *f, *g;
	/*
	 * Both have the same kernel, so they are within roundings of each other; the division by the kernel's transform
	 * multiplies these, and what it may cost is part of the tolerance.
	 */
	double bound = type == FX_CF32 ? fmax(5e-6, tolerance) : 1e-11;

	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(host, &spec, &f), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(gpu, &spec, &g), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &image), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(g, k, samples, &gi), FX_OK);
	CU_ASSERT_TRUE(parity_distance(gi, image) < bound);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(g, k, samples, &gi2), FX_OK);
	{
		fx_array *a, *b;

		CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, gi, &a), FX_OK);
		CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, gi2, &b), FX_OK);
		CU_ASSERT_TRUE(memcmp(a->data, b->data, (size_t)a->bytes) == 0);
		fx_array_unref(a);
		fx_array_unref(b);
	}
	if (!real) {
		CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(f, k, image, &back), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_fourier_forward(g, k, gi, &gback), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gback, back) < 2 * bound);
	}
	fx_fourier_free(f);
	fx_fourier_free(g);
	fx_array *all[] = {k, samples, image, gi, gi2, back, gback};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
}

static void nuffts(void)
{
	static const int64_t cases[][4] = {{16, 14, 12, 2}, {33, 1, 1, 1}, {30, 27, 1, 3}, {1, 20, 1, 1}, {9, 8, 7, 1}};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++) {
		one_nufft(cases[s], FX_CF32, 1e-3, false);
		one_nufft(cases[s], FX_CF32, 1e-5, false);
		one_nufft(cases[s], FX_CF32, 1e-4, true);
		one_nufft(cases[s], FX_CF64, 1e-8, false);
		one_nufft(cases[s], FX_CF64, 1e-8, true);
	}
}

static void samples_that_are_no_numbers(void)
{
	const int64_t d[] = {16, 16, 1, 1};
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = 1e-3, .dims = {16, 16, 1}, .scale = 1};
	fx_array *k = parity_trajectory(d, 50, 5), *samples = parity_random(FX_CF32, 2, (int64_t[]){50, 1}, 6), *gi, *back;
	fx_fourier *g;

	FX_F32_OF(samples)[17] = NAN;
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(gpu, &spec, &g), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(g, k, samples, &gi), FX_OK);
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, gi, &back), FX_OK);
	CU_ASSERT_TRUE(isnan(FX_F32_OF(back)[0]));
	fx_fourier_free(g);
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_array_unref(gi);
	fx_array_unref(back);
}

static void toeplitz(void)
{
	static const int64_t cases[][4] = {
		{16, 16, 16, 2}, {32, 16, 64, 1}, {64, 32, 1, 3}, {128, 64, 16, 1}, {128, 128, 1, 2}, {256, 16, 1, 1},
		{16, 16, 256, 1}, {16, 256, 16, 1}, {7, 6, 5, 2}, {33, 1, 1, 1}, {1, 12, 1, 1}, {48, 48, 20, 2}, {1, 1, 1, 2}, {16, 1, 1, 1},
		{16, 1, 16, 1},
	};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++) {
		const int64_t *d = cases[s];
		int64_t f[3], n = 300;
		fx_array *k = parity_trajectory(d, n, 9), *x = parity_random(FX_CF32, 4, d, 10), *y = zeros(host, FX_CF32, 4, d);
		fx_array *gx = to_gpu(x), *gy = zeros(gpu, FX_CF32, 4, d), *kernel, *gkernel;

		for (int a = 0; a < 3; a++)
			f[a] = d[a];
		CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(host, FX_FOURIER_NUFFT, 1e-5, f, 0.1, k, NULL, &kernel), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(gpu, FX_FOURIER_NUFFT, 1e-5, f, 0.1, k, NULL, &gkernel), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gkernel, kernel) < 1e-5); /* roundings of a NUFFT and a transform */
		CU_ASSERT_EQUAL(host->ops->toeplitz_apply(host, kernel, x, y), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->toeplitz_apply(gpu, gkernel, gx, gy), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gy, y) < 1e-5);
		/* in place */
		CU_ASSERT_EQUAL(gpu->ops->toeplitz_apply(gpu, gkernel, gx, gx), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gx, y) < 1e-5);
		fx_array *all[] = {k, x, y, gx, gy, kernel, gkernel};
		for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
			fx_array_unref(all[i]);
	}
}

static CU_TestInfo tests[] = {
	{"centred FFT", ffts}, {"direct sums", direct}, {"NUFFT, the same bits twice", nuffts},
	{"samples that are no numbers", samples_that_are_no_numbers}, {"Toeplitz kernel and product", toeplitz}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_fourier = {"parity: Fourier", NULL, NULL, NULL, NULL, tests};

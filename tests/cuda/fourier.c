/* SPDX-License-Identifier: MIT */
/* fourier.c - transforms, spreading and the Toeplitz product, CUDA against the host, on awkward shapes. */
#include "parity.h"

#include <math.h>
#include <stdio.h>
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

/*
 * Adjoint, forward and real adjoint through recon's own operator, which chooses grid and kernel. `crowded` of the samples lie near the
 * centre, as those of radial lines do.
 */
static void one_nufft(const int64_t *d, int type, double tolerance, bool real, int64_t n, int64_t crowded)
{
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = type, .tolerance = tolerance, .dims = {d[0], d[1], d[2]},
		.scale = 0.2, .real_samples = real};
	int sample_type = !real ? type : type == FX_CF32 ? FX_F32 : FX_F64;
	fx_array *k = parity_trajectory(d, n, 5), *samples = parity_random(sample_type, 2, (int64_t[]){n, d[3]}, 6);
	fx_array *image = NULL, *gi = NULL, *gi2 = NULL, *back = NULL, *gback = NULL;
	fx_fourier *f, *g;
	/*
	 * Both have the same grid and kernel, so they are within roundings of each other, whatever the tolerance; the division by the
	 * kernel's transform multiplies these, by up to some hundred where there is little oversampling. Where thousands of samples of
	 * either sign meet in few cells, each cell has more of them (the host at 40 x 36 x 33, real, 1e-4 against double: 2.0e-4).
	 */
	double bound = type != FX_CF32 ? 1e-11 : crowded > 0 ? fmax(5e-5, 3 * fmin(tolerance, 1e-4)) : 2e-5, distance;

	for (int64_t i = 0; i < 3 * crowded; i++)
		FX_F64_OF(k)[i] *= 0.04;
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(host, &spec, &f), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(gpu, &spec, &g), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &image), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(g, k, samples, &gi), FX_OK);
	distance = parity_distance(gi, image);
	CU_ASSERT_TRUE(distance < bound);
	if (!(distance < bound))
		printf("\n%lld x %lld x %lld, %g, width %d: %g\n", (long long)d[0], (long long)d[1], (long long)d[2], tolerance,
			fx_fourier_grid(g)->width, distance);
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
	/* odd, not cubic, axes of 1 before and between others, no axis at all; more coils than are transformed together */
	static const int64_t cases[][4] = {{16, 14, 12, 2}, {33, 1, 1, 1}, {30, 27, 1, 3}, {1, 20, 1, 1}, {9, 8, 7, 1}, {1, 14, 30, 2},
		{21, 1, 19, 1}, {13, 9, 22, 9}, {1, 1, 1, 1}};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++)
		for (int64_t n = 1; n <= 900; n += 899) {
			one_nufft(cases[s], FX_CF32, 1e-2, false, n, 0);
			one_nufft(cases[s], FX_CF32, 1e-3, false, n, 0);
			one_nufft(cases[s], FX_CF32, 1e-4, false, n, 0);
			one_nufft(cases[s], FX_CF32, 1e-5, false, n, 0);
			one_nufft(cases[s], FX_CF32, 1e-4, true, n, 0);
			one_nufft(cases[s], FX_CF64, 1e-8, false, n, 0);
			one_nufft(cases[s], FX_CF64, 1e-8, true, n, 0);
		}
}

/* Every width that tiles are made for, and tiles of more samples than a block takes. */
static void crowded_nuffts(void)
{
	static const int64_t cases[][4] = {{40, 36, 33, 8}, {50, 41, 1, 3}, {200, 1, 1, 1}};
	static const double tolerances[] = {3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 3e-5, 1e-5};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++)
		for (size_t t = 0; t < sizeof tolerances / sizeof tolerances[0]; t++)
			for (int real = 0; real < 2; real++)
				one_nufft(cases[s], FX_CF32, tolerances[t], real, 9000, 6000);
}

/* A tolerance below what tiles are made for: a kernel of more than ten cells. */
static void wide_nuffts(void)
{
	one_nufft((int64_t[]){16, 14, 12, 2}, FX_CF64, 1e-9, false, 900, 300);
	one_nufft((int64_t[]){40, 1, 1, 2}, FX_CF64, 1e-9, true, 900, 300);
}

/* Several chunks that arrive readout by readout, twice over with one operator, against all of it at once and against the host. */
static void samples_that_arrive(void)
{
	const int64_t n = 300007, each = 509, d[] = {24, 20, 18, 3};
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = 1e-4, .dims = {24, 20, 18}, .scale = 0.2};
	fx_array *k = parity_trajectory(d, n, 5), *samples = parity_random(FX_CF32, 2, (int64_t[]){n, 3}, 6), *image, *whole, *a, *b;
	fx_accumulator *sum;
	fx_fourier *f, *g;

	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(host, &spec, &f), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(gpu, &spec, &g), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(f, k, samples, &image), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_fourier_adjoint(g, k, samples, &whole), FX_OK);
	CU_ASSERT_TRUE(parity_distance(whole, image) < 2e-5); /* roundings, see one_nufft */
	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, whole, &a), FX_OK);
	for (int round = 0; round < 2; round++) {
		CU_ASSERT_EQUAL_FATAL(fx_accumulator_new(g, 3, &sum), FX_OK);
		for (int64_t i = 0; i < n; i += each) {
			int64_t m = n - i < each ? n - i : each;
			fx_array *some_k, *some;

			CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, m, &some_k), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, m, 3, &some), FX_OK);
			memcpy(some_k->data, FX_F64_OF(k) + 3 * i, (size_t)some_k->bytes);
			for (int c = 0; c < 3; c++)
				memcpy(FX_CF32_OF(some) + c * m, FX_CF32_OF(samples) + c * n + i, (size_t)m * 8);
			CU_ASSERT_EQUAL_FATAL(fx_accumulator_add(sum, some_k, some, NULL), FX_OK);
			fx_array_unref(some_k);
			fx_array_unref(some);
		}
		fx_array_unref(whole);
		CU_ASSERT_EQUAL_FATAL(fx_accumulator_finish(sum, &whole), FX_OK);
		CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, whole, &b), FX_OK);
		CU_ASSERT_TRUE(memcmp(a->data, b->data, (size_t)a->bytes) == 0);
		fx_array_unref(b);
	}
	fx_fourier_free(f);
	fx_fourier_free(g);
	fx_array *all[] = {k, samples, image, whole, a};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
}

static void a_trajectory_that_is_no_numbers(void)
{
	const int64_t d[] = {16, 16, 1, 1};
	fx_fourier_spec spec = {.method = FX_FOURIER_NUFFT, .type = FX_CF32, .tolerance = 1e-3, .dims = {16, 16, 1}, .scale = 1};
	fx_array *k = parity_trajectory(d, 50, 5), *image = zeros(gpu, FX_CF32, 4, d), *samples;
	fx_fourier *g;

	FX_F64_OF(k)[31] = INFINITY;
	CU_ASSERT_EQUAL_FATAL(fx_fourier_new(gpu, &spec, &g), FX_OK);
	CU_ASSERT_EQUAL(fx_fourier_forward(g, k, image, &samples), FX_EDATA);
	CU_ASSERT_PTR_NULL(samples);
	fx_fourier_free(g);
	fx_array_unref(k);
	fx_array_unref(image);
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
	{"NUFFT, crowded samples", crowded_nuffts}, {"NUFFT, wide kernels", wide_nuffts},
	{"samples that arrive", samples_that_arrive},
	{"a trajectory that is no numbers", a_trajectory_that_is_no_numbers},
	{"samples that are no numbers", samples_that_are_no_numbers}, {"Toeplitz kernel and product", toeplitz}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_fourier = {"parity: Fourier", NULL, NULL, NULL, NULL, tests};

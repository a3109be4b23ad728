/* SPDX-License-Identifier: MIT */
/* Gridding against the exact sums: equal where samples lie on the grid, near the centre of the image elsewhere. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <fornix/fornix.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static fx_error err;

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* M samples of n coils at random places, or at grid points. */
static void scan(const int64_t dims[3], int64_t m, int64_t n, bool on_grid, fx_array **k, fx_array **samples,
	fx_array **weights)
{
	uint64_t state = 9;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, m, k), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, m, n, samples), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, m, weights), FX_OK);
	for (int64_t i = 0; i < m; i++) {
		for (int axis = 0; axis < 3; axis++) {
			double u = uniform(&state) - 0.5;

			if (on_grid)
				u = floor(u * (double)dims[axis]) / (double)dims[axis];
			FX_F64_OF(*k)[3 * i + axis] = dims[axis] > 1 ? u : 0;
		}
		FX_F32_OF(*weights)[i] = (float)(0.5 + uniform(&state));
		for (int64_t c = 0; c < n; c++)
			FX_CF32_OF(*samples)[i + m * c] = (fx_cf32)(uniform(&state) - 0.5 + I * (uniform(&state) - 0.5));
	}
}

static fx_cf64 exact(const fx_array *k, const fx_array *samples, const fx_array *weights, int64_t coil, const int64_t x[3])
{
	fx_cf64 sum = 0;

	for (int64_t i = 0; i < k->dims[1]; i++) {
		const double *q = FX_F64_OF(k) + 3 * i;

		sum += FX_F32_OF(weights)[i] * (fx_cf64)FX_CF32_OF(samples)[i + k->dims[1] * coil] *
			cexp(2 * PI * I * (q[0] * (double)x[0] + q[1] * (double)x[1] + q[2] * (double)x[2]));
	}
	return sum;
}

/* Relative l2 error over voxels within `radius` of the image centre. */
static double error_of(int kernel, const int64_t dims[3], int64_t m, bool on_grid, int64_t radius)
{
	fx_math math = {.ops = fx_backend_host(), .n_threads = 2, .err = &err}, one = math;
	fx_array *k, *samples, *weights, *image, *again;
	double scale = 0.37, difference = 0, norm = 0;

	err = (fx_error){0};
	one.n_threads = 1;
	scan(dims, m, 3, on_grid, &k, &samples, &weights);
	CU_ASSERT_EQUAL_FATAL(fx_grid_image(&math, kernel, dims, scale, k, samples, weights, &image), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_grid_image(&one, kernel, dims, scale, k, samples, weights, &again), FX_OK);
	CU_ASSERT_EQUAL(memcmp(image->data, again->data, (size_t)image->bytes), 0);
	CU_ASSERT_EQUAL(image->dims[3], 3);
	for (int64_t i = 0; i < image->n; i++) {
		int64_t x[3] = {i % dims[0] - dims[0] / 2, i / dims[0] % dims[1] - dims[1] / 2,
			i / dims[0] / dims[1] % dims[2] - dims[2] / 2};
		int64_t coil = i / (dims[0] * dims[1] * dims[2]);
		fx_cf64 want;

		if (llabs(x[0]) > radius || llabs(x[1]) > radius || llabs(x[2]) > radius)
			continue;
		want = scale * exact(k, samples, weights, coil, x);
		difference += pow(cabs(FX_CF32_OF(image)[i] - want), 2);
		norm += pow(cabs(want), 2);
	}
	fx_array_unref(k);
	fx_array_unref(samples);
	fx_array_unref(weights);
	fx_array_unref(image);
	fx_array_unref(again);
	return sqrt(difference / norm);
}

static const int64_t sizes[][3] = {{12, 10, 1}, {9, 7, 5}, {8, 6, 6}, {1, 11, 1}, {15, 1, 4}};

static void bilinear_on_the_grid_is_exact(void)
{
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		CU_ASSERT(error_of(FX_GRID_BILINEAR, sizes[s], 300, true, 1000) < 2e-6); /* single precision */
}

/* The NUFFT at 1e-3, at random places up to the edges of k-space. */
static void convolution_is_right_everywhere(void)
{
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		CU_ASSERT(error_of(FX_GRID_CONVOLUTION, sizes[s], 300, false, 1000) < 1e-3);
}

/* Linear interpolation errs by (pi x / N)^2 / 3 or so per axis: a few per cent within N / 16 of the centre. */
static void bilinear_is_right_near_the_centre(void)
{
	CU_ASSERT(error_of(FX_GRID_BILINEAR, (int64_t[]){48, 49, 1}, 3000, false, 3) < 0.05);
	CU_ASSERT(error_of(FX_GRID_BILINEAR, (int64_t[]){33, 32, 34}, 2000, false, 2) < 0.05);
	/* and it is the poor baseline that it is meant to be towards the edge */
	CU_ASSERT(error_of(FX_GRID_BILINEAR, (int64_t[]){48, 49, 1}, 3000, false, 1000) > 0.1);
}

static void odd_inputs(void)
{
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	int64_t dims[3] = {6, 5, 1};
	fx_array *k, *samples, *weights, *image;

	for (int kernel = FX_GRID_CONVOLUTION; kernel <= FX_GRID_BILINEAR; kernel++) {
		err = (fx_error){0};
		scan(dims, 1, 1, false, &k, &samples, &weights);
		FX_F64_OF(k)[0] = FX_F64_OF(k)[1] = 0;
		FX_CF32_OF(samples)[0] = 2;
		CU_ASSERT_EQUAL_FATAL(fx_grid_image(&m, kernel, dims, 0.5, k, samples, NULL, &image), FX_OK);
		for (int64_t i = 0; i < image->n; i++)
			CU_ASSERT(cabsf(FX_CF32_OF(image)[i] - 1) < 1e-3f); /* a constant, to the NUFFT's tolerance */
		fx_array_unref(image);
		FX_F64_OF(k)[1] = INFINITY;
		CU_ASSERT_EQUAL(fx_grid_image(&m, kernel, dims, 1, k, samples, weights, &image), FX_EDATA);
		CU_ASSERT_PTR_NULL(image);
		CU_ASSERT_EQUAL(fx_grid_image(&m, kernel, (int64_t[]){4, 0, 1}, 1, k, samples, weights, &image), FX_EINVAL);
		fx_array_unref(k);
		fx_array_unref(samples);
		fx_array_unref(weights);
		err = (fx_error){0};
		scan(dims, 0, 2, false, &k, &samples, &weights);
		CU_ASSERT_EQUAL_FATAL(fx_grid_image(&m, kernel, dims, 1, k, samples, weights, &image), FX_OK);
		for (int64_t i = 0; i < image->n; i++)
			CU_ASSERT(FX_CF32_OF(image)[i] == 0);
		fx_array_unref(image);
		fx_array_unref(k);
		fx_array_unref(samples);
		fx_array_unref(weights);
	}
}

static CU_TestInfo tests[] = {
	{"bilinear on the grid is exact", bilinear_on_the_grid_is_exact},
	{"bilinear is right near the centre", bilinear_is_right_near_the_centre},
	{"convolution is right everywhere", convolution_is_right_everywhere},
	{"one sample, none, infinity", odd_inputs},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_grid = {"grid", NULL, NULL, NULL, NULL, tests};

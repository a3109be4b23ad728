/* SPDX-License-Identifier: MIT */
/* gridding.c - density weights and gridded images, CUDA against the host. */
#include "parity.h"

#include <math.h>
#include <string.h>

static const int64_t shapes[][3] = {{16, 14, 12}, {21, 18, 1}, {40, 1, 1}, {1, 20, 9}, {9, 1, 13}};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

/* A third of the samples crowd about the centre. */
static fx_array *trajectory(const int64_t d[3], int64_t n)
{
	fx_array *k = parity_trajectory(d, n, 11);

	for (int64_t i = 0; i < n; i++)
		FX_F64_OF(k)[i] *= 0.1;
	return k;
}

static void densities(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int64_t n = 1; n <= 2200; n += 2199) {
			fx_array *k = trajectory(shapes[s], n), *a, *b, *again;
			double difference = 0, norm = 0;

			CU_ASSERT_EQUAL_FATAL(fx_density_iterative(host, k, shapes[s], 11, &a), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_density_iterative(gpu, k, shapes[s], 11, &b), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_density_iterative(gpu, k, shapes[s], 11, &again), FX_OK);
			CU_ASSERT_TRUE(memcmp(b->data, again->data, (size_t)b->bytes) == 0);
			for (int64_t i = 0; i < n; i++) {
				difference += pow((double)FX_F32_OF(a)[i] - (double)FX_F32_OF(b)[i], 2);
				norm += pow((double)FX_F32_OF(a)[i], 2);
			}
			/* sums of up to some hundred neighbours in single, in another order, eleven times over */
			CU_ASSERT_TRUE(sqrt(difference / norm) < 1e-5);
			fx_array_unref(k);
			fx_array_unref(a);
			fx_array_unref(b);
			fx_array_unref(again);
		}
}

static void gridded(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int kernel = FX_GRID_CONVOLUTION; kernel <= FX_GRID_BILINEAR; kernel++)
			for (int64_t coils = 1; coils <= 9; coils += 4) {
				const int64_t n = 1500;
				fx_array *k = trajectory(shapes[s], n), *samples = parity_random(FX_CF32, 2, (int64_t[]){n, coils}, 2);
				fx_array *weights = parity_random(FX_F32, 1, (int64_t[]){n}, 3), *a, *b;

				CU_ASSERT_EQUAL_FATAL(fx_grid_image(host, kernel, shapes[s], 0.3, k, samples, weights, &a), FX_OK);
				CU_ASSERT_EQUAL_FATAL(fx_grid_image(gpu, kernel, shapes[s], 0.3, k, samples, weights, &b), FX_OK);
				/* roundings of sums; for the convolution, multiplied by the division by its kernel's transform */
				CU_ASSERT_TRUE(parity_distance(b, a) < 2e-5);
				fx_array_unref(k);
				fx_array_unref(samples);
				fx_array_unref(weights);
				fx_array_unref(a);
				fx_array_unref(b);
			}
}

static CU_TestInfo tests[] = {{"iterated density weights", densities}, {"gridded images", gridded}, CU_TEST_INFO_NULL};

CU_SuiteInfo suite_parity_gridding = {"parity: gridding", NULL, NULL, NULL, NULL, tests};

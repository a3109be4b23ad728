/* SPDX-License-Identifier: MIT */
/* vectors.c - vector, prior and coil operations, CUDA against the host, on awkward shapes. */
#include "parity.h"

#include <math.h>
#include <string.h>

/* One rounding of single precision, of sums of a few terms: 6e-8 each. */
#define ROUNDING 3e-7

static const int64_t shapes[][4] = {
	{1, 1, 1, 1}, {7, 5, 3, 1}, {33, 1, 1, 2}, {1, 17, 1, 3}, {16, 16, 16, 4}, {31, 29, 27, 8}, {5, 4, 1, 33},
};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static void dots(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *x = parity_random(FX_CF32, 4, shapes[s], 1), *y = parity_random(FX_CF32, 4, shapes[s], 2);
		fx_array *gx = to_gpu(x), *gy = to_gpu(y);
		double re, im, gre, gim, again_re, again_im;

		CU_ASSERT_EQUAL(host->ops->dot(host, x, y, &re, &im), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->dot(gpu, gx, gy, &gre, &gim), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->dot(gpu, gx, gy, &again_re, &again_im), FX_OK);
		/* the host's partial sums are single precision within a vector */
		CU_ASSERT_TRUE(hypot(re - gre, im - gim) <= 1e-6 * sqrt((double)x->n));
		CU_ASSERT_TRUE(memcmp(&gre, &again_re, sizeof gre) == 0 && memcmp(&gim, &again_im, sizeof gim) == 0);
		fx_array_unref(x);
		fx_array_unref(y);
		fx_array_unref(gx);
		fx_array_unref(gy);
	}
}

static void updates(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *x = parity_random(FX_CF32, 4, shapes[s], 3), *y = parity_random(FX_CF32, 4, shapes[s], 4);
		fx_array *gx = to_gpu(x), *gy = to_gpu(y);

		CU_ASSERT_EQUAL(host->ops->axpy(host, 0.3, x, y), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->axpy(gpu, 0.3, gx, gy), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gy, y) < ROUNDING);
		CU_ASSERT_EQUAL(host->ops->xpay(host, x, -1.7, y), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->xpay(gpu, gx, -1.7, gy), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gy, y) < ROUNDING);
		CU_ASSERT_EQUAL(host->ops->scale(host, 2.5, y), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->scale(gpu, 2.5, gy), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gy, y) < ROUNDING);
		fx_array_unref(x);
		fx_array_unref(y);
		fx_array_unref(gx);
		fx_array_unref(gy);
	}
}

static void differences(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		const int64_t *d = shapes[s];
		fx_array *x = parity_random(FX_CF32, 3, d, 5), *y = parity_random(FX_CF32, 3, d, 6);
		fx_array *w = parity_random(FX_F32, 4, (int64_t[]){d[0], d[1], d[2], 3}, 7);
		fx_array *gx = to_gpu(x), *gy = to_gpu(y), *gw = to_gpu(w);

		CU_ASSERT_EQUAL(host->ops->difference_normal(host, w, 0.7, x, y), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->difference_normal(gpu, gw, 0.7, gx, gy), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gy, y) < 2 * ROUNDING); /* seven terms */
		fx_array_unref(x);
		fx_array_unref(y);
		fx_array_unref(w);
		fx_array_unref(gx);
		fx_array_unref(gy);
		fx_array_unref(gw);
	}
}

static void coils(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		const int64_t *d = shapes[s];
		fx_array *maps = parity_random(FX_CF32, 4, d, 8), *image = parity_random(FX_CF32, 3, d, 9);
		fx_array *each = zeros(host, FX_CF32, 4, d), *power = zeros(host, FX_F32, 3, d);
		fx_array *gmaps = to_gpu(maps), *gimage = to_gpu(image), *geach = zeros(gpu, FX_CF32, 4, d);
		fx_array *gpower = zeros(gpu, FX_F32, 3, d);

		CU_ASSERT_EQUAL(host->ops->coil_expand(host, maps, image, each), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->coil_expand(gpu, gmaps, gimage, geach), FX_OK);
		CU_ASSERT_TRUE(parity_distance(geach, each) < ROUNDING);
		CU_ASSERT_EQUAL(host->ops->coil_power(host, each, power), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->coil_power(gpu, geach, gpower), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gpower, power) < 2 * ROUNDING);
		CU_ASSERT_EQUAL(host->ops->coil_combine(host, maps, each, image), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->coil_combine(gpu, gmaps, geach, gimage), FX_OK);
		CU_ASSERT_TRUE(parity_distance(gimage, image) < 4 * ROUNDING); /* sums over up to 33 coils */
		fx_array_unref(maps);
		fx_array_unref(image);
		fx_array_unref(each);
		fx_array_unref(power);
		fx_array_unref(gmaps);
		fx_array_unref(gimage);
		fx_array_unref(geach);
		fx_array_unref(gpower);
	}
}

/* With maps and without; where maps are 0 the image is. */
static void combined_images(void)
{
	for (size_t s = 0; s < N_SHAPES; s++)
		for (int with_maps = 0; with_maps < 2; with_maps++) {
			const int64_t *d = shapes[s];
			fx_array *maps = parity_random(FX_CF32, 4, d, 13), *images = parity_random(FX_CF32, 4, d, 14), *one = NULL, *two = NULL;
			int64_t voxels = d[0] * d[1] * d[2];
			fx_array *gmaps, *gimages;

			for (int64_t c = 0; c < d[3]; c++)
				for (int64_t i = 0; i < voxels; i += 5)
					FX_CF32_OF(maps)[i + c * voxels] = 0;
			gmaps = to_gpu(maps);
			gimages = to_gpu(images);
			CU_ASSERT_EQUAL_FATAL(fx_coils_to_image(host, with_maps ? maps : NULL, images, &one), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_coils_to_image(gpu, with_maps ? gmaps : NULL, gimages, &two), FX_OK);
			CU_ASSERT_TRUE(parity_distance(two, one) < 8 * ROUNDING); /* sums over up to 33 coils, and a quotient of them */
			fx_array *all[] = {maps, images, one, two, gmaps, gimages};
			for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
				fx_array_unref(all[i]);
		}
}

/* ESPIRiT asked of a GPU: its transforms there, its matrices on the host, its maps on the GPU. */
static void espirit(void)
{
	const int64_t d[] = {24, 20, 1, 4}, voxels = 24 * 20;
	const fx_espirit_options o = {.calibration_size = 16, .kernel_size = 5, .threshold = 0.02, .crop = 0.8};
	fx_array *images = parity_random(FX_CF32, 4, d, 15), *one = NULL, *two = NULL, *gimages;

	for (int64_t c = 0; c < d[3]; c++)
		for (int64_t i = 0; i < voxels; i++) {
			float x = (float)(i % d[0]) / 24 - 0.5f, y = (float)(i / d[0]) / 20 - 0.5f, r = x * x + y * y;
			float s = expf(-(x - 0.4f * cosf((float)c * 1.57f)) * (x - 0.4f * cosf((float)c * 1.57f))) * (1 + 0.2f * (float)c);

			FX_CF32_OF(images)[i + c * voxels] = (r < 0.16f ? FX_CF32(s, s * y * 0.5f) : 0) + 1e-4f * FX_CF32_OF(images)[i + c * voxels];
		}
	gimages = to_gpu(images);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(host, images, &o, &one), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_espirit(gpu, gimages, &o, &two), FX_OK);
	/* eigenvectors of matrices that differ by the roundings of one transform */
	CU_ASSERT_TRUE(parity_distance(two, one) < 1e-3);
	fx_array_unref(images);
	fx_array_unref(gimages);
	fx_array_unref(one);
	fx_array_unref(two);
}

static void mixing(void)
{
	static const int64_t cases[][3] = {{1, 1, 1}, {300, 8, 5}, {1, 3, 9}, {4097, 16, 16}};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++) {
		int64_t n = cases[s][0], n_in = cases[s][1], n_out = cases[s][2];
		fx_array *matrix = parity_random(FX_CF32, 2, (int64_t[]){n_in, n_out}, 10);
		fx_array *in = parity_random(FX_CF32, 2, (int64_t[]){n, n_in}, 11), *out = zeros(host, FX_CF32, 2, (int64_t[]){n, n_out});
		fx_array *gm = to_gpu(matrix), *gi = to_gpu(in), *go = zeros(gpu, FX_CF32, 2, (int64_t[]){n, n_out});

		CU_ASSERT_EQUAL(host->ops->coil_mix(host, matrix, in, out), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->coil_mix(gpu, gm, gi, go), FX_OK);
		CU_ASSERT_TRUE(parity_distance(go, out) < 4 * ROUNDING);
		fx_array_unref(matrix);
		fx_array_unref(in);
		fx_array_unref(out);
		fx_array_unref(gm);
		fx_array_unref(gi);
		fx_array_unref(go);
	}
}

/* Coil images with a dominant eigenvector: smooth maps times an object, so that a power iteration has one answer. */
static void walsh(void)
{
	static const int64_t cases[][4] = {{12, 10, 8, 4}, {17, 19, 1, 8}, {9, 7, 5, 1}, {8, 8, 1, 40}};

	for (size_t s = 0; s < sizeof cases / sizeof cases[0]; s++) {
		const int64_t *d = cases[s];
		int64_t voxels = d[0] * d[1] * d[2];
		fx_array *images = parity_random(FX_CF32, 4, d, 12), *maps = zeros(host, FX_CF32, 4, d), *gi, *gm;

		for (int64_t c = 0; c < d[3]; c++)
			for (int64_t i = 0; i < voxels; i++) {
				float angle = 0.2f * (float)(c + 1) + 0.02f * (float)(i % d[0]) * (float)(c % 3);
				fx_cf32 *v = &FX_CF32_OF(images)[c * voxels + i];

				*v = FX_CF32((1 + 0.1f * (float)(c % 5)) * cosf(angle), sinf(angle)) + 0.02f * *v;
			}
		gi = to_gpu(images);
		gm = zeros(gpu, FX_CF32, 4, d);
		CU_ASSERT_EQUAL(host->ops->walsh(host, images, 2, 5, maps), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->walsh(gpu, gi, 2, 5, gm), FX_OK);
		/* R v as a matrix on the host, as sums of outer products here: roundings of a few hundred terms */
		CU_ASSERT_TRUE(parity_distance(gm, maps) < 1e-5);
		fx_array_unref(images);
		fx_array_unref(maps);
		fx_array_unref(gi);
		fx_array_unref(gm);
	}
}

static CU_TestInfo tests[] = {
	{"dot products, the same bits twice", dots}, {"axpy, xpay, scale", updates}, {"the prior's differences", differences},
	{"coil maps on images", coils}, {"combined images", combined_images}, {"ESPIRiT coil maps", espirit}, {"mixing channels", mixing}, {"Walsh coil maps", walsh}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_vectors = {"parity: vectors and coils", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* test_b0_mask.c - object masks of images whose object is known: balls in noise, holes, parts, odd sizes; grids. */
#include "unit/check.h"

#include <string.h>

static fx_array *image_of(int64_t x, int64_t y, int64_t z)
{
	fx_array *a = NULL;
	int64_t dims[3] = {x, y, z};

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, dims, &a), FX_OK);
	return a;
}

/* Sum of twelve uniform numbers: a normal one to within a few thousandths, at 0 and sigma 1. */
static double normal(uint64_t *seed)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += random_next(seed) / 2;
	return sum;
}

static bool in_ball(const fx_array *a, int64_t i, double radius)
{
	double r2 = 0;

	for (int d = 0; d < 3; i /= a->dims[d], d++) {
		double x = (double)(i % a->dims[d]) - 0.5 * (double)(a->dims[d] - 1);

		r2 += x * x;
	}
	return r2 <= radius * radius;
}

/* Rician: |signal + complex noise|. */
static fx_array *noisy_ball(int64_t x, int64_t y, int64_t z, double radius, double sigma)
{
	fx_array *a = image_of(x, y, z);
	uint64_t seed = 7;

	for (int64_t i = 0; i < a->n; i++) {
		double re = (in_ball(a, i, radius) ? 100 : 0) + sigma * normal(&seed), im = sigma * normal(&seed);

		FX_F32_OF(a)[i] = (float)hypot(re, im);
	}
	return a;
}

static double dice(const fx_array *mask, double radius)
{
	double both = 0, sum = 0;

	for (int64_t i = 0; i < mask->n; i++) {
		bool in = ((uint8_t *)mask->data)[i], truth = in_ball(mask, i, radius);

		both += in && truth;
		sum += in + truth;
	}
	return 2 * both / sum;
}

static fx_array *mask_of(const fx_array *image, int median, double factor)
{
	fx_math *m = math_of(2);
	fx_array *mask = NULL;
	int status = fx_b0_mask(m, image, median, factor, &mask);

	if (status != FX_OK)
		fprintf(stderr, "%s\n", m->err->text);
	CU_ASSERT_EQUAL_FATAL(status, FX_OK);
	CU_ASSERT_EQUAL(mask->type, FX_U8);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(mask->dims[i], image->dims[i]);
	fx_math_free(m);
	return mask;
}

/*
 * Odd, non-cubic. Without noise and filter the mask is the ball, to the voxel. A median filter cuts what is convex: a
 * surface of radius R moves inwards by about r^2 / (6 R) of a voxel (half a window's volume lies beyond a plane, less
 * than half beyond a sphere), 0.05 to 0.1 here, so that Dice loses at most 3/2 * 0.1/15 = 0.01.
 */
static void balls(void)
{
	fx_array *clean = noisy_ball(37, 41, 35, 15, 0), *noisy = noisy_ball(37, 41, 35, 15, 20), *mask;

	mask = mask_of(clean, 0, 1);
	CU_ASSERT_EQUAL(dice(mask, 15), 1);
	fx_array_unref(mask);
	mask = mask_of(noisy, 2, 1);
	CU_ASSERT(dice(mask, 15) > 0.98);
	fx_array_unref(mask);
	fx_array_unref(clean);
	fx_array_unref(noisy);
}

/* The same bytes whatever the threads. */
static void threads_do_not_matter(void)
{
	fx_array *image = noisy_ball(23, 19, 17, 7, 30), *first = NULL, *second = NULL;
	fx_math *one = math_of(1), *four = math_of(4);

	CU_ASSERT_EQUAL_FATAL(fx_b0_mask(one, image, 1, 1, &first), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_b0_mask(four, image, 1, 1, &second), FX_OK);
	CU_ASSERT_EQUAL(memcmp(first->data, second->data, (size_t)first->n), 0);
	fx_math_free(one);
	fx_math_free(four);
	fx_array_unref(first);
	fx_array_unref(second);
	fx_array_unref(image);
}

/* A slice's hole is filled in its plane; a smaller part falls away; what is open to the border stays out. */
static void holes_and_parts(void)
{
	static const char *const picture[] = {
		".........", ".#####...", ".#...#.#.", ".#.#.#.#.", ".#...#...", ".#####..#", "........."};
	static const char *const expected[] = {
		".........", ".#####...", ".#####...", ".#####...", ".#####...", ".#####...", "........."};
	fx_array *image = image_of(9, 7, 1), *mask;

	for (int i = 0; i < 63; i++)
		FX_F32_OF(image)[i] = picture[i / 9][i % 9] == '#' ? 10 : 1;
	mask = mask_of(image, 0, 1);
	for (int i = 0; i < 63; i++)
		CU_ASSERT_EQUAL(((uint8_t *)mask->data)[i], expected[i / 9][i % 9] == '#');
	fx_array_unref(mask);
	FX_F32_OF(image)[9 + 3] = 1; /* a gap in the ring: what was inside is outside now */
	mask = mask_of(image, 0, 1);
	CU_ASSERT_EQUAL(((uint8_t *)mask->data)[9 * 2 + 3], 0);
	CU_ASSERT_EQUAL(((uint8_t *)mask->data)[9 * 3 + 3], 0); /* and the dot within is a part of its own */
	CU_ASSERT_EQUAL(((uint8_t *)mask->data)[9 * 2 + 1], 1);
	fx_array_unref(mask);
	fx_array_unref(image);
}

/* The threshold lies half-way between the classes' edges: one bright voxel among 1000 dark ones does not move it. */
static void outliers(void)
{
	fx_array *image = noisy_ball(21, 21, 21, 8, 0), *mask;

	FX_F32_OF(image)[0] = 250;
	FX_F32_OF(image)[image->n / 2] = NAN;     /* inside: a hole, filled */
	FX_F32_OF(image)[image->n - 1] = INFINITY; /* outside: no value */
	mask = mask_of(image, 0, 1);
	CU_ASSERT_EQUAL(dice(mask, 8), 1);
	fx_array_unref(mask);
	fx_array_unref(image);
}

static void refused(const fx_array *image, int median, double factor, int status, const char *word)
{
	fx_math *m = math_of(1);
	fx_array *mask = NULL;

	CU_ASSERT_EQUAL(fx_b0_mask(m, image, median, factor, &mask), status);
	CU_ASSERT_PTR_NULL(mask);
	CU_ASSERT_PTR_NOT_NULL(strstr(m->err->text, word));
	fx_math_free(m);
}

static void images_without_an_object(void)
{
	fx_array *image = image_of(3, 2, 2), *one = image_of(1, 1, 1), *empty = image_of(0, 4, 4);

	refused(image, 0, 1, FX_EDATA, "constant");
	refused(one, 2, 1, FX_EDATA, "constant");
	refused(empty, 0, 1, FX_EINVAL, "voxels");
	for (int i = 0; i < 12; i++)
		FX_F32_OF(image)[i] = NAN;
	refused(image, 1, 1, FX_EDATA, "constant");
	for (int i = 0; i < 12; i++)
		FX_F32_OF(image)[i] = (float)(i % 2);
	refused(image, 0, 5, FX_EDATA, "factor");
	refused(image, 9, 1, FX_EINVAL, "radius");
	refused(image, 0, 0, FX_EINVAL, "threshold");
	fx_array_unref(image);
	fx_array_unref(one);
	fx_array_unref(empty);
}

/* Half the voxel size and turned by 90 degrees: each voxel has the value of the one that it lies in. */
static void masks_of_another_grid(void)
{
	fx_lattice of = {.dims = {3, 2, 2}, .affine = {{4, 0, 0, 0}, {0, 4, 0, 0}, {0, 0, 4, 0}}, .has_affine = true};
	/* x of the new grid along +A, y along -R, voxels of 2 mm whose corner is that of the old grid's far corner. */
	fx_lattice fine = {.dims = {4, 6, 5}, .affine = {{0, -2, 0, 9}, {2, 0, 0, -1}, {0, 0, 2, -1}}, .has_affine = true};
	fx_array *image = image_of(3, 2, 2), *mask = NULL;
	fx_math *m = math_of(1);

	for (int i = 0; i < 12; i++)
		FX_F32_OF(image)[i] = (float)(i * 7 % 3);
	CU_ASSERT_EQUAL_FATAL(fx_mask_on_lattice(m, image, &of, &fine, &mask), FX_OK);
	for (int i = 0; i < (int)mask->n; i++) {
		int x = i % 4, y = i / 4 % 6, z = i / 24, old = (5 - y) / 2 + 3 * (x / 2) + 6 * (z / 2);

		CU_ASSERT_EQUAL(((uint8_t *)mask->data)[i], z < 4 && old * 7 % 3 > 0);
	}
	fx_array_unref(mask);
	fine.affine[2][3] = 100;
	CU_ASSERT_EQUAL(fx_mask_on_lattice(m, image, &of, &fine, &mask), FX_EDATA);
	CU_ASSERT_PTR_NULL(mask);
	fx_math_free(m);
	fx_array_unref(image);
}

static CU_TestInfo tests[] = {
	{"balls, clean and noisy", balls},
	{"threads do not matter", threads_do_not_matter},
	{"holes and parts of a slice", holes_and_parts},
	{"bright voxels, NaN and infinity", outliers},
	{"images without an object", images_without_an_object},
	{"masks of another grid", masks_of_another_grid},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_b0_mask = {"b0_mask", NULL, NULL, NULL, NULL, tests};

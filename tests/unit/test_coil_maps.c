/* SPDX-License-Identifier: MIT */
/* Walsh maps against eigenvectors taken one voxel at a time in double, and images combined with them. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <fornix/fornix.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

static double noise(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 40) / (1 << 24) - 0.5;
}

/* Smooth maps times a rough image plus noise: dominant eigenvectors that stand out, as in real scans. */
static fx_array *coil_images(const int64_t dims[4], double noise_level, uint64_t seed)
{
	int64_t nv = dims[0] * dims[1] * dims[2];
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 4, dims, &a), FX_OK);
	for (int64_t i = 0; i < nv; i++) {
		double x = (double)(i % dims[0]) / (double)dims[0], y = (double)(i / dims[0] % dims[1]) / (double)dims[1];
		double rho = 1 + noise(&seed);

		for (int64_t c = 0; c < dims[3]; c++)
			FX_CF32_OF(a)[i + nv * c] = (fx_cf32)(rho * (1.2 + cos((double)c + 3 * x)) * cexp(I * ((double)c * y + x)) +
				noise_level * (noise(&seed) + I * noise(&seed)));
	}
	return a;
}

/* The dominant eigenvector of a voxel's block sum, by LAPACK; its phase relative to coil `reference`. */
static void oracle(const fx_array *coils, int radius, int64_t reference, int64_t x, int64_t y, int64_t z, fx_cf64 *v)
{
	const int64_t *d = coils->dims;
	int64_t nc = d[3], nv = d[0] * d[1] * d[2];
	fx_array *r, *values;
	fx_cf64 turn;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, nc, nc, &r), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F64, nc, &values), FX_OK);
	for (int64_t iz = z - radius; iz <= z + radius; iz++)
		for (int64_t iy = y - radius; iy <= y + radius; iy++)
			for (int64_t ix = x - radius; ix <= x + radius; ix++) {
				const fx_cf32 *p = FX_CF32_OF(coils) + (iz * d[1] + iy) * d[0] + ix;

				if (ix < 0 || iy < 0 || iz < 0 || ix >= d[0] || iy >= d[1] || iz >= d[2])
					continue;
				for (int64_t b = 0; b < nc; b++)
					for (int64_t a = 0; a < nc; a++)
						FX_CF64_OF(r)[a + nc * b] += (fx_cf64)p[a * nv] * conj((fx_cf64)p[b * nv]);
			}
	LAPACKE_zheev(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)nc, r->data, (lapack_int)nc, values->data);
	turn = FX_CF64_OF(r)[nc * (nc - 1) + reference];
	for (int64_t c = 0; c < nc; c++)
		v[c] = FX_CF64_OF(r)[nc * (nc - 1) + c] * conj(turn) / cabs(turn);
	fx_array_unref(r);
	fx_array_unref(values);
}

static int64_t strongest(const fx_array *coils)
{
	int64_t nv = coils->dims[0] * coils->dims[1] * coils->dims[2], best = 0;
	double most = -1;

	for (int64_t c = 0; c < coils->dims[3]; c++) {
		double sum = 0;

		for (int64_t i = 0; i < nv; i++)
			sum += pow(cabsf(FX_CF32_OF(coils)[i + nv * c]), 2);
		if (sum > most) {
			most = sum;
			best = c;
		}
	}
	return best;
}

static void against_lapack(const int64_t dims[4], int radius)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err}, one = m;
	fx_array *coils = coil_images(dims, 0.2, 7), *maps, *again;
	int64_t nv = dims[0] * dims[1] * dims[2], reference = strongest(coils);
	double worst = 0;
	fx_cf64 v[16];

	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&m, coils, radius, 40, &maps), FX_OK);
	for (int64_t i = 0; i < nv; i++) {
		oracle(coils, radius, reference, i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1], v);
		for (int64_t c = 0; c < dims[3]; c++)
			worst = fmax(worst, cabs(FX_CF32_OF(maps)[i + nv * c] - v[c]));
	}
	/* single precision sums, 40 iterations at an eigenvalue ratio well below 1/2, and a phase taken from one element */
	CU_ASSERT(worst < 1e-5);
	if (!(worst < 1e-5))
		printf("worst %g ", worst);
	one.n_threads = 1;
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&one, coils, radius, 40, &again), FX_OK);
	CU_ASSERT_EQUAL(memcmp(maps->data, again->data, (size_t)maps->bytes), 0);
	fx_array_unref(again);
	fx_array_unref(maps);
	fx_array_unref(coils);
}

static void maps_are_eigenvectors(void)
{
	against_lapack((int64_t[]){37, 19, 1, 5}, 2);
	against_lapack((int64_t[]){9, 7, 11, 4}, 1);
	against_lapack((int64_t[]){33, 1, 1, 3}, 3);
	against_lapack((int64_t[]){6, 5, 4, 2}, 0);
	against_lapack((int64_t[]){5, 3, 2, 8}, 6); /* a block larger than the image */
}

static void odd_inputs(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	fx_array *coils, *maps;

	/* one voxel, one coil: 1 */
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 1, 1, 1, 1, &coils), FX_OK);
	FX_CF32_OF(coils)[0] = -3e-20f * I;
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&m, coils, 1, 3, &maps), FX_OK);
	CU_ASSERT(cabsf(FX_CF32_OF(maps)[0] - 1) < 1e-6f); /* a few roundings */
	fx_array_unref(maps);
	/* nothing but zeros: zeros, not NaN */
	FX_CF32_OF(coils)[0] = 0;
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&m, coils, 1, 3, &maps), FX_OK);
	CU_ASSERT(FX_CF32_OF(maps)[0] == 0);
	fx_array_unref(maps);
	FX_CF32_OF(coils)[0] = NAN;
	CU_ASSERT_EQUAL(fx_coil_maps_walsh(&m, coils, 1, 3, &maps), FX_EDATA);
	CU_ASSERT_PTR_NULL(maps);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "coil 0"));
	fx_array_unref(coils);
	/* no voxels at all */
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 0, 4, 1, 3, &coils), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&m, coils, 1, 3, &maps), FX_OK);
	fx_array_unref(maps);
	fx_array_unref(coils);
}

/* An empty region stays empty, and a dead coil's map is 0. */
static void holes(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 1, .err = &err};
	fx_array *coils = coil_images((int64_t[]){24, 24, 1, 3}, 0, 3), *maps;

	for (int64_t i = 0; i < 24 * 12; i++)
		for (int64_t c = 0; c < 3; c++)
			FX_CF32_OF(coils)[i + 576 * c] = 0;
	memset(FX_CF32_OF(coils) + 576, 0, 576 * sizeof(fx_cf32));
	CU_ASSERT_EQUAL_FATAL(fx_coil_maps_walsh(&m, coils, 1, 5, &maps), FX_OK);
	for (int64_t i = 0; i < 576; i++) {
		double power = 0;

		for (int64_t c = 0; c < 3; c++)
			power += pow(cabsf(FX_CF32_OF(maps)[i + 576 * c]), 2);
		CU_ASSERT(fabs(power - (i >= 24 * 11)) < 1e-6); /* norm 1 in single precision */
		CU_ASSERT(FX_CF32_OF(maps)[i + 576] == 0);
	}
	fx_array_unref(maps);
	fx_array_unref(coils);
}

static void combined_images(void)
{
	fx_error err = {0};
	fx_math m = {.ops = fx_backend_host(), .n_threads = 2, .err = &err};
	int64_t dims[4] = {7, 5, 3, 4}, nv = 105;
	fx_array *maps = coil_images(dims, 0, 1), *coils = coil_images(dims, 0, 1), *image, *rss;
	double worst = 0, worst_rss = 0;

	for (int64_t c = 0; c < 4; c++) /* a voxel without maps */
		FX_CF32_OF(maps)[17 + nv * c] = 0;
	for (int64_t i = 0; i < nv; i++)
		for (int64_t c = 0; c < 4; c++)
			FX_CF32_OF(coils)[i + nv * c] = FX_CF32_OF(maps)[i + nv * c] * (fx_cf32)((double)i - 20.0 * I);
	CU_ASSERT_EQUAL_FATAL(fx_coils_to_image(&m, maps, coils, &image), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_coils_to_image(&m, NULL, coils, &rss), FX_OK);
	CU_ASSERT_EQUAL(image->n_dims, 3);
	for (int64_t i = 0; i < nv; i++) {
		double power = 0;

		for (int64_t c = 0; c < 4; c++)
			power += pow(cabsf(FX_CF32_OF(coils)[i + nv * c]), 2);
		worst = fmax(worst, cabs(FX_CF32_OF(image)[i] - (i == 17 ? 0 : (double)i - 20.0 * I)));
		worst_rss = fmax(worst_rss, cabs(FX_CF32_OF(rss)[i] - sqrt(power)));
	}
	CU_ASSERT(worst < 1e-4);     /* 1e-6 of values about 100 */
	CU_ASSERT(worst_rss < 1e-3); /* 1e-6 of values about 500 */
	fx_array_unref(rss);
	fx_array_unref(image);
	fx_array_unref(coils);
	fx_array_unref(maps);
}

static CU_TestInfo tests[] = {
	{"maps are dominant eigenvectors", maps_are_eigenvectors},
	{"one voxel, zeros, NaN, nothing", odd_inputs},
	{"holes and dead coils", holes},
	{"combined images", combined_images},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_coil_maps = {"coil_maps", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* coils: products with coil maps and channel mixing against loops in double, on sizes around the block length. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each result is a sum of at most 5 products of numbers below 1.5 in modulus, rounded to 24 bits. */
#define TOLERANCE 2e-6

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

static fx_array *filled(int type, int n_dims, const int64_t *dims, unsigned seed)
{
	fx_array *a;
	float *f;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(type, n_dims, dims, &a), FX_OK);
	f = a->data;
	for (int64_t i = 0; i < a->bytes / 4; i++) {
		seed = seed * 1664525u + 1013904223u;
		f[i] = (float)(seed >> 8) / 8388608.0f - 1;
	}
	return a;
}

/* 3 x 3 x 2: less than a block; 33 x 31 x 5 = 5115: two blocks and a rest; 64 x 32 = 2048: one exactly. */
static const int64_t shapes[][4] = {{3, 3, 2, 3}, {33, 31, 5, 5}, {64, 32, 1, 2}, {2049, 1, 1, 1}};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static void expand(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *maps = filled(FX_CF32, 4, shapes[s], 1), *image = filled(FX_CF32, 3, shapes[s], 2);
		fx_array *out = filled(FX_CF32, 4, shapes[s], 3);
		double worst = 0;

		CU_ASSERT_EQUAL_FATAL(math->ops->coil_expand(math, maps, image, out), FX_OK);
		for (int64_t i = 0; i < out->n; i++) {
			fx_cf64 want = (fx_cf64)FX_CF32_OF(maps)[i] * (fx_cf64)FX_CF32_OF(image)[i % image->n];
			worst = fmax(worst, cabs(want - FX_CF32_OF(out)[i]));
		}
		CU_ASSERT(worst < TOLERANCE);
		fx_array_unref(maps);
		fx_array_unref(image);
		fx_array_unref(out);
	}
}

static void combine(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *maps = filled(FX_CF32, 4, shapes[s], 4), *coils = filled(FX_CF32, 4, shapes[s], 5);
		fx_array *image = filled(FX_CF32, 3, shapes[s], 6);
		double worst = 0;

		CU_ASSERT_EQUAL_FATAL(math->ops->coil_combine(math, maps, coils, image), FX_OK);
		for (int64_t v = 0; v < image->n; v++) {
			fx_cf64 want = 0;
			for (int64_t c = 0; c < shapes[s][3]; c++)
				want += conj((fx_cf64)FX_CF32_OF(maps)[v + c * image->n]) *
					(fx_cf64)FX_CF32_OF(coils)[v + c * image->n];
			worst = fmax(worst, cabs(want - FX_CF32_OF(image)[v]));
		}
		CU_ASSERT(worst < TOLERANCE);
		fx_array_unref(maps);
		fx_array_unref(image);
		fx_array_unref(coils);
	}
}

static void power(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *coils = filled(FX_CF32, 4, shapes[s], 7), *out = filled(FX_F32, 3, shapes[s], 8);
		double worst = 0;

		CU_ASSERT_EQUAL_FATAL(math->ops->coil_power(math, coils, out), FX_OK);
		for (int64_t v = 0; v < out->n; v++) {
			double want = 0;
			for (int64_t c = 0; c < shapes[s][3]; c++)
				want += pow(cabs((fx_cf64)FX_CF32_OF(coils)[v + c * out->n]), 2);
			worst = fmax(worst, fabs(want - (double)FX_F32_OF(out)[v]));
		}
		CU_ASSERT(worst < TOLERANCE);
		fx_array_unref(coils);
		fx_array_unref(out);
	}
}

static void mix(void)
{
	static const int64_t sizes[][3] = {{7, 5, 3}, {2048, 2, 4}, {4099, 4, 4}, {1, 1, 1}}; /* samples, in, out */

	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		int64_t n = sizes[s][0], n_in = sizes[s][1], n_out = sizes[s][2];
		fx_array *matrix = filled(FX_CF32, 2, (int64_t[]){n_in, n_out}, 9);
		fx_array *in = filled(FX_CF32, 2, (int64_t[]){n, n_in}, 10);
		fx_array *out = filled(FX_CF32, 2, (int64_t[]){n, n_out}, 11);
		double worst = 0;

		CU_ASSERT_EQUAL_FATAL(math->ops->coil_mix(math, matrix, in, out), FX_OK);
		for (int64_t o = 0; o < n_out; o++)
			for (int64_t i = 0; i < n; i++) {
				fx_cf64 want = 0;
				for (int64_t c = 0; c < n_in; c++)
					want += (fx_cf64)FX_CF32_OF(matrix)[c + o * n_in] *
						(fx_cf64)FX_CF32_OF(in)[i + c * n];
				worst = fmax(worst, cabs(want - FX_CF32_OF(out)[i + o * n]));
			}
		CU_ASSERT(worst < TOLERANCE);
		fx_array_unref(matrix);
		fx_array_unref(in);
		fx_array_unref(out);
	}
}

static void wrong_shapes_are_refused(void)
{
	fx_array *maps = filled(FX_CF32, 4, (int64_t[]){4, 3, 2, 2}, 1), *image = filled(FX_CF32, 3, (int64_t[]){4, 3, 2}, 2);
	fx_array *turned = filled(FX_CF32, 3, (int64_t[]){3, 4, 2}, 3), *real = filled(FX_F32, 3, (int64_t[]){4, 3, 2}, 4);
	fx_array *matrix = filled(FX_CF32, 2, (int64_t[]){2, 2}, 5), *samples = filled(FX_CF32, 2, (int64_t[]){9, 2}, 6);

	CU_ASSERT_EQUAL(math->ops->coil_expand(math, maps, turned, maps), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->coil_combine(math, maps, maps, real), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->coil_power(math, maps, image), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->coil_mix(math, matrix, samples, samples), FX_EINVAL);
	CU_ASSERT_EQUAL(math->ops->coil_mix(math, matrix, maps, samples), FX_EINVAL);
	CU_ASSERT(error.text[0] != '\0');
	memset(&error, 0, sizeof error);
	fx_array_unref(maps);
	fx_array_unref(image);
	fx_array_unref(turned);
	fx_array_unref(real);
	fx_array_unref(matrix);
	fx_array_unref(samples);
}

static void empty_is_fine(void)
{
	fx_array *maps = filled(FX_CF32, 4, (int64_t[]){4, 3, 2, 0}, 1), *image = filled(FX_CF32, 3, (int64_t[]){4, 3, 2}, 2);

	CU_ASSERT_EQUAL(math->ops->coil_expand(math, maps, image, maps), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->coil_combine(math, maps, maps, image), FX_OK);
	for (int64_t i = 0; i < image->n; i++)
		CU_ASSERT(FX_CF32_OF(image)[i] == 0); /* the sum over no coils */
	fx_array_unref(maps);
	fx_array_unref(image);
}

static CU_TestInfo tests[] = {
	{"maps times image", expand},
	{"sum of conj(S) I", combine},
	{"sum of |I|^2", power},
	{"channel mixing", mix},
	{"wrong shapes are refused", wrong_shapes_are_refused},
	{"no coils is fine", empty_is_fine},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_coils = {"coils", set_up, tear_down, NULL, NULL, tests};

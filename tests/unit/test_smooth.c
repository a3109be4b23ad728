/* SPDX-License-Identifier: MIT */
/* Tensors smoothed over their mask: closed forms of a normalised Gaussian, odd and flat sizes, and what has no tensor. */
#include "fields.h"

/* A field on 1.5 x 2 x 3 mm voxels, all in the mask; component c of voxel i is what the caller fills in. */
static fx_msg *new_field(int64_t nx, int64_t ny, int64_t nz)
{
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t = fx_msg_tensors(msg);
	double axes[3][3] = {{1.5, 0, 0}, {0, 2, 0}, {0, 0, 3}}, origin[3] = {0};

	t->lattice = lattice_of(nx, ny, nz, axes, origin);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 6, nx, ny, nz, &t->d), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, t->lattice.dims, &t->mask), FX_OK);
	memset(t->mask->data, 1, (size_t)t->mask->bytes);
	return msg;
}

static fx_array *smoothed(const fx_tensors *t, double sigma, int threads)
{
	fx_math *m = math_of(threads);
	fx_array *out = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_tensors_smooth(m, t, sigma, &out), FX_OK);
	fx_math_free(m);
	return out;
}

static void constants_and_slopes(void)
{
	static const int64_t sizes[][3] = {{17, 15, 13}, {1, 1, 1}, {21, 1, 1}, {1, 9, 16}};

	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		const int64_t *n = sizes[s];
		fx_msg *msg = new_field(n[0], n[1], n[2]);
		fx_tensors *t = fx_msg_tensors(msg);
		fx_array *out;

		for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++)
			for (int c = 0; c < 6; c++) /* constants, and a slope along x in the last */
				FX_F32_OF(t->d)[6 * i + c] = c < 5 ? 0.1f * (float)(c + 1) : 0.01f * (float)(i % n[0]);
		out = smoothed(t, 1.5, 2);
		for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
			int64_t x = i % n[0];

			for (int c = 0; c < 5; c++) /* weights add up to 1 everywhere, to roundings of single precision */
				CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(out)[6 * i + c], 0.1 * (c + 1), 1e-6);
			if (x >= 3 && x < n[0] - 3) /* symmetric weights keep a slope where all of them (3 sigma, 3 voxels) are there */
				CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(out)[6 * i + 5], 0.01 * (double)x, 1e-6);
		}
		fx_array_unref(out);
		fx_drop(msg);
	}
}

/* One voxel that differs becomes a Gaussian of sigma in mm along every axis, whatever the voxels. */
static void one_voxel(void)
{
	fx_msg *msg = new_field(25, 21, 15);
	fx_tensors *t = fx_msg_tensors(msg);
	const int64_t at[3] = {12, 10, 7}, step[3] = {1, 25, 25 * 21};
	const double mm[3] = {1.5, 2, 3}, sigma = 2.5;
	int64_t centre = at[0] + 25 * (at[1] + 21 * at[2]);
	fx_array *out;

	FX_F32_OF(t->d)[6 * centre] = 1;
	out = smoothed(t, sigma, 1);
	for (int a = 0; a < 3; a++)
		for (int64_t k = 1; (double)k * mm[a] < 2 * sigma; k++) {
			double ratio = (double)FX_F32_OF(out)[6 * (centre + k * step[a])] / (double)FX_F32_OF(out)[6 * centre];

			CU_ASSERT_DOUBLE_EQUAL(ratio, exp(-0.5 * pow((double)k * mm[a] / sigma, 2)), 1e-5);
		}
	fx_array_unref(out);
	fx_drop(msg);
}

/* Beyond the mask is another world, and NaN: nothing of it comes in, and it stays as it is; threads change nothing. */
static void mask_and_threads(void)
{
	fx_msg *msg = new_field(9, 8, 7);
	fx_tensors *t = fx_msg_tensors(msg);
	fx_array *one, *two;

	for (int64_t i = 0; i < 9 * 8 * 7; i++) {
		bool inside = i % 9 < 5;

		((uint8_t *)t->mask->data)[i] = inside;
		for (int c = 0; c < 6; c++)
			FX_F32_OF(t->d)[6 * i + c] = inside ? 0.7f : 50;
	}
	FX_F32_OF(t->d)[6 * 2 + 1] = NAN; /* in the mask, and no tensor */
	one = smoothed(t, 4, 1);
	two = smoothed(t, 4, 2);
	CU_ASSERT(memcmp(one->data, two->data, (size_t)one->bytes) == 0);
	for (int64_t i = 0; i < 9 * 8 * 7; i++) {
		double v = (double)FX_F32_OF(one)[6 * i];

		CU_ASSERT_DOUBLE_EQUAL(v, i % 9 < 5 ? 0.7 : 50, 1e-6);
		CU_ASSERT_EQUAL(isnan(FX_F32_OF(one)[6 * i + 1]) != 0, i == 2);
	}
	fx_array_unref(one);
	fx_array_unref(two);
	fx_drop(msg);
}

static CU_TestInfo tests[] = {
	{"constants and slopes stay", constants_and_slopes}, {"one voxel becomes a Gaussian in mm", one_voxel},
	{"the mask is a wall; threads", mask_and_threads}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_smooth = {"smooth", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* test_gather.c - a series whose input broke off, in every order of its slices. The rest: dwi_collect's suites. */
#include "unit/check.h"

#include <string.h>

enum { SLICES = 4, VOLUMES = 3 };

static fx_gradient table[VOLUMES] = {{0, {0, 0, 0}}, {1000, {1, 0, 0}}, {1000, {0, 1, 0}}};

static int add(fx_gather *g, int volume, int slice, fx_msg_list *ready)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	fx_image *image = fx_msg_image(msg);
	int status;

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 2, 2, 1, 1, &image->data), FX_OK);
	fx_image_describe(image);
	for (int i = 0; i < 3; i++)
		image->head.field_of_view[i] = 4;
	image->head.read_dir[0] = image->head.phase_dir[1] = image->head.slice_dir[2] = 1;
	image->head.position[2] = (float)(4 * slice);
	image->head.slice = (uint16_t)slice;
	image->head.repetition = (uint16_t)volume;
	status = fx_gather_add(g, image, ready);
	fx_drop(msg);
	return status;
}

/*
 * The first `n` of 12 images, slice by slice or volume by volume; the status of the end, its words, how many items left
 * before it and how many in all, and the caveats of the end mark.
 */
struct outcome {
	int status;
	char text[FX_ERROR_TEXT];
	int64_t before, all;
	unsigned caveats;
};

static struct outcome cut_after(int n, bool by_slice, bool drop, bool cut)
{
	fx_encoding encoding = {.limits[FX_SLICE] = {.present = true, .max = SLICES - 1}};
	fx_header scan = {.n_encodings = 1, .encodings = &encoding, .diffusion_dimension = FX_DIFFUSION_REPETITION,
		.n_diffusion = VOLUMES, .diffusion = table};
	fx_gather_spec spec = {.scan = &scan, .drop_missing = drop};
	fx_math *m = math_of(1);
	fx_msg_list ready = {0};
	fx_gather *g = NULL;
	struct outcome o = {.status = FX_OK};

	CU_ASSERT_EQUAL_FATAL(fx_gather_new(m, &spec, &g), FX_OK);
	for (int i = 0; i < n; i++)
		CU_ASSERT_EQUAL(add(g, by_slice ? i % VOLUMES : i / SLICES, by_slice ? i / VOLUMES : i % SLICES, &ready), FX_OK);
	o.before = ready.n;
	o.status = fx_gather_end(g, cut, &ready);
	o.all = ready.n;
	if (o.status == FX_OK && ready.n > 0)
		o.caveats = fx_msg_series(ready.list[ready.n - 1])->caveats;
	strcpy(o.text, m->err->text);
	fx_msg_list_clear(&ready);
	fx_gather_free(g);
	fx_math_free(m);
	return o;
}

static void volume_by_volume(void)
{
	struct outcome o = cut_after(12, false, false, false);

	CU_ASSERT_EQUAL(o.status, FX_OK);
	CU_ASSERT_EQUAL(o.before, 3);
	CU_ASSERT_EQUAL(o.all, 4);
	CU_ASSERT_EQUAL(o.caveats, 0);
	for (int cut = 0; cut < 2; cut++) {
		o = cut_after(9, false, false, cut);
		CU_ASSERT_EQUAL(o.status, FX_EDATA);
		CU_ASSERT_EQUAL(o.before, 2);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.text, "1 of 3 volumes"));
		CU_ASSERT_EQUAL(strstr(o.text, "broke off") != NULL, cut);
		o = cut_after(9, false, true, cut);
		CU_ASSERT_EQUAL(o.status, FX_OK);
		CU_ASSERT_EQUAL(o.before, 0);
		CU_ASSERT_EQUAL(o.all, 3);
		CU_ASSERT_EQUAL(o.caveats, FX_CAVEAT_PARTIAL);
	}
}

/* What broke off has all places of a smaller stack: only the cut tells. */
static void slice_by_slice(void)
{
	struct outcome o = cut_after(9, true, true, true);

	CU_ASSERT_EQUAL(o.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.text, "3 slices of the 4"));
	o = cut_after(9, true, false, false); /* a header that counts too many: as many as there are */
	CU_ASSERT_EQUAL(o.status, FX_OK);
	CU_ASSERT_EQUAL(o.before, 0);
	CU_ASSERT_EQUAL(o.all, 4);
	o = cut_after(11, true, false, true);
	CU_ASSERT_EQUAL(o.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.text, "1 of 3 volumes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.text, ": 3"));
}

static void nothing(void)
{
	struct outcome o = cut_after(0, true, false, true);

	CU_ASSERT_EQUAL(o.status, FX_OK);
	CU_ASSERT_EQUAL(o.all, 0);
}

static CU_TestInfo tests[] = {
	{"volume by volume", volume_by_volume},
	{"slice by slice", slice_by_slice},
	{"nothing", nothing},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_gather = {"gather", NULL, NULL, NULL, NULL, tests};

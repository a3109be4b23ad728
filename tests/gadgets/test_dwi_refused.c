/* SPDX-License-Identifier: MIT */
/*
 * test_dwi_refused.c - what dwi_collect takes only when told to, or not at all: missing slices, doubles, shots that cancel, slices
 * that are not a stack.
 */
#include "gadgets/dwi_slices.h"

#include <complex.h>

/* ---- what is missing or too much ---------------------------------------------------------------- */

static void missing_slices(void)
{
	char *xml = header("repetition", NZ);

	for (int way = 0; way < 2; way++) {
		fx_msg *msgs[NV * NZ];
		harness h;

		all_slices(msgs, way);
		fx_drop(msgs[2]); /* of volume 3 or 4 */
		memmove(msgs + 2, msgs + 3, (NV * NZ - 3) * sizeof *msgs);
		harness_run(&h, "dwi_collect", xml, msgs, NV * NZ - 1);
		refused(&h, "1 of 5 volumes are missing or lack slices: ", way ? "5; set missing=drop" : "4; set missing=drop");
		harness_free(&h);
		all_slices(msgs, way);
		fx_drop(msgs[2]);
		memmove(msgs + 2, msgs + 3, (NV * NZ - 3) * sizeof *msgs);
		harness_run(&h, "dwi_collect missing=drop", xml, msgs, NV * NZ - 1);
		CU_ASSERT_EQUAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, NV);
		CU_ASSERT_EQUAL(item(&h, 0)->info->n_volumes, NV - 1);
		CU_ASSERT_EQUAL(item(&h, 0)->info->caveats, FX_CAVEAT_PARTIAL);
		CU_ASSERT_EQUAL(item(&h, NV - 1)->caveats, FX_CAVEAT_PARTIAL);
		/* Rows go with their volumes: what was volume 1 still has its own direction and its own values. */
		CU_ASSERT_EQUAL(item(&h, 1)->volume, 1);
		CU_ASSERT_EQUAL(item(&h, 1)->info->gradients[1].dir[0], -1);
		CU_ASSERT_EQUAL(FX_F32_OF(item(&h, 3)->data)[0], value_of(way ? 3 : 4, 0, 0));
		CU_ASSERT(harness_warned(&h, "left out"));
		harness_free(&h);
	}
	free(xml);
}

static void slices_that_come_twice(void)
{
	char *xml = header("repetition", NZ);
	fx_msg *msgs[NV * NZ + 1];
	harness h;

	for (int early = 0; early < 2; early++) {
		all_slices(msgs, false);
		msgs[NV * NZ] = early ? msgs[0] : slice(3, 1);
		if (early)
			msgs[0] = slice(3, 2);
		harness_run(&h, "dwi_collect", xml, msgs, NV * NZ + 1);
		CU_ASSERT_EQUAL(h.status, FX_EDATA);
		CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "averages=mean"));
		harness_free(&h);
	}
	all_slices(msgs, false);
	msgs[NV * NZ] = slice(3, 1);
	for (int i = 0; i < NX * NY; i++)
		FX_F32_OF(fx_msg_image(msgs[NV * NZ])->data)[i] = -value_of(3, 1, i) - 8; /* magnitudes are meant */
	harness_run(&h, "dwi_collect averages=mean", xml, msgs, NV * NZ + 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, NV + 1);
	for (int i = 0; i < NX * NY; i++) {
		CU_ASSERT_EQUAL(FX_F32_OF(item(&h, 3)->data)[NX * NY + i], value_of(3, 1, i) + 4);
		CU_ASSERT_EQUAL(FX_F32_OF(item(&h, 3)->data)[i], value_of(3, 0, i));
	}
	CU_ASSERT(harness_warned(&h, "1 images are means"));
	harness_free(&h);
	free(xml);
}

/* Opposite phases: a complex mean would be 0. */
static void complex_averages(void)
{
	char *xml = header("repetition", 0);
	fx_msg *msgs[2 * NV];
	harness h;

	for (int i = 0; i < 2 * NV; i++) {
		fx_array *data = NULL;
		fx_image *image;

		msgs[i] = slice(i % NV, 1);
		image = fx_msg_image(msgs[i]);
		CU_ASSERT_EQUAL_FATAL(fx_array_convert(image->data, FX_CF32, &data), FX_OK);
		for (int64_t x = 0; x < data->n; x++)
			FX_CF32_OF(data)[x] *= i < NV ? I : -I;
		fx_slot_take(&image->data, data);
		fx_image_describe(image);
	}
	harness_run(&h, "dwi_collect averages=mean", xml, msgs, 2 * NV);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, NV + 1);
	CU_ASSERT_EQUAL_FATAL(item(&h, 2)->data->type, FX_F32);
	CU_ASSERT_EQUAL(FX_F32_OF(item(&h, 2)->data)[3], value_of(2, 1, 3));
	harness_free(&h);
	free(xml);
}

/* ---- geometry ---------------------------------------------------------------------------------- */

static void stacks_that_are_refused(void)
{
	static const struct {
		const char *word;
		int slice;
		float position[3], phase_y, phase_z;
	} cases[] = {
		{"apart", 1, {0, 0, 0.5f}, 1, 0},
		{"no slice", 9, {0, 0, 0.5f}, 1, 0},         /* of the second volume */
		{"another plane", 9, {0.5f, 0, 0}, 1, 0},
		{"another plane", 9, {0, 0, 0}, 0.9950042f, 0.0998334f},
	};
	char *xml = header("repetition", NZ);

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		fx_msg *msgs[NV * NZ];
		ISMRMRD_ImageHeader *head;
		harness h;

		all_slices(msgs, false);
		head = &fx_msg_image(msgs[cases[c].slice])->head;
		for (int i = 0; i < 3; i++)
			head->position[i] += cases[c].position[i];
		head->phase_dir[1] = cases[c].phase_y;
		head->phase_dir[2] = cases[c].phase_z;
		head->slice_dir[1] = -cases[c].phase_z;
		head->slice_dir[2] = cases[c].phase_y;
		harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
		refused(&h, cases[c].word, "slice");
		harness_free(&h);
	}
	free(xml);
}

static void other_matrices_and_kinds(void)
{
	char *xml = header("repetition", NZ);
	fx_msg *msgs[NV * NZ];
	fx_image *image;
	harness h;

	all_slices(msgs, false);
	image = fx_msg_image(msgs[5]);
	fx_slot_take(&image->data, NULL);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, NX, NY + 1, 1, 1, &image->data), FX_OK);
	fx_image_describe(image);
	harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
	refused(&h, "3 x 3 x 1 voxels where the series has 3 x 2", "matrix");
	harness_free(&h);
	all_slices(msgs, false);
	image = fx_msg_image(msgs[5]);
	fx_slot_take(&image->data, NULL);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, NX, NY, 1, 1, &image->data), FX_OK);
	fx_image_describe(image);
	harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
	refused(&h, "another kind", "complex");
	harness_free(&h);
	all_slices(msgs, false);
	image = fx_msg_image(msgs[5]);
	fx_slot_take(&image->data, NULL);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, NX, NY, 1, 2, &image->data), FX_OK);
	fx_image_describe(image);
	harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
	refused(&h, "2 channels", "combine");
	harness_free(&h);
	free(xml);
}

/* ---- shots ------------------------------------------------------------------------------------- */

static void several_shots(void)
{
	static const struct {
		const char *chain;
		int shots_b0, shots;
		bool refused;
		unsigned caveats;
	} cases[] = {
		{"dwi_collect", 1, 1, false, 0},
		{"dwi_collect", 4, 1, false, 0},  /* b = 0 alone: nothing turns its phase */
		{"dwi_collect", 1, 4, true, 0},
		{"dwi_collect shot_phase=allow", 1, 4, false, FX_CAVEAT_SHOT_PHASE},
	};
	char *xml = header("repetition", NZ);

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		fx_msg *msgs[NV * NZ];
		harness h;

		all_slices(msgs, false);
		for (int i = 0; i < NV * NZ; i++) {
			fx_image *image = fx_msg_image(msgs[i]);
			char text[16];

			snprintf(text, sizeof text, "%d", image->head.repetition == 0 ? cases[c].shots_b0 : cases[c].shots);
			CU_ASSERT_EQUAL_FATAL(fx_image_set_meta(image, "fornix.shots", text), FX_OK);
		}
		harness_run(&h, cases[c].chain, xml, msgs, NV * NZ);
		if (cases[c].refused) {
			refused(&h, "4 shots", "shot_phase=allow");
		} else {
			all_there(&h);
			CU_ASSERT_EQUAL(item(&h, NV)->caveats, cases[c].caveats);
			CU_ASSERT_EQUAL(item(&h, 0)->info->caveats, cases[c].caveats);
			CU_ASSERT_EQUAL(harness_number(&h, 0, "most_shots", 0), cases[c].shots);
			CU_ASSERT_EQUAL(harness_number(&h, 0, "shots_unjudged", 0), 0);
			CU_ASSERT_EQUAL(harness_warned(&h, "without a phase reference"), cases[c].caveats != 0);
		}
		harness_free(&h);
	}
	free(xml);
}

static CU_TestInfo tests[] = {
	{"missing slices", missing_slices},
	{"slices that come twice", slices_that_come_twice},
	{"complex averages", complex_averages},
	{"stacks that are refused", stacks_that_are_refused},
	{"other matrices and kinds", other_matrices_and_kinds},
	{"several shots", several_shots},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_dwi_refused = {"dwi_refused", NULL, NULL, NULL, NULL, tests};

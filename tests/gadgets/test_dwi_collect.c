/* SPDX-License-Identifier: MIT */
/*
 * test_dwi_collect.c - slices into volumes, volumes into a series: whatever the order and the counter, every voxel is
 * where its value says; tables of files. What must not become a series: test_dwi_refused.c.
 */
#include "gadgets/dwi_slices.h"

#include <unistd.h>

static void interleaved_or_not(void)
{
	for (int way = 0; way < 2; way++) {
		char *xml = header("repetition", NZ);
		fx_msg *msgs[NV * NZ];
		const fx_series_info *info;
		harness h;

		all_slices(msgs, way);
		harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
		all_there(&h);
		info = item(&h, 0)->info;
		CU_ASSERT(info->lattice.has_affine);
		/* Centre voxel (1, 1) at 0, 0 LPS; the lowest slice at -10; x towards the left: -x in RAS. */
		CU_ASSERT_DOUBLE_EQUAL(info->lattice.affine[0][0], -2, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(info->lattice.affine[0][3], 2, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(info->lattice.affine[1][3], 2, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(info->lattice.affine[2][2], 3, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(info->lattice.affine[2][3], -10, 1e-6);
		CU_ASSERT_EQUAL(info->gradients[1].dir[0], -1); /* rl +1 is left */
		CU_ASSERT_EQUAL(info->gradients[4].dir[2], 1);
		CU_ASSERT_EQUAL(info->gradients[4].b, 1000);
		CU_ASSERT_STRING_EQUAL(info->origin, "MRD header, by repetition");
		CU_ASSERT_EQUAL(item(&h, NV)->caveats, 0);
		/* Slices that come volume by volume are held for one volume; slice by slice, until the last slices come. */
		CU_ASSERT_EQUAL(harness_number(&h, 0, "held_most", 0), way ? NV * (NZ - 1) + 1 : NZ);
		CU_ASSERT_EQUAL(item(&h, 0)->volume, 3); /* as they became whole */
		CU_ASSERT_EQUAL(harness_number(&h, 0, "shots_unjudged", 0), (NV - 1) * NZ);
		harness_free(&h);
		free(xml);
	}
}

/* Every counter that an image can have, told by the header, by a property, or found. */
static void every_counter(void)
{
	static const char *const names[] = {"average", "contrast", "phase", "set", "user_0", "user_7", "segment"};

	for (size_t c = 0; c < 7; c++)
		for (int way = 0; way < 2; way++) {
			char *xml = header(way ? "repetition" : names[c], NZ), chain[64] = "dwi_collect";
			fx_msg *msgs[NV * NZ];
			harness h;

			if (way && c == 6) { /* an image has no segment but by the header's word */
				free(xml);
				continue;
			}
			if (way)
				snprintf(chain, sizeof chain, "dwi_collect counter=%s", names[c]);
			all_slices(msgs, false);
			for (int i = 0; i < NV * NZ; i++) {
				fx_image *image = fx_msg_image(msgs[i]);
				uint16_t v = image->head.repetition;
				char text[16];

				image->head.repetition = 7;
				image->head.average = c == 0 ? v : 0;
				image->head.contrast = c == 1 ? v : 0;
				image->head.phase = c == 2 ? v : 0;
				image->head.set = c == 3 ? v : 0;
				image->head.user_int[0] = c == 4 ? v : 0;
				image->head.user_int[7] = c == 5 ? v : 0;
				snprintf(text, sizeof text, "%d", v);
				if (c == 6)
					fx_image_set_meta(image, "fornix.diffusion", text);
			}
			harness_run(&h, chain, xml, msgs, NV * NZ);
			all_there(&h);
			harness_free(&h);
			free(xml);
		}
}

/* ---- tables from files ------------------------------------------------------------------------- */

static const char five_b[] = "0 1000 1000 1000 2000\n", five_v[] = "0 1 0 0 0.6\n0 0 1 0 0\n0 0 0 1 -0.8\n";

/* Runs with FSL's files (bvec NULL: MRtrix's table) from a folder of its own. */
static void run_with_table(harness *h, const char *more, const char *xml, fx_msg **msgs, int64_t n, const char *bval,
	const char *bvec)
{
	char folder[] = "/tmp/fornix-collect-XXXXXX", first[64], second[64], chain[256];
	const char *const texts[2] = {bval, bvec};
	char *paths[2] = {first, second};

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(first, sizeof first, "%s/a.bval", folder);
	snprintf(second, sizeof second, "%s/a.bvec", folder);
	for (int i = 0; i < 2 && texts[i]; i++) {
		FILE *f = fopen(paths[i], "w");

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		fputs(texts[i], f);
		fclose(f);
	}
	snprintf(chain, sizeof chain, bvec ? "dwi_collect bval=%s bvec=%s %s" : "dwi_collect grad=%s %.0s%s", first,
		bvec ? second : "", more);
	harness_run(h, chain, xml, msgs, n);
	unlink(first);
	unlink(second);
	rmdir(folder);
}

static void counter_found_by_the_table(void)
{
	char *xml = header(WITHOUT, 0);
	fx_msg *msgs[NV * NZ];
	harness h;

	all_slices(msgs, true);
	for (int i = 0; i < NV * NZ; i++) {
		fx_image *image = fx_msg_image(msgs[i]);

		image->head.contrast = (uint16_t)(10 * image->head.repetition + 1); /* says the same: no matter */
		image->head.phase = image->head.slice;                            /* four of them */
	}
	run_with_table(&h, "", xml, msgs, NV * NZ, five_b, five_v);
	all_there(&h);
	CU_ASSERT_STRING_EQUAL(item(&h, 0)->info->origin, "a.bval and a.bvec, by repetition");
	CU_ASSERT_PTR_NOT_NULL(strstr(harness_text(&h, 0, "counter", 0), "phase 4"));
	/* The affine is diag(-2, -2, 3): det > 0, so x is turned round, and then the image's x is -x in RAS. */
	CU_ASSERT_DOUBLE_EQUAL(item(&h, 0)->info->gradients[4].dir[0], 0.6, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(item(&h, 0)->info->gradients[2].dir[1], -1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(item(&h, 0)->info->gradients[4].dir[2], -0.8, 1e-12);
	harness_free(&h);
	all_slices(msgs, false);
	run_with_table(&h, "", xml, msgs, NV * NZ, "0 0 0 0\n1 0 0 1000\n0 1 0 1000\n0 0 1 1000\n0.6 0 -0.8 2000\n", NULL);
	all_there(&h);
	CU_ASSERT_EQUAL(item(&h, 0)->info->gradients[4].dir[0], 0.6); /* in scanner axes: as it is */
	harness_free(&h);
	free(xml);
}

static void tables_that_do_not_fit(void)
{
	char *xml = header(WITHOUT, NZ);
	fx_msg *msgs[NV * NZ];
	harness h;

	all_slices(msgs, false); /* three rows for five volumes */
	run_with_table(&h, "", xml, msgs, NV * NZ, "0 1000 1000", "0 1 0\n0 0 1\n0 0 0\n");
	refused(&h, "repetition 5", "counter=");
	harness_free(&h);
	all_slices(msgs, false);
	run_with_table(&h, "counter=repetition", xml, msgs, NV * NZ, "0 1000 1000", "0 1 0\n0 0 1\n0 0 0\n");
	refused(&h, "repetition 3", "3 rows");
	harness_free(&h);
	all_slices(msgs, false); /* four b-values, five vectors: before any image */
	run_with_table(&h, "", xml, msgs, NV * NZ, "0 1000 1000 1000", five_v);
	refused(&h, "4 b-values and 5 b-vectors", "volumes");
	harness_free(&h);
	all_slices(msgs, false); /* two counters of five that disagree */
	for (int i = 0; i < NV * NZ; i++)
		fx_msg_image(msgs[i])->head.set = (uint16_t)(i % NV);
	run_with_table(&h, "", xml, msgs, NV * NZ, five_b, five_v);
	refused(&h, "repetition and set", "counter=");
	harness_free(&h);
	all_slices(msgs, false);
	harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "bval="));
	harness_free(&h);
	all_slices(msgs, false);
	harness_run(&h, "dwi_collect bval=x", xml, msgs, NV * NZ);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "bvec="));
	harness_free(&h);
	free(xml);
}

/* Whole volumes, one a message: nothing is held; 16-bit integers become floats. */
static void volumes(void)
{
	char *xml = header("repetition", 0);
	fx_msg *msgs[NV];
	harness h;

	for (int v = 0; v < NV; v++) {
		fx_image *image;

		msgs[v] = slice(v, 0);
		image = fx_msg_image(msgs[v]);
		fx_slot_take(&image->data, NULL);
		CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_I16, NX, NY, NZ, 1, &image->data), FX_OK);
		for (int i = 0; i < NX * NY * NZ; i++)
			((int16_t *)image->data->data)[i] = (int16_t)value_of(v, i / (NX * NY), i % (NX * NY));
		fx_image_describe(image);
		image->head.field_of_view[2] = 12;
	}
	harness_run(&h, "dwi_collect", xml, msgs, NV);
	all_there(&h);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "held_most", 0), 1);
	CU_ASSERT_DOUBLE_EQUAL(item(&h, 0)->info->lattice.affine[2][2], 3, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(item(&h, 0)->info->lattice.affine[2][3], -10 - 2 * 3, 1e-6);
	harness_free(&h);
	free(xml);
}

/* Without usable directions slices are ordered by their numbers, and nobody is told that he knows where they are. */
static void without_geometry(void)
{
	char *xml = header("repetition", NZ);
	fx_msg *msgs[NV * NZ];
	harness h;

	all_slices(msgs, false);
	for (int i = 0; i < NV * NZ; i++)
		fx_msg_image(msgs[i])->head.slice_dir[2] = 0;
	harness_run(&h, "dwi_collect", xml, msgs, NV * NZ);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_FALSE(item(&h, 0)->info->lattice.has_affine);
	CU_ASSERT(harness_warned(&h, "where they lie"));
	CU_ASSERT_EQUAL(FX_F32_OF(item(&h, 0)->data)[0], value_of(3, NZ - 1, 0));
	harness_free(&h);
	free(xml);
}

static void no_images(void)
{
	char *xml = header("repetition", NZ);
	harness h;

	harness_run(&h, "dwi_collect", xml, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 0);
	harness_free(&h);
	free(xml);
}

static CU_TestInfo tests[] = {
	{"interleaved slices, volumes out of order", interleaved_or_not},
	{"every counter", every_counter},
	{"the counter that the table fits", counter_found_by_the_table},
	{"tables that do not fit", tables_that_do_not_fit},
	{"whole volumes", volumes},
	{"without geometry", without_geometry},
	{"no images", no_images},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_dwi_collect = {"dwi_collect", NULL, NULL, NULL, NULL, tests};

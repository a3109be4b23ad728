/* SPDX-License-Identifier: MIT */
/*
 * test_dwi_collect.c - slices into volumes, volumes into a series: whatever the order and the counter, every voxel is
 * where its value says; and what must not become a series is refused with the way out.
 */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NX = 3, NY = 2, NZ = 4, NV = 5 };

#define WITHOUT ((const char *)NULL)

/* A header of NV weightings by `dimension` (NULL: no diffusion), with `slices` in its limits (0: none). */
static char *header(const char *dimension, int slices)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	fputs("<ismrmrdHeader><encoding><encodedSpace><matrixSize><x>3</x><y>2</y><z>1</z></matrixSize><fieldOfView_mm><x>6</x>"
		"<y>4</y><z>2</z></fieldOfView_mm></encodedSpace><encodingLimits>", f);
	if (slices > 0)
		fprintf(f, "<slice><minimum>0</minimum><maximum>%d</maximum><center>0</center></slice>", slices - 1);
	fputs("</encodingLimits><trajectory>epi</trajectory></encoding>", f);
	if (dimension) {
		fprintf(f, "<sequenceParameters><diffusionDimension>%s</diffusionDimension>", dimension);
		for (int v = 0; v < NV; v++)
			fprintf(f, "<diffusion><gradientDirection><rl>%d</rl><ap>0</ap><fh>%d</fh></gradientDirection><bvalue>%d</bvalue>"
				"</diffusion>", v == 1, v > 1, v == 0 ? 0 : 1000);
		fputs("</sequenceParameters>", f);
	}
	fputs("</ismrmrdHeader>", f);
	fclose(f);
	return text;
}

/* Voxel i of slice z of volume v. */
static float value_of(int v, int z, int i)
{
	return (float)(1000 * v + 100 * z + i);
}

/* Slices of 2 x 2 x 2.5 mm, 3 mm apart towards the head; numbered against their order in space. */
static fx_msg *slice(int v, int z)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	fx_image *image = fx_msg_image(msg);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, NX, NY, 1, 1, &image->data), FX_OK);
	fx_image_describe(image);
	for (int i = 0; i < 3; i++)
		image->head.field_of_view[i] = (float[]){6, 4, 2.5f}[i];
	image->head.read_dir[0] = image->head.phase_dir[1] = image->head.slice_dir[2] = 1;
	image->head.position[2] = (float)(3 * z - 10);
	image->head.slice = (uint16_t)(NZ - 1 - z);
	image->head.repetition = (uint16_t)v;
	for (int i = 0; i < NX * NY; i++)
		FX_F32_OF(image->data)[i] = value_of(v, z, i);
	return msg;
}

/* All slices, the volumes in the order 3, 1, 4, 2, 0; slice-major where interleaved, each volume's slices odd ones first. */
static void all_slices(fx_msg **msgs, bool interleaved)
{
	for (int i = 0; i < NV * NZ; i++) {
		int v = (interleaved ? i % NV : i / NZ) * 3 + 3, z = interleaved ? i / NV : i % NZ;

		msgs[i] = slice(v % NV, (2 * z + 1) % (NZ + 1));
	}
}

static const fx_series *item(const harness *h, int64_t i)
{
	return i < h->n_out ? fx_msg_series(h->out[i]) : NULL;
}

/* NV whole volumes, each once and in its place, and the end mark. */
static void all_there(const harness *h)
{
	bool seen[NV] = {false};

	CU_ASSERT_EQUAL(h->status, FX_OK);
	if (h->status != FX_OK)
		fprintf(stderr, "%s\n", h->err.text);
	CU_ASSERT_EQUAL_FATAL(h->n_out, NV + 1);
	for (int64_t o = 0; o < NV; o++) {
		const fx_series *s = item(h, o);

		CU_ASSERT_PTR_NOT_NULL_FATAL(s);
		CU_ASSERT_FALSE(s->end);
		CU_ASSERT_FATAL(s->volume >= 0 && s->volume < NV);
		CU_ASSERT_FALSE(seen[s->volume]);
		seen[s->volume] = true;
		CU_ASSERT_EQUAL_FATAL(s->data->n, NX * NY * NZ);
		for (int i = 0; i < NX * NY * NZ; i++)
			CU_ASSERT_EQUAL(FX_F32_OF(s->data)[i], value_of((int)s->volume, i / (NX * NY), i % (NX * NY)));
	}
	CU_ASSERT(item(h, NV)->end);
	CU_ASSERT_EQUAL(item(h, NV)->info->n_volumes, NV);
}

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

static void refused(const harness *h, const char *word, const char *more)
{
	CU_ASSERT_EQUAL(h->status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h->err.text, word));
	CU_ASSERT_PTR_NOT_NULL(strstr(h->err.text, more));
	if (!strstr(h->err.text, word) || !strstr(h->err.text, more))
		fprintf(stderr, "no '%s', '%s' in: %s\n", word, more, h->err.text);
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
	{"missing slices", missing_slices},
	{"slices that come twice", slices_that_come_twice},
	{"complex averages", complex_averages},
	{"stacks that are refused", stacks_that_are_refused},
	{"other matrices and kinds", other_matrices_and_kinds},
	{"whole volumes", volumes},
	{"without geometry", without_geometry},
	{"several shots", several_shots},
	{"no images", no_images},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_dwi_collect = {"dwi_collect", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* dwi_slices.h - slices of a small diffusion series whose values tell where they belong, for dwi_collect's suites. */
#ifndef FORNIX_TESTS_DWI_SLICES_H
#define FORNIX_TESTS_DWI_SLICES_H

#include <CUnit/CUnit.h>

#include "gadgets/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NX = 3, NY = 2, NZ = 4, NV = 5 };

#define WITHOUT ((const char *)NULL)

/* A header of NV weightings by `dimension` (NULL: no diffusion), with `slices` in its limits (0: none). */
static inline char *header(const char *dimension, int slices)
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
static inline float value_of(int v, int z, int i)
{
	return (float)(1000 * v + 100 * z + i);
}

/* Slices of 2 x 2 x 2.5 mm, 3 mm apart towards the head; numbered against their order in space. */
static inline fx_msg *slice(int v, int z)
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
static inline void all_slices(fx_msg **msgs, bool interleaved)
{
	for (int i = 0; i < NV * NZ; i++) {
		int v = (interleaved ? i % NV : i / NZ) * 3 + 3, z = interleaved ? i / NV : i % NZ;

		msgs[i] = slice(v % NV, (2 * z + 1) % (NZ + 1));
	}
}

static inline const fx_series *item(const harness *h, int64_t i)
{
	return i < h->n_out ? fx_msg_series(h->out[i]) : NULL;
}

/* NV whole volumes, each once and in its place, and the end mark. */
static inline void all_there(const harness *h)
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

static inline void refused(const harness *h, const char *word, const char *more)
{
	CU_ASSERT_EQUAL(h->status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h->err.text, word));
	CU_ASSERT_PTR_NOT_NULL(strstr(h->err.text, more));
	if (!strstr(h->err.text, word) || !strstr(h->err.text, more))
		fprintf(stderr, "no '%s', '%s' in: %s\n", word, more, h->err.text);
}

#endif

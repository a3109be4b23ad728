/* SPDX-License-Identifier: MIT */
/*
 * tck_write.c - MRtrix tracks: a text header, then x y z in RAS mm as single-precision triplets, three NaN after each fibre
 * and three infinities at the end. The count, known last, has a field of fixed width that is filled in at the end.
 */
#include "buffered.h"
#include "tracts.h"

#include <fornix/diffusion.h>

#include <endian.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT "000000000000000"

struct tck {
	fxi_tract_writer base;
	fxi_buffered *out;
	int64_t n;
};

static void abandon(fxi_tract_writer *self)
{
	fxi_buffered_abandon(((struct tck *)self)->out);
	free(self);
}

/* Little-endian, whatever this machine is. */
static int write_points(struct tck *t, const float *from, int64_t n, fx_error *err)
{
	uint32_t block[3 * 256];
	int status = FX_OK;

	n *= 3;
	for (int64_t done = 0; status == FX_OK && done < n;) {
		int64_t some = n - done < 3 * 256 ? n - done : 3 * 256;

		memcpy(block, from + done, (size_t)some * sizeof *block);
		for (int64_t i = 0; i < some; i++)
			block[i] = htole32(block[i]);
		status = fxi_buffered_write(t->out, block, (size_t)some * sizeof *block, err);
		done += some;
	}
	return status;
}

static int add(fxi_tract_writer *self, const fx_tracts *tracts, fx_error *err)
{
	struct tck *t = (struct tck *)self;
	const uint32_t *offsets = tracts->offsets->data;
	const float *points = tracts->points->data, between[3] = {NAN, NAN, NAN};
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < tracts->n; i++) {
		status = write_points(t, points + 3 * (int64_t)offsets[i], (int64_t)offsets[i + 1] - offsets[i], err);
		if (status == FX_OK)
			status = write_points(t, between, 1, err);
	}
	t->n += tracts->n;
	return status;
}

static int finish(fxi_tract_writer *self, fx_error *err)
{
	struct tck *t = (struct tck *)self;
	const float last[3] = {INFINITY, INFINITY, INFINITY};
	fxi_buffered *out = t->out;
	char count[sizeof COUNT + 8];
	int status = write_points(t, last, 1, err);

	snprintf(count, sizeof count, "%0*" PRId64, (int)strlen(COUNT), t->n);
	if (status == FX_OK)
		status = fxi_buffered_patch(out, (int64_t)strlen("mrtrix tracks\ncount: "), count, strlen(COUNT), err);
	if (status != FX_OK) {
		abandon(self);
		return status;
	}
	free(t);
	return fxi_buffered_commit(out, err);
}

static int write_header(struct tck *t, const fx_tracts_info *info, fx_error *err)
{
	char about[2 * FX_ORIGIN_TEXT + 200], *text, *whole;
	int64_t offset, before = 0;
	int status, n;

	fxi_tracts_text(info, about, sizeof about);
	n = asprintf(&text, "mrtrix tracks\ncount: " COUNT "\ndatatype: Float32LE\nmethod: %s\nstep_size: %.9g\nfornix: %s\n",
		info->method == FX_TRACK_STREAMLINE ? "streamline" : "geodesic", info->step_mm, about);
	if (n < 0)
		return fx_error_set(err, FX_ENOMEM, "out of memory for a header");
	/* The offset counts its own digits. */
	for (offset = n; offset != before;) {
		before = offset;
		offset = n + snprintf(NULL, 0, "file: . %" PRId64 "\nEND\n", before);
	}
	if (asprintf(&whole, "%sfile: . %" PRId64 "\nEND\n", text, offset) < 0)
		whole = NULL;
	free(text);
	if (!whole)
		return fx_error_set(err, FX_ENOMEM, "out of memory for a header");
	status = fxi_buffered_write(t->out, whole, strlen(whole), err);
	free(whole);
	return status;
}

int fxi_tck_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out)
{
	struct tck *t = calloc(1, sizeof *t);
	int status;

	(void)notes; /* what a .tck leaves out is no surprise to tell: write_tracts says so */
	*out = NULL;
	if (!t)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	t->base = (fxi_tract_writer){.add = add, .finish = finish, .abandon = abandon};
	status = fxi_buffered_open(path, err, &t->out);
	if (status == FX_OK)
		status = write_header(t, info, err);
	if (status == FX_OK)
		*out = &t->base;
	else
		abandon(&t->base);
	return status;
}

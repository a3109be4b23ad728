/* SPDX-License-Identifier: MIT */
/*
 * trk_read.c - TrackVis tracks of either byte order, versions 1 and 2. Points are in voxel mm from the corner of the
 * first voxel, with axes that run as voxel_order says; vox_to_ras speaks of the image's own axes, which may run otherwise, so
 * axes are turned first. Without a vox_to_ras the points stay voxel mm from the first voxel's centre.
 */
#include "tracts.h"

#include <fornix/gadget.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HEADER 1000

struct trk {
	fxi_tract_reader base;
	FILE *f;
	bool swap;                    /* another byte order than little-endian */
	int64_t left;                 /* bytes behind what was read */
	double to_ras[3][4];          /* from the file's numbers */
	unsigned char *record;
	int64_t room;
};

static void close_trk(fxi_tract_reader *self)
{
	struct trk *t = (struct trk *)self;

	if (t->f)
		fclose(t->f);
	fx_free(t->record);
}

static uint32_t get(const struct trk *t, const unsigned char *at, int bytes)
{
	uint32_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint32_t)at[i] << 8 * (t->swap ? bytes - 1 - i : i);
	return v;
}

static int32_t get32(const struct trk *t, const unsigned char *at)
{
	return (int32_t)get(t, at, 4);
}

static int get16(const struct trk *t, const unsigned char *at)
{
	return (int16_t)get(t, at, 2);
}

static double get_float(const struct trk *t, const unsigned char *at)
{
	uint32_t bits = get(t, at, 4);
	float f;

	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

static int next(fxi_tract_reader *self, fx_error *err, int64_t *n)
{
	struct trk *t = (struct trk *)self;
	int64_t each = 3 + self->facts.n_scalars, bytes;
	unsigned char word[4];
	int status;

	*n = -1;
	if (self->n_read == self->facts.n_stated || (self->facts.n_stated < 0 && t->left == 0))
		return FX_OK;
	if (t->left < 4 || fread(word, 1, 4, t->f) != 4)
		return fx_error_set(err, FX_EDATA, "%s is cut short: fibre %lld of %lld is expected, and %lld bytes are left", self->path,
			(long long)self->n_read, (long long)self->facts.n_stated, (long long)t->left);
	*n = get32(t, word);
	t->left -= 4;
	if (*n < 0)
		return fx_error_set(err, FX_EDATA, "%s: fibre %lld says that it has %lld points: the file is damaged", self->path,
			(long long)self->n_read, (long long)*n);
	bytes = 4 * (*n * each + self->facts.n_values);
	if (bytes > t->left)
		return fx_error_set(err, FX_EDATA, "%s is cut short: fibre %lld needs %lld bytes (%lld points), %lld are left; %lld fibres "
			"before are whole", self->path, (long long)self->n_read, (long long)bytes, (long long)*n, (long long)t->left,
			(long long)self->n_read);
	status = fxi_tracts_room(self, *n, err);
	if (status == FX_OK && bytes > t->room) {
		fx_free(t->record);
		t->room = 2 * bytes;
		t->record = fx_alloc(t->room, 1);
		if (!t->record) {
			t->room = 0;
			status = fx_error_set(err, FX_ENOMEM, "%s: no memory for fibre %lld of %lld points", self->path, (long long)self->n_read,
				(long long)*n);
		}
	}
	if (status != FX_OK)
		return status;
	if (bytes > 0 && fread(t->record, 1, (size_t)bytes, t->f) != (size_t)bytes)
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", self->path, strerror(errno));
	t->left -= bytes;
	for (int64_t i = 0; i < *n; i++) {
		const unsigned char *at = t->record + 4 * i * each;
		double p[3] = {get_float(t, at), get_float(t, at + 4), get_float(t, at + 8)};

		for (int a = 0; a < 3; a++) {
			const double *row = t->to_ras[a];

			self->points[3 * i + a] = (float)(row[0] * p[0] + row[1] * p[1] + row[2] * p[2] + row[3]);
		}
	}
	return FX_OK;
}

/* Which anatomical axis a letter of voxel_order means, and whether it runs against R, A, S. False for other letters. */
static bool axis_of_letter(unsigned char letter, int *axis, bool *flip)
{
	static const char letters[] = "RLAPSI";
	const char *at = letter ? strchr(letters, letter) : NULL;

	if (!at)
		return false;
	*axis = (int)(at - letters) / 2;
	*flip = (at - letters) % 2 == 1;
	return true;
}

/* The file's numbers to RAS mm: corner to centre, the file's axes to the image's, and its affine. */
static bool place(struct trk *t, const unsigned char *h)
{
	fx_lattice *l = &t->base.facts.lattice;
	double size[3], affine[3][4];
	int axis[3];
	bool flip[3];

	for (int i = 0; i < 3; i++) {
		l->dims[i] = get16(t, h + 6 + 2 * i);
		size[i] = get_float(t, h + 12 + 4 * i);
		if (!(size[i] > 0) || !isfinite(size[i]))
			return false;
		for (int j = 0; j < 4; j++)
			affine[i][j] = get_float(t, h + 440 + 16 * i + 4 * j);
	}
	l->has_affine = get32(t, h + 992) >= 2 && get_float(t, h + 440 + 60) != 0 && fxi_orientation(affine, axis, flip);
	if (!l->has_affine) {
		memset(affine, 0, sizeof affine);
		for (int i = 0; i < 3; i++)
			affine[i][i] = size[i];
	}
	memcpy(l->affine, affine, sizeof affine);
	memset(t->to_ras, 0, sizeof t->to_ras);
	for (int i = 0; i < 3; i++)
		t->to_ras[i][3] = affine[i][3];
	for (int k = 0; k < 3; k++) {
		int own = k, letter = 0;     /* the image's axis that the file's axis k is */
		bool against = false, turned = false;

		if (l->has_affine && axis_of_letter(h[948 + k], &letter, &against))
			for (int j = 0; j < 3; j++)
				if (axis[j] == letter) {
					own = j;
					turned = flip[j] != against;
				}
		/* index along own = turned ? dim - 1 - v : v with v = p / size - 0.5 */
		for (int i = 0; i < 3; i++) {
			t->to_ras[i][k] = (turned ? -1 : 1) * affine[i][own] / size[k];
			t->to_ras[i][3] += affine[i][own] * (turned ? (double)l->dims[k] - 0.5 : -0.5);
		}
	}
	return true;
}

static int read_header(struct trk *t, const char *path, fx_error *err)
{
	fxi_tract_facts *facts = &t->base.facts;
	unsigned char h[HEADER];
	struct stat s;
	size_t got = fread(h, 1, sizeof h, t->f);

	if (got != sizeof h)
		return fx_error_set(err, FX_EDATA, "%s is cut short: %zu of the header's 1000 bytes are there", path, got);
	if (memcmp(h, "TRACK", 5) != 0)
		return fx_error_set(err, FX_EDATA, "%s is no .trk file: it does not begin with TRACK", path);
	if (get32(t, h + 996) != HEADER) {
		t->swap = true;
		if (get32(t, h + 996) != HEADER)
			return fx_error_set(err, FX_EDATA, "%s: its header says that it has %u bytes, in either byte order not 1000", path,
				(unsigned)get(t, h + 996, 4));
	}
	facts->n_scalars = get16(t, h + 36);
	facts->n_values = get16(t, h + 238);
	facts->n_stated = get32(t, h + 988) > 0 ? get32(t, h + 988) : -1;
	if (facts->n_scalars < 0 || facts->n_values < 0)
		return fx_error_set(err, FX_EDATA, "%s: its header states %d values per point and %d per fibre", path, facts->n_scalars,
			facts->n_values);
	if (!place(t, h))
		return fx_error_set(err, FX_EDATA, "%s: its voxel sizes are %g x %g x %g: points have no place", path, get_float(t, h + 12),
			get_float(t, h + 16), get_float(t, h + 20));
	if (fstat(fileno(t->f), &s) != 0)
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", path, strerror(errno));
	t->left = (int64_t)s.st_size - HEADER;
	return FX_OK;
}

int fxi_trk_open(const char *path, fx_error *err, fxi_tract_reader **out)
{
	struct trk *t = calloc(1, sizeof *t);
	int status;

	if (!t)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	t->base.facts.format = FX_FORMAT_TRK;
	t->base.next = next;
	t->base.close = close_trk;
	t->f = fopen(path, "rb");
	if (t->f)
		status = read_header(t, path, err);
	else
		status = fx_error_set(err, FX_EIO, "cannot open %s: %s", path, strerror(errno));
	if (status == FX_OK)
		*out = &t->base;
	else
		fxi_tracts_close(&t->base);
	return status;
}

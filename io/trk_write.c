/* SPDX-License-Identifier: MIT */
/*
 * trk_write.c - TrackVis tracks, version 2: 1000 bytes of header, then each fibre's number of points, its points with the
 * Riemannian length so far, and its values, all little-endian.
 *
 * Points are in mm along the voxel axes from the corner of the first voxel: (index + 0.5) * size. Voxel order is what the affine's
 * axes are nearest to, so that index means the same here as in the lattice; vox_to_ras is the affine, so oblique and even
 * sheared lattices keep their place. Values are read from the single-precision affine that the file holds.
 */
#include "buffered.h"
#include "tracts.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 1000
#define MOST_VALUES 10
#define EXACT_SEED 16777216u   /* single precision holds whole numbers up to here */

struct trk {
	fxi_tract_writer base;
	fxi_buffered *out;
	fxi_tract_notes notes;
	fx_tracts_info info;
	char *path;
	double to_voxel[3][4], size[3];
	bool begun, has_riemann, has_seeds, seed_rounded;
	int n_values;              /* of the set that fit */
	int64_t n;
};

static void free_trk(struct trk *t)
{
	free(t->path);
	free(t);
}

static void abandon(fxi_tract_writer *self)
{
	fxi_buffered_abandon(((struct trk *)self)->out);
	free_trk((struct trk *)self);
}

static void put16(unsigned char *at, int64_t value)
{
	uint16_t v = htole16((uint16_t)value);

	memcpy(at, &v, sizeof v);
}

static void put32(unsigned char *at, int64_t value)
{
	uint32_t v = htole32((uint32_t)value);

	memcpy(at, &v, sizeof v);
}

static void put_float(unsigned char *at, double value)
{
	float f = (float)value;
	uint32_t v;

	memcpy(&v, &f, sizeof v);
	put32(at, v);
}

/* A name of at most 19 characters; nibabel takes what stands behind the NUL as the number of columns, so the rest stays 0. */
static void put_name(unsigned char *at, const char *name)
{
	memcpy(at, name, strnlen(name, FX_TRACT_NAME - 1));
}

static void fill_header(const struct trk *t, unsigned char *h)
{
	const fx_lattice *l = &t->info.lattice;
	static const char codes[3][2] = {{'R', 'L'}, {'A', 'P'}, {'S', 'I'}};
	int axis[3];
	bool flip[3];
	double stored[3][4];

	memcpy(h, "TRACK", 5);
	for (int i = 0; i < 3; i++) {
		put16(h + 6 + 2 * i, l->dims[i]);
		put_float(h + 12 + 4 * i, t->size[i]);
		for (int j = 0; j < 4; j++) {
			stored[i][j] = (double)(float)l->affine[i][j];
			put_float(h + 440 + 16 * i + 4 * j, l->affine[i][j]);
		}
	}
	put_float(h + 440 + 60, 1);
	put16(h + 36, t->has_riemann ? 1 : 0);
	if (t->has_riemann)
		put_name(h + 38, "riemann");
	put16(h + 238, t->n_values + (t->has_seeds ? 1 : 0));
	for (int i = 0; i < t->n_values; i++)
		put_name(h + 240 + 20 * i, t->info.names[i]);
	if (t->has_seeds)
		put_name(h + 240 + 20 * t->n_values, "seed");
	if (fxi_orientation(stored, axis, flip))
		for (int i = 0; i < 3; i++)
			h[948 + i] = h[952 + i] = (unsigned char)codes[axis[i]][flip[i] ? 1 : 0];
	put_float(h + 956, 1);
	put_float(h + 972, 1);
	put32(h + 992, 2);
	put32(h + 996, HEADER);
}

/* What the batches hold is known with the first one. */
static int begin(struct trk *t, const fx_tracts *first, fx_error *err)
{
	unsigned char header[HEADER] = {0};
	char text[FX_TRACT_VALUES * (FX_TRACT_NAME + 2) + 200];
	int at;

	t->begun = true;
	t->has_riemann = first && first->riemann;
	t->has_seeds = first && first->seeds;
	t->n_values = t->info.n_values < MOST_VALUES ? t->info.n_values : MOST_VALUES;
	if (!first)
		t->n_values = t->info.n_values = 0; /* names of values that no fibre has make nibabel fail */
	t->has_seeds = t->has_seeds && t->n_values < MOST_VALUES;
	if (t->n_values < t->info.n_values || (first && first->seeds && !t->has_seeds)) {
		at = snprintf(text, sizeof text, "%s: the format has room for %d values per fibre: left out", t->path, MOST_VALUES);
		for (int i = t->n_values; i < t->info.n_values; i++)
			at += snprintf(text + at, sizeof text - (size_t)at, " %s", t->info.names[i]);
		snprintf(text + at, sizeof text - (size_t)at, "%s; .trx holds all", first && first->seeds && !t->has_seeds ? " seed" : "");
		t->notes.warn(t->notes.arg, text);
	}
	fill_header(t, header);
	return fxi_buffered_write(t->out, header, sizeof header, err);
}

static int write_fibre(struct trk *t, const fx_tracts *tracts, int64_t i, fx_error *err)
{
	const uint32_t *offsets = tracts->offsets->data;
	const float *p = (const float *)tracts->points->data + 3 * (int64_t)offsets[i];
	int64_t n = (int64_t)offsets[i + 1] - offsets[i];
	unsigned char word[16];
	size_t each = t->has_riemann ? 16 : 12;
	int status;

	if (n > INT32_MAX)
		return fx_error_set(err, FX_EINVAL, "%s: fibre %lld has %lld points, the format's limit is %d", t->path,
			(long long)(tracts->first + i), (long long)n, INT32_MAX);
	put32(word, n);
	status = fxi_buffered_write(t->out, word, 4, err);
	for (int64_t j = 0; status == FX_OK && j < n; j++) {
		for (int a = 0; a < 3; a++) {
			const double *row = t->to_voxel[a];
			double index = row[0] * (double)p[3 * j] + row[1] * (double)p[3 * j + 1] + row[2] * (double)p[3 * j + 2] + row[3];

			put_float(word + 4 * a, (index + 0.5) * t->size[a]);
		}
		if (t->has_riemann)
			put_float(word + 12, (double)((const float *)tracts->riemann->data)[offsets[i] + j]);
		status = fxi_buffered_write(t->out, word, each, err);
	}
	for (int v = 0; status == FX_OK && v < t->n_values; v++) {
		put_float(word, (double)((const float *)tracts->values->data)[v + t->info.n_values * i]);
		status = fxi_buffered_write(t->out, word, 4, err);
	}
	if (status == FX_OK && t->has_seeds) {
		uint32_t seed = ((const uint32_t *)tracts->seeds->data)[i];

		t->seed_rounded = t->seed_rounded || seed > EXACT_SEED;
		put_float(word, (double)seed);
		status = fxi_buffered_write(t->out, word, 4, err);
	}
	return status;
}

static int add(fxi_tract_writer *self, const fx_tracts *tracts, fx_error *err)
{
	struct trk *t = (struct trk *)self;
	int status = t->begun ? FX_OK : begin(t, tracts, err);

	for (int64_t i = 0; status == FX_OK && i < tracts->n; i++)
		status = write_fibre(t, tracts, i, err);
	t->n += tracts->n;
	return status;
}

static int finish(fxi_tract_writer *self, fx_error *err)
{
	struct trk *t = (struct trk *)self;
	fxi_buffered *out = t->out;
	unsigned char count[4];
	char text[400];
	int status = t->begun ? FX_OK : begin(t, NULL, err);

	/* 0 is the format's word for "count them yourself". */
	put32(count, t->n <= INT32_MAX ? t->n : 0);
	if (status == FX_OK)
		status = fxi_buffered_patch(out, 988, count, sizeof count, err);
	if (status != FX_OK) {
		abandon(self);
		return status;
	}
	if (t->seed_rounded) {
		snprintf(text, sizeof text, "%.255s: seed numbers beyond %u are rounded to single precision; .trx keeps them whole", t->path, EXACT_SEED);
		t->notes.warn(t->notes.arg, text);
	}
	free_trk(t);
	return fxi_buffered_commit(out, err);
}

static int check_lattice(const char *path, const fx_lattice *l, struct trk *t, fx_error *err)
{
	double stored[3][4];

	for (int i = 0; i < 3; i++) {
		if (l->dims[i] < 1 || l->dims[i] > INT16_MAX)
			return fx_error_set(err, FX_EINVAL, "%s: an image of %lld x %lld x %lld voxels does not fit the format (1 to %d); "
				"write .trx or .tck", path, (long long)l->dims[0], (long long)l->dims[1], (long long)l->dims[2], INT16_MAX);
		for (int j = 0; j < 4; j++)
			stored[i][j] = (double)(float)l->affine[i][j];
	}
	for (int j = 0; j < 3; j++)
		t->size[j] = (double)(float)sqrt(l->affine[0][j] * l->affine[0][j] + l->affine[1][j] * l->affine[1][j] + l->affine[2][j] * l->affine[2][j]);
	if (!fxi_affine_inverse(stored, t->to_voxel))
		return fx_error_set(err, FX_EINVAL, "%s: the image's affine is singular or not finite: voxels have no place; write .tck", path);
	return FX_OK;
}

int fxi_trk_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out)
{
	struct trk *t = calloc(1, sizeof *t);
	int status;

	*out = NULL;
	if (!t || !(t->path = strdup(path))) {
		free(t);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	t->base = (fxi_tract_writer){.add = add, .finish = finish, .abandon = abandon};
	t->notes = *notes;
	t->info = *info;
	status = check_lattice(path, &info->lattice, t, err);
	if (status == FX_OK)
		status = fxi_buffered_open(path, err, &t->out);
	if (status == FX_OK)
		*out = &t->base;
	else
		free_trk(t);
	return status;
}

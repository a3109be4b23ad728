/* SPDX-License-Identifier: MIT */
/*
 * trx_write.c - TRX: a zip archive of stored (not deflated) little-endian arrays: positions.3.float32 (RAS mm), offsets.uint64 (one
 * more than there are fibres), dps/NAME.float32 for each value of a fibre, dps/seed.uint32, dpv/riemann.float32 for each
 * point, and header.json.
 *
 * The points, most of the bytes, go straight into the archive; the header, which is known last, has its place kept before
 * them, filled up with spaces. The other arrays grow in hidden files of their own and are copied behind at the end. So nothing of
 * the set stays in memory. Sizes and places beyond 4 GB are told in zip64 fields. Every array begins at a multiple of 8 bytes, since
 * readers map them.
 */
#include "buffered.h"
#include "tracts.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define POSITIONS_AT 4096      /* where the first point is */
#define LOCAL 30               /* bytes of an entry's own header before its name */
#define BIG 0xffffffffu        /* "see the zip64 field" */
#define MOST_PARTS (FX_TRACT_VALUES + 5)
#define HEADER_JSON "header.json"
#define POSITIONS "positions.3.float32"

/* One file of the archive. */
struct part {
	char name[64];
	fxi_buffered *side;        /* NULL: its bytes are in the archive */
	int64_t bytes, at;         /* its size, and where its local header is */
	uint32_t crc;
};

struct trx {
	fxi_tract_writer base;
	fxi_buffered *out;
	fx_tracts_info info;
	char *path;
	bool begun;
	int64_t n, n_points;
	int n_parts, offsets, values, seeds, riemann; /* numbers of parts; -1 where there is none */
	struct part parts[MOST_PARTS];               /* 0: header.json, 1: positions */
};

static void free_trx(struct trx *t)
{
	for (int i = 0; i < t->n_parts; i++)
		fxi_buffered_abandon(t->parts[i].side);
	free(t->path);
	free(t);
}

static void abandon(fxi_tract_writer *self)
{
	fxi_buffered_abandon(((struct trx *)self)->out);
	free_trx((struct trx *)self);
}

static unsigned char *put(unsigned char *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++, value >>= 8)   /* bytes may be more than value has */
		*at++ = (unsigned char)value;
	return at;
}

/* A part in a hidden file of its own; its number, or -1, explained. */
static int add_part(struct trx *t, const char *folder, const char *name, const char *type, fx_error *err)
{
	struct part *p = &t->parts[t->n_parts];
	char *path;
	int status;

	snprintf(p->name, sizeof p->name, "%s%s.%s", folder, name, type);
	/* Dots and slashes would mean something else to a reader. */
	for (char *c = p->name + strlen(folder); c < p->name + strlen(folder) + strlen(name); c++)
		if (*c == '.' || *c == '/' || *c == '\\')
			*c = '_';
	if (asprintf(&path, "%s.%s", t->path, name) < 0)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", t->path), -1;
	for (char *c = path + strlen(t->path); *c; c++)
		if (*c == '/')
			*c = '_';
	status = fxi_buffered_open(path, err, &p->side);
	free(path);
	return status == FX_OK ? t->n_parts++ : -1;
}

static int give(struct trx *t, int part, const void *data, int64_t count, size_t size, fx_error *err)
{
	struct part *p = &t->parts[part];
	size_t bytes = (size_t)count * size;

	p->crc = (uint32_t)crc32_z(p->crc, data, bytes);
	p->bytes += (int64_t)bytes;
	return fxi_buffered_write(p->side ? p->side : t->out, data, bytes, err);
}

static int begin(struct trx *t, const fx_tracts *first, fx_error *err)
{
	static const char room[POSITIONS_AT];
	const uint64_t zero = 0;
	int last;

	t->begun = true;
	strcpy(t->parts[0].name, HEADER_JSON);
	strcpy(t->parts[1].name, POSITIONS);
	t->n_parts = 2;
	t->values = t->seeds = t->riemann = -1;
	last = t->offsets = add_part(t, "", "offsets", "uint64", err);
	for (int i = 0; last >= 0 && i < t->info.n_values; i++) {
		last = add_part(t, "dps/", t->info.names[i], "float32", err);
		if (i == 0)
			t->values = last;
	}
	if (last >= 0 && first && first->seeds)
		last = t->seeds = add_part(t, "dps/", "seed", "uint32", err);
	if (last >= 0 && first && first->riemann)
		last = t->riemann = add_part(t, "dpv/", "riemann", "float32", err);
	if (last < 0)
		return err->status;
	if (give(t, t->offsets, &zero, 1, sizeof zero, err) != FX_OK)
		return err->status;
	return fxi_buffered_write(t->out, room, sizeof room, err);
}

/* Words of 4 bytes in the file's order. */
static int give_words(struct trx *t, int part, const void *words, int64_t n, fx_error *err)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
	return give(t, part, words, n, 4, err);
#else
	const uint32_t *from = words;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		uint32_t v = htole32(from[i]);

		status = give(t, part, &v, 1, 4, err);
	}
	return status;
#endif
}

static int add_values(struct trx *t, const fx_tracts *tracts, fx_error *err)
{
	uint32_t block[256];
	const char *from = tracts->values->data;
	int status = FX_OK;

	for (int v = 0; v < t->info.n_values; v++)
		for (int64_t i = 0; status == FX_OK && i < tracts->n;) {
			int64_t some = tracts->n - i < 256 ? tracts->n - i : 256;

			for (int64_t k = 0; k < some; k++)
				memcpy(&block[k], from + 4 * (v + t->info.n_values * (i + k)), 4);
			status = give_words(t, t->values + v, block, some, err);
			i += some;
		}
	return status;
}

static int add(fxi_tract_writer *self, const fx_tracts *tracts, fx_error *err)
{
	struct trx *t = (struct trx *)self;
	const uint32_t *offsets = tracts->offsets->data;
	int64_t n_points = (int64_t)offsets[tracts->n] - offsets[0];
	int status = t->begun ? FX_OK : begin(t, tracts, err);

	if (status == FX_OK)
		status = give_words(t, 1, (const float *)tracts->points->data + 3 * (int64_t)offsets[0], 3 * n_points, err);
	for (int64_t i = 1; status == FX_OK && i <= tracts->n; i++) {
		uint64_t end = htole64((uint64_t)(t->n_points + (int64_t)offsets[i] - offsets[0]));

		status = give(t, t->offsets, &end, 1, sizeof end, err);
	}
	if (status == FX_OK && t->values >= 0)
		status = add_values(t, tracts, err);
	if (status == FX_OK && t->seeds >= 0)
		status = give_words(t, t->seeds, tracts->seeds->data, tracts->n, err);
	if (status == FX_OK && t->riemann >= 0)
		status = give_words(t, t->riemann, (const float *)tracts->riemann->data + offsets[0], n_points, err);
	t->n += tracts->n;
	t->n_points += n_points;
	return status;
}

/* ---- the archive ------------------------------------------------------------------------------- */

static bool is_big(int64_t value)
{
	return value >= (int64_t)BIG;
}

/* An entry's own header; `fill` bytes (0, or 4 and more) of it are a field that means nothing. */
static size_t local_header(const struct part *p, size_t fill, unsigned char *to)
{
	bool big = is_big(p->bytes);
	unsigned char *at = to;
	size_t name = strlen(p->name);

	at = put(at, 0x04034b50, 4);
	at = put(at, big ? 45 : 20, 2);
	at = put(at, 0, 2 + 2 + 2);              /* no flags, stored, midnight: the same bytes whenever it is written */
	at = put(at, 0x21, 2);                   /* 1 January 1980 */
	at = put(at, p->crc, 4);
	at = put(at, big ? BIG : (uint64_t)p->bytes, 4);
	at = put(at, big ? BIG : (uint64_t)p->bytes, 4);
	at = put(at, name, 2);
	at = put(at, (big ? 20 : 0) + fill, 2);
	memcpy(at, p->name, name);
	at += name;
	if (big) {
		at = put(at, 1, 2);
		at = put(at, 16, 2);
		at = put(at, (uint64_t)p->bytes, 8);
		at = put(at, (uint64_t)p->bytes, 8);
	}
	if (fill > 0) {
		at = put(at, 0xd935, 2);             /* the number in use for alignment */
		at = put(at, fill - 4, 2);
		memset(at, 0, fill - 4);
		at += fill - 4;
	}
	return (size_t)(at - to);
}

static int write_central(struct trx *t, const struct part *p, fx_error *err)
{
	unsigned char h[256], *at = h;
	bool big = is_big(p->bytes), far = is_big(p->at);
	size_t name = strlen(p->name);

	at = put(at, 0x02014b50, 4);
	at = put(at, 45, 2);
	at = put(at, big || far ? 45 : 20, 2);
	at = put(at, 0, 6);
	at = put(at, 0x21, 2);
	at = put(at, p->crc, 4);
	at = put(at, big ? BIG : (uint64_t)p->bytes, 4);
	at = put(at, big ? BIG : (uint64_t)p->bytes, 4);
	at = put(at, name, 2);
	at = put(at, big || far ? 4 + (big ? 16 : 0) + (far ? 8 : 0) : 0, 2);
	at = put(at, 0, 2 + 2 + 2 + 4);
	at = put(at, far ? BIG : (uint64_t)p->at, 4);
	memcpy(at, p->name, name);
	at += name;
	if (big || far) {
		at = put(at, 1, 2);
		at = put(at, (big ? 16 : 0) + (far ? 8 : 0), 2);
		if (big) {
			at = put(at, (uint64_t)p->bytes, 8);
			at = put(at, (uint64_t)p->bytes, 8);
		}
		if (far)
			at = put(at, (uint64_t)p->at, 8);
	}
	return fxi_buffered_write(t->out, h, (size_t)(at - h), err);
}

static int write_end(struct trx *t, int64_t central, fx_error *err)
{
	unsigned char h[128], *at = h;
	int64_t end = t->out->bytes, size = end - central;

	if (is_big(central) || is_big(size)) {
		at = put(at, 0x06064b50, 4);
		at = put(at, 44, 8);
		at = put(at, 45, 2);
		at = put(at, 45, 2);
		at = put(at, 0, 8);
		at = put(at, (uint64_t)t->n_parts, 8);
		at = put(at, (uint64_t)t->n_parts, 8);
		at = put(at, (uint64_t)size, 8);
		at = put(at, (uint64_t)central, 8);
		at = put(at, 0x07064b50, 4);
		at = put(at, 0, 4);
		at = put(at, (uint64_t)end, 8);
		at = put(at, 1, 4);
	}
	at = put(at, 0x06054b50, 4);
	at = put(at, 0, 4);
	at = put(at, (uint64_t)t->n_parts, 2);
	at = put(at, (uint64_t)t->n_parts, 2);
	at = put(at, is_big(size) ? BIG : (uint64_t)size, 4);
	at = put(at, is_big(central) ? BIG : (uint64_t)central, 4);
	at = put(at, 0, 2);
	return fxi_buffered_write(t->out, h, (size_t)(at - h), err);
}

/* The text is filled up to `bytes` with spaces, which mean nothing to JSON. */
static void header_json(const struct trx *t, char *text, size_t bytes)
{
	const fx_lattice *l = &t->info.lattice;
	char about[2 * FX_ORIGIN_TEXT + 200], quoted[2 * sizeof about], *to = quoted;
	int n;

	fxi_tracts_text(&t->info, about, sizeof about);
	for (const char *c = about; *c; c++) {
		if (*c == '"' || *c == '\\')
			*to++ = '\\';
		*to++ = *c;
	}
	*to = 0;
	n = snprintf(text, bytes, "{\"DIMENSIONS\": [%" PRId64 ", %" PRId64 ", %" PRId64 "], \"VOXEL_TO_RASMM\": "
		"[[%.9g, %.9g, %.9g, %.9g], [%.9g, %.9g, %.9g, %.9g], [%.9g, %.9g, %.9g, %.9g], [0, 0, 0, 1]], "
		"\"NB_STREAMLINES\": %" PRId64 ", \"NB_VERTICES\": %" PRId64 ", \"FORNIX\": \"%s\"}", l->dims[0], l->dims[1], l->dims[2],
		l->affine[0][0], l->affine[0][1], l->affine[0][2], l->affine[0][3], l->affine[1][0], l->affine[1][1], l->affine[1][2],
		l->affine[1][3], l->affine[2][0], l->affine[2][1], l->affine[2][2], l->affine[2][3], t->n, t->n_points, quoted);
	memset(text + n, ' ', bytes - (size_t)n);
	text[bytes - 1] = '\n';
}

/* header.json and the header of the positions, into the place that was kept. */
static int write_front(struct trx *t, fx_error *err)
{
	unsigned char front[POSITIONS_AT];
	struct part *json = &t->parts[0], *positions = &t->parts[1];
	unsigned char h[256];
	size_t mine = LOCAL + strlen(json->name), theirs = local_header(positions, 0, h);

	json->bytes = (int64_t)(POSITIONS_AT - mine - theirs);
	header_json(t, (char *)front + mine, (size_t)json->bytes);
	json->crc = (uint32_t)crc32_z(0, front + mine, (size_t)json->bytes);
	local_header(json, 0, front);
	positions->at = (int64_t)(POSITIONS_AT - theirs);
	memcpy(front + positions->at, h, theirs);
	return fxi_buffered_patch(t->out, 0, front, sizeof front, err);
}

static int append_part(struct trx *t, struct part *p, fx_error *err)
{
	unsigned char h[256];
	size_t bare = local_header(p, 0, h);
	size_t over = ((size_t)t->out->bytes + bare) % 8;
	int status;

	p->at = t->out->bytes;
	bare = local_header(p, over == 0 ? 0 : over <= 4 ? 8 - over : 16 - over, h);
	status = fxi_buffered_write(t->out, h, bare, err);
	if (status == FX_OK)
		status = fxi_buffered_append(t->out, p->side, err);
	fxi_buffered_abandon(p->side); /* its room on the disk is wanted */
	p->side = NULL;
	return status;
}

static int finish(fxi_tract_writer *self, fx_error *err)
{
	struct trx *t = (struct trx *)self;
	fxi_buffered *out = t->out;
	int64_t central;
	int status = t->begun ? FX_OK : begin(t, NULL, err);

	for (int i = 2; status == FX_OK && i < t->n_parts; i++)
		status = append_part(t, &t->parts[i], err);
	central = out->bytes;
	if (status == FX_OK)
		status = write_front(t, err);
	for (int i = 0; status == FX_OK && i < t->n_parts; i++)
		status = write_central(t, &t->parts[i], err);
	if (status == FX_OK)
		status = write_end(t, central, err);
	if (status != FX_OK) {
		abandon(self);
		return status;
	}
	free_trx(t);
	return fxi_buffered_commit(out, err);
}

int fxi_trx_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out)
{
	struct trx *t = calloc(1, sizeof *t);
	int status;

	(void)notes; /* everything has a place */
	*out = NULL;
	if (!t || !(t->path = strdup(path))) {
		free(t);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	t->base = (fxi_tract_writer){.add = add, .finish = finish, .abandon = abandon};
	t->info = *info;
	for (int i = 0; i < 3; i++)
		if (info->lattice.dims[i] > UINT16_MAX) {
			free_trx(t);
			return fx_error_set(err, FX_EINVAL, "%s: an image of %lld voxels along an axis does not fit the format (%d); write .tck",
				path, (long long)info->lattice.dims[i], UINT16_MAX);
		}
	status = fxi_buffered_open(path, err, &t->out);
	if (status == FX_OK)
		*out = &t->base;
	else
		free_trx(t);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * trx_read.c - TRX, an archive or a folder: header.json, positions of half, single or double precision in RAS mm, and offsets of 32
 * or 64 bits. Offsets have one entry more than there are fibres; files by the letter of the specification of 2022 lack the
 * last, which is then the number of points. Both arrays are read along, side by side.
 */
#include "archive.h"
#include "tracts.h"

#include <fornix/gadget.h>

#include <json-glib/json-glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trx {
	fxi_tract_reader base;
	fxi_archive *archive;
	fxi_entry_stream *positions, *offsets;
	size_t value, offset;        /* bytes of one */
	int64_t n_points, at;        /* of the set; and where the next fibre begins */
	int64_t offsets_left;
	unsigned char *raw;
	int64_t room;                /* of raw, bytes */
};

static void close_trx(fxi_tract_reader *self)
{
	struct trx *t = (struct trx *)self;

	fxi_entry_close(t->positions);
	fxi_entry_close(t->offsets);
	fxi_archive_close(t->archive);
	fx_free(t->raw);
}

static uint64_t get(const unsigned char *at, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}

static float half(uint64_t bits)
{
	int exponent = (int)(bits >> 10 & 31);
	double value, fraction = (double)(bits & 1023) / 1024;

	if (exponent == 31)
		value = fraction > 0 ? (double)NAN : (double)INFINITY;
	else
		value = exponent == 0 ? ldexp(fraction, -14) : ldexp(1 + fraction, exponent - 15);
	return (float)(bits >> 15 ? -value : value);
}

static float value_of(const struct trx *t, const unsigned char *at)
{
	uint64_t bits = get(at, t->value);
	uint32_t narrow = (uint32_t)bits;
	float f;
	double d;

	if (t->value == 2)
		return half(bits);
	if (t->value == 4) {
		memcpy(&f, &narrow, sizeof f);
		return f;
	}
	memcpy(&d, &bits, sizeof d);
	return (float)d;
}

static int next_offset(struct trx *t, int64_t *value, fx_error *err)
{
	unsigned char raw[8];
	int status;

	*value = t->n_points;
	if (t->offsets_left == 0)
		return FX_OK;
	t->offsets_left--;
	status = fxi_entry_read(t->offsets, raw, t->offset, err);
	if (status == FX_OK)
		*value = (int64_t)get(raw, t->offset);
	return status;
}

static int next(fxi_tract_reader *self, fx_error *err, int64_t *n)
{
	struct trx *t = (struct trx *)self;
	int64_t end, bytes;
	int status;

	*n = -1;
	if (self->n_read == self->facts.n_stated)
		return FX_OK;
	status = next_offset(t, &end, err);
	if (status != FX_OK)
		return status;
	if (end < t->at || end > t->n_points)
		return fx_error_set(err, FX_EDATA, "%s: fibre %lld reaches from point %lld to %lld of %lld: its offsets are damaged", self->path,
			(long long)self->n_read, (long long)t->at, (long long)end, (long long)t->n_points);
	*n = end - t->at;
	bytes = 3 * *n * (int64_t)t->value; /* n is at most what the file holds */
	status = fxi_tracts_room(self, *n, err);
	if (status == FX_OK && bytes > t->room) {
		fx_free(t->raw);
		t->room = 2 * bytes;
		t->raw = fx_alloc(t->room, 1);
		if (!t->raw) {
			t->room = 0;
			status = fx_error_set(err, FX_ENOMEM, "%s: no memory for fibre %lld of %lld points", self->path, (long long)self->n_read,
				(long long)*n);
		}
	}
	if (status == FX_OK && bytes > 0)
		status = fxi_entry_read(t->positions, t->raw, (size_t)bytes, err);
	for (int64_t i = 0; status == FX_OK && i < 3 * *n; i++)
		self->points[i] = value_of(t, t->raw + (size_t)i * t->value);
	t->at = end;
	return status;
}

static bool number_of(JsonObject *o, const char *name, int64_t *value)
{
	JsonNode *node = json_object_has_member(o, name) ? json_object_get_member(o, name) : NULL;

	if (!node || !JSON_NODE_HOLDS_VALUE(node))
		return false;
	*value = json_node_get_int(node);
	return *value >= 0;
}

static bool numbers_of(JsonNode *node, double *to, guint n, guint *at)
{
	bool ok = node != NULL;

	if (ok && JSON_NODE_HOLDS_ARRAY(node)) {
		JsonArray *a = json_node_get_array(node);

		for (guint i = 0; ok && i < json_array_get_length(a); i++)
			ok = numbers_of(json_array_get_element(a, i), to, n, at);
		return ok;
	}
	ok = ok && JSON_NODE_HOLDS_VALUE(node) && *at < n;
	if (ok)
		to[(*at)++] = json_node_get_double(node);
	return ok;
}

static bool read_json(struct trx *t, const char *text, gssize bytes)
{
	JsonParser *parser = json_parser_new();
	JsonNode *root = json_parser_load_from_data(parser, text, bytes, NULL) ? json_parser_get_root(parser) : NULL;
	JsonObject *o = root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;
	fx_lattice *l = &t->base.facts.lattice;
	double dims[3], affine[16];
	guint n_dims = 0, n_affine = 0;
	bool ok = o && number_of(o, "NB_STREAMLINES", &t->base.facts.n_stated) && number_of(o, "NB_VERTICES", &t->n_points);

	/* Points are in RAS mm: without a lattice they are read all the same. */
	if (ok && json_object_has_member(o, "DIMENSIONS") && json_object_has_member(o, "VOXEL_TO_RASMM") &&
		numbers_of(json_object_get_member(o, "DIMENSIONS"), dims, 3, &n_dims) && n_dims == 3 &&
		numbers_of(json_object_get_member(o, "VOXEL_TO_RASMM"), affine, 16, &n_affine) && n_affine == 16) {
		l->has_affine = true;
		for (int i = 0; i < 3; i++) {
			l->dims[i] = dims[i] >= 0 && dims[i] < 1e6 ? (int64_t)dims[i] : 0;
			memcpy(l->affine[i], affine + 4 * i, sizeof l->affine[i]);
		}
	}
	g_object_unref(parser);
	return ok;
}

static int read_header(struct trx *t, const char *path, fx_error *err)
{
	const fxi_archive_entry *e = fxi_archive_find(t->archive, "header.json");
	fxi_entry_stream *s = NULL;
	char *text = NULL;
	int status;

	if (!e)
		return fx_error_set(err, FX_EDATA, "%s is no .trx: it holds no header.json", path);
	if (e->bytes > 16 << 20 || !(text = fx_alloc(e->bytes + 1, 1)))
		return fx_error_set(err, FX_ENOMEM, "%s: no memory for a header of %lld bytes", path, (long long)e->bytes);
	status = fxi_entry_open(t->archive, e, err, &s);
	if (status == FX_OK)
		status = fxi_entry_read(s, text, (size_t)e->bytes, err);
	if (status == FX_OK && !read_json(t, text, (gssize)e->bytes))
		status = fx_error_set(err, FX_EDATA, "%s: its header.json does not state NB_STREAMLINES and NB_VERTICES", path);
	fxi_entry_close(s);
	fx_free(text);
	return status;
}

/* The array "STEM.TYPE" (or "STEM.1.TYPE"), by the types that it may have. */
static const fxi_archive_entry *find_array(const fxi_archive *a, const char *stem, const char *const *types, int *which)
{
	char name[64];

	for (*which = 0; types[*which]; ++*which) {
		const fxi_archive_entry *e;

		snprintf(name, sizeof name, "%s.%s", stem, types[*which]);
		e = fxi_archive_find(a, name);
		if (!e) {
			snprintf(name, sizeof name, "%s.1.%s", stem, types[*which]);
			e = fxi_archive_find(a, name);
		}
		if (e)
			return e;
	}
	return NULL;
}

static int open_arrays(struct trx *t, const char *path, fx_error *err)
{
	static const char *const reals[] = {"float16", "float32", "float64", NULL}, *const integers[] = {"uint32", "uint64", "int32", "int64", NULL};
	int real, integer, status;
	const fxi_archive_entry *p = find_array(t->archive, "positions.3", reals, &real);
	const fxi_archive_entry *o = find_array(t->archive, "offsets", integers, &integer);
	int64_t n = t->base.facts.n_stated, first = 0, expected;

	if (n == 0)
		return FX_OK;
	if (!p || !o)
		return fx_error_set(err, FX_EDATA, "%s holds no %s", path, p ? "offsets.uint32 or offsets.uint64" : "positions.3.float16, .float32 or .float64");
	t->value = (size_t)2 << real;
	t->offset = integer % 2 ? 8 : 4;
	if (!fx_mul_size(t->n_points, 3 * (int64_t)t->value, &expected) || p->bytes != expected)
		return fx_error_set(err, FX_EDATA, "%s: %s has %lld bytes, the header's %lld points need %lld", path, p->name, (long long)p->bytes,
			(long long)t->n_points, (long long)expected);
	t->offsets_left = o->bytes / (int64_t)t->offset;
	if (o->bytes % (int64_t)t->offset || (t->offsets_left != n && t->offsets_left - 1 != n))
		return fx_error_set(err, FX_EDATA, "%s: %s has %lld bytes, the header's %lld fibres need %lld entries of %zu bytes", path, o->name,
			(long long)o->bytes, (long long)n, (long long)n + 1, t->offset);
	status = fxi_entry_open(t->archive, p, err, &t->positions);
	if (status == FX_OK)
		status = fxi_entry_open(t->archive, o, err, &t->offsets);
	if (status == FX_OK)
		status = next_offset(t, &first, err);
	if (status == FX_OK && first != 0)
		status = fx_error_set(err, FX_EDATA, "%s: its first fibre begins at point %lld, not 0: its offsets are damaged", path, (long long)first);
	return status;
}

static void count_others(struct trx *t)
{
	for (int64_t i = 0; i < t->archive->n; i++) {
		const char *name = t->archive->entries[i].name;

		if (!*name || name[strlen(name) - 1] == '/')
			continue;
		t->base.facts.n_values += strncmp(name, "dps/", 4) == 0;
		t->base.facts.n_scalars += strncmp(name, "dpv/", 4) == 0;
		t->base.facts.n_groups += strncmp(name, "groups/", 7) == 0;
	}
}

int fxi_trx_open(const char *path, fx_error *err, fxi_tract_reader **out)
{
	struct trx *t = calloc(1, sizeof *t);
	int status;

	if (!t)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	t->base.facts.format = FX_FORMAT_TRX;
	t->base.next = next;
	t->base.close = close_trx;
	status = fxi_archive_open(path, err, &t->archive);
	if (status == FX_OK)
		status = read_header(t, path, err);
	if (status == FX_OK)
		status = open_arrays(t, path, err);
	if (status == FX_OK) {
		count_others(t);
		*out = &t->base;
	} else {
		fxi_tracts_close(&t->base);
	}
	return status;
}

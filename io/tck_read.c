/* SPDX-License-Identifier: MIT */
/*
 * tck_read.c - MRtrix tracks of either precision and byte order. Three NaN end a fibre, three infinities the file; a
 * file that ends without them was cut short. A header's count is a note: programs that were stopped leave it wrong.
 */
#include "tracts.h"

#include <fornix/gadget.h>

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_HEADER (16 << 20) /* a command history may be long, but not this long */

struct tck {
	fxi_tract_reader base;
	FILE *f;
	bool wide, big;
	bool done;
};

static void close_tck(fxi_tract_reader *self)
{
	struct tck *t = (struct tck *)self;

	if (t->f)
		fclose(t->f);
}

static double value_of(const struct tck *t, const unsigned char *at)
{
	uint32_t narrow;
	uint64_t wide;
	float f;
	double d;

	if (t->wide) {
		memcpy(&wide, at, sizeof wide);
		wide = t->big ? be64toh(wide) : le64toh(wide);
		memcpy(&d, &wide, sizeof d);
		return d;
	}
	memcpy(&narrow, at, sizeof narrow);
	narrow = t->big ? be32toh(narrow) : le32toh(narrow);
	memcpy(&f, &narrow, sizeof f);
	return (double)f;
}

static int next(fxi_tract_reader *self, fx_error *err, int64_t *n)
{
	struct tck *t = (struct tck *)self;
	unsigned char raw[24];
	size_t each = t->wide ? 24 : 12, got;

	for (int64_t i = 0; !t->done; i++) {
		double p[3];
		int nans = 0, infinities = 0, status;

		got = fread(raw, 1, each, t->f);
		if (got != each)
			return fx_error_set(err, ferror(t->f) ? FX_EIO : FX_EDATA, "%s is cut short: in fibre %lld, after %lld points of it, %zu "
				"bytes were expected and %zu are there; %lld fibres before are whole", self->path, (long long)self->n_read, (long long)i,
				each, got, (long long)self->n_read);
		for (int a = 0; a < 3; a++) {
			p[a] = value_of(t, raw + (size_t)a * each / 3);
			nans += isnan(p[a]) ? 1 : 0;
			infinities += isinf(p[a]) ? 1 : 0;
		}
		if (nans == 3) {
			*n = i;
			return FX_OK;
		}
		if (infinities == 3 && i == 0) {
			t->done = true;
			break;
		}
		if (nans + infinities > 0)
			return fx_error_set(err, FX_EDATA, "%s: point %lld of fibre %lld is %g, %g, %g%s", self->path, (long long)i,
				(long long)self->n_read, p[0], p[1], p[2], infinities == 3 ? ": the file ends within a fibre" : "");
		status = fxi_tracts_room(self, i + 1, err);
		if (status != FX_OK)
			return status;
		for (int a = 0; a < 3; a++)
			self->points[3 * i + a] = (float)p[a];
	}
	*n = -1;
	return FX_OK;
}

static int read_type(struct tck *t, const char *path, const char *word, fx_error *err)
{
	static const struct {
		const char *name;
		bool wide, big;
	} types[] = {{"Float32LE", false, false}, {"Float32BE", false, true}, {"Float64LE", true, false}, {"Float64BE", true, true},
		{"Float32", false, __BYTE_ORDER == __BIG_ENDIAN}, {"Float64", true, __BYTE_ORDER == __BIG_ENDIAN}};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcasecmp(word, types[i].name) == 0) {
			t->wide = types[i].wide;
			t->big = types[i].big;
			return FX_OK;
		}
	return fx_error_set(err, FX_EDATA, "%s: datatype '%s' is not one that tracks come in (Float32LE, Float32BE, Float64LE, Float64BE)", path, word);
}

/* "key: value"; what continues on a line of its own, or is unknown, is passed over. */
static int read_field(struct tck *t, const char *path, char *line, bool *has_type, long long *offset, fx_error *err)
{
	char *value = strchr(line, ':'), dot[2] = "";

	if (!value)
		return FX_OK;
	*value++ = 0;
	value += strspn(value, " \t");
	value[strcspn(value, "\r")] = 0;
	/* What a damaged file says is quoted in messages. */
	for (char *c = value; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	if (strcmp(line, "datatype") == 0) {
		*has_type = true;
		return read_type(t, path, value, err);
	}
	if (strcmp(line, "count") == 0)
		t->base.facts.n_stated = strtoll(value, NULL, 10);
	if (strcmp(line, "file") == 0 && (sscanf(value, "%1s %lld", dot, offset) != 2 || dot[0] != '.' || *offset < 0))
		return fx_error_set(err, FX_EDATA, "%s: 'file: %s': only points in the file itself are read ('file: . OFFSET')", path, value);
	return FX_OK;
}

static int read_header(struct tck *t, const char *path, fx_error *err)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, t->f);
	bool has_type = false, ended = false;
	long long offset = -1, at;
	int status = FX_OK;

	if (n < 0 || strncmp(line, "mrtrix tracks", 13) != 0)
		status = fx_error_set(err, FX_EDATA, "%s is no .tck file: it does not begin with 'mrtrix tracks'", path);
	while (status == FX_OK && !ended && ftell(t->f) < MOST_HEADER && (n = getline(&line, &room, t->f)) >= 0) {
		line[strcspn(line, "\r\n")] = 0;
		ended = strcmp(line, "END") == 0;
		if (!ended)
			status = read_field(t, path, line, &has_type, &offset, err);
	}
	free(line);
	at = ftell(t->f);
	if (status == FX_OK && !ended)
		status = fx_error_set(err, FX_EDATA, "%s: its header has no END", path);
	if (status == FX_OK && !has_type)
		status = fx_error_set(err, FX_EDATA, "%s: its header has no datatype", path);
	if (status == FX_OK && offset < 0)
		status = fx_error_set(err, FX_EDATA, "%s: its header does not say where the points are ('file: . OFFSET')", path);
	if (status == FX_OK && offset < at)
		status = fx_error_set(err, FX_EDATA, "%s: points are said to be at byte %lld, within the header of %lld bytes", path, offset, at);
	if (status == FX_OK && fseek(t->f, offset, SEEK_SET) != 0)
		status = fx_error_set(err, FX_EIO, "cannot read %s: %s", path, strerror(errno));
	return status;
}

int fxi_tck_open(const char *path, fx_error *err, fxi_tract_reader **out)
{
	struct tck *t = calloc(1, sizeof *t);
	int status;

	if (!t)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	t->base.facts.format = FX_FORMAT_TCK;
	t->base.facts.n_stated = -1;
	t->base.next = next;
	t->base.close = close_tck;
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

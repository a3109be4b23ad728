/* SPDX-License-Identifier: MIT */
/* archive_stream.c - see archive.h: one file of an archive, read from its start to its end. */
#include "archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

struct fxi_entry_stream {
	const fxi_archive *archive;
	const fxi_archive_entry *entry;
	FILE *f;
	bool deflated;
	z_stream z;
	int64_t packed_left, left;   /* of the archive's bytes, and of the file's */
	uint32_t crc;
	unsigned char block[1 << 15];
};

static int cut_short(const fxi_entry_stream *s, size_t wanted, fx_error *err)
{
	if (ferror(s->f))
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", s->archive->path, strerror(errno));
	return fx_error_set(err, FX_EDATA, "%s: %s is cut short or damaged: %zu more bytes were expected at byte %lld of %lld", s->archive->path,
		s->entry->name, wanted, (long long)(s->entry->bytes - s->left), (long long)s->entry->bytes);
}

static int inflate_into(fxi_entry_stream *s, unsigned char *to, size_t bytes, fx_error *err)
{
	while (bytes > 0) {
		uInt some = bytes < (1u << 30) ? (uInt)bytes : 1u << 30;
		int told;

		if (s->z.avail_in == 0) {
			size_t n = s->packed_left < (int64_t)sizeof s->block ? (size_t)s->packed_left : sizeof s->block;

			if (n == 0 || fread(s->block, 1, n, s->f) != n)
				return cut_short(s, bytes, err);
			s->packed_left -= (int64_t)n;
			s->z.next_in = s->block;
			s->z.avail_in = (uInt)n;
		}
		s->z.next_out = to;
		s->z.avail_out = some;
		told = inflate(&s->z, Z_NO_FLUSH);
		to += some - s->z.avail_out;
		bytes -= some - s->z.avail_out;
		if (told != Z_OK && !(told == Z_STREAM_END && bytes == 0) && told != Z_BUF_ERROR)
			return cut_short(s, bytes, err);
	}
	return FX_OK;
}

int fxi_entry_read(fxi_entry_stream *s, void *to, size_t bytes, fx_error *err)
{
	int status = FX_OK;

	if ((int64_t)bytes > s->left)
		return cut_short(s, bytes, err);
	if (s->deflated)
		status = inflate_into(s, to, bytes, err);
	else if (bytes > 0 && fread(to, 1, bytes, s->f) != bytes)
		status = cut_short(s, bytes, err);
	if (status != FX_OK)
		return status;
	s->left -= (int64_t)bytes;
	if (!s->archive->is_folder) {
		s->crc = (uint32_t)crc32_z(s->crc, to, bytes);
		if (s->left == 0 && s->crc != s->entry->crc)
			return fx_error_set(err, FX_EDATA, "%s: %s is damaged: its checksum is %08x, the archive says %08x", s->archive->path,
				s->entry->name, s->crc, s->entry->crc);
	}
	return FX_OK;
}

static int seek_entry(fxi_entry_stream *s, fx_error *err)
{
	const fxi_archive_entry *e = s->entry;
	unsigned char h[30];
	int64_t skip;

	if (e->method != 0 && e->method != 8)
		return fx_error_set(err, FX_ENOTSUP, "%s: %s is compressed by method %d; stored and deflated files are read", s->archive->path,
			e->name, e->method);
	if (fseeko(s->f, (off_t)e->at, SEEK_SET) != 0 || fread(h, 1, sizeof h, s->f) != sizeof h || memcmp(h, "PK\3\4", 4) != 0)
		return fx_error_set(err, FX_EDATA, "%s: %s is not where the table of contents has it: the file is damaged", s->archive->path, e->name);
	skip = h[26] + 256 * h[27] + h[28] + 256 * h[29];
	if (fseeko(s->f, (off_t)(e->at + 30 + skip), SEEK_SET) != 0)
		return fx_error_set(err, FX_EIO, "cannot read %s: %s", s->archive->path, strerror(errno));
	s->deflated = e->method == 8;
	if (s->deflated && inflateInit2(&s->z, -MAX_WBITS) != Z_OK) {
		s->deflated = false;
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", s->archive->path);
	}
	return FX_OK;
}

int fxi_entry_open(const fxi_archive *a, const fxi_archive_entry *e, fx_error *err, fxi_entry_stream **out)
{
	fxi_entry_stream *s = calloc(1, sizeof *s);
	char *path = NULL;
	int status = FX_OK;

	*out = NULL;
	if (!s || (a->is_folder && asprintf(&path, "%s/%s", a->path, e->name) < 0)) {
		free(s);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", a->path);
	}
	s->archive = a;
	s->entry = e;
	s->left = e->bytes;
	s->packed_left = e->packed;
	s->f = fopen(path ? path : a->path, "rb");
	if (!s->f)
		status = fx_error_set(err, FX_EIO, "cannot open %s: %s", path ? path : a->path, strerror(errno));
	free(path);
	if (status == FX_OK && !a->is_folder)
		status = seek_entry(s, err);
	if (status == FX_OK)
		*out = s;
	else
		fxi_entry_close(s);
	return status;
}

void fxi_entry_close(fxi_entry_stream *s)
{
	if (!s)
		return;
	if (s->deflated)
		inflateEnd(&s->z);
	if (s->f)
		fclose(s->f);
	free(s);
}

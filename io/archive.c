/* SPDX-License-Identifier: MIT */
/* archive.c - see archive.h: the listing. Layouts from PKWARE's APPNOTE 6.3. */
#include "archive.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BIG 0xffffffffu
#define MOST_ENTRIES 1000000
#define TAIL (65535 + 22 + 20)   /* the end record, the longest comment, and the zip64 locator before */

static uint64_t get(const unsigned char *at, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)at[i] << 8 * i;
	return v;
}

static int damaged(const fxi_archive *a, fx_error *err)
{
	return fx_error_set(err, FX_EDATA, "%s: its table of contents is missing or damaged: the file is cut short or no zip archive", a->path);
}

static int add_entry(fxi_archive *a, const fxi_archive_entry *e, fx_error *err)
{
	fxi_archive_entry *more;

	if ((a->n & (a->n - 1)) == 0) {
		more = realloc(a->entries, (size_t)(a->n ? 2 * a->n : 1) * sizeof *more);
		if (!more)
			return fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
		a->entries = more;
	}
	a->entries[a->n] = *e;
	if (!e->name)
		return fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
	a->n++;
	return FX_OK;
}

/* The 64-bit sizes and place, in this order, of those that did not fit. False where the field is too short. */
static bool read_zip64(const unsigned char *extra, int64_t n, fxi_archive_entry *e)
{
	while (n >= 4) {
		int64_t size = (int64_t)get(extra + 2, 2), used = 4;
		int64_t *wide[] = {&e->bytes, &e->packed, &e->at};

		if (size > n - 4)
			return false;
		if (get(extra, 2) == 1) {
			for (int i = 0; i < 3; i++)
				if (*wide[i] == (int64_t)BIG) {
					if (used + 8 > size + 4)
						return false;
					*wide[i] = (int64_t)get(extra + used, 8);
					used += 8;
				}
			return true;
		}
		extra += 4 + size;
		n -= 4 + size;
	}
	return true;
}

static int read_central(fxi_archive *a, const unsigned char *table, int64_t bytes, int64_t count, fx_error *err)
{
	int64_t at = 0;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < count; i++) {
		const unsigned char *h = table + at;
		fxi_archive_entry e = {0};
		int64_t name, extra, comment;

		if (bytes - at < 46 || get(h, 4) != 0x02014b50)
			return damaged(a, err);
		name = (int64_t)get(h + 28, 2);
		extra = (int64_t)get(h + 30, 2);
		comment = (int64_t)get(h + 32, 2);
		if (bytes - at < 46 + name + extra + comment)
			return damaged(a, err);
		e.method = (int)get(h + 10, 2);
		e.crc = (uint32_t)get(h + 16, 4);
		e.packed = (int64_t)get(h + 20, 4);
		e.bytes = (int64_t)get(h + 24, 4);
		e.at = (int64_t)get(h + 42, 4);
		if (!read_zip64(h + 46 + name, extra, &e) || e.bytes < 0 || e.packed < 0 || e.at < 0)
			return damaged(a, err);
		at += 46 + name + extra + comment;
		e.name = strndup((const char *)h + 46, (size_t)name);
		status = add_entry(a, &e, err);
	}
	return status;
}

/* Where the table of contents is, from the end of the file. */
static int find_central(fxi_archive *a, FILE *f, int64_t *at, int64_t *bytes, int64_t *count, fx_error *err)
{
	static const unsigned char signature[4] = {'P', 'K', 5, 6};
	unsigned char *tail = malloc(TAIL), h[56];
	int64_t size, n, i;
	int status = FX_OK;

	if (!tail)
		return fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
	fseeko(f, 0, SEEK_END);
	size = (int64_t)ftello(f);
	n = size < TAIL ? size : TAIL;
	fseeko(f, (off_t)(size - n), SEEK_SET);
	if (fread(tail, 1, (size_t)n, f) != (size_t)n)
		n = 0;
	for (i = n - 22; i >= 0 && memcmp(tail + i, signature, 4) != 0; i--)
		;
	if (i < 0) {
		status = damaged(a, err);
	} else {
		*count = (int64_t)get(tail + i + 10, 2);
		*bytes = (int64_t)get(tail + i + 12, 4);
		*at = (int64_t)get(tail + i + 16, 4);
		if (i >= 20 && get(tail + i - 20, 4) == 0x07064b50) {
			fseeko(f, (off_t)get(tail + i - 12, 8), SEEK_SET);
			if (fread(h, 1, sizeof h, f) != sizeof h || get(h, 4) != 0x06064b50) {
				status = damaged(a, err);
			} else {
				*count = (int64_t)get(h + 32, 8);
				*bytes = (int64_t)get(h + 40, 8);
				*at = (int64_t)get(h + 48, 8);
			}
		}
	}
	free(tail);
	if (status == FX_OK && (*count < 0 || *count > MOST_ENTRIES || *bytes < 0 || *at < 0 || *bytes > size || *at > size - *bytes))
		status = damaged(a, err);
	return status;
}

static int list_zip(fxi_archive *a, fx_error *err)
{
	FILE *f = fopen(a->path, "rb");
	unsigned char *table = NULL;
	int64_t at = 0, bytes = 0, count = 0;
	int status;

	if (!f)
		return fx_error_set(err, FX_EIO, "cannot open %s: %s", a->path, strerror(errno));
	status = find_central(a, f, &at, &bytes, &count, err);
	if (status == FX_OK && !(table = fx_alloc(bytes + 1, 1)))
		status = fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
	if (status == FX_OK && (fseeko(f, (off_t)at, SEEK_SET) != 0 || fread(table, 1, (size_t)bytes, f) != (size_t)bytes))
		status = damaged(a, err);
	if (status == FX_OK)
		status = read_central(a, table, bytes, count, err);
	fx_free(table);
	fclose(f);
	return status;
}

/* The files of DIR/below and its folders; TRX has one level of them. */
static int list_folder(fxi_archive *a, const char *below, int depth, fx_error *err)
{
	char *dir;
	DIR *d;
	const struct dirent *found;
	int status = FX_OK;

	if (asprintf(&dir, "%s/%s", a->path, below) < 0)
		return fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
	d = opendir(dir);
	if (!d)
		status = fx_error_set(err, FX_EIO, "cannot read the folder %s: %s", dir, strerror(errno));
	while (status == FX_OK && (found = readdir(d))) {
		fxi_archive_entry e = {.at = -1};
		char *path = NULL;
		struct stat s;

		if (found->d_name[0] == '.')
			continue;
		if (asprintf(&e.name, "%s%s", below, found->d_name) < 0 || asprintf(&path, "%s/%s", a->path, e.name) < 0) {
			status = fx_error_set(err, FX_ENOMEM, "out of memory while listing %s", a->path);
		} else if (stat(path, &s) == 0 && S_ISREG(s.st_mode)) {
			e.bytes = e.packed = (int64_t)s.st_size;
			status = add_entry(a, &e, err);
			if (status == FX_OK)
				e.name = NULL;
		} else if (depth > 0 && S_ISDIR(s.st_mode)) {
			char *deeper;

			if (asprintf(&deeper, "%s/", e.name) >= 0) {
				status = list_folder(a, deeper, depth - 1, err);
				free(deeper);
			}
		}
		free(path);
		free(e.name);
	}
	if (d)
		closedir(d);
	free(dir);
	return status;
}

int fxi_archive_open(const char *path, fx_error *err, fxi_archive **out)
{
	fxi_archive *a = calloc(1, sizeof *a);
	struct stat s;
	int status;

	*out = NULL;
	if (!a || !(a->path = strdup(path))) {
		free(a);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	a->is_folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
	status = a->is_folder ? list_folder(a, "", 2, err) : list_zip(a, err);
	if (status == FX_OK)
		*out = a;
	else
		fxi_archive_close(a);
	return status;
}

void fxi_archive_close(fxi_archive *a)
{
	if (!a)
		return;
	for (int64_t i = 0; i < a->n; i++)
		free(a->entries[i].name);
	free(a->entries);
	free(a->path);
	free(a);
}

const fxi_archive_entry *fxi_archive_find(const fxi_archive *a, const char *name)
{
	for (int64_t i = 0; i < a->n; i++)
		if (strcmp(a->entries[i].name, name) == 0)
			return &a->entries[i];
	return NULL;
}

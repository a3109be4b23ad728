/* SPDX-License-Identifier: MIT */
/* tracts_read.c - see tracts.h: which format a file is, and the readers' common ground. */
#include "tracts.h"

#include <fornix/gadget.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool is_trx_folder(const char *path)
{
	struct stat s;
	char *header;
	bool yes = false;

	if (stat(path, &s) == 0 && S_ISDIR(s.st_mode) && asprintf(&header, "%s/header.json", path) >= 0) {
		yes = stat(header, &s) == 0;
		free(header);
	}
	return yes;
}

static int format_by_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (!dot)
		return 0;
	return strcasecmp(dot, ".tck") == 0 ? FX_FORMAT_TCK : strcasecmp(dot, ".trk") == 0 ? FX_FORMAT_TRK :
		strcasecmp(dot, ".trx") == 0 ? FX_FORMAT_TRX : 0;
}

int fxi_tracts_format(const char *path)
{
	char head[16] = "";
	FILE *f;

	if (is_trx_folder(path))
		return FX_FORMAT_TRX;
	f = fopen(path, "rb");
	if (f && fread(head, 1, sizeof head - 1, f) == 0)
		head[0] = 0;
	if (f)
		fclose(f);
	if (strncmp(head, "mrtrix tracks", 13) == 0)
		return FX_FORMAT_TCK;
	if (memcmp(head, "TRACK", 6) == 0)
		return FX_FORMAT_TRK;
	if (memcmp(head, "PK\3\4", 4) == 0)
		return FX_FORMAT_TRX;
	return format_by_name(path);
}

int fxi_tracts_open(const char *path, fx_error *err, fxi_tract_reader **out)
{
	int status;

	*out = NULL;
	switch (fxi_tracts_format(path)) {
	case FX_FORMAT_TCK:
		status = fxi_tck_open(path, err, out);
		break;
	case FX_FORMAT_TRK:
		status = fxi_trk_open(path, err, out);
		break;
	case FX_FORMAT_TRX:
		status = fxi_trx_open(path, err, out);
		break;
	default:
		return fx_error_set(err, FX_EDATA, "%s is no tract file: .tck, .trk and .trx are read", path);
	}
	if (status == FX_OK && !((*out)->path = strdup(path))) {
		fxi_tracts_close(*out);
		*out = NULL;
		status = fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	return status;
}

int fxi_tracts_next(fxi_tract_reader *r, fx_error *err, const float **points, int64_t *n)
{
	int status;

	*n = 0;
	status = r->next(r, err, n);
	*points = r->points;
	if (status == FX_OK && *n >= 0)
		r->n_read++;
	return status;
}

int fxi_tracts_room(fxi_tract_reader *r, int64_t n, fx_error *err)
{
	int64_t room = r->room > 0 ? r->room : 1024;
	float *points;

	if (n <= r->room)
		return FX_OK;
	while (room < n)
		room = room > INT64_MAX / 4 ? n : 2 * room;
	points = fx_alloc(room, 3 * sizeof *points);
	if (!points)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory for fibre %lld of %lld points", r->path, (long long)r->n_read, (long long)n);
	if (r->points)
		memcpy(points, r->points, (size_t)r->room * 3 * sizeof *points);
	fx_free(r->points);
	r->points = points;
	r->room = room;
	return FX_OK;
}

void fxi_tracts_close(fxi_tract_reader *r)
{
	if (!r)
		return;
	r->close(r);
	fx_free(r->points);
	free(r->path);
	free(r);
}

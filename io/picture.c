/* SPDX-License-Identifier: MIT */
/* picture.c - see picture.h. */
#include "picture.h"

#include "aside.h"

#include <stdlib.h>

struct target {
	fxi_aside *file;
	fx_error *err;
};

static cairo_status_t write_bytes(void *arg, const unsigned char *data, unsigned bytes)
{
	struct target *t = arg;

	return fxi_aside_write(t->file, data, bytes, t->err) == FX_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

int fxi_picture_write(fxi_folder *folder, const char *name, cairo_surface_t *surface, fx_error *err)
{
	char *path = fxi_folder_path(folder, name);
	struct target t = {NULL, err};
	int status;

	if (!path || !surface) {
		free(path);
		return fx_error_set(err, FX_ENOMEM, "out of memory while drawing %s", name);
	}
	status = fxi_aside_open(path, err, &t.file);
	if (status == FX_OK && cairo_surface_write_to_png_stream(surface, write_bytes, &t) != CAIRO_STATUS_SUCCESS) {
		status = fx_error_set(err, FX_EIO, "cannot write %s", path);   /* a reason that is there already stays */
		fxi_aside_abandon(t.file);
	} else if (status == FX_OK) {
		status = fxi_aside_commit(t.file, err);
	}
	free(path);
	return status == FX_OK ? fxi_folder_add(folder, name, err) : status;
}

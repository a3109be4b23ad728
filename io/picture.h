/* SPDX-License-Identifier: MIT */
/* picture.h - a drawn surface as a PNG in the output folder. */
#ifndef FORNIX_IO_PICTURE_H
#define FORNIX_IO_PICTURE_H

#include "folder.h"

#include <cairo.h>

/** Writes `surface` (borrowed; NULL: memory was short) aside, renames it to `name` and lists it. FX_EIO, FX_ENOMEM, explained. */
int fxi_picture_write(fxi_folder *folder, const char *name, cairo_surface_t *surface, fx_error *err);

#endif

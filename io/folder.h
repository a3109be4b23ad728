/* SPDX-License-Identifier: MIT */
/* folder.h - what the products of an output folder (files.h) share. */
#ifndef FORNIX_IO_FOLDER_H
#define FORNIX_IO_FOLDER_H

#include "files.h"

typedef struct fxi_folder fxi_folder;

/** DIR/NAME; NULL when memory is short. Free with free(). */
char *fxi_folder_path(const fxi_folder *folder, const char *name);
/** A product of that name is in place. */
int fxi_folder_add(fxi_folder *folder, const char *name, fx_error *err);
/** The run's warning, as a function and its argument. */
void fxi_folder_warn(void *folder, const char *text);

int fxi_product_mrd(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_nifti(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_volume(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_text(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_scan(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_tracts(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_png_tracts(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);
int fxi_product_png(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out);

#endif

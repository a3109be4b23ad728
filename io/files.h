/* SPDX-License-Identifier: MIT */
/* files.h - a run's output folder: where fx_sink products are written and listed. */
#ifndef FORNIX_IO_FILES_H
#define FORNIX_IO_FILES_H

#include "../stream/services.h"

/**
 * Serves products into `dir`, which is created (with its parents) where missing. Products are written aside and renamed
 * at commit; an existing file of the same name is replaced. FX_EIO where the folder cannot be made or written to.
 * What each format holds: MRD, files_mrd.c; NIfTI, files_nifti.c; PNG, files_png.c; a volume, files_volume.c;
 * text, files_text.c; raw scans, files_scan.c.
 */
int fxi_files_folder(const char *dir, fx_error *err, fxi_files **out);
/** Names, inside the folder, of what was committed so far, in order; *n of them. Owned by `files`, valid until the next commit. */
const char *const *fxi_files_names(const fxi_files *files, int64_t *n);

/** How any fxi_files here reads tables and NIfTI files; see services.h. */
int fxi_files_read_table(fxi_files *self, const char *path, fx_error *err, fx_array **values, fx_array **lengths);
int fxi_files_read_nifti(fxi_files *self, const char *path, fx_error *err, fx_array **data, double affine[3][4], bool *has_affine);

#endif

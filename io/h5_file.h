/* SPDX-License-Identifier: MIT */
/* h5_file.h - an HDF5 file written aside (aside.h), and growing one-dimensional datasets in it. */
#ifndef FORNIX_IO_H5_FILE_H
#define FORNIX_IO_H5_FILE_H

#include "aside.h"
#include "h5_disk.h"

typedef struct fxi_h5_file {
	fxi_aside *aside;
	fxi_h5_disk disk;
	hid_t id;
} fxi_h5_file;

/* All of these are called between fxi_h5_enter and fxi_h5_leave. */

int fxi_h5_file_create(const char *path, fx_error *err, fxi_h5_file *out);
/** Flushes, closes and renames into place; on failure nothing is left behind. Every other handle must be closed. */
int fxi_h5_file_commit(fxi_h5_file *f, fx_error *err);
/** Removes what was written. Safe on a file that was never created. */
void fxi_h5_file_abandon(fxi_h5_file *f);
/** FX_OK while the disk took everything; else "cannot write PATH: reason". HDF5 itself does not notice. */
int fxi_h5_file_check(const fxi_h5_file *f, fx_error *err);
/** "cannot write PATH" with the disk's reason, or else HDF5's. */
int fxi_h5_file_failed(const fxi_h5_file *f, fx_error *err);

/** One string (a variable-length one, in a dataset of one element, as libismrmrd writes its XML header). */
bool fxi_h5_put_text(hid_t parent, const char *name, const char *text);
/**
 * An empty dataset {0, tail...} that grows along its first axis in chunks of `chunk` entries; the slowest axes of a chunk
 * are shortened where it would be larger than max_bytes (0: no bound). Negative on failure.
 */
hid_t fxi_h5_growing(hid_t parent, const char *name, hid_t type, int n_tail, const hsize_t *tail, hsize_t chunk,
	hsize_t max_bytes);
/** Appends n entries behind the `have` that are there. */
bool fxi_h5_append(hid_t dataset, hid_t memory_type, hsize_t have, hsize_t n, const void *entries);

#endif

/* SPDX-License-Identifier: MIT */
/* input.h - opens whatever raw data the user names, told apart by content, not by name. */
#ifndef FORNIX_IO_INPUT_H
#define FORNIX_IO_INPUT_H

#include "../stream/source.h"

/**
 * Opens an MRD HDF5 file or an MRD stream (file, pipe, or "-" for standard input, which takes streams only). `group` is
 * the HDF5 group that holds `xml` and `data`, such as "dataset" or "a/b"; NULL takes the only one that there is.
 * FX_EIO where it cannot be opened; FX_EDATA says what the content looks like and what is accepted; FX_EINVAL for a
 * group that is wrong or missing where several would do: those that exist are listed.
 */
int fxi_input_open(const char *path, const char *group, fx_error *err, fxi_source **out);

/** True for a regular file, or a link to one, that begins as NIfTI does, compressed or not: nifti_source.h opens it. */
bool fxi_input_is_nifti(const char *path);

/** False where the path is plainly no stream: an HDF5 or NIfTI file. */
bool fxi_input_may_stream(const char *path);
/**
 * What the first data message of a stream (fxi_input_open's source) is: FX_IMAGE or FX_ACQUISITION, 0 where none comes; reads ahead as far
 * as that. For a source that is no stream: FX_ACQUISITION.
 */
int fxi_mrd_stream_kinds(fxi_source *source, fx_error *err, unsigned *kinds);

/* The two kinds, for fxi_input_open and for tests. */

int fxi_mrd_hdf5_open(const char *path, const char *group, fx_error *err, fxi_source **out);
/**
 * A stream from a descriptor, which the source closes where own_fd (on failure it stays the caller's). `name` is for messages; the n_prefix bytes (at most 64)
 * were read from the descriptor already; total_bytes is the stream's length, 0 where unknown.
 */
int fxi_mrd_stream_open(int fd, bool own_fd, const char *name, const void *prefix, size_t n_prefix, int64_t total_bytes,
	fx_error *err, fxi_source **out);

#endif

/* SPDX-License-Identifier: MIT */
/* mrd_hdf5_write.h - raw scans as MRD HDF5 files, in the layout that libismrmrd writes and reads. */
#ifndef FORNIX_IO_MRD_HDF5_WRITE_H
#define FORNIX_IO_MRD_HDF5_WRITE_H

#include <fornix/message.h>

typedef struct fxi_raw_writer fxi_raw_writer;

/**
 * Starts a file with group `dataset`; it appears under `path` at commit, whole. header_xml is stored as it is.
 * FX_EIO where the folder cannot be written to.
 */
int fxi_raw_writer_open(const char *path, const char *header_xml, fx_error *err, fxi_raw_writer **out);
/**
 * Adds one readout (borrowed; its arrays are shared until they are written). head, data (cf32 {samples, coils}) and traj
 * (f32 {dims, samples} or NULL) must agree: FX_EINVAL names the field where they do not.
 */
int fxi_raw_writer_add(fxi_raw_writer *w, const fx_acquisition *acquisition, fx_error *err);
int fxi_raw_writer_add_waveform(fxi_raw_writer *w, const fx_waveform *waveform, fx_error *err);
/** Finishes the file and renames it into place; ends the writer's life, also on failure (nothing is left then). */
int fxi_raw_writer_commit(fxi_raw_writer *w, fx_error *err);
/** Removes what was written; ends the writer's life. NULL is fine. */
void fxi_raw_writer_abandon(fxi_raw_writer *w);

#endif

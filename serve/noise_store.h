/* SPDX-License-Identifier: MIT */
/*
 * noise_store.h - noise covariances on disk by measurement id, for scans to come: checked files that appear whole or not at
 * all, bounded in bytes and number, gone after a while. A file's name is the digest of its id, so that an id can be any text
 * and no folder tells whose scan it was. One process writes; a restart finds what was there.
 */
#ifndef FORNIX_SERVE_NOISE_STORE_H
#define FORNIX_SERVE_NOISE_STORE_H

#include <fornix/gadget.h>

typedef struct fxi_noise_files fxi_noise_files;

typedef struct fxi_noise_bounds {
	int64_t bytes, count; /**< of all that is kept; the longest unused goes first */
	double expiry_s;      /**< since it was measured; a covariance of an hour ago is one of another state of the coils */
} fxi_noise_bounds;

/** Opens a folder, made with its parents where missing, and removes what has expired or does not fit. FX_EIO, FX_ENOMEM. */
int fxi_noise_files_open(const char *folder, const fxi_noise_bounds *bounds, fx_error *err, fxi_noise_files **out);
void fxi_noise_files_free(fxi_noise_files *f);
/**
 * noise->covariance (the caller's, fx_noise_clear) stays NULL with FX_OK where none is kept, or it expired. FX_EDATA: the file
 * was damaged and has been removed. FX_EIO, FX_ENOMEM.
 */
int fxi_noise_files_get(fxi_noise_files *f, const char *measurement_id, fx_error *err, fx_noise *noise);
/** Replaces what was kept under that id. FX_EINVAL for an id that is empty or longer than 1000 bytes; FX_EDATA, FX_EIO, FX_ENOMEM. */
int fxi_noise_files_put(fxi_noise_files *f, const char *measurement_id, const fx_noise *noise, fx_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* noise_blob.h - a noise covariance in memory behind a descriptor, to be handed from one process to another. */
#ifndef FORNIX_SERVE_NOISE_BLOB_H
#define FORNIX_SERVE_NOISE_BLOB_H

#include <fornix/gadget.h>

/** More coils than this no receiver has; it bounds what the supervisor takes from a worker (16 MiB). */
#define FXI_NOISE_MAX_COILS 1024

/** A new descriptor (the caller's) with the covariance and what belongs to it. FX_EINVAL, FX_EIO. */
int fxi_noise_blob_write(const fx_noise *noise, fx_error *err, int *fd);
/** The other way round: *noise is the caller's (fx_noise_clear). FX_EDATA where it is no covariance. fd stays open. */
int fxi_noise_blob_read(int fd, fx_error *err, fx_noise *noise);
/** FX_EDATA, explained, where this is no covariance: not square, not finite, negative on its diagonal. */
int fxi_noise_check(const fx_noise *noise, fx_error *err);

#endif

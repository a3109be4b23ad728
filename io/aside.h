/* SPDX-License-Identifier: MIT */
/*
 * aside.h - products appear whole or not at all: written beside their final place under a hidden name, renamed at the end.
 */
#ifndef FORNIX_IO_ASIDE_H
#define FORNIX_IO_ASIDE_H

#include <fornix/base.h>
#include <stdio.h>

typedef struct fxi_aside {
	char *final;  /**< where the file is to appear, as the user named it */
	char *temp;   /**< where it is being written: ".NAME.PID-N.part" in the same folder */
	int fd;       /**< open for writing; -1 once closed */
} fxi_aside;

/** Creates the hidden file (permissions by the umask). FX_EIO names the final path and the system's reason. */
int fxi_aside_open(const char *path, fx_error *err, fxi_aside **out);
/** Writes all of `bytes`; FX_EIO with the reason (disk full, ...). */
int fxi_aside_write(fxi_aside *a, const void *data, size_t bytes, fx_error *err);
/** Syncs, closes, renames into place. Frees `a`, also on failure (the hidden file is then gone). */
int fxi_aside_commit(fxi_aside *a, fx_error *err);
/** Removes the hidden file and frees `a`. NULL is fine. */
void fxi_aside_abandon(fxi_aside *a);

#endif

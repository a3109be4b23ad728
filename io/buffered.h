/* SPDX-License-Identifier: MIT */
/* buffered.h - a file written aside (aside.h) through a buffer, a few bytes at a time, with fields that are known last. */
#ifndef FORNIX_IO_BUFFERED_H
#define FORNIX_IO_BUFFERED_H

#include "aside.h"

typedef struct fxi_buffered {
	fxi_aside *file;
	int64_t bytes;   /**< given so far */
	size_t waiting;  /**< of them in the buffer */
	char buffer[1 << 16];
} fxi_buffered;

/** As fxi_aside_open. */
int fxi_buffered_open(const char *path, fx_error *err, fxi_buffered **out);
/** Appends; FX_EIO with the reason (disk full, ...). */
int fxi_buffered_write(fxi_buffered *b, const void *data, size_t bytes, fx_error *err);
/** Everything given so far reaches the file. */
int fxi_buffered_flush(fxi_buffered *b, fx_error *err);
/** Writes over what is already there at `offset`. */
int fxi_buffered_patch(fxi_buffered *b, int64_t offset, const void *data, size_t bytes, fx_error *err);
/** Appends all of another one, which stays open. */
int fxi_buffered_append(fxi_buffered *b, fxi_buffered *from, fx_error *err);
/** As fxi_aside_commit: frees b, also on failure. */
int fxi_buffered_commit(fxi_buffered *b, fx_error *err);
/** As fxi_aside_abandon; NULL is fine. */
void fxi_buffered_abandon(fxi_buffered *b);

#endif

/* SPDX-License-Identifier: MIT */
/* buffered.c - see buffered.h. */
#include "buffered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fxi_buffered_open(const char *path, fx_error *err, fxi_buffered **out)
{
	fxi_buffered *b = malloc(sizeof *b);
	int status;

	*out = NULL;
	if (!b)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	b->bytes = 0;
	b->waiting = 0;
	status = fxi_aside_open(path, err, &b->file);
	if (status != FX_OK) {
		free(b);
		return status;
	}
	*out = b;
	return FX_OK;
}

int fxi_buffered_flush(fxi_buffered *b, fx_error *err)
{
	size_t n = b->waiting;

	b->waiting = 0;
	return fxi_aside_write(b->file, b->buffer, n, err);
}

int fxi_buffered_write(fxi_buffered *b, const void *data, size_t bytes, fx_error *err)
{
	int status = FX_OK;

	if (bytes > sizeof b->buffer - b->waiting)
		status = fxi_buffered_flush(b, err);
	if (status == FX_OK && bytes > sizeof b->buffer) {
		status = fxi_aside_write(b->file, data, bytes, err);
	} else if (status == FX_OK) {
		memcpy(b->buffer + b->waiting, data, bytes);
		b->waiting += bytes;
	}
	b->bytes += (int64_t)bytes;
	return status;
}

int fxi_buffered_patch(fxi_buffered *b, int64_t offset, const void *data, size_t bytes, fx_error *err)
{
	const char *from = data;
	int status = fxi_buffered_flush(b, err);

	while (status == FX_OK && bytes > 0) {
		ssize_t n = pwrite(b->file->fd, from, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fx_error_set(err, FX_EIO, "cannot write %s: %s", b->file->final, strerror(errno));
		from += n;
		offset += n;
		bytes -= (size_t)n;
	}
	return status;
}

int fxi_buffered_append(fxi_buffered *b, fxi_buffered *from, fx_error *err)
{
	char block[1 << 14];
	int64_t done = 0;
	int status = fxi_buffered_flush(from, err);

	while (status == FX_OK && done < from->bytes) {
		ssize_t n = pread(from->file->fd, block, sizeof block, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fx_error_set(err, FX_EIO, "cannot read back what belongs into %s: %s", b->file->final,
				n < 0 ? strerror(errno) : "it is shorter than what was written");
		status = fxi_buffered_write(b, block, (size_t)n, err);
		done += n;
	}
	return status;
}

int fxi_buffered_commit(fxi_buffered *b, fx_error *err)
{
	int status = fxi_buffered_flush(b, err);

	if (status == FX_OK)
		status = fxi_aside_commit(b->file, err);
	else
		fxi_aside_abandon(b->file);
	free(b);
	return status;
}

void fxi_buffered_abandon(fxi_buffered *b)
{
	if (b)
		fxi_aside_abandon(b->file);
	free(b);
}

/* SPDX-License-Identifier: MIT */
/*
 * aside.c - see aside.h. The hidden file lies in the final folder, since rename is atomic only within a file system;
 * its data are synced before the rename, so that a power cut leaves the old file or the new one, never an empty one.
 */
#include "aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int io_failed(fx_error *err, const char *path, const char *doing)
{
	int reason = errno;

	return fx_error_set(err, FX_EIO, "cannot %s %s: %s", doing, path, strerror(reason));
}

/* Folder part of a path with its slash, "" for the working folder. */
static int folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) + 1 : 0;
}

int fxi_aside_open(const char *path, fx_error *err, fxi_aside **out)
{
	static unsigned counter;
	fxi_aside *a = calloc(1, sizeof *a);
	int folder = folder_length(path), status;

	*out = NULL;
	if (!a || !(a->final = strdup(path))) {
		free(a);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	a->fd = -1;
	do {
		unsigned n = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);

		free(a->temp);
		if (asprintf(&a->temp, "%.*s.%s.%ld-%u.part", folder, path, path + folder, (long)getpid(), n) < 0) {
			a->temp = NULL;
			fxi_aside_abandon(a);
			return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
		}
		a->fd = open(a->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (a->fd < 0 && errno == EEXIST);
	if (a->fd < 0) {
		status = io_failed(err, path, "write");
		free(a->temp);
		a->temp = NULL;
		fxi_aside_abandon(a);
		return status;
	}
	*out = a;
	return FX_OK;
}

int fxi_aside_write(fxi_aside *a, const void *data, size_t bytes, fx_error *err)
{
	const char *p = data;

	while (bytes > 0) {
		ssize_t n = write(a->fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return io_failed(err, a->final, "write");
		p += n;
		bytes -= (size_t)n;
	}
	return FX_OK;
}

/* The rename itself must reach the disk too. A folder that cannot be opened or synced is no reason to fail. */
static void sync_folder(const char *path)
{
	char *folder = strndup(path, (size_t)folder_length(path));
	int fd;

	if (!folder)
		return;
	fd = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(folder);
}

int fxi_aside_commit(fxi_aside *a, fx_error *err)
{
	int status = FX_OK;

	/* Some file systems report a full disk only here, at sync or at close. */
	if (fsync(a->fd) != 0 && errno != EINVAL && errno != EROFS)
		status = io_failed(err, a->final, "write");
	if (close(a->fd) != 0 && status == FX_OK)
		status = io_failed(err, a->final, "write");
	a->fd = -1;
	if (status == FX_OK && rename(a->temp, a->final) != 0)
		status = io_failed(err, a->final, "replace");
	if (status == FX_OK) {
		sync_folder(a->final);
		free(a->temp);
		a->temp = NULL;
	}
	fxi_aside_abandon(a);
	return status;
}

void fxi_aside_abandon(fxi_aside *a)
{
	if (!a)
		return;
	if (a->fd >= 0)
		close(a->fd);
	if (a->temp) {
		unlink(a->temp);
		free(a->temp);
	}
	free(a->final);
	free(a);
}

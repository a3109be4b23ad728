/* SPDX-License-Identifier: MIT */
/* digest.c - see digest.h. */
#include "digest.h"

#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHOLE_BYTES ((off_t)1 << 30)
#define END_BYTES ((off_t)1 << 20)

/* Feeds [from, to) of the file; false where it cannot be read to there. */
static bool feed(GChecksum *sum, int fd, off_t from, off_t to, unsigned char *buffer, size_t size)
{
	while (from < to) {
		size_t want = to - from < (off_t)size ? (size_t)(to - from) : size;
		ssize_t n = pread(fd, buffer, want, from);

		if (n <= 0)
			return false;
		g_checksum_update(sum, buffer, n);
		from += n;
	}
	return true;
}

static bool feed_file(GChecksum *sum, int fd, off_t bytes, bool whole)
{
	size_t size = 1u << 20;
	unsigned char *buffer = malloc(size), length[8];
	bool ok = buffer != NULL;

	if (ok && whole) {
		ok = feed(sum, fd, 0, bytes, buffer, size);
	} else if (ok) {
		for (int i = 0; i < 8; i++)
			length[i] = (unsigned char)((uint64_t)bytes >> (8 * i));
		g_checksum_update(sum, length, 8);
		ok = feed(sum, fd, 0, END_BYTES, buffer, size) &&
			feed(sum, fd, bytes - END_BYTES, bytes, buffer, size);
	}
	free(buffer);
	return ok;
}

char *fxi_file_digest(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GChecksum *sum;
	struct stat s;
	char *text = NULL;

	if (fd < 0)
		return NULL;
	sum = g_checksum_new(G_CHECKSUM_SHA256);
	if (fstat(fd, &s) == 0 && feed_file(sum, fd, s.st_size, s.st_size < WHOLE_BYTES) &&
	    asprintf(&text, "%s:%s", s.st_size < WHOLE_BYTES ? "sha256" : "sha256-size-ends",
		     g_checksum_get_string(sum)) < 0)
		text = NULL;
	g_checksum_free(sum);
	close(fd);
	return text;
}

/* SPDX-License-Identifier: MIT */
/* digest.h - says which input a run had. */
#ifndef FORNIX_IO_DIGEST_H
#define FORNIX_IO_DIGEST_H

#include <fornix/base.h>

/**
 * "sha256:HEX" of a file's bytes; from 1 GiB on "sha256-size-ends:HEX", of the size (64 bits, little-endian) and the first
 * and last MiB, since reading it all would delay the run. NULL where the file cannot be read. Free with free().
 */
char *fxi_file_digest(const char *path);

#endif

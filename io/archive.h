/* SPDX-License-Identifier: MIT */
/* archive.h - the files of a zip archive (stored or deflated, zip64 too) or of a folder, each read as a stream. */
#ifndef FORNIX_IO_ARCHIVE_H
#define FORNIX_IO_ARCHIVE_H

#include <fornix/base.h>

typedef struct fxi_archive_entry {
	char *name;             /**< "dps/seed.uint32" */
	int64_t bytes, packed;  /**< its size, and that within the archive */
	int64_t at;             /**< of its local header; -1 in a folder */
	int method;             /**< 0 stored, 8 deflated */
	uint32_t crc;
} fxi_archive_entry;

typedef struct fxi_archive {
	char *path;
	bool is_folder;
	fxi_archive_entry *entries;
	int64_t n;
} fxi_archive;

/** Lists it. FX_EDATA where the archive is damaged or cut short, FX_EIO, FX_ENOMEM; explained. */
int fxi_archive_open(const char *path, fx_error *err, fxi_archive **out);
/** NULL is fine. */
void fxi_archive_close(fxi_archive *a);
/** The entry of that name, or NULL. */
const fxi_archive_entry *fxi_archive_find(const fxi_archive *a, const char *name);

typedef struct fxi_entry_stream fxi_entry_stream;
/** Opens one for reading from its start; the archive must outlive it. FX_ENOTSUP for other compressions. */
int fxi_entry_open(const fxi_archive *a, const fxi_archive_entry *e, fx_error *err, fxi_entry_stream **out);
/**
 * Reads exactly `bytes`. FX_EDATA where there are fewer; and with the entry's last byte, where its checksum is not the
 * archive's: the file is damaged.
 */
int fxi_entry_read(fxi_entry_stream *s, void *to, size_t bytes, fx_error *err);
/** NULL is fine. */
void fxi_entry_close(fxi_entry_stream *s);

#endif

/* SPDX-License-Identifier: MIT */
/* h5_disk.c - see h5_disk.h. */
#include "h5_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

struct fxi_h5_patch {
	struct fxi_h5_patch *next;
	haddr_t at;
	size_t bytes;
	unsigned char data[];
};

/* What HDF5 holds for an open file; its own part comes first. */
struct handle {
	H5FD_t pub;
	fxi_h5_disk *disk;
	haddr_t end_of_address;
};

struct settings {
	fxi_h5_disk *disk;
};

static fxi_h5_disk *disk_of(const H5FD_t *file)
{
	return ((const struct handle *)file)->disk;
}

static H5FD_t *open_handle(const char *name, unsigned flags, hid_t access, haddr_t max)
{
	const struct settings *settings = H5Pget_driver_info(access);
	struct handle *h = settings ? calloc(1, sizeof *h) : NULL;

	(void)name;
	(void)max;
	if (!h)
		return NULL;
	h->disk = settings->disk;
	if (flags & H5F_ACC_TRUNC)
		h->disk->end = 0;
	return &h->pub;
}

static herr_t close_handle(H5FD_t *file)
{
	free(file);
	return 0;
}

static herr_t query(const H5FD_t *file, unsigned long *flags)
{
	(void)file;
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
		H5FD_FEAT_AGGREGATE_SMALLDATA;
	return 0;
}

static haddr_t get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return ((const struct handle *)file)->end_of_address;
}

static herr_t set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t at)
{
	(void)type;
	((struct handle *)file)->end_of_address = at;
	return 0;
}

static haddr_t get_eof(const H5FD_t *file, H5FD_mem_t type)
{
	(void)type;
	return disk_of(file)->end;
}

static herr_t read_file(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t bytes, void *to)
{
	const fxi_h5_disk *d = disk_of(file);
	unsigned char *p = to;
	size_t done = 0;

	(void)type;
	(void)transfer;
	while (done < bytes) {
		ssize_t n = pread(d->fd, p + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	memset(p + done, 0, bytes - done);
	for (const struct fxi_h5_patch *patch = d->patches; patch; patch = patch->next) {
		haddr_t from = patch->at > at ? patch->at : at, patch_end = patch->at + patch->bytes;
		haddr_t to_here = patch_end < at + bytes ? patch_end : at + bytes;

		if (from < to_here)
			memcpy(p + (from - at), patch->data + (from - patch->at), (size_t)(to_here - from));
	}
	return 0;
}

/* Without memory for it, HDF5 has to be told after all. */
static herr_t keep(fxi_h5_disk *d, haddr_t at, const void *data, size_t bytes)
{
	struct fxi_h5_patch *patch = malloc(sizeof *patch + bytes), **end = &d->patches;

	if (!patch)
		return -1;
	while (*end)
		end = &(*end)->next;
	patch->next = NULL;
	patch->at = at;
	patch->bytes = bytes;
	memcpy(patch->data, data, bytes);
	*end = patch;
	return 0;
}

static herr_t write_file(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t bytes, const void *data)
{
	fxi_h5_disk *d = disk_of(file);
	const unsigned char *p = data;
	size_t done = 0;

	(void)type;
	(void)transfer;
	/* Patches cover what is on the disk, so after the first one everything has to become a patch. */
	while (done < bytes && d->failed == 0) {
		ssize_t n = pwrite(d->fd, p + done, bytes - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			d->failed = n < 0 ? errno : ENOSPC;
		else
			done += (size_t)n;
	}
	if (at + bytes > d->end)
		d->end = at + bytes;
	return done < bytes ? keep(d, at + done, p + done, bytes - done) : 0;
}

static herr_t truncate_file(H5FD_t *file, hid_t transfer, hbool_t closing)
{
	struct handle *h = (struct handle *)file;
	fxi_h5_disk *d = h->disk;

	(void)transfer;
	(void)closing;
	if (h->end_of_address != d->end) {
		if (d->failed == 0 && ftruncate(d->fd, (off_t)h->end_of_address) != 0)
			d->failed = errno;
		d->end = h->end_of_address;
	}
	return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
	.version = H5FD_CLASS_VERSION,
	.value = (H5FD_class_value_t)513,   /* from the range that HDF5 leaves to others */
#endif
	.name = "fornix",
	.maxaddr = (haddr_t)INT64_MAX,
	.fc_degree = H5F_CLOSE_WEAK,
	.fapl_size = sizeof(struct settings),
	.open = open_handle,
	.close = close_handle,
	.query = query,
	.get_eoa = get_eoa,
	.set_eoa = set_eoa,
	.get_eof = get_eof,
	.read = read_file,
	.write = write_file,
	.truncate = truncate_file,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t fxi_h5_disk_access(fxi_h5_disk *disk)
{
	const struct settings settings = {disk};
	hid_t access = fxi_h5_access(), id = H5FDregister(&driver);

	/* The properties, and later the file, hold the driver: it goes with the last of them. */
	if (access >= 0 && (id < 0 || H5Pset_driver(access, id, &settings) < 0))
		fxi_h5_close(&access);
	fxi_h5_close(&id);
	return access;
}

void fxi_h5_disk_clear(fxi_h5_disk *disk)
{
	while (disk->patches) {
		struct fxi_h5_patch *next = disk->patches->next;

		free(disk->patches);
		disk->patches = next;
	}
}

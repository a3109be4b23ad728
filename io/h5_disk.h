/* SPDX-License-Identifier: MIT */
/*
 * h5_disk.h - a file driver for HDF5 that survives a full disk.
 *
 * HDF5 1.10 crashes, or loops at exit, when writes fail while a file is being closed. This driver tells HDF5 that all is
 * well: what the disk does not take is kept in memory until the file is closed, and the failure is remembered for us.
 */
#ifndef FORNIX_IO_H5_DISK_H
#define FORNIX_IO_H5_DISK_H

#include "h5.h"

typedef struct fxi_h5_disk {
	int fd;                      /**< where the file goes; not closed here */
	int failed;                  /**< errno of the first write that failed; 0 while all went well */
	haddr_t end;                 /**< size of the file as HDF5 sees it */
	struct fxi_h5_patch *patches; /**< what the disk did not take, newest last */
} fxi_h5_disk;

/** File access properties that make H5Fcreate write through `disk`, which must outlive the file. Negative on failure. */
hid_t fxi_h5_disk_access(fxi_h5_disk *disk);
/** Frees what was kept; after the file is closed. */
void fxi_h5_disk_clear(fxi_h5_disk *disk);

#endif

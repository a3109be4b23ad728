/* SPDX-License-Identifier: MIT */
/* table_read.h - numbers in rows and columns, from text or from an MRD file's trajectories. */
#ifndef FORNIX_IO_TABLE_READ_H
#define FORNIX_IO_TABLE_READ_H

#include <fornix/array.h>

/** See fx_read_table. */
int fxi_table_read(const char *path, fx_error *err, fx_array **values, fx_array **lengths);

#endif

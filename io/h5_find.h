/* SPDX-License-Identifier: MIT */
/* h5_find.h - which groups of an HDF5 file hold MRD data, and what else there is, for messages. */
#ifndef FORNIX_IO_H5_FIND_H
#define FORNIX_IO_H5_FIND_H

#include "h5.h"

enum fxi_h5_holds { FXI_H5_RAW = 1, FXI_H5_IMAGES };

/** Opens without locks and for reading only; *file is negative on failure. */
int fxi_h5_open_file(const char *path, fx_error *err, hid_t *file);

/**
 * Opens the group called `group`, or where NULL the only one that holds what is wanted: `xml` and `data` (raw), or image
 * series (`header` and `data` in a group of their own). Otherwise FX_EINVAL or FX_EDATA: lists what is there and says
 * what the file looks like. *name (free with free()) is the path of what was opened, without the first slash.
 */
int fxi_h5_open_group(hid_t file, const char *path, const char *group, int holds, fx_error *err, hid_t *id, char **name);

/** True where `name` is a group with an MRD image series in it: `header` and `data`. */
bool fxi_h5_is_series(hid_t parent, const char *name);
/** True where `name` is a direct member of the group and not a link out of the file. */
bool fxi_h5_has(hid_t group, const char *name);

#endif

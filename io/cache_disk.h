/* SPDX-License-Identifier: MIT */
/* cache_disk.h - the cache's folder: one checked file an array, markers of keys seen once, the bound on their sum. */
#ifndef FORNIX_IO_CACHE_DISK_H
#define FORNIX_IO_CACHE_DISK_H

#include <fornix/array.h>

/**
 * Loads the array kept under `key`. *out stays NULL with FX_OK where there is none. FX_EDATA: the file was damaged and has
 * been removed, *err says how. FX_EIO: it is there but cannot be read. FX_ENOMEM.
 */
int fxi_cache_load(const char *folder, const char *key, fx_error *err, fx_array **out);
/** Writes it whole or not at all, replacing what is there. FX_EIO with the reason. */
int fxi_cache_store(const char *folder, const char *key, const fx_array *array, fx_error *err);
/** True where an array is on disk under this key, damaged or not. */
bool fxi_cache_stored(const char *folder, const char *key);
/** Marks a key as put once; *before tells whether it already was. Makes the folder. FX_EIO with the reason. */
int fxi_cache_mark(const char *folder, const char *key, fx_error *err, bool *before);
/** Removes the longest unused arrays until the rest, `keep` among them, holds at most max_bytes; and stale leftovers. */
void fxi_cache_trim(const char *folder, int64_t max_bytes, const char *keep);

#endif

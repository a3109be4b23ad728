/* SPDX-License-Identifier: MIT */
/*
 * cache.h - arrays that are dear to compute (a trajectory's Toeplitz kernel) kept across frames and runs.
 *
 * In memory from the first `put` on, within a bound, the longest unused going first. On disk from the second use of a key:
 * the first `get` that finds it in memory, or a `put` of a key that an earlier run has put too (a small KEY.seen file
 * remembers it). So a trajectory that never comes again leaves nothing large behind. Disk files are checked when loaded,
 * removed when damaged, and the longest unused are removed when all together exceed the bound. Several processes may
 * share a folder. What goes wrong on disk is a warning, once, and the cache goes on in memory alone.
 */
#ifndef FORNIX_IO_CACHE_H
#define FORNIX_IO_CACHE_H

#include "stream/services.h"

#define FXI_CACHE_DEFAULT_BYTES (INT64_C(4) << 30)

/**
 * A cache in `folder` (NULL: fornix in $XDG_CACHE_HOME, else ~/.cache/fornix), which is made when first written to and
 * holds at most max_bytes. Safe from any thread. Set `warn` before use; release with its `close`. FX_ENOMEM.
 */
int fxi_cache_open(const char *folder, int64_t max_bytes, fx_error *err, fxi_cache **out);

#endif

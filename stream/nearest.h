/* SPDX-License-Identifier: MIT */
/* nearest.h - the known name that a misspelt one was probably meant to be. */
#ifndef FORNIX_STREAM_NEAREST_H
#define FORNIX_STREAM_NEAREST_H

#include <stdint.h>

/**
 * Edits (insert, delete, replace, swap of neighbours) that turn a into b, letter case aside: Damerau 1964 in the
 * form that touches no letter twice. -1 where either is longer than 64 bytes.
 */
int fxi_edit_distance(const char *a, const char *b);

/**
 * The nearest of n names, or NULL where none is near enough to be worth suggesting: within a third of the longer
 * name's letters, else one that begins like the wanted name. NULL entries are skipped; the first of equals wins.
 */
const char *fxi_nearest_name(const char *wanted, const char *const *names, int64_t n);

#endif

/* SPDX-License-Identifier: MIT */
/* check_scan.h - `fornix check` of a raw scan. */
#ifndef FORNIX_APPS_CHECK_SCAN_H
#define FORNIX_APPS_CHECK_SCAN_H

#include <stdbool.h>

/** True where the name is that of a file which is not XML, or standard input: not a pipeline. */
bool fxi_check_is_scan(const char *name);
/** Prints what a scan holds and what is right and wrong with it; the exit status: 1 where something is refused. */
int fxi_check_scan(const char *path, const char *group);

#endif

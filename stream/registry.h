/* SPDX-License-Identifier: MIT */
/* registry.h - which gadgets there are, and the plugins behind them. */
#ifndef FORNIX_STREAM_REGISTRY_H
#define FORNIX_STREAM_REGISTRY_H

#include <fornix/gadget.h>

typedef struct fxi_registry fxi_registry;

/** Folders are searched in order; `folders` ends with NULL. The library's own folder (beside libfornix) comes first. */
int fxi_registry_new(const char *const *folders, fx_error *err, fxi_registry **out);
void fxi_registry_free(fxi_registry *r);
/** The descriptor of that name, loading its plugin on first use. FX_EINVAL with the nearest name where unknown. */
int fxi_registry_find(fxi_registry *r, const char *name, fx_error *err, const fx_gadget **out);
/** Registers a descriptor that is linked in (tests). */
int fxi_registry_add(fxi_registry *r, const fx_gadget *gadget, fx_error *err);
/** All names, sorted; free with g_strfreev. */
char **fxi_registry_names(fxi_registry *r);
/** Folder that holds libfornix, and the data folder (pipelines) that belongs to it. Free with free(). */
char *fxi_library_folder(void);
char *fxi_data_folder(void);

#endif

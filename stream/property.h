/* SPDX-License-Identifier: MIT */
/* property.h - texts into the fields of a gadget's state, by its table. */
#ifndef FORNIX_STREAM_PROPERTY_H
#define FORNIX_STREAM_PROPERTY_H

#include <fornix/property.h>

/** Entries before FX_PROP_END; 0 for NULL. */
int64_t fxi_properties_count(const fx_prop *props);
/** The entry of that name, or NULL. */
const fx_prop *fxi_property_find(const fx_prop *props, const char *name);
/** The name in the table that `name` was probably meant to be, or NULL. */
const char *fxi_property_nearest(const fx_prop *props, const char *name);

/** "bool", "int", "float", "double", "string", "path", "enum". */
const char *fxi_property_type_name(int type);
/** What a value may be, for help and errors: "a number from 0 to 16", "one of direct, nufft", "true or false". */
void fxi_property_allowed(const fx_prop *prop, char *text, size_t size);

/**
 * Parses `text` into the property's field in `state`. *keep is the text in force (a path made absolute to `folder`
 * where that is not NULL), replaced and owned by the caller: string and path fields point to it. A wrong text leaves
 * field and *keep as they were and gives FX_EINVAL, with name, value, what is allowed and the nearest word in *err.
 */
int fxi_property_set(const fx_prop *prop, void *state, const char *text, const char *folder, char **keep,
	fx_error *err);

/** Checks a plugin's table itself: types, words, ranges, offsets, and that every default parses. */
int fxi_properties_check(const fx_prop *props, size_t state_size, fx_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/* json_file.h - a JSON document into a file that appears whole or not at all. */
#ifndef FORNIX_APPS_JSON_FILE_H
#define FORNIX_APPS_JSON_FILE_H

#include <fornix/base.h>
#include <json-glib/json-glib.h>

/** Writes `root` (borrowed), indented, aside and renames it to `path`. FX_EIO, explained. */
int fxi_json_write(JsonNode *root, const char *path, fx_error *err);

/** Prints what was built, indented, on stdout, and releases the builder. */
void fxi_json_print(JsonBuilder *builder);

#endif

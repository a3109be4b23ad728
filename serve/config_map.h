/* SPDX-License-Identifier: MIT */
/*
 * config_map.h - which pipeline a client's configuration name stands for. The site's map decides first, then its folder of
 * pipelines, then the shipped ones; a name that is none of these gets the site's default, where there is one, or is refused. A
 * client names; it never reaches a path of its own choice.
 */
#ifndef FORNIX_SERVE_CONFIG_MAP_H
#define FORNIX_SERVE_CONFIG_MAP_H

#include "stream/pipeline.h"

typedef struct fxi_config_map fxi_config_map;

/** What a name came to. */
typedef struct fxi_config_choice {
	char *file;               /**< the pipeline's file */
	char **settings;          /**< GADGET.PROPERTY=VALUE, ends with NULL */
	int64_t host_bytes, gpu_bytes; /**< what a session of it takes; negative: the server's default */
	bool by_default;          /**< the name is unknown, the site's default was taken */
} fxi_config_choice;

/**
 * file: the map, or NULL; folder: the site's pipelines, or NULL; fallback: the pipeline for unknown names (a shipped one's name, one in
 * the folder, or a path), or NULL. FX_EIO, FX_EINVAL (a file that is no map, an entry whose pipeline is not there) name file and entry.
 */
int fxi_config_map_open(const char *file, const char *folder, const char *fallback, fx_error *err, fxi_config_map **out);
void fxi_config_map_free(fxi_config_map *map);
/** FX_EINVAL, with the name, for one that is refused or unknown. */
int fxi_config_map_find(const fxi_config_map *map, const char *name, fx_error *err, fxi_config_choice *out);
void fxi_config_choice_clear(fxi_config_choice *choice);
/** Why a client's name is not even looked up ("it has a slash"), or NULL. */
const char *fxi_config_name_fault(const char *name);
/** "512M", "8G", "1000000" into bytes; false for anything else. */
bool fxi_parse_bytes(const char *text, int64_t *bytes);

#endif

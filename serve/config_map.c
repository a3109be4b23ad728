/* SPDX-License-Identifier: MIT */
/*
 * config_map.c - the map is a key file: [names] NAME=PIPELINE, with * for whatever is not named; and for a pipeline, as it is written
 * there, a group of its own with memory, gpu-memory and set.
 */
#include "config_map.h"

#include "stream/nearest.h"
#include "stream/registry.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#define NAMES "names"

struct fxi_config_map {
	char *file;     /* or NULL */
	GKeyFile *keys; /* never NULL */
	char *base;     /* the map's folder, for relative paths in it */
	char *folder, *fallback;
	char *shipped;  /* folder of the shipped pipelines */
};

bool fxi_parse_bytes(const char *text, int64_t *bytes)
{
	static const char units[] = "KMGT";
	char *end;
	long long number = g_ascii_strtoll(text, &end, 10);
	const char *unit = *end ? strchr(units, g_ascii_toupper(*end)) : NULL;
	int64_t value = (int64_t)number;

	if (end == text || number < 0 || (*end && (!unit || end[1])))
		return false;
	for (long i = 0; unit && i <= unit - units; i++)
		if (!fx_mul_size(value, 1024, &value))
			return false;
	*bytes = value;
	return true;
}

const char *fxi_config_name_fault(const char *name)
{
	if (strchr(name, '/') || strchr(name, '\\'))
		return "it has a slash, and a client may name a configuration, not a path";
	if (name[0] == '.')
		return "it begins with a dot";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return "it has a control character";
	if (!g_utf8_validate(name, -1, NULL))
		return "it is no UTF-8";
	return strlen(name) > 255 ? "it is longer than 255 bytes" : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* FOLDER/NAME or FOLDER/NAME.xml, where it is a file; else NULL. */
static char *in_folder(const char *folder, const char *name)
{
	static const char *const endings[] = {"", ".xml"};

	for (size_t i = 0; folder && *name && i < G_N_ELEMENTS(endings); i++) {
		char *leaf = g_strconcat(name, endings[i], NULL), *path = g_build_filename(folder, leaf, NULL);

		g_free(leaf);
		if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
			return path;
		g_free(path);
	}
	return NULL;
}

/* What the site wrote: a path, one of its pipelines, or a shipped one. */
static char *site_file(const fxi_config_map *map, const char *pipeline)
{
	char *path = in_folder(map->folder, pipeline);

	if (!path)
		path = g_path_is_absolute(pipeline) ? in_folder("/", pipeline) : in_folder(map->base, pipeline);
	return path ? path : in_folder(map->shipped, pipeline);
}

static int no_such(const fxi_config_map *map, const char *name, const char *pipeline, fx_error *err)
{
	if (map->file && strcmp(name, "--default") != 0)
		return fx_error_set(err, FX_EINVAL, "%s: '%.200s' stands for '%.200s', and there is no such pipeline", map->file, name,
			pipeline);
	return fx_error_set(err, FX_EINVAL, "%.200s: there is no pipeline '%.200s'", name, pipeline);
}

/* ---- the map --------------------------------------------------------------------------------- */

static int read_sizes(const fxi_config_map *map, const char *group, fx_error *err, fxi_config_choice *out)
{
	static const char *const names[] = {"memory", "gpu-memory"};
	int64_t *const values[] = {&out->host_bytes, &out->gpu_bytes};

	for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
		char *text = g_key_file_get_string(map->keys, group, names[i], NULL);

		*values[i] = -1;
		if (text && !fxi_parse_bytes(text, values[i])) {
			fx_error_set(err, FX_EINVAL, "%s: [%.200s] %s=%.100s is no size such as 512M or 8G", map->file, group, names[i], text);
			g_free(text);
			return FX_EINVAL;
		}
		g_free(text);
	}
	return FX_OK;
}

/* What the map says of a pipeline, in its group. */
static int read_group(const fxi_config_map *map, const char *group, fx_error *err, fxi_config_choice *out)
{
	int status = read_sizes(map, group, err, out);

	out->settings = g_key_file_get_string_list(map->keys, group, "set", NULL, NULL);
	for (char **s = out->settings; s && *s; s++)
		g_strstrip(*s);
	if (status != FX_OK)
		fxi_config_choice_clear(out);
	return status;
}

static int choose(const fxi_config_map *map, const char *name, const char *pipeline, fx_error *err, fxi_config_choice *out)
{
	out->file = site_file(map, pipeline);
	return out->file ? read_group(map, pipeline, err, out) : no_such(map, name, pipeline, err);
}

static int check_group(const fxi_config_map *map, const char *group, fx_error *err)
{
	char **keys = g_key_file_get_keys(map->keys, group, NULL, NULL);
	int status = FX_OK;

	for (char **k = keys; k && *k && status == FX_OK; k++)
		if (strcmp(*k, "memory") != 0 && strcmp(*k, "gpu-memory") != 0 && strcmp(*k, "set") != 0)
			status = fx_error_set(err, FX_EINVAL, "%s: [%.200s] has '%.100s'; a pipeline has memory, gpu-memory and set", map->file,
				group, *k);
	g_strfreev(keys);
	return status;
}

/* Every entry is looked at when the server starts: a site learns of a slip then, not when a patient lies in the scanner. */
static int check_all(const fxi_config_map *map, fx_error *err)
{
	char **names = g_key_file_get_keys(map->keys, NAMES, NULL, NULL), **groups = g_key_file_get_groups(map->keys, NULL);
	int status = FX_OK;

	for (char **n = names; n && *n && status == FX_OK; n++) {
		char *pipeline = g_key_file_get_string(map->keys, NAMES, *n, NULL);
		fxi_config_choice choice = {0};

		status = choose(map, *n, pipeline ? pipeline : "", err, &choice);
		fxi_config_choice_clear(&choice);
		g_free(pipeline);
	}
	for (char **g = groups; *g && status == FX_OK; g++)
		if (strcmp(*g, NAMES) != 0)
			status = check_group(map, *g, err);
	if (status == FX_OK && map->fallback) {
		fxi_config_choice choice = {0};

		status = choose(map, "--default", map->fallback, err, &choice);
		fxi_config_choice_clear(&choice);
	}
	g_strfreev(names);
	g_strfreev(groups);
	return status;
}

int fxi_config_map_open(const char *file, const char *folder, const char *fallback, fx_error *err, fxi_config_map **out)
{
	fxi_config_map *map = g_new0(fxi_config_map, 1);
	char *data = fxi_data_folder();
	GError *error = NULL;
	int status = FX_OK;

	*out = NULL;
	map->keys = g_key_file_new();
	map->file = g_strdup(file);
	map->base = file ? g_path_get_dirname(file) : g_strdup(".");
	map->folder = g_strdup(folder);
	map->fallback = g_strdup(fallback);
	map->shipped = data ? g_build_filename(data, "pipelines", NULL) : NULL;
	free(data);
	if (folder && !g_file_test(folder, G_FILE_TEST_IS_DIR))
		status = fx_error_set(err, FX_EIO, "%s is no folder of pipelines", folder);
	else if (file && !g_key_file_load_from_file(map->keys, file, G_KEY_FILE_NONE, &error)) {
		status = fx_error_set(err, error->domain == G_FILE_ERROR ? FX_EIO : FX_EINVAL, "%s: %s", file, error->message);
		g_clear_error(&error);
	} else
		status = check_all(map, err);
	if (status != FX_OK)
		fxi_config_map_free(map);
	else
		*out = map;
	return status;
}

void fxi_config_map_free(fxi_config_map *map)
{
	if (!map)
		return;
	g_key_file_free(map->keys);
	g_free(map->file);
	g_free(map->base);
	g_free(map->folder);
	g_free(map->fallback);
	g_free(map->shipped);
	g_free(map);
}

void fxi_config_choice_clear(fxi_config_choice *choice)
{
	g_free(choice->file);
	g_strfreev(choice->settings);
	*choice = (fxi_config_choice){0};
}

/* The site's entry for a name, which clients give with or without .xml. */
static char *entry_of(const fxi_config_map *map, const char *name)
{
	char *pipeline = g_key_file_get_string(map->keys, NAMES, name, NULL), *other;

	if (pipeline || strcmp(name, "*") == 0)
		return pipeline;
	other = g_str_has_suffix(name, ".xml") ? g_strndup(name, strlen(name) - strlen(".xml")) : g_strconcat(name, ".xml", NULL);
	pipeline = *other ? g_key_file_get_string(map->keys, NAMES, other, NULL) : NULL;
	g_free(other);
	return pipeline;
}

static void add_folder(GPtrArray *names, const char *folder)
{
	GDir *dir = folder ? g_dir_open(folder, 0, NULL) : NULL;
	const char *file;

	while (dir && (file = g_dir_read_name(dir)))
		if (g_str_has_suffix(file, ".xml"))
			g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".xml")));
	if (dir)
		g_dir_close(dir);
}

static int unknown(const fxi_config_map *map, const char *name, fx_error *err)
{
	GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
	char **keys = g_key_file_get_keys(map->keys, NAMES, NULL, NULL);
	const char *nearest;

	for (char **k = keys; k && *k; k++)
		g_ptr_array_add(names, g_strdup(*k));
	add_folder(names, map->folder);
	add_folder(names, map->shipped);
	nearest = fxi_nearest_name(name, (const char *const *)names->pdata, (int64_t)names->len);
	fx_error_set(err, FX_EINVAL, "this server has no configuration '%.255s'%s%s%s", name, nearest ? "; the nearest it has is '" : "",
		nearest ? nearest : "", nearest ? "'" : "; the site's map names those it has (`fornix serve --map`)");
	g_strfreev(keys);
	g_ptr_array_free(names, TRUE);
	return FX_EINVAL;
}

int fxi_config_map_find(const fxi_config_map *map, const char *name, fx_error *err, fxi_config_choice *out)
{
	const char *fault = fxi_config_name_fault(name);
	char *pipeline;
	int status;

	*out = (fxi_config_choice){.host_bytes = -1, .gpu_bytes = -1};
	if (fault)
		return fx_error_set(err, FX_EINVAL, "configuration '%.255s' is refused: %s", name, fault);
	pipeline = *name && strcmp(name, "*") != 0 ? entry_of(map, name) : NULL;
	if (pipeline) {
		status = choose(map, name, pipeline, err, out);
		g_free(pipeline);
		return status;
	}
	out->file = in_folder(map->folder, name);
	if (!out->file)
		out->file = in_folder(map->shipped, name);
	if (out->file) {
		char *leaf = g_path_get_basename(out->file);

		status = read_group(map, leaf, err, out);
		g_free(leaf);
		return status;
	}
	pipeline = entry_of(map, "*");
	if (!pipeline)
		pipeline = g_strdup(map->fallback);
	if (!pipeline)
		return unknown(map, name, err);
	status = choose(map, "*", pipeline, err, out);
	out->by_default = status == FX_OK;
	g_free(pipeline);
	return status;
}

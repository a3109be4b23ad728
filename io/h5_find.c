/* SPDX-License-Identifier: MIT */
/*
 * h5_find.c - see h5_find.h. Groups are walked by hand: links that leave the file are not followed, depth and number are
 * bounded, so that a damaged or hostile file cannot keep us busy.
 */
#include "h5_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 8
#define MAX_LINKS 10000
#define MAX_FOUND 64
#define NAME_BYTES 512

struct walk {
	int holds;
	int64_t n_links;
	int n_found;
	char found[MAX_FOUND][NAME_BYTES];
	char top[512];       /* top-level objects, for the message */
	bool jemris, raw, images;
};

int fxi_h5_open_file(const char *path, fx_error *err, hid_t *file)
{
	hid_t access = fxi_h5_access();
	int status = FX_OK;

	*file = -1;
	if (access < 0)
		return fxi_h5_fail(err, FX_ENOMEM, "cannot open %s", path);
	*file = H5Fopen(path, H5F_ACC_RDONLY, access);
	if (*file < 0)
		status = fxi_h5_fail(err, FX_EDATA,
			"%s is an HDF5 file but cannot be opened: it is damaged or was cut short", path);
	fxi_h5_close(&access);
	return status;
}

bool fxi_h5_has(hid_t group, const char *name)
{
	H5L_info_t info;

	if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
		return false;
	return H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

static bool is_type(hid_t group, const char *name, H5I_type_t type)
{
	hid_t id = fxi_h5_has(group, name) ? H5Oopen(group, name, H5P_DEFAULT) : -1;
	bool same = id >= 0 && H5Iget_type(id) == type;

	fxi_h5_close(&id);
	return same;
}

static bool is_raw(hid_t group)
{
	return is_type(group, "xml", H5I_DATASET) && is_type(group, "data", H5I_DATASET);
}

static bool is_series(hid_t group)
{
	return is_type(group, "header", H5I_DATASET) && is_type(group, "data", H5I_DATASET);
}

static void note_found(struct walk *w, const char *name)
{
	for (int i = 0; i < w->n_found; i++)
		if (strcmp(w->found[i], name) == 0)
			return;
	if (w->n_found < MAX_FOUND)
		snprintf(w->found[w->n_found++], NAME_BYTES, "%s", name);
}

static void note_group(struct walk *w, hid_t group, const char *name)
{
	if (is_raw(group)) {
		w->raw = true;
		if (w->holds == FXI_H5_RAW)
			note_found(w, name);
	}
	if (is_series(group)) {
		w->images = true;
		if (w->holds == FXI_H5_IMAGES) {
			const char *slash = strrchr(name, '/');
			char parent[NAME_BYTES];

			snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - name) : 0, name);
			note_found(w, parent);
		}
	}
}

static void walk_group(struct walk *w, hid_t group, const char *name, int depth)
{
	H5G_info_t info;

	note_group(w, group, name);
	if (depth == MAX_DEPTH || H5Gget_info(group, &info) < 0)
		return;
	for (hsize_t i = 0; i < info.nlinks && w->n_links < MAX_LINKS; i++, w->n_links++) {
		char link[256], path[NAME_BYTES];
		hid_t id;
		H5I_type_t type;

		if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link, sizeof link, H5P_DEFAULT) < 0 ||
		    !fxi_h5_has(group, link) || (id = H5Oopen(group, link, H5P_DEFAULT)) < 0)
			continue;
		type = H5Iget_type(id);
		if (depth == 0) {
			size_t used = strlen(w->top);

			snprintf(w->top + used, sizeof w->top - used, "%s%s%s", used ? ", " : "", link,
				type == H5I_GROUP ? "/" : "");
		}
		if (depth == 0 && type == H5I_GROUP && strcmp(link, "signal") == 0)
			w->jemris = fxi_h5_has(id, "channels") && fxi_h5_has(id, "times");
		if (type == H5I_GROUP &&
		    snprintf(path, sizeof path, "%s%s%s", name, *name ? "/" : "", link) < (int)sizeof path)
			walk_group(w, id, path, depth + 1);
		fxi_h5_close(&id);
	}
}

static void list_found(const struct walk *w, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < w->n_found && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s'%s'", i ? ", " : "",
			w->found[i][0] ? w->found[i] : "/");
}

static const char *wanted_text(int holds)
{
	return holds == FXI_H5_RAW ? "raw MRD data (a group with `xml` and `data`)" :
		"MRD images (groups with `header` and `data`)";
}

static int nothing_found(const struct walk *w, const char *path, int holds, fx_error *err)
{
	const char *looks = "";

	if (w->jemris)
		looks = "; it looks like a JEMRIS signal file, which has to be converted to MRD first";
	else if (holds == FXI_H5_RAW && w->images)
		looks = "; it holds reconstructed MRD images";
	else if (holds == FXI_H5_IMAGES && w->raw)
		looks = "; it holds raw MRD data, which has to be reconstructed first";
	return fx_error_set(err, FX_EDATA, "%s is HDF5 but holds no %s%s; it contains: %s", path, wanted_text(holds), looks,
		w->top[0] ? w->top : "nothing");
}

/* Decides among what the walk found, for a group that was not named or does not fit. */
static int choose(const struct walk *w, const char *path, const char *group, int holds, fx_error *err)
{
	char list[FX_ERROR_TEXT / 2];

	list_found(w, list, sizeof list);
	if (w->n_found == 0)
		return nothing_found(w, path, holds, err);
	if (group)
		return fx_error_set(err, FX_EINVAL, "%s has no %s in the group '%s'; it has in: %s", path,
			wanted_text(holds), group, list);
	if (w->n_found > 1)
		return fx_error_set(err, FX_EINVAL, "%s has %s in several groups; name one of them: %s", path,
			wanted_text(holds), list);
	return FX_OK;
}

bool fxi_h5_is_series(hid_t parent, const char *name)
{
	hid_t id = is_type(parent, name, H5I_GROUP) ? H5Gopen2(parent, name, H5P_DEFAULT) : -1;
	bool found = id >= 0 && is_series(id);

	fxi_h5_close(&id);
	return found;
}

/* True where the group has at least one image series below it. */
static bool has_series(hid_t group)
{
	H5G_info_t info;
	bool found = false;

	if (H5Gget_info(group, &info) < 0)
		return false;
	for (hsize_t i = 0; i < info.nlinks && i < MAX_LINKS && !found; i++) {
		char link[256];

		found = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link, sizeof link, H5P_DEFAULT) >= 0 &&
			fxi_h5_is_series(group, link);
	}
	return found;
}

/* Each link on the way must exist: H5Lexists fails, rather than says no, where a parent is missing. */
static hid_t open_named(hid_t file, const char *name)
{
	hid_t id = H5Gopen2(file, "/", H5P_DEFAULT);
	char *copy = strdup(name), *rest = NULL;

	for (char *part = copy ? strtok_r(copy, "/", &rest) : NULL; part && id >= 0; part = strtok_r(NULL, "/", &rest)) {
		hid_t next = is_type(id, part, H5I_GROUP) ? H5Gopen2(id, part, H5P_DEFAULT) : -1;

		fxi_h5_close(&id);
		id = next;
	}
	free(copy);
	return id;
}

int fxi_h5_open_group(hid_t file, const char *path, const char *group, int holds, fx_error *err, hid_t *id, char **name)
{
	struct walk *w;
	hid_t root = -1;
	int status = FX_OK;

	*name = NULL;
	*id = group ? open_named(file, group) : -1;
	if (*id >= 0 && (holds == FXI_H5_RAW ? is_raw(*id) : has_series(*id))) {
		while (*group == '/')
			group++;
		*name = strdup(group);
		if (*name)
			return FX_OK;
	}
	fxi_h5_close(id);
	w = calloc(1, sizeof *w);
	if (!w)
		return fx_error_set(err, FX_ENOMEM, "out of memory while looking into %s", path);
	w->holds = holds;
	root = H5Gopen2(file, "/", H5P_DEFAULT);
	if (root < 0) {
		status = fxi_h5_fail(err, FX_EDATA, "cannot read %s: the file is damaged", path);
	} else {
		walk_group(w, root, "", 0);
		status = choose(w, path, group, holds, err);
	}
	if (status == FX_OK) {
		*id = open_named(file, w->found[0]);
		*name = strdup(w->found[0]);
		if (*id < 0)
			status = fxi_h5_fail(err, FX_EDATA, "cannot open the group '%s' of %s", w->found[0], path);
		else if (!*name)
			status = fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	}
	if (status != FX_OK) {
		fxi_h5_close(id);
		free(*name);
		*name = NULL;
	}
	fxi_h5_close(&root);
	free(w);
	return status;
}

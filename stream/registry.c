/* SPDX-License-Identifier: MIT */
/*
 * registry.c - gadgets by name. Folders are listed once; a plugin is opened when it is first asked for and stays
 * open as long as the process, since descriptors, strings and code of it may be in use anywhere.
 */
#include "registry.h"

#include "nearest.h"
#include "property.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".so"

struct entry {
	char *path;              /* NULL for what is linked in */
	const fx_gadget *gadget; /* NULL until loaded */
};

struct fxi_registry {
	GHashTable *entries; /* name -> struct entry */
};

static void free_entry(void *p)
{
	struct entry *e = p;

	g_free(e->path);
	g_free(e);
}

char *fxi_library_folder(void)
{
	Dl_info info;
	char *path = NULL, *slash;

	if (dladdr((void *)(uintptr_t)fxi_library_folder, &info) && info.dli_fname)
		path = realpath(info.dli_fname, NULL);
	if (!path)
		return strdup(".");
	slash = strrchr(path, '/');
	*(slash == path ? slash + 1 : slash) = '\0';
	return path;
}

char *fxi_data_folder(void)
{
	char *library = fxi_library_folder(), *path = NULL, *real;

	if (!library || asprintf(&path, "%s/../share/fornix", library) < 0)
		path = NULL;
	free(library);
	/* Without the "..", where it exists: this is shown to people. */
	real = path ? realpath(path, NULL) : NULL;
	if (!real)
		return path;
	free(path);
	return real;
}

/* Gadget names are file names, XML elements and C identifiers at once. */
static bool good_name(const char *name)
{
	if (!g_ascii_islower(*name))
		return false;
	for (const char *c = name; *c; c++)
		if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && *c != '_')
			return false;
	return strlen(name) <= 48;
}

static int list_folder(fxi_registry *r, const char *folder, bool must_exist, fx_error *err)
{
	DIR *dir = opendir(folder);
	struct dirent *file;

	if (!dir) {
		if (!must_exist)
			return FX_OK;
		return fx_error_set(err, FX_EINVAL, "cannot look for gadgets in the folder '%s': %s", folder,
			strerror(errno));
	}
	while ((file = readdir(dir)) != NULL) {
		size_t n = strlen(file->d_name);
		char *name;
		struct entry *e;

		if (n <= strlen(SUFFIX) || strcmp(file->d_name + n - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		name = g_strndup(file->d_name, n - strlen(SUFFIX));
		if (!good_name(name) || g_hash_table_contains(r->entries, name)) {
			g_free(name);
			continue;
		}
		e = g_new0(struct entry, 1);
		e->path = g_build_filename(folder, file->d_name, NULL);
		g_hash_table_insert(r->entries, name, e);
	}
	closedir(dir);
	return FX_OK;
}

int fxi_registry_new(const char *const *folders, fx_error *err, fxi_registry **out)
{
	fxi_registry *r = g_new0(fxi_registry, 1);
	char *library = fxi_library_folder(), *own = g_build_filename(library ? library : ".", "fornix", NULL);
	int status;

	*out = NULL;
	r->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_entry);
	/* A library without any gadget beside it is odd but whole: embedders and tests link theirs in. */
	status = list_folder(r, own, false, err);
	for (; status == FX_OK && folders && *folders; folders++)
		if (**folders != '\0')
			status = list_folder(r, *folders, true, err);
	g_free(own);
	free(library);
	if (status != FX_OK) {
		fxi_registry_free(r);
		return status;
	}
	*out = r;
	return FX_OK;
}

void fxi_registry_free(fxi_registry *r)
{
	if (!r)
		return;
	g_hash_table_destroy(r->entries);
	g_free(r);
}

/* A descriptor that breaks its own contract is refused here, once, so that the engine need not distrust it later. */
static int check_gadget(const fx_gadget *g, const char *name, fx_error *err)
{
	fx_error why = {0};

	if (!g->name || strcmp(g->name, name) != 0)
		return fx_error_set(err, FX_EINVAL, "it calls itself '%s'; rename the file or the gadget",
			g->name ? g->name : "");
	if (!g->summary)
		return fx_error_set(err, FX_EINVAL, "it has no summary");
	if (g->takes && !g->process)
		return fx_error_set(err, FX_EINVAL, "it takes messages but has no process function");
	if (g->needs & ~g->takes)
		return fx_error_set(err, FX_EINVAL, "it needs kinds that it does not take");
	if (!(g->places & (FX_HOST | FX_DEVICE)))
		return fx_error_set(err, FX_EINVAL, "it names no place where it can work");
	if (fxi_properties_check(g->props, g->state_size, &why) != FX_OK)
		return fx_error_set(err, why.status, "%s", why.text);
	return FX_OK;
}

static int load(const char *name, struct entry *e, fx_error *err)
{
	void *plugin = dlopen(e->path, RTLD_NOW | RTLD_LOCAL);
	const fx_gadget *g;
	fx_error why = {0};

	if (!plugin)
		return fx_error_set(err, FX_EIO, "cannot load gadget '%s': %s", name, dlerror());
	g = dlsym(plugin, "fx_plugin");
	if (!g)
		return fx_error_set(err, FX_EINVAL, "'%s' is no gadget: it has no symbol fx_plugin", e->path);
	if (g->abi != FX_ABI)
		return fx_error_set(err, FX_EINVAL,
			"gadget '%s' in '%s' was built for plugin interface %u, this is %u: build it again", name, e->path,
			g->abi, FX_ABI);
	if (check_gadget(g, name, &why) != FX_OK)
		return fx_error_set(err, why.status, "gadget '%s' in '%s' is broken: %.700s", name, e->path, why.text);
	e->gadget = g;
	return FX_OK;
}

int fxi_registry_find(fxi_registry *r, const char *name, fx_error *err, const fx_gadget **out)
{
	struct entry *e = g_hash_table_lookup(r->entries, name);
	int status = FX_OK;

	*out = NULL;
	if (!e) {
		char **names = fxi_registry_names(r);
		const char *nearest = fxi_nearest_name(name, (const char *const *)names, g_strv_length(names));

		if (nearest)
			fx_error_set(err, FX_EINVAL, "there is no gadget '%.100s'; did you mean '%s'?", name, nearest);
		else
			fx_error_set(err, FX_EINVAL, "there is no gadget '%.100s' ('fornix list gadgets' names them all)",
				name);
		g_strfreev(names);
		return FX_EINVAL;
	}
	if (!e->gadget)
		status = load(name, e, err);
	*out = e->gadget;
	return status;
}

int fxi_registry_add(fxi_registry *r, const fx_gadget *gadget, fx_error *err)
{
	fx_error why = {0};
	struct entry *e;

	if (gadget->abi != FX_ABI)
		return fx_error_set(err, FX_EINVAL, "gadget '%s' was built for plugin interface %u, this is %u",
			gadget->name, gadget->abi, FX_ABI);
	if (!gadget->name || !good_name(gadget->name))
		return fx_error_set(err, FX_EINVAL, "'%s' is no gadget name: small letters, digits and _",
			gadget->name ? gadget->name : "");
	if (g_hash_table_contains(r->entries, gadget->name))
		return fx_error_set(err, FX_EINVAL, "there is already a gadget '%s'", gadget->name);
	if (check_gadget(gadget, gadget->name, &why) != FX_OK)
		return fx_error_set(err, why.status, "gadget '%s' is broken: %.900s", gadget->name, why.text);
	e = g_new0(struct entry, 1);
	e->gadget = gadget;
	g_hash_table_insert(r->entries, g_strdup(gadget->name), e);
	return FX_OK;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **fxi_registry_names(fxi_registry *r)
{
	unsigned n = g_hash_table_size(r->entries), i = 0;
	char **names = g_new0(char *, n + 1);
	GHashTableIter iter;
	void *key;

	g_hash_table_iter_init(&iter, r->entries);
	while (g_hash_table_iter_next(&iter, &key, NULL))
		names[i++] = g_strdup(key);
	qsort(names, n, sizeof *names, compare_names);
	return names;
}

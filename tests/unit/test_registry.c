/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include "stream/registry.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

#define PLUGINS TEST_BINARY_DIR "/tests/plugins"

static int take(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	(void)ctx;
	fx_drop(msg);
	return FX_OK;
}

static const fx_gadget linked = {
	.abi = FX_ABI, .name = "linked_in", .summary = "For a test", .takes = FX_TEXT,
	.places = FX_HOST, .process = take,
};

static fxi_registry *open_plugins(void)
{
	const char *folders[] = {"", PLUGINS, NULL};
	fxi_registry *r;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(folders, &err, &r), FX_OK);
	return r;
}

static void refused(fxi_registry *r, const char *name, int status, const char *why)
{
	const fx_gadget *g = &linked;
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_registry_find(r, name, &err, &g), status);
	CU_ASSERT_PTR_NULL(g);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void plugins(void)
{
	fxi_registry *r = open_plugins();
	const fx_gadget *g, *again;
	fx_error err = {0};
	char **names = fxi_registry_names(r);

	CU_ASSERT_EQUAL_FATAL(fxi_registry_find(r, "plugin_good", &err, &g), FX_OK);
	CU_ASSERT_STRING_EQUAL(g->name, "plugin_good");
	CU_ASSERT_EQUAL(fxi_registry_find(r, "plugin_good", &err, &again), FX_OK);
	CU_ASSERT_PTR_EQUAL(g, again);
	refused(r, "plugin_old", FX_EINVAL, "build it again");
	refused(r, "plugin_misnamed", FX_EINVAL, "another_name");
	refused(r, "plugin_empty", FX_EINVAL, "fx_plugin");
	refused(r, "plugin_bad_default", FX_EINVAL, "'width'");
	refused(r, "plugin_godo", FX_EINVAL, "did you mean 'plugin_good'?");
	refused(r, "../plugin_good", FX_EINVAL, "there is no gadget");
	refused(r, "", FX_EINVAL, "there is no gadget");
	CU_ASSERT(g_strv_contains((const char *const *)names, "plugin_old"));
	for (int i = 1; names[0] && names[i]; i++)
		CU_ASSERT(strcmp(names[i - 1], names[i]) < 0);
	g_strfreev(names);
	fxi_registry_free(r);
	fxi_registry_free(NULL);
}

static void odd_files(void)
{
	char *folder = g_dir_make_tmp("fornix-XXXXXX", NULL);
	const char *folders[] = {folder, NULL}, *missing[] = {"/no/such/folder", NULL};
	const char *files[] = {"torn.so", "Not-A-Name.so", "readme.txt", ".so"};
	fxi_registry *r = NULL;
	fx_error err = {0};
	char **names;

	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char *path = g_build_filename(folder, files[i], NULL);

		CU_ASSERT(g_file_set_contents(path, "no ELF", -1, NULL));
		g_free(path);
	}
	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(folders, &err, &r), FX_OK);
	names = fxi_registry_names(r);
	CU_ASSERT(g_strv_contains((const char *const *)names, "torn"));
	CU_ASSERT_FALSE(g_strv_contains((const char *const *)names, "Not-A-Name"));
	refused(r, "torn", FX_EIO, "torn.so");
	g_strfreev(names);
	fxi_registry_free(r);
	CU_ASSERT_EQUAL(fxi_registry_new(missing, &err, &r), FX_EINVAL);
	CU_ASSERT_PTR_NULL(r);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/no/such/folder"));
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char *path = g_build_filename(folder, files[i], NULL);

		g_unlink(path);
		g_free(path);
	}
	g_rmdir(folder);
	g_free(folder);
}

static void add_refused(fxi_registry *r, const fx_gadget *g, const char *why)
{
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_registry_add(r, g, &err), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void linked_in(void)
{
	fxi_registry *r = open_plugins();
	const fx_gadget *g;
	fx_gadget bad;
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_registry_add(r, &linked, &err), FX_OK);
	CU_ASSERT_EQUAL(fxi_registry_find(r, "linked_in", &err, &g), FX_OK);
	CU_ASSERT_PTR_EQUAL(g, &linked);
	add_refused(r, &linked, "already");
	bad = linked;
	bad.name = "Bad Name";
	add_refused(r, &bad, "no gadget name");
	bad.name = "bad";
	bad.process = NULL;
	add_refused(r, &bad, "process");
	bad = linked;
	bad.name = "bad";
	bad.needs = FX_IMAGE;
	add_refused(r, &bad, "needs");
	bad.needs = 0;
	bad.places = 0;
	add_refused(r, &bad, "place");
	bad.places = FX_HOST;
	bad.summary = NULL;
	add_refused(r, &bad, "summary");
	bad.abi = 0;
	add_refused(r, &bad, "interface 0");
	fxi_registry_free(r);
}

static void folders(void)
{
	char *library = fxi_library_folder(), *data = fxi_data_folder(), *real = realpath(TEST_BINARY_DIR, NULL);
	char *expected = g_build_filename(real, "lib", NULL);

	CU_ASSERT_STRING_EQUAL(library, expected);
	g_free(expected);
	expected = g_build_filename(real, "share", "fornix", NULL);
	CU_ASSERT_STRING_EQUAL(data, expected);
	g_free(expected);
	free(real);
	free(library);
	free(data);
}

static CU_TestInfo tests[] = {
	{"plugins are loaded and checked", plugins},
	{"files that are no plugins, folders that are not there", odd_files},
	{"gadgets that are linked in", linked_in},
	{"folders of the library", folders},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_registry = {"registry", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
#include "apps/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/nearest.h"
#include "xml/pipeline_file.h"

void fxi_apps_say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("fornix: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

bool fxi_apps_options(const char *usage, const char *summary, const GOptionEntry *entries, int least, int most,
	int *argc, char ***argv)
{
	GOptionContext *context = g_option_context_new(usage);
	char *program = g_strconcat("fornix ", (*argv)[0], NULL), *verb = (*argv)[0];
	GError *error = NULL;
	bool right;

	g_set_prgname(program);
	g_option_context_set_summary(context, summary);
	g_option_context_add_main_entries(context, entries, NULL);
	right = g_option_context_parse(context, argc, argv, &error);
	if (!right)
		fxi_apps_say("%s: %s; see `%s --help`", verb, error->message, program);
	else if (*argc - 1 < least || *argc - 1 > most) {
		fxi_apps_say("%s: %s; the call is `%s %s`", verb, *argc - 1 < least ? "an argument is missing" : "too many arguments",
			program, usage);
		right = false;
	}
	g_clear_error(&error);
	g_option_context_free(context);
	g_free(program);
	return right;
}

int fxi_apps_registry(fxi_registry **out)
{
	const char *path = getenv("FORNIX_GADGET_PATH");
	char **folders = g_strsplit(path ? path : "", ":", -1);
	fx_error err = {0};
	int status = fxi_registry_new((const char *const *)folders, &err, out);

	if (status != FX_OK)
		fxi_apps_say("FORNIX_GADGET_PATH: %s", err.text);
	g_strfreev(folders);
	return status;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static char *shipped_path(const char *name)
{
	char *data = fxi_data_folder(), *path = NULL;

	if (data && asprintf(&path, "%s/pipelines/%s%s", data, name, *name ? ".xml" : "") < 0)
		path = NULL;
	free(data);
	return path;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **fxi_apps_pipeline_names(void)
{
	GPtrArray *names = g_ptr_array_new();
	char *folder = shipped_path("");
	GDir *dir = folder ? g_dir_open(folder, 0, NULL) : NULL;
	const char *file;

	while (dir && (file = g_dir_read_name(dir)))
		if (g_str_has_suffix(file, ".xml"))
			g_ptr_array_add(names, g_strndup(file, strlen(file) - strlen(".xml")));
	if (dir)
		g_dir_close(dir);
	free(folder);
	g_ptr_array_sort(names, compare_names);
	g_ptr_array_add(names, NULL);
	return (char **)g_ptr_array_free(names, FALSE);
}

static int unknown_pipeline(const char *name, fx_error *err)
{
	char **names = fxi_apps_pipeline_names(), *list = g_strjoinv(", ", names);
	const char *nearest = fxi_nearest_name(name, (const char *const *)names, g_strv_length(names));

	if (nearest)
		fx_error_set(err, FX_EINVAL, "there is no pipeline '%.200s'; did you mean '%s'?", name, nearest);
	else
		fx_error_set(err, FX_EINVAL, "there is no pipeline '%.200s'; shipped are %.500s, and any other is named by its file",
			name, *list ? list : "none");
	g_free(list);
	g_strfreev(names);
	return FX_EINVAL;
}

int fxi_apps_pipeline(const char *name, char *const *assignments, fx_error *err, fxi_pipeline **out)
{
	bool is_path = strchr(name, '/') || g_str_has_suffix(name, ".xml");
	char *shipped = is_path ? NULL : shipped_path(name);
	int status;

	*out = NULL;
	if (is_path)
		status = fxi_pipeline_load(name, err, out);
	else if (shipped && *name && g_file_test(shipped, G_FILE_TEST_EXISTS))
		status = fxi_pipeline_load(shipped, err, out);
	else
		status = unknown_pipeline(name, err);
	for (; status == FX_OK && assignments && *assignments; assignments++)
		status = fxi_pipeline_set(*out, *assignments, err);
	if (status != FX_OK) {
		fxi_pipeline_free(*out);
		*out = NULL;
	}
	free(shipped);
	return status;
}

int fxi_apps_chain(const fxi_pipeline *pipeline, fxi_registry *registry, fx_error *err, fxi_chain **out, unsigned *kinds)
{
	static const unsigned others[] = {FX_IMAGE, FX_SERIES, FX_TENSORS};
	int status = fxi_chain_new(pipeline, registry, FXI_SCAN_KINDS, err, out);

	*kinds = FXI_SCAN_KINDS;
	for (size_t i = 0; status == FX_EINVAL && i < G_N_ELEMENTS(others); i++) {
		fxi_stage_report first;

		if (fxi_chain_new(pipeline, registry, others[i], NULL, out) != FX_OK)
			continue;
		fxi_chain_stage(*out, 0, &first);
		if (!first.idle) {
			*err = (fx_error){0};
			*kinds = others[i];
			return FX_OK;
		}
		fxi_chain_free(*out);
		*out = NULL;
	}
	return status;
}

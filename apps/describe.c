/* SPDX-License-Identifier: MIT */
/* describe.c - `fornix describe NAME`: a gadget from its own table, or a pipeline from its own comment. */
#include <stdio.h>
#include <string.h>

#include "apps/common.h"
#include "apps/gadget_text.h"
#include "stream/nearest.h"

static void describe_pipeline(const fxi_pipeline *p, const char *name)
{
	printf("%s%s%s\n\n", name, p->summary ? ": " : "", p->summary ? p->summary : "");
	if (p->description) {
		fxi_text_wrapped(stdout, 0, p->description);
		putchar('\n');
	}
	puts("stages");
	for (int64_t i = 0; i < p->n_stages; i++) {
		printf("  %s", p->stages[i].gadget);
		for (int64_t j = 0; j < p->stages[i].n_settings; j++)
			printf(" %s=%s", p->stages[i].settings[j].name, p->stages[i].settings[j].value);
		putchar('\n');
	}
	printf("\nread from %s\n", p->file);
}

static bool has_name(char *const *names, const char *name)
{
	return g_strv_contains((const char *const *)names, name);
}

static int nothing_of_that_name(const char *name, char **gadgets, char **pipelines)
{
	GPtrArray *all = g_ptr_array_new();
	const char *nearest;

	for (char **n = gadgets; *n; n++)
		g_ptr_array_add(all, *n);
	for (char **n = pipelines; *n; n++)
		g_ptr_array_add(all, *n);
	nearest = fxi_nearest_name(name, (const char *const *)all->pdata, all->len);
	if (nearest)
		fxi_apps_say("there is no gadget or pipeline '%s'; did you mean '%s'?", name, nearest);
	else
		fxi_apps_say("there is no gadget or pipeline '%s'; `fornix list` names them all", name);
	g_ptr_array_free(all, TRUE);
	return FXI_EXIT_USAGE;
}

static int describe_gadget(fxi_registry *registry, const char *name)
{
	const fx_gadget *g;
	fx_error err = {0};

	if (fxi_registry_find(registry, name, &err, &g) != FX_OK) {
		fxi_apps_say("%s", err.text);
		return FXI_EXIT_FAILED;
	}
	fxi_gadget_text(stdout, g);
	return FXI_EXIT_DONE;
}

/* A name may be both, as cartesian is: then both are described. */
static int describe(fxi_registry *registry, const char *name)
{
	char **gadgets = fxi_registry_names(registry), **pipelines = fxi_apps_pipeline_names();
	bool gadget = has_name(gadgets, name);
	bool pipeline = has_name(pipelines, name) || strchr(name, '/') || g_str_has_suffix(name, ".xml");
	int result = FXI_EXIT_DONE;

	if (gadget) {
		printf("%s", pipeline ? "-- the gadget --\n" : "");
		result = describe_gadget(registry, name);
	}
	if (pipeline) {
		fxi_pipeline *p;
		fx_error err = {0};

		printf("%s", gadget ? "\n-- the pipeline --\n" : "");
		if (fxi_apps_pipeline(name, NULL, &err, &p) == FX_OK)
			describe_pipeline(p, name);
		else {
			fxi_apps_say("%s", err.text);
			result = FXI_EXIT_USAGE;
		}
		fxi_pipeline_free(p);
	}
	if (!gadget && !pipeline)
		result = nothing_of_that_name(name, gadgets, pipelines);
	g_strfreev(gadgets);
	g_strfreev(pipelines);
	return result;
}

int fxi_app_describe(int argc, char **argv)
{
	static const GOptionEntry entries[] = {G_OPTION_ENTRY_NULL};
	fxi_registry *registry;
	int result;

	if (!fxi_apps_options("NAME", "Says what a gadget does, with its properties, defaults and ranges; or what a pipeline is for.",
		    entries, 1, 1, &argc, &argv))
		return FXI_EXIT_USAGE;
	if (fxi_apps_registry(&registry) != FX_OK)
		return FXI_EXIT_USAGE;
	result = describe(registry, argv[1]);
	fxi_registry_free(registry);
	return result;
}

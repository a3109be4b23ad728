/* SPDX-License-Identifier: MIT */
/* list.c - `fornix list`: which gadgets and pipelines there are. */
#include <stdio.h>
#include <string.h>

#include "apps/common.h"

/* A plugin that cannot be loaded is told of, and does not hide the others. */
static int list_gadgets(void)
{
	fxi_registry *registry;
	char **names;
	int result = FXI_EXIT_DONE;

	if (fxi_apps_registry(&registry) != FX_OK)
		return FXI_EXIT_USAGE;
	names = fxi_registry_names(registry);
	for (char **name = names; *name; name++) {
		const fx_gadget *g;
		fx_error err = {0};

		if (fxi_registry_find(registry, *name, &err, &g) == FX_OK)
			printf("%-20s %s\n", *name, g->summary);
		else {
			fxi_apps_say("%s", err.text);
			result = FXI_EXIT_FAILED;
		}
	}
	g_strfreev(names);
	fxi_registry_free(registry);
	return result;
}

static int list_pipelines(void)
{
	char **names = fxi_apps_pipeline_names();
	int result = FXI_EXIT_DONE;

	for (char **name = names; *name; name++) {
		fxi_pipeline *p;
		fx_error err = {0};

		if (fxi_apps_pipeline(*name, NULL, &err, &p) == FX_OK)
			printf("%-20s %s\n", *name, p->summary ? p->summary : "");
		else {
			fxi_apps_say("%s", err.text);
			result = FXI_EXIT_FAILED;
		}
		fxi_pipeline_free(p);
	}
	g_strfreev(names);
	return result;
}

int fxi_app_list(int argc, char **argv)
{
	static const GOptionEntry entries[] = {G_OPTION_ENTRY_NULL};
	int gadgets, pipelines = FXI_EXIT_DONE;

	if (!fxi_apps_options("[gadgets|pipelines]", "Lists the gadgets and pipelines that there are.", entries, 0, 1, &argc,
		    &argv))
		return FXI_EXIT_USAGE;
	if (argc == 2 && strcmp(argv[1], "gadgets") == 0)
		return list_gadgets();
	if (argc == 2 && strcmp(argv[1], "pipelines") == 0)
		return list_pipelines();
	if (argc == 2) {
		fxi_apps_say("list takes 'gadgets' or 'pipelines', not '%s'", argv[1]);
		return FXI_EXIT_USAGE;
	}
	puts("gadgets");
	gadgets = list_gadgets();
	puts("\npipelines");
	pipelines = list_pipelines();
	return gadgets != FXI_EXIT_DONE ? gadgets : pipelines;
}

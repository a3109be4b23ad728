/* SPDX-License-Identifier: MIT */
/* check.c - `fornix check PIPELINE`: everything that can be known to be wrong without a scan; or of a scan, without a run. */
#include <stdio.h>

#include "apps/check_scan.h"
#include "apps/common.h"
#include "stream/chain.h"

static int check(const char *name, char *const *assignments)
{
	fxi_registry *registry = NULL;
	fxi_pipeline *pipeline = NULL;
	fxi_chain *chain = NULL;
	fx_error err = {0};
	unsigned kinds;
	int status;

	if (fxi_apps_registry(&registry) != FX_OK)
		return FXI_EXIT_USAGE;
	status = fxi_apps_pipeline(name, assignments, &err, &pipeline);
	if (status == FX_OK)
		status = fxi_apps_chain(pipeline, registry, &err, &chain, &kinds);
	if (status == FX_OK) {
		for (int64_t i = 0; i < pipeline->n_stages; i++)
			printf("ok %s\n", pipeline->stages[i].gadget);
		printf("ok: %s, %lld gadgets%s\n", pipeline->file, (long long)pipeline->n_stages, kinds == FX_IMAGE ?
			", from images, a diffusion series or a tensor image" : kinds == FX_SERIES ? ", from a diffusion series (NIfTI)" : kinds == FX_TENSORS ? ", from a tensor image (NIfTI)" : "");
	} else
		fxi_apps_say("%s", err.text);
	fxi_chain_free(chain);
	fxi_pipeline_free(pipeline);
	fxi_registry_free(registry);
	return status == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_USAGE;
}

int fxi_app_check(int argc, char **argv)
{
	char **assignments = NULL, *group = NULL;
	const GOptionEntry entries[] = {
		{"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &assignments, "Set a property, as in cg.iterations=20 (repeatable)",
			"GADGET.PROPERTY=VALUE"},
		{"group", 0, 0, G_OPTION_ARG_STRING, &group, "The scan's group in an HDF5 file that has several", "NAME"},
		G_OPTION_ENTRY_NULL,
	};
	int result = FXI_EXIT_USAGE;

	if (fxi_apps_options("PIPELINE|SCAN", "Checks a pipeline without a scan: gadgets, properties, values, and that the kinds of "
		    "messages meet. Or a raw scan (MRD HDF5, an MRD stream, -): what it holds, and for each of its aspects whether it "
		    "is fine, doubtful, refused, or cannot be told from the data. Exit status 1 where something is refused.", entries, 1, 1, &argc, &argv)) {
		bool scan = fxi_check_is_scan(argv[1]);

		if (scan && assignments)
			fxi_apps_say("check: %s is a scan, and --set is for pipelines", argv[1]);
		else if (!scan && group)
			fxi_apps_say("check: %s is a pipeline, and --group is for scans", argv[1]);
		else
			result = scan ? fxi_check_scan(argv[1], group) : check(argv[1], assignments);
	}
	g_free(group);
	g_strfreev(assignments);
	return result;
}

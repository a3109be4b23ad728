/* SPDX-License-Identifier: MIT */
/* check.c - `fornix check PIPELINE`: everything that can be known to be wrong without a scan; or of a scan, without a run. */
#include <stdio.h>
#include <string.h>

#include "apps/check_scan.h"
#include "apps/common.h"
#include "stream/chain.h"
#include "xml/gadgetron.h"
#include "xml/pipeline_file.h"

/* What a Gadgetron configuration's elements become; true where all of them run. */
static bool tell_gadgetron(const char *file, const fxi_gadgetron *g)
{
	static const char *const verdicts[] = {"runs", "approximated", "missing"};

	printf("%s: a Gadgetron configuration, %s\n", file, g->version == 2 ? "version 2" : "legacy form");
	for (int64_t i = 0; i < g->n_items; i++) {
		const fxi_gadgetron_item *item = &g->items[i];

		printf("%-12s line %d: %s %s%s%s%s: %s\n", verdicts[item->verdict], item->line, item->kind, item->name ? item->name : "",
			item->name && item->classname ? " " : "", item->classname ? item->classname : "",
			item->name || item->classname ? "" : "(unnamed)", item->text ? item->text : "");
	}
	printf("%lld run, %lld approximated, %lld missing\n", (long long)g->n_verdicts[FXI_GADGETRON_RUNS],
		(long long)g->n_verdicts[FXI_GADGETRON_APPROXIMATED], (long long)g->n_verdicts[FXI_GADGETRON_MISSING]);
	return g->n_verdicts[FXI_GADGETRON_MISSING] == 0;
}

/*
 * A Gadgetron configuration is told about as a whole, whatever is wrong with it: exit status 1 where something is missing.
 * FXI_EXIT_DONE where the file is none, or has nothing missing.
 */
static int check_gadgetron(const char *name)
{
	fxi_gadgetron *report = NULL;
	fxi_pipeline *pipeline = NULL;
	fx_error err = {0};
	int result = FXI_EXIT_DONE;

	if (!strchr(name, '/') && !g_str_has_suffix(name, ".xml"))
		return result;
	fxi_pipeline_load_telling(name, &err, &report, &pipeline);
	if (report && !tell_gadgetron(name, report)) { /* of others, what fails is told by who loads it again */
		fxi_apps_say("%s", err.text);
		result = FXI_EXIT_FAILED;
	}
	fxi_gadgetron_free(report);
	fxi_pipeline_free(pipeline);
	return result;
}

static int check(const char *name, char *const *assignments)
{
	fxi_registry *registry = NULL;
	fxi_pipeline *pipeline = NULL;
	fxi_chain *chain = NULL;
	fx_error err = {0};
	unsigned kinds;
	int status;

	if (check_gadgetron(name) != FXI_EXIT_DONE)
		return FXI_EXIT_FAILED;
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
		    "messages meet. Of a Gadgetron configuration, element by element: what runs, what is approximated, what is missing. Or a raw scan (MRD HDF5, an MRD stream, -): what it holds, and for each of its aspects whether it "
		    "is fine, doubtful, refused, or cannot be told from the data. Exit status 1 where something is refused or missing.", entries, 1, 1, &argc, &argv)) {
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

/* SPDX-License-Identifier: MIT */
/* graph.c - `fornix graph PIPELINE`: the chain as a DOT graph, with what flows between its gadgets. */
#include <stdio.h>

#include "apps/common.h"
#include "stream/chain.h"

static void put_quoted(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

/* A box with the gadget's name and the properties that the pipeline sets. */
static void put_stage(const fxi_stage *stage, int64_t i)
{
	printf("  g%lld [label=\"", (long long)i);
	put_quoted(stage->gadget);
	for (int64_t s = 0; s < stage->n_settings; s++) {
		fputs("\\n", stdout);
		put_quoted(stage->settings[s].name);
		putchar('=');
		put_quoted(stage->settings[s].value);
	}
	fputs("\"];\n", stdout);
}

/* The kinds that are there and that somebody further down takes. */
static void put_edge(int64_t from, int64_t to, unsigned kinds)
{
	const char *separator = "";

	if (from < 0)
		printf("  input -> g%lld [label=\"", (long long)to);
	else
		printf("  g%lld -> g%lld [label=\"", (long long)from, (long long)to);
	for (unsigned bit = 1; bit <= FX_TRACTS; bit <<= 1)
		if (kinds & bit) {
			printf("%s%s", separator, fx_kind_name(bit));
			separator = "\\n";
		}
	fputs("\"];\n", stdout);
}

static int put_graph(const fxi_pipeline *p, fxi_registry *registry, unsigned kinds, fx_error *err)
{
	printf("digraph pipeline {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", "
		"fontsize=10];\n  label=\"");
	put_quoted(p->summary ? p->summary : p->file);
	fputs("\";\n  input [shape=plaintext];\n", stdout);
	for (int64_t i = 0; i < p->n_stages; i++) {
		const fx_gadget *g;
		unsigned wanted = 0;

		for (int64_t j = i; j < p->n_stages; j++) {
			if (fxi_registry_find(registry, p->stages[j].gadget, err, &g) != FX_OK)
				return err->status;
			wanted |= g->takes;
		}
		put_stage(&p->stages[i], i);
		put_edge(i - 1, i, kinds & wanted);
		if (fxi_registry_find(registry, p->stages[i].gadget, err, &g) != FX_OK)
			return err->status;
		kinds = (kinds & ~g->takes) | g->gives;
	}
	puts("}");
	return FX_OK;
}

int fxi_app_graph(int argc, char **argv)
{
	char **assignments = NULL;
	const GOptionEntry entries[] = {
		{"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &assignments, "Set a property, as in cg.iterations=20 (repeatable)",
			"GADGET.PROPERTY=VALUE"},
		G_OPTION_ENTRY_NULL,
	};
	fxi_registry *registry = NULL;
	fxi_pipeline *pipeline = NULL;
	fxi_chain *chain = NULL;
	fx_error err = {0};
	unsigned kinds = 0;
	int status = FX_EINVAL;

	if (fxi_apps_options("PIPELINE", "Prints a pipeline as a DOT graph: fornix graph iterative | dot -Tsvg > iterative.svg.", entries,
		    1, 1, &argc, &argv) && fxi_apps_registry(&registry) == FX_OK) {
		status = fxi_apps_pipeline(argv[1], assignments, &err, &pipeline);
		if (status == FX_OK) /* a chain that cannot run has no graph */
			status = fxi_apps_chain(pipeline, registry, &err, &chain, &kinds);
		if (status == FX_OK)
			status = put_graph(pipeline, registry, kinds, &err);
		if (status != FX_OK)
			fxi_apps_say("%s", err.text);
	}
	fxi_chain_free(chain);
	fxi_pipeline_free(pipeline);
	fxi_registry_free(registry);
	g_strfreev(assignments);
	return status == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_USAGE;
}

/* SPDX-License-Identifier: MIT */
/* main.c - `fornix VERB ...`: finds the verb and hands over. A new verb is a file, a declaration and a line here. */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "apps/apps.h"
#include "stream/nearest.h"

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* NULL: not for people */
} verbs[] = {
	{"run", fxi_app_run, "a scan through a pipeline, into a folder"},
	{"serve", fxi_app_serve, "images for MRD clients: a scanner's, Gadgetron's, FIRE's"},
	{"send", fxi_app_send, "a scan to a server, its images into a file"},
	{"check", fxi_app_check, "what is wrong with a pipeline, or with a scan"},
	{"list", fxi_app_list, "the gadgets and pipelines that there are"},
	{"describe", fxi_app_describe, "what a gadget or a pipeline does, its properties, defaults and ranges"},
	{"phantom", fxi_app_phantom, "a raw test scan with a known answer"},
	{"compare", fxi_app_compare, "how far an image is from a reference"},
	{"graph", fxi_app_graph, "a pipeline as a DOT graph"},
	{"schema", fxi_app_schema, "the XML schema of pipelines, for editors"},
	{"bench", fxi_app_bench, "how fast and how exact this machine does it"},
	{"tune", fxi_app_tune, "the GPU's kernel of the chapter's ladder in its fastest form, kept for later runs"},
	{"docs", fxi_app_docs, "the gadgets' reference pages, in Markdown"},
	{"serve-worker", fxi_app_worker, NULL},
};

#define N_VERBS (sizeof verbs / sizeof verbs[0])

static void usage(FILE *out)
{
	fputs("usage: fornix VERB [ARGUMENTS]\n\n", out);
	for (size_t i = 0; i < N_VERBS; i++)
		if (verbs[i].help)
			fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].help);
	fputs("\n`fornix VERB --help` says more, `fornix --version` which version this is.\n"
	      "Exit status: 0 done, 1 the work failed, 2 the call was wrong, 130 stopped by Ctrl-C.\n", out);
}

static int unknown_verb(const char *name)
{
	const char *names[N_VERBS], *nearest;

	for (size_t i = 0; i < N_VERBS; i++)
		names[i] = verbs[i].name;
	nearest = fxi_nearest_name(name, names, (int64_t)N_VERBS - 1); /* the last is not for people */
	if (nearest)
		fprintf(stderr, "fornix: there is no verb '%s'; did you mean '%s'?\n", name, nearest);
	else
		fprintf(stderr, "fornix: there is no verb '%s'; see `fornix help`\n", name);
	return FXI_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	setlocale(LC_CTYPE, ""); /* letters only: numbers keep their point */
	if (argc < 2) {
		usage(stderr);
		return FXI_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts("fornix " FORNIX_VERSION);
		return FXI_EXIT_DONE;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return FXI_EXIT_DONE;
	}
	for (size_t i = 0; i < N_VERBS; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	return unknown_verb(argv[1]);
}

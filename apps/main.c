/* SPDX-License-Identifier: MIT */
/* main.c - `fornix VERB ...`: finds the verb and hands over. A new verb is a file, a declaration and a line here. */
#include "apps.h"

#include <stdio.h>
#include <string.h>

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{NULL, NULL, NULL},
};

static void usage(FILE *out)
{
	fputs("usage: fornix VERB [ARGUMENTS]\n\n", out);
	for (const struct verb *v = verbs; v->name; v++)
		fprintf(out, "  %-10s %s\n", v->name, v->help);
	fputs("\nexit status: 0 done, 1 failed, 2 wrong call, 130 stopped by Ctrl-C\n", out);
}

int main(int argc, char **argv)
{
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
	for (const struct verb *v = verbs; v->name; v++)
		if (strcmp(argv[1], v->name) == 0)
			return v->run(argc - 1, argv + 1);
	fprintf(stderr, "fornix: there is no verb '%s'; see `fornix help`\n", argv[1]);
	return FXI_EXIT_USAGE;
}

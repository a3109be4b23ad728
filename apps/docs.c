/* SPDX-License-Identifier: MIT */
/* docs.c - `fornix docs DIR`: the gadgets' reference pages, from their tables alone. A test holds the committed pages to it. */
#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common.h"
#include "apps/gadget_text.h"

/* Closes the page and puts it into place. */
static bool finish_page(const char *folder, const char *name, FILE *page, char **text, size_t *size)
{
	char *path = g_strdup_printf("%s/%s.md", folder, name);
	GError *error = NULL;
	bool right = fclose(page) == 0;

	if (!right)
		fxi_apps_say("cannot write %s: %s", path, strerror(errno));
	else if (!(right = g_file_set_contents(path, *text, (gssize)*size, &error)))
		fxi_apps_say("%s", error->message);
	g_clear_error(&error);
	g_free(path);
	free(*text);
	*text = NULL;
	return right;
}

static bool write_page(const char *folder, const fx_gadget *g)
{
	char *text = NULL;
	size_t size = 0;
	FILE *page = open_memstream(&text, &size);

	if (!page)
		return false;
	fxi_gadget_page(page, g);
	return finish_page(folder, g->name, page, &text, &size);
}

static bool write_pages(fxi_registry *registry, char **names, const char *folder)
{
	char *text = NULL;
	size_t size = 0;
	FILE *index = open_memstream(&text, &size);
	bool right = index != NULL;

	if (!right)
		return false;
	fputs("<!-- written by `fornix docs` from the gadgets' own tables; change them there -->\n\n# Gadgets\n\n"
	      "| gadget | what it does |\n|---|---|\n", index);
	for (char **name = names; *name && right; name++) {
		const fx_gadget *g;
		fx_error err = {0};

		if (fxi_registry_find(registry, *name, &err, &g) != FX_OK) {
			fxi_apps_say("%s", err.text);
			right = false;
		} else {
			fprintf(index, "| [%s](%s.md) | ", *name, *name);
			fxi_put_cell(index, g->summary);
			fputs(" |\n", index);
			right = write_page(folder, g);
		}
	}
	if (right)
		return finish_page(folder, "README", index, &text, &size);
	fclose(index);
	free(text);
	return false;
}

int fxi_app_docs(int argc, char **argv)
{
	static const GOptionEntry entries[] = {G_OPTION_ENTRY_NULL};
	fxi_registry *registry;
	char **names;
	bool right;

	if (!fxi_apps_options("DIR", "Writes a page in Markdown for each gadget, and README.md as their index, into DIR.", entries, 1, 1,
		    &argc, &argv))
		return FXI_EXIT_USAGE;
	if (fxi_apps_registry(&registry) != FX_OK)
		return FXI_EXIT_USAGE;
	right = g_mkdir_with_parents(argv[1], 0777) == 0;
	if (!right)
		fxi_apps_say("cannot make the folder %s: %s", argv[1], strerror(errno));
	names = fxi_registry_names(registry);
	right = right && write_pages(registry, names, argv[1]);
	g_strfreev(names);
	fxi_registry_free(registry);
	return right ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
}

/* SPDX-License-Identifier: MIT */
/* schema.c - `fornix schema`: the XSD of native pipelines, for editors that check and complete while one types. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/common.h"
#include "xml/schema.h"

int fxi_app_schema(int argc, char **argv)
{
	static const GOptionEntry entries[] = {G_OPTION_ENTRY_NULL};
	fxi_registry *registry;
	fx_error err = {0};
	char *text = NULL;

	if (!fxi_apps_options("> pipeline.xsd", "Prints the XML schema of pipelines, made from the property tables of the gadgets that "
		    "there are, for editors and validators.", entries, 0, 0, &argc, &argv) || fxi_apps_registry(&registry) != FX_OK)
		return FXI_EXIT_USAGE;
	if (fxi_schema_format(registry, &err, &text) == FX_OK)
		fputs(text, stdout);
	else
		fxi_apps_say("%s", err.text);
	free(text);
	fxi_registry_free(registry);
	return err.status == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
}

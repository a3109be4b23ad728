/* SPDX-License-Identifier: MIT */
#include "apps/json_file.h"

#include <stdio.h>

#include "io/aside.h"

int fxi_json_write(JsonNode *root, const char *path, fx_error *err)
{
	JsonGenerator *generator = json_generator_new();
	fxi_aside *aside = NULL;
	gsize size;
	char *text;
	int status = fxi_aside_open(path, err, &aside);

	json_generator_set_root(generator, root);
	json_generator_set_pretty(generator, TRUE);
	text = json_generator_to_data(generator, &size);
	if (status == FX_OK)
		status = fxi_aside_write(aside, text, size, err);
	if (status == FX_OK)
		status = fxi_aside_write(aside, "\n", 1, err);
	if (status == FX_OK)
		status = fxi_aside_commit(aside, err);
	else
		fxi_aside_abandon(aside);
	g_free(text);
	g_object_unref(generator);
	return status;
}

void fxi_json_print(JsonBuilder *builder)
{
	JsonGenerator *generator = json_generator_new();
	JsonNode *root = json_builder_get_root(builder);
	char *text;

	json_generator_set_root(generator, root);
	json_generator_set_pretty(generator, TRUE);
	text = json_generator_to_data(generator, NULL);
	puts(text);
	g_free(text);
	json_node_unref(root);
	g_object_unref(generator);
	g_object_unref(builder);
}

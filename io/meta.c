/* SPDX-License-Identifier: MIT */
/* meta.c - see meta.h. GMarkup knows no external entities, so nothing outside the text can be pulled in. */
#include "meta.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *fxi_meta_format(const fx_image *image)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f;

	if (image->n_meta == 0)
		return calloc(1, 1);
	f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	fputs("<?xml version=\"1.0\"?>\n<ismrmrdMeta>\n", f);
	for (int64_t i = 0; i < image->n_meta; i++) {
		char *name = g_markup_escape_text(image->meta[i].name, -1);
		char *value = g_markup_escape_text(image->meta[i].value, -1);

		fprintf(f, "<meta><name>%s</name><value>%s</value></meta>\n", name, value);
		g_free(name);
		g_free(value);
	}
	fputs("</ismrmrdMeta>\n", f);
	if (ferror(f) | fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

struct parse {
	fx_image *image;
	char *name, *value;
	bool in_name, in_value;
	bool short_of_memory;
};

static bool is_element(GMarkupParseContext *context, const char *element, const char *name, const char *parent)
{
	const GSList *stack = g_markup_parse_context_get_element_stack(context);

	return strcmp(element, name) == 0 && stack->next && strcmp(stack->next->data, parent) == 0;
}

static void on_start(GMarkupParseContext *context, const char *element, const char **names, const char **values,
	void *arg, GError **error)
{
	struct parse *p = arg;

	(void)names;
	(void)values;
	(void)error;
	if (strcmp(element, "meta") == 0) {
		g_clear_pointer(&p->name, g_free);
		g_clear_pointer(&p->value, g_free);
	}
	p->in_name = is_element(context, element, "name", "meta");
	p->in_value = is_element(context, element, "value", "meta");
	if (p->in_value && p->value) {
		char *joined = g_strconcat(p->value, "\\", NULL);

		g_free(p->value);
		p->value = joined;
	}
}

static void on_text(GMarkupParseContext *context, const char *text, gsize bytes, void *arg, GError **error)
{
	struct parse *p = arg;
	char **slot = p->in_name ? &p->name : p->in_value ? &p->value : NULL, *piece, *joined;

	(void)context;
	(void)error;
	if (!slot)
		return;
	piece = g_strndup(text, bytes);
	joined = g_strconcat(*slot ? *slot : "", piece, NULL);
	g_free(piece);
	g_free(*slot);
	*slot = joined;
}

static void on_end(GMarkupParseContext *context, const char *element, void *arg, GError **error)
{
	struct parse *p = arg;

	(void)context;
	(void)error;
	p->in_name = p->in_value = false;
	if (strcmp(element, "meta") == 0 && p->name && p->name[0] &&
	    fx_image_set_meta(p->image, p->name, p->value ? p->value : "") != FX_OK)
		p->short_of_memory = true;
}

int fxi_meta_parse(const char *xml, size_t bytes, fx_image *image, fx_error *err)
{
	const GMarkupParser parser = {.start_element = on_start, .end_element = on_end, .text = on_text};
	struct parse p = {.image = image};
	GMarkupParseContext *context;
	GError *error = NULL;
	int status = FX_OK;

	bytes = strnlen(xml, bytes);
	if (strspn(xml, " \t\r\n") >= bytes)
		return FX_OK;
	context = g_markup_parse_context_new(&parser, G_MARKUP_TREAT_CDATA_AS_TEXT, &p, NULL);
	if (!g_markup_parse_context_parse(context, xml, (gssize)bytes, &error) ||
	    !g_markup_parse_context_end_parse(context, &error))
		status = fx_error_set(err, FX_EDATA, "the image's meta data are no well-formed XML: %s", error->message);
	else if (p.short_of_memory)
		status = fx_error_set(err, FX_ENOMEM, "out of memory for an image's meta data");
	g_clear_error(&error);
	g_markup_parse_context_free(context);
	g_free(p.name);
	g_free(p.value);
	return status;
}

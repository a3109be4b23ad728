/* SPDX-License-Identifier: MIT */
#include "apps/gadget_text.h"

#include <string.h>

#include "stream/property.h"

#define COLUMNS 80

static void put_paragraph(FILE *out, int indent, const char *text, size_t n)
{
	int column = 0;

	for (size_t i = 0; i < n;) {
		size_t length = strcspn(text + i, " \n");
		int width = 0;

		if (length > n - i)
			length = n - i;
		for (size_t j = 0; j < length; j++)
			width += ((unsigned char)text[i + j] & 0xC0) != 0x80; /* UTF-8: continuation bytes take no column */
		if (length > 0) {
			if (column == 0 || column + 1 + width > COLUMNS)
				column = fprintf(out, "%s%*s", column ? "\n" : "", indent, "") - (column ? 1 : 0);
			else
				column += fprintf(out, " ");
			fwrite(text + i, 1, length, out);
			column += width;
		}
		i += length + 1;
	}
	fputc('\n', out);
}

/* Bytes up to the end of the paragraph, or of a line that is indented and so keeps its break. */
static size_t piece_length(const char *text)
{
	size_t n = strcspn(text, "\n");

	if (*text == ' ' || *text == '\t')
		return n;
	while (text[n] == '\n' && text[n + 1] != '\0' && !strchr("\n \t", text[n + 1]))
		n += 1 + strcspn(text + n + 1, "\n");
	return n;
}

void fxi_text_wrapped(FILE *out, int indent, const char *text)
{
	while (*text) {
		size_t n = piece_length(text);

		if (n == 0)
			fputc('\n', out);
		else if (*text == ' ' || *text == '\t')
			fprintf(out, "%*s%.*s\n", indent, "", (int)n, text);
		else
			put_paragraph(out, indent, text, n);
		text += n + (text[n] == '\n');
	}
}

/* "acquisition, waveform"; "nothing" for none. */
static void put_kinds(FILE *out, unsigned kinds)
{
	const char *comma = "";

	if (kinds == 0)
		fputs("nothing", out);
	for (unsigned bit = 1; bit != 0 && bit <= kinds; bit <<= 1)
		if (kinds & bit) {
			fprintf(out, "%s%s", comma, fx_kind_name(bit));
			comma = ", ";
		}
}

static const char *places_text(unsigned places)
{
	if ((places & FX_HOST) && (places & FX_DEVICE))
		return "host and device";
	return places & FX_DEVICE ? "device" : "host";
}

void fxi_gadget_text(FILE *out, const fx_gadget *g)
{
	char allowed[512];

	fprintf(out, "%s: %s\n\n", g->name, g->summary);
	if (g->description) {
		fxi_text_wrapped(out, 0, g->description);
		fputc('\n', out);
	}
	fputs("takes  ", out);
	put_kinds(out, g->takes);
	fputs("\ngives  ", out);
	put_kinds(out, g->gives);
	if (g->needs) {
		fputs("\nneeds  ", out);
		put_kinds(out, g->needs);
	}
	fprintf(out, "\nworks  on the %s\n", places_text(g->places));
	fputs(fxi_properties_count(g->props) ? "\nproperties\n" : "\nno properties\n", out);
	for (const fx_prop *p = g->props; p && p->name; p++) {
		fxi_property_allowed(p, allowed, sizeof allowed);
		fprintf(out, "  %s=%s%s%s  (%s: %s)\n", p->name, *p->def ? "" : "\"", p->def, *p->def ? "" : "\"",
			fxi_property_type_name(p->type), allowed);
		fxi_text_wrapped(out, 6, p->help);
	}
}

void fxi_put_cell(FILE *out, const char *text)
{
	for (; *text; text++)
		fputs(*text == '|' ? "\\|" : (const char[]){*text, '\0'}, out);
}

void fxi_gadget_page(FILE *out, const fx_gadget *g)
{
	char allowed[512];

	fprintf(out, "<!-- written by `fornix docs` from the gadget's own table; change it there -->\n\n# %s\n\n%s.\n\n", g->name,
		g->summary);
	if (g->description)
		fprintf(out, "%s\n\n", g->description);
	fputs("| | |\n|---|---|\n| takes | ", out);
	put_kinds(out, g->takes);
	fputs(" |\n| gives | ", out);
	put_kinds(out, g->gives);
	if (g->needs) {
		fputs(" |\n| needs | ", out);
		put_kinds(out, g->needs);
	}
	fprintf(out, " |\n| works on | %s |\n", places_text(g->places));
	if (fxi_properties_count(g->props) == 0) {
		fputs("\nNo properties.\n", out);
		return;
	}
	fputs("\n| property | type | default | allowed | meaning |\n|---|---|---|---|---|\n", out);
	for (const fx_prop *p = g->props; p->name; p++) {
		fxi_property_allowed(p, allowed, sizeof allowed);
		fprintf(out, "| `%s` | %s | `\"", p->name, fxi_property_type_name(p->type));
		fxi_put_cell(out, p->def);
		fputs("\"` | ", out);
		fxi_put_cell(out, allowed);
		fputs(" | ", out);
		fxi_put_cell(out, p->help);
		fputs(" |\n", out);
	}
}

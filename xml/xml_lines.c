/* SPDX-License-Identifier: MIT */
#include "xml_lines.h"

#include <stdlib.h>
#include <string.h>

struct fxi_xml_lines {
	const char *at, *end;
	int line;
};

fxi_xml_lines *fxi_xml_lines_new(const char *text, size_t size)
{
	fxi_xml_lines *l = malloc(sizeof *l);

	if (l)
		*l = (fxi_xml_lines){.at = text, .end = text + size, .line = 1};
	return l;
}

void fxi_xml_lines_free(fxi_xml_lines *l)
{
	free(l);
}

static void step(fxi_xml_lines *l)
{
	if (*l->at == '\n')
		l->line++;
	l->at++;
}

static int starts(const fxi_xml_lines *l, const char *text)
{
	size_t length = strlen(text);

	return (size_t)(l->end - l->at) >= length && memcmp(l->at, text, length) == 0;
}

/* Moves behind the next `text`, or to the end. */
static void skip_past(fxi_xml_lines *l, const char *text)
{
	while (l->at < l->end && !starts(l, text))
		step(l);
	for (size_t i = 0; i < strlen(text) && l->at < l->end; i++)
		step(l);
}

int fxi_xml_lines_element(fxi_xml_lines *l)
{
	while (l->at < l->end) {
		if (*l->at != '<')
			step(l);
		else if (starts(l, "<!--"))
			skip_past(l, "-->");
		else if (starts(l, "<![CDATA["))
			skip_past(l, "]]>");
		else if (starts(l, "<?"))
			skip_past(l, "?>");
		else if (starts(l, "</"))
			skip_past(l, ">");
		else {
			int line = l->line;

			while (l->at < l->end && !strchr(" \t\r\n/>", *l->at))
				step(l);
			return line;
		}
	}
	return 0;
}

int fxi_xml_lines_attribute(fxi_xml_lines *l)
{
	while (l->at < l->end && *l->at != '>' && *l->at != '/') {
		int line = l->line;
		const char *name = l->at;
		char quote[2] = "";

		if (strchr(" \t\r\n", *l->at)) {
			step(l);
			continue;
		}
		while (l->at < l->end && *l->at != '"' && *l->at != '\'')
			step(l);
		if (l->at == l->end)
			return 0;
		quote[0] = *l->at;
		step(l);
		skip_past(l, quote);
		if (strncmp(name, "xmlns", 5) == 0 && strchr(":= \t\r\n", name[5]))
			continue;
		return line;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "xml_util.h"

#include <glib.h>
#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int explain(xmlParserCtxt *ctxt, const char *name, int bad, fx_error *err)
{
	const xmlError *e = xmlCtxtGetLastError(ctxt);

	if (!e || !e->message || e->code == XML_ERR_NO_MEMORY)
		return fx_error_set(err, FX_ENOMEM, "%s: not enough memory to parse the XML", name);
	size_t length = strlen(e->message);
	while (length > 0 && is_blank(e->message[length - 1]))
		length--;
	return fx_error_set(err, bad, "%s:%d: not well-formed XML: %.*s", name, e->line, (int)length, e->message);
}

int fxi_xml_read(const char *text, size_t size, const char *name, int bad, fx_error *err, xmlDoc **out)
{
	xmlParserCtxt *ctxt;
	xmlDoc *doc;
	int status = FX_OK;

	*out = NULL;
	if (size > INT32_MAX)
		return fx_error_set(err, bad, "%s: %zu bytes of XML are too many", name, size);
	ctxt = xmlNewParserCtxt();
	if (!ctxt)
		return fx_error_set(err, FX_ENOMEM, "%s: not enough memory to parse the XML", name);
	doc = xmlCtxtReadMemory(ctxt, text, (int)size, name, NULL,
		XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_BIG_LINES);
	if (!doc)
		status = explain(ctxt, name, bad, err);
	else if (doc->intSubset)
		/* Nothing that Fornix reads has one, and it is where entity bombs live. */
		status = fx_error_set(err, bad, "%s: has a document type declaration (<!DOCTYPE>); take it out", name);
	xmlFreeParserCtxt(ctxt);
	if (status != FX_OK) {
		xmlFreeDoc(doc);
		return status;
	}
	*out = doc;
	return FX_OK;
}

bool fxi_xml_is(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

xmlNode *fxi_xml_child(const xmlNode *parent, const char *name)
{
	if (!parent || !parent->children)
		return NULL;
	return fxi_xml_is(parent->children, name) ? parent->children : fxi_xml_next(parent->children, name);
}

xmlNode *fxi_xml_next(const xmlNode *node, const char *name)
{
	for (xmlNode *n = node->next; n; n = n->next)
		if (fxi_xml_is(n, name))
			return n;
	return NULL;
}

char *fxi_xml_text(const xmlNode *node)
{
	size_t size = 0, start = 0;
	char *text;

	for (const xmlNode *n = node ? node->children : NULL; n; n = n->next)
		if (n->type == XML_TEXT_NODE || n->type == XML_CDATA_SECTION_NODE)
			size += strlen((const char *)n->content);
	text = malloc(size + 1);
	if (!text)
		return NULL;
	text[0] = '\0';
	size = 0;
	for (const xmlNode *n = node ? node->children : NULL; n; n = n->next)
		if (n->type == XML_TEXT_NODE || n->type == XML_CDATA_SECTION_NODE) {
			size_t length = strlen((const char *)n->content);

			memcpy(text + size, n->content, length + 1);
			size += length;
		}
	while (size > 0 && is_blank(text[size - 1]))
		size--;
	while (start < size && is_blank(text[start]))
		start++;
	memmove(text, text + start, size - start);
	text[size - start] = '\0';
	return text;
}

bool fxi_xml_number(const char *text, double *out)
{
	char *end;
	double value = g_ascii_strtod(text, &end);

	if (end == text)
		return false;
	while (is_blank(*end))
		end++;
	if (*end != '\0')
		return false;
	*out = value;
	return true;
}

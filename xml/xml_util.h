/* SPDX-License-Identifier: MIT */
/* xml_util.h - what both XML readers need: safe parsing, elements by local name, texts and numbers. */
#ifndef FORNIX_XML_UTIL_H
#define FORNIX_XML_UTIL_H

#include <fornix/base.h>
#include <libxml/tree.h>

/**
 * Parses a document from memory without network, entities or document type; `name` stands in front of the message,
 * which has the line; `bad` is the status of a text that is wrong. Free with xmlFreeDoc.
 */
int fxi_xml_read(const char *text, size_t size, const char *name, int bad, fx_error *err, xmlDoc **out);

/** The first child element of that local name, or NULL; `parent` may be NULL. */
xmlNode *fxi_xml_child(const xmlNode *parent, const char *name);
/** The next sibling element of that local name, or NULL. */
xmlNode *fxi_xml_next(const xmlNode *node, const char *name);
/** True for an element of that local name. */
bool fxi_xml_is(const xmlNode *node, const char *name);
/** The element's own text, trimmed; "" for NULL. NULL only when memory is short. Release with free(). */
char *fxi_xml_text(const xmlNode *node);
/** The whole of `text` as a number, in the C locale; blanks around it are fine. */
bool fxi_xml_number(const char *text, double *out);

#endif

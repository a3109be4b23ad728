/* SPDX-License-Identifier: MIT */
/*
 * xml_lines.h - on which line each element and attribute starts. libxml2 knows only where a start tag ends, and a
 * gadget with a property a line is the usual way to write a long one.
 */
#ifndef FORNIX_XML_LINES_H
#define FORNIX_XML_LINES_H

#include <stddef.h>

typedef struct fxi_xml_lines fxi_xml_lines;

/** Starts at the front of a well-formed UTF-8 document, which must outlive it. NULL when memory is short. */
fxi_xml_lines *fxi_xml_lines_new(const char *text, size_t size);
void fxi_xml_lines_free(fxi_xml_lines *l);
/** Moves to the next start tag in document order; its line, or 0 at the end. */
int fxi_xml_lines_element(fxi_xml_lines *l);
/** Moves to the next attribute of that start tag that is no namespace declaration; its line, or 0 at the tag's end. */
int fxi_xml_lines_attribute(fxi_xml_lines *l);

#endif

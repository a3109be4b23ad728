/* SPDX-License-Identifier: MIT */
/* gadget_text.h - a gadget's descriptor and property table as text: for the terminal, and as a page of the docs. */
#ifndef FORNIX_APPS_GADGET_TEXT_H
#define FORNIX_APPS_GADGET_TEXT_H

#include <fornix/gadget.h>
#include <stdio.h>

/** Wrapped to 80 columns, each line behind `indent` blanks; empty lines part paragraphs, indented lines stay as they are. */
void fxi_text_wrapped(FILE *out, int indent, const char *text);
/** What `fornix describe` shows. */
void fxi_gadget_text(FILE *out, const fx_gadget *g);
/** Text for a cell of a Markdown table, where a bar would end it. */
void fxi_put_cell(FILE *out, const char *text);
/** A page in Markdown; the same bytes for the same table. */
void fxi_gadget_page(FILE *out, const fx_gadget *g);

#endif

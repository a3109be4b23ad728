/* SPDX-License-Identifier: MIT */
/*
 * gadgetron.h - Gadgetron's configurations as pipelines. Both forms are read (gadgetronStreamConfiguration, and configuration
 * version 2); a table says which of our gadgets a class becomes. What has no counterpart is refused by its name and line.
 */
#ifndef FORNIX_XML_GADGETRON_H
#define FORNIX_XML_GADGETRON_H

#include <libxml/tree.h>

#include "stream/pipeline.h"

enum fxi_gadgetron_verdict {
	FXI_GADGETRON_RUNS = 0,
	FXI_GADGETRON_APPROXIMATED, /**< runs, and differs from Gadgetron in a way that `text` tells */
	FXI_GADGETRON_MISSING       /**< cannot run: `text` tells why */
};

/** What becomes of one element of a configuration. */
typedef struct fxi_gadgetron_item {
	const char *kind;           /**< "gadget", "reader", "writer"; or the element's own name */
	char *name;                 /**< as the configuration names it, or NULL */
	char *classname;            /**< or NULL */
	int line;
	int verdict;                /**< enum fxi_gadgetron_verdict */
	int status;                 /**< of what is missing: FX_ENOTSUP where Gadgetron has it, FX_EINVAL where it is wrong */
	char *text;                 /**< the gadgets it becomes, or what is wrong */
} fxi_gadgetron_item;

/** A configuration, element by element in its order. */
typedef struct fxi_gadgetron {
	int version;                /**< 1: gadgetronStreamConfiguration; 2: configuration */
	int64_t n_items;
	fxi_gadgetron_item *items;
	int64_t n_verdicts[3];
} fxi_gadgetron;

void fxi_gadgetron_free(fxi_gadgetron *g);

/** True for the root elements of both forms. */
bool fxi_gadgetron_is(const xmlNode *root);
/**
 * Translates a document (the text is it again, for lines; node->_private is written to) into stages of `p`, which is empty.
 * *out tells what became of each element, also where something is missing: then p is of no use, and FX_ENOTSUP or FX_EINVAL
 * explain the first such element with file and line. *out is NULL where memory is short.
 */
int fxi_gadgetron_translate(const xmlDoc *doc, const char *text, size_t size, fx_error *err, fxi_pipeline *p,
	fxi_gadgetron **out);

#endif

/* SPDX-License-Identifier: MIT */
/* gadgetron_model.h - what the readers of Gadgetron's configurations share: the document as a list, and the table of classes. */
#ifndef FORNIX_XML_GADGETRON_MODEL_H
#define FORNIX_XML_GADGETRON_MODEL_H

#include <glib.h>

#include "xml/gadgetron.h"

/* ---- gadgetron_read.c: a document as a list of nodes ------------------------------------------ */

typedef struct fxi_gt_property {
	char *name, *value;
	int line;
} fxi_gt_property;

enum fxi_gt_kind { FXI_GT_READER = 1, FXI_GT_WRITER, FXI_GT_GADGET, FXI_GT_OTHER };

typedef struct fxi_gt_node {
	int kind;               /* enum fxi_gt_kind */
	char *element;          /* its name */
	char *name, *dll, *classname, *slot; /* or NULL */
	int line;
	GArray *properties;     /* of fxi_gt_property */
	char *problem;          /* what is wrong with it, or NULL */
	int status;             /* of the problem */
} fxi_gt_node;

/** Reads a document into *nodes (of fxi_gt_node *); references `property@Gadget` are resolved. What is wrong is put into `problem`. */
int fxi_gt_read(const xmlDoc *doc, const char *text, size_t size, const char *file, fx_error *err, int *version,
	GPtrArray **nodes);
/** The first problem stays. */
void fxi_gt_problem(fxi_gt_node *node, int status, const char *fmt, ...) FX_PRINTF(3, 4);

/* gadgetron_references.c */
void fxi_gt_resolve(GPtrArray *nodes);

/* ---- gadgetron_table.c: classes and what they become ------------------------------------------ */

enum fxi_gt_type { FXI_GT_BOOL = 1, FXI_GT_INT, FXI_GT_FLOAT, FXI_GT_TEXT, FXI_GT_DIMENSION };

enum fxi_gt_use {
	FXI_GT_PASS = 1,  /* the value goes to the property `to` of the stage */
	FXI_GT_READ,      /* the role's own code reads it */
	FXI_GT_IGNORE,    /* it changes no image: logs, timing, where files lie. `remark` says so where that is worth telling */
	FXI_GT_REFUSE     /* only its default is possible */
};

typedef struct fxi_gt_alias_property {
	const char *name;
	int type;            /* enum fxi_gt_type */
	double min, max;     /* of numbers */
	int use;             /* enum fxi_gt_use */
	const char *to;
	const char *def;     /* FXI_GT_REFUSE: the value that is possible */
	const char *remark;  /* makes it an approximation where the property is given */
} fxi_gt_alias_property;

enum fxi_gt_role {
	FXI_GT_STAGE = 1, FXI_GT_NOISE, FXI_GT_TRIGGER, FXI_GT_BUFFER, FXI_GT_RECON, FXI_GT_EXTRACT,
	FXI_GT_NOTHING       /* needs no gadget here */
};

typedef struct fxi_gt_alias {
	const char *classname, *dll;
	int role;            /* enum fxi_gt_role */
	bool of_images;      /* works on images, so that the chain gives images */
	const char *stage;   /* our gadget */
	const char *fixed[5];/* "property=value", ends with NULL */
	const char *becomes; /* what `fornix check` says */
	bool approximated;
	const fxi_gt_alias_property *properties; /* ends with a NULL name; or NULL */
} fxi_gt_alias;

typedef struct fxi_gt_port {
	const char *classname, *dll;
	int slot;
	bool missing;
	const char *becomes;
} fxi_gt_port;

/** The class, or NULL. */
const fxi_gt_alias *fxi_gt_find(const char *classname);
/** A reader or writer, or NULL. */
const fxi_gt_port *fxi_gt_find_port(int kind, const char *classname);
/** True for classes that Gadgetron ships and that have no counterpart here. */
bool fxi_gt_elsewhere(const char *classname);
/** The class (of gadgets, readers or writers) that was probably meant, or NULL. */
const char *fxi_gt_nearest(int kind, const char *classname);
/** Lower case dimension word, its canonical form; NULL where it is none. "" and "none" give "none". */
const char *fxi_gt_dimension(const char *word);

#endif

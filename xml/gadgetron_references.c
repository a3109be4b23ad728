/* SPDX-License-Identifier: MIT */
/*
 * gadgetron_references.c - values of the form `property@Gadget`: what that property of that gadget says. A reference may lead to
 * another; one that leads nowhere, or round in a circle, is a problem of the gadget that makes it.
 */
#include "gadgetron_model.h"

#include <string.h>

#include "stream/nearest.h"

static fxi_gt_property *property_of(const fxi_gt_node *node, const char *name, size_t length)
{
	for (guint i = 0; i < node->properties->len; i++) {
		fxi_gt_property *p = &g_array_index(node->properties, fxi_gt_property, i);

		if (strlen(p->name) == length && strncmp(p->name, name, length) == 0)
			return p;
	}
	return NULL;
}

/* The gadget of that name; NULL, and *n tells whether there is none or several. */
static fxi_gt_node *gadget_of(GPtrArray *nodes, const char *name, int *n)
{
	fxi_gt_node *found = NULL;

	*n = 0;
	for (guint i = 0; i < nodes->len; i++) {
		fxi_gt_node *node = nodes->pdata[i];

		if (node->kind != FXI_GT_GADGET || !node->name || strcmp(node->name, name) != 0)
			continue;
		found = node;
		(*n)++;
	}
	return *n == 1 ? found : NULL;
}

static const char *near_gadget(GPtrArray *nodes, const char *wanted)
{
	const char **names = g_new0(const char *, nodes->len + 1), *near;
	int64_t n = 0;

	for (guint i = 0; i < nodes->len; i++) {
		const fxi_gt_node *node = nodes->pdata[i];

		if (node->kind == FXI_GT_GADGET && node->name)
			names[n++] = node->name;
	}
	near = fxi_nearest_name(wanted, names, n);
	g_free(names);
	return near;
}

/* What a reference points at; NULL with a problem where there is no such thing. */
static fxi_gt_property *follow(GPtrArray *nodes, fxi_gt_node *from, const fxi_gt_property *p, const char *reference)
{
	const char *at = strchr(reference, '@'), *near;
	fxi_gt_property *target;
	fxi_gt_node *gadget;
	int n;

	gadget = gadget_of(nodes, at + 1, &n);
	if (!gadget) {
		near = n == 0 ? near_gadget(nodes, at + 1) : NULL;
		fxi_gt_problem(from, FX_EINVAL, "%.100s refers to '%.200s', but %s gadget is called '%.100s'%s%s%s", p->name, reference,
			n == 0 ? "no" : "more than one", at + 1, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		return NULL;
	}
	target = property_of(gadget, reference, (size_t)(at - reference));
	if (!target)
		fxi_gt_problem(from, FX_EINVAL, "%.100s refers to '%.200s', but %.100s (line %d) gives no property '%.*s'", p->name,
			reference, gadget->name, gadget->line, (int)(at - reference), reference);
	return target;
}

void fxi_gt_resolve(GPtrArray *nodes)
{
	int n_properties = 0;

	for (guint i = 0; i < nodes->len; i++)
		n_properties += (int)((const fxi_gt_node *)nodes->pdata[i])->properties->len;
	for (guint i = 0; i < nodes->len; i++) {
		fxi_gt_node *node = nodes->pdata[i];

		for (guint j = 0; j < node->properties->len; j++) {
			fxi_gt_property *p = &g_array_index(node->properties, fxi_gt_property, j), *target = p;
			int steps = 0;

			while (target && strchr(target->value, '@') && steps++ <= n_properties)
				target = follow(nodes, node, p, target->value);
			if (target && steps > n_properties) {
				fxi_gt_problem(node, FX_EINVAL, "%.100s refers to '%.200s', which leads back to itself", p->name, p->value);
				target = NULL;
			}
			/* A problem stands: no later reference may follow this one. */
			if (target != p) {
				char *value = g_strdup(target ? target->value : "");

				g_free(p->value);
				p->value = value;
			}
		}
	}
}

/* SPDX-License-Identifier: MIT */
/*
 * gadgetron_read.c - Gadgetron's two XML forms into one list. Gadgetron passes over much of what it does not understand; here
 * all of it is kept as a problem of its element, so that a whole configuration can be told about at once.
 */
#include "gadgetron_model.h"

#include <fornix/property.h>
#include <stdlib.h>
#include <string.h>

#include "stream/nearest.h"
#include "xml_lines.h"
#include "xml_util.h"

void fxi_gt_problem(fxi_gt_node *node, int status, const char *fmt, ...)
{
	va_list args;

	if (node->problem)
		return;
	va_start(args, fmt);
	node->problem = g_strdup_vprintf(fmt, args);
	va_end(args);
	node->status = status;
}

static void free_node(gpointer data)
{
	fxi_gt_node *node = data;

	for (guint i = 0; i < node->properties->len; i++) {
		g_free(g_array_index(node->properties, fxi_gt_property, i).name);
		g_free(g_array_index(node->properties, fxi_gt_property, i).value);
	}
	g_array_free(node->properties, TRUE);
	g_free(node->element);
	g_free(node->name);
	g_free(node->dll);
	g_free(node->classname);
	g_free(node->slot);
	g_free(node->problem);
	g_free(node);
}

/* The line of every element, where it can be found again. The XML reader bounds the depth. */
static void number_lines(xmlNode *node, fxi_xml_lines *lines)
{
	for (; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE)
			continue;
		int line = fxi_xml_lines_element(lines);

		node->_private = GINT_TO_POINTER(line ? line : (int)xmlGetLineNo(node));
		number_lines(node->children, lines);
	}
}

static int line_of(const xmlNode *node)
{
	return GPOINTER_TO_INT(node->_private);
}

static const char *name_of(const xmlNode *node)
{
	return (const char *)node->name;
}

/* Texts between elements; comments and blanks are none. */
static bool is_stray(const xmlNode *node)
{
	return node->type != XML_ELEMENT_NODE && node->type != XML_COMMENT_NODE && node->type != XML_PI_NODE &&
		!(node->type == XML_TEXT_NODE && xmlIsBlankNode((xmlNode *)(uintptr_t)node));
}

static char *text_of(const xmlNode *node)
{
	char *text = fxi_xml_text(node), *copy = g_strdup(text ? text : "");

	free(text);
	return copy;
}

static char *attribute(const xmlNode *node, const char *name)
{
	for (const xmlAttr *a = node->properties; a; a = a->next)
		if (!a->ns && strcmp((const char *)a->name, name) == 0)
			return text_of((const xmlNode *)a);
	return NULL;
}

/* ---- gadgets, readers, writers ----------------------------------------------------------------- */

/* <property name="k" value="v"/>, or <property><name>k</name><value>v</value></property>. */
static void read_property(fxi_gt_node *node, const xmlNode *from)
{
	fxi_gt_property p = {.name = attribute(from, "name"), .value = attribute(from, "value"), .line = line_of(from)};
	const xmlNode *name = fxi_xml_child(from, "name"), *value = fxi_xml_child(from, "value");
	bool flat = p.name || p.value, nested = name || value;

	if (flat && nested)
		fxi_gt_problem(node, FX_EINVAL, "a property in line %d has name and value both as attributes and as elements", p.line);
	else if ((flat && (!p.name || !p.value)) || (!flat && (!name || !value)))
		fxi_gt_problem(node, FX_EINVAL, "a property in line %d lacks its name or its value", p.line);
	if (nested && !flat) {
		p.name = name ? text_of(name) : NULL;
		p.value = value ? text_of(value) : NULL;
	}
	for (const xmlNode *n = from->children; n; n = n->next)
		if (is_stray(n) || (n->type == XML_ELEMENT_NODE && n != name && n != value))
			fxi_gt_problem(node, FX_EINVAL, "a property in line %d holds more than one name and one value", p.line);
	for (guint i = 0; i < node->properties->len && p.name; i++)
		if (strcmp(g_array_index(node->properties, fxi_gt_property, i).name, p.name) == 0)
			fxi_gt_problem(node, FX_EINVAL, "its property '%.100s' is given twice, again in line %d", p.name, p.line);
	if (p.name && p.value) {
		g_array_append_val(node->properties, p);
		return;
	}
	g_free(p.name);
	g_free(p.value);
}

static void read_field(fxi_gt_node *node, const xmlNode *from)
{
	static const char *const fields[] = {"name", "dll", "classname", "property", "slot", NULL};
	char **texts[] = {&node->name, &node->dll, &node->classname, NULL, &node->slot};
	const char *element = name_of(from), *near;

	for (int i = 0; fields[i]; i++) {
		if (strcmp(element, fields[i]) != 0)
			continue;
		if (!texts[i])
			read_property(node, from);
		else if (*texts[i])
			fxi_gt_problem(node, FX_EINVAL, "it has <%s> twice, again in line %d", element, line_of(from));
		else
			*texts[i] = text_of(from);
		return;
	}
	near = fx_nearest_word(element, fields);
	fxi_gt_problem(node, FX_EINVAL, "line %d: there is no element <%.60s> in a <%s>%s%s%s", line_of(from), element, node->element,
		near ? "; did you mean <" : "", near ? near : "", near ? ">?" : "");
}

static fxi_gt_node *add_node(GPtrArray *nodes, int kind, const xmlNode *from)
{
	fxi_gt_node *node = g_new0(fxi_gt_node, 1);

	node->kind = kind;
	node->element = g_strdup(name_of(from));
	node->line = line_of(from);
	node->properties = g_array_new(FALSE, FALSE, sizeof(fxi_gt_property));
	g_ptr_array_add(nodes, node);
	return node;
}

static void read_node(GPtrArray *nodes, int kind, const xmlNode *from)
{
	fxi_gt_node *node = add_node(nodes, kind, from);

	for (const xmlNode *n = from->children; n; n = n->next) {
		if (n->type == XML_ELEMENT_NODE)
			read_field(node, n);
		else if (is_stray(n))
			fxi_gt_problem(node, FX_EINVAL, "text lies between its elements");
	}
	if (!node->classname || !*node->classname)
		fxi_gt_problem(node, FX_EINVAL, "it has no <classname>");
}

/* ---- what stands around them -------------------------------------------------------------------- */

static void refuse_element(GPtrArray *nodes, const xmlNode *from, const char *place, const char *const *known)
{
	static const char *const other[] = {"parallel", "external", "distributed", "parallelprocess", "puredistributed", NULL};
	static const char *const why[] = {
		"branches of a stream are not something a Fornix pipeline has: a chain has one way through",
		"programs and servers of their own (Python, MATLAB, other hosts) are not something a pipeline starts",
		"a scan is not spread over other servers",
		"gadgets use every processor by themselves: put the gadgets of its <purestream> straight into the stream",
		"a scan is not spread over other servers",
	};
	fxi_gt_node *node = add_node(nodes, FXI_GT_OTHER, from);
	const char *near;

	for (int i = 0; other[i]; i++)
		if (strcmp(name_of(from), other[i]) == 0) {
			fxi_gt_problem(node, FX_ENOTSUP, "%s", why[i]);
			return;
		}
	near = fx_nearest_word(name_of(from), known);
	fxi_gt_problem(node, FX_EINVAL, "there is no such element in <%s>%s%s%s", place, near ? "; did you mean <" : "",
		near ? near : "", near ? ">?" : "");
}

static void read_children(GPtrArray *nodes, const xmlNode *parent, const char *element, int kind)
{
	const char *const known[] = {element, NULL};

	for (const xmlNode *n = parent->children; n; n = n->next) {
		if (fxi_xml_is(n, element))
			read_node(nodes, kind, n);
		else if (n->type == XML_ELEMENT_NODE)
			refuse_element(nodes, n, name_of(parent), known);
		else if (is_stray(n))
			fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, parent), FX_EINVAL, "text lies between its elements");
	}
}

static void read_legacy(GPtrArray *nodes, const xmlNode *root)
{
	static const char *const known[] = {"reader", "writer", "gadget", NULL};

	for (const xmlNode *n = root->children; n; n = n->next) {
		int kind = FXI_GT_READER;

		if (is_stray(n))
			fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, root), FX_EINVAL, "text lies between its elements");
		if (n->type != XML_ELEMENT_NODE)
			continue;
		while (kind <= FXI_GT_GADGET && strcmp(name_of(n), known[kind - FXI_GT_READER]) != 0)
			kind++;
		if (kind <= FXI_GT_GADGET)
			read_node(nodes, kind, n);
		else
			refuse_element(nodes, n, name_of(root), known);
	}
}

static void read_version(GPtrArray *nodes, const xmlNode *from)
{
	char *version = text_of(from);

	if (strcmp(version, "2") != 0)
		fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, from), FX_EINVAL, "it is '%.40s'; 2 is the one version there is", version);
	g_free(version);
}

static void read_version_2(GPtrArray *nodes, const xmlNode *root)
{
	static const char *const known[] = {"version", "readers", "writers", "stream", NULL};
	bool versioned = false, streamed = false;

	for (const xmlNode *n = root->children; n; n = n->next) {
		if (is_stray(n))
			fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, root), FX_EINVAL, "text lies between its elements");
		if (n->type != XML_ELEMENT_NODE)
			continue;
		if (fxi_xml_is(n, "version")) {
			versioned = true;
			read_version(nodes, n);
		} else if (fxi_xml_is(n, "readers"))
			read_children(nodes, n, "reader", FXI_GT_READER);
		else if (fxi_xml_is(n, "writers"))
			read_children(nodes, n, "writer", FXI_GT_WRITER);
		else if (fxi_xml_is(n, "stream")) {
			if (streamed)
				fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, n), FX_EINVAL, "a configuration has one stream; this is its second");
			streamed = true;
			read_children(nodes, n, "gadget", FXI_GT_GADGET);
		} else
			refuse_element(nodes, n, name_of(root), known);
	}
	if (!versioned)
		fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, root), FX_EINVAL, "it lacks <version>2</version>");
	if (!streamed)
		fxi_gt_problem(add_node(nodes, FXI_GT_OTHER, root), FX_EINVAL, "it has no <stream>");
}

bool fxi_gadgetron_is(const xmlNode *root)
{
	return fxi_xml_is(root, "gadgetronStreamConfiguration") || fxi_xml_is(root, "configuration");
}

int fxi_gt_read(const xmlDoc *doc, const char *text, size_t size, const char *file, fx_error *err, int *version,
	GPtrArray **nodes)
{
	xmlNode *root = xmlDocGetRootElement(doc);
	fxi_xml_lines *lines = fxi_xml_lines_new(text, size);

	*nodes = NULL;
	if (!lines)
		return fx_error_set(err, FX_ENOMEM, "%s: not enough memory for the configuration", file);
	number_lines(root, lines);
	fxi_xml_lines_free(lines);
	*version = fxi_xml_is(root, "configuration") ? 2 : 1;
	*nodes = g_ptr_array_new_with_free_func(free_node);
	if (*version == 2)
		read_version_2(*nodes, root);
	else
		read_legacy(*nodes, root);
	fxi_gt_resolve(*nodes);
	return FX_OK;
}

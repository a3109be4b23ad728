/* SPDX-License-Identifier: MIT */
/*
 * pipeline_file.c - pipeline XML into stages and settings. Nothing is skipped in silence: whatever the form has no
 * place for is refused with its line, since a property that is not read is a wrong image later.
 */
#include "pipeline_file.h"

#include "gadgetron.h"
#include "xml_lines.h"
#include "xml_util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1 << 20)

struct reader {
	const char *file;
	fxi_xml_lines *lines;
	fxi_pipeline *p;
	fx_error *err;
};

static int no_memory(struct reader *r)
{
	return fx_error_set(r->err, FX_ENOMEM, "%s: not enough memory for the pipeline", r->file);
}

/* The scanner reads UTF-8; for other encodings libxml2's own line (where the tag ends) has to do. */
static int element_line(struct reader *r, const xmlNode *node)
{
	int line = fxi_xml_lines_element(r->lines);

	return line ? line : (int)xmlGetLineNo(node);
}

static bool is_blank_text(const xmlNode *node)
{
	return node->type == XML_TEXT_NODE && xmlIsBlankNode((xmlNode *)node);
}

/* ---- description ----------------------------------------------------------------------------- */

static size_t indent_of(const char *line)
{
	return strspn(line, " \t");
}

/* A comment without the blanks around it and the indent that all its lines but the first share. */
static char *tidy(const char *comment)
{
	size_t shared = SIZE_MAX, size = 0;
	char *text = malloc(strlen(comment) + 1);

	if (!text)
		return NULL;
	for (const char *line = strchr(comment, '\n'); line; line = strchr(line + 1, '\n')) {
		size_t indent = indent_of(line + 1);

		if (line[1 + indent] != '\n' && line[1 + indent] != '\0' && indent < shared)
			shared = indent;
	}
	comment += strspn(comment, " \t\r\n");
	for (const char *line = comment; line;) {
		const char *next = strchr(line, '\n');
		size_t length = next ? (size_t)(next - line) : strlen(line), skip = indent_of(line);

		if (skip > shared)
			skip = shared;
		if (line == comment)
			skip = 0;
		if (skip > length)
			skip = length;
		memcpy(text + size, line + skip, length - skip);
		size += length - skip;
		while (size > 0 && strchr(" \t\r", text[size - 1]))
			size--;
		text[size++] = '\n';
		line = next ? next + 1 : NULL;
	}
	while (size > 0 && text[size - 1] == '\n')
		size--;
	text[size] = '\0';
	return text;
}

/* The first comment that stands before the first gadget, outside the root or in it. */
static int read_description(struct reader *r, const xmlDoc *doc, const xmlNode *root)
{
	const xmlNode *comment = NULL;

	for (const xmlNode *n = doc->children; n && n != root && !comment; n = n->next)
		if (n->type == XML_COMMENT_NODE)
			comment = n;
	for (const xmlNode *n = root->children; n && n->type != XML_ELEMENT_NODE && !comment; n = n->next)
		if (n->type == XML_COMMENT_NODE)
			comment = n;
	if (!comment || !comment->content)
		return FX_OK;
	r->p->description = tidy((const char *)comment->content);
	return r->p->description ? FX_OK : no_memory(r);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* An attribute's value is one text node, since entities are not expanded and character references already are. */
static char *value_of(const xmlAttr *a)
{
	return fxi_xml_text((const xmlNode *)a);
}

static bool is_schema_hint(const xmlAttr *a)
{
	return a->ns && strcmp((const char *)a->ns->href, "http://www.w3.org/2001/XMLSchema-instance") == 0;
}

static int read_setting(struct reader *r, const xmlNode *node, const xmlAttr *a, int line, fxi_setting *s)
{
	if (a->ns)
		return fx_error_set(r->err, FX_EINVAL, "%s:%d: <%s>: the property '%s' has a namespace prefix; write it without",
			r->file, line, (const char *)node->name, (const char *)a->name);
	s->name = strdup((const char *)a->name);
	s->value = value_of(a);
	s->line = line;
	return s->name && s->value ? FX_OK : no_memory(r);
}

static int refuse_content(struct reader *r, const xmlNode *node, int line)
{
	for (const xmlNode *n = node->children; n; n = n->next) {
		if (n->type == XML_COMMENT_NODE || n->type == XML_PI_NODE || is_blank_text(n))
			continue;
		if (n->type == XML_ELEMENT_NODE)
			return fx_error_set(r->err, FX_EINVAL, "%s:%d: <%s> holds an element <%s>; gadgets follow one another inside "
				"<pipeline>, and properties are attributes", r->file, line, (const char *)node->name,
				(const char *)n->name);
		return fx_error_set(r->err, FX_EINVAL, "%s:%d: <%s> holds text; properties are attributes, as in "
			"<%s name=\"value\"/>", r->file, line, (const char *)node->name, (const char *)node->name);
	}
	return FX_OK;
}

static bool in_namespace(const xmlNode *node)
{
	return node->ns && strcmp((const char *)node->ns->href, FXI_PIPELINE_NAMESPACE) == 0;
}

static int read_stage(struct reader *r, const xmlNode *node, int line, fxi_stage *stage)
{
	int64_t n = 0;
	int status;

	if (!in_namespace(node))
		return fx_error_set(r->err, FX_EINVAL, "%s:%d: <%s> is not in the namespace " FXI_PIPELINE_NAMESPACE, r->file,
			line, (const char *)node->name);
	stage->line = line;
	stage->gadget = strdup((const char *)node->name);
	for (const xmlAttr *a = node->properties; a; a = a->next)
		n++;
	if (n > 0)
		stage->settings = calloc((size_t)n, sizeof *stage->settings);
	if (!stage->gadget || (n > 0 && !stage->settings))
		return no_memory(r);
	for (const xmlAttr *a = node->properties; a; a = a->next) {
		int attribute_line = fxi_xml_lines_attribute(r->lines);

		status = read_setting(r, node, a, attribute_line ? attribute_line : line, &stage->settings[stage->n_settings++]);
		if (status != FX_OK)
			return status;
	}
	return refuse_content(r, node, line);
}

static int read_stages(struct reader *r, const xmlNode *root)
{
	int64_t n = 0;

	for (const xmlNode *node = root->children; node; node = node->next)
		n += node->type == XML_ELEMENT_NODE;
	if (n == 0)
		return fx_error_set(r->err, FX_EINVAL, "%s: <pipeline> holds no gadget", r->file);
	r->p->stages = calloc((size_t)n, sizeof *r->p->stages);
	if (!r->p->stages)
		return no_memory(r);
	for (const xmlNode *node = root->children; node; node = node->next) {
		int status;

		if (node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE || is_blank_text(node))
			continue;
		if (node->type != XML_ELEMENT_NODE)
			return fx_error_set(r->err, FX_EINVAL, "%s:%ld: text between the gadgets; put remarks into <!-- -->", r->file,
				xmlGetLineNo(node));
		status = read_stage(r, node, element_line(r, node), &r->p->stages[r->p->n_stages++]);
		if (status != FX_OK)
			return status;
	}
	return FX_OK;
}

/* ---- root ------------------------------------------------------------------------------------ */

static int check_root(struct reader *r, const xmlNode *root, int line)
{
	const char *name = (const char *)root->name;

	if (strcmp(name, "pipeline") != 0)
		return fx_error_set(r->err, FX_EINVAL, "%s:%d: the root element is <%s>; a pipeline starts with "
			"<pipeline xmlns=\"" FXI_PIPELINE_NAMESPACE "\">", r->file, line, name);
	if (in_namespace(root))
		return FX_OK;
	return fx_error_set(r->err, FX_EINVAL, "%s:%d: <pipeline> %s%s%s; write <pipeline xmlns=\"" FXI_PIPELINE_NAMESPACE "\">",
		r->file, line, root->ns ? "is in the namespace '" : "has no namespace",
		root->ns ? (const char *)root->ns->href : "", root->ns ? "'" : "");
}

static int read_root(struct reader *r, const xmlNode *root)
{
	int line = element_line(r, root);
	int status = check_root(r, root, line);

	for (const xmlAttr *a = status == FX_OK ? root->properties : NULL; a; a = a->next) {
		int attribute_line = fxi_xml_lines_attribute(r->lines);

		if (is_schema_hint(a))
			continue;
		if (a->ns || strcmp((const char *)a->name, "summary") != 0)
			return fx_error_set(r->err, FX_EINVAL, "%s:%d: <pipeline> has an attribute '%s'; it takes summary only", r->file,
				attribute_line ? attribute_line : line, (const char *)a->name);
		r->p->summary = value_of(a);
		if (!r->p->summary)
			return no_memory(r);
	}
	return status == FX_OK ? read_stages(r, root) : status;
}

/* Either of the native form or of Gadgetron's. */
static int read_document(struct reader *r, const xmlDoc *doc, const char *text, size_t size, fxi_gadgetron **report)
{
	const xmlNode *root = xmlDocGetRootElement(doc);
	fxi_gadgetron *own = NULL;
	int status;

	if (!fxi_gadgetron_is(root))
		return read_root(r, root);
	status = fxi_gadgetron_translate(doc, text, size, r->err, r->p, report ? report : &own);
	fxi_gadgetron_free(own);
	return status;
}

static int parse(const char *text, size_t size, const char *file, const char *folder, fx_error *err, fxi_gadgetron **report,
	fxi_pipeline **out)
{
	struct reader r = {.file = file, .err = err};
	xmlDoc *doc = NULL;
	int status;

	*out = NULL;
	if (report)
		*report = NULL;
	if (size > FILE_MAX)
		return fx_error_set(err, FX_EINVAL, "%s: more than %d bytes; this is no pipeline", file, FILE_MAX);
	status = fxi_xml_read(text, size, file, FX_EINVAL, err, &doc);
	if (status != FX_OK)
		return status;
	r.p = calloc(1, sizeof *r.p);
	r.lines = fxi_xml_lines_new(text, size);
	if (!r.p || !r.lines) {
		status = no_memory(&r);
		goto done;
	}
	r.p->file = strdup(file);
	r.p->folder = strdup(folder);
	status = r.p->file && r.p->folder ? read_document(&r, doc, text, size, report) : no_memory(&r);
	if (status == FX_OK)
		status = read_description(&r, doc, xmlDocGetRootElement(doc));
done:
	fxi_xml_lines_free(r.lines);
	xmlFreeDoc(doc);
	if (status != FX_OK) {
		fxi_pipeline_free(r.p);
		return status;
	}
	*out = r.p;
	return FX_OK;
}

int fxi_pipeline_parse(const char *text, size_t size, const char *file, const char *folder, fx_error *err,
	fxi_pipeline **out)
{
	return parse(text, size, file, folder, err, NULL, out);
}

static int read_file(const char *path, fx_error *err, char **text, size_t *size)
{
	FILE *f = fopen(path, "rb");
	int status = FX_OK;

	*text = NULL;
	if (!f)
		return fx_error_set(err, FX_EIO, "cannot open the pipeline %s: %s", path, strerror(errno));
	*text = malloc(FILE_MAX + 1);
	if (!*text) {
		fclose(f);
		return fx_error_set(err, FX_ENOMEM, "%s: not enough memory for the pipeline", path);
	}
	*size = fread(*text, 1, FILE_MAX + 1, f);
	if (ferror(f))
		status = fx_error_set(err, FX_EIO, "cannot read the pipeline %s: %s", path, strerror(errno));
	fclose(f);
	return status;
}

int fxi_pipeline_load_telling(const char *path, fx_error *err, fxi_gadgetron **report, fxi_pipeline **out)
{
	const char *slash = strrchr(path, '/');
	char *text, *folder = NULL;
	size_t size = 0;
	int status;

	*out = NULL;
	if (report)
		*report = NULL;
	status = read_file(path, err, &text, &size);
	if (status != FX_OK)
		goto done;
	folder = !slash ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
	status = folder ? parse(text, size, path, folder, err, report, out)
		: fx_error_set(err, FX_ENOMEM, "%s: not enough memory for the pipeline", path);
done:
	free(folder);
	free(text);
	return status;
}

int fxi_pipeline_load(const char *path, fx_error *err, fxi_pipeline **out)
{
	return fxi_pipeline_load_telling(path, err, NULL, out);
}

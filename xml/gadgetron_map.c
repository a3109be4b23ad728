/* SPDX-License-Identifier: MIT */
/*
 * gadgetron_map.c - a configuration's gadgets into stages. Gadgetron collects readouts into buckets and buckets into buffers
 * before it reconstructs; here the framer knows what belongs together, so the three gadgets become one, and what their properties
 * mean for the images is kept, or refused where it would cut images to pieces.
 */
#include "gadgetron_model.h"

#include <fornix/property.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xml_util.h"

struct map {
	GPtrArray *nodes;
	fxi_pipeline *p;
	fxi_gadgetron *out;
	bool images;            /* the chain gives images */
	bool no_memory;
	const fxi_gt_node *trigger, *buffer; /* that wait for a reconstruction */
};

static fxi_gadgetron_item *item_of(struct map *m, const fxi_gt_node *node)
{
	for (guint i = 0; i < m->nodes->len; i++)
		if (m->nodes->pdata[i] == node)
			return &m->out->items[i];
	return NULL;
}

static void say(struct map *m, const fxi_gt_node *node, int verdict, const char *fmt, ...) FX_PRINTF(4, 5);
static void say(struct map *m, const fxi_gt_node *node, int verdict, const char *fmt, ...)
{
	fxi_gadgetron_item *item = item_of(m, node);
	va_list args;
	char *text, *both;

	va_start(args, fmt);
	text = g_strdup_vprintf(fmt, args);
	va_end(args);
	both = item->text && *text ? g_strconcat(item->text, "; ", text, NULL) : g_strdup(item->text ? item->text : text);
	g_free(text);
	g_free(item->text);
	item->text = both;
	item->verdict = MAX(item->verdict, verdict);
}

/* ---- values ------------------------------------------------------------------------------------ */

static const char *value_of(const fxi_gt_node *node, const char *name, const char *def)
{
	for (guint i = 0; node && i < node->properties->len; i++) {
		const fxi_gt_property *p = &g_array_index(node->properties, fxi_gt_property, i);

		if (strcmp(p->name, name) == 0)
			return p->value;
	}
	return def;
}

static bool is_true(const char *text)
{
	return g_ascii_strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static bool is_bool(const char *text)
{
	return is_true(text) || g_ascii_strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static void check_value(fxi_gt_node *node, const fxi_gt_property *p, const fxi_gt_alias_property *a)
{
	double number = 0;
	bool is_number = fxi_xml_number(p->value, &number);

	switch (a->type) {
	case FXI_GT_BOOL:
		if (!is_bool(p->value))
			fxi_gt_problem(node, FX_EINVAL, "%s (line %d) is '%.100s'; it takes true or false", p->name, p->line, p->value);
		break;
	case FXI_GT_DIMENSION:
		if (!fxi_gt_dimension(p->value))
			fxi_gt_problem(node, FX_EINVAL, "%s (line %d) is '%.100s'; it takes the name of a counter, such as slice or "
				"repetition, or nothing", p->name, p->line, p->value);
		break;
	case FXI_GT_INT:
	case FXI_GT_FLOAT:
		if (!is_number || (a->type == FXI_GT_INT && (!(fabs(number) < 1e15) || number != nearbyint(number))))
			fxi_gt_problem(node, FX_EINVAL, "%s (line %d) is '%.100s'; it takes a %snumber", p->name, p->line, p->value,
				a->type == FXI_GT_INT ? "whole " : "");
		else if (!(number >= a->min && number <= a->max))
			fxi_gt_problem(node, FX_EINVAL, "%s (line %d) is %.100s; it takes %.12g to %.12g", p->name, p->line, p->value, a->min,
				a->max);
		break;
	default:
		break;
	}
	if (a->use == FXI_GT_REFUSE && strcmp(p->value, a->def) != 0)
		fxi_gt_problem(node, FX_ENOTSUP, "%s (line %d): %s", p->name, p->line, a->remark);
}

static const fxi_gt_alias_property *property_of(const fxi_gt_alias *alias, const char *name)
{
	for (const fxi_gt_alias_property *a = alias->properties; a && a->name; a++)
		if (strcmp(a->name, name) == 0)
			return a;
	return NULL;
}

static void check_properties(struct map *m, fxi_gt_node *node, const fxi_gt_alias *alias)
{
	for (guint i = 0; i < node->properties->len; i++) {
		const fxi_gt_property *p = &g_array_index(node->properties, fxi_gt_property, i);
		const fxi_gt_alias_property *a = property_of(alias, p->name);

		if (!a) {
			const char *names[16] = {NULL}, *near;
			int n = 0;

			for (a = alias->properties; a && a->name && n < 15; a++)
				names[n++] = a->name;
			near = fx_nearest_word(p->name, names);
			fxi_gt_problem(node, FX_EINVAL, "it has no property '%.100s' (line %d)%s%s%s", p->name, p->line,
				near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
			continue;
		}
		check_value(node, p, a);
		if (a->use == FXI_GT_IGNORE && a->remark)
			say(m, node, FXI_GADGETRON_APPROXIMATED, "%s", a->remark);
	}
}

/* ---- stages ------------------------------------------------------------------------------------ */

static void put(struct map *m, fxi_stage *stage, const char *name, const char *value, int line)
{
	for (int64_t i = 0; stage && i < stage->n_settings; i++) {
		char *copy;

		if (strcmp(stage->settings[i].name, name) != 0)
			continue;
		copy = strdup(value);
		m->no_memory = m->no_memory || !copy;
		if (copy) {
			free(stage->settings[i].value);
			stage->settings[i].value = copy;
			stage->settings[i].line = line;
		}
		return;
	}
	if (!stage || !fxi_stage_add(stage, name, value, line))
		m->no_memory = true;
}

static fxi_stage *add_stage(struct map *m, const char *gadget, int line)
{
	fxi_stage *stage = fxi_pipeline_add(m->p, gadget, line);

	m->no_memory = m->no_memory || !stage;
	return stage;
}

static fxi_stage *add_alias(struct map *m, const fxi_gt_node *node, const fxi_gt_alias *alias)
{
	fxi_stage *stage = add_stage(m, alias->stage, node->line);

	for (int i = 0; alias->fixed[i]; i++) {
		char **pair = g_strsplit(alias->fixed[i], "=", 2);

		put(m, stage, pair[0], pair[1], node->line);
		g_strfreev(pair);
	}
	for (guint i = 0; i < node->properties->len; i++) {
		const fxi_gt_property *p = &g_array_index(node->properties, fxi_gt_property, i);
		const fxi_gt_alias_property *a = property_of(alias, p->name);

		if (a && a->use == FXI_GT_PASS)
			put(m, stage, a->to, p->value, p->line);
	}
	return stage;
}

static void add_noise(struct map *m, const fxi_gt_node *node, const fxi_gt_alias *alias)
{
	fxi_stage *stage;

	if (!is_true(value_of(node, "perform_noise_adjust", "true"))) {
		say(m, node, FXI_GADGETRON_RUNS, "no gadget: perform_noise_adjust is false, and noise readouts make no image");
		return;
	}
	stage = add_alias(m, node, alias);
	put(m, stage, "nonconforming", is_true(value_of(node, "pass_nonconformant_data", "true")) ? "pass" : "refuse", node->line);
}

/* extract_mask (1 magnitude, 2 real, 4 imaginary, 8 phase) adds to what the others ask for. */
static void add_extract(struct map *m, fxi_gt_node *node, const fxi_gt_alias *alias)
{
	static const char *const parts[] = {"magnitude", "real", "imaginary", "phase"};
	static const char *const properties[] = {"extract_magnitude", "extract_real", "extract_imag", "extract_phase"};
	long mask = strtol(value_of(node, "extract_mask", "0"), NULL, 10);
	bool any = false;
	fxi_stage *stage = add_alias(m, node, alias);

	if (mask > 15)
		fxi_gt_problem(node, FX_EINVAL, "extract_mask is %ld; it takes 0 to 15 (1 magnitude, 2 real, 4 imaginary, 8 phase)", mask);
	for (int i = 0; i < 4; i++) {
		bool wanted = is_true(value_of(node, properties[i], i == 0 ? "true" : "false")) || (mask >> i & 1);

		put(m, stage, parts[i], wanted ? "true" : "false", node->line);
		any = any || wanted;
	}
	if (!any)
		fxi_gt_problem(node, FX_EINVAL, "all of extract_magnitude, extract_real, extract_imag and extract_phase are false");
}

/* ---- buckets, buffers, reconstruction -------------------------------------------------------------- */

/* Counters that are the same for all readouts of an image. */
static bool is_whole(const char *dimension, bool segments_apart)
{
	static const char *const whole[] = {"average", "slice", "contrast", "phase", "repetition", "set", "none", NULL};

	return g_strv_contains(whole, dimension) || (segments_apart && strcmp(dimension, "segment") == 0);
}

static void check_trigger(struct map *m, bool segments_apart)
{
	fxi_gt_node *node = (fxi_gt_node *)(uintptr_t)m->trigger;
	const char *trigger = fxi_gt_dimension(value_of(node, "trigger_dimension", "none"));
	const char *sorting = fxi_gt_dimension(value_of(node, "sorting_dimension", "none"));

	if (!trigger || !sorting) /* told already */
		return;
	if (!is_whole(trigger, segments_apart))
		fxi_gt_problem(node, FX_ENOTSUP, "trigger_dimension is %s: an image would be made of each stretch of readouts; Fornix makes "
			"whole images. It takes average, slice, contrast, phase, repetition, set, or nothing%s", trigger,
			strcmp(trigger, "segment") == 0 ? "; segment only where ignore_segment is false" : "");
	if (!is_whole(sorting, segments_apart) && strcmp(sorting, "n_acquisitions") != 0)
		fxi_gt_problem(node, FX_ENOTSUP, "sorting_dimension is %s: an image would be cut into pieces; it takes average, slice, contrast, "
			"phase, repetition, set, or nothing", sorting);
	say(m, node, FXI_GADGETRON_RUNS, "cartesian: each image leaves as soon as it is complete%s%s",
		strcmp(trigger, "none") == 0 ? "" : ", not only when this counter moves on: ", strcmp(trigger, "none") == 0 ? "" : trigger);
}

static void check_buffer(struct map *m)
{
	static const char *const axes[] = {"N_dimension", "S_dimension"};
	fxi_gt_node *node = (fxi_gt_node *)(uintptr_t)m->buffer;

	for (int i = 0; i < 2; i++) {
		const char *d = fxi_gt_dimension(value_of(node, axes[i], "none"));

		if (d && (!is_whole(d, false) || strcmp(d, "slice") == 0))
			fxi_gt_problem(node, FX_ENOTSUP, "%s is %s, by which Gadgetron sizes no buffer rightly; it takes average, contrast, phase, "
				"repetition, set, or nothing", axes[i], d);
	}
	say(m, node, FXI_GADGETRON_RUNS, "cartesian: an image of every slice, contrast, phase, repetition, set and average%s",
		is_true(value_of(node, "ignore_segment", "false")) ? "" : ", and segment");
}

static void add_recon(struct map *m, fxi_gt_node *node)
{
	bool segments_apart = !is_true(value_of(m->buffer, "ignore_segment", "false"));
	fxi_stage *stage;

	if (!m->trigger || !m->buffer) {
		fxi_gt_problem(node, FX_EINVAL, "AcquisitionAccumulateTriggerGadget and BucketToBufferGadget must stand right in front of it");
		return;
	}
	check_trigger(m, segments_apart);
	check_buffer(m);
	m->trigger = m->buffer = NULL;
	stage = add_stage(m, "cartesian", node->line);
	put(m, stage, "averages", "separate", node->line);
	put(m, stage, "segments", segments_apart ? "separate" : "joined", node->line);
	put(m, stage, "matrix", "encoded", node->line);
	stage = add_stage(m, "combine", node->line);
	put(m, stage, "method", "rss", node->line);
}

/* Buckets and buffers are of use to a reconstruction right behind them. */
static void end_of_buckets(struct map *m, const char *behind)
{
	const fxi_gt_node *waiting[] = {m->trigger, m->buffer};

	for (int i = 0; i < 2; i++) {
		fxi_gt_node *node = (fxi_gt_node *)(uintptr_t)waiting[i];

		if (!node)
			continue;
		if (behind)
			say(m, node, FXI_GADGETRON_RUNS, "collects readouts for what is missing behind it: %s", behind);
		else
			fxi_gt_problem(node, FX_EINVAL, "a bucket or a buffer is of no use without BucketToBufferGadget and SimpleReconGadget behind it");
	}
	m->trigger = m->buffer = NULL;
}

/* ---- nodes -------------------------------------------------------------------------------------- */

static bool is_path(const char *dll)
{
	return strpbrk(dll, "/\\") || strstr(dll, "..") || g_str_has_suffix(dll, ".so") || g_str_has_suffix(dll, ".dll");
}

static void check_dll(fxi_gt_node *node, const char *dll)
{
	if (!node->dll || !*node->dll)
		fxi_gt_problem(node, FX_EINVAL, "it has no <dll>; %s is in %s", node->classname, dll);
	else if (strcmp(node->dll, dll) != 0)
		fxi_gt_problem(node, FX_EINVAL, "its dll is '%.100s', but %s is in %s", node->dll, node->classname, dll);
}

static void refuse_unknown(fxi_gt_node *node)
{
	const char *near = fxi_gt_nearest(node->kind, node->classname);

	if (node->kind == FXI_GT_GADGET && fxi_gt_elsewhere(node->classname))
		fxi_gt_problem(node, FX_ENOTSUP, "Fornix has no counterpart of this gadget");
	fxi_gt_problem(node, FX_EINVAL, "no such class is known%s%s%s", near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static void map_port(struct map *m, fxi_gt_node *node)
{
	const fxi_gt_port *port = fxi_gt_find_port(node->kind, node->classname);
	char slot[16];

	if (!port) {
		refuse_unknown(node);
		return;
	}
	check_dll(node, port->dll);
	snprintf(slot, sizeof slot, "%d", port->slot);
	/* what a writer writes is known by its class: old files number images by their types, and Gadgetron does not look at it */
	if (node->kind == FXI_GT_READER && node->slot && *node->slot && strcmp(node->slot, slot) != 0)
		fxi_gt_problem(node, FX_EINVAL, "its slot is '%.40s', but what it reads has the message number %s", node->slot, slot);
	/* readouts end in a chain that makes images of them */
	if (port->missing && port->slot == 1008 && m->images)
		say(m, node, FXI_GADGETRON_RUNS, "nothing to do: no readouts leave this chain");
	else if (port->missing)
		fxi_gt_problem(node, FX_ENOTSUP, "%s", port->becomes);
	else
		say(m, node, FXI_GADGETRON_RUNS, "%s", port->becomes);
}

static void map_role(struct map *m, fxi_gt_node *node, const fxi_gt_alias *alias)
{
	if (alias->role != FXI_GT_BUFFER && alias->role != FXI_GT_RECON)
		end_of_buckets(m, NULL);
	if (alias->role == FXI_GT_TRIGGER)
		m->trigger = node;
	else if (alias->role == FXI_GT_BUFFER && !m->trigger)
		fxi_gt_problem(node, FX_EINVAL, "AcquisitionAccumulateTriggerGadget must stand right in front of it");
	else if (alias->role == FXI_GT_BUFFER)
		m->buffer = node;
	else if (alias->role == FXI_GT_RECON)
		add_recon(m, node);
	else if (alias->role == FXI_GT_NOISE)
		add_noise(m, node, alias);
	else if (alias->role == FXI_GT_EXTRACT)
		add_extract(m, node, alias);
	else if (alias->role == FXI_GT_STAGE)
		add_alias(m, node, alias);
	if (alias->becomes)
		say(m, node, alias->approximated ? FXI_GADGETRON_APPROXIMATED : FXI_GADGETRON_RUNS, "%s", alias->becomes);
}

static void map_gadget(struct map *m, fxi_gt_node *node)
{
	const fxi_gt_alias *alias = node->classname ? fxi_gt_find(node->classname) : NULL;

	if (!node->classname) /* told already */
		return;
	if (node->dll && is_path(node->dll)) {
		end_of_buckets(m, node->classname);
		fxi_gt_problem(node, FX_EINVAL, "its dll, '%.100s', is a path; gadgets come from this installation alone", node->dll);
	} else if (!alias) {
		end_of_buckets(m, node->classname);
		refuse_unknown(node);
	} else {
		m->images = m->images || alias->of_images;
		check_dll(node, alias->dll);
		check_properties(m, node, alias);
		map_role(m, node, alias);
	}
}

/* ---- the whole ---------------------------------------------------------------------------------- */

void fxi_gadgetron_free(fxi_gadgetron *g)
{
	if (!g)
		return;
	for (int64_t i = 0; i < g->n_items; i++) {
		g_free(g->items[i].name);
		g_free(g->items[i].classname);
		g_free(g->items[i].text);
	}
	g_free(g->items);
	g_free(g);
}

static const char *kind_name(const fxi_gt_node *node)
{
	static const char *const names[] = {"parallel", "external", "distributed", "parallelprocess", "puredistributed", "version",
		"stream", "configuration", "gadgetronStreamConfiguration", NULL};

	if (node->kind != FXI_GT_OTHER)
		return node->kind == FXI_GT_READER ? "reader" : node->kind == FXI_GT_WRITER ? "writer" : "gadget";
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], node->element) == 0)
			return names[i];
	return "element";
}

static void begin(struct map *m)
{
	m->out->n_items = m->nodes->len;
	m->out->items = g_new0(fxi_gadgetron_item, m->nodes->len + 1);
	for (guint i = 0; i < m->nodes->len; i++) {
		const fxi_gt_node *node = m->nodes->pdata[i];

		m->out->items[i] = (fxi_gadgetron_item){
			.kind = kind_name(node), .line = node->line, .classname = g_strdup(node->classname),
			.name = g_strdup(node->kind == FXI_GT_OTHER ? node->element : node->name),
		};
	}
}

/* Problems become verdicts; the first one is the error. */
static int finish(struct map *m, fx_error *err)
{
	int status = FX_OK;

	for (guint i = 0; i < m->nodes->len; i++) {
		const fxi_gt_node *node = m->nodes->pdata[i];
		fxi_gadgetron_item *item = &m->out->items[i];

		if (node->problem) {
			g_free(item->text);
			item->text = g_strdup(node->problem);
			item->verdict = FXI_GADGETRON_MISSING;
			item->status = node->status;
		}
		m->out->n_verdicts[item->verdict]++;
		if (node->problem && status == FX_OK)
			status = fx_error_set(err, node->status, "%s:%d: <%s>%s%.100s%s%.100s%s: %.500s", m->p->file, node->line, node->element,
				node->name ? " " : "", node->name ? node->name : "", node->classname ? " (" : "",
				node->classname ? node->classname : "", node->classname ? ")" : "", node->problem);
	}
	return status;
}

int fxi_gadgetron_translate(const xmlDoc *doc, const char *text, size_t size, fx_error *err, fxi_pipeline *p,
	fxi_gadgetron **out)
{
	struct map m = {.p = p};
	int version, root_line, status;

	*out = NULL;
	status = fxi_gt_read(doc, text, size, p->file, err, &version, &m.nodes);
	if (status != FX_OK)
		return status;
	root_line = GPOINTER_TO_INT(xmlDocGetRootElement(doc)->_private);
	m.out = g_new0(fxi_gadgetron, 1);
	m.out->version = version;
	begin(&m);
	for (guint i = 0; i < m.nodes->len; i++) {
		fxi_gt_node *node = m.nodes->pdata[i];

		if (node->kind == FXI_GT_GADGET)
			map_gadget(&m, node);
		else if (node->kind == FXI_GT_OTHER)
			end_of_buckets(&m, node->element);
	}
	end_of_buckets(&m, NULL);
	/* readers and writers stand in front, but which matter depends on the chain */
	for (guint i = 0; i < m.nodes->len; i++) {
		fxi_gt_node *node = m.nodes->pdata[i];

		if ((node->kind == FXI_GT_READER || node->kind == FXI_GT_WRITER) && node->classname)
			map_port(&m, node);
	}
	if (m.images)
		add_stage(&m, "write_mrd", root_line);
	else if (p->n_stages == 0)
		add_stage(&m, "discard", root_line);
	status = m.no_memory ? fx_error_set(err, FX_ENOMEM, "%s: not enough memory for the configuration", p->file) : finish(&m, err);
	g_ptr_array_free(m.nodes, TRUE);
	*out = m.out;
	return status;
}

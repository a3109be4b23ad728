/* SPDX-License-Identifier: MIT */
#include "apps/run_record.h"

#include <cblas.h>
#include <fftw3.h>
#include <hdf5.h>
#include <json-glib/json-glib.h>
#include <libxml/xmlversion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/json_file.h"
#include "stream/record.h"

/* JSON is UTF-8, file names need not be. */
static void put_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	if (!value)
		json_builder_add_null_value(b);
	else {
		char *valid = g_utf8_make_valid(value, -1);

		json_builder_add_string_value(b, valid);
		g_free(valid);
	}
}

static void add_text(JsonBuilder *b, const char *value)
{
	char *valid = g_utf8_make_valid(value, -1);

	json_builder_add_string_value(b, valid);
	g_free(valid);
}

/* JSON knows no NaN and no infinity. */
static void add_number(JsonBuilder *b, double value)
{
	if (!isfinite(value))
		json_builder_add_null_value(b);
	else if (value == rint(value) && fabs(value) < 1e15)
		json_builder_add_int_value(b, (gint64)value);
	else
		json_builder_add_double_value(b, value);
}

static void put_number(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	add_number(b, value);
}

/* Microseconds are as fine as a wall clock of threads means anything. */
static void put_seconds(JsonBuilder *b, const char *name, double seconds)
{
	put_number(b, name, rint(seconds * 1e6) / 1e6);
}

static void put_libraries(JsonBuilder *b)
{
	unsigned major = 0, minor = 0, release = 0;
	char hdf5[64], glib[64], openblas[256];

	H5get_libversion(&major, &minor, &release);
	g_snprintf(hdf5, sizeof hdf5, "%u.%u.%u", major, minor, release);
	g_snprintf(glib, sizeof glib, "%u.%u.%u", glib_major_version, glib_minor_version, glib_micro_version);
	g_snprintf(openblas, sizeof openblas, "%s, running as %s", openblas_get_config(), openblas_get_corename());
	json_builder_set_member_name(b, "libraries");
	json_builder_begin_object(b);
	put_text(b, "fftw", fftwf_version);
	put_text(b, "openblas", openblas);
	put_text(b, "hdf5", hdf5);
	put_text(b, "libxml2", LIBXML_DOTTED_VERSION);
	put_text(b, "glib", glib);
	json_builder_end_object(b);
}

static void put_pipeline(JsonBuilder *b, const fxi_run_record *r)
{
	json_builder_set_member_name(b, "pipeline");
	json_builder_begin_object(b);
	put_text(b, "file", r->pipeline->file);
	put_text(b, "summary", r->pipeline->summary);
	put_text(b, "description", r->pipeline->description);
	json_builder_end_object(b);
	json_builder_set_member_name(b, "settings");
	json_builder_begin_array(b);
	for (char *const *a = r->assignments; a && *a; a++)
		add_text(b, *a);
	json_builder_end_array(b);
}

static void put_input(JsonBuilder *b, const fxi_run_record *r)
{
	json_builder_set_member_name(b, "input");
	json_builder_begin_object(b);
	put_text(b, "path", r->input);
	put_text(b, "group", r->group);
	put_text(b, "format", r->source->format);
	put_text(b, "digest", r->source->digest);
	put_text(b, "note", r->source->note);
	put_text(b, "warning", r->source->warning);
	json_builder_end_object(b);
}

static void add_item(JsonBuilder *b, const fxi_entry *e, int64_t item, int64_t first)
{
	switch (e->type) {
	case FXI_NUMBER:
		add_number(b, e->numbers[item]);
		break;
	case FXI_ARRAY:
		json_builder_begin_array(b);
		for (int64_t i = 0; i < e->lengths[item]; i++)
			add_number(b, e->numbers[first + i]);
		json_builder_end_array(b);
		break;
	case FXI_TEXT:
		add_text(b, e->texts[item]);
		break;
	default:
		json_builder_add_int_value(b, e->count);
	}
}

static void put_entry(JsonBuilder *b, const fxi_entry *e)
{
	int64_t first = 0;

	json_builder_set_member_name(b, e->key);
	if (e->n != 1)
		json_builder_begin_array(b);
	for (int64_t item = 0; item < e->n; item++) {
		add_item(b, e, item, first);
		if (e->type == FXI_ARRAY)
			first += e->lengths[item];
	}
	if (e->n != 1)
		json_builder_end_array(b);
}

static void put_stage(JsonBuilder *b, const fxi_stage_report *s)
{
	json_builder_begin_object(b);
	put_text(b, "name", s->gadget);
	put_text(b, "place", s->place[0] ? s->place : NULL);
	json_builder_set_member_name(b, "properties");
	json_builder_begin_object(b);
	for (int64_t i = 0; i < s->n_properties; i++)
		put_text(b, s->property_names[i], s->property_values[i]);
	json_builder_end_object(b);
	json_builder_set_member_name(b, "idle");
	json_builder_add_boolean_value(b, s->idle);
	put_number(b, "messages_in", (double)s->n_in);
	put_number(b, "messages_out", (double)s->n_out);
	put_seconds(b, "seconds", s->busy_s);
	put_seconds(b, "seconds_opening", s->open_s);
	put_seconds(b, "seconds_waiting", s->waiting_s);
	put_number(b, "queue_peak_bytes", (double)s->queue_peak_bytes);
	json_builder_set_member_name(b, "record");
	json_builder_begin_object(b);
	for (int64_t i = 0; s->record && i < fxi_record_n_entries(s->record); i++)
		put_entry(b, fxi_record_entry(s->record, i));
	json_builder_end_object(b);
	json_builder_set_member_name(b, "warnings");
	json_builder_begin_array(b);
	for (int64_t i = 0; i < s->n_warnings; i++)
		add_text(b, s->warnings[i]);
	json_builder_end_array(b);
	json_builder_end_object(b);
}

/* What was asked for, what it came to and why, and the GPU. */
static void put_backend(JsonBuilder *b, const fxi_run_record *r)
{
	const fx_backend_choice *c = r->backend;
	char capability[24];

	put_text(b, "backend", c->name);
	put_text(b, "backend_asked", r->backend_asked);
	put_text(b, "backend_why", c->why);
	if (!c->on_device)
		return;
	snprintf(capability, sizeof capability, "%d.%d", c->device.major, c->device.minor);
	json_builder_set_member_name(b, "gpu");
	json_builder_begin_object(b);
	put_text(b, "name", c->device.name);
	put_text(b, "driver", c->device.driver[0] ? c->device.driver : NULL);
	put_text(b, "compute_capability", capability);
	put_number(b, "bytes", (double)c->device.bytes);
	put_number(b, "bytes_free_at_start", (double)c->device.available);
	json_builder_end_object(b);
}

static JsonNode *build(const fxi_run_record *r)
{
	JsonBuilder *b = json_builder_new();
	JsonNode *root;

	json_builder_begin_object(b);
	put_text(b, "fornix", FORNIX_VERSION);
	put_text(b, "status", r->status);
	put_text(b, "error", r->error);
	put_text(b, "started", r->started);
	put_seconds(b, "seconds", r->seconds);
	put_pipeline(b, r);
	put_input(b, r);
	put_backend(b, r);
	put_number(b, "threads", r->n_threads);
	json_builder_set_member_name(b, "gadgets");
	json_builder_begin_array(b);
	for (int64_t i = 0; i < fxi_chain_n_stages(r->chain); i++) {
		fxi_stage_report stage;

		fxi_chain_stage(r->chain, i, &stage);
		put_stage(b, &stage);
	}
	json_builder_end_array(b);
	json_builder_set_member_name(b, "products");
	json_builder_begin_array(b);
	for (int64_t i = 0; i < r->n_products; i++)
		add_text(b, r->products[i]);
	json_builder_end_array(b);
	put_libraries(b);
	json_builder_end_object(b);
	root = json_builder_get_root(b);
	g_object_unref(b);
	return root;
}

int fxi_run_record_write(const fxi_run_record *r, const char *dir, fx_error *err)
{
	JsonNode *root = build(r);
	char *path = g_build_filename(dir, "run.json", NULL);
	int status = fxi_json_write(root, path, err);

	g_free(path);
	json_node_unref(root);
	return status;
}

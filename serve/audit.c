/* SPDX-License-Identifier: MIT */
/* audit.c - one line a session: who, what pipeline, counts, outcome. */
#include "supervisor_parts.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct entry {
	const char *name;
	char value[FX_ERROR_TEXT];
	bool number;
};

#define ENTRIES 24

static void text(struct entry *list, int *n, const char *name, const char *value)
{
	list[*n].name = name;
	list[*n].number = false;
	snprintf(list[(*n)++].value, sizeof list->value, "%s", value);
}

static void number(struct entry *list, int *n, const char *name, double value, int digits)
{
	list[*n].name = name;
	list[*n].number = true;
	snprintf(list[(*n)++].value, sizeof list->value, "%.*f", digits, value);
}

static void counts(struct entry *list, int *n, const fxi_session_outcome *o)
{
	text(list, n, "CONFIG", o->config);
	text(list, n, "PIPELINE", o->pipeline);
	text(list, n, "MEASUREMENT", o->measurement);
	number(list, n, "ACQUISITIONS", (double)o->n_acquisitions, 0);
	number(list, n, "WAVEFORMS", (double)o->n_waveforms, 0);
	number(list, n, "QUERIES", (double)o->n_queries, 0);
	number(list, n, "IMAGES", (double)o->n_images, 0);
	number(list, n, "TEXTS", (double)o->n_texts, 0);
	number(list, n, "DROPPED", (double)o->n_dropped, 0);
	number(list, n, "WARNINGS", (double)o->n_warnings, 0);
	number(list, n, "BYTES_IN", (double)o->bytes_in, 0);
	number(list, n, "BYTES_OUT", (double)o->bytes_out, 0);
	number(list, n, "SCAN_S", o->scan_s, 3);
	if (o->first_image_s >= 0)
		number(list, n, "FIRST_IMAGE_S", o->first_image_s, 3);
	text(list, n, "CLOSED", o->closed ? "yes" : "no");
}

/* Appended in one write, so that a reader never sees half a line. */
static void append_json(const fxi_supervisor *s, const struct entry *list, int n)
{
	JsonBuilder *b = json_builder_new();
	JsonGenerator *g = json_generator_new();
	GDateTime *now = g_date_time_new_now_utc();
	char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ"), *line, *whole;
	JsonNode *root;

	json_builder_begin_object(b);
	json_builder_set_member_name(b, "time");
	json_builder_add_string_value(b, time);
	for (int i = 0; i < n; i++) {
		char *name = g_ascii_strdown(list[i].name, -1), *valid = g_utf8_make_valid(list[i].value, -1);

		json_builder_set_member_name(b, name);
		if (!list[i].number)
			json_builder_add_string_value(b, valid);
		else if (strchr(list[i].value, '.'))
			json_builder_add_double_value(b, g_ascii_strtod(list[i].value, NULL));
		else
			json_builder_add_int_value(b, g_ascii_strtoll(list[i].value, NULL, 10));
		g_free(name);
		g_free(valid);
	}
	json_builder_end_object(b);
	root = json_builder_get_root(b);
	json_generator_set_root(g, root);
	line = json_generator_to_data(g, NULL);
	whole = g_strconcat(line, "\n", NULL);
	if (write(s->audit, whole, strlen(whole)) != (ssize_t)strlen(whole))
		fxi_log_say(s->log, FXI_ERROR, 0, "cannot write the audit file: %s", strerror(errno));
	g_free(whole);
	g_free(line);
	g_free(time);
	json_node_unref(root);
	g_object_unref(g);
	g_object_unref(b);
	g_date_time_unref(now);
}

void fxi_audit(fxi_supervisor *s, const fxi_worker *w, const fxi_session_outcome *o, const char *reason)
{
	struct entry list[ENTRIES];
	fxi_log_field fields[ENTRIES];
	char session[32];
	const char *end = o ? fxi_session_end_name(o->end) : w->too_long ? "stopped" : "crashed";
	int n = 0;

	text(list, &n, "OUTCOME", end);
	text(list, &n, "PEER", w->peer);
	number(list, &n, "SECONDS", o ? o->seconds : fxi_clock_s() - w->since, 3);
	if (o)
		counts(list, &n, o);
	text(list, &n, "ERROR", o ? o->error : reason);
	for (int i = 0; i < n; i++)
		fields[i] = (fxi_log_field){list[i].name, list[i].value};
	fxi_log_write(s->log, !o || o->end == FXI_SESSION_FAILED ? FXI_WARNING : FXI_INFO, w->session, NULL, "session ended", fields, n);
	if (s->audit < 0)
		return;
	snprintf(session, sizeof session, "%llu", (unsigned long long)w->session);
	text(list, &n, "SESSION", session);
	list[n - 1].number = true;
	append_json(s, list, n);
}

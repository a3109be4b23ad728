/* SPDX-License-Identifier: MIT */
/* send_stats.c - latencies, seen from the client: from the moment a frame's last readout was sent to the moment its image was there. */
#include "apps/send.h"

#include "apps/json_file.h"
#include "stream/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame {
	uint16_t counters[5];   /* slice, contrast, phase, repetition, set */
	double sent_s;
};

struct fxi_send_stats {
	pthread_mutex_t lock;
	GHashTable *frames;     /* of struct frame, by its counters */
	double last_sent_s;
	GArray *latencies;      /* of double, in order of arrival */
};

static guint hash(gconstpointer frame)
{
	const uint16_t *c = ((const struct frame *)frame)->counters;
	guint h = 5381;

	for (int i = 0; i < 5; i++)
		h = h * 33 + c[i];
	return h;
}

static gboolean same(gconstpointer a, gconstpointer b)
{
	return memcmp(((const struct frame *)a)->counters, ((const struct frame *)b)->counters, sizeof(uint16_t[5])) == 0;
}

fxi_send_stats *fxi_send_stats_new(void)
{
	fxi_send_stats *s = g_new0(fxi_send_stats, 1);

	pthread_mutex_init(&s->lock, NULL);
	s->frames = g_hash_table_new_full(hash, same, g_free, NULL);
	s->latencies = g_array_new(FALSE, FALSE, sizeof(double));
	return s;
}

void fxi_send_stats_free(fxi_send_stats *s)
{
	g_hash_table_destroy(s->frames);
	g_array_free(s->latencies, TRUE);
	pthread_mutex_destroy(&s->lock);
	g_free(s);
}

void fxi_send_stats_sent(fxi_send_stats *s, const ISMRMRD_AcquisitionHeader *head)
{
	const struct frame key = {.counters = {head->idx.slice, head->idx.contrast, head->idx.phase, head->idx.repetition, head->idx.set}};
	struct frame *frame;

	pthread_mutex_lock(&s->lock);
	s->last_sent_s = fxi_now_s();
	frame = g_hash_table_lookup(s->frames, &key);
	if (!frame) {
		frame = g_memdup2(&key, sizeof key);
		g_hash_table_add(s->frames, frame);
	}
	frame->sent_s = s->last_sent_s;
	pthread_mutex_unlock(&s->lock);
}

void fxi_send_stats_received(fxi_send_stats *s, const ISMRMRD_ImageHeader *head)
{
	const struct frame key = {.counters = {head->slice, head->contrast, head->phase, head->repetition, head->set}};
	const double now = fxi_now_s();
	const struct frame *frame;
	double latency;

	pthread_mutex_lock(&s->lock);
	frame = g_hash_table_lookup(s->frames, &key);
	latency = now - (frame ? frame->sent_s : s->last_sent_s);
	g_array_append_val(s->latencies, latency);
	pthread_mutex_unlock(&s->lock);
}

static int compare(gconstpointer a, gconstpointer b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void put_number(JsonBuilder *b, const char *name, double value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_double_value(b, value);
}

static void put_count(JsonBuilder *b, const char *name, int64_t value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_int_value(b, value);
}

static void put_text(JsonBuilder *b, const char *name, const char *value)
{
	json_builder_set_member_name(b, name);
	json_builder_add_string_value(b, value);
}

static void put_latencies(JsonBuilder *b, fxi_send_stats *s)
{
	guint n = s->latencies->len;
	GArray *sorted = g_array_copy(s->latencies);
	const double *v = (const double *)(const void *)sorted->data;

	g_array_sort(sorted, compare);
	json_builder_set_member_name(b, "latency_s");
	json_builder_begin_object(b);
	if (n > 0) {
		put_number(b, "min", v[0]);
		put_number(b, "median", n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2);
		put_number(b, "max", v[n - 1]);
	}
	json_builder_set_member_name(b, "images");
	json_builder_begin_array(b);
	for (guint i = 0; i < n; i++)
		json_builder_add_double_value(b, g_array_index(s->latencies, double, i));
	json_builder_end_array(b);
	json_builder_end_object(b);
	g_array_free(sorted, TRUE);
}

int fxi_send_stats_write(fxi_send *send, const fxi_send_report *r, const char *path, fx_error *err)
{
	JsonBuilder *b = json_builder_new();
	JsonNode *root;
	int status;

	json_builder_begin_object(b);
	put_text(b, "server", r->server);
	put_text(b, "configuration", r->config);
	put_text(b, "input", r->input);
	put_count(b, "readouts_sent", r->n_readouts);
	put_count(b, "waveforms_sent", r->n_waveforms);
	put_count(b, "images_sent", r->n_images_sent);
	put_count(b, "images_received", send->n_images);
	put_count(b, "texts", send->n_texts);
	put_count(b, "warnings", send->n_warnings);
	put_count(b, "errors", send->n_errors);
	put_count(b, "bytes_sent", fxi_wire_out_bytes(send->out));
	put_count(b, "bytes_received", fxi_wire_in_bytes(send->in));
	put_number(b, "rate", r->rate);
	put_number(b, "late_s", r->late_s);
	put_number(b, "sending_s", r->send_s);
	put_number(b, "seconds", r->seconds);
	put_latencies(b, send->stats);
	json_builder_end_object(b);
	if (strcmp(path, "-") == 0) {
		fxi_json_print(b);
		return FX_OK;
	}
	root = json_builder_get_root(b);
	status = fxi_json_write(root, path, err);
	json_node_unref(root);
	g_object_unref(b);
	return status;
}

/* SPDX-License-Identifier: MIT */
/* harness.c - a run of the real engine around a test's messages, with products (harness_files.c) and cache in memory. */
#include "harness.h"

#include "harness_files.h"
#include "stream/record.h"
#include "xml/mrd_header.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <glib.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WATCHDOG_S 60
#define GRACE_S 10

struct harness_run {
	fxi_registry *registry;
	fxi_chain *chain;
	fx_header *header;
	pthread_mutex_t lock;   /* guards the harness's lists: gadgets work on threads of their own */
	pthread_cond_t over;
	bool ended, timed_out;
	struct harness_files files;
};

/* ---- cache in memory -------------------------------------------------------------------------- */

struct cache {
	fxi_cache base;
	pthread_mutex_t lock;
	GHashTable *arrays;
};

static int cache_get(fxi_cache *self, const char *key, fx_array **out, fx_error *err)
{
	struct cache *c = (struct cache *)self;

	(void)err;
	pthread_mutex_lock(&c->lock);
	*out = fx_array_ref(g_hash_table_lookup(c->arrays, key));
	pthread_mutex_unlock(&c->lock);
	return FX_OK;
}

static int cache_put(fxi_cache *self, const char *key, fx_array *array, fx_error *err)
{
	struct cache *c = (struct cache *)self;

	(void)err;
	pthread_mutex_lock(&c->lock);
	g_hash_table_replace(c->arrays, g_strdup(key), fx_array_ref(array));
	pthread_mutex_unlock(&c->lock);
	return FX_OK;
}

static void cache_close(fxi_cache *self)
{
	struct cache *c = (struct cache *)self;

	g_hash_table_destroy(c->arrays);
	pthread_mutex_destroy(&c->lock);
	g_free(c);
}

static void unref_array(void *array)
{
	fx_array_unref(array);
}

int harness_cache_keys(fxi_cache *cache, const char *beginning)
{
	GHashTableIter it;
	gpointer key;
	int n = 0;

	g_hash_table_iter_init(&it, ((struct cache *)cache)->arrays);
	while (g_hash_table_iter_next(&it, &key, NULL))
		n += g_str_has_prefix(key, beginning);
	return n;
}

fxi_cache *harness_cache(void)
{
	struct cache *c = g_new0(struct cache, 1);

	c->base.get = cache_get;
	c->base.put = cache_put;
	c->base.close = cache_close;
	pthread_mutex_init(&c->lock, NULL);
	c->arrays = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_array);
	return &c->base;
}

/* ---- the run ---------------------------------------------------------------------------------- */

struct list_source {
	fxi_source base;
	fx_msg **messages;
	int64_t n, next;
};

static int next_message(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct list_source *s = (struct list_source *)self;

	(void)err;
	*out = s->next < s->n ? s->messages[s->next] : NULL;
	if (*out)
		s->messages[s->next++] = NULL;
	return FX_OK;
}

static int keep_output(void *arg, fx_msg *msg, fx_error *err)
{
	harness *h = arg; /* the last gadget's thread alone calls this */

	(void)err;
	h->out = g_renew(fx_msg *, h->out, h->n_out + 1);
	h->out[h->n_out++] = msg;
	return FX_OK;
}

static void keep_log(void *arg, int level, const char *gadget, const char *text)
{
	harness *h = arg;

	if (level < FXI_WARNING)
		return;
	pthread_mutex_lock(&h->run->lock);
	h->warnings = g_renew(char *, h->warnings, h->n_warnings + 1);
	h->warnings[h->n_warnings++] = g_strdup_printf("%s: %s", gadget ? gadget : "engine", text);
	pthread_mutex_unlock(&h->run->lock);
}

/* Waits until the run is over or the time is; true where it is over. The lock is held. */
static bool wait_over(struct harness_run *run, int seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	while (!run->ended)
		if (pthread_cond_timedwait(&run->over, &run->lock, &until) == ETIMEDOUT)
			break;
	return run->ended;
}

static void *watchdog(void *arg)
{
	struct harness_run *run = arg;

	pthread_mutex_lock(&run->lock);
	if (!wait_over(run, WATCHDOG_S)) {
		run->timed_out = true;
		fxi_chain_stop(run->chain);
		if (!wait_over(run, GRACE_S)) {
			/* Threads that do not even stop cannot be freed: end here, with a core to look at. */
			fprintf(stderr, "harness: the chain hangs and does not stop\n");
			abort();
		}
	}
	pthread_mutex_unlock(&run->lock);
	return NULL;
}

/* Reads "gadget a=b c='d e' | gadget" into a pipeline called "chain", all on line 1. */
static fxi_pipeline *parse_chain(const char *chain, fx_error *err)
{
	fxi_pipeline *p = fxi_pipeline_new("chain", NULL);
	fxi_stage *stage = NULL;
	char **words = NULL;

	if (!g_shell_parse_argv(chain, NULL, &words, NULL)) {
		fx_error_set(err, FX_EINVAL, "chain '%s' has unbalanced quotes or no words", chain);
		fxi_pipeline_free(p);
		return NULL;
	}
	for (char **w = words; *w; w++) {
		char *equals = strchr(*w, '=');

		if (strcmp(*w, "|") == 0) {
			stage = NULL;
		} else if (!stage) {
			stage = fxi_pipeline_add(p, *w, 1);
		} else {
			if (equals)
				*equals = '\0';
			fxi_stage_add(stage, *w, equals ? equals + 1 : "true", 1);
		}
	}
	g_strfreev(words);
	return p;
}

static int load(harness *h, const char *chain, const char *header_xml, const harness_options *o)
{
	struct harness_run *run = h->run;
	char *own = header_xml ? NULL : harness_header((int64_t[]){64, 64, 1}, (double[]){256, 256, 4}, "cartesian", 0);
	const char *xml = header_xml ? header_xml : own;
	fxi_pipeline *p = parse_chain(chain, &h->err);
	int status = p ? fxi_registry_new(NULL, &h->err, &run->registry) : FX_EINVAL;

	for (int i = 0; status == FX_OK && o->gadgets && o->gadgets[i]; i++)
		status = fxi_registry_add(run->registry, o->gadgets[i], &h->err);
	if (status == FX_OK)
		status = fxi_header_parse(xml, strlen(xml), &h->err, &run->header);
	if (status == FX_OK) /* any kind may be pushed in, so none is missing */
		status = fxi_chain_new(p, run->registry, ~0u, &h->err, &run->chain);
	fxi_pipeline_free(p);
	free(own);
	return status;
}

static void run_loaded(harness *h, struct list_source *source, const harness_options *o)
{
	struct harness_run *run = h->run;
	fxi_services services = {
		.files = o->no_files ? NULL : &run->files.base, .cache = o->cache, .noise = o->noise,
		.log = keep_log, .log_arg = h,
	};
	fxi_run_options options = {
		.backend = "host", .n_threads = o->n_threads ? o->n_threads : 2, .queue_bytes = o->queue_bytes,
		.output = keep_output, .output_arg = h,
	};
	pthread_t dog;

	harness_files_init(&run->files, h, &run->lock);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&dog, NULL, watchdog, run), 0);
	h->status = fxi_chain_run(run->chain, run->header, &source->base, &services, &options, &h->err);
	pthread_mutex_lock(&run->lock);
	run->ended = true;
	pthread_cond_signal(&run->over);
	pthread_mutex_unlock(&run->lock);
	pthread_join(dog, NULL);
	if (run->timed_out)
		CU_FAIL("the chain did not end within 60 s");
}

void harness_run_with(harness *h, const char *chain, const char *header_xml, fx_msg **messages, int64_t n_messages,
	const harness_options *options)
{
	struct list_source source = {{.next = next_message}, messages, n_messages, 0};
	harness_options defaults = {0};

	memset(h, 0, sizeof *h);
	h->run = g_new0(struct harness_run, 1);
	pthread_mutex_init(&h->run->lock, NULL);
	pthread_cond_init(&h->run->over, NULL);
	if (!options)
		options = &defaults;
	h->status = load(h, chain, header_xml, options);
	if (h->status == FX_OK)
		run_loaded(h, &source, options);
	for (int64_t i = 0; i < n_messages; i++) {
		fx_drop(messages[i]);
		messages[i] = NULL;
	}
}

void harness_run(harness *h, const char *chain, const char *header_xml, fx_msg **messages, int64_t n_messages)
{
	harness_run_with(h, chain, header_xml, messages, n_messages, NULL);
}

void harness_free(harness *h)
{
	for (int64_t i = 0; i < h->n_out; i++)
		fx_drop(h->out[i]);
	g_free(h->out);
	for (int64_t i = 0; i < h->n_products; i++)
		harness_product_clear(&h->products[i]);
	g_free(h->products);
	for (int64_t i = 0; i < h->n_warnings; i++)
		g_free(h->warnings[i]);
	g_free(h->warnings);
	fxi_chain_free(h->run->chain);
	fx_header_free(h->run->header);
	fxi_registry_free(h->run->registry);
	pthread_cond_destroy(&h->run->over);
	pthread_mutex_destroy(&h->run->lock);
	g_free(h->run);
	memset(h, 0, sizeof *h);
}

/* ---- looking at a run ------------------------------------------------------------------------- */

static const fxi_entry *entry(const harness *h, int64_t stage, const char *key, int type)
{
	fxi_stage_report report;
	const fxi_entry *e;

	if (!h->run->chain || stage >= fxi_chain_n_stages(h->run->chain))
		return NULL;
	fxi_chain_stage(h->run->chain, stage, &report);
	e = fxi_record_find(report.record, key);
	return e && e->type == type ? e : NULL;
}

double harness_number(const harness *h, int64_t stage, const char *key, int64_t item)
{
	const fxi_entry *e = entry(h, stage, key, FXI_NUMBER);

	if (!e)
		e = entry(h, stage, key, FXI_ARRAY);
	return e && item < e->n_numbers ? e->numbers[item] : NAN;
}

int64_t harness_count(const harness *h, int64_t stage, const char *key)
{
	const fxi_entry *e = entry(h, stage, key, FXI_COUNT);

	return e ? e->count : -1;
}

const char *harness_text(const harness *h, int64_t stage, const char *key, int64_t item)
{
	const fxi_entry *e = entry(h, stage, key, FXI_TEXT);

	return e && item < e->n ? e->texts[item] : NULL;
}

void harness_stage(const harness *h, int64_t stage, fxi_stage_report *out)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(h->run->chain);
	fxi_chain_stage(h->run->chain, stage, out);
}

bool harness_warned(const harness *h, const char *part)
{
	for (int64_t i = 0; i < h->n_warnings; i++)
		if (strstr(h->warnings[i], part))
			return true;
	return false;
}

/* ---- things to push in ------------------------------------------------------------------------ */

fx_msg *harness_acquisition(int64_t samples, int64_t coils, int64_t dims)
{
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a;

	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	a = fx_msg_acquisition(m);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, samples, coils, &a->data), FX_OK);
	if (dims > 0)
		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, dims, samples, &a->traj), FX_OK);
	a->head.version = 1;
	a->head.number_of_samples = (uint16_t)samples;
	a->head.available_channels = a->head.active_channels = (uint16_t)coils;
	a->head.trajectory_dimensions = (uint16_t)dims;
	a->head.center_sample = (uint16_t)(samples / 2);
	a->head.sample_time_us = 5;
	a->head.read_dir[0] = a->head.phase_dir[1] = a->head.slice_dir[2] = 1;
	return m;
}

static void print_space(GString *xml, const char *name, const int64_t matrix[3], const double fov_mm[3])
{
	g_string_append_printf(xml,
		"<%s><matrixSize><x>%lld</x><y>%lld</y><z>%lld</z></matrixSize>"
		"<fieldOfView_mm><x>%.9g</x><y>%.9g</y><z>%.9g</z></fieldOfView_mm></%s>",
		name, (long long)matrix[0], (long long)matrix[1], (long long)matrix[2], fov_mm[0], fov_mm[1], fov_mm[2],
		name);
}

char *harness_header(const int64_t matrix[3], const double fov_mm[3], const char *trajectory, int64_t n_readouts)
{
	GString *xml = g_string_new("<?xml version=\"1.0\"?><ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\">"
		"<experimentalConditions><H1resonanceFrequency_Hz>63870000</H1resonanceFrequency_Hz>"
		"</experimentalConditions><encoding>");
	char *copy;

	print_space(xml, "encodedSpace", matrix, fov_mm);
	print_space(xml, "reconSpace", matrix, fov_mm);
	g_string_append(xml, "<encodingLimits>");
	if (n_readouts > 0)
		g_string_append_printf(xml, "<kspace_encoding_step_1><minimum>0</minimum><maximum>%lld</maximum>"
			"<center>%lld</center></kspace_encoding_step_1>", (long long)n_readouts - 1, (long long)n_readouts / 2);
	g_string_append_printf(xml, "</encodingLimits><trajectory>%s</trajectory></encoding></ismrmrdHeader>", trajectory);
	copy = strdup(xml->str);
	g_string_free(xml, TRUE);
	return copy;
}

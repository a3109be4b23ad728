/* SPDX-License-Identifier: MIT */
#include "unit/probe.h"

#include <CUnit/CUnit.h>
#include <glib.h>
#include <string.h>
#include <time.h>

struct probe_trace probe_trace;

struct state {
	int64_t tag;
	int fail;
	int64_t at;
	int64_t status;
	bool mute;
	bool mask;
	int64_t extra;
	double sleep_ms;
	bool wait_stop;
	int64_t seen;
	int64_t last;
};

enum { NEVER, IN_OPEN, IN_PROCESS, IN_FLUSH };
static const char *const fails[] = {"never", "open", "process", "flush", NULL};

static const fx_prop props[] = {
	FX_PROP(struct state, tag, "0", 0, 1000, "Its name in the trace"),
	FX_PROP_WORD(struct state, fail, "never", fails, "Where it fails"),
	FX_PROP(struct state, at, "0", 0, 1e9, "The message that it fails at, counted from 0"),
	FX_PROP(struct state, status, "-3", -6, 99, "What it fails with"),
	FX_PROP(struct state, mute, "false", 0, 0, "Fails without a word"),
	FX_PROP(struct state, mask, "false", 0, 0, "Calls a stop a failure of its own"),
	FX_PROP(struct state, extra, "0", 0, 1e6, "Messages that flush gives"),
	FX_PROP(struct state, sleep_ms, "0", 0, 1000, "Time taken for each message"),
	FX_PROP(struct state, wait_stop, "false", 0, 0, "Works on its first message until the run is stopped"),
	FX_PROP_END
};

static void event(int phase, int64_t tag)
{
	int i = atomic_fetch_add(&probe_trace.n_events, 1);

	if (i < PROBE_MAX) {
		probe_trace.events[i].phase = phase;
		probe_trace.events[i].tag = (int)tag;
	}
}

static int planned(struct state *s, fx_ctx *ctx, int phase)
{
	if (s->fail != phase || (phase == IN_PROCESS && s->seen != s->at))
		return FX_OK;
	if (s->mute)
		return (int)s->status;
	return fx_fail(ctx, (int)s->status, "planned in %s", fails[phase]);
}

static int answer(const struct state *s, fx_ctx *ctx, int status)
{
	if (status != FX_OK && s->mask)
		return fx_fail(ctx, FX_EIO, "secondary");
	return status;
}

static void sleep_ms(double ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};

	if (ms > 0)
		nanosleep(&t, NULL);
}

static int open_probe(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	event(PROBE_OPEN, s->tag);
	s->last = -1;
	return planned(s, ctx, IN_OPEN);
}

static int process_probe(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int64_t counter = fx_msg_acquisition(msg)->head.scan_counter;
	int status = planned(s, ctx, IN_PROCESS);

	if (counter <= s->last)
		atomic_fetch_add(&probe_trace.out_of_order, 1);
	s->last = counter;
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	s->seen++;
	sleep_ms(s->sleep_ms);
	if (s->wait_stop) {
		while (!fx_stopped(ctx))
			sleep_ms(1);
		status = fx_emit(ctx, msg);
		atomic_store(&probe_trace.emitted_after_stop, status);
		return answer(s, ctx, status);
	}
	return answer(s, ctx, fx_emit(ctx, msg));
}

static int flush_probe(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status;

	event(PROBE_FLUSH, s->tag);
	for (int64_t i = 0; i < s->extra; i++) {
		status = fx_emit(ctx, probe_message((uint32_t)(s->last + 1 + i), 64));
		if (status != FX_OK)
			return answer(s, ctx, status);
	}
	return planned(s, ctx, IN_FLUSH);
}

static void close_probe(void *self)
{
	event(PROBE_CLOSE, ((struct state *)self)->tag);
}

const fx_gadget probe_gadget = {
	.abi = FX_ABI, .name = "probe", .summary = "Fails where it is told to", .props = props,
	.state_size = sizeof(struct state), .takes = FX_ACQUISITION, .gives = FX_ACQUISITION,
	.needs = FX_ACQUISITION, .places = FX_HOST, .open = open_probe, .process = process_probe,
	.flush = flush_probe, .close = close_probe,
};

static int flush_idle(void *self, fx_ctx *ctx)
{
	(void)self;
	(void)ctx;
	event(PROBE_FLUSH, 900);
	return FX_OK;
}

const fx_gadget idle_gadget = {
	.abi = FX_ABI, .name = "idle", .summary = "Takes nothing", .places = FX_HOST, .flush = flush_idle,
};

static int drop(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	(void)ctx;
	fx_drop(msg);
	return FX_OK;
}

const fx_gadget to_image_gadget = {
	.abi = FX_ABI, .name = "to_image", .summary = "Says it makes images", .takes = FX_ACQUISITION,
	.gives = FX_IMAGE, .needs = FX_ACQUISITION, .places = FX_HOST, .process = drop,
};
const fx_gadget draw_gadget = {
	.abi = FX_ABI, .name = "draw", .summary = "Needs images", .takes = FX_IMAGE | FX_FRAME,
	.gives = FX_IMAGE | FX_FRAME, .needs = FX_IMAGE, .places = FX_HOST, .process = drop,
};
const fx_gadget either_gadget = {
	.abi = FX_ABI, .name = "either", .summary = "Takes one or the other", .takes = FX_WAVEFORM | FX_TEXT,
	.places = FX_HOST, .process = drop,
};

const fx_gadget *const probe_gadgets[] = {
	&probe_gadget, &idle_gadget, &to_image_gadget, &draw_gadget, &either_gadget, NULL,
};

/* ---- the trace -------------------------------------------------------------------------------- */

void probe_reset(void)
{
	atomic_store(&probe_trace.live, 0);
	atomic_store(&probe_trace.peak_live, 0);
	atomic_store(&probe_trace.made, 0);
	atomic_store(&probe_trace.n_events, 0);
	atomic_store(&probe_trace.out_of_order, 0);
	atomic_store(&probe_trace.emitted_after_stop, 1);
}

int probe_count(int phase, int tag)
{
	int n = 0;

	for (int i = 0; i < atomic_load(&probe_trace.n_events) && i < PROBE_MAX; i++)
		if (probe_trace.events[i].phase == phase && (tag < 0 || probe_trace.events[i].tag == tag))
			n++;
	return n;
}

int probe_when(int phase, int tag)
{
	for (int i = 0; i < atomic_load(&probe_trace.n_events) && i < PROBE_MAX; i++)
		if (probe_trace.events[i].phase == phase && probe_trace.events[i].tag == tag)
			return i;
	return -1;
}

/* How the array was to be freed: by its size, one of two ways. */
static void (*_Atomic small_release)(fx_array *), (*_Atomic large_release)(fx_array *);

static bool is_large(const fx_array *a)
{
	return a->bytes > 64 << 10;
}

static void release(fx_array *a)
{
	atomic_fetch_sub(&probe_trace.live, 1);
	(is_large(a) ? large_release : small_release)(a);
}

fx_msg *probe_message(uint32_t counter, int64_t bytes)
{
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	fx_array *data;
	int live, peak = atomic_load(&probe_trace.peak_live);

	if (!m || fx_array_new1(FX_U8, bytes, &data) != FX_OK) {
		fx_drop(m);
		return NULL;
	}
	if (is_large(data))
		large_release = data->release;
	else
		small_release = data->release;
	data->release = release;
	fx_msg_acquisition(m)->data = data;
	fx_msg_acquisition(m)->head.scan_counter = counter;
	atomic_fetch_add(&probe_trace.made, 1);
	live = atomic_fetch_add(&probe_trace.live, 1) + 1;
	while (live > peak && !atomic_compare_exchange_weak(&probe_trace.peak_live, &peak, live))
		;
	return m;
}

/* ---- the source ------------------------------------------------------------------------------- */

static int next_probe(fxi_source *self, fx_msg **out, fx_error *err)
{
	probe_source *s = (probe_source *)self;

	*out = NULL;
	if (s->made == s->fail_at)
		return fx_error_set(err, FX_EDATA, "scan.h5: record %lld is torn", (long long)s->made);
	if (s->made == s->block_at) {
		atomic_store(&s->blocked, true);
		while (!atomic_load(&s->unblock))
			sleep_ms(1);
	}
	if (s->made < s->n)
		*out = probe_message((uint32_t)s->made++, s->bytes);
	return FX_OK;
}

static double progress_probe(const fxi_source *self)
{
	const probe_source *s = (const probe_source *)self;

	return (double)s->made / (double)s->n;
}

void probe_source_init(probe_source *s, int64_t n, int64_t bytes)
{
	memset(s, 0, sizeof *s);
	s->base.next = next_probe;
	s->base.progress = progress_probe;
	s->n = n;
	s->bytes = bytes;
	s->fail_at = s->block_at = -1;
}

/* ---- loading ---------------------------------------------------------------------------------- */

int probe_load(const char *text, unsigned input_kinds, fx_error *err, fxi_registry **registry, fxi_chain **out)
{
	fxi_pipeline *p = fxi_pipeline_new("test.xml", "/pipelines");
	char **stages = g_strsplit(text, "|", -1);
	int status;

	*err = (fx_error){0};
	for (int i = 0; stages[i]; i++) {
		char **words = g_strsplit(g_strstrip(stages[i]), " ", -1);
		fxi_stage *stage = words[0] ? fxi_pipeline_add(p, words[0], i + 1) : NULL;

		for (int j = 1; stage && words[j]; j++) {
			char **pair = g_strsplit(words[j], "=", 2);

			fxi_stage_add(stage, pair[0], pair[1] ? pair[1] : "", i + 1);
			g_strfreev(pair);
		}
		g_strfreev(words);
	}
	g_strfreev(stages);
	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(NULL, err, registry), FX_OK);
	for (int i = 0; probe_gadgets[i]; i++)
		CU_ASSERT_EQUAL_FATAL(fxi_registry_add(*registry, probe_gadgets[i], err), FX_OK);
	status = fxi_chain_new(p, *registry, input_kinds, err, out);
	fxi_pipeline_free(p);
	return status;
}

fxi_chain *probe_chain(const char *text, fxi_registry **registry)
{
	fx_error err;
	fxi_chain *chain;

	CU_ASSERT_EQUAL_FATAL(probe_load(text, FX_ACQUISITION | FX_TEXT | FX_WAVEFORM, &err, registry, &chain), FX_OK);
	return chain;
}

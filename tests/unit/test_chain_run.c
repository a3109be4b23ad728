/* SPDX-License-Identifier: MIT */
/* test_chain_run.c - runs that go well: order, passing through, flushing, bounded queues, what is reported. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"
#include "stream/context.h"
#include "unit/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const harness_options with_probes = {.gadgets = probe_gadgets};
/* Every message waits alone in its queue: the tightest the engine can be run. */
static const harness_options tight = {.gadgets = probe_gadgets, .queue_bytes = 1};

static fx_header header;

static void run(harness *h, const char *chain, int64_t n, const harness_options *options)
{
	fx_msg *messages[1000];

	CU_ASSERT_FATAL(n <= 1000);
	probe_reset();
	for (int64_t i = 0; i < n; i++)
		messages[i] = probe_message((uint32_t)i, 64);
	harness_run_with(h, chain, NULL, messages, n, options);
	if (h->status != FX_OK)
		fprintf(stderr, "%s: %s\n", chain, h->err.text);
}

static void order_is_kept(void)
{
	for (int k = 0; k < 2; k++) {
		harness h;

		run(&h, "probe tag=1 | probe tag=2 | probe tag=3", 1000, k ? &tight : &with_probes);
		CU_ASSERT_EQUAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 1000);
		for (int64_t i = 0; i < 1000; i++)
			CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[i])->head.scan_counter, i);
		CU_ASSERT_EQUAL(atomic_load(&probe_trace.out_of_order), 0);
		CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 1000);
		harness_free(&h);
		CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	}
}

static void other_kinds_pass_in_order(void)
{
	fx_msg *in[] = {fx_msg_new_text("0"), probe_message(0, 8), fx_msg_new(FX_WAVEFORM), fx_msg_new_text("1"),
		probe_message(1, 8), fx_msg_new(FX_IMAGE)};
	static const unsigned kinds[] = {FX_TEXT, FX_ACQUISITION, FX_WAVEFORM, FX_TEXT, FX_ACQUISITION, FX_IMAGE};
	harness h;
	fxi_stage_report r;

	harness_run_with(&h, "probe | idle | probe", NULL, in, 6, &with_probes);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 6);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(fx_msg_kind(h.out[i]), kinds[i]);
	CU_ASSERT_STRING_EQUAL(fx_msg_text(h.out[3]), "1");
	harness_stage(&h, 0, &r);
	CU_ASSERT(r.n_in == 2 && r.n_out == 2);
	harness_stage(&h, 1, &r);
	CU_ASSERT(r.n_in == 0 && r.n_out == 0);
	harness_free(&h);
}

static void flush_in_chain_order(void)
{
	harness h;

	run(&h, "probe tag=1 extra=2 | probe tag=2 extra=100 | idle | probe tag=3 extra=1", 5, &tight);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 108);
	for (int64_t i = 0; i < h.n_out; i++)
		CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[i])->head.scan_counter, i);
	CU_ASSERT(probe_when(PROBE_OPEN, 1) < probe_when(PROBE_OPEN, 2));
	CU_ASSERT(probe_when(PROBE_OPEN, 2) < probe_when(PROBE_OPEN, 3));
	CU_ASSERT(probe_when(PROBE_FLUSH, 1) < probe_when(PROBE_FLUSH, 2));
	CU_ASSERT(probe_when(PROBE_FLUSH, 2) < probe_when(PROBE_FLUSH, 900));
	CU_ASSERT(probe_when(PROBE_FLUSH, 900) < probe_when(PROBE_FLUSH, 3));
	CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), 3);
	harness_free(&h);
}

static void no_messages_at_all(void)
{
	harness h;

	run(&h, "probe tag=1 extra=1 | probe tag=2 | idle", 0, &with_probes);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 1);
	CU_ASSERT_EQUAL(probe_count(PROBE_FLUSH, -1), 3);
	CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), 2);
	harness_free(&h);
}

struct told {
	int calls;
	double last;
	int64_t n;
};

static void tell(void *arg, double progress, int64_t n_messages)
{
	struct told *t = arg;

	t->calls++;
	t->last = progress;
	t->n = n_messages;
}

static void slow_consumer_holds_the_source_back(void)
{
	/* 120 messages of 10 kB through bounds of 50 kB: four queues' worth is 20 messages, and each of four threads
	   holds one, the source another. */
	enum { N = 120, BYTES = 10000, BOUND = 50000, MOST = 4 * (BOUND / BYTES) + 5 };
	fxi_registry *registry;
	fxi_chain *chain = probe_chain("probe | probe | probe | probe sleep_ms=2", &registry);
	probe_source source;
	struct told told = {0};
	fxi_run_options options = {.queue_bytes = BOUND, .progress = tell, .progress_arg = &told};
	fxi_stage_report r;
	fx_error err = {0};

	probe_reset();
	probe_source_init(&source, N, BYTES);
	CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, NULL, &options, &err), FX_OK);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.made), N);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	CU_ASSERT(atomic_load(&probe_trace.peak_live) <= MOST);
	CU_ASSERT(told.calls >= 1);
	CU_ASSERT(told.last > 0 && told.last <= 1);
	for (int i = 0; i < 4; i++) {
		fxi_chain_stage(chain, i, &r);
		CU_ASSERT(r.n_in == N && r.n_out == N);
		CU_ASSERT(r.queue_peak_bytes > 0 && r.queue_peak_bytes <= BOUND);
	}
	/* 120 x 2 ms: the last is busy, the one before waits for it */
	CU_ASSERT(r.busy_s >= 0.24);
	fxi_chain_stage(chain, 2, &r);
	CU_ASSERT(r.waiting_s > 0.05);
	/* a chain runs once */
	CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, NULL, &options, &err), FX_EINVAL);
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

/* ---- a gadget that uses its services ----------------------------------------------------------- */

static int open_user(void *self, fx_ctx *ctx)
{
	(void)self;
	fx_record_number(ctx, "x", 1);
	fx_record_number(ctx, "x", NAN);
	fx_record_numbers(ctx, "curve", (double[]){3, 4}, 2);
	fx_record_count(ctx, "n", 41);
	fx_record_count(ctx, "n", 1);
	fx_record_text(ctx, "x", "clash");
	for (int i = 0; i < 10; i++)
		fx_warn(ctx, "the same again");
	for (int i = 0; i < 150; i++)
		fx_warn(ctx, "another: %d", i);
	fx_info(ctx, "not kept");
	CU_ASSERT_FALSE(fx_wanted(ctx, FX_IMAGE));
	CU_ASSERT_FALSE(fx_stopped(ctx));
	CU_ASSERT_PTR_NOT_NULL(fx_scan(ctx));
	return fx_wanted(ctx, FX_ACQUISITION | FX_IMAGE) ? FX_OK : FX_EINVAL;
}

static int process_user(void *self, fx_ctx *ctx, fx_msg *msg)
{
	fx_array *a;

	(void)self;
	CU_ASSERT_EQUAL(fx_cache_get(ctx, "ab-01", &a), FX_OK);
	CU_ASSERT_PTR_NULL(a);
	CU_ASSERT_EQUAL(fx_array_new1(FX_F32, 1, &a), FX_OK);
	CU_ASSERT_EQUAL(fx_cache_put(ctx, "ab-01", a), FX_OK);
	fx_array_unref(a);
	CU_ASSERT_EQUAL(fx_cache_get(ctx, "ab-01", &a), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(a);
	fx_array_unref(a);
	CU_ASSERT_EQUAL(fx_cache_get(ctx, "../x", &a), FX_EINVAL);
	CU_ASSERT_PTR_NULL(a);
	/* returns well though a call explained a failure: shown as a warning, forgotten as a cause */
	return fx_emit(ctx, msg);
}

static const fx_gadget user = {
	.abi = FX_ABI, .name = "user", .summary = "Uses its services", .takes = FX_ACQUISITION, .gives = FX_ACQUISITION,
	.places = FX_HOST, .open = open_user, .process = process_user,
};

static void services(void)
{
	const fx_gadget *const gadgets[] = {&user, &probe_gadget, NULL};
	fxi_cache *cache = harness_cache();
	harness_options options = {.gadgets = gadgets, .cache = cache};
	fx_msg *in[] = {probe_message(0, 8)};
	fxi_stage_report r;
	harness h;

	harness_run_with(&h, "user | probe", NULL, in, 1, &options);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "x", 0), 1);
	CU_ASSERT(isnan(harness_number(&h, 0, "x", 1)));
	CU_ASSERT_EQUAL(harness_number(&h, 0, "curve", 1), 4);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "n"), 42);
	CU_ASSERT(harness_warned(&h, "user: 'x' is recorded with different types"));
	CU_ASSERT(harness_warned(&h, "user: went on after: '../x' is no key"));
	harness_stage(&h, 0, &r);
	CU_ASSERT_EQUAL_FATAL(r.n_warnings, 101);
	CU_ASSERT_STRING_EQUAL(r.warnings[1], "the same again (10 times)");
	CU_ASSERT_STRING_EQUAL(r.warnings[2], "another: 0");
	CU_ASSERT_STRING_EQUAL(r.warnings[100], "and 53 further warnings that are not kept");
	/* logged: each sentence as it comes, the repeated one three times and once with its count at the end */
	CU_ASSERT_EQUAL(h.n_warnings, 1 + 3 + 150 + 1 + 1);
	harness_free(&h);
	cache->close(cache);
}

static CU_TestInfo tests[] = {
	{"order is kept", order_is_kept},
	{"kinds not taken pass through in order", other_kinds_pass_in_order},
	{"flush in chain order, and gives messages", flush_in_chain_order},
	{"no messages at all", no_messages_at_all},
	{"a slow consumer holds the source back", slow_consumer_holds_the_source_back},
	{"record, warnings, cache", services},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_chain_run = {"chain_run", NULL, NULL, NULL, NULL, tests};

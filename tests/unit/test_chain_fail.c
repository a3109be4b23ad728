/* SPDX-License-Identifier: MIT */
/* test_chain_fail.c - runs that go wrong, at every place: the first cause, nothing lost sight of, no hang. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"
#include "stream/context.h"
#include "unit/probe.h"
#include "unit/short_memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N 40

static fx_header header;

static void feed_messages(harness *h, const char *chain, int64_t queue_bytes)
{
	harness_options options = {.gadgets = probe_gadgets, .queue_bytes = queue_bytes};
	fx_msg *messages[N];

	probe_reset();
	for (uint32_t i = 0; i < N; i++)
		messages[i] = probe_message(i, 64);
	harness_run_with(h, chain, NULL, messages, N, &options);
}

/* Each opened gadget was closed, once; nothing is left alive. */
static void tidy(harness *h, int length)
{
	harness_free(h);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	for (int i = 1; i <= length; i++) {
		CU_ASSERT(probe_count(PROBE_OPEN, i) <= 1);
		CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, i), probe_count(PROBE_OPEN, i));
	}
}

static void make_chain(char *text, size_t size, int length, int position, const char *how)
{
	text[0] = '\0';
	for (int i = 0; i < length; i++) {
		size_t used = strlen(text);

		snprintf(text + used, size - used, "%sprobe tag=%d extra=2 %s", i ? " | " : "", i + 1,
			i == position ? how : "mask=true");
	}
}

static void every_position_and_phase(void)
{
	static const struct { const char *how, *phase; } plans[] = {
		{"fail=open", "open"}, {"fail=process at=0", "process"}, {"fail=process at=7", "process"},
		{"fail=process at=39", "process"}, {"fail=flush", "flush"},
	};

	for (int length = 1; length <= 5; length++)
		for (int position = 0; position < length; position++)
			for (size_t plan = 0; plan < sizeof plans / sizeof plans[0]; plan++)
				for (int tight = 0; tight < 2; tight++) {
					char chain[1024], expected[64], label[16];
					harness h;

					make_chain(chain, sizeof chain, length, position, plans[plan].how);
					snprintf(label, sizeof label, length > 1 ? "probe#%d" : "probe", position + 1);
					snprintf(expected, sizeof expected, "%s: planned in %s", label, plans[plan].phase);
					feed_messages(&h, chain, tight);
					CU_ASSERT_EQUAL(h.status, FX_EDATA);
					CU_ASSERT_EQUAL(h.err.status, FX_EDATA);
					if (strcmp(h.err.text, expected) != 0) {
						CU_FAIL("another cause was reported");
						fprintf(stderr, "'%s' is not '%s'\n", h.err.text, expected);
					}
					/* those behind one that did not open were never there */
					if (plan == 0)
						CU_ASSERT_EQUAL(probe_count(PROBE_OPEN, -1), position + 1);
					tidy(&h, length);
				}
}

static void without_a_word(void)
{
	harness h;

	feed_messages(&h, "probe tag=1 | probe tag=2 fail=process at=3 mute=true status=-4", 0);
	CU_ASSERT_EQUAL(h.status, FX_EIO);
	CU_ASSERT_STRING_EQUAL(h.err.text, "probe#2: input or output failed");
	tidy(&h, 2);
	feed_messages(&h, "probe tag=1 fail=process status=7", 0);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	tidy(&h, 1);
	/* a gadget that says "stopped" when nobody stopped it has failed all the same */
	feed_messages(&h, "probe tag=1 | probe tag=2 fail=process mute=true status=-6", 0);
	CU_ASSERT_EQUAL(h.status, FX_ECANCELED);
	CU_ASSERT_STRING_EQUAL(h.err.text, "probe#2: stopped");
	tidy(&h, 2);
}

/* ---- gadgets that break the rules -------------------------------------------------------------- */

static int open_and_emit(void *self, fx_ctx *ctx)
{
	(void)self;
	return fx_emit(ctx, probe_message(0, 8));
}

static int emit_text(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	fx_drop(msg);
	return fx_emit(ctx, fx_msg_new_text("x"));
}

static int emit_nothing(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	fx_drop(msg);
	return fx_emit(ctx, NULL);
}

static void rule_broken(fx_gadget g, int status, const char *why)
{
	const fx_gadget *const gadgets[] = {&g, NULL};
	harness_options options = {.gadgets = gadgets};
	fx_msg *in[] = {probe_message(0, 8)};
	harness h;

	g.abi = FX_ABI;
	g.name = "rogue";
	g.summary = "Breaks a rule";
	harness_run_with(&h, "rogue", NULL, in, 1, &options);
	CU_ASSERT_EQUAL(h.status, status);
	if (!strstr(h.err.text, why)) {
		CU_FAIL("the sentence lacks a part");
		fprintf(stderr, "'%s' lacks '%s'\n", h.err.text, why);
	}
	harness_free(&h);
}

static void rules_are_kept(void)
{
	fx_gadget g = {.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .places = FX_HOST, .process = emit_text};

	probe_reset();
	rule_broken(g, FX_EINVAL, "rogue: gave a message of kind text");
	g.process = emit_nothing;
	rule_broken(g, FX_ENOMEM, "rogue: no memory for a message");
	g.open = open_and_emit;
	rule_broken(g, FX_EINVAL, "from open");
	g.open = NULL;
	g.places = FX_DEVICE;
	rule_broken(g, FX_ENOTSUP, "device only");
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
}

/* ---- sources and outputs that fail ------------------------------------------------------------- */

static int full_output(void *arg, fx_msg *msg, fx_error *err)
{
	int *left = arg;

	fx_drop(msg);
	return (*left)-- > 0 ? FX_OK : fx_error_set(err, FX_EIO, "the client has gone");
}

static void both_ends(void)
{
	for (int which = 0; which < 2; which++)
		for (int at = 0; at < N; at += 13) {
			fxi_registry *registry;
			fxi_chain *chain = probe_chain("probe tag=1 mask=true | probe tag=2 mask=true", &registry);
			probe_source source;
			int left = at;
			fxi_run_options options = {.queue_bytes = 1};
			fx_error err = {0};

			probe_reset();
			probe_source_init(&source, N, 8);
			if (which == 0)
				source.fail_at = at;
			else
				options.output = full_output;
			options.output_arg = &left;
			CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, NULL, &options, &err),
				which ? FX_EIO : FX_EDATA);
			if (which)
				CU_ASSERT_STRING_EQUAL(err.text, "the client has gone");
			if (!which)
				CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "scan.h5: record"));
			CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
			CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), 2);
			fxi_chain_free(chain);
			fxi_registry_free(registry);
		}
}

static void unknown_backend(void)
{
	fxi_registry *registry;
	fxi_chain *chain = probe_chain("probe tag=1", &registry);
	probe_source source;
	fxi_run_options options = {.backend = "abacus"};
	fx_error err = {0};

	probe_reset();
	probe_source_init(&source, N, 8);
	CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, NULL, &options, &err), FX_ENOTSUP);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "abacus"));
	CU_ASSERT_EQUAL(probe_count(PROBE_OPEN, -1), 0);
	CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), 0);
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

/* Every allocation of loading and running in turn: explained, tidy, and well once none is left to fail. */
static void memory_that_runs_out(void)
{
	int64_t n = 0, calls;

	do {
		harness_options options = {.gadgets = probe_gadgets, .queue_bytes = 1};
		fx_msg *messages[3];
		harness h;

		probe_reset();
		for (uint32_t i = 0; i < 3; i++)
			messages[i] = probe_message(i, 64);
		short_memory_at(n);
		harness_run_with(&h, "probe tag=1 | probe tag=2 extra=2 | idle", NULL, messages, 3, &options);
		calls = short_memory_off();
		CU_ASSERT_EQUAL(h.status, n < calls ? FX_ENOMEM : FX_OK);
		CU_ASSERT(h.status == FX_OK || strlen(h.err.text) > 0);
		tidy(&h, 2);
	} while (n++ < calls);
	CU_ASSERT(n > 20); /* or nothing was tried */
}

/* ---- stops from outside ------------------------------------------------------------------------ */

struct stopper {
	fxi_chain *chain;
	probe_source *source;
	int after_ms;
	bool by_signal;
};

static fxi_chain *signalled;

static void on_signal(int number)
{
	(void)number;
	fxi_chain_stop(signalled);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *stop_later(void *arg)
{
	struct stopper *s = arg;

	pause_ms(s->after_ms);
	if (s->by_signal)
		raise(SIGUSR1);
	else
		fxi_chain_stop(s->chain);
	if (s->source->block_at >= 0) {
		pause_ms(20);
		atomic_store(&s->source->unblock, true);
	}
	return NULL;
}

/* Stops the chain after a while, which must end it well before the ten seconds its sleeping would take. */
static void stopped(const char *text, int64_t block_at, int after_ms, bool by_signal)
{
	fxi_registry *registry;
	fxi_chain *chain = probe_chain(text, &registry);
	probe_source source;
	struct stopper stopper = {chain, &source, after_ms, by_signal};
	fxi_run_options options = {.queue_bytes = 1000};
	fx_error err = {0};
	double start = fxi_now_s();
	pthread_t thread;

	probe_reset();
	probe_source_init(&source, 100000, 500);
	source.block_at = block_at;
	signalled = chain;
	if (after_ms < 0)
		fxi_chain_stop(chain);
	else
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, stop_later, &stopper), 0);
	CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, NULL, &options, &err), FX_ECANCELED);
	CU_ASSERT_STRING_EQUAL(err.text, "stopped before the end");
	CU_ASSERT(fxi_now_s() - start < 5);
	if (after_ms >= 0)
		pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	CU_ASSERT_EQUAL(probe_count(PROBE_FLUSH, -1), 0);
	CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), probe_count(PROBE_OPEN, -1));
	fxi_chain_stop(chain); /* late, and harmless */
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

static void stops(void)
{
	stopped("probe tag=1 | probe tag=2", -1, -1, false); /* before it runs */
	for (int by_signal = 0; by_signal < 2; by_signal++) {
		signal(SIGUSR1, on_signal);
		/* the source waits, a gadget works, gadgets wait on full queues */
		stopped("probe tag=1 | probe tag=2", 3, 50, by_signal);
		stopped("probe tag=1 | probe tag=2 sleep_ms=100", -1, 50, by_signal);
		stopped("probe tag=1 mask=true | probe tag=2 mask=true | probe tag=3 wait_stop=true", -1, 50, by_signal);
		CU_ASSERT_EQUAL(atomic_load(&probe_trace.emitted_after_stop), FX_ECANCELED);
		signal(SIGUSR1, SIG_DFL);
	}
	for (int ms = 0; ms < 20; ms++) /* anywhere between opening and feeding */
		stopped("probe tag=1 sleep_ms=1 | probe tag=2 | probe tag=3", -1, ms / 4, false);
}

static CU_TestInfo tests[] = {
	{"every position and phase, one to five gadgets", every_position_and_phase},
	{"failures without a word", without_a_word},
	{"rules are kept", rules_are_kept},
	{"a source or an output that fails", both_ends},
	{"an unknown backend", unknown_backend},
	{"memory that runs out, at every allocation", memory_that_runs_out},
	{"stops from a thread and a signal handler", stops},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_chain_fail = {"chain_fail", NULL, NULL, NULL, NULL, tests};

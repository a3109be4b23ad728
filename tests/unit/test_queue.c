/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>

#include "stream/queue.h"
#include "unit/probe.h"

#include <pthread.h>
#include <time.h>

struct side {
	fxi_queue *q;
	int64_t n;
	int64_t got;
	int status;
	double waited_s;
	atomic_bool started;
};

static void *putter(void *arg)
{
	struct side *s = arg;

	atomic_store(&s->started, true);
	for (int64_t i = 0; i < s->n && s->status == FX_OK; i++)
		s->status = fxi_queue_put(s->q, probe_message((uint32_t)i, 1000), &s->waited_s);
	if (s->status == FX_OK)
		fxi_queue_close(s->q);
	return NULL;
}

static void *getter(void *arg)
{
	struct side *s = arg;
	fx_msg *m;

	atomic_store(&s->started, true);
	while ((s->status = fxi_queue_get(s->q, &m)) == FX_OK && m) {
		if (fx_msg_acquisition(m)->head.scan_counter == s->got)
			s->got++;
		fx_drop(m);
	}
	return NULL;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* Long enough for a thread to reach its wait; where it does not, the test still holds, it only tests less. */
static void let_it_wait(struct side *s)
{
	while (!atomic_load(&s->started))
		pause_ms(1);
	pause_ms(20);
}

static void order_and_bound(void)
{
	fxi_queue *q = fxi_queue_new(10000);
	struct side in = {.q = q, .n = 5000}, out = {.q = q};
	pthread_t a, b;

	probe_reset();
	pthread_create(&a, NULL, putter, &in);
	pthread_create(&b, NULL, getter, &out);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CU_ASSERT_EQUAL(in.status, FX_OK);
	CU_ASSERT_EQUAL(out.status, FX_OK);
	CU_ASSERT_EQUAL(out.got, 5000);
	CU_ASSERT(fxi_queue_peak_bytes(q) <= 10000);
	CU_ASSERT(fxi_queue_peak_bytes(q) > 1000);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	fxi_queue_free(q);
}

static void a_giant_passes_alone(void)
{
	fxi_queue *q = fxi_queue_new(10);
	struct side out = {.q = q}, in = {.q = q, .n = 3};
	pthread_t a;

	probe_reset();
	pthread_create(&a, NULL, putter, &in);
	let_it_wait(&in);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.made), 2); /* one inside, one in its hands */
	getter(&out);
	pthread_join(a, NULL);
	CU_ASSERT_EQUAL(out.got, 3);
	CU_ASSERT(in.waited_s > 0.005);
	fxi_queue_free(q);
}

/* Handed over several at once: in order, within the bound, and what an abort catches is dropped. */
static void many_at_once(void)
{
	fxi_queue *q = fxi_queue_new(4000);
	struct side out = {.q = q};
	double waited = 0;
	fx_msg *m[50];
	pthread_t b;

	probe_reset();
	pthread_create(&b, NULL, getter, &out);
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 50; i++)
			m[i] = probe_message(round * 50 + i, i % 7 == 0 ? 3000 : 100);
		CU_ASSERT_EQUAL(fxi_queue_put_all(q, m, 50, &waited), FX_OK);
	}
	fxi_queue_close(q);
	pthread_join(b, NULL);
	CU_ASSERT_EQUAL(out.got, 2000);
	CU_ASSERT(fxi_queue_peak_bytes(q) <= 4000);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	fxi_queue_free(q);
	q = fxi_queue_new(1 << 20);
	for (uint32_t i = 0; i < 50; i++)
		m[i] = probe_message(i, 100);
	CU_ASSERT_EQUAL(fxi_queue_put_all(q, m, 20, &waited), FX_OK);
	CU_ASSERT_EQUAL(fxi_queue_get(q, &m[0]), FX_OK);
	fx_drop(m[0]);
	fxi_queue_abort(q);
	CU_ASSERT_EQUAL(fxi_queue_get(q, &m[0]), FX_ECANCELED);
	CU_ASSERT_EQUAL(fxi_queue_put_all(q, m + 20, 30, &waited), FX_ECANCELED);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 19);
	fxi_queue_free(q);
	CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
}

static void close_then_drain(void)
{
	fxi_queue *q = fxi_queue_new(1 << 20);
	fx_msg *m;
	double waited = 0;

	probe_reset();
	CU_ASSERT_EQUAL(fxi_queue_put(q, probe_message(0, 8), &waited), FX_OK);
	fxi_queue_close(q);
	CU_ASSERT_EQUAL(fxi_queue_get(q, &m), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(m);
	fx_drop(m);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(fxi_queue_get(q, &m), FX_OK);
		CU_ASSERT_PTR_NULL(m);
	}
	CU_ASSERT_EQUAL(waited, 0);
	fxi_queue_free(q);
	fxi_queue_free(NULL);
}

static void abort_wakes_both_sides(void)
{
	for (int which = 0; which < 2; which++) {
		fxi_queue *q = fxi_queue_new(1500);
		struct side s = {.q = q, .n = 3};
		pthread_t t;
		fx_msg *m;
		double waited = 0;

		probe_reset();
		pthread_create(&t, NULL, which ? getter : putter, &s);
		let_it_wait(&s);
		fxi_queue_abort(q);
		pthread_join(t, NULL);
		CU_ASSERT_EQUAL(s.status, FX_ECANCELED);
		CU_ASSERT_EQUAL(fxi_queue_put(q, probe_message(0, 8), &waited), FX_ECANCELED);
		CU_ASSERT_EQUAL(fxi_queue_get(q, &m), FX_ECANCELED);
		CU_ASSERT_PTR_NULL(m);
		fxi_queue_free(q);
		CU_ASSERT_EQUAL(atomic_load(&probe_trace.live), 0);
	}
}

static CU_TestInfo tests[] = {
	{"order is kept, bytes are bounded", order_and_bound},
	{"a message beyond the bound passes alone", a_giant_passes_alone},
	{"a closed queue is drained", close_then_drain},
	{"an abort wakes both sides", abort_wakes_both_sides},
	{"many at once", many_at_once},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_queue = {"queue", NULL, NULL, NULL, NULL, tests};

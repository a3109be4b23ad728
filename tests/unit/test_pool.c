/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>

#include "stream/pool.h"
#include "stream/queue.h"

#include <pthread.h>
#include <string.h>

static void reuse_and_room(void)
{
	fxi_pool *p = fxi_pool_new(100);
	unsigned char *a, *b, *c;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(fxi_pool_bytes(p), 100);
	a = fxi_pool_take(p);
	b = fxi_pool_take(p);
	CU_ASSERT(a && b && a != b && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0);
	memset(a, 1, 100);
	memset(b, 2, 100);
	CU_ASSERT_EQUAL(a[99], 1);
	fxi_pool_give(a);
	c = fxi_pool_take(p);
	CU_ASSERT_PTR_EQUAL(c, a);
	fxi_pool_give(b);
	fxi_pool_free(p);
	memset(c, 3, 100);   /* still good: the owner left, the block did not */
	fxi_pool_give(c);
	fxi_pool_free(NULL);
	fxi_pool_free(fxi_pool_new(1));
}

static void arrays_and_messages(void)
{
	fxi_pool *messages = fxi_pool_new(fxi_msg_bytes()), *arrays = fxi_pool_new(fxi_array_room(64));
	fx_array *a, *none;
	fx_msg *m, *other;

	CU_ASSERT_EQUAL_FATAL(fxi_array_new_in(arrays, FX_CF32, 2, (int64_t[]){4, 2}, &a), FX_OK);
	CU_ASSERT(a->n == 8 && a->bytes == 64 && a->dims[1] == 2 && a->dims[2] == 1 && a->place == FX_HOST && a->refs == 1);
	CU_ASSERT_EQUAL((uintptr_t)a->data % 64, 0);
	CU_ASSERT_EQUAL(fxi_array_new_in(arrays, FX_CF32, 2, (int64_t[]){4, 3}, &none), FX_EINVAL);
	CU_ASSERT_EQUAL(fxi_array_new_in(arrays, FX_CF32, 1, (int64_t[]){0}, &none), FX_EINVAL);
	m = fxi_msg_new_in(messages, FX_ACQUISITION);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m);
	fx_msg_acquisition(m)->data = fx_array_ref(a);
	other = fx_msg_ref(m);
	CU_ASSERT_EQUAL(fx_msg_own(&other), FX_OK);   /* a copy, from the heap */
	fx_drop(m);
	fx_array_unref(a);
	m = fxi_msg_new_in(messages, FX_ACQUISITION);   /* the same memory, as new */
	CU_ASSERT(fx_msg_acquisition(m)->data == NULL && fx_msg_acquisition(m)->head.flags == 0);
	CU_ASSERT_EQUAL(fx_msg_to_weighted(m), FX_OK);
	CU_ASSERT(fx_msg_weighted(m)->phi2 == NULL && fx_msg_weighted(m)->frame_id == -1);
	fxi_pool_free(messages);
	fxi_pool_free(arrays);
	CU_ASSERT_EQUAL(fx_msg_acquisition(other)->data->n, 8);
	fx_drop(other);
	fx_drop(m);
}

struct side {
	fxi_queue *q;
	int64_t sum;
};

static void *drop_all(void *arg)
{
	struct side *s = arg;
	fx_msg *m;

	while (fxi_queue_get(s->q, &m) == FX_OK && m) {
		s->sum += ((int32_t *)fx_msg_acquisition(m)->data->data)[3];
		fx_drop(m);
	}
	return NULL;
}

/* One thread makes, one drops, and the owner leaves while some are still out. */
static void two_threads(void)
{
	for (int round = 0; round < 20; round++) {
		fxi_pool *messages = fxi_pool_new(fxi_msg_bytes()), *arrays = fxi_pool_new(fxi_array_room(16));
		struct side s = {.q = fxi_queue_new(1 << 20)};
		double waited = 0;
		pthread_t thread;
		int64_t sum = 0;

		pthread_create(&thread, NULL, drop_all, &s);
		for (int32_t i = 0; i < 2000; i++) {
			fx_msg *m = fxi_msg_new_in(messages, FX_ACQUISITION);
			fx_array *a = NULL;

			CU_ASSERT_EQUAL_FATAL(fxi_array_new_in(arrays, FX_I32, 1, (int64_t[]){4}, &a), FX_OK);
			((int32_t *)a->data)[3] = i;
			sum += i;
			fx_msg_acquisition(m)->data = a;
			CU_ASSERT_EQUAL_FATAL(fxi_queue_put(s.q, m, &waited), FX_OK);
		}
		fxi_pool_free(messages);
		fxi_pool_free(arrays);
		fxi_queue_close(s.q);
		pthread_join(thread, NULL);
		CU_ASSERT_EQUAL(s.sum, sum);
		fxi_queue_free(s.q);
	}
}

static CU_TestInfo tests[] = {
	{"blocks are used again, and outlive their owner", reuse_and_room},
	{"arrays and messages", arrays_and_messages},
	{"two threads", two_threads},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_pool = {"pool", NULL, NULL, NULL, NULL, tests};

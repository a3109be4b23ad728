/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a bounded queue on a mutex and two conditions. A waiting producer is woken once half of the bound is
 * free, and small messages are taken out several at once, so that producer and consumer do not trade the processor, nor the lock, for
 * every message.
 */
#include "queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define MOST_SPARE 256
#define MOST_TAKEN 64

struct node {
	struct node *next;
	fx_msg *msg;
	int64_t bytes; /* when it was put: the message may be another's by then */
};

struct fxi_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, drained;
	struct node *first, **last;
	int64_t max_bytes, bytes, peak_bytes;
	bool closed;
	atomic_bool aborted;
	bool getter_waits, putter_waits;
	struct node *spare;    /* nodes for messages to come */
	int n_spare;
	/* the getter's own, without the lock: what it took and has not handed out, and nodes that are empty */
	struct node *mine, *done;
};

double fxi_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fxi_queue *fxi_queue_new(int64_t max_bytes)
{
	fxi_queue *q = fx_alloc(1, sizeof *q);

	if (!q)
		return NULL;
	atomic_init(&q->aborted, false);
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	pthread_cond_init(&q->drained, NULL);
	q->last = &q->first;
	q->max_bytes = max_bytes;
	return q;
}

static void free_nodes(struct node *node, bool full)
{
	while (node) {
		struct node *next = node->next;

		if (full)
			fx_drop(node->msg);
		fx_free(node);
		node = next;
	}
}

void fxi_queue_free(fxi_queue *q)
{
	if (!q)
		return;
	free_nodes(q->first, true);
	free_nodes(q->mine, true);
	free_nodes(q->done, false);
	free_nodes(q->spare, false);
	pthread_cond_destroy(&q->drained);
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
	fx_free(q);
}

static bool fits(const fxi_queue *q, int64_t bytes)
{
	return !q->first || bytes <= q->max_bytes - q->bytes;
}

static void wait_for_room(fxi_queue *q, int64_t bytes, double *waited_s)
{
	double start = fxi_now_s();

	q->putter_waits = true;
	while (!q->aborted && !fits(q, bytes))
		pthread_cond_wait(&q->drained, &q->lock);
	q->putter_waits = false;
	*waited_s += fxi_now_s() - start;
}

/* Under the lock. A node that was used before, or a new one. */
static struct node *take_node(fxi_queue *q)
{
	struct node *node = q->spare;

	if (!node)
		return fx_alloc(1, sizeof *node);
	q->spare = node->next;
	q->n_spare--;
	node->next = NULL;
	return node;
}

static void keep_node(fxi_queue *q, struct node *node)
{
	if (q->n_spare == MOST_SPARE) {
		fx_free(node);
		return;
	}
	node->next = q->spare;
	q->spare = node;
	q->n_spare++;
}

/* Under the lock; consumes msg. */
static int put_one(fxi_queue *q, fx_msg *msg, double *waited_s)
{
	struct node *node = take_node(q);

	if (!node) {
		fx_drop(msg);
		return FX_ENOMEM;
	}
	node->msg = msg;
	node->bytes = fx_msg_bytes(msg);
	if (!q->aborted && !fits(q, node->bytes)) {
		if (q->getter_waits)
			pthread_cond_signal(&q->filled);
		wait_for_room(q, node->bytes, waited_s);
	}
	if (q->aborted) {
		keep_node(q, node);
		fx_drop(msg);
		return FX_ECANCELED;
	}
	*q->last = node;
	q->last = &node->next;
	q->bytes += node->bytes;
	if (q->bytes > q->peak_bytes)
		q->peak_bytes = q->bytes;
	return FX_OK;
}

int fxi_queue_put_all(fxi_queue *q, fx_msg *const *msgs, int64_t n, double *waited_s)
{
	int status = FX_OK;

	pthread_mutex_lock(&q->lock);
	for (int64_t i = 0; i < n; i++) {
		if (status == FX_OK)
			status = put_one(q, msgs[i], waited_s);
		else
			fx_drop(msgs[i]);
	}
	if (q->getter_waits && q->first)
		pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	return status;
}

int fxi_queue_put(fxi_queue *q, fx_msg *msg, double *waited_s)
{
	return fxi_queue_put_all(q, &msg, 1, waited_s);
}

/* Under the lock: what waits, as far as it is little, becomes the getter's own. A large message goes alone. */
static void take(fxi_queue *q)
{
	struct node **end = &q->mine;
	int64_t bytes = 0;

	while (q->done) { /* nodes that it is through with */
		struct node *node = q->done;

		q->done = node->next;
		keep_node(q, node);
	}
	for (int n = 0; n < MOST_TAKEN && q->first; n++) {
		struct node *node = q->first;

		if (n > 0 && bytes + node->bytes > q->max_bytes / 8)
			break;
		bytes += node->bytes;
		q->first = node->next;
		node->next = NULL;
		*end = node;
		end = &node->next;
	}
	if (!q->first)
		q->last = &q->first;
	q->bytes -= bytes;
	if (q->putter_waits && (!q->first || q->bytes <= q->max_bytes / 2))
		pthread_cond_signal(&q->drained);
}

int fxi_queue_get(fxi_queue *q, fx_msg **out)
{
	struct node *node;

	*out = NULL;
	if (!q->mine) {
		pthread_mutex_lock(&q->lock);
		q->getter_waits = true;
		while (!q->aborted && !q->first && !q->closed)
			pthread_cond_wait(&q->filled, &q->lock);
		q->getter_waits = false;
		if (!q->aborted)
			take(q);
		pthread_mutex_unlock(&q->lock);
	}
	if (atomic_load_explicit(&q->aborted, memory_order_acquire))
		return FX_ECANCELED;
	node = q->mine;
	if (node) {
		q->mine = node->next;
		*out = node->msg;
		node->next = q->done;
		q->done = node;
	}
	return FX_OK;
}

void fxi_queue_close(fxi_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

void fxi_queue_abort(fxi_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->aborted = true;
	pthread_cond_broadcast(&q->filled);
	pthread_cond_broadcast(&q->drained);
	pthread_mutex_unlock(&q->lock);
}

int64_t fxi_queue_peak_bytes(fxi_queue *q)
{
	int64_t peak;

	pthread_mutex_lock(&q->lock);
	peak = q->peak_bytes;
	pthread_mutex_unlock(&q->lock);
	return peak;
}

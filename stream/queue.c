/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a bounded queue on a mutex and two conditions. A waiting producer is woken once half of the bound is
 * free, so that a fast producer and a slow consumer do not trade the processor for every message.
 */
#include "queue.h"

#include <pthread.h>
#include <time.h>

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
	bool closed, aborted;
	bool getter_waits, putter_waits;
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
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	pthread_cond_init(&q->drained, NULL);
	q->last = &q->first;
	q->max_bytes = max_bytes;
	return q;
}

void fxi_queue_free(fxi_queue *q)
{
	if (!q)
		return;
	while (q->first) {
		struct node *node = q->first;

		q->first = node->next;
		fx_drop(node->msg);
		fx_free(node);
	}
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

int fxi_queue_put(fxi_queue *q, fx_msg *msg, double *waited_s)
{
	struct node *node = fx_alloc(1, sizeof *node);

	if (!node) {
		fx_drop(msg);
		return FX_ENOMEM;
	}
	node->msg = msg;
	node->bytes = fx_msg_bytes(msg);
	pthread_mutex_lock(&q->lock);
	if (!q->aborted && !fits(q, node->bytes))
		wait_for_room(q, node->bytes, waited_s);
	if (q->aborted) {
		pthread_mutex_unlock(&q->lock);
		fx_free(node);
		fx_drop(msg);
		return FX_ECANCELED;
	}
	*q->last = node;
	q->last = &node->next;
	q->bytes += node->bytes;
	if (q->bytes > q->peak_bytes)
		q->peak_bytes = q->bytes;
	if (q->getter_waits)
		pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
	return FX_OK;
}

int fxi_queue_get(fxi_queue *q, fx_msg **out)
{
	struct node *node;
	int status = FX_OK;

	*out = NULL;
	pthread_mutex_lock(&q->lock);
	q->getter_waits = true;
	while (!q->aborted && !q->first && !q->closed)
		pthread_cond_wait(&q->filled, &q->lock);
	q->getter_waits = false;
	node = q->aborted ? NULL : q->first;
	if (q->aborted)
		status = FX_ECANCELED;
	if (node) {
		q->first = node->next;
		if (!q->first)
			q->last = &q->first;
		q->bytes -= node->bytes;
		if (q->putter_waits && (!q->first || q->bytes <= q->max_bytes / 2))
			pthread_cond_signal(&q->drained);
		*out = node->msg;
	}
	pthread_mutex_unlock(&q->lock);
	fx_free(node);
	return status;
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

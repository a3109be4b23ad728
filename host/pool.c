/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the process's one compute pool.
 *
 * Plain POSIX threads rather than OpenMP: libgomp keeps a team for every thread that opens a region, so gadget
 * threads and compute threads would multiply, and ThreadSanitizer cannot see its synchronisation.
 */
#include <fornix/backend.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MAX_WORKERS 255

static struct {
	pthread_mutex_t region;  /* held by the one caller whose region is active */
	pthread_mutex_t lock;    /* guards what follows */
	pthread_cond_t wake, done;
	int n_workers;           /* started so far; they live as long as the process */
	uint64_t generation;     /* counts regions, so that a worker joins each once */
	int wanted, joined, busy;/* workers the region may have, has had, and has now */
	void (*body)(void *, int64_t);
	void *arg;
	int64_t n;
	_Atomic int64_t next;
} pool = {
	.region = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
};

/* True inside a region: a nested one runs in place, since the pool is taken. */
static _Thread_local bool inside;

static void drain(void (*body)(void *, int64_t), void *arg, int64_t n)
{
	int64_t i;

	while ((i = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed)) < n)
		body(arg, i);
}

static void *worker(void *unused)
{
	uint64_t seen = 0;

	(void)unused;
	inside = true;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		while (pool.generation == seen || pool.joined >= pool.wanted)
			pthread_cond_wait(&pool.wake, &pool.lock);
		seen = pool.generation;
		pool.joined++;
		pool.busy++;
		void (*body)(void *, int64_t) = pool.body;
		void *arg = pool.arg;
		int64_t n = pool.n;
		pthread_mutex_unlock(&pool.lock);
		drain(body, arg, n);
		pthread_mutex_lock(&pool.lock);
		if (--pool.busy == 0)
			pthread_cond_signal(&pool.done);
	}
	return NULL;
}

int fx_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return CPU_COUNT(&set);
}

/* Starts workers until there are `n`; fewer is no failure, the caller works too. Called with pool.lock held. */
static void start_workers(int n)
{
	pthread_attr_t attributes;

	if (n > MAX_WORKERS)
		n = MAX_WORKERS;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	while (pool.n_workers < n) {
		pthread_t thread;

		if (pthread_create(&thread, &attributes, worker, NULL) != 0)
			break;
		pool.n_workers++;
	}
	pthread_attr_destroy(&attributes);
}

void fx_parallel(int n_threads, int64_t n, void (*body)(void *arg, int64_t i), void *arg)
{
	if (n <= 1 || n_threads <= 1 || inside) {
		for (int64_t i = 0; i < n; i++)
			body(arg, i);
		return;
	}
	pthread_mutex_lock(&pool.region);
	inside = true;
	pthread_mutex_lock(&pool.lock);
	pool.wanted = (int)(n < n_threads ? n : n_threads) - 1;
	start_workers(pool.wanted);
	pool.body = body;
	pool.arg = arg;
	pool.n = n;
	atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
	pool.joined = 0;
	pool.generation++;
	pthread_cond_broadcast(&pool.wake);
	pthread_mutex_unlock(&pool.lock);

	drain(body, arg, n);

	pthread_mutex_lock(&pool.lock);
	pool.wanted = 0; /* who has not joined yet stays out */
	while (pool.busy > 0)
		pthread_cond_wait(&pool.done, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
	inside = false;
	pthread_mutex_unlock(&pool.region);
}

/* SPDX-License-Identifier: MIT */
/*
 * run.c - a chain at work: one thread a gadget, the caller's thread feeding, and one that sleeps until somebody asks
 * for a stop. Everything that can wait is woken by stop_all, which any of them may call.
 */
#include "context.h"
#include "feed.h"
#include "move.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_QUEUE_BYTES ((int64_t)16 << 20)

/* ---- stopping -------------------------------------------------------------------------------- */

static void stop_all(fxi_chain *c)
{
	atomic_store_explicit(&c->stop, true, memory_order_release);
	for (int64_t i = 0; i < c->n_stages; i++)
		if (c->stages[i].in)
			fxi_queue_abort(c->stages[i].in);
	if (c->source && c->source->interrupt)
		c->source->interrupt(c->source);
	pthread_mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

void fxi_chain_fail(fxi_chain *c, const fx_ctx *ctx, int status, const char *text)
{
	pthread_mutex_lock(&c->lock);
	/* Whatever fails once a stop is under way fails because of it. */
	if (c->failure.status == FX_OK && !fxi_stopping(c)) {
		if (!text || !*text)
			text = fx_status_text(status);
		fx_error_set(&c->failure, status, "%s%s%.900s", ctx ? ctx->label : "", ctx ? ": " : "", text);
	}
	pthread_mutex_unlock(&c->lock);
	stop_all(c);
}

void fxi_chain_stop(fxi_chain *c)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n;

	/* Signal handlers may not touch a mutex: the watching thread does what remains. */
	atomic_store_explicit(&c->stop, true, memory_order_release);
	n = write(c->wake_fd, &one, sizeof one);
	(void)n; /* fails only where the counter is full, and then the reader is awake */
	errno = saved;
}

static void *watch(void *arg)
{
	fxi_chain *c = arg;
	uint64_t count;

	while (read(c->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
		;
	if (fxi_stopping(c))
		stop_all(c);
	return NULL;
}

/* ---- a gadget's thread ------------------------------------------------------------------------ */

/*
 * What a gadget's function came to. A failure that was explained but not returned was dealt with by the gadget: it
 * is shown, and must not lend its words to a later one.
 */
static int settle(fx_ctx *ctx, int status)
{
	if (status > 0)
		return fx_fail(ctx, FX_EINVAL, "returned %d, which is no status", status);
	if (status == FX_OK && ctx->err.status != FX_OK) {
		fx_error was = ctx->err;

		ctx->err = (fx_error){0};
		fx_warn(ctx, "went on after: %.900s", was.text);
	}
	return status;
}

static bool await_turn(fxi_chain *c, int64_t index)
{
	bool come;

	pthread_mutex_lock(&c->lock);
	while (c->turn != index && !fxi_stopping(c))
		pthread_cond_wait(&c->changed, &c->lock);
	come = !fxi_stopping(c);
	pthread_mutex_unlock(&c->lock);
	return come;
}

static void pass_turn(fxi_chain *c)
{
	pthread_mutex_lock(&c->lock);
	c->turn++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static bool is_stopping(const void *chain)
{
	return fxi_stopping(chain);
}

/* A gadget computes on the run's device where it can, else on the host. */
static int open_math(fx_ctx *ctx)
{
	const fxi_run_options *o = &ctx->chain->options;
	bool device = fxi_on_device(ctx->chain);
	int status;

	if (!device && !(ctx->gadget->places & FX_HOST))
		return fx_fail(ctx, FX_ENOTSUP, "works on a device only, and the backend is '%s'", o->backend);
	status = fx_math_new(device && !(ctx->gadget->places & FX_DEVICE) ? "host" : o->backend, o->n_threads, &ctx->err,
		&ctx->math);
	if (status != FX_OK)
		return status;
	snprintf(ctx->place, sizeof ctx->place, "%s", fx_math_on_host(ctx->math) ? "host" : o->backend);
	ctx->math->stopped = is_stopping;
	ctx->math->stopped_arg = ctx->chain;
	return FX_OK;
}

static int open_stage(fx_ctx *ctx)
{
	double start = fxi_now_s();
	int status = open_math(ctx);

	if (status != FX_OK)
		return status;
	ctx->opened = true;
	if (ctx->gadget->open) {
		ctx->opening = true;
		status = settle(ctx, ctx->gadget->open(ctx->state, ctx));
		ctx->opening = false;
	}
	ctx->open_s = fxi_now_s() - start;
	return status;
}

/* The message's arrays to where this gadget computes. */
static int to_its_place(fx_ctx *ctx, fx_msg **msg)
{
	bool on_host = fx_math_on_host(ctx->math);
	fx_math *math = ctx->math;
	int status = FX_OK;

	if (!fxi_on_device(ctx->chain))
		return FX_OK;
	if (on_host)
		status = fxi_context_device(ctx, &math);
	if (status == FX_OK)
		return fxi_msg_move(msg, on_host ? FX_HOST : FX_DEVICE, math);
	fx_drop(*msg);
	*msg = NULL;
	return status;
}

static int process_one(fx_ctx *ctx, fx_msg *msg)
{
	double start = fxi_now_s(), waited = ctx->waiting_s;
	int status;

	ctx->n_in++;
	status = to_its_place(ctx, &msg);
	if (status == FX_OK)
		status = settle(ctx, ctx->gadget->process(ctx->state, ctx, msg));
	ctx->busy_s += fxi_now_s() - start - (ctx->waiting_s - waited);
	return status;
}

static int flush(fx_ctx *ctx)
{
	double start = fxi_now_s(), waited = ctx->waiting_s;
	int status;

	if (!ctx->gadget->flush)
		return FX_OK;
	status = settle(ctx, ctx->gadget->flush(ctx->state, ctx));
	ctx->busy_s += fxi_now_s() - start - (ctx->waiting_s - waited);
	return status;
}

static int work(fx_ctx *ctx)
{
	/* The flag is asked each time: a gadget that left its loop early must not go on to flush half a result. */
	while (!fxi_stopping(ctx->chain)) {
		fx_msg *msg;
		int status = fxi_queue_get(ctx->in, &msg);

		if (status == FX_OK && !msg)
			return fxi_stopping(ctx->chain) ? FX_ECANCELED : flush(ctx);
		if (status == FX_OK)
			status = fx_msg_kind(msg) & ctx->gadget->takes ? process_one(ctx, msg) : fxi_context_pass(ctx, msg);
		if (status != FX_OK)
			return status;
	}
	return FX_ECANCELED;
}

static void close_stage(fx_ctx *ctx)
{
	if (ctx->opened && ctx->gadget->close)
		ctx->gadget->close(ctx->state);
	fx_math_free(ctx->device);
	fx_math_free(ctx->math);
	ctx->math = ctx->device = NULL;
}

static void *stage_main(void *arg)
{
	fx_ctx *ctx = arg;
	fxi_chain *c = ctx->chain;
	int status = FX_ECANCELED;

	fxi_context_enter(ctx);
	if (await_turn(c, ctx->index)) {
		status = open_stage(ctx);
		if (status == FX_OK) {
			pass_turn(c);
			status = work(ctx);
		}
	}
	/* Others learn of a failure before this one tidies up, and of the end after its memory is free. */
	if (status != FX_OK)
		fxi_chain_fail(c, ctx, status, ctx->err.text);
	close_stage(ctx);
	if (status == FX_OK && ctx->out)
		fxi_queue_close(ctx->out);
	pthread_mutex_lock(&c->lock);
	c->n_running--;
	if (status == FX_OK)
		c->n_completed++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- the caller's thread ---------------------------------------------------------------------- */

static void await_all_open(fxi_chain *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->turn < c->n_stages && !fxi_stopping(c))
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void await_all_ended(fxi_chain *c, fxi_feeder *f)
{
	pthread_mutex_lock(&c->lock);
	while (c->n_running > 0) {
		struct timespec until;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)(FXI_PROGRESS_S * 1e9);
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&c->changed, &c->lock, &until);
		pthread_mutex_unlock(&c->lock);
		fxi_feed_progress(c, f);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Threads of a run leave signals to the caller's: Ctrl-C must interrupt the read it waits in. */
static int start_thread(pthread_t *thread, void *(*body)(void *), void *arg, const char *name)
{
	sigset_t all, before;
	char short_name[16];
	int failed;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	failed = pthread_create(thread, NULL, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed) {
		snprintf(short_name, sizeof short_name, "%s", name);
		pthread_setname_np(*thread, short_name);
	}
	return failed;
}

static int make_queues(fxi_chain *c)
{
	int64_t bytes = c->options.queue_bytes > 0 ? c->options.queue_bytes : DEFAULT_QUEUE_BYTES;

	for (int64_t i = c->first; i < c->n_stages; i++) {
		c->stages[i].in = fxi_queue_new(bytes);
		if (!c->stages[i].in)
			return FX_ENOMEM;
		if (i > c->first)
			c->stages[i - 1].out = c->stages[i].in;
	}
	return FX_OK;
}

/* Starts every thread, feeds, and waits until all have ended, whatever happens. */
static void run_threads(fxi_chain *c, fxi_feeder *f, pthread_t *threads, pthread_t *watcher)
{
	const uint64_t one = 1;
	int64_t end = c->first; /* of those whose thread was started */
	int failed = start_thread(watcher, watch, c, "fx-watch");

	if (failed) {
		fxi_chain_fail(c, NULL, FX_ENOMEM, "cannot start a thread");
		return;
	}
	c->turn = c->first;
	c->n_running = c->n_stages - c->first;
	for (; end < c->n_stages && !failed; end += !failed)
		failed = start_thread(&threads[end], stage_main, &c->stages[end], c->stages[end].label);
	if (failed) {
		pthread_mutex_lock(&c->lock);
		c->n_running -= c->n_stages - end;
		pthread_mutex_unlock(&c->lock);
		fxi_chain_fail(c, NULL, FX_ENOMEM, "cannot start a thread for each gadget");
	}
	await_all_open(c);
	fxi_feed(c, f);
	await_all_ended(c, f);
	for (int64_t i = c->first; i < end; i++)
		pthread_join(threads[i], NULL);
	while (write(c->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	pthread_join(*watcher, NULL);
}

static int verdict(fxi_chain *c, fx_error *err)
{
	if (c->failure.status != FX_OK)
		return fx_error_set(err, c->failure.status, "%s", c->failure.text);
	if (c->n_completed < c->n_stages - c->first)
		return fx_error_set(err, FX_ECANCELED, "stopped before the end");
	return FX_OK;
}

/* Products and cache warn through the chain where nobody else listens to them. */
static void listen_to_services(fxi_chain *c, bool on)
{
	fxi_files *files = c->services.files;
	fxi_cache *cache = c->services.cache;

	if (files && files->warn == (on ? NULL : fxi_chain_warn)) {
		files->warn = on ? fxi_chain_warn : NULL;
		files->warn_arg = on ? c : NULL;
	}
	if (cache && cache->warn == (on ? NULL : fxi_chain_warn)) {
		cache->warn = on ? fxi_chain_warn : NULL;
		cache->warn_arg = on ? c : NULL;
	}
}

/* One note that names the idle gadgets; and a warning where the user set something of one. */
static void tell_idle(fxi_chain *c)
{
	char kinds[128], names[FX_ERROR_TEXT / 2], text[FX_ERROR_TEXT];
	size_t used = 0;

	if (c->first == 0)
		return;
	for (int64_t i = 0; i < c->first && used < sizeof names; i++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" :
			i + 1 < c->first ? ", " : " and ", c->stages[i].label);
	if (c->input_kinds == FX_SERIES)
		snprintf(kinds, sizeof kinds, "a series");
	else
		fxi_kinds_text(c->input_kinds, " and ", kinds, sizeof kinds);
	snprintf(text, sizeof text, "the input is already %s: %s %s idle", kinds, names, c->first == 1 ? "stands" : "stand");
	fxi_chain_log(c, FXI_INFO, NULL, text);
	for (int64_t i = 0; i < c->first; i++)
		if (c->stages[i].was_set)
			fxi_context_warn(&c->stages[i], "stands idle with this input, so that what --set says of it changes nothing");
}

int fxi_chain_run(fxi_chain *c, const fx_header *header, fxi_source *source, const fxi_services *services,
	const fxi_run_options *options, fx_error *err)
{
	fxi_feeder f = {.source = source};
	pthread_t *threads = fx_alloc(c->n_stages, sizeof *threads), watcher;

	if (c->ran || !threads) {
		fx_free(threads);
		return fx_error_set(err, c->ran ? FX_EINVAL : FX_ENOMEM,
			c->ran ? "a chain runs once: load the pipeline again" : "no memory to run the pipeline");
	}
	c->ran = true;
	c->header = header;
	c->source = source;
	if (services)
		c->services = *services;
	if (options)
		c->options = *options;
	listen_to_services(c, true);
	tell_idle(c);
	if (fxi_chain_choose(c) == FX_OK && make_queues(c) != FX_OK)
		fxi_chain_fail(c, NULL, FX_ENOMEM, "no memory for the queues");
	else if (!fxi_stopping(c) || c->failure.status == FX_OK)
		run_threads(c, &f, threads, &watcher);
	listen_to_services(c, false);
	for (int64_t i = 0; i < c->n_stages; i++) {
		fx_ctx *ctx = &c->stages[i];

		ctx->queue_peak_bytes = ctx->in ? fxi_queue_peak_bytes(ctx->in) : 0;
		fxi_queue_free(ctx->in);
		ctx->in = ctx->out = NULL;
		fxi_context_finish(ctx);
	}
	fx_free(threads);
	return verdict(c, err);
}

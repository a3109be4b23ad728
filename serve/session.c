/* SPDX-License-Identifier: MIT */
/*
 * session.c - see session.h: a connection from its first message to the last. However it ends, the client is read until it closes, is told
 * why, and gets its close message: it is never reset while it sends, and never waits for ever.
 */
#include "serve/session_parts.h"

#include "stream/queue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES ((int64_t)256 << 20)
#define IDLE_S 120
#define TOTAL_S (4 * 3600.0)
#define DRAIN_S 10
#define STOP_S 2     /* what a client gets to hear that the server stops */
#define TOO_LONG "the session took longer than it may"
#define LINGER_S 2   /* for the client to read its close message and hang up */

const char *fxi_session_end_name(int end)
{
	static const char *const names[] = {[FXI_SESSION_DONE] = "done", [FXI_SESSION_ASKED] = "asked",
		[FXI_SESSION_REFUSED] = "refused", [FXI_SESSION_FAILED] = "failed", [FXI_SESSION_CUT] = "cut",
		[FXI_SESSION_STOPPED] = "stopped"};

	return end >= FXI_SESSION_DONE && end <= FXI_SESSION_STOPPED ? names[end] : "unknown";
}

/* ---- telling --------------------------------------------------------------------------------- */

/* FIRE's texts begin with a severity word of eight characters; others' with one and a colon. */
static char *compose(const fxi_session *s, int level, const char *gadget, const char *text)
{
	const char *word = level == FXI_ERROR ? "ERROR" : level == FXI_WARNING ? "WARNING" : "INFO";
	char *line = NULL;
	int n;

	if (s->outcome->fire)
		n = asprintf(&line, "%-8s %s%s%s", word, gadget ? gadget : "", gadget ? ": " : "", text);
	else
		n = asprintf(&line, "%s: %s%s%s\n", word, gadget ? gadget : "", gadget ? ": " : "", text);
	return n < 0 ? NULL : line;
}

/* Behind the images that were given before it, where a chain runs; a session that was stopped drops those, and says why at once. */
static void tell(fxi_session *s, int level, const char *gadget, const char *text)
{
	bool queued = s->exit && !atomic_load(&s->stopped);
	char *line = compose(s, level, gadget, text);
	int status = FX_ENOMEM;

	if (!line)
		return;
	if (queued)
		status = fxi_wire_exit_put(s->exit, fx_msg_new_text(line), NULL);
	else
		status = fxi_wire_send_text(s->out, FXI_MRD_TEXT, line, s->outcome->fire, NULL);
	if (status == FX_OK && !queued)
		atomic_fetch_add(&s->n_texts, 1);
	free(line);
}

void fxi_session_log(void *arg, int level, const char *gadget, const char *text)
{
	fxi_session *s = arg;

	if (s->options->hooks.log)
		s->options->hooks.log(s->options->hooks.arg, level, gadget, text);
	if (level != FXI_WARNING)
		return;
	atomic_fetch_add(&s->n_warnings, 1);
	tell(s, level, gadget, text);
}

void fxi_session_say(fxi_session *s, int level, const char *gadget, const char *text)
{
	fxi_session_log(s, level, gadget, text);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_sent(void *arg, fx_msg *msg)
{
	fxi_session *s = arg;

	if (fx_msg_image(msg)) {
		if (atomic_load(&s->first_image_ns) < 0)
			atomic_store(&s->first_image_ns, now_ns() - atomic_load(&s->last_ns));
		atomic_fetch_add(&s->n_images, 1);
	} else if (fx_msg_text(msg)) {
		atomic_fetch_add(&s->n_texts, 1);
	}
}

/* ---- stopping -------------------------------------------------------------------------------- */

struct watch {
	fxi_session *session;
	int quit_fd, stop_fd;
	double deadline_s;
	pthread_t thread;
	bool running;
};

static void stop(fxi_session *s, const char *reason)
{
	pthread_mutex_lock(&s->lock);
	snprintf(s->stop_reason, sizeof s->stop_reason, "%s", reason);
	atomic_store(&s->stopped, true);
	fxi_wire_out_deadline(s->out, fxi_now_s() + STOP_S);
	if (s->chain)
		fxi_chain_stop(s->chain);
	if (s->exit)
		fxi_wire_exit_abort(s->exit);
	fxi_wire_interrupt(s->in);
	pthread_mutex_unlock(&s->lock);
}

static void *watch(void *arg)
{
	struct watch *w = arg;
	struct pollfd fds[2] = {{.fd = w->quit_fd, .events = POLLIN}, {.fd = w->stop_fd, .events = POLLIN}};

	for (;;) {
		double left = w->deadline_s - fxi_now_s();
		int n = left <= 0 ? 0 : poll(fds, 2, left > 1e5 ? 100000000 : (int)(left * 1e3) + 1);

		if (n > 0 && fds[0].revents)
			return NULL;
		if (n > 0 && fds[1].revents) {
			stop(w->session, "the server is being stopped");
			return NULL;
		}
		if (n == 0 && fxi_now_s() >= w->deadline_s) {
			stop(w->session, TOO_LONG);
			return NULL;
		}
	}
}

static bool start_watch(struct watch *w, fxi_session *s)
{
	sigset_t all, before;

	w->session = s;
	w->stop_fd = s->options->stop_fd;
	w->deadline_s = s->limits.deadline_s;
	w->quit_fd = eventfd(0, EFD_CLOEXEC);
	if (w->quit_fd < 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	w->running = pthread_create(&w->thread, NULL, watch, w) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return w->running;
}

static void end_watch(struct watch *w)
{
	const uint64_t one = 1;

	while (w->running && write(w->quit_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	if (w->running)
		pthread_join(w->thread, NULL);
	if (w->quit_fd >= 0)
		close(w->quit_fd);
}

/* ---- the scan -------------------------------------------------------------------------------- */

static int open_exit(fxi_session *s, fx_error *err)
{
	const fxi_wire_exit_options options = {.held_bytes = s->options->held_bytes, .other = s->options->files, .sent = on_sent,
		.sent_arg = s, .nul = s->outcome->fire};
	fxi_wire_exit *exit = NULL;
	int status = fxi_wire_exit_new(s->out, s->pipeline, &options, err, &exit);

	pthread_mutex_lock(&s->lock);
	s->exit = exit;
	if (exit && atomic_load(&s->stopped))
		fxi_wire_exit_abort(exit);
	pthread_mutex_unlock(&s->lock);
	return status;
}

static void tell_unkept(fxi_session *s)
{
	for (int64_t i = 0; i < s->pipeline->n_stages && !s->options->files; i++) {
		const char *gadget = s->pipeline->stages[i].gadget;

		if (strncmp(gadget, "write_", 6) == 0 && strcmp(gadget, "write_mrd") != 0)
			fxi_session_log(s, FXI_INFO, gadget, "what it writes is not kept in a session: images are sent to the client");
	}
}

/* Where the time went, for whoever looks into a log. */
static void tell_times(fxi_session *s)
{
	for (int64_t i = 0; i < fxi_chain_n_stages(s->chain); i++) {
		fxi_stage_report r;
		char text[160];

		fxi_chain_stage(s->chain, i, &r);
		snprintf(text, sizeof text, "took %lld messages, gave %lld, worked %.3f s, waited %.3f s for who comes behind", (long long)r.n_in,
			(long long)r.n_out, r.busy_s, r.waiting_s);
		if (!r.idle)
			fxi_session_log(s, FXI_DEBUG, r.gadget, text);
	}
}

static int run_chain(fxi_session *s, fx_error *err)
{
	const fxi_session_options *o = s->options;
	fxi_services services = {.cache = o->cache, .noise = o->noise, .log = fxi_session_log, .log_arg = s};
	fxi_run_options run = {.backend = o->backend, .n_threads = o->n_threads, .queue_bytes = o->queue_bytes,
		.output = fxi_wire_exit_output};
	fxi_source *source = NULL;
	int status = open_exit(s, err);

	if (status == FX_OK)
		status = fxi_session_source(s, err, &source);
	if (status != FX_OK)
		return status;
	services.files = fxi_wire_exit_files(s->exit);
	run.output_arg = s->exit;
	tell_unkept(s);
	status = fxi_chain_run(s->chain, s->scan, source, &services, &run, err);
	tell_times(s);
	s->outcome->n_dropped = fxi_wire_exit_dropped(s->exit);
	source->close(source);
	return status;
}

/* The client closed without data: what it asked for is still answered, or at least checked. */
static int answer(fxi_session *s, fx_error *err)
{
	char *id = NULL;
	int status;

	if (!s->config)
		return FX_OK;
	if (s->config_kind == FXI_CONFIG_SCRIPT && fxi_session_asks_noise(s->config, &id)) {
		snprintf(s->outcome->config, sizeof s->outcome->config, "(noise summary)");
		status = id ? fxi_session_tell_noise(s, id, err) : fx_error_set(err, FX_ENOMEM, "out of memory for an answer");
		free(id);
		return status;
	}
	return fxi_session_configure(s, err);
}

static bool asks_noise(fxi_session *s)
{
	char *id = NULL;
	bool asks = s->config_kind == FXI_CONFIG_SCRIPT && !s->first.data && fxi_session_asks_noise(s->config, &id);

	free(id);
	return asks;
}

/* From the first message to the last of the client, or to a failure. */
static int work(fxi_session *s, fx_error *err)
{
	fxi_session_outcome *o = s->outcome;
	bool run = false;
	int status = fxi_session_set_up(s, err, &run);

	o->end = FXI_SESSION_REFUSED;
	if (status != FX_OK) {
		int end = fxi_wire_end(s->in);

		if (end == FXI_WIRE_CUT || end == FXI_WIRE_SILENT)
			o->end = FXI_SESSION_CUT;
		/* Whoever connects and hangs up wants to see that somebody is there. */
		if (end == FXI_WIRE_CUT && !s->config && fxi_wire_in_bytes(s->in) == 0) {
			o->end = FXI_SESSION_ASKED;
			*err = (fx_error){0};
			return FX_OK;
		}
		return status;
	}
	if (!run || asks_noise(s)) {
		status = answer(s, err);
		if (status == FX_OK)
			o->end = FXI_SESSION_ASKED;
		return status;
	}
	status = fxi_session_configure(s, err);
	if (status != FX_OK)
		return status;
	o->end = FXI_SESSION_FAILED;
	status = run_chain(s, err);
	if (fxi_wire_end(s->in) == FXI_WIRE_CUT || fxi_wire_end(s->in) == FXI_WIRE_SILENT)
		o->end = FXI_SESSION_CUT;
	else if (status == FX_OK)
		o->end = FXI_SESSION_DONE;
	if (o->end == FXI_SESSION_CUT && status == FX_OK)
		status = fx_error_set(err, FX_EDATA, "the client went away, or fell silent, before its close message; what had come was "
			"reconstructed as far as it was whole");
	return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What failed, and how far the scan had come. */
static void explain(fxi_session *s, int status, const fx_error *err)
{
	fxi_session_outcome *o = s->outcome;
	const char *text = err->text[0] ? err->text : fx_status_text(status);

	/* The reader may meet the end of its time before the watch does. */
	if (atomic_load(&s->stopped) || fxi_now_s() >= s->limits.deadline_s) {
		o->end = FXI_SESSION_STOPPED;
		text = atomic_load(&s->stopped) ? s->stop_reason : TOO_LONG;
	}
	if (o->n_acquisitions > 0)
		snprintf(o->error, sizeof o->error, "%.800s (after %lld readouts; the last has scan_counter %u)", text,
			(long long)o->n_acquisitions, s->last_readout);
	else
		snprintf(o->error, sizeof o->error, "%.900s", text);
	o->status = status;
	if (s->options->hooks.log)
		s->options->hooks.log(s->options->hooks.arg, FXI_ERROR, NULL, o->error);
	tell(s, FXI_ERROR, NULL, o->error);
}

/* Hears the client out while images still go to it, then closes in order. */
static void finish(fxi_session *s)
{
	double quiet_s = atomic_load(&s->stopped) ? STOP_S : s->drain_s;

	if (!s->closed) {
		/* A client that sends on and on is not heard for longer than this. */
		fxi_wire_limits limits = {.deadline_s = fxi_now_s() + (atomic_load(&s->stopped) ? STOP_S : 60 * s->drain_s)};

		fxi_wire_resume(s->in, &limits);
		s->closed = fxi_wire_drain(s->in, quiet_s);
	}
	if (s->exit)
		fxi_wire_exit_finish(s->exit, NULL);
	fxi_wire_send_close(s->out, NULL);
	shutdown(s->fd, SHUT_WR);
	fxi_wire_resume(s->in, &(fxi_wire_limits){.deadline_s = fxi_now_s() + LINGER_S});
	fxi_wire_drain(s->in, LINGER_S);
	shutdown(s->fd, SHUT_RDWR);
}

static void report(fxi_session *s)
{
	fxi_session_outcome *o = s->outcome;
	double now = fxi_now_s();
	long long first = atomic_load(&s->first_image_ns);

	o->closed = s->closed;
	o->n_images = atomic_load(&s->n_images);
	o->n_texts = atomic_load(&s->n_texts);
	o->n_warnings = atomic_load(&s->n_warnings);
	o->bytes_in = fxi_wire_in_bytes(s->in);
	o->bytes_out = fxi_wire_out_bytes(s->out);
	o->seconds = now - s->started_s;
	o->scan_s = s->header_s > 0 ? now - s->header_s : 0;
	o->first_image_s = first >= 0 ? (double)first * 1e-9 : -1;
}

static void free_session(fxi_session *s)
{
	fxi_wire_exit_free(s->exit);
	fxi_chain_free(s->chain);
	fxi_pipeline_free(s->pipeline);
	fxi_wire_message_clear(&s->first);
	fx_header_free(s->scan);
	free(s->header_xml);
	free(s->config);
	free(s->parameters);
	fxi_wire_in_free(s->in);
	fxi_wire_out_free(s->out);
	pthread_mutex_destroy(&s->lock);
}

static double or_default(double value, double otherwise)
{
	return value > 0 ? value : otherwise;
}

int fxi_session_run(int fd, const fxi_session_options *options, fxi_session_outcome *outcome)
{
	fxi_session s = {.options = options, .outcome = outcome, .fd = fd, .peer = options->peer ? options->peer : "the client"};
	struct watch w = {.quit_fd = -1};
	fx_error err = {0};
	int status;

	*outcome = (fxi_session_outcome){.first_image_s = -1};
	s.started_s = fxi_now_s();
	s.drain_s = or_default(options->drain_s, DRAIN_S);
	s.limits = (fxi_wire_limits){.message_bytes = options->message_bytes > 0 ? options->message_bytes : MESSAGE_BYTES,
		.idle_s = or_default(options->idle_s, IDLE_S), .deadline_s = s.started_s + or_default(options->total_s, TOTAL_S)};
	pthread_mutex_init(&s.lock, NULL);
	atomic_init(&s.first_image_ns, -1);
	fxi_wire_prepare(fd);
	status = fxi_wire_in_new(fd, s.peer, NULL, 0, 0, &s.limits, &err, &s.in);
	if (status == FX_OK)
		status = fxi_wire_out_new(fd, s.peer, &s.limits, &err, &s.out);
	if (status == FX_OK && !start_watch(&w, &s))
		status = fx_error_set(&err, FX_ENOMEM, "no thread, or no file handle, for a session");
	if (status == FX_OK) {
		status = work(&s, &err);
		if (status != FX_OK)
			explain(&s, status, &err);
		finish(&s);
		report(&s);
	} else {
		snprintf(outcome->error, sizeof outcome->error, "%.900s", err.text);
		outcome->status = status;
		outcome->end = FXI_SESSION_FAILED;
		shutdown(fd, SHUT_RDWR);
	}
	end_watch(&w);
	free_session(&s);
	return outcome->status;
}

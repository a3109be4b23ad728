/* SPDX-License-Identifier: MIT */
/* supervisor.c - the poll loop: who has something to say, what has become due, and the way out. */
#include "supervisor_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 100
#define STOP_S 20.0    /* for sessions to tell their clients that the server goes down */

double fxi_clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* Signal handlers get no argument; a process has one supervisor. */
static int signal_pipe = -1;

static void on_signal(int number)
{
	unsigned char byte = (unsigned char)number;
	int saved = errno;
	ssize_t n = write(signal_pipe, &byte, 1);

	(void)n; /* a full pipe has enough to tell already */
	errno = saved;
}

/*
 * Handlers and a pipe, not a blocked mask and a signalfd: libraries that are linked (OpenBLAS) start threads before main, which block
 * nothing, and the kernel may give them the signal.
 */
static int open_signals(fxi_supervisor *s, fx_error *err)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return fx_error_set(err, FX_EIO, "cannot make a pipe: %s", strerror(errno));
	s->signals = ends[0];
	signal_pipe = ends[1];
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaction(numbers[i], &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	return FX_OK;
}

static void close_signals(fxi_supervisor *s)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	struct sigaction action = {.sa_handler = SIG_IGN};

	if (s->signals < 0)
		return;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		action.sa_handler = numbers[i] == SIGCHLD ? SIG_DFL : SIG_IGN;
		sigaction(numbers[i], &action, NULL);
	}
	close(s->signals);
	close(signal_pipe);
	signal_pipe = -1;
}

static int make_tables(fxi_supervisor *s, fx_error *err)
{
	const fxi_supervisor_options *o = s->options;

	/* besides sessions and warm ones, as many again that have had their session and are on their way out */
	s->n_workers = 2 * (o->n_sessions + o->n_warm);
	s->n_waiting = o->n_waiting;
	s->n_polled = 1 + FXI_LISTENERS + s->n_workers + s->n_waiting + FXI_WARDS;
	s->workers = calloc((size_t)s->n_workers, sizeof *s->workers);
	s->waiting = calloc((size_t)s->n_waiting, sizeof *s->waiting);
	s->polled = calloc((size_t)s->n_polled, sizeof *s->polled);
	if (!s->workers || !s->waiting || !s->polled)
		return fx_error_set(err, FX_ENOMEM, "no memory for a server of %d sessions", o->n_sessions);
	for (int i = 0; i < s->n_workers; i++)
		s->workers[i].link = s->workers[i].client = -1;
	for (int i = 0; i < s->n_waiting; i++)
		s->waiting[i].fd = -1;
	for (int i = 0; i < FXI_WARDS; i++)
		s->wards[i].fd = -1;
	return FX_OK;
}

static int open_audit(fxi_supervisor *s, fx_error *err)
{
	if (!s->options->audit_file)
		return FX_OK;
	s->audit = open(s->options->audit_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	return s->audit >= 0 ? FX_OK
		: fx_error_set(err, FX_EIO, "cannot write %s: %s", s->options->audit_file, strerror(errno));
}

static int begin(fxi_supervisor *s, fx_error *err)
{
	int status = open_signals(s, err);
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a shell's 1024 would do for the defaults only */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}

	fxi_notify_open(&s->notify);
	if (status == FX_OK)
		status = make_tables(s, err);
	if (status == FX_OK)
		status = open_audit(s, err);
	if (status == FX_OK && s->options->noise_folder)
		status = fxi_noise_files_open(s->options->noise_folder, &s->options->noise, err, &s->noise);
	return status == FX_OK ? fxi_listen(s, err) : status;
}

static void end(fxi_supervisor *s)
{
	fxi_listen_end(s);
	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];

		if (w->pid > 0)
			kill(w->pid, SIGKILL);
	}
	for (int i = 0; i < FXI_WARDS; i++)
		if (s->wards[i].fd >= 0)
			close(s->wards[i].fd);
	for (int i = 0; i < s->n_waiting; i++)
		if (s->waiting[i].fd >= 0)
			close(s->waiting[i].fd);
	for (int i = 0; i < s->n_workers; i++) {
		if (s->workers[i].link >= 0)
			close(s->workers[i].link);
		if (s->workers[i].client >= 0)
			close(s->workers[i].client);
	}
	close_signals(s);
	if (s->audit >= 0)
		close(s->audit);
	fxi_notify_close(&s->notify);
	fxi_noise_files_free(s->noise);
	free(s->workers);
	free(s->waiting);
	free(s->polled);
}

/* ---- what is due ----------------------------------------------------------------------------- */

static void drain(fxi_supervisor *s, const char *why)
{
	if (s->draining) { /* asked twice: now */
		s->drain_until = fxi_clock_s();
		return;
	}
	s->draining = true;
	s->drain_until = fxi_clock_s() + s->options->drain_s;
	fxi_log_say(s->log, FXI_INFO, 0, "%s: no new sessions; %d may take %.0f s to end", why, fxi_workers_count(s, FXI_WORKER_BUSY),
		s->options->drain_s);
	fxi_notify_send(&s->notify, "STOPPING=1\nSTATUS=draining");
	fxi_listen_end(s);
	fxi_workers_stop(s, false);
}

static void on_signals(fxi_supervisor *s)
{
	unsigned char number;

	while (read(s->signals, &number, 1) == 1) {
		if (number == SIGTERM || number == SIGINT)
			drain(s, number == SIGTERM ? "SIGTERM" : "SIGINT");
		else if (number == SIGHUP && !s->draining) {
			fxi_log_say(s->log, FXI_INFO, 0, "SIGHUP: workers that wait are replaced");
			fxi_workers_stop(s, false);
		}
	}
	fxi_workers_reap(s);
}

static void tell_manager(fxi_supervisor *s, double now)
{
	char text[160];

	if (s->notify.watchdog_s > 0 && now >= s->watchdog_at) {
		s->watchdog_at = now + s->notify.watchdog_s / 3;
		snprintf(text, sizeof text, "WATCHDOG=1\nSTATUS=%d of %d sessions, %d workers ready, %llu sessions so far",
			fxi_workers_count(s, FXI_WORKER_BUSY), s->options->n_sessions, fxi_workers_count(s, FXI_WORKER_IDLE),
			(unsigned long long)s->last_session);
		fxi_notify_send(&s->notify, text);
	}
	if (!s->ready && fxi_workers_count(s, FXI_WORKER_IDLE) > 0) {
		s->ready = true;
		fxi_notify_send(&s->notify, "READY=1");
		fxi_log_say(s->log, FXI_INFO, 0, "ready on port %d: %d sessions at once, %d workers kept warm", s->port, s->options->n_sessions,
			s->options->n_warm);
	}
}

/* True when nothing is left to wait for. */
static bool drained(fxi_supervisor *s, double now)
{
	int busy = fxi_workers_count(s, FXI_WORKER_BUSY);

	if (!s->draining)
		return false;
	if (busy > 0 && !s->stopping && now >= s->drain_until) {
		fxi_log_say(s->log, FXI_WARNING, 0, "%d sessions are stopped", busy);
		s->stopping = true;
		s->drain_until = now + STOP_S;
		fxi_workers_stop(s, true);
	} else if (busy > 0 && s->stopping && now >= s->drain_until)
		for (int i = 0; i < s->n_workers; i++)
			if (s->workers[i].state == FXI_WORKER_BUSY && s->workers[i].pid > 0)
				kill(s->workers[i].pid, SIGKILL);
	if (busy > 0 || fxi_workers_count(s, FXI_WORKER_ENDING) > 0)
		return false;
	return fxi_wards_count(s) == 0 || now >= s->drain_until + STOP_S;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int watch(fxi_supervisor *s, int n, int fd, short events)
{
	s->polled[n] = (struct pollfd){.fd = fd, .events = events};
	return n + 1;
}

/* Every table in full, each at a fixed place: poll passes over descriptors that are negative. */
static void watch_all(fxi_supervisor *s, double now)
{
	int n = watch(s, 0, s->signals, POLLIN);

	for (int i = 0; i < FXI_LISTENERS; i++)
		n = watch(s, n, i < s->n_listeners && now >= s->accept_after ? s->listeners[i] : -1, POLLIN);
	for (int i = 0; i < s->n_workers; i++)
		n = watch(s, n, s->workers[i].link, POLLIN);
	for (int i = 0; i < s->n_waiting; i++) /* one that spoke is watched for its going away only */
		n = watch(s, n, s->waiting[i].fd, s->waiting[i].spoke ? 0 : POLLIN);
	for (int i = 0; i < FXI_WARDS; i++)
		n = watch(s, n, s->wards[i].fd, POLLIN);
}

/* A descriptor may have been closed, and its number taken by another, while those in front of it were served: so it is compared. */
static void serve_all(fxi_supervisor *s)
{
	const struct pollfd *p = s->polled;

	if (p->revents)
		on_signals(s);
	p++;
	for (int i = 0; i < FXI_LISTENERS; i++, p++)
		if (p->revents && i < s->n_listeners && s->listeners[i] == p->fd)
			fxi_waiting_accept(s, p->fd);
	for (int i = 0; i < s->n_workers; i++, p++)
		if (p->revents && s->workers[i].link == p->fd)
			fxi_workers_event(s, &s->workers[i]);
	for (int i = 0; i < s->n_waiting; i++, p++)
		if (p->revents && s->waiting[i].fd == p->fd)
			fxi_waiting_event(s, &s->waiting[i]);
	for (int i = 0; i < FXI_WARDS; i++, p++)
		if (p->revents && s->wards[i].fd == p->fd)
			fxi_ward_event(s, &s->wards[i]);
}

static int loop(fxi_supervisor *s, fx_error *err)
{
	while (s->ready || s->failure.status == FX_OK) {
		double now = fxi_clock_s();

		fxi_workers_fill(s, now);
		fxi_workers_tend(s, now);
		fxi_waiting_tend(s, now);
		fxi_wards_tend(s, now);
		tell_manager(s, now);
		if (drained(s, now))
			return FX_OK;
		watch_all(s, now);
		if (poll(s->polled, (nfds_t)s->n_polled, TICK_MS) < 0 && errno != EINTR)
			return fx_error_set(err, FX_EIO, "cannot wait: %s", strerror(errno));
		serve_all(s);
	}
	return fx_error_set(err, s->failure.status, "%s", s->failure.text);
}

int fxi_supervise(const fxi_supervisor_options *options, fx_error *err)
{
	fxi_supervisor *s = calloc(1, sizeof *s);
	int status;

	if (!s)
		return fx_error_set(err, FX_ENOMEM, "no memory for the server");
	s->options = options;
	s->log = options->log;
	s->signals = s->audit = -1;
	s->gpu_bytes = options->gpu_bytes;
	status = begin(s, err);
	if (status == FX_OK)
		status = loop(s, err);
	fxi_log_say(s->log, FXI_INFO, 0, "ended after %llu sessions", (unsigned long long)s->last_session);
	end(s);
	free(s);
	return status;
}

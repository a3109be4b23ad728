/* SPDX-License-Identifier: MIT */
/*
 * workers.c - processes, one a session: started with posix_spawn from the program that runs (so that a package that is being upgraded
 * changes nothing under a server), kept ready, given a client, heard to the end, collected.
 */
#include "supervisor_parts.h"

#include "noise_blob.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_S 60.0    /* a driver that wakes a GPU takes seconds */
#define END_S 10.0      /* between a session's outcome and the process's end */
#define GRACE_S 10.0    /* beyond a session's own limits of time */
#define RETRY_S 0.2     /* doubled for each worker that does not start, up to RETRY_MAX_S */
#define RETRY_MAX_S 30.0

extern char **environ;

int fxi_workers_count(const fxi_supervisor *s, int state)
{
	int n = 0;

	for (int i = 0; i < s->n_workers; i++)
		n += s->workers[i].state == state;
	return n;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* A child with the default signals, nothing on stdin, the log on stderr, and the link. All else is close-on-exec. */
static int spawn(char *const *command, int link, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, link, FXI_LINK_FD);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	failed = posix_spawn(pid, "/proc/self/exe", &files, &how, command, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	return failed;
}

static void start_failed(fxi_supervisor *s, const char *why)
{
	double wait_s = RETRY_S;

	for (int i = 0; i < s->spawn_failures && wait_s < RETRY_MAX_S; i++)
		wait_s *= 2;
	s->spawn_failures++;
	s->spawn_after = fxi_clock_s() + (wait_s < RETRY_MAX_S ? wait_s : RETRY_MAX_S);
	if (s->ready)
		fxi_log_say(s->log, FXI_ERROR, 0, "a worker did not start: %s; the next attempt in %.1f s", why, s->spawn_after - fxi_clock_s());
	else
		fx_error_set(&s->failure, FX_EINVAL, "no worker starts: %s", why);
}

static void start(fxi_supervisor *s, fxi_worker *w)
{
	int ends[2], failed;
	fx_error err = {0};

	if (fxi_link_pair(ends, &err) != FX_OK) {
		start_failed(s, err.text);
		return;
	}
	/* dup2 onto itself would leave close-on-exec set: the child's end must not be FXI_LINK_FD already */
	if (ends[1] == FXI_LINK_FD) {
		int other = fcntl(ends[1], F_DUPFD_CLOEXEC, FXI_LINK_FD + 1);

		close(ends[1]);
		ends[1] = other;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*w = (fxi_worker){.link = ends[0], .client = -1, .since = fxi_clock_s()};
	failed = spawn(s->options->worker_command, ends[1], &w->pid);
	close(ends[1]);
	if (failed) {
		close(w->link);
		*w = (fxi_worker){.link = -1, .client = -1};
		start_failed(s, strerror(failed));
		return;
	}
	w->state = FXI_WORKER_STARTING;
}

void fxi_workers_fill(fxi_supervisor *s, double now)
{
	int kept = fxi_workers_count(s, FXI_WORKER_STARTING) + fxi_workers_count(s, FXI_WORKER_IDLE);

	if (s->draining)
		return;
	for (int i = 0; i < s->n_workers && kept < s->options->n_warm && now >= s->spawn_after; i++) {
		if (s->workers[i].state != FXI_WORKER_NONE)
			continue;
		start(s, &s->workers[i]);
		kept++;
	}
}

/* ---- a session ------------------------------------------------------------------------------- */

bool fxi_workers_assign(fxi_supervisor *s, fxi_waiting *c)
{
	fxi_link_message m = {.kind = FXI_LINK_START};

	if (fxi_workers_count(s, FXI_WORKER_BUSY) >= s->options->n_sessions)
		return false;
	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];

		if (w->state != FXI_WORKER_IDLE || w->link < 0)
			continue;
		m.u.start.session = s->last_session + 1;
		snprintf(m.u.start.peer, sizeof m.u.start.peer, "%s", c->peer);
		fxi_log_say(s->log, FXI_INFO, m.u.start.session, "begun by %s", c->peer); /* before the worker says anything */
		if (!fxi_link_send(w->link, &m, c->fd))
			continue; /* it died while it was idle: it is collected, and another takes its place */
		w->session = ++s->last_session;
		w->state = FXI_WORKER_BUSY;
		w->since = fxi_clock_s();
		w->client = c->fd;
		memcpy(w->peer, c->peer, sizeof w->peer);
		c->fd = -1;
		return true;
	}
	return false;
}

static void end_session(fxi_supervisor *s, fxi_worker *w)
{
	fxi_admission_release(s, w);
	if (w->client >= 0)
		close(w->client);
	w->client = -1;
}

static void on_ready(fxi_supervisor *s, fxi_worker *w, const fxi_link_gpus *gpus)
{
	w->state = FXI_WORKER_IDLE;
	w->since = fxi_clock_s();
	s->spawn_failures = 0;
	if (s->options->gpu_bytes == 0 && s->gpu_bytes == 0)
		for (int i = 0; i < gpus->n; i++) /* sessions of a site that says nothing share its first GPU, but for a tenth */
			s->gpu_bytes = i == 0 ? gpus->list[i].memory_bytes / 10 * 9 : s->gpu_bytes;
}

static void answer_noise(fxi_worker *w, int status, const char *text, int fd)
{
	fxi_link_message m = {.kind = FXI_LINK_NOISE, .status = status};

	snprintf(m.u.text, sizeof m.u.text, "%s", text);
	fxi_link_send(w->link, &m, fd);
}

static void on_noise_get(fxi_supervisor *s, fxi_worker *w, const char *id)
{
	fx_noise noise = {0};
	fx_error err = {0};
	int blob = -1, status = s->noise ? fxi_noise_files_get(s->noise, id, &err, &noise) : FX_OK;

	if (status == FX_EDATA) { /* damaged, and removed: as if there were none */
		fxi_log_say(s->log, FXI_WARNING, w->session, "%s", err.text);
		status = FX_OK;
	}
	if (status == FX_OK && noise.covariance)
		status = fxi_noise_blob_write(&noise, &err, &blob);
	answer_noise(w, status, err.text, blob);
	if (blob >= 0)
		close(blob);
	fx_noise_clear(&noise);
}

/* What cannot be kept is a warning here: the scan that measured it has its images all the same. */
static void on_noise_put(fxi_supervisor *s, fxi_worker *w, const char *id, int fd)
{
	fx_noise noise = {0};
	fx_error err = {0};
	int status = fd < 0 ? fx_error_set(&err, FX_EDATA, "no noise came") : fxi_noise_blob_read(fd, &err, &noise);

	if (status == FX_OK && s->noise)
		status = fxi_noise_files_put(s->noise, id, &noise, &err);
	if (status != FX_OK)
		fxi_log_say(s->log, FXI_WARNING, w->session, "noise of measurement '%s' is not kept: %s", id, err.text);
	else if (s->noise)
		fxi_log_say(s->log, FXI_INFO, w->session, "noise of measurement '%s' is kept: %lld coils, %lld samples", id,
			(long long)noise.covariance->dims[0], (long long)noise.n_samples);
	fx_noise_clear(&noise);
	answer_noise(w, FX_OK, "", -1);
}

static void on_outcome(fxi_supervisor *s, fxi_worker *w, const fxi_session_outcome *outcome)
{
	fxi_audit(s, w, outcome, NULL);
	end_session(s, w);
	w->state = FXI_WORKER_ENDING;
	w->since = fxi_clock_s();
}

/* What does not fit a worker's state comes from one that is damaged: it is not heeded. */
static void on_message(fxi_supervisor *s, fxi_worker *w, const fxi_link_message *m, int fd)
{
	if (m->kind == FXI_LINK_READY && w->state == FXI_WORKER_STARTING)
		on_ready(s, w, &m->u.gpus);
	else if (m->kind == FXI_LINK_CRASH) {
		w->crash_signal = m->u.crash.signal;
		memcpy(w->crash_thread, m->u.crash.thread, sizeof w->crash_thread);
	} else if (w->state == FXI_WORKER_BUSY) {
		if (m->kind == FXI_LINK_ADMIT)
			fxi_admission_ask(s, w, m->u.ask.host_bytes, m->u.ask.gpu_bytes);
		else if (m->kind == FXI_LINK_NOISE_GET)
			on_noise_get(s, w, m->u.text);
		else if (m->kind == FXI_LINK_NOISE_PUT)
			on_noise_put(s, w, m->u.text, fd);
		else if (m->kind == FXI_LINK_OUTCOME)
			on_outcome(s, w, &m->u.outcome);
	}
	if (fd >= 0)
		close(fd);
}

static void end_now(fxi_worker *w)
{
	if (!w->killed && w->pid > 0)
		kill(w->pid, SIGKILL);
	w->killed = true;
}

void fxi_workers_event(fxi_supervisor *s, fxi_worker *w)
{
	fxi_link_message m;
	int fd, got;

	while (w->link >= 0 && (got = fxi_link_receive(w->link, &m, &fd)) != 0) {
		if (got > 0) {
			on_message(s, w, &m, fd);
			continue;
		}
		close(w->link);
		w->link = -1;
		if (w->state != FXI_WORKER_ENDING)
			end_now(w); /* it ended, or talks nonsense; either way it is collected soon */
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static void say_how(const fxi_worker *w, int how, char *text, size_t size)
{
	int number = w->crash_signal ? w->crash_signal : WIFSIGNALED(how) ? WTERMSIG(how) : 0;

	if (w->too_long)
		snprintf(text, size, "the session took longer than this server allows, and was ended");
	else if (w->crash_signal && *w->crash_thread)
		snprintf(text, size, "the reconstruction crashed in '%s' (signal %d, %s); the server goes on", w->crash_thread, number,
			strsignal(number));
	else if (number)
		snprintf(text, size, "the reconstruction's process was ended by signal %d (%s); the server goes on", number, strsignal(number));
	else
		snprintf(text, size, "the reconstruction's process ended with status %d before its session did; the server goes on",
			WEXITSTATUS(how));
}

static void collected(fxi_supervisor *s, fxi_worker *w, int how)
{
	char text[FX_ERROR_TEXT];

	fxi_workers_event(s, w); /* its last words */
	if (w->state == FXI_WORKER_BUSY) {
		say_how(w, how, text, sizeof text);
		fxi_audit(s, w, NULL, text);
		fxi_ward_take(s, w->client, w->session, true, text);
		w->client = -1;
		end_session(s, w);
	} else if (w->state == FXI_WORKER_STARTING && !s->draining) {
		snprintf(text, sizeof text, WIFSIGNALED(how) ? "it was ended by signal %d" : "it ended with status %d",
			WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
		start_failed(s, text);
	} else if (w->state == FXI_WORKER_IDLE && !s->draining && !w->told_stop)
		fxi_log_say(s->log, FXI_WARNING, 0, "an idle worker ended; another takes its place");
	if (w->link >= 0)
		close(w->link);
	*w = (fxi_worker){.link = -1, .client = -1};
}

void fxi_workers_reap(fxi_supervisor *s)
{
	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];
		int how;

		if (w->pid > 0 && waitpid(w->pid, &how, WNOHANG) == w->pid)
			collected(s, w, how);
	}
}

void fxi_workers_tend(fxi_supervisor *s, double now)
{
	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];
		double age = now - w->since;

		if (w->state == FXI_WORKER_BUSY && !w->killed && age > s->options->session_s + GRACE_S) {
			w->too_long = true;
			end_now(w);
		} else if ((w->state == FXI_WORKER_STARTING && age > START_S) || (w->state == FXI_WORKER_ENDING && age > END_S))
			end_now(w);
	}
	fxi_admission_tend(s, now);
}

void fxi_workers_stop(fxi_supervisor *s, bool busy_too)
{
	fxi_link_message m = {.kind = FXI_LINK_STOP};

	for (int i = 0; i < s->n_workers; i++) {
		fxi_worker *w = &s->workers[i];

		if (w->state == FXI_WORKER_NONE || w->told_stop || (w->state == FXI_WORKER_BUSY && !busy_too))
			continue;
		w->told_stop = true;
		if (w->state == FXI_WORKER_BUSY)
			fxi_link_send(w->link, &m, -1);
		else if (w->link >= 0)
			shutdown(w->link, SHUT_WR); /* an idle one ends when its link does */
	}
}

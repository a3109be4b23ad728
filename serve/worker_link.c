/* SPDX-License-Identifier: MIT */
/* worker_link.c - the listening thread, questions and answers, kept noise over the link, and a last word before a crash. */
#include "worker_link.h"

#include "noise_blob.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the server is gone the session may tell its client, and no more. */
#define ORPHAN_S 15

static void stop_session(const fxi_worker_link *w)
{
	const uint64_t one = 1;
	ssize_t n = write(w->stop_fd, &one, sizeof one);

	(void)n; /* fails only where the counter is full, so that it is readable anyhow */
}

static void take_answer(fxi_worker_link *w, const fxi_link_message *m, int fd)
{
	pthread_mutex_lock(&w->lock);
	if (w->has_answer && w->answer_fd >= 0)
		close(w->answer_fd);
	w->answer = *m;
	w->answer_fd = fd;
	w->has_answer = true;
	pthread_cond_broadcast(&w->answered);
	pthread_mutex_unlock(&w->lock);
}

/* An orphan ends: the client is told by the session, and a gadget that hangs does not keep the process. */
static void orphaned(fxi_worker_link *w)
{
	pthread_mutex_lock(&w->lock);
	w->gone = true;
	pthread_cond_broadcast(&w->answered);
	pthread_mutex_unlock(&w->lock);
	stop_session(w);
	alarm(ORPHAN_S); /* SIGALRM ends the process */
}

static void *listen_to(void *arg)
{
	fxi_worker_link *w = arg;
	fxi_link_message m;
	int fd, got;

	while ((got = fxi_link_receive(w->fd, &m, &fd)) > 0) {
		if (m.kind == FXI_LINK_STOP)
			stop_session(w);
		else if (m.kind == FXI_LINK_GRANTED || m.kind == FXI_LINK_REFUSED || m.kind == FXI_LINK_NOISE)
			take_answer(w, &m, fd);
		else if (fd >= 0)
			close(fd);
	}
	orphaned(w);
	return NULL;
}

int fxi_worker_link_ask(fxi_worker_link *w, fxi_link_message *m, int with_fd, int *fd, fx_error *err)
{
	int status = FX_OK;

	*fd = -1;
	pthread_mutex_lock(&w->asking);
	pthread_mutex_lock(&w->lock);
	w->has_answer = false;
	pthread_mutex_unlock(&w->lock);
	if (!fxi_link_send(w->fd, m, with_fd))
		status = FX_EIO;
	pthread_mutex_lock(&w->lock);
	while (status == FX_OK && !w->has_answer && !w->gone)
		pthread_cond_wait(&w->answered, &w->lock);
	if (status == FX_OK && w->has_answer) {
		*m = w->answer;
		*fd = w->answer_fd;
		w->has_answer = false;
	} else
		status = fx_error_set(err, FX_EIO, "the server is gone");
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->asking);
	return status;
}

/* ---- noise ----------------------------------------------------------------------------------- */

static fxi_worker_link *link_of(fxi_noise_store *store)
{
	return (fxi_worker_link *)(void *)((char *)store - offsetof(fxi_worker_link, noise));
}

static int ask_noise(fxi_noise_store *self, int kind, const char *id, int with_fd, int *fd, fx_error *err)
{
	fxi_link_message m = {.kind = kind};
	int status;

	if (strlen(id) >= sizeof m.u.text)
		return fx_error_set(err, FX_EINVAL, "a measurement id of %zu bytes", strlen(id));
	strcpy(m.u.text, id);
	status = fxi_worker_link_ask(link_of(self), &m, with_fd, fd, err);
	if (status != FX_OK || m.status == FX_OK)
		return status;
	if (*fd >= 0)
		close(*fd);
	return fx_error_set(err, m.status, "%s", m.u.text);
}

static int noise_get(fxi_noise_store *self, const char *id, fx_noise *out, fx_error *err)
{
	int fd, status = ask_noise(self, FXI_LINK_NOISE_GET, id, -1, &fd, err);

	*out = (fx_noise){0};
	if (status != FX_OK || fd < 0)
		return status;
	status = fxi_noise_blob_read(fd, err, out);
	close(fd);
	return status;
}

static int noise_put(fxi_noise_store *self, const char *id, const fx_noise *noise, fx_error *err)
{
	int blob, none = -1, status = fxi_noise_blob_write(noise, err, &blob);

	if (status != FX_OK)
		return status;
	status = ask_noise(self, FXI_LINK_NOISE_PUT, id, blob, &none, err);
	close(blob);
	if (none >= 0)
		close(none);
	return status;
}

int fxi_worker_link_open(fxi_worker_link *w, int fd, fx_error *err)
{
	sigset_t all, before;
	int failed;

	*w = (fxi_worker_link){.fd = fd, .answer_fd = -1, .noise = {.get = noise_get, .put = noise_put}};
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->stop_fd < 0)
		return fx_error_set(err, FX_EIO, "cannot make an eventfd: %s", strerror(errno));
	pthread_mutex_init(&w->asking, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->answered, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	failed = pthread_create(&w->listener, NULL, listen_to, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return fx_error_set(err, FX_ENOMEM, "cannot start a thread that listens to the server");
	pthread_setname_np(w->listener, "fx-link");
	pthread_detach(w->listener); /* it listens for as long as the process lives: nobody waits for its end */
	return FX_OK;
}

/* ---- the last word --------------------------------------------------------------------------- */

/* Signal handlers get no argument; a process has one link. */
static int crash_link = -1;

/* Only what is safe in a handler. The default action follows: the exit status tells the signal, and a core is dumped where allowed. */
static void on_crash(int number)
{
	static fxi_link_message m;

	m.kind = FXI_LINK_CRASH;
	m.u.crash.signal = number;
	prctl(PR_GET_NAME, m.u.crash.thread);
	if (send(crash_link, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0; /* the supervisor learns of the signal from the exit status */
	raise(number);
}

void fxi_worker_link_catch_crashes(const fxi_worker_link *w)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

	crash_link = w->fd;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sigaction(numbers[i], &action, NULL);
}

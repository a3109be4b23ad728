/* SPDX-License-Identifier: MIT */
/*
 * waiting.c - from the listening socket to a worker. A connection that says nothing takes no worker: half-open ones, port scanners and
 * monitors cost a descriptor for a while, and where the table is full the longest silent one makes room.
 */
#include "supervisor_parts.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64
#define RETRY_S 1.0
#define AT_ONCE 16 /* connections accepted before others have their turn */

/* ---- listening ------------------------------------------------------------------------------- */

static void show_address(const struct sockaddr *address, socklen_t length, char *text, size_t size)
{
	char host[80], port[16];

	if (getnameinfo(address, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(text, size, "somebody");
	else
		snprintf(text, size, address->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int listen_on(fxi_supervisor *s, const struct addrinfo *a)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof bound;
	const int yes = 1;
	char shown[FXI_PEER];
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* a restart need not wait for old connections */
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
	if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0 ||
		getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
		int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port);
	show_address((struct sockaddr *)&bound, length, shown, sizeof shown);
	fxi_log_say(s->log, FXI_INFO, 0, "listening on %s", shown);
	s->listeners[s->n_listeners++] = fd;
	return 0;
}

static int listen_address(fxi_supervisor *s, const char *name, fx_error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char port[16];
	int failed, n = 0, why = 0;

	snprintf(port, sizeof port, "%d", s->port); /* the second address of a free port takes the first one's */
	failed = getaddrinfo(strcmp(name, "*") == 0 ? NULL : name, port, &hints, &found);
	if (failed)
		return fx_error_set(err, FX_EIO, "cannot listen on '%.200s': %s", name, gai_strerror(failed));
	for (const struct addrinfo *a = found; a && s->n_listeners < FXI_LISTENERS; a = a->ai_next) {
		if (listen_on(s, a) == 0)
			n++;
		else
			why = errno;
	}
	freeaddrinfo(found);
	if (n == 0)
		return fx_error_set(err, FX_EIO, "cannot listen on '%.200s', port %d: %s", name, s->port, strerror(why));
	return FX_OK;
}

int fxi_listen(fxi_supervisor *s, fx_error *err)
{
	int status = FX_OK;

	s->port = s->options->port;
	for (const char *const *a = s->options->addresses; *a && status == FX_OK; a++)
		status = listen_address(s, *a, err);
	return status;
}

void fxi_listen_end(fxi_supervisor *s)
{
	for (int i = 0; i < s->n_listeners; i++)
		close(s->listeners[i]);
	s->n_listeners = 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void let_go(fxi_waiting *w)
{
	close(w->fd);
	w->fd = -1;
}

static void refuse(fxi_supervisor *s, fxi_waiting *w, const char *why)
{
	fxi_log_say(s->log, FXI_WARNING, 0, "%s was told: %s", w->peer, why);
	fxi_ward_take(s, w->fd, 0, true, why);
	w->fd = -1;
}

void fxi_waiting_event(fxi_supervisor *s, fxi_waiting *w)
{
	char byte;
	ssize_t n = recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		fxi_log_say(s->log, FXI_DEBUG, 0, "%s went away before it was served", w->peer);
		let_go(w);
	} else if (n > 0 && !w->spoke) {
		w->spoke = true;
		w->since = fxi_clock_s();
	}
}

/* A free place; where there is none, that of the longest silent connection. NULL where all have spoken. */
static fxi_waiting *place(fxi_supervisor *s)
{
	fxi_waiting *silent = NULL;

	for (int i = 0; i < s->n_waiting; i++) {
		fxi_waiting *w = &s->waiting[i];

		if (w->fd >= 0 && !w->spoke) /* what it said since the last poll counts */
			fxi_waiting_event(s, w);
		if (w->fd < 0)
			return w;
		if (!w->spoke && (!silent || w->since < silent->since))
			silent = w;
	}
	if (silent) {
		fxi_log_say(s->log, FXI_INFO, 0, "%s said nothing and made room for another", silent->peer);
		let_go(silent);
	}
	return silent;
}

static bool accept_one(fxi_supervisor *s, int listener)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	/* the worker's descriptor blocks: wire reads with its own limits of time; here MSG_DONTWAIT does it */
	int fd = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
	fxi_waiting extra = {.fd = fd}, *w;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			fxi_log_say(s->log, FXI_ERROR, 0, "cannot accept a connection: %s; the next attempt in %.0f s", strerror(errno), RETRY_S);
			s->accept_after = fxi_clock_s() + RETRY_S;
		}
		return false;
	}
	show_address((struct sockaddr *)&address, length, extra.peer, sizeof extra.peer);
	extra.since = fxi_clock_s();
	w = place(s);
	if (!w) {
		refuse(s, &extra, "the server is busy: too many clients wait already");
		return true;
	}
	*w = extra;
	return true;
}

void fxi_waiting_accept(fxi_supervisor *s, int listener)
{
	for (int i = 0; i < AT_ONCE && accept_one(s, listener); i++)
		;
}

/* Who spoke first is served first. */
static fxi_waiting *next_in_line(const fxi_supervisor *s)
{
	fxi_waiting *first = NULL;

	for (int i = 0; i < s->n_waiting; i++) {
		fxi_waiting *w = &s->waiting[i];

		if (w->fd >= 0 && w->spoke && (!first || w->since < first->since))
			first = w;
	}
	return first;
}

void fxi_waiting_tend(fxi_supervisor *s, double now)
{
	fxi_waiting *w;

	while ((w = next_in_line(s)) && !s->draining && fxi_workers_assign(s, w))
		;
	for (int i = 0; i < s->n_waiting; i++) {
		w = &s->waiting[i];
		if (w->fd < 0)
			continue;
		if (s->draining)
			refuse(s, w, "the server is shutting down");
		else if (!w->spoke && now - w->since >= s->options->greet_s) {
			fxi_log_say(s->log, FXI_INFO, 0, "%s said nothing for %.0f s", w->peer, s->options->greet_s);
			let_go(w);
		} else if (w->spoke && now - w->since >= s->options->wait_s)
			refuse(s, w, "the server is busy: all its sessions are taken; try again when one has ended");
	}
}

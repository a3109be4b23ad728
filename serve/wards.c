/* SPDX-License-Identifier: MIT */
/*
 * wards.c - clients whose session is gone, or never was. Closing a socket while its other side still sends resets the connection, and
 * the explanation on its way is lost; so the client is heard until its close message, told, and heard again until it has
 * gone. Where in its stream the client is nobody knows any more: its close message is taken to be the two bytes 4, 0 with silence
 * behind them. All of it is bounded in time, and what comes is dropped: a ward costs a descriptor and no memory.
 */
#include "supervisor_parts.h"

#include "io/mrd_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLOSE_SILENCE_S 0.1  /* behind what looks like a close message */
#define SILENCE_S 1.0        /* a client that sends nothing waits for us */
#define LINGER_S 10.0        /* for a client to go, once it was told */
#define PIECE 65536
#define ROUNDS 64            /* pieces at one go: 4 MiB, then others have their turn */

static void let_go(fxi_ward *w)
{
	close(w->fd);
	w->fd = -1;
}

/* TEXT and CLOSE in one piece of at most 1 KiB, which fits into any socket's buffer; where it does not, nobody reads there. */
static void tell(fxi_supervisor *s, fxi_ward *w, double now)
{
	unsigned char out[6 + FX_ERROR_TEXT + 2];
	size_t n = strlen(w->reason), at = 6 + n;

	out[0] = FXI_MRD_TEXT;
	out[1] = 0;
	for (int i = 0; i < 4; i++)
		out[2 + i] = (unsigned char)(n >> (8 * i));
	memcpy(out + 6, w->reason, n);
	out[at] = FXI_MRD_CLOSE;
	out[at + 1] = 0;
	if (send(w->fd, out, at + 2, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)(at + 2)) {
		fxi_log_say(s->log, FXI_INFO, w->session, "the client could not be told: it is gone, or does not read");
		let_go(w);
		return;
	}
	shutdown(w->fd, SHUT_WR);
	w->told = true;
	w->quiet_since = now;
	w->deadline = now + s->options->session_s;
}

void fxi_ward_take(fxi_supervisor *s, int fd, uint64_t session, bool patient, const char *reason)
{
	double now = fxi_clock_s();

	for (int i = 0; i < FXI_WARDS; i++) {
		fxi_ward *w = &s->wards[i];

		if (w->fd >= 0)
			continue;
		*w = (fxi_ward){.fd = fd, .session = session, .quiet_since = now, .deadline = now + s->options->client_drain_s};
		snprintf(w->reason, sizeof w->reason, "ERROR: %s\n", reason); /* as sessions say it */
		if (!patient)
			tell(s, w, now);
		return;
	}
	close(fd); /* a flood of them: no more than this is kept */
}

void fxi_ward_event(fxi_supervisor *s, fxi_ward *w)
{
	static unsigned char piece[PIECE]; /* dropped unread; one thread runs here */
	double now = fxi_clock_s();

	for (int i = 0; i < ROUNDS; i++) {
		ssize_t n = recv(w->fd, piece, sizeof piece, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) { /* it has gone, or has said all that it had to say */
			if (n == 0 && !w->told)
				tell(s, w, now);
			if (w->fd >= 0)
				let_go(w);
			return;
		}
		if (n > 1)
			w->tail[0] = piece[n - 2];
		else
			w->tail[0] = w->tail[1];
		w->tail[1] = piece[n - 1];
		w->quiet_since = now;
	}
}

void fxi_wards_tend(fxi_supervisor *s, double now)
{
	for (int i = 0; i < FXI_WARDS; i++) {
		fxi_ward *w = &s->wards[i];
		bool closed = w->tail[0] == FXI_MRD_CLOSE && w->tail[1] == 0;

		if (w->fd < 0)
			continue;
		if (w->told) {
			/* as long as it sends it is heard: a reset would take our words from it */
			if (now - w->quiet_since >= LINGER_S || now >= w->deadline)
				let_go(w);
		} else if (now - w->quiet_since >= (closed ? CLOSE_SILENCE_S : SILENCE_S) || now >= w->deadline)
			tell(s, w, now);
	}
}

int fxi_wards_count(const fxi_supervisor *s)
{
	int n = 0;

	for (int i = 0; i < FXI_WARDS; i++)
		n += s->wards[i].fd >= 0;
	return n;
}

/* SPDX-License-Identifier: MIT */
/* wire_out.c - messages onto a descriptor: each one writev, under one lock, waiting no longer than the limits say. */
#include "wire.h"

#include "../stream/queue.h"
#include "wire_pieces.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLICE_S 0.25   /* a deadline that is set while a send waits is seen as soon */

struct fxi_wire_out {
	int fd;
	bool socket;
	char *name;
	fxi_wire_limits limits;
	_Atomic double deadline_s;
	pthread_mutex_t lock;   /* guards what follows */
	fx_error failure;       /* the first: a stream that broke inside a message takes no more */
	int64_t bytes;
};

int fxi_wire_out_new(int fd, const char *name, const fxi_wire_limits *limits, fx_error *err, fxi_wire_out **out)
{
	fxi_wire_out *o = calloc(1, sizeof *o);
	struct stat s;

	*out = NULL;
	if (!o || !(o->name = strdup(name))) {
		free(o);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", name);
	}
	o->fd = fd;
	o->socket = fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
	if (limits) {
		o->limits = *limits;
		atomic_init(&o->deadline_s, limits->deadline_s);
	}
	pthread_mutex_init(&o->lock, NULL);
	*out = o;
	return FX_OK;
}

void fxi_wire_out_free(fxi_wire_out *o)
{
	if (!o)
		return;
	pthread_mutex_destroy(&o->lock);
	free(o->name);
	free(o);
}

void fxi_wire_out_deadline(fxi_wire_out *o, double deadline_s)
{
	atomic_store(&o->deadline_s, deadline_s);
}

void fxi_wire_prepare(int fd)
{
	const int on = 1;

	/* Fails on what is no TCP socket, which needs neither. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static int await(const fxi_wire_out *o, double start, fx_error *err)
{
	double now = fxi_now_s(), until = o->limits.idle_s > 0 ? start + o->limits.idle_s : 0, deadline = atomic_load(&o->deadline_s);
	struct pollfd fd = {.fd = o->fd, .events = POLLOUT};

	if (deadline > 0 && (until == 0 || until > deadline))
		until = deadline;
	if (until > 0 && now >= until)
		return fx_error_set(err, FX_EIO, "%s took nothing for %.3g s: it does not read what it is sent", o->name, now - start);
	(void)poll(&fd, 1, until > 0 && until - now < SLICE_S ? (int)((until - now) * 1e3) + 1 : (int)(SLICE_S * 1e3));
	return FX_OK;
}

/* Bytes that went off the front of the pieces. */
static void advance(fxi_wire_pieces *p, int *first, size_t done)
{
	while (*first < p->n && done >= p->piece[*first].iov_len)
		done -= p->piece[(*first)++].iov_len;
	if (*first < p->n) {
		p->piece[*first].iov_base = (char *)p->piece[*first].iov_base + done;
		p->piece[*first].iov_len -= done;
	}
}

static int write_pieces(fxi_wire_out *o, fxi_wire_pieces *p, fx_error *err)
{
	double waiting_since = 0;
	int first = 0, status = FX_OK;

	while (first < p->n && status == FX_OK) {
		struct msghdr message = {.msg_iov = p->piece + first, .msg_iovlen = (size_t)(p->n - first)};
		ssize_t n = o->socket ? sendmsg(o->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) : writev(o->fd, p->piece + first, p->n - first);

		if (n >= 0) {
			advance(p, &first, (size_t)n);
			o->bytes += n;
			waiting_since = 0;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			if (waiting_since == 0)
				waiting_since = fxi_now_s();
			status = await(o, waiting_since, err);
		} else if (errno != EINTR) {
			status = fx_error_set(err, FX_EIO, "cannot write to %s: %s", o->name, errno == EPIPE ?
				"the other side is gone" : strerror(errno));
		}
	}
	return status;
}

static int send_pieces(fxi_wire_out *o, fxi_wire_pieces *p, fx_error *err)
{
	int status;

	pthread_mutex_lock(&o->lock);
	if (o->failure.status == FX_OK)
		write_pieces(o, p, &o->failure);
	status = o->failure.status;
	if (status != FX_OK)
		fx_error_set(err, status, "%s", o->failure.text);
	pthread_mutex_unlock(&o->lock);
	fxi_wire_pieces_clear(p);
	return status;
}

int fxi_wire_send_config_name(fxi_wire_out *o, const char *name, fx_error *err)
{
	const unsigned char id[2] = {FXI_MRD_CONFIG_FILE, 0};
	char field[FXI_MRD_CONFIG_FILE_BYTES] = {0};
	fxi_wire_pieces p = {.n = 2, .piece = {{(void *)(uintptr_t)id, 2}, {field, sizeof field}}};

	if (strlen(name) >= sizeof field)
		return fx_error_set(err, FX_EINVAL, "a configuration's name has at most %zu bytes, this one has %zu", sizeof field - 1,
			strlen(name));
	memcpy(field, name, strlen(name));
	return send_pieces(o, &p, err);
}

int fxi_wire_send_text(fxi_wire_out *o, int id, const char *text, bool nul, fx_error *err)
{
	fxi_wire_pieces p;

	if (strlen(text) >= UINT32_MAX)
		return fx_error_set(err, FX_EINVAL, "a text of %zu bytes is too long", strlen(text));
	fxi_wire_pieces_text(&p, id, 4, text, nul);
	return send_pieces(o, &p, err);
}

int fxi_wire_send_query(fxi_wire_out *o, uint64_t correlation, const char *text, fx_error *err)
{
	const uint64_t head[2] = {0, correlation}, length = strlen(text);
	fxi_wire_pieces p;

	fxi_wire_pieces_text(&p, FXI_MRD_QUERY, 0, text, 0);
	fxi_wire_pieces_put(&p, head, sizeof head);
	fxi_wire_pieces_put(&p, &length, sizeof length);
	return send_pieces(o, &p, err);
}

int fxi_wire_send_response(fxi_wire_out *o, uint64_t correlation, const char *text, fx_error *err)
{
	const uint64_t length = strlen(text);
	fxi_wire_pieces p;

	fxi_wire_pieces_text(&p, FXI_MRD_RESPONSE, 0, text, 0);
	fxi_wire_pieces_put(&p, &correlation, sizeof correlation);
	fxi_wire_pieces_put(&p, &length, sizeof length);
	return send_pieces(o, &p, err);
}

int fxi_wire_send_dependency(fxi_wire_out *o, const char *xml, fx_error *err)
{
	fxi_wire_pieces p;

	/* The NUL is counted, as in Gadgetron's serialised meta data. */
	fxi_wire_pieces_text(&p, FXI_MRD_DEPENDENCY, 8, xml, 1);
	return send_pieces(o, &p, err);
}

int fxi_wire_send(fxi_wire_out *o, fx_msg *msg, fx_error *err)
{
	fxi_wire_pieces p;
	int status = fxi_wire_pieces_of(&p, o->name, msg, err);

	if (status == FX_OK)
		return send_pieces(o, &p, err);
	fxi_wire_pieces_clear(&p);
	return status;
}

int fxi_wire_send_close(fxi_wire_out *o, fx_error *err)
{
	const unsigned char id[2] = {FXI_MRD_CLOSE, 0};
	fxi_wire_pieces p = {.n = 1, .piece = {{(void *)(uintptr_t)id, 2}}};

	return send_pieces(o, &p, err);
}

int64_t fxi_wire_out_bytes(fxi_wire_out *o)
{
	int64_t bytes;

	pthread_mutex_lock(&o->lock);
	bytes = o->bytes;
	pthread_mutex_unlock(&o->lock);
	return bytes;
}

/* SPDX-License-Identifier: MIT */
/*
 * wire_in.c - bytes from a descriptor. A socket is asked before it is waited for; the rest of a large body goes straight to
 * where it belongs, with little more than the next header behind it, so that most samples are copied once, by the kernel.
 */
#include "wire_in.h"

#include "../stream/queue.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)256 << 10)
#define DIRECT_BYTES ((size_t)8 << 10)   /* what is left of a body from here on bypasses the buffer */
#define AHEAD_BYTES ((size_t)1 << 10)    /* and takes so much of the next message along: its header and trajectory's start */
#define GRACE_S 2

int fxi_wire_in_new(int fd, const char *name, const void *prefix, size_t n_prefix, int64_t total_bytes,
	const fxi_wire_limits *limits, fx_error *err, fxi_wire_in **out)
{
	fxi_wire_in *in = calloc(1, sizeof *in);
	struct stat s;

	*out = NULL;
	if (in) {
		in->name = strdup(name);
		in->buffer = malloc(BUFFER_BYTES);
		in->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	if (!in || !in->name || !in->buffer || in->wake_fd < 0) {
		if (in)
			fxi_wire_in_free(in);
		return fx_error_set(err, FX_ENOMEM, "out of memory or file handles while opening %s", name);
	}
	in->fd = fd;
	if (fstat(fd, &s) == 0) {
		in->socket = S_ISSOCK(s.st_mode);
		in->file = S_ISREG(s.st_mode);
	}
	in->total = total_bytes;
	if (limits)
		in->limits = *limits;
	in->have = n_prefix;
	if (n_prefix > 0)
		memcpy(in->buffer, prefix, n_prefix);
	atomic_init(&in->interrupted, false);
	*out = in;
	return FX_OK;
}

void fxi_wire_in_free(fxi_wire_in *in)
{
	if (!in)
		return;
	if (in->wake_fd >= 0)
		close(in->wake_fd);
	fxi_pool_free(in->messages);
	fxi_pool_free(in->samples);
	fxi_pool_free(in->trajectories);
	free(in->buffer);
	free(in->name);
	free(in);
}

int fxi_wire_bad(const fxi_wire_in *in, int status, fx_error *err, const char *fmt, ...)
{
	char text[FX_ERROR_TEXT];
	const char *kind = fxi_wire_id_name(in->message_id);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return fx_error_set(err, status, "%s, %s message at byte %lld: %.900s", in->name, kind ? kind : "unknown",
		(long long)in->message_offset, text);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void fxi_wire_interrupt(fxi_wire_in *in)
{
	const uint64_t one = 1;
	ssize_t n;

	atomic_store(&in->interrupted, true);
	n = write(in->wake_fd, &one, sizeof one);
	(void)n; /* fails only where the counter is full, and then the reader is awake */
}

void fxi_wire_resume(fxi_wire_in *in, const fxi_wire_limits *limits)
{
	uint64_t count;
	ssize_t n = read(in->wake_fd, &count, sizeof count);

	(void)n;
	atomic_store(&in->interrupted, false);
	if (limits)
		in->limits = *limits;
	if (in->end == FXI_WIRE_INTERRUPTED)
		in->end = FXI_WIRE_OPEN;
}

static int interrupted(fxi_wire_in *in, fx_error *err)
{
	in->end = FXI_WIRE_INTERRUPTED;
	return fx_error_set(err, FX_ECANCELED, "stopped while waiting for %s", in->name);
}

static int silent(fxi_wire_in *in, double waited_s, fx_error *err)
{
	/* An interrupted message can be passed over once its size is known: who reads messages sees to it. */
	in->end = atomic_load(&in->interrupted) ? FXI_WIRE_OPEN : FXI_WIRE_SILENT;
	if (in->limits.deadline_s > 0 && fxi_now_s() >= in->limits.deadline_s)
		return fx_error_set(err, FX_EIO, "%s: the time that is allowed is over", in->name);
	return fx_error_set(err, FX_EIO, "%s sent nothing for %.3g s%s", in->name, waited_s,
		in->in_message ? ", in the middle of a message" : "");
}

/* Until something can be read. */
static int await(fxi_wire_in *in, fx_error *err)
{
	const double start = fxi_now_s();

	for (;;) {
		bool stop = atomic_load(&in->interrupted);
		struct pollfd fds[2] = {{.fd = in->fd, .events = POLLIN}, {.fd = stop ? -1 : in->wake_fd, .events = POLLIN}};
		double now = fxi_now_s(), until = in->limits.idle_s > 0 ? start + in->limits.idle_s : 0;
		int n, wait_ms = -1;

		if (stop && !in->in_message)
			return interrupted(in, err);
		if (stop && (until == 0 || until > start + GRACE_S))
			until = start + GRACE_S;
		if (in->limits.deadline_s > 0 && (until == 0 || until > in->limits.deadline_s))
			until = in->limits.deadline_s;
		if (until > 0 && now >= until)
			return silent(in, now - start, err);
		if (until > 0)
			wait_ms = until - now > 1e6 ? 1000000000 : (int)((until - now) * 1e3) + 1;
		n = poll(fds, 2, wait_ms);
		if (n > 0 && fds[0].revents)
			return FX_OK;
		/* EINTR too: whoever handles a signal calls for an interrupt where it means one */
	}
}

/* One read of what there is, at most `bytes` into `to` and what comes next into the buffer; *n is 0 at the end of the stream. */
static int read_some(fxi_wire_in *in, void *to, size_t bytes, size_t *n, fx_error *err)
{
	struct iovec pieces[2] = {{to, bytes}, {in->buffer, bytes >= DIRECT_BYTES ? AHEAD_BYTES : BUFFER_BYTES}};
	struct iovec *first = bytes > 0 ? pieces : pieces + 1;
	struct msghdr message = {.msg_iov = first, .msg_iovlen = bytes > 0 ? 2 : 1};
	ssize_t got;
	int status = FX_OK;

	*n = 0;
	in->at = in->have = 0;
	if (!in->in_message && atomic_load_explicit(&in->interrupted, memory_order_relaxed))
		return interrupted(in, err);
	for (;;) {
		if (!in->socket && !in->file)
			status = await(in, err);
		if (status != FX_OK)
			return status;
		got = in->socket ? recvmsg(in->fd, &message, MSG_DONTWAIT) : readv(in->fd, first, bytes > 0 ? 2 : 1);
		if (got >= 0)
			break;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			status = await(in, err);
		else if (errno != EINTR) {
			in->end = in->socket ? FXI_WIRE_CUT : FXI_WIRE_LOST;
			return in->socket ? FX_OK : fx_error_set(err, FX_EIO, "cannot read %s: %s", in->name, strerror(errno));
		}
	}
	*n = (size_t)got > bytes ? bytes : (size_t)got;
	in->have = (size_t)got - *n;
	if (got == 0)
		in->end = FXI_WIRE_CUT;
	return FX_OK;
}

int fxi_wire_bytes(fxi_wire_in *in, void *to, uint64_t bytes, uint64_t *done, fx_error *err)
{
	unsigned char *p = to;
	int status = FX_OK;

	*done = 0;
	while (*done < bytes && status == FX_OK) {
		size_t left = bytes - *done > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)(bytes - *done), n = in->have - in->at;

		if (n == 0) {
			size_t direct = p && left >= DIRECT_BYTES ? left : 0;

			status = read_some(in, direct ? p + *done : NULL, direct, &n, err);
			*done += n;
			in->offset += (int64_t)n;
			if (n == 0 && in->have == 0)
				break;
			continue;
		}
		n = n < left ? n : left;
		if (p)
			memcpy(p + *done, in->buffer + in->at, n);
		in->at += n;
		*done += n;
		in->offset += (int64_t)n;
	}
	return status;
}

int fxi_wire_need(fxi_wire_in *in, void *to, uint64_t bytes, fx_error *err)
{
	uint64_t done = 0;
	int status = fxi_wire_bytes(in, to, bytes, &done, err);

	if (status == FX_OK && done < bytes)
		return fxi_wire_bad(in, FX_EDATA, err, "the stream ends inside it, at byte %lld: it was cut short",
			(long long)in->offset);
	return status;
}

int fxi_wire_room(fxi_wire_in *in, int64_t bytes, fx_error *err)
{
	int64_t whole = in->offset - in->message_offset + bytes;

	in->message_end = in->offset + bytes;
	if (in->total > 0 && bytes > in->total - in->offset)
		return fxi_wire_bad(in, FX_EDATA, err, "it should hold %lld more bytes but the file has only %lld left: it was cut "
			"short or is damaged", (long long)bytes, (long long)(in->total - in->offset));
	if (in->limits.message_bytes > 0 && whole > in->limits.message_bytes)
		return fxi_wire_bad(in, FX_EDATA, err, "it announces %lld bytes; %lld at most are accepted", (long long)whole,
			(long long)in->limits.message_bytes);
	if (bytes > (int64_t)64 << 20 && bytes > fx_memory_available_bytes())
		return fxi_wire_bad(in, FX_ENOMEM, err, "it needs %lld MiB of memory, %lld MiB are available",
			(long long)(bytes >> 20), (long long)(fx_memory_available_bytes() >> 20));
	return FX_OK;
}

int fxi_wire_length(fxi_wire_in *in, size_t length_bytes, fx_error *err, uint64_t *out)
{
	unsigned char field[8] = {0};
	int status = fxi_wire_need(in, field, length_bytes, err);

	*out = 0;
	for (int i = 7; i >= 0; i--)
		*out = *out << 8 | field[i];
	return status;
}

void fxi_wire_allow_data(fxi_wire_in *in, bool allowed)
{
	in->no_data = !allowed;
}

int fxi_wire_end(const fxi_wire_in *in)
{
	return in->end;
}

int64_t fxi_wire_in_bytes(const fxi_wire_in *in)
{
	return in->offset;
}

const char *fxi_wire_in_name(const fxi_wire_in *in)
{
	return in->name;
}

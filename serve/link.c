/* SPDX-License-Identifier: MIT */
/* link.c - records and descriptors between the supervisor and its workers. */
#include "link.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int fxi_link_pair(int ends[2], fx_error *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return fx_error_set(err, FX_EIO, "cannot make a socket for a worker: %s", strerror(errno));
	return FX_OK;
}

bool fxi_link_send(int link, const fxi_link_message *m, int fd)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof *m};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		message.msg_control = control.room;
		message.msg_controllen = sizeof control.room;
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	do
		n = sendmsg(link, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *m;
}

/* The one descriptor that came along; more than one is none of our doing, and all are closed. */
static int descriptor_of(struct msghdr *message)
{
	int fd = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
			if (fd >= 0)
				close(got);
			else
				fd = got;
		}
	}
	return fd;
}

/* Texts of a worker that was damaged may lack their end. */
static void end_texts(fxi_link_message *m)
{
	fxi_session_outcome *o = &m->u.outcome;

	switch (m->kind) {
	case FXI_LINK_OUTCOME:
		o->error[sizeof o->error - 1] = o->config[sizeof o->config - 1] = '\0';
		o->pipeline[sizeof o->pipeline - 1] = o->measurement[sizeof o->measurement - 1] = '\0';
		break;
	case FXI_LINK_CRASH:
		m->u.crash.thread[sizeof m->u.crash.thread - 1] = '\0';
		break;
	case FXI_LINK_READY:
		if (m->u.gpus.n < 0 || m->u.gpus.n > FXI_LINK_GPUS)
			m->u.gpus.n = 0;
		for (int i = 0; i < m->u.gpus.n; i++)
			m->u.gpus.list[i].name[sizeof m->u.gpus.list[i].name - 1] = '\0';
		break;
	case FXI_LINK_START:
		m->u.start.peer[sizeof m->u.start.peer - 1] = '\0';
		break;
	case FXI_LINK_ADMIT:
	case FXI_LINK_GRANTED:
		break;
	default:
		m->u.text[sizeof m->u.text - 1] = '\0';
	}
}

int fxi_link_receive(int link, fxi_link_message *m, int *fd)
{
	struct iovec part = {.iov_base = m, .iov_len = sizeof *m};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
		.msg_controllen = sizeof control.room};
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(link, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n <= 0)
		return -1;
	*fd = descriptor_of(&message);
	if (n != (ssize_t)sizeof *m || (message.msg_flags & MSG_TRUNC)) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return -1;
	}
	end_texts(m);
	return 1;
}

/* SPDX-License-Identifier: MIT */
/* notify.h - what systemd wants to hear of a service of Type=notify: a datagram to the socket that NOTIFY_SOCKET names. */
#ifndef FORNIX_SERVE_NOTIFY_H
#define FORNIX_SERVE_NOTIFY_H

#include <fornix/base.h>

typedef struct fxi_notify {
	int fd;               /**< -1: nobody listens */
	double watchdog_s;    /**< the service manager wants a sign of life this often; 0: it does not */
} fxi_notify;

/** Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment, so that no child inherits them. */
void fxi_notify_open(fxi_notify *n);
void fxi_notify_close(fxi_notify *n);
/** Sends "READY=1", "STATUS=...", "STOPPING=1", "WATCHDOG=1", or several of them on lines of their own. */
void fxi_notify_send(const fxi_notify *n, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/* notify.c - sd_notify's protocol, which is stable and small enough to need no library. */
#include "notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(name);
	int fd;

	if (n < 2 || n >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@'))
		return -1;
	memcpy(address.sun_path, name, n);
	if (name[0] == '@') /* the abstract namespace */
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void fxi_notify_open(fxi_notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	n->fd = name ? connect_to(name) : -1;
	n->watchdog_s = 0;
	if (usec && (!pid || strtoll(pid, NULL, 10) == (long long)getpid()))
		n->watchdog_s = (double)strtoll(usec, NULL, 10) * 1e-6;
	if (n->watchdog_s < 0 || n->fd < 0)
		n->watchdog_s = 0;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void fxi_notify_close(fxi_notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void fxi_notify_send(const fxi_notify *n, const char *text)
{
	if (n->fd < 0)
		return;
	while (send(n->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
		;
}

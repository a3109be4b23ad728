/* SPDX-License-Identifier: MIT */
/* The server's log: what reaches the journal, that nobody forges an entry; and what the service manager hears. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/log.h"
#include "serve/notify.h"

/* A datagram socket of that name, as the journal has one. abstract: no file. */
static int listen_at(const char *path, bool abstract)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	snprintf(address.sun_path + (abstract ? 1 : 0), sizeof address.sun_path - 1, "%s", path);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_FATAL(bind(fd, (struct sockaddr *)&address,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (abstract ? 1 : 0))) == 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	return fd;
}

/* The next datagram, as text. */
static const char *heard(int fd, char *text, size_t size)
{
	ssize_t n = recv(fd, text, size - 1, 0);

	CU_ASSERT_FATAL(n >= 0);
	text[n] = '\0';
	return text;
}

/* True where the entry has exactly this line. */
static bool has_line(const char *entry, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = entry; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
		if (strncmp(at, line, n) == 0 && (at[n] == '\n' || at[n] == '\0'))
			return true;
	return false;
}

static void entries_have_fields(void)
{
	char folder[] = "/tmp/fornix-log-XXXXXX", path[64], text[8192], *long_text = malloc(9000);
	const fxi_log_field fields[] = {{"CONFIG", "default.xml\nFORNIX_OUTCOME=forged"}, {"OUTCOME", "done"}, {"ERROR", ""}};
	fxi_log *log;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/journal", folder);
	fd = listen_at(path, false);
	CU_ASSERT_EQUAL_FATAL(fxi_log_open(path, FXI_INFO, NULL, &log), FX_OK);
	CU_ASSERT_TRUE(fxi_log_native(log));
	fxi_log_write(log, FXI_DEBUG, 1, NULL, "below the level", NULL, 0);
	fxi_log_write(log, FXI_WARNING, 17, "cg", "went\nwrong\x1b[31m", fields, 3);
	heard(fd, text, sizeof text);
	CU_ASSERT(has_line(text, "MESSAGE=cg: went?wrong?[31m"));
	CU_ASSERT(has_line(text, "PRIORITY=4"));
	CU_ASSERT(has_line(text, "SYSLOG_IDENTIFIER=fornix"));
	CU_ASSERT(has_line(text, "FORNIX_SESSION=17"));
	CU_ASSERT(has_line(text, "FORNIX_GADGET=cg"));
	CU_ASSERT(has_line(text, "FORNIX_CONFIG=default.xml?FORNIX_OUTCOME=forged"));
	CU_ASSERT(has_line(text, "FORNIX_OUTCOME=done"));
	CU_ASSERT_FALSE(has_line(text, "FORNIX_OUTCOME=forged"));
	CU_ASSERT_PTR_NULL(strstr(text, "FORNIX_ERROR"));

	/* an entry that is too long loses what does not fit, and is an entry all the same */
	CU_ASSERT_PTR_NOT_NULL_FATAL(long_text);
	memset(long_text, 'x', 8999);
	long_text[8999] = '\0';
	fxi_log_write(log, FXI_ERROR, 0, NULL, long_text, &(fxi_log_field){"CONFIG", long_text}, 1);
	heard(fd, text, sizeof text);
	CU_ASSERT(strlen(text) < 4096);
	CU_ASSERT(has_line(text, "PRIORITY=3"));
	CU_ASSERT_PTR_NULL(strstr(text, "FORNIX_"));
	fxi_log_close(log);
	close(fd);
	unlink(path);
	rmdir(folder);
	free(long_text);
}

static void lines_are_whole(void)
{
	char name[] = "/tmp/fornix-log-XXXXXX", text[4096];
	const fxi_log_field fields[] = {{"CONFIG", "a name"}, {"OUTCOME", "done"}};
	int file = mkstemp(name), kept = dup(STDERR_FILENO);
	fxi_log *log;
	ssize_t n;

	CU_ASSERT_FATAL(file >= 0 && kept >= 0);
	unsetenv("JOURNAL_STREAM");
	CU_ASSERT_EQUAL_FATAL(fxi_log_open(NULL, FXI_INFO, NULL, &log), FX_OK);
	CU_ASSERT_FALSE(fxi_log_native(log));
	fflush(stderr);
	dup2(file, STDERR_FILENO);
	fxi_log_write(log, FXI_INFO, 3, "fhd", "one\ntwo", fields, 2);
	dup2(kept, STDERR_FILENO);
	close(kept);
	n = pread(file, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(text, "Z fornix info: session 3: fhd: one?two config=\"a name\" outcome=done\n"));
	CU_ASSERT_EQUAL(strchr(text, '\n') - text, (long)strlen(text) - 1);
	fxi_log_close(log);
	close(file);
	unlink(name);
}

static void the_manager_is_told(void)
{
	char name[64], variable[80], text[256];
	fxi_notify n;
	int fd;

	snprintf(name, sizeof name, "fornix-test-%d", (int)getpid());
	snprintf(variable, sizeof variable, "@%s", name);
	fd = listen_at(name, true);
	setenv("NOTIFY_SOCKET", variable, 1);
	setenv("WATCHDOG_USEC", "3000000", 1);
	unsetenv("WATCHDOG_PID");
	fxi_notify_open(&n);
	CU_ASSERT_DOUBLE_EQUAL(n.watchdog_s, 3, 1e-9);
	CU_ASSERT_PTR_NULL(getenv("NOTIFY_SOCKET"));
	fxi_notify_send(&n, "READY=1");
	CU_ASSERT_STRING_EQUAL(heard(fd, text, sizeof text), "READY=1");
	fxi_notify_close(&n);
	close(fd);

	/* another process's watchdog, and a socket that is not there */
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	setenv("WATCHDOG_USEC", "3000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	fxi_notify_open(&n);
	CU_ASSERT_EQUAL(n.fd, -1);
	CU_ASSERT_EQUAL(n.watchdog_s, 0);
	fxi_notify_send(&n, "READY=1");
	fxi_notify_close(&n);
}

static CU_TestInfo tests[] = {
	{"entries of the journal have fields, and none is forged", entries_have_fields},
	{"a line is one line", lines_are_whole},
	{"the service manager is told", the_manager_is_told},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_serve_log = {"serve_log", NULL, NULL, NULL, NULL, tests};

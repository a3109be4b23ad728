/* SPDX-License-Identifier: MIT */
/*
 * log.c - the journal's native protocol is a datagram of lines NAME=value; a value with a newline in it would need its other form, but
 * there is none: control characters are replaced.
 */
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SYSTEM_JOURNAL "/run/systemd/journal/socket"
#define LINE 4096

struct fxi_log {
	int journal; /* -1: stderr */
	int level;
};

static const char *const level_names[] = {"debug", "info", "warning", "error"};
static const int priorities[] = {7, 6, 4, 3}; /* syslog's */

/* systemd names the device and inode of the stream that it connected: stderr may have been sent elsewhere since. */
static bool stderr_is_journal(void)
{
	const char *named = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return named && sscanf(named, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
		(unsigned long long)st.st_dev == device && (unsigned long long)st.st_ino == inode;
}

static int connect_journal(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof address.sun_path)
		return -1;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int fxi_log_open(const char *journal, int level, fx_error *err, fxi_log **out)
{
	fxi_log *log = calloc(1, sizeof *log);

	*out = log;
	if (!log)
		return fx_error_set(err, FX_ENOMEM, "no memory to open the log");
	log->level = level;
	log->journal = journal || stderr_is_journal() ? connect_journal(journal ? journal : SYSTEM_JOURNAL) : -1;
	return FX_OK;
}

void fxi_log_close(fxi_log *log)
{
	if (!log)
		return;
	if (log->journal >= 0)
		close(log->journal);
	free(log);
}

bool fxi_log_native(const fxi_log *log)
{
	return log->journal >= 0;
}

/* Appends, without what would end a line or steer a terminal. What does not fit is cut. */
static void append(char *line, size_t *used, const char *text)
{
	for (; *text && *used < LINE - 2; text++) {
		unsigned char c = (unsigned char)*text;

		line[(*used)++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
}

static void append_field(char *line, size_t *used, const char *name, const char *value)
{
	size_t start = *used;

	append(line, used, name);
	append(line, used, "=");
	append(line, used, value);
	if (*used >= LINE - 2 && start > 0) { /* a cut field would say something else: it is left out */
		*used = start;
		return;
	}
	line[(*used)++] = '\n';
}

static void to_journal(const fxi_log *log, int level, uint64_t session, const char *gadget, const char *text,
	const fxi_log_field *fields, int n_fields)
{
	char line[LINE], number[32], name[64], shown[1536];
	size_t used = 0;

	snprintf(shown, sizeof shown, "%s%s%s", gadget ? gadget : "", gadget ? ": " : "", text);
	append_field(line, &used, "MESSAGE", shown);
	snprintf(number, sizeof number, "%d", priorities[level]);
	append_field(line, &used, "PRIORITY", number);
	append_field(line, &used, "SYSLOG_IDENTIFIER", "fornix");
	snprintf(number, sizeof number, "%llu", (unsigned long long)session);
	if (session)
		append_field(line, &used, "FORNIX_SESSION", number);
	if (gadget)
		append_field(line, &used, "FORNIX_GADGET", gadget);
	for (int i = 0; i < n_fields; i++) {
		snprintf(name, sizeof name, "FORNIX_%s", fields[i].name);
		if (fields[i].value && *fields[i].value)
			append_field(line, &used, name, fields[i].value);
	}
	while (send(log->journal, line, used, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
		;
}

static void to_stderr(int level, uint64_t session, const char *gadget, const char *text, const fxi_log_field *fields, int n_fields)
{
	char line[LINE], head[96];
	struct timespec now;
	struct tm utc;
	size_t used = 0;
	ssize_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	used = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(head, sizeof head, ".%03dZ fornix %s: ", (int)(now.tv_nsec / 1000000), level_names[level]);
	append(line, &used, head);
	snprintf(head, sizeof head, "session %llu: ", (unsigned long long)session);
	append(line, &used, session ? head : "");
	append(line, &used, gadget ? gadget : "");
	append(line, &used, gadget ? ": " : "");
	append(line, &used, text);
	for (int i = 0; i < n_fields; i++) {
		if (!fields[i].value || !*fields[i].value)
			continue;
		append(line, &used, " ");
		for (const char *c = fields[i].name; *c; c++) {
			char small[2] = {(char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c), '\0'};

			append(line, &used, small);
		}
		append(line, &used, strchr(fields[i].value, ' ') ? "=\"" : "=");
		append(line, &used, fields[i].value);
		append(line, &used, strchr(fields[i].value, ' ') ? "\"" : "");
	}
	line[used++] = '\n';
	n = write(STDERR_FILENO, line, used);
	(void)n; /* there is nowhere to say that a log cannot be written */
}

void fxi_log_write(const fxi_log *log, int level, uint64_t session, const char *gadget, const char *text,
	const fxi_log_field *fields, int n_fields)
{
	if (level < log->level)
		return;
	if (level > FXI_ERROR)
		level = FXI_ERROR;
	if (log->journal >= 0)
		to_journal(log, level, session, gadget, text, fields, n_fields);
	else
		to_stderr(level, session, gadget, text, fields, n_fields);
}

void fxi_log_say(const fxi_log *log, int level, uint64_t session, const char *fmt, ...)
{
	char text[1280];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	fxi_log_write(log, level, session, NULL, text, NULL, 0);
}

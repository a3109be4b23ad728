/* SPDX-License-Identifier: MIT */
/*
 * send.c - `fornix send SERVER CONFIGURATION INPUT`: a scan to a server that speaks the MRD streaming protocol (Fornix, Gadgetron, a FIRE
 * server), its images into a file. What the server reports as failed makes the call fail; so does an answer that lacks images.
 */
#include "apps/send.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/files.h"
#include "io/input.h"
#include "stream/queue.h"

#define PORT "9002"
#define CONNECT_S 10

struct options {
	char *output, *group, *stats, *parameters, **queries;
	gboolean local, fire, quiet;
	double rate, tick_ms, interval_ms, timeout_s;
	gint expect;
};

/* ---- the connection -------------------------------------------------------------------------- */

/* "host", "host:port", "[::1]:port". */
static void split(const char *server, char **host, char **port)
{
	const char *end = server[0] == '[' ? strchr(server, ']') : NULL, *colon = strrchr(end ? end : server, ':');

	if (!end && colon && strchr(server, ':') != colon)
		colon = NULL;   /* an IPv6 address without brackets */
	if (end)
		*host = g_strndup(server + 1, (gsize)(end - server - 1));
	else
		*host = colon ? g_strndup(server, (gsize)(colon - server)) : g_strdup(server);
	*port = g_strdup(colon ? colon + 1 : PORT);
}

/* A connect that waits CONNECT_S at most. */
static int connect_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol), failed = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof failed;

	if (fd < 0)
		return -1;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return fd;
	failed = errno;
	if (failed == EINPROGRESS) {
		failed = ETIMEDOUT;
		if (poll(&p, 1, CONNECT_S * 1000) > 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	}
	if (failed == 0)
		return fd;
	close(fd);
	errno = failed;
	return -1;
}

static int open_connection(const char *server, fx_error *err, int *fd)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	char *host, *port;
	int failed;

	*fd = -1;
	split(server, &host, &port);
	failed = getaddrinfo(host, port, &hints, &list);
	for (const struct addrinfo *a = failed ? NULL : list; a && *fd < 0; a = a->ai_next)
		*fd = connect_one(a);
	if (failed)
		fx_error_set(err, FX_EIO, "cannot find the server %s: %s", server, gai_strerror(failed));
	else if (*fd < 0)
		fx_error_set(err, FX_EIO, "cannot connect to %s, port %s: %s. Is a server running there, and does it listen on that address?",
			host, port, strerror(errno));
	if (list)
		freeaddrinfo(list);
	g_free(host);
	g_free(port);
	return *fd >= 0 ? FX_OK : FX_EIO;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* Waits for a message's time: that of its readout's stamp on the scanner's clock, or of its number where an interval is given. */
struct pace {
	const struct options *o;
	double start_s, first_stamp, late_s;
	bool started;
};

static void keep_pace(struct pace *p, const ISMRMRD_AcquisitionHeader *head, int64_t n, atomic_bool *closed)
{
	double stamp = head->acquisition_time_stamp, due, now = fxi_now_s();

	if (p->o->rate <= 0 && p->o->interval_ms <= 0)
		return;
	if (!p->started) {
		p->started = true;
		p->start_s = now;
		p->first_stamp = stamp;
	}
	if (p->o->interval_ms > 0)
		due = (double)n * p->o->interval_ms * 1e-3;
	else
		due = (stamp - p->first_stamp) * p->o->tick_ms * 1e-3;
	due = p->start_s + due / (p->o->rate > 0 ? p->o->rate : 1);
	if (now - due > p->late_s)
		p->late_s = now - due;
	/* In steps, so that a server that closed ends it. */
	while ((now = fxi_now_s()) < due && !atomic_load(closed)) {
		double left = due - now < 0.25 ? due - now : 0.25;

		nanosleep(&(struct timespec){.tv_nsec = (long)(left * 1e9)}, NULL);
	}
}

static int send_config(fxi_send *s, const struct options *o, const char *config, fx_error *err)
{
	GError *error = NULL;
	char *text = NULL;
	int status;

	if (!o->local)
		return fxi_wire_send_config_name(s->out, config, err);
	if (!g_file_get_contents(config, &text, NULL, &error)) {
		status = fx_error_set(err, FX_EIO, "cannot read the configuration: %s", error->message);
		g_clear_error(&error);
		return status;
	}
	status = fxi_wire_send_text(s->out, FXI_MRD_CONFIG_TEXT, text, o->fire, err);
	g_free(text);
	return status;
}

static int send_data(fxi_send *s, const struct options *o, fxi_source *source, fxi_send_report *report, fx_error *err)
{
	struct pace pace = {.o = o};
	int status = FX_OK;

	while (status == FX_OK && !atomic_load(&s->closed)) {
		fx_msg *msg;
		const fx_acquisition *a;

		status = source->next(source, &msg, err);
		report->input_failed = status != FX_OK;
		if (status != FX_OK || !msg)
			break;
		a = fx_msg_acquisition(msg);
		if (a)
			keep_pace(&pace, &a->head, report->n_readouts, &s->closed);
		status = fxi_wire_send(s->out, msg, err);
		if (a && status == FX_OK)
			fxi_send_stats_sent(s->stats, &a->head);
		report->n_readouts += a != NULL;
		report->n_waveforms += fx_msg_waveform(msg) != NULL;
		report->n_images_sent += fx_msg_image(msg) != NULL;
		fxi_progress_update(&s->progress, source->progress ? source->progress(source) : -1,
			report->n_readouts + report->n_waveforms + report->n_images_sent);
		fx_drop(msg);
	}
	report->late_s = pace.late_s;
	return status;
}

static int send_scan(fxi_send *s, const struct options *o, const char *config, fxi_source *source, fxi_send_report *report,
	fx_error *err)
{
	const double start = fxi_now_s();
	int status = send_config(s, o, config, err);

	if (status == FX_OK)
		status = fxi_wire_send_text(s->out, FXI_MRD_HEADER, source->header_xml, o->fire, err);
	if (status == FX_OK && o->parameters)
		status = fxi_wire_send_text(s->out, FXI_MRD_TEXT, o->parameters, o->fire, err);
	if (status == FX_OK)
		status = send_data(s, o, source, report, err);
	/* Where the input is at fault the server still hears that no more comes. */
	if (status == FX_OK || report->input_failed) {
		int closing = fxi_wire_send_close(s->out, err);

		status = status == FX_OK ? closing : status;
	}
	report->send_s = fxi_now_s() - start;
	return status;
}

static int ask(fxi_send *s, char *const *queries, fx_error *err)
{
	int status = FX_OK;

	for (int i = 0; queries[i] && status == FX_OK; i++)
		status = fxi_wire_send_query(s->out, (uint64_t)i + 1, queries[i], err);
	return status == FX_OK ? fxi_wire_send_close(s->out, err) : status;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static int verdict(const fxi_send *s, const struct options *o, const fxi_send_report *report, int status, fx_error *err)
{
	if (report->input_failed)
		return status;
	if (s->n_errors > 0) {
		*err = (fx_error){0};
		return fx_error_set(err, FX_EDATA, "the server reported: %s", s->first_error);
	}
	if (s->failure.status != FX_OK && atomic_load(&s->closed))
		return fx_error_set(err, s->failure.status, "%s", s->failure.text);
	if (!atomic_load(&s->closed)) {
		*err = (fx_error){0};
		return fx_error_set(err, FX_EIO, "the server broke off before its close message, after %lld images: %.800s",
			(long long)s->n_images, s->failure.text);
	}
	if (status != FX_OK)
		return status;
	if (o->queries)
		return s->n_answers > 0 ? FX_OK : fx_error_set(err, FX_EDATA, "the server closed without an answer");
	if (o->expect < 0 && s->n_images == 0)
		return fx_error_set(err, FX_EDATA, "the server closed without one image, and without a reason; --expect 0 where that is right");
	if (o->expect >= 0 && s->n_images != o->expect)
		return fx_error_set(err, FX_EDATA, "%lld images came, %d were expected", (long long)s->n_images, o->expect);
	return FX_OK;
}

/* The file appears where images came, also of a session that failed later: they are whole. */
static int keep_images(fxi_send *s, const struct options *o, int status, fx_error *err)
{
	int kept = s->product ? s->product->commit(s->product, status == FX_OK ? err : NULL) : FX_OK;

	if (s->product && kept == FX_OK && !o->quiet)
		fxi_progress_line(&s->progress, "fornix: %lld images in %s", (long long)s->n_images, o->output);
	s->product = NULL;
	return status == FX_OK ? kept : status;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int open_output(fxi_send *s, const struct options *o, char **folder, fx_error *err)
{
	if (!o->output)
		return FX_OK;
	*folder = g_path_get_dirname(o->output);
	s->name = strrchr(o->output, '/') ? strrchr(o->output, '/') + 1 : o->output;
	return fxi_files_folder(*folder, err, &s->files);
}

static int converse(fxi_send *s, const struct options *o, char **words, fxi_source *source, fxi_send_report *report, fx_error *err)
{
	int status;

	if (pthread_create(&s->thread, NULL, fxi_send_receive, s) != 0)
		return fx_error_set(err, FX_ENOMEM, "cannot start a thread");
	status = source ? send_scan(s, o, words[2], source, report, err) : ask(s, o->queries, err);
	/* A server that hangs up may have told why: what it sent is read to its end. */
	if (status != FX_OK)
		shutdown(s->fd, SHUT_WR);
	pthread_join(s->thread, NULL);
	status = verdict(s, o, report, status, err);
	return keep_images(s, o, status, err);
}

static int send_all(fxi_send *s, const struct options *o, char **words, fx_error *err)
{
	const fxi_wire_limits limits = {.idle_s = o->timeout_s};
	fxi_send_report report = {.server = words[1], .config = words[2], .input = words[2] ? words[3] : NULL, .rate = o->rate};
	fxi_source *source = NULL;
	char *folder = NULL;
	int fd = -1, status = o->queries ? FX_OK : fxi_input_open(words[3], o->group, err, &source);

	if (status == FX_OK)
		status = open_output(s, o, &folder, err);
	if (status == FX_OK)
		status = open_connection(words[1], err, &fd);
	if (status == FX_OK) {
		s->fd = fd;
		fxi_wire_prepare(fd);
		status = fxi_wire_in_new(fd, words[1], NULL, 0, 0, &limits, err, &s->in);
	}
	if (status == FX_OK)
		status = fxi_wire_out_new(fd, words[1], &limits, err, &s->out);
	if (status == FX_OK) {
		status = converse(s, o, words, source, &report, err);
		report.seconds = fxi_progress_seconds(&s->progress);
		if (o->stats && fxi_send_stats_write(s, &report, o->stats, status == FX_OK ? err : NULL) != FX_OK && status == FX_OK)
			status = err->status;
	}
	if (source)
		source->close(source);
	if (s->files)
		s->files->close(s->files);
	fxi_wire_in_free(s->in);
	fxi_wire_out_free(s->out);
	if (fd >= 0)
		close(fd);
	g_free(folder);
	return status;
}

static int run(const struct options *o, char **words)
{
	fxi_send s = {.quiet = o->quiet, .query = o->queries != NULL};
	fx_error err = {0};
	int status;

	signal(SIGPIPE, SIG_IGN);
	s.stats = fxi_send_stats_new();
	fxi_progress_start(&s.progress, !o->quiet);
	status = send_all(&s, o, words, &err);
	fxi_progress_end(&s.progress);
	fxi_send_stats_free(s.stats);
	if (status != FX_OK)
		fxi_apps_say("%s", err.text);
	return status == FX_OK ? FXI_EXIT_DONE : FXI_EXIT_FAILED;
}

static bool right_call(const struct options *o, int argc)
{
	if (!o->queries && argc != 4)
		fxi_apps_say("send: the call is `fornix send SERVER CONFIGURATION INPUT`, or `fornix send SERVER --query NAME`");
	else if (o->queries && argc != 2)
		fxi_apps_say("send: --query asks the server alone; leave configuration and input out");
	else if (!(o->rate >= 0) || !(o->tick_ms > 0) || !(o->interval_ms >= 0) || !(o->timeout_s >= 0))
		fxi_apps_say("send: --rate, --interval and --timeout take 0 and more, --tick more than 0");
	else
		return true;
	return false;
}

int fxi_app_send(int argc, char **argv)
{
	struct options o = {.tick_ms = 2.5, .timeout_s = 300, .expect = -1};
	const GOptionEntry entries[] = {
		{"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "MRD file for the images (without it they are counted only)", "FILE"},
		{"group", 0, 0, G_OPTION_ARG_FILENAME, &o.group, "HDF5 group of the scan, where there are several", "NAME"},
		{"local", 'C', 0, G_OPTION_ARG_NONE, &o.local, "CONFIGURATION is a file here, whose text is sent (the server has to allow that)", NULL},
		{"parameters", 0, 0, G_OPTION_ARG_STRING, &o.parameters, "Text behind the header: a FIRE client's parameters", "JSON"},
		{"fire", 0, 0, G_OPTION_ARG_NONE, &o.fire, "Count the NUL into the lengths of texts, as FIRE's clients do", NULL},
		{"rate", 0, 0, G_OPTION_ARG_DOUBLE, &o.rate, "Send at the scanner's speed times this, by the readouts' time stamps; 0: as fast as it goes (0)",
			"FACTOR"},
		{"tick", 0, 0, G_OPTION_ARG_DOUBLE, &o.tick_ms, "Unit of the time stamps (2.5)", "MS"},
		{"interval", 0, 0, G_OPTION_ARG_DOUBLE, &o.interval_ms, "Send a readout each so many ms, whatever its stamp", "MS"},
		{"stats", 0, 0, G_OPTION_ARG_FILENAME, &o.stats, "Counts and latencies as JSON; - prints them", "FILE"},
		{"expect", 0, 0, G_OPTION_ARG_INT, &o.expect, "Fail unless so many images come (at least one)", "N"},
		{"timeout", 0, 0, G_OPTION_ARG_DOUBLE, &o.timeout_s, "Longest silence of the server; 0: any (300)", "S"},
		{"query", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.queries, "Ask the server, as for gadgetron::info, and print its answer (repeatable)", "NAME"},
		{"quiet", 'q', 0, G_OPTION_ARG_NONE, &o.quiet, "Say errors only", NULL},
		G_OPTION_ENTRY_NULL,
	};
	int result = FXI_EXIT_USAGE;

	if (fxi_apps_options("SERVER [CONFIGURATION INPUT]", "Sends the scan INPUT (an MRD HDF5 file or an MRD stream; - is standard input) to the MRD "
		    "server at SERVER (HOST or HOST:PORT; 9002 where none is given), to be reconstructed by its configuration of that name, and writes the "
		    "images that come back. Fails where the server reports an error, breaks off, or sends no image.", entries, 1, 3, &argc, &argv) &&
	    right_call(&o, argc))
		result = run(&o, argv);
	g_free(o.output);
	g_free(o.group);
	g_free(o.stats);
	g_free(o.parameters);
	g_strfreev(o.queries);
	return result;
}

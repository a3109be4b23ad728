/* SPDX-License-Identifier: MIT */
/*
 * session_server.c - sessions one after the other in one process, for tests of what a session does; servers are `fornix serve`'s to test.
 * usage: session_server FOLDER N [OPTION=VALUE ...]: prints its port, serves N clients on loopback, and prints a line of JSON for each.
 * A configuration NAME is FOLDER/NAME (or with .xml); noise goes into memory.
 */
#include "serve/session.h"
#include "xml/pipeline_file.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int configure(void *arg, const fxi_session_request *request, fx_error *err, fxi_pipeline **out)
{
	const char *dot = strrchr(request->text, '.');
	char path[4096];

	*out = NULL;
	if (request->kind == FXI_CONFIG_SCRIPT)
		return fxi_pipeline_parse(request->text, strlen(request->text), "script", arg, err, out);
	if (strchr(request->text, '/'))
		return fx_error_set(err, FX_EINVAL, "'%.100s' is no configuration's name", request->text);
	snprintf(path, sizeof path, "%s/%.200s%s", (const char *)arg, request->text, dot && strcmp(dot, ".xml") == 0 ? "" : ".xml");
	return fxi_pipeline_load(path, err, out);
}

static void say(void *arg, int level, const char *gadget, const char *text)
{
	(void)arg;
	fprintf(stderr, "%d %s: %s\n", level, gadget ? gadget : "session", text);
}

/* ---- noise of the last measurement ----------------------------------------------------------- */

struct noise {
	fxi_noise_store base;
	char id[128];
	fx_noise kept;
};

static int get_noise(fxi_noise_store *self, const char *id, fx_noise *out, fx_error *err)
{
	struct noise *n = (struct noise *)self;

	(void)err;
	*out = (fx_noise){0};
	if (strcmp(id, n->id) == 0) {
		*out = n->kept;
		out->covariance = fx_array_ref(n->kept.covariance);
	}
	return FX_OK;
}

static int put_noise(fxi_noise_store *self, const char *id, const fx_noise *noise, fx_error *err)
{
	struct noise *n = (struct noise *)self;

	(void)err;
	fx_noise_clear(&n->kept);
	n->kept = *noise;
	n->kept.covariance = fx_array_ref(noise->covariance);
	snprintf(n->id, sizeof n->id, "%s", id);
	return FX_OK;
}

/* A covariance of 3 channels under the id "kept-1": 4 on the diagonal's first, then 9, then 16. */
static void keep_some(struct noise *n)
{
	n->base = (fxi_noise_store){.get = get_noise, .put = put_noise};
	snprintf(n->id, sizeof n->id, "kept-1");
	n->kept.dwell_us = 2.5;
	n->kept.n_samples = 1000;
	if (fx_array_new2(FX_CF64, 3, 3, &n->kept.covariance) != FX_OK)
		exit(1);
	for (int i = 0; i < 3; i++)
		FX_CF64_OF(n->kept.covariance)[i * 4] = (i + 2) * (i + 2);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int open_port(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 16) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
		perror("session_server");
		exit(1);
	}
	*port = ntohs(address.sin_port);
	return fd;
}

static void set(fxi_session_options *o, const char *word)
{
	const char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value - word) : 0;

	if (n == 4 && strncmp(word, "idle", n) == 0)
		o->idle_s = atof(value + 1);
	else if (n == 5 && strncmp(word, "total", n) == 0)
		o->total_s = atof(value + 1);
	else if (n == 5 && strncmp(word, "drain", n) == 0)
		o->drain_s = atof(value + 1);
	else if (n == 7 && strncmp(word, "message", n) == 0)
		o->message_bytes = atoll(value + 1);
	else if (n == 4 && strncmp(word, "held", n) == 0)
		o->held_bytes = atoll(value + 1);
	else if (n == 5 && strncmp(word, "queue", n) == 0)
		o->queue_bytes = atoll(value + 1);
	else if (n == 6 && strncmp(word, "client", n) == 0)
		o->allow_client_pipelines = value[1] == '1';
	else if (n == 4 && strncmp(word, "stop", n) == 0)
		o->stop_fd = open(value + 1, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	else
		exit(2);
}

static void print(const fxi_session_outcome *o)
{
	char error[FX_ERROR_TEXT], *p = error;

	for (const char *c = o->error; *c; c++)
		*p++ = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '\'' : *c;
	*p = '\0';
	printf("{\"end\": \"%s\", \"status\": %d, \"error\": \"%s\", \"closed\": %d, \"fire\": %d, \"acquisitions\": %lld, "
		"\"waveforms\": %lld, \"images_in\": %lld, \"images\": %lld, \"texts\": %lld, \"queries\": %lld, \"dropped\": %lld, "
		"\"bytes_in\": %lld, \"bytes_out\": %lld, \"seconds\": %.6f, \"first_image_s\": %.6f}\n", fxi_session_end_name(o->end),
		o->status, error, o->closed, o->fire, (long long)o->n_acquisitions, (long long)o->n_waveforms, (long long)o->n_images_in,
		(long long)o->n_images, (long long)o->n_texts, (long long)o->n_queries, (long long)o->n_dropped, (long long)o->bytes_in,
		(long long)o->bytes_out, o->seconds, o->first_image_s);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct noise noise = {0};
	fxi_session_options options = {.hooks = {.configure = configure, .log = say}, .noise = &noise.base, .stop_fd = -1};
	const char *none[] = {NULL};
	fxi_registry *registry;
	fx_error err = {0};
	int port, listener;

	if (argc < 3)
		return 2;
	signal(SIGPIPE, SIG_DFL);   /* a session must not need it ignored */
	if (fxi_registry_new(none, &err, &registry) != FX_OK)
		return 1;
	keep_some(&noise);
	options.registry = registry;
	options.hooks.arg = argv[1];
	for (int i = 3; i < argc; i++)
		set(&options, argv[i]);
	listener = open_port(&port);
	printf("%d\n", port);
	fflush(stdout);
	for (int i = 0; i < atoi(argv[2]); i++) {
		fxi_session_outcome outcome;
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			return 1;
		fxi_session_run(fd, &options, &outcome);
		close(fd);
		print(&outcome);
	}
	close(listener);
	fx_noise_clear(&noise.kept);
	fxi_registry_free(registry);
	return 0;
}

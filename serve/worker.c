/* SPDX-License-Identifier: MIT */
/*
 * worker.c - one session. Everything slow that no client is needed for (plugins, a GPU's context) is done before the client is there;
 * nothing is tidied up at the end that the end of the process does not tidy up better.
 */
#include "worker.h"

#include "config_map.h"
#include "gpu.h"
#include "io/cache.h"
#include "io/files.h"
#include "log.h"
#include "worker_link.h"
#include "xml/pipeline_file.h"

#include <json-glib/json-glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

struct worker {
	const fxi_worker_options *options;
	fxi_worker_link link;
	fxi_log *log;
	fxi_registry *registry;
	fx_math *math;      /* keeps what a backend has made: a GPU's context, the pool's threads */
	fxi_link_gpus gpus;
	uint64_t session;
	int client;
	char peer[128];
};

/* ---- what the session asks for --------------------------------------------------------------- */

static void on_log(void *arg, int level, const char *gadget, const char *text)
{
	const struct worker *w = arg;

	fxi_log_write(w->log, level, w->session, gadget, text, NULL, 0);
}

/* {"parameters": {"config": "...", "customconfig": "..."}}: a FIRE client's own wish, the later one first; NULL where it has none. */
static char *wished_name(const char *parameters)
{
	static const char *const keys[] = {"customconfig", "config"};
	JsonParser *parser = json_parser_new();
	JsonNode *root = parameters && json_parser_load_from_data(parser, parameters, -1, NULL) ? json_parser_get_root(parser) : NULL;
	JsonObject *object = root && JSON_NODE_HOLDS_OBJECT(root) ? json_node_get_object(root) : NULL;
	JsonNode *inner = object ? json_object_get_member(object, "parameters") : NULL;
	char *name = NULL;

	object = inner && JSON_NODE_HOLDS_OBJECT(inner) ? json_node_get_object(inner) : NULL;
	for (size_t i = 0; object && !name && i < G_N_ELEMENTS(keys); i++) {
		JsonNode *node = json_object_get_member(object, keys[i]);
		const char *text = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;

		if (text && *text)
			name = g_strdup(text);
	}
	g_object_unref(parser);
	return name;
}

/* What this process can write to now: stacks, heap, a driver's buffers. */
static int64_t own_data_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long long kib = 0;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "VmData: %lld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

/* Memory is the supervisor's to give. What it gave is then this process's bound, so that an estimate that was wrong ends one session. */
static int ask_memory(struct worker *w, int64_t host_bytes, int64_t gpu_bytes, fx_error *err)
{
	fxi_link_message m = {.kind = FXI_LINK_ADMIT, .u.ask = {host_bytes, gpu_bytes}};
	struct rlimit limit;
	int fd, status = fxi_worker_link_ask(&w->link, &m, -1, &fd, err);

	if (fd >= 0)
		close(fd);
	if (status != FX_OK)
		return status;
	if (m.kind != FXI_LINK_GRANTED)
		return fx_error_set(err, FX_ENOMEM, "%s", m.u.text);
	/* Data, not address space: a GPU's driver reserves terabytes of that and uses none of it. What a warm process has is not the session's. */
	limit.rlim_cur = limit.rlim_max = (rlim_t)(m.u.granted.host_bytes + own_data_bytes());
	if (m.u.granted.host_bytes > 0 && setrlimit(RLIMIT_DATA, &limit) != 0)
		fxi_log_say(w->log, FXI_WARNING, w->session, "cannot bound this session's memory");
	return FX_OK;
}

static int load(struct worker *w, const char *name, fx_error *err, fxi_pipeline **out)
{
	const fxi_worker_options *o = w->options;
	fxi_config_choice choice = {0};
	fxi_config_map *map;
	int status = fxi_config_map_open(o->map, o->pipelines, o->fallback, err, &map);

	if (status == FX_OK)
		status = fxi_config_map_find(map, name, err, &choice);
	if (status == FX_OK && choice.by_default)
		fxi_log_say(w->log, FXI_INFO, w->session, "'%s' is not known here: the site's default runs, %s", name, choice.file);
	if (status == FX_OK)
		status = ask_memory(w, choice.host_bytes, choice.gpu_bytes, err);
	if (status == FX_OK)
		status = fxi_pipeline_load(choice.file, err, out);
	for (char **s = choice.settings; status == FX_OK && s && *s; s++)
		if (**s)
			status = fxi_pipeline_set(*out, *s, err);
	if (status != FX_OK) {
		fxi_pipeline_free(*out);
		*out = NULL;
	}
	fxi_config_choice_clear(&choice);
	fxi_config_map_free(map);
	return status;
}

static int configure(void *arg, const fxi_session_request *request, fx_error *err, fxi_pipeline **out)
{
	struct worker *w = arg;
	char *wished = wished_name(request->parameters);
	int status;

	*out = NULL;
	if (request->kind == FXI_CONFIG_NAME || wished)
		status = load(w, wished ? wished : request->text, err, out);
	else if (!w->options->allow_client_pipelines)
		status = fx_error_set(err, FX_EINVAL, "this server takes no pipeline from a client, only the name of one of its own "
			"(`fornix serve --allow-client-pipelines` would take it)");
	else {
		status = ask_memory(w, -1, -1, err);
		if (status == FX_OK)
			status = fxi_pipeline_parse(request->text, strlen(request->text), "the client's configuration", ".", err, out);
	}
	g_free(wished);
	return status;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void serve(struct worker *w)
{
	const fxi_worker_options *o = w->options;
	fxi_session_gpu gpus[FXI_LINK_GPUS];
	fxi_session_options s = {
		.registry = w->registry, .hooks = {.arg = w, .configure = configure, .log = on_log},
		.noise = &w->link.noise, .peer = w->peer, .backend = o->backend, .n_threads = o->n_threads,
		.allow_client_pipelines = o->allow_client_pipelines, .gpus = gpus, .n_gpus = w->gpus.n, .cuda_driver = w->gpus.driver,
		.message_bytes = o->message_bytes, .held_bytes = o->held_bytes, .idle_s = o->idle_s, .total_s = o->total_s,
		.drain_s = o->drain_s, .stop_fd = w->link.stop_fd,
	};
	fxi_link_message m = {.kind = FXI_LINK_OUTCOME};
	fx_error err = {0};
	GDateTime *now = g_date_time_new_now_utc();
	char *time = g_date_time_format(now, "%Y%m%dT%H%M%SZ"); /* sessions are counted from 1 again by each server */
	char *folder = o->products ? g_strdup_printf("%s/%s-session-%llu", o->products, time, (unsigned long long)w->session) : NULL;

	for (int i = 0; i < w->gpus.n; i++)
		gpus[i] = (fxi_session_gpu){w->gpus.list[i].name, w->gpus.list[i].memory_bytes, -1, w->gpus.list[i].capability};
	if ((!o->cache || *o->cache) && fxi_cache_open(o->cache, o->cache_bytes, &err, &s.cache) != FX_OK)
		fxi_log_say(w->log, FXI_WARNING, w->session, "%s", err.text);
	err = (fx_error){0};
	if (folder && fxi_files_folder(folder, &err, &s.files) != FX_OK)
		fxi_log_say(w->log, FXI_WARNING, w->session, "%s", err.text);
	fxi_session_run(w->client, &s, &m.u.outcome);
	if (s.files)
		s.files->close(s.files);
	if (folder)
		rmdir(folder); /* stays where something was written */
	if (s.cache)
		s.cache->close(s.cache);
	close(w->client);
	fxi_link_send(w->link.fd, &m, -1);
	g_free(folder);
	g_free(time);
	g_date_time_unref(now);
}

/* The supervisor decides about signals that a terminal or a service manager sends to all; the log alone is stderr's. */
static void settle_in(void)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction action = {.sa_handler = SIG_IGN};

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		sigaction(ignored[i], &action, NULL);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	prctl(PR_SET_NAME, "session"); /* started through /proc, it would be called exe; threads of gadgets have names of their own */
	unsetenv("FORNIX_GADGET_PATH");
}

/* Plugins are loaded now, so that a session finds them in memory. One that is broken is the affair of a session that wants it. */
static int warm_up(struct worker *w, fx_error *err)
{
	const char *const folders[] = {w->options->gadgets, NULL};
	int status = fxi_registry_new(folders, err, &w->registry);
	char **names;

	if (status != FX_OK)
		return status;
	names = fxi_registry_names(w->registry);
	for (char **n = names; n && *n; n++) {
		const fx_gadget *gadget;
		fx_error why = {0};

		fxi_registry_find(w->registry, *n, &why, &gadget);
	}
	g_strfreev(names);
	fxi_gpus_find(&w->gpus);
	return fx_math_new(w->options->backend, w->options->n_threads, err, &w->math);
}

/* Waits for the one client: before the listening thread is there, since nothing is asked yet. False: there will be none. */
static bool await_client(struct worker *w)
{
	fxi_link_message m = {.kind = FXI_LINK_READY};
	int fd;

	m.u.gpus = w->gpus;
	if (!fxi_link_send(FXI_LINK_FD, &m, -1) || fxi_link_receive(FXI_LINK_FD, &m, &fd) != 1)
		return false;
	if (m.kind != FXI_LINK_START || fd < 0)
		return false;
	w->session = m.u.start.session;
	snprintf(w->peer, sizeof w->peer, "%s", m.u.start.peer);
	w->client = fd;
	return true;
}

int fxi_worker_run(const fxi_worker_options *options)
{
	struct worker w = {.options = options, .client = -1};
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	fx_error err = {0};
	int status;

	if (getsockname(FXI_LINK_FD, (struct sockaddr *)&address, &length) != 0 || address.ss_family != AF_UNIX)
		return 2; /* started by hand */
	settle_in();
	status = fxi_log_open(NULL, options->log_level, &err, &w.log);
	if (status == FX_OK)
		status = warm_up(&w, &err);
	if (status != FX_OK) {
		if (w.log)
			fxi_log_say(w.log, FXI_ERROR, 0, "a worker cannot start: %s", err.text);
		return 1;
	}
	if (!await_client(&w))
		return 0;
	status = fxi_worker_link_open(&w.link, FXI_LINK_FD, &err);
	if (status != FX_OK) {
		fxi_log_say(w.log, FXI_ERROR, w.session, "%s", err.text);
		return 1;
	}
	fxi_worker_link_catch_crashes(&w.link);
	serve(&w);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * serve.c - `fornix serve`: what a site may say of its server, and the defaults. The server itself is serve/supervisor.c; a session's
 * process is `fornix serve-worker`, which nobody calls by hand.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common.h"
#include "io/cache.h"
#include "serve/config_map.h"
#include "serve/supervisor.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

struct options {
	gchar **addresses;
	gint port, n_sessions, n_warm, n_waiting, n_threads;
	char *map, *pipelines, *fallback, *gadgets, *backend, *state, *cache, *products, *audit;
	gboolean allow_client_pipelines, no_cache, no_noise, verbose;
	gdouble wait_s, greet_s, idle_s, total_s, drain_client_s, drain_s, noise_hours;
	gint noise_count;
	char *memory, *gpu_memory, *session_memory, *session_gpu_memory, *message, *held, *noise_bytes;
};

/* What the texts of sizes say. */
struct sizes {
	int64_t memory, gpu_memory, session_memory, session_gpu_memory, message, held, noise;
};

static bool read_size(const char *option, const char *text, int64_t fallback, int64_t *bytes)
{
	*bytes = fallback;
	if (!text || fxi_parse_bytes(text, bytes))
		return true;
	fxi_apps_say("serve: --%s is '%s'; it takes a size such as 512M or 8G", option, text);
	return false;
}

static bool read_sizes(const struct options *o, struct sizes *s)
{
	/* a quarter is left to the system, the supervisor and the page cache */
	return read_size("memory", o->memory, fx_memory_available_bytes() / 4 * 3, &s->memory) &&
		read_size("gpu-memory", o->gpu_memory, 0, &s->gpu_memory) &&
		read_size("session-memory", o->session_memory, 0, &s->session_memory) &&
		read_size("session-gpu-memory", o->session_gpu_memory, 0, &s->session_gpu_memory) &&
		read_size("max-message", o->message, 256 * MIB, &s->message) && read_size("max-held", o->held, 256 * MIB, &s->held) &&
		read_size("noise-bytes", o->noise_bytes, 256 * MIB, &s->noise);
}

static bool check(const struct options *o)
{
	const struct {
		const char *name;
		double value, least, most;
	} ranges[] = {
		{"port", o->port, 0, 65535}, {"sessions", o->n_sessions, 1, 256}, {"warm", o->n_warm, 1, 64},
		{"waiting", o->n_waiting, 1, 1024}, {"threads", o->n_threads, 0, 4096}, {"wait", o->wait_s, 0, 86400},
		{"greet", o->greet_s, 0.1, 86400}, {"idle", o->idle_s, 0.1, 86400}, {"total", o->total_s, 1, 604800},
		{"client-drain", o->drain_client_s, 0.1, 3600}, {"drain", o->drain_s, 0, 86400}, {"noise-hours", o->noise_hours, 0, 87600},
		{"noise-count", o->noise_count, 1, 1000000},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(ranges); i++)
		if (!(ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most)) {
			fxi_apps_say("serve: --%s is %g; it takes %g to %g", ranges[i].name, ranges[i].value, ranges[i].least, ranges[i].most);
			return false;
		}
	return true;
}

static void add_text(GPtrArray *command, const char *name, const char *value)
{
	if (value) {
		g_ptr_array_add(command, g_strdup(name));
		g_ptr_array_add(command, g_strdup(value));
	}
}

static void add_number(GPtrArray *command, const char *name, double value)
{
	char text[G_ASCII_DTOSTR_BUF_SIZE];

	add_text(command, name, g_ascii_dtostr(text, (int)sizeof text, value));
}

static GPtrArray *worker_command(const struct options *o, const struct sizes *s)
{
	GPtrArray *c = g_ptr_array_new_with_free_func(g_free);

	g_ptr_array_add(c, g_strdup("fornix"));
	g_ptr_array_add(c, g_strdup("serve-worker"));
	add_text(c, "--map", o->map);
	add_text(c, "--pipelines", o->pipelines);
	add_text(c, "--default", o->fallback);
	add_text(c, "--gadgets", o->gadgets);
	add_text(c, "--backend", o->backend);
	add_text(c, "--cache", o->no_cache ? "" : o->cache ? o->cache : g_getenv("CACHE_DIRECTORY"));
	add_text(c, "--products", o->products);
	add_number(c, "--threads", o->n_threads);
	add_number(c, "--message-bytes", (double)s->message);
	add_number(c, "--held-bytes", (double)s->held);
	add_number(c, "--idle", o->idle_s);
	add_number(c, "--total", o->total_s);
	add_number(c, "--client-drain", o->drain_client_s);
	if (o->allow_client_pipelines)
		g_ptr_array_add(c, g_strdup("--allow-client-pipelines"));
	if (o->verbose)
		g_ptr_array_add(c, g_strdup("--verbose"));
	g_ptr_array_add(c, NULL);
	return c;
}

/* systemd's StateDirectory, else the user's. */
static char *noise_folder(const struct options *o)
{
	const char *state = o->state ? o->state : g_getenv("STATE_DIRECTORY");

	if (o->no_noise)
		return NULL;
	return state ? g_build_filename(state, "noise", NULL) : g_build_filename(g_get_user_state_dir(), "fornix", "noise", NULL);
}

/* A wrong map is found now, and not by the first client. */
static int check_map(const struct options *o, fx_error *err)
{
	fxi_config_map *map;
	int status = fxi_config_map_open(o->map, o->pipelines, o->fallback, err, &map);

	if (status == FX_OK)
		fxi_config_map_free(map);
	return status;
}

static int supervise(const struct options *o, const struct sizes *sizes)
{
	static const char *const loopback[] = {"127.0.0.1", "::1", NULL}, *const loopback4[] = {"127.0.0.1", NULL};
	GPtrArray *command = worker_command(o, sizes);
	char *folder = noise_folder(o);
	fx_error err = {0};
	fxi_log *log = NULL;
	fxi_supervisor_options s = {
		.addresses = o->addresses ? (const char *const *)o->addresses
			: g_file_test("/proc/net/if_inet6", G_FILE_TEST_EXISTS) ? loopback : loopback4,
		.port = o->port, .worker_command = (char *const *)command->pdata, .n_sessions = o->n_sessions, .n_warm = o->n_warm,
		.n_waiting = o->n_waiting, .wait_s = o->wait_s, .greet_s = o->greet_s, .session_s = o->total_s + o->drain_client_s,
		.client_drain_s = o->drain_client_s, .drain_s = o->drain_s, .host_bytes = sizes->memory, .gpu_bytes = sizes->gpu_memory,
		.session_host_bytes = sizes->session_memory, .session_gpu_bytes = sizes->session_gpu_memory, .noise_folder = folder,
		.noise = {.bytes = sizes->noise, .count = o->noise_count, .expiry_s = o->noise_hours * 3600}, .audit_file = o->audit,
	};
	int status = fxi_log_open(NULL, o->verbose ? FXI_DEBUG : FXI_INFO, &err, &log);

	s.log = log;
	if (status == FX_OK)
		status = check_map(o, &err);
	if (status == FX_OK) {
		/* plugins come from the install and from --gadgets; the environment is not the site's word */
		const char *path = g_getenv("FORNIX_GADGET_PATH");

		if (path && *path)
			fxi_log_say(log, FXI_WARNING, 0, "FORNIX_GADGET_PATH is not heeded by a server: --gadgets names a folder of plugins");
		g_setenv("OPENBLAS_NUM_THREADS", "1", TRUE); /* Fornix has a pool of its own: workers need no second one */
		status = fxi_supervise(&s, &err);
	}
	if (status != FX_OK)
		fxi_apps_say("serve: %s", err.text);
	fxi_log_close(log);
	g_ptr_array_free(command, TRUE);
	g_free(folder);
	return status == FX_OK ? FXI_EXIT_DONE : status == FX_EINVAL ? FXI_EXIT_USAGE : FXI_EXIT_FAILED;
}

static void clear(struct options *o)
{
	char **const texts[] = {&o->map, &o->pipelines, &o->fallback, &o->gadgets, &o->backend, &o->state, &o->cache, &o->products,
		&o->audit, &o->memory, &o->gpu_memory, &o->session_memory, &o->session_gpu_memory, &o->message, &o->held, &o->noise_bytes};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		g_free(*texts[i]);
	g_strfreev(o->addresses);
}

static bool parse(struct options *o, int *argc, char ***argv)
{
	const GOptionEntry entries[] = {
		{"bind", 'b', 0, G_OPTION_ARG_STRING_ARRAY, &o->addresses, "Address to listen on, * for all (loopback; repeatable). The protocol "
			"has neither encryption nor passwords", "ADDRESS"},
		{"port", 'p', 0, G_OPTION_ARG_INT, &o->port, "Port (9002); 0 for any that is free", "N"},
		{"sessions", 0, 0, G_OPTION_ARG_INT, &o->n_sessions, "Sessions at once (4)", "N"},
		{"warm", 0, 0, G_OPTION_ARG_INT, &o->n_warm, "Processes kept ready for the next clients (2)", "N"},
		{"map", 'm', 0, G_OPTION_ARG_FILENAME, &o->map, "Which pipeline a client's configuration name stands for (docs/scanner.md)", "FILE"},
		{"pipelines", 0, 0, G_OPTION_ARG_FILENAME, &o->pipelines, "The site's pipelines, before the shipped ones", "DIR"},
		{"default", 0, 0, G_OPTION_ARG_FILENAME, &o->fallback, "Pipeline for names that are not known (they are refused)", "PIPELINE"},
		{"allow-client-pipelines", 0, 0, G_OPTION_ARG_NONE, &o->allow_client_pipelines, "Run pipelines that clients send", NULL},
		{"gadgets", 0, 0, G_OPTION_ARG_FILENAME, &o->gadgets, "The site's own plugins, beside the install's", "DIR"},
		{"backend", 0, 0, G_OPTION_ARG_STRING, &o->backend, "Where to compute: auto, host, cuda or cuda:N (auto)", "NAME"},
		{"threads", 0, 0, G_OPTION_ARG_INT, &o->n_threads, "Threads of a session; 0 for every processor (0)", "N"},
		{"memory", 0, 0, G_OPTION_ARG_STRING, &o->memory, "What all sessions may take (3/4 of what is free)", "BYTES"},
		{"session-memory", 0, 0, G_OPTION_ARG_STRING, &o->session_memory, "What one may take (an even share)", "BYTES"},
		{"gpu-memory", 0, 0, G_OPTION_ARG_STRING, &o->gpu_memory, "Of the GPU's, all sessions (9/10 of the first GPU's)", "BYTES"},
		{"session-gpu-memory", 0, 0, G_OPTION_ARG_STRING, &o->session_gpu_memory, "Of the GPU's, one session (an even share)", "BYTES"},
		{"max-message", 0, 0, G_OPTION_ARG_STRING, &o->message, "Longest message taken from a client (256M)", "BYTES"},
		{"max-held", 0, 0, G_OPTION_ARG_STRING, &o->held, "Images held for a slow reader (256M)", "BYTES"},
		{"idle", 0, 0, G_OPTION_ARG_DOUBLE, &o->idle_s, "Longest silence of a client in a session (120)", "SECONDS"},
		{"total", 0, 0, G_OPTION_ARG_DOUBLE, &o->total_s, "Longest session (14400)", "SECONDS"},
		{"greet", 0, 0, G_OPTION_ARG_DOUBLE, &o->greet_s, "Longest silence of a new connection (60)", "SECONDS"},
		{"wait", 0, 0, G_OPTION_ARG_DOUBLE, &o->wait_s, "Longest wait for a free session or memory (30)", "SECONDS"},
		{"waiting", 0, 0, G_OPTION_ARG_INT, &o->n_waiting, "Connections that may wait (32)", "N"},
		{"client-drain", 0, 0, G_OPTION_ARG_DOUBLE, &o->drain_client_s, "After a failure, silence that ends the wait for the client's "
			"close (10)", "SECONDS"},
		{"drain", 0, 0, G_OPTION_ARG_DOUBLE, &o->drain_s, "On SIGTERM, time for sessions to end (300)", "SECONDS"},
		{"state", 0, 0, G_OPTION_ARG_FILENAME, &o->state, "Where noise is kept ($STATE_DIRECTORY, else ~/.local/state/fornix)", "DIR"},
		{"no-noise", 0, 0, G_OPTION_ARG_NONE, &o->no_noise, "Keep no noise of one scan for another", NULL},
		{"noise-hours", 0, 0, G_OPTION_ARG_DOUBLE, &o->noise_hours, "How long it is kept (48)", "HOURS"},
		{"noise-count", 0, 0, G_OPTION_ARG_INT, &o->noise_count, "Of how many scans at most (1000)", "N"},
		{"noise-bytes", 0, 0, G_OPTION_ARG_STRING, &o->noise_bytes, "And how much (256M)", "BYTES"},
		{"cache", 0, 0, G_OPTION_ARG_FILENAME, &o->cache, "What one session's trajectory cost the next has for nothing "
			"($CACHE_DIRECTORY, else ~/.cache/fornix)", "DIR"},
		{"no-cache", 0, 0, G_OPTION_ARG_NONE, &o->no_cache, "Neither read nor write it", NULL},
		{"products", 0, 0, G_OPTION_ARG_FILENAME, &o->products, "Files that pipelines write, a folder a session (none)", "DIR"},
		{"audit", 0, 0, G_OPTION_ARG_FILENAME, &o->audit, "A JSON line a session, appended (the log has it too)", "FILE"},
		{"verbose", 'v', 0, G_OPTION_ARG_NONE, &o->verbose, "Log more", NULL},
		G_OPTION_ENTRY_NULL,
	};

	return fxi_apps_options("[OPTION...]", "Serves MRD clients (Gadgetron's, FIRE's, `fornix send`): each session in a process of its own. "
		"SIGTERM lets sessions end, a second one stops them. docs/scanner.md says how a site sets it up.", entries, 0, 0, argc, argv);
}

int fxi_app_serve(int argc, char **argv)
{
	struct options o = {.port = 9002, .n_sessions = 4, .n_warm = 2, .n_waiting = 32, .wait_s = 30, .greet_s = 60, .idle_s = 120,
		.total_s = 14400, .drain_client_s = 10, .drain_s = 300, .noise_hours = 48, .noise_count = 1000};
	struct sizes sizes;
	int result = FXI_EXIT_USAGE;

	if (parse(&o, &argc, &argv)) {
		if (!o.backend)
			o.backend = g_strdup("auto");
		if (check(&o) && read_sizes(&o, &sizes))
			result = supervise(&o, &sizes);
	}
	clear(&o);
	return result;
}

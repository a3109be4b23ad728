/* SPDX-License-Identifier: MIT */
/* worker.c - `fornix serve-worker`: the process of one session, started by `fornix serve`; no verb for people. */
#include <unistd.h>

#include "apps/common.h"
#include "io/cache.h"
#include "serve/worker.h"

int fxi_app_worker(int argc, char **argv)
{
	char *map = NULL, *pipelines = NULL, *fallback = NULL, *gadgets = NULL, *backend = NULL, *cache = NULL, *products = NULL;
	gdouble message = 0, held = 0, idle = 0, total = 0, drain = 0, threads = 0;
	gboolean allow = FALSE, verbose = FALSE;
	const GOptionEntry entries[] = {
		{"map", 0, 0, G_OPTION_ARG_FILENAME, &map, NULL, NULL},
		{"pipelines", 0, 0, G_OPTION_ARG_FILENAME, &pipelines, NULL, NULL},
		{"default", 0, 0, G_OPTION_ARG_FILENAME, &fallback, NULL, NULL},
		{"gadgets", 0, 0, G_OPTION_ARG_FILENAME, &gadgets, NULL, NULL},
		{"backend", 0, 0, G_OPTION_ARG_STRING, &backend, NULL, NULL},
		{"cache", 0, 0, G_OPTION_ARG_FILENAME, &cache, NULL, NULL},
		{"products", 0, 0, G_OPTION_ARG_FILENAME, &products, NULL, NULL},
		{"threads", 0, 0, G_OPTION_ARG_DOUBLE, &threads, NULL, NULL},
		{"message-bytes", 0, 0, G_OPTION_ARG_DOUBLE, &message, NULL, NULL},
		{"held-bytes", 0, 0, G_OPTION_ARG_DOUBLE, &held, NULL, NULL},
		{"idle", 0, 0, G_OPTION_ARG_DOUBLE, &idle, NULL, NULL},
		{"total", 0, 0, G_OPTION_ARG_DOUBLE, &total, NULL, NULL},
		{"client-drain", 0, 0, G_OPTION_ARG_DOUBLE, &drain, NULL, NULL},
		{"allow-client-pipelines", 0, 0, G_OPTION_ARG_NONE, &allow, NULL, NULL},
		{"verbose", 0, 0, G_OPTION_ARG_NONE, &verbose, NULL, NULL},
		G_OPTION_ENTRY_NULL,
	};
	fxi_worker_options o = {.cache_bytes = FXI_CACHE_DEFAULT_BYTES};
	int result;

	if (!fxi_apps_options("", "Started by `fornix serve`.", entries, 0, 0, &argc, &argv))
		return FXI_EXIT_USAGE;
	o.map = map;
	o.pipelines = pipelines;
	o.fallback = fallback;
	o.gadgets = gadgets;
	o.backend = backend ? backend : "auto";
	o.cache = cache;
	o.products = products;
	o.n_threads = (int)threads;
	o.allow_client_pipelines = allow;
	o.message_bytes = (int64_t)message;
	o.held_bytes = (int64_t)held;
	o.idle_s = idle;
	o.total_s = total;
	o.drain_s = drain;
	o.log_level = verbose ? FXI_DEBUG : FXI_INFO;
	result = fxi_worker_run(&o);
	if (result == 2)
		fxi_apps_say("serve-worker is started by `fornix serve`, and by nobody else");
	_exit(result); /* its threads, and the plugins that it loaded, need no goodbye */
}

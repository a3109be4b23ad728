/* SPDX-License-Identifier: MIT */
/*
 * worker.h - the process of one session: warmed up before its client comes, told of it by the supervisor over link.h, gone after it.
 * What it needs of the outside it asks for over the link: memory, noise.
 */
#ifndef FORNIX_SERVE_WORKER_H
#define FORNIX_SERVE_WORKER_H

#include <fornix/base.h>

typedef struct fxi_worker_options {
	const char *map, *pipelines, *fallback;  /**< as fxi_config_map_open */
	const char *gadgets;      /**< the site's own plugins, or NULL */
	const char *backend;
	const char *cache;        /**< folder; NULL: the user's; "": none */
	int64_t cache_bytes;
	const char *products;     /**< folder for what no client takes; NULL: dropped */
	int n_threads;
	bool allow_client_pipelines;
	int64_t message_bytes, held_bytes;
	double idle_s, total_s, drain_s;
	int log_level;
} fxi_worker_options;

/**
 * Serves one session over the link at descriptor FXI_LINK_FD and returns 0; another number where it could not even begin. The process
 * is to _exit with it: a thread still listens to the link.
 */
int fxi_worker_run(const fxi_worker_options *options);

#endif

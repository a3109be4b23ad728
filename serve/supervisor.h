/* SPDX-License-Identifier: MIT */
/*
 * supervisor.h - the server's own process: it owns the sockets, the kept noise and the memory that sessions may take, and computes
 * nothing. Each session runs in a worker process that was started and warmed up before its client came. One thread, one poll loop.
 */
#ifndef FORNIX_SERVE_SUPERVISOR_H
#define FORNIX_SERVE_SUPERVISOR_H

#include "log.h"
#include "noise_store.h"

typedef struct fxi_supervisor_options {
	const char *const *addresses; /**< to listen on; ends with NULL */
	int port;                     /**< 0: any that is free */
	char *const *worker_command;  /**< program and arguments of a worker; ends with NULL */
	int n_sessions, n_warm;       /**< at once; kept ready beside those */
	int n_waiting;                /**< connections that may wait */
	double wait_s;                /**< for a session or for memory, before the client is told to come again */
	double greet_s;               /**< for a connection's first byte */
	double session_s;             /**< a session's longest life, as the worker was told it; the supervisor ends it a little later */
	double client_drain_s;        /**< how long a client of a crashed session may go on sending into silence */
	double drain_s;               /**< on SIGTERM, for sessions to end by themselves */
	int64_t host_bytes, gpu_bytes;                 /**< that sessions may take together; 0: no bound (gpu: what the first worker finds) */
	int64_t session_host_bytes, session_gpu_bytes; /**< of one session where its configuration does not say; 0: an even share */
	const char *noise_folder;     /**< NULL: no noise is kept */
	fxi_noise_bounds noise;
	const char *audit_file;       /**< a JSON line a session is appended; NULL: only the log has it */
	fxi_log *log;
} fxi_supervisor_options;

/**
 * Serves until SIGTERM or SIGINT, and then until its sessions have ended or were ended; those signals and SIGHUP, SIGPIPE are
 * ignored afterwards. A process has one supervisor. FX_EIO where it cannot listen, FX_EINVAL where no worker starts.
 */
int fxi_supervise(const fxi_supervisor_options *options, fx_error *err);

#endif

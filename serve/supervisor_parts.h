/* SPDX-License-Identifier: MIT */
/*
 * supervisor_parts.h - the supervisor's state and its parts: connections that wait, workers, clients of crashed sessions, the audit. All
 * tables have a fixed size from the start: nothing that clients do makes the supervisor grow.
 */
#ifndef FORNIX_SERVE_SUPERVISOR_PARTS_H
#define FORNIX_SERVE_SUPERVISOR_PARTS_H

#include "link.h"
#include "notify.h"
#include "supervisor.h"

#include <poll.h>
#include <sys/types.h>

#define FXI_PEER 128
#define FXI_LISTENERS 8
#define FXI_WARDS 64

/** A connection that has no worker yet. */
typedef struct fxi_waiting {
	int fd;                  /**< -1: free */
	char peer[FXI_PEER];
	double since;
	bool spoke;              /**< its first byte is there: since then it waits for a worker */
} fxi_waiting;

enum fxi_worker_state { FXI_WORKER_NONE = 0, FXI_WORKER_STARTING, FXI_WORKER_IDLE, FXI_WORKER_BUSY, FXI_WORKER_ENDING };

typedef struct fxi_worker {
	int state;               /**< enum fxi_worker_state */
	pid_t pid;
	int link;                /**< -1: closed */
	double since;            /**< of this state */
	bool killed, too_long, told_stop;
	/* of its session */
	uint64_t session;
	int client;              /**< the supervisor's own descriptor of it, for the case of a crash; -1: none */
	char peer[FXI_PEER];
	bool asks;               /**< waits for memory */
	double asked_at;
	int64_t ask_host, ask_gpu, host_bytes, gpu_bytes;
	int crash_signal;
	char crash_thread[16];
} fxi_worker;

/** The client of a session whose worker is gone: heard to its end, told why, let go. */
typedef struct fxi_ward {
	int fd;                  /**< -1: free */
	uint64_t session;
	char reason[FX_ERROR_TEXT];
	bool told;
	unsigned char tail[2];   /**< the last bytes it sent */
	double quiet_since, deadline;
} fxi_ward;

typedef struct fxi_supervisor {
	const fxi_supervisor_options *options;
	fxi_log *log;
	fxi_notify notify;
	fxi_noise_files *noise;
	int listeners[FXI_LISTENERS], n_listeners;
	int port;
	int signals;
	int audit;               /**< descriptor, -1: none */
	fxi_worker *workers;
	int n_workers;
	fxi_waiting *waiting;
	int n_waiting;
	fxi_ward wards[FXI_WARDS];
	struct pollfd *polled;
	int n_polled;
	uint64_t last_session;
	int64_t host_used, gpu_used;
	int64_t gpu_bytes;       /**< that sessions may take together */
	bool ready, draining, stopping;
	double drain_until, spawn_after, accept_after, watchdog_at;
	int spawn_failures;
	fx_error failure;        /**< why it gives up */
} fxi_supervisor;

/* ---- connections (waiting.c) ----------------------------------------------------------------- */

int fxi_listen(fxi_supervisor *s, fx_error *err);
void fxi_listen_end(fxi_supervisor *s);
void fxi_waiting_accept(fxi_supervisor *s, int listener);
/** Something came from it, or it went away. */
void fxi_waiting_event(fxi_supervisor *s, fxi_waiting *w);
/** Gives workers to those that wait, tells those that waited too long. */
void fxi_waiting_tend(fxi_supervisor *s, double now);

/* ---- workers (workers.c) --------------------------------------------------------------------- */

int fxi_workers_count(const fxi_supervisor *s, int state);
/** Starts what is missing. */
void fxi_workers_fill(fxi_supervisor *s, double now);
/** Gives a connection (taken over) to a worker that is ready; false where there is none, or no session is free. */
bool fxi_workers_assign(fxi_supervisor *s, fxi_waiting *w);
/** The link of a worker has something, or is closed. */
void fxi_workers_event(fxi_supervisor *s, fxi_worker *w);
/** Collects processes that ended. */
void fxi_workers_reap(fxi_supervisor *s);
/** Limits of time; memory for those that wait for it. */
void fxi_workers_tend(fxi_supervisor *s, double now);
/** Asks busy workers to end their sessions; idle ones to go. */
void fxi_workers_stop(fxi_supervisor *s, bool busy_too);

/* ---- memory (admission.c) -------------------------------------------------------------------- */

void fxi_admission_ask(fxi_supervisor *s, fxi_worker *w, int64_t host_bytes, int64_t gpu_bytes);
void fxi_admission_release(fxi_supervisor *s, fxi_worker *w);
/** Grants what has become free, in the order of asking; refuses who waited too long. */
void fxi_admission_tend(fxi_supervisor *s, double now);

/* ---- clients without a session (wards.c) ----------------------------------------------------- */

/** Takes fd over: drains it, sends reason as TEXT, then CLOSE. patient: what it still sends is heard first. */
void fxi_ward_take(fxi_supervisor *s, int fd, uint64_t session, bool patient, const char *reason);
void fxi_ward_event(fxi_supervisor *s, fxi_ward *w);
void fxi_wards_tend(fxi_supervisor *s, double now);
int fxi_wards_count(const fxi_supervisor *s);

/* ---- audit (audit.c) ------------------------------------------------------------------------- */

/** One line of a session; outcome NULL: its worker is gone, `reason` says how. */
void fxi_audit(fxi_supervisor *s, const fxi_worker *w, const fxi_session_outcome *outcome, const char *reason);

double fxi_clock_s(void);

#endif

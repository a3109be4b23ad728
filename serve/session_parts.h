/* SPDX-License-Identifier: MIT */
/* session_parts.h - the inside of a session, for its files: setting up, feeding, answering, ending. */
#ifndef FORNIX_SERVE_SESSION_PARTS_H
#define FORNIX_SERVE_SESSION_PARTS_H

#include "io/wire.h"
#include "io/wire_exit.h"
#include "serve/session.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct fxi_session {
	const fxi_session_options *options;
	fxi_session_outcome *outcome;
	int fd;
	const char *peer;
	fxi_wire_limits limits;
	fxi_wire_in *in;
	fxi_wire_out *out;
	double started_s, header_s;
	double drain_s;

	/* what the client said so far */
	int config_kind;            /* enum fxi_config_kind; 0: nothing yet */
	char *config;
	char *header_xml;
	fx_header *scan;
	char *parameters;           /* JSON of a FIRE client */
	fxi_wire_message first;     /* the first data message, read before the chain is there */
	bool closed;                /* the close message came */
	uint32_t last_readout;      /* scan_counter of the last one that came */
	atomic_llong last_ns;       /* when it came; for the latency of the first image */
	atomic_llong n_images, n_texts, n_warnings;
	atomic_llong first_image_ns; /* how long after the last readout; -1: none yet */

	fxi_pipeline *pipeline;
	fxi_wire_exit *exit;        /* while a chain runs: texts queue behind images */
	pthread_mutex_t lock;       /* guards chain and exit against the watcher and the log */
	fxi_chain *chain;
	atomic_bool stopped;        /* by the server, or by a limit of time */
	char stop_reason[128];
} fxi_session;

/** A line to the log, and from warnings on to the client as TEXT. */
void fxi_session_say(fxi_session *s, int level, const char *gadget, const char *text);
/** The log function of the session's chain; arg is the session. */
void fxi_session_log(void *arg, int level, const char *gadget, const char *text);

/**
 * Reads until it is known what to run: *run is true with config, scan and first data message in place; false where the client closed
 * before any data (s->closed).
 */
int fxi_session_set_up(fxi_session *s, fx_error *err, bool *run);
/** Asks the hook for the pipeline, and makes the chain of it. */
int fxi_session_configure(fxi_session *s, fx_error *err);
/** Answers a message that may come at any time: a query, a text. False where it is none of these. */
bool fxi_session_aside(fxi_session *s, const fxi_wire_message *m, fx_error *err, int *status);

/** The messages of the client as a source: the one that was read already, and what follows. Freed by its close. */
int fxi_session_source(fxi_session *s, fx_error *err, fxi_source **out);

/** malloc'd; NULL when memory is short. */
char *fxi_session_answer(const fxi_session *s, const char *query);

/** Whether a script is the inline configuration with which Gadgetron's client asks for kept noise; *id (malloc'd) is whose. */
bool fxi_session_asks_noise(const char *script, char **id);
/** Message 1019 with what is kept under that id, or that nothing is. */
int fxi_session_tell_noise(fxi_session *s, const char *id, fx_error *err);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * session.h - one client's connection from its first message to the last: configuration, header, data through a chain, images back
 * the moment they exist. The caller owns the process, the socket, and what outlives a session: configurations, noise, the log.
 */
#ifndef FORNIX_SERVE_SESSION_H
#define FORNIX_SERVE_SESSION_H

#include "stream/chain.h"

/** How the client said what to run. */
enum fxi_config_kind {
	FXI_CONFIG_NAME = 1, /**< message 1: "default.xml", or a FIRE client's "invertcontrast" */
	FXI_CONFIG_SCRIPT    /**< message 2: XML; only where client pipelines are allowed */
};

/** What is to be configured. All borrowed for the call. */
typedef struct fxi_session_request {
	int kind;               /**< enum fxi_config_kind */
	const char *text;       /**< the name as the client sent it (unchecked: "../" and the like are refused by who looks it up), or the XML */
	bool fire;              /**< the client is a FIRE one: unknown names mean the site's default there */
	const fx_header *scan;  /**< NULL where the client closes without a header: the pipeline is loaded and checked only */
	const char *parameters; /**< the JSON text a FIRE client sent behind the header, or NULL */
} fxi_session_request;

/** What the caller does for a session. All are called on the session's threads, `log` and `noise` on any. */
typedef struct fxi_session_hooks {
	void *arg;
	/** The pipeline for a request into *out (given away), or a refusal that names what was asked for. */
	int (*configure)(void *arg, const fxi_session_request *request, fx_error *err, fxi_pipeline **out);
	/** Answers a query that the session does not know itself (its own: versions, memory, cuda); NULL: unknown. malloc'd. May be NULL. */
	char *(*query)(void *arg, const char *name);
	/** FXI_DEBUG to FXI_ERROR; gadget is NULL for the session's own lines. May be NULL. */
	fxi_log_fn log;
} fxi_session_hooks;

/** One GPU, as the caller found it: a session that is asked about GPUs wakes none. */
typedef struct fxi_session_gpu {
	const char *name;
	int64_t memory_bytes, free_bytes;
	int capability;         /**< 90 for 9.0 */
} fxi_session_gpu;

typedef struct fxi_session_options {
	fxi_registry *registry;         /**< borrowed */
	fxi_session_hooks hooks;
	fxi_noise_store *noise;               /**< kept covariances by measurement id (services.h); NULL: none are kept */
	fxi_cache *cache;               /**< NULL: nothing is kept across sessions */
	fxi_files *files;               /**< takes products that no client takes (NIfTI, PNG, tracts); NULL: they are dropped, with a note in the log */
	const char *peer;               /**< "192.168.2.1:4711", for messages */
	const char *backend;            /**< as fxi_run_options */
	int n_threads;
	int64_t queue_bytes;
	bool allow_client_pipelines;    /**< message 2; the noise summary that Gadgetron's client asks for is always answered */
	const fxi_session_gpu *gpus;    /**< for cuda queries */
	int n_gpus;
	int cuda_driver, cuda_runtime;  /**< 12040 for 12.4; 0: none */

	/* Limits; 0: the default. */
	int64_t message_bytes;          /**< 256 MiB */
	int64_t held_bytes;             /**< images that wait for a slow reader: 256 MiB; then the chain waits, then the client's data */
	double idle_s;                  /**< 120: for the client to send, or to take, one byte */
	double total_s;                 /**< 4 h */
	double drain_s;                 /**< 10: after a failure, silence that ends the wait for the client's close */
	int stop_fd;                    /**< readable: end now, the client is told why (drain of the server); -1: none */
} fxi_session_options;

/** How it ended. */
enum fxi_session_end {
	FXI_SESSION_DONE = 1,  /**< a scan from header to close */
	FXI_SESSION_ASKED,     /**< no scan: queries, a noise summary, or a configuration that was checked only */
	FXI_SESSION_REFUSED,   /**< a wrong configuration, header or message order: nothing was run */
	FXI_SESSION_FAILED,    /**< the chain failed */
	FXI_SESSION_CUT,       /**< the client went away, or broke the protocol, while the scan ran */
	FXI_SESSION_STOPPED    /**< stop_fd, or a limit of time */
};

/** For the audit line. */
typedef struct fxi_session_outcome {
	int end;                   /**< enum fxi_session_end */
	int status;                /**< FX_OK, or the failure's */
	char error[FX_ERROR_TEXT]; /**< what the client was told; "" where all went well */
	char config[256];          /**< name asked for, or "(script)" */
	char pipeline[256];        /**< the file behind it, as the hook called it */
	char measurement[128];     /**< measurement id of the header, or "" */
	bool fire;
	bool closed;               /**< the client's close message came: it heard us out */
	int64_t n_acquisitions, n_waveforms, n_images_in, n_texts_in, n_queries;
	int64_t n_images, n_texts; /**< sent */
	int64_t n_dropped;         /**< messages that left the chain and that no client takes */
	int64_t n_warnings;
	int64_t bytes_in, bytes_out;
	double seconds;            /**< from the first byte waited for to the end */
	double scan_s;             /**< from the header to the last message of the client */
	double first_image_s;      /**< from the last readout received before the first image to that image; negative: no image */
} fxi_session_outcome;

/** "done", "refused" and the like. */
const char *fxi_session_end_name(int end);

/**
 * Serves the client on fd (a connected socket, which stays the caller's to close; both directions were shut when this returns) until it
 * is heard out. Returns outcome->status. Never exits, never raises SIGPIPE; a crash is the caller's to contain. Blocks; uses threads of
 * its own, which have ended when it returns.
 */
int fxi_session_run(int fd, const fxi_session_options *options, fxi_session_outcome *outcome);

#endif

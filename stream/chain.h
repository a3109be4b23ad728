/* SPDX-License-Identifier: MIT */
/*
 * chain.h - a pipeline made live: plugins loaded, properties set, kinds checked, one thread a gadget.
 */
#ifndef FORNIX_STREAM_CHAIN_H
#define FORNIX_STREAM_CHAIN_H

#include "pipeline.h"
#include "registry.h"
#include "services.h"
#include "source.h"

typedef struct fxi_chain fxi_chain;

/**
 * Loads every plugin of the pipeline, parses its properties, and checks that the kinds meet, starting from
 * `input_kinds` (what the source gives). Errors name file, line and the nearest known name. Needs no scan.
 */
int fxi_chain_new(const fxi_pipeline *p, fxi_registry *registry, unsigned input_kinds, fx_error *err, fxi_chain **out);
void fxi_chain_free(fxi_chain *c);

typedef struct fxi_run_options {
	const char *backend;      /**< "auto", "host" */
	int n_threads;            /**< 0: every processor */
	int64_t queue_bytes;      /**< bound of each queue; 0: the default (64 MiB) */
	/** Called from the feeding thread now and then; progress in 0..1, negative where unknown. May be NULL. */
	void (*progress)(void *arg, double progress, int64_t n_messages);
	void *progress_arg;
	/** Takes what leaves the last gadget (owns it). NULL: dropped. */
	int (*output)(void *arg, fx_msg *msg, fx_error *err);
	void *output_arg;
} fxi_run_options;

/**
 * Runs the source through the chain to its end on the calling thread and the gadgets' own. Returns the first
 * failure's status with its text in *err, after every thread has stopped. A chain runs once.
 */
int fxi_chain_run(fxi_chain *c, const fx_header *header, fxi_source *source, const fxi_services *services,
	const fxi_run_options *options, fx_error *err);
/** Asks a running chain to stop; from any thread or signal handler. */
void fxi_chain_stop(fxi_chain *c);

/** What run.json says of a gadget, for whoever writes it. */
typedef struct fxi_record fxi_record;   /* an ordered list of keys and values, record.h */
typedef struct fxi_stage_report {
	const char *gadget;
	int64_t n_in, n_out;
	double busy_s, open_s;        /**< seconds inside process/flush, and inside open */
	double waiting_s;             /**< blocked on a full queue downstream */
	int64_t queue_peak_bytes;
	const fxi_record *record;
	int64_t n_properties;
	char **property_names, **property_values;  /**< as text, defaults included */
	int64_t n_warnings;
	char **warnings;
} fxi_stage_report;
int64_t fxi_chain_n_stages(const fxi_chain *c);
void fxi_chain_stage(const fxi_chain *c, int64_t i, fxi_stage_report *out);

#endif

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
 * `input_kinds` (what the source gives). Errors name file, line and the nearest known name. Needs no scan. An input without
 * acquisitions may enter part-way: gadgets in front of the first that it gives work stand idle. Their properties are
 * parsed as all are, but they are never opened.
 */
int fxi_chain_new(const fxi_pipeline *p, fxi_registry *registry, unsigned input_kinds, fx_error *err, fxi_chain **out);
void fxi_chain_free(fxi_chain *c);

typedef struct fxi_run_options {
	const char *backend;      /**< what fx_backend_choose takes; NULL: "auto" */
	int n_threads;            /**< 0: every processor */
	int64_t queue_bytes;      /**< bound of each queue; 0: the default (16 MiB) */
	/** Called on the thread of fxi_chain_run ten times a second at most; progress of reading in 0..1, negative
	    where unknown. May be NULL. */
	void (*progress)(void *arg, double progress, int64_t n_messages);
	void *progress_arg;
	/** Takes what leaves the last gadget (owns it), on that gadget's thread. NULL: dropped. */
	int (*output)(void *arg, fx_msg *msg, fx_error *err);
	void *output_arg;
} fxi_run_options;

/**
 * Runs the source through the chain to its end: the calling thread feeds, each gadget has a thread of its own on which
 * it is opened (one after the other, before anything is fed), fed, flushed and closed. Header and source are
 * borrowed; services and options may be NULL. Returns the first failure's status with its text in *err ("gadget:
 * what happened"), after every thread has ended; FX_ECANCELED where it was stopped before every gadget had flushed.
 * What is being read when something fails is waited for: a source that can wait long has an `interrupt`. A chain
 * runs once.
 */
int fxi_chain_run(fxi_chain *c, const fx_header *header, fxi_source *source, const fxi_services *services,
	const fxi_run_options *options, fx_error *err);
/** Asks a chain to stop, before or while it runs; from any thread or signal handler, until it is freed. */
void fxi_chain_stop(fxi_chain *c);

/** What run.json says of a gadget, for whoever writes it. Valid until the chain is freed; not while it runs. */
typedef struct fxi_record fxi_record;   /* an ordered list of keys and values, record.h */
typedef struct fxi_stage_report {
	const char *gadget;           /**< its name, name#2 for the second of several */
	const char *place;            /**< where it computed: "host", "cuda:0"; "" where it was never opened */
	bool idle;                    /**< the input enters behind it: it was never opened */
	int64_t n_in, n_out;          /**< messages taken and given; what passes through is in neither */
	double busy_s, open_s;        /**< seconds inside process and flush (without waiting_s), and inside open */
	double waiting_s;             /**< blocked on a full queue downstream */
	int64_t queue_peak_bytes;     /**< of the queue in front of it */
	const fxi_record *record;
	int64_t n_properties;
	char **property_names, **property_values;  /**< as text, defaults included; known before the run */
	int64_t n_warnings;
	char **warnings;
} fxi_stage_report;
/** Where the run computes, once it ran. */
const fx_backend_choice *fxi_chain_backend(const fxi_chain *c);
int64_t fxi_chain_n_stages(const fxi_chain *c);
void fxi_chain_stage(const fxi_chain *c, int64_t i, fxi_stage_report *out);

#endif

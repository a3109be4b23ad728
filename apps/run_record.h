/* SPDX-License-Identifier: MIT */
/* run_record.h - run.json: what was run, on what, with which settings, and what came of it. */
#ifndef FORNIX_APPS_RUN_RECORD_H
#define FORNIX_APPS_RUN_RECORD_H

#include "stream/chain.h"

/** Everything is borrowed. */
typedef struct fxi_run_record {
	const char *status;             /**< "done", "failed", "stopped" */
	const char *error;              /**< or NULL */
	const char *started;            /**< ISO 8601, UTC */
	double seconds;
	const fxi_pipeline *pipeline;
	char *const *assignments;       /**< the --set texts; NULL for none */
	const char *input, *group;      /**< as the user named them; group may be NULL */
	const fxi_source *source;
	const char *backend_asked;      /**< as the user named it */
	const fx_backend_choice *backend;
	int n_threads;
	const fxi_chain *chain;
	const char *const *products;
	int64_t n_products;
} fxi_run_record;

/** Writes DIR/run.json aside and renames it into place. FX_EIO with the reason. */
int fxi_run_record_write(const fxi_run_record *r, const char *dir, fx_error *err);

#endif

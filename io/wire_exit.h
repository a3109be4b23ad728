/* SPDX-License-Identifier: MIT */
/*
 * wire_exit.h - where a run's images leave for whoever is connected, the moment they exist. A pipeline that has <write_mrd/> gives its
 * images there, also in the middle of a chain that goes on to use them; any other gives what leaves its end. So the pipelines that write
 * files are the ones that serve a scanner.
 */
#ifndef FORNIX_IO_WIRE_EXIT_H
#define FORNIX_IO_WIRE_EXIT_H

#include "../stream/chain.h"
#include "wire.h"

typedef struct fxi_wire_exit fxi_wire_exit;

typedef struct fxi_wire_exit_options {
	int64_t held_bytes;     /**< may wait for a slow reader before the chain has to; 0: 256 MiB */
	bool nul;               /**< texts count their NUL, as FIRE's clients expect */
	bool raw;               /**< readouts and waveforms that leave the chain go out too */
	fxi_files *other;       /**< takes products of other formats; NULL: they are dropped */
	/** Told of each message that went out, on the sending thread. May be NULL. */
	void (*sent)(void *arg, fx_msg *msg);
	void *sent_arg;
} fxi_wire_exit_options;

/** A thread that sends what it is given onto `out` (borrowed), for a run of that pipeline (looked at here only). */
int fxi_wire_exit_new(fxi_wire_out *out, const fxi_pipeline *pipeline, const fxi_wire_exit_options *options, fx_error *err,
	fxi_wire_exit **exit);
/** After fxi_wire_exit_finish, or without it: then what waits is dropped. */
void fxi_wire_exit_free(fxi_wire_exit *e);
/** For fxi_services.files: products as MRD are sent. Owned by the exit. */
fxi_files *fxi_wire_exit_files(fxi_wire_exit *e);
/** For fxi_run_options.output, with the exit as its argument. */
int fxi_wire_exit_output(void *exit, fx_msg *msg, fx_error *err);
/** Sends a message (consumed) behind those before it; from any thread. Fails as sending failed. */
int fxi_wire_exit_put(fxi_wire_exit *e, fx_msg *msg, fx_error *err);
/** Puts fail from here on, also those that wait; what was not sent is dropped. From any thread. */
void fxi_wire_exit_abort(fxi_wire_exit *e);
/** Waits until all went out. */
int fxi_wire_exit_finish(fxi_wire_exit *e, fx_error *err);
/** Messages that left the chain's end and are not for the wire. */
int64_t fxi_wire_exit_dropped(const fxi_wire_exit *e);

#endif

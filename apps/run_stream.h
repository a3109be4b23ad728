/* SPDX-License-Identifier: MIT */
/* run_stream.h - `fornix run ... -o -`: the run's images as an MRD stream on standard output, for the next program of a pipe. */
#ifndef FORNIX_APPS_RUN_STREAM_H
#define FORNIX_APPS_RUN_STREAM_H

#include "io/wire_exit.h"

typedef struct fxi_run_stream {
	fxi_wire_out *out;
	fxi_wire_exit *exit;
} fxi_run_stream;

/** Puts the scan's header onto standard output. FX_EINVAL where that is a terminal. Close it also after a failure. */
int fxi_run_stream_open(fxi_run_stream *s, const fxi_pipeline *pipeline, const char *header_xml, fx_error *err);
/**
 * Waits until all is written, then ends the stream: with a close message where the run went well; else with a text that says what went wrong,
 * and without the close, so that the next program does not take what it got for a whole scan. Returns what writing came to.
 */
int fxi_run_stream_close(fxi_run_stream *s, const fx_error *failure, fx_error *err);

#endif

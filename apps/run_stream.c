/* SPDX-License-Identifier: MIT */
/* run_stream.c - see run_stream.h. */
#include "apps/run_stream.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int fxi_run_stream_open(fxi_run_stream *s, const fxi_pipeline *pipeline, const char *header_xml, fx_error *err)
{
	const fxi_wire_exit_options options = {.raw = true};
	int status;

	if (isatty(STDOUT_FILENO))
		return fx_error_set(err, FX_EINVAL, "-o - writes a stream of bytes, and standard output is a terminal: pipe it on, or name a "
			"folder");
	signal(SIGPIPE, SIG_IGN); /* a reader that is gone is told as an error */
	status = fxi_wire_out_new(STDOUT_FILENO, "standard output", NULL, err, &s->out);
	if (status == FX_OK)
		status = fxi_wire_send_text(s->out, FXI_MRD_HEADER, header_xml, false, err);
	if (status == FX_OK)
		status = fxi_wire_exit_new(s->out, pipeline, &options, err, &s->exit);
	return status;
}

int fxi_run_stream_close(fxi_run_stream *s, const fx_error *failure, fx_error *err)
{
	int status = s->exit ? fxi_wire_exit_finish(s->exit, err) : FX_OK;

	if (s->exit && status == FX_OK && failure->status == FX_OK) {
		status = fxi_wire_send_close(s->out, err);
	} else if (s->exit && status == FX_OK) {
		char text[FX_ERROR_TEXT + 16];

		snprintf(text, sizeof text, "ERROR: %s", failure->text);
		fxi_wire_send_text(s->out, FXI_MRD_TEXT, text, false, NULL);
	}
	fxi_wire_exit_free(s->exit);
	fxi_wire_out_free(s->out);
	*s = (fxi_run_stream){0};
	return status;
}

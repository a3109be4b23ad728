/* SPDX-License-Identifier: MIT */
/* session_source.c - what a client sends as a run's source, counted as it comes. */
#include "serve/session_parts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct source {
	fxi_source base;
	fxi_session *session;
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void count(fxi_session *s, fx_msg *msg)
{
	fxi_session_outcome *o = s->outcome;

	if (fx_msg_acquisition(msg)) {
		o->n_acquisitions++;
		s->last_readout = fx_msg_acquisition(msg)->head.scan_counter;
		atomic_store(&s->last_ns, now_ns());
	} else if (fx_msg_waveform(msg)) {
		o->n_waveforms++;
	} else if (fx_msg_image(msg)) {
		o->n_images_in++;
		atomic_store(&s->last_ns, now_ns());
	}
}

/* A client that fell silent, or is gone, ends its scan as a lost connection does; one that breaks the protocol fails it. */
static int broken(struct source *source, int status, fx_error *err)
{
	int end = fxi_wire_end(source->session->in);

	source->base.cut_short = end == FXI_WIRE_CUT || end == FXI_WIRE_SILENT;
	if (source->base.cut_short)
		err->status = status = FX_EDATA;
	return status;
}

static int next(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct source *source = (struct source *)self;
	fxi_session *s = source->session;
	fxi_wire_message m = s->first;
	int status = FX_OK;

	*out = NULL;
	s->first = (fxi_wire_message){0};
	while (!s->closed && status == FX_OK) {
		if (m.id == 0)
			status = fxi_wire_read(s->in, &m, err);
		if (status != FX_OK)
			return broken(source, status, err);
		if (m.data) {
			count(s, m.data);
			*out = m.data;
			return FX_OK;
		}
		if (m.id == FXI_MRD_CLOSE)
			s->closed = true;
		else if (m.id == FXI_MRD_HEADER)
			status = fx_error_set(err, FX_EDATA, "a second MRD header came; only one is allowed");
		else if (m.id == FXI_MRD_CONFIG_FILE || m.id == FXI_MRD_CONFIG_TEXT)
			status = fx_error_set(err, FX_EDATA, "a second configuration came; only one is allowed");
		else
			fxi_session_aside(s, &m, err, &status);
		fxi_wire_message_clear(&m);
	}
	return status;
}

static bool ready(const fxi_source *self)
{
	const fxi_session *s = ((const struct source *)self)->session;

	return !s->closed && fxi_wire_ready(s->in);
}

static void interrupt(fxi_source *self)
{
	fxi_wire_interrupt(((struct source *)self)->session->in);
}

static void close_source(fxi_source *self)
{
	free(self);
}

int fxi_session_source(fxi_session *s, fx_error *err, fxi_source **out)
{
	struct source *source = calloc(1, sizeof *source);

	*out = NULL;
	if (!source)
		return fx_error_set(err, FX_ENOMEM, "out of memory for a session");
	source->base.format = "MRD stream";
	source->base.header_xml = s->header_xml;
	source->base.next = next;
	source->base.ready = ready;
	source->base.interrupt = interrupt;
	source->base.close = close_source;
	source->session = s;
	*out = &source->base;
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/* mrd_stream_read.c - an MRD stream from a file or a pipe as a run's source. */
#include "digest.h"
#include "input.h"
#include "wire.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stream {
	fxi_source base;
	fxi_wire_in *in;
	int fd;
	bool own_fd, ended;
	GQueue ahead;    /* messages read before they were asked for */
	int64_t total;
};

static int read_message(struct stream *s, fxi_wire_message *m, fx_error *err)
{
	int status = fxi_wire_read(s->in, m, err);

	s->base.cut_short = status == FX_EDATA && fxi_wire_end(s->in) == FXI_WIRE_CUT;
	return status;
}

/* Wrong order is told with the place, as wrong bytes are. */
static int misplaced(const fxi_wire_message *m, const char *name, const char *why, fx_error *err)
{
	return fx_error_set(err, FX_EDATA, "%s, %s message at byte %lld: %s", name, fxi_wire_id_name(m->id), (long long)m->offset,
		why);
}

static int next_message(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct stream *s = (struct stream *)self;
	int status = FX_OK;

	*out = g_queue_pop_head(&s->ahead);
	while (status == FX_OK && !*out && !s->ended) {
		fxi_wire_message m;

		status = read_message(s, &m, err);
		if (status != FX_OK)
			return status;
		if (m.id == FXI_MRD_CLOSE) {
			s->ended = true;
		} else if (m.id == FXI_MRD_HEADER) {
			status = misplaced(&m, fxi_wire_in_name(s->in), "a second header; only one is allowed", err);
		} else if (m.id == FXI_MRD_TEXT) {
			*out = fx_msg_new_text(m.text);
			if (!*out)
				status = misplaced(&m, fxi_wire_in_name(s->in), "out of memory", err);
		} else {
			*out = m.data;   /* NULL: what to run, queries and the like say nothing to a replay */
			m.data = NULL;
		}
		fxi_wire_message_clear(&m);
	}
	return status;
}

/* Reads up to the header; what comes in front of it is for a server. */
static int read_header(struct stream *s, fx_error *err)
{
	fxi_wire_message m;
	int status;

	fxi_wire_allow_data(s->in, false);
	while ((status = read_message(s, &m, err)) == FX_OK) {
		bool found = m.id == FXI_MRD_HEADER;

		if (found) {
			fxi_wire_allow_data(s->in, true);
			s->base.header_xml = m.text;
			m.text = NULL;
		} else if (m.id == FXI_MRD_CLOSE) {
			status = misplaced(&m, fxi_wire_in_name(s->in), "the stream ends without a header: it holds no acquisitions", err);
		}
		fxi_wire_message_clear(&m);
		if (found || status != FX_OK)
			return status;
	}
	return status;
}

static bool ready(const fxi_source *self)
{
	const struct stream *s = (const struct stream *)self;

	return !s->ended && (s->ahead.length > 0 || fxi_wire_ready(s->in));
}

static void interrupt(fxi_source *self)
{
	fxi_wire_interrupt(((struct stream *)self)->in);
}

static double progress(const fxi_source *self)
{
	const struct stream *s = (const struct stream *)self;

	if (s->ended)
		return 1;
	return s->total > 0 ? (double)fxi_wire_in_bytes(s->in) / (double)s->total : -1;
}

static void drop(void *msg)
{
	fx_drop(msg);
}

static void close_stream(fxi_source *self)
{
	struct stream *s = (struct stream *)self;

	g_queue_clear_full(&s->ahead, drop);
	fxi_wire_in_free(s->in);
	if (s->own_fd)
		close(s->fd);
	free(s->base.header_xml);
	free(s->base.digest);
	free(s);
}

int fxi_mrd_stream_open(int fd, bool own_fd, const char *name, const void *prefix, size_t n_prefix, int64_t total_bytes,
	fx_error *err, fxi_source **out)
{
	struct stream *s = calloc(1, sizeof *s);
	int status;

	*out = NULL;
	if (!s)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", name);
	g_queue_init(&s->ahead);
	s->base.format = "MRD stream";
	s->base.next = next_message;
	s->base.ready = ready;
	s->base.interrupt = interrupt;
	s->base.progress = progress;
	s->base.close = close_stream;
	s->fd = fd;
	s->total = total_bytes;
	status = fxi_wire_in_new(fd, name, prefix, n_prefix, total_bytes, NULL, err, &s->in);
	if (status == FX_OK)
		status = read_header(s, err);
	if (status != FX_OK) {
		close_stream(&s->base);   /* own_fd is not set yet: on failure the descriptor stays the caller's */
		return status;
	}
	s->own_fd = own_fd;
	if (total_bytes > 0)
		s->base.digest = fxi_file_digest(name);
	*out = &s->base;
	return FX_OK;
}

int fxi_mrd_stream_kinds(fxi_source *source, fx_error *err, unsigned *kinds)
{
	struct stream *s = (struct stream *)source;
	int status = FX_OK;

	*kinds = FX_ACQUISITION;
	if (source->next != next_message)
		return FX_OK;
	*kinds = 0;
	/* Texts may come in front of the data; they keep their place. */
	while (status == FX_OK && !s->ended && !*kinds) {
		GQueue found = s->ahead;
		fx_msg *msg = NULL;

		g_queue_init(&s->ahead);
		status = next_message(source, &msg, err);
		s->ahead = found;
		if (msg)
			g_queue_push_tail(&s->ahead, msg);
		if (msg && !fx_msg_text(msg))
			*kinds = fx_msg_image(msg) ? FX_IMAGE : FX_ACQUISITION;
	}
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * mrd_stream_read.c - an MRD stream from a file or a pipe as messages. Nothing is believed before it is checked: every
 * length is bounded, by MRD's own limits, by what the file has left and by memory, before anything is allocated.
 */
#include "digest.h"
#include "input.h"
#include "meta.h"
#include "mrd_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)256 << 10)
#define TEXT_MAX_BYTES ((uint64_t)16 << 20)
#define MAX_CHANNELS 1024   /* what MRD's channel mask has room for */

struct stream {
	fxi_source base;
	int fd;
	bool own_fd, ended;
	char *name;
	int64_t total;               /* 0: unknown */
	int64_t offset;              /* of the next byte to be handed out */
	int64_t message_offset;      /* of the message being read */
	int message_id;
	size_t at, have;
	unsigned char buffer[BUFFER_BYTES];
};

static const char *id_name(int id)
{
	switch (id) {
	case FXI_MRD_CONFIG_FILE:
		return "configuration name";
	case FXI_MRD_CONFIG_TEXT:
		return "configuration";
	case FXI_MRD_HEADER:
		return "MRD header";
	case FXI_MRD_CLOSE:
		return "close";
	case FXI_MRD_TEXT:
		return "text";
	case FXI_MRD_QUERY:
		return "query";
	case FXI_MRD_RESPONSE:
		return "response";
	case 8:
		return "error";
	case FXI_MRD_ACQUISITION:
		return "acquisition";
	case 1018:
		return "DICOM";
	case FXI_MRD_DEPENDENCY:
		return "dependency query";
	case FXI_MRD_IMAGE:
		return "image";
	case 1023:
		return "reconstruction data";
	case 1024:
		return "image array";
	case FXI_MRD_WAVEFORM:
		return "waveform";
	case 1030:
		return "array";
	case 1050:
		return "bucket";
	case 1051:
		return "bundle";
	default:
		return NULL;
	}
}

/* "NAME, acquisition message at byte 1234" */
static int bad(const struct stream *s, int status, fx_error *err, const char *fmt, ...) FX_PRINTF(4, 5);
static int bad(const struct stream *s, int status, fx_error *err, const char *fmt, ...)
{
	char text[FX_ERROR_TEXT];
	const char *kind = id_name(s->message_id);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return fx_error_set(err, status, "%s, %s message at byte %lld: %s", s->name, kind ? kind : "unknown",
		(long long)s->message_offset, text);
}

/* One read(2); *n is 0 at the end of the stream. */
static int read_some(struct stream *s, void *to, size_t bytes, size_t *n, fx_error *err)
{
	ssize_t got = read(s->fd, to, bytes);

	*n = got > 0 ? (size_t)got : 0;
	if (got >= 0)
		return FX_OK;
	/* Only the handlers that stop a run let a read end early. */
	if (errno == EINTR)
		return fx_error_set(err, FX_ECANCELED, "stopped while waiting for %s", s->name);
	return fx_error_set(err, FX_EIO, "cannot read %s: %s", s->name, strerror(errno));
}

/* Up to `bytes` into `to` (dropped where NULL); fewer only at the end. Large reads bypass the buffer. */
static int read_up_to(struct stream *s, void *to, size_t bytes, size_t *done, fx_error *err)
{
	unsigned char *p = to;
	int status = FX_OK;

	*done = 0;
	while (*done < bytes && status == FX_OK) {
		size_t n = s->have - s->at;

		if (n == 0 && p && bytes - *done >= BUFFER_BYTES) {
			status = read_some(s, p + *done, bytes - *done, &n, err);
			if (n == 0)
				break;
		} else {
			if (n == 0) {
				s->at = s->have = 0;
				status = read_some(s, s->buffer, BUFFER_BYTES, &s->have, err);
				n = s->have;
				if (n == 0)
					break;
			}
			if (n > bytes - *done)
				n = bytes - *done;
			if (p)
				memcpy(p + *done, s->buffer + s->at, n);
			s->at += n;
		}
		*done += n;
		s->offset += (int64_t)n;
	}
	return status;
}

static int need(struct stream *s, void *to, uint64_t bytes, fx_error *err)
{
	size_t done = 0;
	int status = read_up_to(s, to, (size_t)bytes, &done, err);

	if (status == FX_OK && done < bytes) {
		s->base.cut_short = true;
		return bad(s, FX_EDATA, err, "the stream ends inside it, at byte %lld: it was cut short",
			(long long)s->offset);
	}
	return status;
}

/* Before anything of that size is allocated. */
static int check_room(const struct stream *s, int64_t bytes, fx_error *err)
{
	if (s->total > 0 && bytes > s->total - s->offset)
		return bad(s, FX_EDATA, err, "it should hold %lld more bytes but the file has only %lld left: it was cut short "
			"or is damaged", (long long)bytes, (long long)(s->total - s->offset));
	if (bytes > (int64_t)64 << 20 && bytes > fx_memory_available_bytes())
		return bad(s, FX_ENOMEM, err, "it needs %lld MiB of memory, %lld MiB are available", (long long)(bytes >> 20),
			(long long)(fx_memory_available_bytes() >> 20));
	return FX_OK;
}

/* A length field of 4 or 8 bytes and as many bytes of text. *out is NULL where the text is to be skipped. */
static int read_text(struct stream *s, size_t length_bytes, fx_error *err, char **out)
{
	unsigned char field[8] = {0};
	uint64_t length = 0;
	int status = need(s, field, length_bytes, err);

	if (status != FX_OK)
		return status;
	for (int i = 7; i >= 0; i--)
		length = length << 8 | field[i];
	if (length > TEXT_MAX_BYTES)
		return bad(s, FX_EDATA, err, "it announces %llu bytes of text; 16 MiB at most are accepted",
			(unsigned long long)length);
	status = check_room(s, (int64_t)length, err);
	if (status != FX_OK || !out)
		return status != FX_OK ? status : need(s, NULL, length, err);
	*out = calloc((size_t)length + 1, 1);
	if (!*out)
		return bad(s, FX_ENOMEM, err, "out of memory for %llu bytes of text", (unsigned long long)length);
	status = need(s, *out, length, err);
	if (status != FX_OK) {
		free(*out);
		*out = NULL;
	}
	return status;
}

static int read_array(struct stream *s, int type, int n_dims, const int64_t *dims, fx_error *err, fx_array **out)
{
	int status = fx_array_new(type, n_dims, dims, out);

	if (status != FX_OK)
		return bad(s, FX_ENOMEM, err, "out of memory for its data");
	return (*out)->bytes > 0 ? need(s, (*out)->data, (uint64_t)(*out)->bytes, err) : FX_OK;
}

static int read_acquisition(struct stream *s, fx_error *err, fx_msg **out)
{
	const uint64_t compressed = 15ull << (ISMRMRD_ACQ_COMPRESSION1 - 1);
	fx_acquisition *a = NULL;
	int64_t samples, channels, dims;
	int status;

	*out = fx_msg_new(FX_ACQUISITION);
	if (!*out)
		return bad(s, FX_ENOMEM, err, "out of memory");
	a = fx_msg_acquisition(*out);
	status = need(s, &a->head, sizeof a->head, err);
	if (status != FX_OK)
		return status;
	samples = a->head.number_of_samples;
	channels = a->head.active_channels;
	dims = a->head.trajectory_dimensions;
	if (a->head.flags & compressed)
		return bad(s, FX_ENOTSUP, err, "its samples are compressed; send them uncompressed");
	if (channels > MAX_CHANNELS)
		return bad(s, FX_EDATA, err, "active_channels is %lld, MRD allows %d: the stream is damaged",
			(long long)channels, MAX_CHANNELS);
	status = check_room(s, samples * (8 * channels + 4 * dims), err);
	if (status == FX_OK && dims > 0)
		status = read_array(s, FX_F32, 2, (int64_t[]){dims, samples}, err, &a->traj);
	if (status == FX_OK)
		status = read_array(s, FX_CF32, 2, (int64_t[]){samples, channels}, err, &a->data);
	return status;
}

static int read_waveform(struct stream *s, fx_error *err, fx_msg **out)
{
	fx_waveform *w;
	int64_t samples, channels;
	int status;

	*out = fx_msg_new(FX_WAVEFORM);
	if (!*out)
		return bad(s, FX_ENOMEM, err, "out of memory");
	w = fx_msg_waveform(*out);
	status = need(s, &w->head, sizeof w->head, err);
	if (status != FX_OK)
		return status;
	samples = w->head.number_of_samples;
	channels = w->head.channels;
	status = check_room(s, 4 * samples * channels, err);
	if (status == FX_OK)
		status = read_array(s, FX_U32, 2, (int64_t[]){samples, channels}, err, &w->data);
	return status;
}

static int image_bytes(const struct stream *s, const ISMRMRD_ImageHeader *h, fx_error *err, int64_t *bytes)
{
	int64_t n = (int64_t)fx_type_size(fxi_mrd_to_type(h->data_type));

	if (n == 0)
		return bad(s, FX_EDATA, err, "data_type is %d, MRD knows 1 to 8", h->data_type);
	for (int i = 0; i < 3; i++)
		if (!fx_mul_size(n, h->matrix_size[i], &n))
			n = INT64_MAX;
	if (!fx_mul_size(n, h->channels, &n))
		n = INT64_MAX;
	*bytes = n;
	return FX_OK;
}

static int read_image(struct stream *s, fx_error *err, fx_msg **out)
{
	fx_image *image;
	char *meta = NULL;
	int64_t bytes = 0;
	int status;

	*out = fx_msg_new(FX_IMAGE);
	if (!*out)
		return bad(s, FX_ENOMEM, err, "out of memory");
	image = fx_msg_image(*out);
	status = need(s, &image->head, sizeof image->head, err);
	if (status == FX_OK)
		status = read_text(s, 8, err, &meta);
	if (status == FX_OK)
		status = fxi_meta_parse(meta, strlen(meta), image, err);
	free(meta);
	if (status == FX_OK)
		status = image_bytes(s, &image->head, err, &bytes);
	if (status == FX_OK)
		status = check_room(s, bytes, err);
	if (status == FX_OK)
		status = read_array(s, fxi_mrd_to_type(image->head.data_type), 4, (int64_t[]){image->head.matrix_size[0],
			image->head.matrix_size[1], image->head.matrix_size[2], image->head.channels}, err, &image->data);
	return status;
}

static int read_text_message(struct stream *s, fx_error *err, fx_msg **out)
{
	char *text = NULL;
	int status = read_text(s, 4, err, &text);

	if (status == FX_OK) {
		*out = fx_msg_new_text(text);
		if (!*out)
			status = bad(s, FX_ENOMEM, err, "out of memory");
	}
	free(text);
	return status;
}

/* The next id; FX_EDATA at the end of a stream that no close message ended. */
static int read_id(struct stream *s, fx_error *err)
{
	unsigned char id[2];
	size_t done;
	int status;

	s->message_offset = s->offset;
	s->message_id = 0;
	status = read_up_to(s, id, 2, &done, err);
	if (status == FX_OK && done < 2) {
		s->base.cut_short = true;
		return fx_error_set(err, FX_EDATA, "%s ends at byte %lld without a close message: it was cut short, or whoever "
			"sent it stopped early", s->name, (long long)s->offset);
	}
	if (status == FX_OK)
		s->message_id = id[0] | id[1] << 8;
	return status;
}

/* Messages that say nothing to a replay: what to run is for the caller to say. */
static int skip_message(struct stream *s, fx_error *err)
{
	const char *name;

	switch (s->message_id) {
	case FXI_MRD_CONFIG_FILE:
		return need(s, NULL, FXI_MRD_CONFIG_FILE_BYTES, err);
	case FXI_MRD_CONFIG_TEXT:
		return read_text(s, 4, err, NULL);
	case FXI_MRD_QUERY: {
		int status = need(s, NULL, 16, err);

		return status == FX_OK ? read_text(s, 8, err, NULL) : status;
	}
	case FXI_MRD_RESPONSE: {
		int status = need(s, NULL, 8, err);

		return status == FX_OK ? read_text(s, 8, err, NULL) : status;
	}
	case FXI_MRD_DEPENDENCY:
		return read_text(s, 8, err, NULL);
	default:
		name = id_name(s->message_id);
		if (name)
			return bad(s, FX_ENOTSUP, err, "messages of this kind (id %d) are not taken as input", s->message_id);
		return bad(s, FX_EDATA, err, "id %d is not known: the stream is damaged or no MRD stream", s->message_id);
	}
}

static int next_message(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct stream *s = (struct stream *)self;
	int status = FX_OK;

	*out = NULL;
	while (status == FX_OK && !*out && !s->ended) {
		status = read_id(s, err);
		if (status != FX_OK)
			break;
		switch (s->message_id) {
		case FXI_MRD_CLOSE:
			s->ended = true;
			break;
		case FXI_MRD_ACQUISITION:
			status = read_acquisition(s, err, out);
			break;
		case FXI_MRD_WAVEFORM:
			status = read_waveform(s, err, out);
			break;
		case FXI_MRD_IMAGE:
			status = read_image(s, err, out);
			break;
		case FXI_MRD_TEXT:
			status = read_text_message(s, err, out);
			break;
		case FXI_MRD_HEADER:
			status = bad(s, FX_EDATA, err, "a second header; only one is allowed");
			break;
		default:
			status = skip_message(s, err);
		}
	}
	if (status != FX_OK) {
		fx_drop(*out);
		*out = NULL;
	}
	return status;
}

/* Reads up to the header; texts in front of it are for a server and dropped. */
static int read_header(struct stream *s, fx_error *err)
{
	int status;

	while ((status = read_id(s, err)) == FX_OK) {
		switch (s->message_id) {
		case FXI_MRD_HEADER:
			return read_text(s, 4, err, &s->base.header_xml);
		case FXI_MRD_CLOSE:
			return bad(s, FX_EDATA, err, "the stream ends without a header: it holds no acquisitions");
		case FXI_MRD_ACQUISITION:
		case FXI_MRD_WAVEFORM:
		case FXI_MRD_IMAGE:
			return bad(s, FX_EDATA, err, "data come before the MRD header (message 3), which has to be first");
		case FXI_MRD_TEXT:
			status = read_text(s, 4, err, NULL);
			break;
		default:
			status = skip_message(s, err);
		}
		if (status != FX_OK)
			return status;
	}
	return status;
}

static double progress(const fxi_source *self)
{
	const struct stream *s = (const struct stream *)self;

	if (s->ended)
		return 1;
	return s->total > 0 ? (double)s->offset / (double)s->total : -1;
}

static void close_stream(fxi_source *self)
{
	struct stream *s = (struct stream *)self;

	if (s->own_fd)
		close(s->fd);
	free(s->base.header_xml);
	free(s->base.digest);
	free(s->name);
	free(s);
}

int fxi_mrd_stream_open(int fd, bool own_fd, const char *name, const void *prefix, size_t n_prefix, int64_t total_bytes,
	fx_error *err, fxi_source **out)
{
	struct stream *s = calloc(1, sizeof *s);
	int status;

	*out = NULL;
	if (!s || !(s->name = strdup(name))) {
		free(s);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", name);
	}
	s->base.format = "MRD stream";
	s->base.next = next_message;
	s->base.progress = progress;
	s->base.close = close_stream;
	s->fd = fd;
	s->total = total_bytes;
	s->have = n_prefix;
	if (n_prefix > 0)
		memcpy(s->buffer, prefix, n_prefix);
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

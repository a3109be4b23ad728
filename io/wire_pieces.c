/* SPDX-License-Identifier: MIT */
/* wire_pieces.c - see wire_pieces.h. */
#include "wire_pieces.h"

#include "meta.h"

#include <stdlib.h>
#include <string.h>

void fxi_wire_pieces_put(fxi_wire_pieces *p, const void *data, size_t bytes)
{
	memcpy(p->head + p->piece[0].iov_len, data, bytes);
	p->piece[0].iov_len += bytes;
}

static void begin(fxi_wire_pieces *p, int id)
{
	const uint16_t wire = (uint16_t)id;

	p->n = 1;
	p->meta = NULL;
	p->piece[0] = (struct iovec){p->head, 0};
	fxi_wire_pieces_put(p, &wire, sizeof wire);
}

static void add(fxi_wire_pieces *p, const void *data, size_t bytes)
{
	if (bytes > 0)
		p->piece[p->n++] = (struct iovec){(void *)(uintptr_t)data, bytes};
}

static void add_array(fxi_wire_pieces *p, const fx_array *a)
{
	if (a)
		add(p, a->data, (size_t)a->bytes);
}

void fxi_wire_pieces_text(fxi_wire_pieces *p, int id, int length_bytes, const char *text, size_t more)
{
	const uint64_t length = strlen(text) + more;

	begin(p, id);
	fxi_wire_pieces_put(p, &length, (size_t)length_bytes);   /* little-endian: mrd_wire.h asserts it */
	add(p, text, length);
}

/* The array is what the header says: its type, and its first two dims. NULL counts as empty. */
static bool fits(const fx_array *a, int type, int64_t d0, int64_t d1)
{
	if (!a)
		return d0 * d1 == 0;
	return a->place == FX_HOST && a->type == type && a->dims[0] == d0 && a->dims[1] == d1 && a->n == d0 * d1;
}

static int acquisition(fxi_wire_pieces *p, const char *name, const fx_acquisition *a, fx_error *err)
{
	if (!fits(a->data, FX_CF32, a->head.number_of_samples, a->head.active_channels) ||
	    !fits(a->traj, FX_F32, a->head.trajectory_dimensions, a->head.number_of_samples))
		return fx_error_set(err, FX_EINVAL, "%s: a readout's data do not match its header", name);
	begin(p, FXI_MRD_ACQUISITION);
	fxi_wire_pieces_put(p, &a->head, sizeof a->head);
	add_array(p, a->traj);
	add_array(p, a->data);
	return FX_OK;
}

static int waveform(fxi_wire_pieces *p, const char *name, const fx_waveform *w, fx_error *err)
{
	ISMRMRD_WaveformHeader head;

	if (!fits(w->data, FX_U32, w->head.number_of_samples, w->head.channels))
		return fx_error_set(err, FX_EINVAL, "%s: a waveform's data do not match its header", name);
	/* Its padding goes over the wire too: what was in memory must not. */
	memset(&head, 0, sizeof head);
	head.version = w->head.version;
	head.flags = w->head.flags;
	head.measurement_uid = w->head.measurement_uid;
	head.scan_counter = w->head.scan_counter;
	head.time_stamp = w->head.time_stamp;
	head.number_of_samples = w->head.number_of_samples;
	head.channels = w->head.channels;
	head.sample_time_us = w->head.sample_time_us;
	head.waveform_id = w->head.waveform_id;
	begin(p, FXI_MRD_WAVEFORM);
	fxi_wire_pieces_put(p, &head, sizeof head);
	add_array(p, w->data);
	return FX_OK;
}

static int image(fxi_wire_pieces *p, const char *name, const fx_image *im, fx_error *err)
{
	ISMRMRD_ImageHeader head = im->head;
	const fx_array *d = im->data;
	uint64_t length;

	if (!d || d->place != FX_HOST || fxi_mrd_from_type(d->type) == 0 || d->dims[0] != head.matrix_size[0] ||
	    d->dims[1] != head.matrix_size[1] || d->dims[2] != head.matrix_size[2] || d->dims[3] != head.channels ||
	    d->n != d->dims[0] * d->dims[1] * d->dims[2] * d->dims[3])
		return fx_error_set(err, FX_EINVAL, "%s: an image's data do not match its header", name);
	begin(p, FXI_MRD_IMAGE);
	p->meta = fxi_meta_format(im);
	if (!p->meta)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", name);
	/* Gadgetron counts the closing NUL in both lengths, and its clients rely on it. */
	length = *p->meta ? strlen(p->meta) + 1 : 0;
	head.data_type = (uint16_t)fxi_mrd_from_type(d->type);
	head.attribute_string_len = (uint32_t)length;
	fxi_wire_pieces_put(p, &head, sizeof head);
	fxi_wire_pieces_put(p, &length, sizeof length);
	add(p, p->meta, length);
	add_array(p, d);
	return FX_OK;
}

int fxi_wire_pieces_of(fxi_wire_pieces *p, const char *name, fx_msg *msg, fx_error *err)
{
	const unsigned kind = fx_msg_kind(msg);

	p->n = 0;
	p->meta = NULL;
	switch (kind) {
	case FX_ACQUISITION:
		return acquisition(p, name, fx_msg_acquisition(msg), err);
	case FX_WAVEFORM:
		return waveform(p, name, fx_msg_waveform(msg), err);
	case FX_IMAGE:
		return image(p, name, fx_msg_image(msg), err);
	case FX_TEXT:
		if (strlen(fx_msg_text(msg)) > UINT32_MAX)
			return fx_error_set(err, FX_EINVAL, "%s: a text of %zu bytes is too long", name, strlen(fx_msg_text(msg)));
		fxi_wire_pieces_text(p, FXI_MRD_TEXT, 4, fx_msg_text(msg), 0);
		return FX_OK;
	default:
		return fx_error_set(err, FX_EINVAL, "%s: an MRD stream has no message for the kind '%s'", name,
			fx_kind_name(kind));
	}
}

void fxi_wire_pieces_clear(fxi_wire_pieces *p)
{
	free(p->meta);
	p->meta = NULL;
	p->n = 0;
}

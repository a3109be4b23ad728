/* SPDX-License-Identifier: MIT */
/* mrd_stream_write.c - see mrd_stream_write.h. */
#include "mrd_stream_write.h"

#include "meta.h"
#include "mrd_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int put(FILE *f, const char *name, const void *data, size_t bytes, fx_error *err)
{
	if (bytes == 0 || fwrite(data, 1, bytes, f) == bytes)
		return FX_OK;
	return fx_error_set(err, FX_EIO, "cannot write %s: %s", name, strerror(errno));
}

static int put_id(FILE *f, const char *name, int id, fx_error *err)
{
	uint16_t wire = (uint16_t)id;

	return put(f, name, &wire, sizeof wire, err);
}

static int put_text(FILE *f, const char *name, int id, const char *text, fx_error *err)
{
	size_t n = strlen(text);
	uint32_t length = (uint32_t)n;
	int status;

	if (n > UINT32_MAX)
		return fx_error_set(err, FX_EINVAL, "%s: a text of %zu bytes is too long", name, n);
	status = put_id(f, name, id, err);
	if (status == FX_OK)
		status = put(f, name, &length, sizeof length, err);
	return status == FX_OK ? put(f, name, text, n, err) : status;
}

static int put_array(FILE *f, const char *name, const fx_array *a, fx_error *err)
{
	return a ? put(f, name, a->data, (size_t)a->bytes, err) : FX_OK;
}

/* The array is what the header says: its type, and its first two dims. NULL counts as empty. */
static bool fits(const fx_array *a, int type, int64_t d0, int64_t d1)
{
	if (!a)
		return d0 * d1 == 0;
	return a->place == FX_HOST && a->type == type && a->dims[0] == d0 && a->dims[1] == d1 && a->n == d0 * d1;
}

static int put_acquisition(FILE *f, const char *name, const fx_acquisition *a, fx_error *err)
{
	int status;

	if (!fits(a->data, FX_CF32, a->head.number_of_samples, a->head.active_channels) ||
	    !fits(a->traj, FX_F32, a->head.trajectory_dimensions, a->head.number_of_samples))
		return fx_error_set(err, FX_EINVAL, "%s: a readout's data do not match its header", name);
	status = put_id(f, name, FXI_MRD_ACQUISITION, err);
	if (status == FX_OK)
		status = put(f, name, &a->head, sizeof a->head, err);
	if (status == FX_OK)
		status = put_array(f, name, a->traj, err);
	return status == FX_OK ? put_array(f, name, a->data, err) : status;
}

static int put_waveform(FILE *f, const char *name, const fx_waveform *w, fx_error *err)
{
	ISMRMRD_WaveformHeader head;
	int status;

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
	status = put_id(f, name, FXI_MRD_WAVEFORM, err);
	if (status == FX_OK)
		status = put(f, name, &head, sizeof head, err);
	return status == FX_OK ? put_array(f, name, w->data, err) : status;
}

static int put_image(FILE *f, const char *name, const fx_image *image, fx_error *err)
{
	ISMRMRD_ImageHeader head = image->head;
	const fx_array *d = image->data;
	char *meta;
	uint64_t length;
	int status;

	if (!d || d->place != FX_HOST || fxi_mrd_from_type(d->type) == 0 || d->dims[0] != head.matrix_size[0] ||
	    d->dims[1] != head.matrix_size[1] || d->dims[2] != head.matrix_size[2] || d->dims[3] != head.channels ||
	    d->n != d->dims[0] * d->dims[1] * d->dims[2] * d->dims[3])
		return fx_error_set(err, FX_EINVAL, "%s: an image's data do not match its header", name);
	meta = fxi_meta_format(image);
	if (!meta)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", name);
	/* Gadgetron counts the closing NUL in both lengths, and its clients rely on it. */
	length = *meta ? strlen(meta) + 1 : 0;
	head.data_type = (uint16_t)fxi_mrd_from_type(d->type);
	head.attribute_string_len = (uint32_t)length;
	status = put_id(f, name, FXI_MRD_IMAGE, err);
	if (status == FX_OK)
		status = put(f, name, &head, sizeof head, err);
	if (status == FX_OK)
		status = put(f, name, &length, sizeof length, err);
	if (status == FX_OK)
		status = put(f, name, meta, length, err);
	if (status == FX_OK)
		status = put_array(f, name, d, err);
	free(meta);
	return status;
}

int fxi_mrd_write_header(FILE *f, const char *name, const char *header_xml, fx_error *err)
{
	return put_text(f, name, FXI_MRD_HEADER, header_xml, err);
}

int fxi_mrd_write(FILE *f, const char *name, fx_msg *msg, fx_error *err)
{
	unsigned kind = fx_msg_kind(msg);

	switch (kind) {
	case FX_ACQUISITION:
		return put_acquisition(f, name, fx_msg_acquisition(msg), err);
	case FX_WAVEFORM:
		return put_waveform(f, name, fx_msg_waveform(msg), err);
	case FX_IMAGE:
		return put_image(f, name, fx_msg_image(msg), err);
	case FX_TEXT:
		return put_text(f, name, FXI_MRD_TEXT, fx_msg_text(msg), err);
	default:
		return fx_error_set(err, FX_EINVAL, "%s: an MRD stream has no message for the kind '%s'", name,
			fx_kind_name(kind));
	}
}

int fxi_mrd_write_close(FILE *f, const char *name, fx_error *err)
{
	int status = put_id(f, name, FXI_MRD_CLOSE, err);

	if (status == FX_OK && fflush(f) != 0)
		status = fx_error_set(err, FX_EIO, "cannot write %s: %s", name, strerror(errno));
	return status;
}

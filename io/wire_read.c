/* SPDX-License-Identifier: MIT */
/*
 * wire_read.c - messages out of bytes. Every length is bounded, by MRD's own limits, by the reader's, by what a file has left and by
 * memory, before anything is allocated; and is remembered, so that a message that was refused can be passed over.
 */
#include "wire_in.h"

#include "meta.h"

#include <stdlib.h>
#include <string.h>

#define POOLED_BYTES ((int64_t)256 << 10)
#define MAX_CHANNELS 1024   /* what MRD's channel mask has room for */

enum { FXI_MRD_ERROR = 8, FXI_MRD_DICOM = 1018 };

static const struct {
	int id;
	const char *name;
} ids[] = {
	{FXI_MRD_CONFIG_FILE, "configuration name"}, {FXI_MRD_CONFIG_TEXT, "configuration"}, {FXI_MRD_HEADER, "MRD header"},
	{FXI_MRD_CLOSE, "close"}, {FXI_MRD_TEXT, "text"}, {FXI_MRD_QUERY, "query"}, {FXI_MRD_RESPONSE, "response"},
	{FXI_MRD_ERROR, "error"}, {FXI_MRD_ACQUISITION, "acquisition"}, {FXI_MRD_DICOM, "DICOM"},
	{FXI_MRD_DEPENDENCY, "dependency"}, {FXI_MRD_IMAGE, "image"}, {1023, "reconstruction data"}, {1024, "image array"},
	{FXI_MRD_WAVEFORM, "waveform"}, {1030, "array"}, {1050, "bucket"}, {1051, "bundle"},
};

const char *fxi_wire_id_name(int id)
{
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		if (ids[i].id == id)
			return ids[i].name;
	return NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* `bytes` of text into *out (NULL: dropped). NULs at its end are no part of it: *nul. */
static int read_chars(fxi_wire_in *in, uint64_t bytes, fx_error *err, char **out, bool *nul)
{
	int status;

	if (bytes <= INT64_MAX / 2)
		in->message_end = in->offset + (int64_t)bytes;
	if (bytes > FXI_WIRE_TEXT_BYTES)
		return fxi_wire_bad(in, FX_EDATA, err, "it announces %llu bytes of text; 16 MiB at most are accepted",
			(unsigned long long)bytes);
	status = fxi_wire_room(in, (int64_t)bytes, err);
	if (status != FX_OK || !out)
		return status != FX_OK ? status : fxi_wire_need(in, NULL, bytes, err);
	*out = calloc((size_t)bytes + 1, 1);
	if (!*out)
		return fxi_wire_bad(in, FX_ENOMEM, err, "out of memory for %llu bytes of text", (unsigned long long)bytes);
	status = fxi_wire_need(in, *out, bytes, err);
	*nul = bytes > 0 && (*out)[bytes - 1] == '\0';
	return status;
}

static int read_text(fxi_wire_in *in, size_t length_bytes, fx_error *err, char **out, bool *nul)
{
	uint64_t length;
	int status = fxi_wire_length(in, length_bytes, err, &length);

	return status == FX_OK ? read_chars(in, length, err, out, nul) : status;
}

/* ---- data ------------------------------------------------------------------------------------ */

static int read_array(fxi_wire_in *in, int type, int n_dims, const int64_t *dims, fx_error *err, fx_array **out)
{
	int status = fx_array_new(type, n_dims, dims, out);

	if (status != FX_OK)
		return fxi_wire_bad(in, FX_ENOMEM, err, "out of memory for its data");
	return (*out)->bytes > 0 ? fxi_wire_need(in, (*out)->data, (uint64_t)(*out)->bytes, err) : FX_OK;
}

/*
 * An array of a readout, out of a pool whose blocks are of about that size: scans consist of like readouts. Where they change the pool is
 * replaced. Large arrays, whose samples take longer than their memory, are made as any.
 */
static int read_pooled(fxi_wire_in *in, fxi_pool **pool, int type, const int64_t dims[2], fx_error *err, fx_array **out)
{
	int64_t bytes = (int64_t)fx_type_size(type) * dims[0] * dims[1];
	size_t room = fxi_array_room((size_t)bytes);

	if (bytes == 0 || bytes > POOLED_BYTES)
		return read_array(in, type, 2, dims, err, out);
	if (!*pool || fxi_pool_bytes(*pool) < room || fxi_pool_bytes(*pool) / 4 > room) {
		fxi_pool_free(*pool);
		*pool = fxi_pool_new(room);
	}
	if (!*pool || fxi_array_new_in(*pool, type, 2, dims, out) != FX_OK)
		return fxi_wire_bad(in, FX_ENOMEM, err, "out of memory for its data");
	return fxi_wire_need(in, (*out)->data, (uint64_t)bytes, err);
}

static int new_message(const fxi_wire_in *in, unsigned kind, fx_error *err, fx_msg **out)
{
	*out = fx_msg_new(kind);
	return *out ? FX_OK : fxi_wire_bad(in, FX_ENOMEM, err, "out of memory");
}

/* Where `out` is NULL the samples are dropped, here and below. */
static int read_acquisition(fxi_wire_in *in, fx_error *err, fx_msg **out)
{
	const uint64_t compressed = 15ull << (ISMRMRD_ACQ_COMPRESSION1 - 1);
	ISMRMRD_AcquisitionHeader head;
	fx_acquisition *a;
	int64_t samples, channels, dims, bytes;
	int status = fxi_wire_need(in, &head, sizeof head, err);

	if (status != FX_OK)
		return status;
	samples = head.number_of_samples;
	channels = head.active_channels;
	dims = head.trajectory_dimensions;
	bytes = samples * (8 * channels + 4 * dims);
	if (head.flags & compressed)
		return fxi_wire_bad(in, FX_ENOTSUP, err, "its samples are compressed; send them uncompressed");
	if (channels > MAX_CHANNELS)
		return fxi_wire_bad(in, FX_EDATA, err, "active_channels is %lld, MRD allows %d: the stream is damaged",
			(long long)channels, MAX_CHANNELS);
	status = fxi_wire_room(in, bytes, err);
	if (!out)
		return fxi_wire_need(in, NULL, (uint64_t)bytes, err);
	if (status != FX_OK)
		return status;
	if (!in->messages)
		in->messages = fxi_pool_new(fxi_msg_bytes());
	*out = in->messages ? fxi_msg_new_in(in->messages, FX_ACQUISITION) : NULL;
	if (!*out)
		return fxi_wire_bad(in, FX_ENOMEM, err, "out of memory");
	a = fx_msg_acquisition(*out);
	a->head = head;
	if (dims > 0)
		status = read_pooled(in, &in->trajectories, FX_F32, (int64_t[]){dims, samples}, err, &a->traj);
	if (status == FX_OK)
		status = read_pooled(in, &in->samples, FX_CF32, (int64_t[]){samples, channels}, err, &a->data);
	return status;
}

static int read_waveform(fxi_wire_in *in, fx_error *err, fx_msg **out)
{
	ISMRMRD_WaveformHeader head;
	fx_waveform *w;
	int64_t bytes;
	int status = fxi_wire_need(in, &head, sizeof head, err);

	if (status != FX_OK)
		return status;
	bytes = (int64_t)4 * head.number_of_samples * head.channels;
	status = fxi_wire_room(in, bytes, err);
	if (!out)
		return fxi_wire_need(in, NULL, (uint64_t)bytes, err);
	if (status == FX_OK)
		status = new_message(in, FX_WAVEFORM, err, out);
	if (status != FX_OK)
		return status;
	w = fx_msg_waveform(*out);
	w->head = head;
	return read_array(in, FX_U32, 2, (int64_t[]){head.number_of_samples, head.channels}, err, &w->data);
}

static int image_bytes(const fxi_wire_in *in, const ISMRMRD_ImageHeader *h, fx_error *err, int64_t *bytes)
{
	int64_t n = (int64_t)fx_type_size(fxi_mrd_to_type(h->data_type));

	if (n == 0)
		return fxi_wire_bad(in, FX_EDATA, err, "data_type is %d, MRD knows 1 to 8", h->data_type);
	for (int i = 0; i < 3; i++)
		if (!fx_mul_size(n, h->matrix_size[i], &n))
			n = INT64_MAX / 4;
	if (!fx_mul_size(n, h->channels, &n) || n > INT64_MAX / 4)
		n = INT64_MAX / 4;
	*bytes = n;
	return FX_OK;
}

/* Its data, once the header and the meta data are read. */
static int read_pixels(fxi_wire_in *in, fx_image *image, fx_error *err)
{
	const ISMRMRD_ImageHeader *h = &image->head;

	return read_array(in, fxi_mrd_to_type(h->data_type), 4, (int64_t[]){h->matrix_size[0], h->matrix_size[1], h->matrix_size[2],
		h->channels}, err, &image->data);
}

static int read_image(fxi_wire_in *in, fx_error *err, fx_msg **out)
{
	ISMRMRD_ImageHeader head;
	char *meta = NULL;
	int64_t bytes = 0;
	bool nul;
	int status = fxi_wire_need(in, &head, sizeof head, err);

	if (status == FX_OK)
		status = read_text(in, 8, err, out ? &meta : NULL, &nul);
	in->message_end = 0;   /* of the meta data so far */
	if (status == FX_OK)
		status = image_bytes(in, &head, err, &bytes);
	if (status == FX_OK)
		status = fxi_wire_room(in, bytes, err);
	if (!out && in->message_end > 0)
		return fxi_wire_need(in, NULL, (uint64_t)bytes, err);
	if (status == FX_OK)
		status = new_message(in, FX_IMAGE, err, out);
	if (status == FX_OK) {
		fx_image *image = fx_msg_image(*out);

		image->head = head;
		status = fxi_meta_parse(meta, strlen(meta), image, err);
		if (status == FX_OK)
			status = read_pixels(in, image, err);
	}
	free(meta);
	return status;
}

/* ---- any message ----------------------------------------------------------------------------- */

static int read_id(fxi_wire_in *in, fx_error *err)
{
	unsigned char id[2];
	uint64_t done;
	int status;

	in->message_offset = in->offset;
	in->message_end = 0;
	in->message_id = 0;
	in->in_message = false;
	status = fxi_wire_bytes(in, id, 1, &done, err);
	if (status == FX_OK && done == 1) {
		in->in_message = true;
		status = fxi_wire_bytes(in, id + 1, 1, &done, err);
	}
	if (status != FX_OK)
		return status;
	if (done < 1)
		return fx_error_set(err, FX_EDATA, "%s ends at byte %lld without a close message: it was cut short, or whoever "
			"sent it stopped early", in->name, (long long)in->offset);
	in->message_id = id[0] | id[1] << 8;
	return FX_OK;
}

static int read_query(fxi_wire_in *in, fxi_wire_message *m, bool keep, fx_error *err)
{
	uint64_t reserved;
	int status = in->message_id == FXI_MRD_QUERY ? fxi_wire_length(in, 8, err, &reserved) : FX_OK;

	if (status == FX_OK)
		status = fxi_wire_length(in, 8, err, &m->correlation);
	return status == FX_OK ? read_text(in, 8, err, keep ? &m->text : NULL, &m->nul) : status;
}

static int refuse_unknown(fxi_wire_in *in, fx_error *err)
{
	if (fxi_wire_id_name(in->message_id))
		return fxi_wire_bad(in, FX_ENOTSUP, err, "messages of this kind (id %d) are not taken as input, and their length cannot "
			"be told", in->message_id);
	return fxi_wire_bad(in, FX_EDATA, err, "id %d is not known: the stream is damaged or no MRD stream", in->message_id);
}

static bool is_data(int id)
{
	return id == FXI_MRD_ACQUISITION || id == FXI_MRD_WAVEFORM || id == FXI_MRD_IMAGE;
}

/* The body of the message whose id was read; `keep` false drops it. */
static int read_body(fxi_wire_in *in, fxi_wire_message *m, bool keep, fx_error *err)
{
	char **text = keep ? &m->text : NULL;
	fx_msg **data = keep ? &m->data : NULL;
	int status;

	switch (in->message_id) {
	case FXI_MRD_CONFIG_FILE:
		return read_chars(in, FXI_MRD_CONFIG_FILE_BYTES, err, text, &m->nul);
	case FXI_MRD_CONFIG_TEXT:
	case FXI_MRD_HEADER:
	case FXI_MRD_TEXT:
		return read_text(in, 4, err, text, &m->nul);
	case FXI_MRD_CLOSE:
		return FX_OK;
	case FXI_MRD_QUERY:
	case FXI_MRD_RESPONSE:
		return read_query(in, m, keep, err);
	case FXI_MRD_DEPENDENCY:
		return read_text(in, 8, err, text, &m->nul);
	case FXI_MRD_ACQUISITION:
		return read_acquisition(in, err, data);
	case FXI_MRD_WAVEFORM:
		return read_waveform(in, err, data);
	case FXI_MRD_IMAGE:
		return read_image(in, err, data);
	case FXI_MRD_ERROR:
		return read_text(in, 8, err, NULL, &m->nul);
	case FXI_MRD_DICOM:
		status = read_text(in, 4, err, NULL, &m->nul);
		for (int i = 0; i < 2 && status == FX_OK; i++)
			status = read_text(in, 8, err, NULL, &m->nul);
		return status;
	default:
		return refuse_unknown(in, err);
	}
}

void fxi_wire_message_clear(fxi_wire_message *m)
{
	free(m->text);
	fx_drop(m->data);
	*m = (fxi_wire_message){0};
}

static int read_any(fxi_wire_in *in, fxi_wire_message *m, bool keep, fx_error *err)
{
	int status;

	*m = (fxi_wire_message){0};
	in->end = FXI_WIRE_OPEN;
	do {
		status = read_id(in, err);
		if (status == FX_OK && keep && in->no_data && is_data(in->message_id)) {
			status = fxi_wire_bad(in, FX_EDATA, err, "data come before the MRD header (message 3), which has to be first");
			read_body(in, m, false, NULL);
		} else if (status == FX_OK) {
			status = read_body(in, m, keep, err);
		}
	} while (status == FX_OK && (in->message_id == FXI_MRD_ERROR || in->message_id == FXI_MRD_DICOM));
	m->id = in->message_id;
	m->offset = in->message_offset;
	in->in_message = false;
	if (status == FX_OK)
		return FX_OK;
	if (in->end == FXI_WIRE_OPEN)
		in->end = in->message_end > 0 ? FXI_WIRE_REFUSED : FXI_WIRE_LOST;
	fxi_wire_message_clear(m);
	return status;
}

bool fxi_wire_ready(const fxi_wire_in *in)
{
	const unsigned char *p = in->buffer + in->at;
	size_t have = in->have - in->at;
	ISMRMRD_AcquisitionHeader head;

	if (have < 2 + sizeof head || (p[0] | p[1] << 8) != FXI_MRD_ACQUISITION)
		return false;
	memcpy(&head, p + 2, sizeof head);
	return have - 2 - sizeof head >= (size_t)head.number_of_samples * (8u * head.active_channels + 4u * head.trajectory_dimensions);
}

int fxi_wire_read(fxi_wire_in *in, fxi_wire_message *m, fx_error *err)
{
	return read_any(in, m, true, err);
}

bool fxi_wire_drain(fxi_wire_in *in, double quiet_s)
{
	fxi_wire_limits limits = in->limits;
	fxi_wire_message m;
	bool found = in->end != FXI_WIRE_LOST;
	uint64_t done = 1;

	limits.idle_s = quiet_s;
	limits.message_bytes = 0;
	if (in->end == FXI_WIRE_CUT || in->end == FXI_WIRE_SILENT)
		return false;
	fxi_wire_resume(in, &limits);
	if (in->end == FXI_WIRE_REFUSED && in->message_end > in->offset)
		found = fxi_wire_need(in, NULL, (uint64_t)(in->message_end - in->offset), NULL) == FX_OK;
	while (found && in->end != FXI_WIRE_CUT && in->end != FXI_WIRE_SILENT) {
		found = read_any(in, &m, false, NULL) == FX_OK;
		if (found && m.id == FXI_MRD_CLOSE)
			return true;
		if (!found && in->end == FXI_WIRE_REFUSED)
			found = fxi_wire_need(in, NULL, (uint64_t)(in->message_end - in->offset), NULL) == FX_OK;
	}
	while (in->end != FXI_WIRE_CUT && in->end != FXI_WIRE_SILENT && done > 0)
		if (fxi_wire_bytes(in, NULL, UINT64_MAX, &done, NULL) != FX_OK)
			break;
	return false;
}

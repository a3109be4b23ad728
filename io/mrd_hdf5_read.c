/* SPDX-License-Identifier: MIT */
/*
 * mrd_hdf5_read.c - replays an MRD HDF5 file as a stream of messages.
 *
 * Members are read by name, since files of simulators order and size them in their own ways. What a record holds is
 * checked against its own head; whether the numbers make sense is for gadgets to judge. A waveform is delivered in front
 * of the first readout whose time stamp is not earlier than its own, as it would have come from the scanner.
 */
#include "digest.h"
#include "h5_find.h"
#include "h5_table.h"
#include "input.h"

#include <stdlib.h>
#include <string.h>

struct replay {
	fxi_source base;
	char *where_data, *where_waveforms;   /* "FILE:/dataset/data", for messages */
	hid_t file;
	fxi_h5_table readouts, waveforms;
	int64_t next_readout, next_waveform;
};

static int64_t readout_bytes(const void *head)
{
	const ISMRMRD_AcquisitionHeader *h = head;

	/* 16-bit counts: at most 34 GB + 17 GB, no overflow. */
	return (int64_t)h->number_of_samples * ((int64_t)h->active_channels * 8 + (int64_t)h->trajectory_dimensions * 4);
}

static int64_t waveform_bytes(const void *head)
{
	ISMRMRD_WaveformHeader h;

	memcpy(&h, head, sizeof h);
	return (int64_t)h.number_of_samples * h.channels * 4;
}

static int out_of_memory(const char *where, int64_t record, int64_t bytes, fx_error *err)
{
	return fx_error_set(err, FX_ENOMEM, "out of memory for record %lld of %s (%lld bytes)", (long long)record, where,
		(long long)bytes);
}

/* A sequence into an array {d0, d1} of `type`; `numbers` of its elements make up one of the array's. */
static int take_sequence(const hvl_t *sequence, int type, int64_t d0, int64_t d1, fx_array **out)
{
	int status = fx_array_new2(type, d0, d1, out);

	if (status == FX_OK && (*out)->n > 0)
		memcpy((*out)->data, sequence->p, (size_t)(*out)->bytes);
	return status;
}

static int check_length(const char *where, int64_t record, const char *field, const char *rule, int64_t expected,
	const hvl_t *sequence, fx_error *err)
{
	if (sequence->len == (size_t)expected)
		return FX_OK;
	return fx_error_set(err, FX_EDATA, "record %lld of %s: `%s` holds %zu numbers, its head makes that %lld (%s)",
		(long long)record, where, field, sequence->len, (long long)expected, rule);
}

static int readout_message(const struct replay *r, int64_t i, const ISMRMRD_AcquisitionHeader *head, const hvl_t *body,
	fx_error *err, fx_msg **out)
{
	int64_t samples = head->number_of_samples, coils = head->active_channels, dims = head->trajectory_dimensions;
	fx_acquisition *a;
	int status = check_length(r->where_data, i, "traj", "trajectory_dimensions x number_of_samples", dims * samples,
		&body[0], err);

	if (status == FX_OK)
		status = check_length(r->where_data, i, "data", "2 x number_of_samples x active_channels",
			2 * samples * coils, &body[1], err);
	if (status != FX_OK)
		return status;
	*out = fx_msg_new(FX_ACQUISITION);
	a = *out ? fx_msg_acquisition(*out) : NULL;
	if (a)
		a->head = *head;
	if (!a || take_sequence(&body[1], FX_CF32, samples, coils, &a->data) != FX_OK ||
	    (dims > 0 && take_sequence(&body[0], FX_F32, dims, samples, &a->traj) != FX_OK)) {
		fx_drop(*out);
		*out = NULL;
		return out_of_memory(r->where_data, i, readout_bytes(head), err);
	}
	return FX_OK;
}

static int waveform_message(const struct replay *r, int64_t i, const ISMRMRD_WaveformHeader *head, const hvl_t *body,
	fx_error *err, fx_msg **out)
{
	int64_t samples = head->number_of_samples, channels = head->channels;
	fx_waveform *w;
	int status = check_length(r->where_waveforms, i, "data", "number_of_samples x channels", samples * channels, body,
		err);

	if (status != FX_OK)
		return status;
	*out = fx_msg_new(FX_WAVEFORM);
	w = *out ? fx_msg_waveform(*out) : NULL;
	if (w)
		w->head = *head;
	if (!w || take_sequence(body, FX_U32, samples, channels, &w->data) != FX_OK) {
		fx_drop(*out);
		*out = NULL;
		return out_of_memory(r->where_waveforms, i, waveform_bytes(head), err);
	}
	return FX_OK;
}

/* Record i of either table, through HDF5 only where it is not in memory yet. */
static int fetch(fxi_h5_table *t, int64_t i, const char *where, fx_error *err, const void **head, const hvl_t **body)
{
	fxi_h5_guard guard;
	int status;

	if (fxi_h5_table_cached(t, i))
		return fxi_h5_table_at(t, i, where, err, head, body);
	fxi_h5_enter(&guard);
	status = fxi_h5_table_at(t, i, where, err, head, body);
	fxi_h5_leave(&guard);
	return status;
}

static int next_message(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct replay *r = (struct replay *)self;
	const void *readout = NULL, *waveform = NULL;
	const hvl_t *readout_body = NULL, *waveform_body = NULL;
	int status = FX_OK;

	*out = NULL;
	if (r->next_readout < r->readouts.n)
		status = fetch(&r->readouts, r->next_readout, r->where_data, err, &readout, &readout_body);
	if (status == FX_OK && r->next_waveform < r->waveforms.n)
		status = fetch(&r->waveforms, r->next_waveform, r->where_waveforms, err, &waveform, &waveform_body);
	if (status != FX_OK)
		return status;
	if (waveform) {
		ISMRMRD_WaveformHeader head;

		memcpy(&head, waveform, sizeof head);
		if (!readout ||
		    head.time_stamp <= ((const ISMRMRD_AcquisitionHeader *)readout)->acquisition_time_stamp)
			return waveform_message(r, r->next_waveform++, &head, waveform_body, err, out);
	}
	if (readout)
		return readout_message(r, r->next_readout++, readout, readout_body, err, out);
	return FX_OK;
}

static double progress(const fxi_source *self)
{
	const struct replay *r = (const struct replay *)self;
	int64_t n = r->readouts.n + r->waveforms.n;

	return n > 0 ? (double)(r->next_readout + r->next_waveform) / (double)n : 1;
}

static void close_replay(fxi_source *self)
{
	struct replay *r = (struct replay *)self;
	fxi_h5_guard guard;

	fxi_h5_enter(&guard);
	fxi_h5_table_close(&r->readouts);
	fxi_h5_table_close(&r->waveforms);
	if (r->file >= 0)
		H5Fclose(r->file);
	fxi_h5_leave(&guard);
	free(r->base.header_xml);
	free(r->base.digest);
	free(r->where_data);
	free(r->where_waveforms);
	free(r);
}

static int open_table(hid_t group, const char *name, const char *where, bool of_readouts, fx_error *err,
	fxi_h5_table *out)
{
	hid_t record = of_readouts ? fxi_h5_record_type() : fxi_h5_waveform_type();
	int status;

	if (record < 0)
		return fxi_h5_fail(err, FX_ENOMEM, "cannot prepare to read %s", where);
	if (of_readouts)
		status = fxi_h5_table_open(group, name, where, record, sizeof(ISMRMRD_AcquisitionHeader), readout_bytes,
			err, out);
	else
		status = fxi_h5_table_open(group, name, where, record, sizeof(ISMRMRD_WaveformHeader), waveform_bytes,
			err, out);
	fxi_h5_close(&record);
	return status;
}

static int open_group(struct replay *r, const char *path, hid_t group, const char *name, fx_error *err)
{
	char *where_xml = NULL;
	const char *slash = *name ? "/" : "";
	int status = FX_OK;

	if (asprintf(&where_xml, "%s:/%s%sxml", path, name, slash) < 0) {
		where_xml = NULL;
		status = FX_ENOMEM;
	}
	if (asprintf(&r->where_data, "%s:/%s%sdata", path, name, slash) < 0) {
		r->where_data = NULL;
		status = FX_ENOMEM;
	}
	if (asprintf(&r->where_waveforms, "%s:/%s%swaveforms", path, name, slash) < 0) {
		r->where_waveforms = NULL;
		status = FX_ENOMEM;
	}
	if (status != FX_OK)
		fx_error_set(err, status, "out of memory while opening %s", path);
	if (status == FX_OK)
		status = fxi_h5_read_text(group, "xml", where_xml, err, &r->base.header_xml);
	free(where_xml);
	if (status == FX_OK)
		status = open_table(group, "data", r->where_data, true, err, &r->readouts);
	if (status == FX_OK && fxi_h5_has(group, "waveforms"))
		status = open_table(group, "waveforms", r->where_waveforms, false, err, &r->waveforms);
	if (status == FX_OK && r->readouts.n == 0)
		status = fx_error_set(err, FX_EDATA, "%s holds no acquisitions", r->where_data);
	return status;
}

int fxi_mrd_hdf5_open(const char *path, const char *group, fx_error *err, fxi_source **out)
{
	struct replay *r = calloc(1, sizeof *r);
	hid_t id = -1;
	char *name = NULL;
	fxi_h5_guard guard;
	int status;

	*out = NULL;
	if (!r)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	r->base.format = "MRD HDF5";
	r->base.next = next_message;
	r->base.progress = progress;
	r->base.close = close_replay;
	fxi_h5_enter(&guard);
	status = fxi_h5_open_file(path, err, &r->file);
	if (status == FX_OK)
		status = fxi_h5_open_group(r->file, path, group, FXI_H5_RAW, err, &id, &name);
	if (status == FX_OK)
		status = open_group(r, path, id, name, err);
	free(name);
	fxi_h5_close(&id);
	fxi_h5_leave(&guard);
	if (status != FX_OK) {
		close_replay(&r->base);
		return status;
	}
	r->base.digest = fxi_file_digest(path);
	*out = &r->base;
	return FX_OK;
}

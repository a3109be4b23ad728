/* SPDX-License-Identifier: MIT */
/*
 * mrd_hdf5_write.c - see mrd_hdf5_write.h. Records are written in blocks: one dataset write for each record, and a chunk
 * for each record, is what makes files of libismrmrd slow to write and to read.
 */
#include "mrd_hdf5_write.h"

#include "h5_file.h"

#include <stdlib.h>

#define BLOCK_RECORDS 128
#define BLOCK_BYTES ((int64_t)16 << 20)

struct block {
	hid_t dataset, type;
	int64_t n, bytes;
	hsize_t n_written;
	fx_array *held[2 * BLOCK_RECORDS];   /* keeps what the records point to */
	int64_t n_held;
};

struct fxi_raw_writer {
	fxi_h5_file file;
	hid_t group;
	struct block readouts, waveforms;
	fxi_h5_record records[BLOCK_RECORDS];
	fxi_h5_waveform waves[BLOCK_RECORDS];
};

static bool write_block(struct block *b, const void *entries)
{
	bool ok = b->n == 0 || fxi_h5_append(b->dataset, b->type, b->n_written, (hsize_t)b->n, entries);

	for (int64_t i = 0; i < b->n_held; i++)
		fx_array_unref(b->held[i]);
	b->n_written += (hsize_t)b->n;
	b->n = b->n_held = b->bytes = 0;
	return ok;
}

static int flush_block(fxi_raw_writer *w, struct block *b, const void *entries, fx_error *err)
{
	fxi_h5_guard guard;
	int status;

	fxi_h5_enter(&guard);
	status = write_block(b, entries) ? fxi_h5_file_check(&w->file, err) : fxi_h5_file_failed(&w->file, err);
	fxi_h5_leave(&guard);
	return status;
}

/* The sequence that a record holds, and a reference so that it stays until it is written. */
static hvl_t hold(struct block *b, fx_array *array, size_t numbers_per_element)
{
	hvl_t sequence = {0, NULL};

	if (array && array->n > 0) {
		sequence.len = (size_t)array->n * numbers_per_element;
		sequence.p = array->data;
		b->held[b->n_held++] = fx_array_ref(array);
		b->bytes += array->bytes;
	}
	return sequence;
}

static bool block_full(const struct block *b)
{
	return b->n == BLOCK_RECORDS || b->bytes >= BLOCK_BYTES;
}

static int open_data(fxi_raw_writer *w, const char *header_xml)
{
	w->group = H5Gcreate2(w->file.id, "dataset", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	w->readouts.type = fxi_h5_record_type();
	if (w->group < 0 || w->readouts.type < 0 || !fxi_h5_put_text(w->group, "xml", header_xml))
		return FX_EIO;
	w->readouts.dataset = fxi_h5_growing(w->group, "data", w->readouts.type, 0, NULL, BLOCK_RECORDS, 0);
	return w->readouts.dataset < 0 ? FX_EIO : FX_OK;
}

static void close_handles(fxi_raw_writer *w)
{
	fxi_h5_close(&w->readouts.dataset);
	fxi_h5_close(&w->readouts.type);
	fxi_h5_close(&w->waveforms.dataset);
	fxi_h5_close(&w->waveforms.type);
	fxi_h5_close(&w->group);
}

int fxi_raw_writer_open(const char *path, const char *header_xml, fx_error *err, fxi_raw_writer **out)
{
	fxi_raw_writer *w = calloc(1, sizeof *w);
	fxi_h5_guard guard;
	int status;

	*out = NULL;
	if (!w)
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", path);
	w->group = w->readouts.dataset = w->readouts.type = w->waveforms.dataset = w->waveforms.type = -1;
	fxi_h5_enter(&guard);
	status = fxi_h5_file_create(path, err, &w->file);
	if (status == FX_OK) {
			status = open_data(w, header_xml);
		if (status != FX_OK) {
			status = fxi_h5_file_failed(&w->file, err);
			close_handles(w);
			fxi_h5_file_abandon(&w->file);
		}
	}
	fxi_h5_leave(&guard);
	if (status == FX_OK)
		*out = w;
	else
		free(w);
	return status;
}

static int check_readout(const fx_acquisition *a, fx_error *err)
{
	const fx_array *d = a->data, *t = a->traj;

	if (!d || d->type != FX_CF32 || d->place != FX_HOST || d->n_dims > 2 ||
	    d->dims[0] != a->head.number_of_samples || d->dims[1] != a->head.active_channels)
		return fx_error_set(err, FX_EINVAL, "a readout of %d samples and %d channels needs data cf32 {samples, channels}",
			a->head.number_of_samples, a->head.active_channels);
	if ((t != NULL) != (a->head.trajectory_dimensions > 0))
		return fx_error_set(err, FX_EINVAL, "a readout %s a trajectory but trajectory_dimensions is %d",
			t ? "has" : "lacks", a->head.trajectory_dimensions);
	if (t && (t->type != FX_F32 || t->place != FX_HOST || t->n_dims > 2 ||
	    t->dims[0] != a->head.trajectory_dimensions || t->dims[1] != a->head.number_of_samples))
		return fx_error_set(err, FX_EINVAL, "a readout of %d samples needs a trajectory f32 {%d, samples}",
			a->head.number_of_samples, a->head.trajectory_dimensions);
	return FX_OK;
}

int fxi_raw_writer_add(fxi_raw_writer *w, const fx_acquisition *acquisition, fx_error *err)
{
	struct block *b = &w->readouts;
	int status = check_readout(acquisition, err);

	if (status != FX_OK)
		return status;
	w->records[b->n].head = acquisition->head;
	w->records[b->n].traj = hold(b, acquisition->traj, 1);
	w->records[b->n].data = hold(b, acquisition->data, 2);
	b->n++;
	return block_full(b) ? flush_block(w, b, w->records, err) : FX_OK;
}

/* `waveforms` exists only in files that have some. */
static int open_waveforms(fxi_raw_writer *w, fx_error *err)
{
	fxi_h5_guard guard;
	int status = FX_OK;

	fxi_h5_enter(&guard);
	w->waveforms.type = fxi_h5_waveform_type();
	if (w->waveforms.type >= 0)
		w->waveforms.dataset = fxi_h5_growing(w->group, "waveforms", w->waveforms.type, 0, NULL, BLOCK_RECORDS, 0);
	if (w->waveforms.dataset < 0)
		status = fxi_h5_file_failed(&w->file, err);
	fxi_h5_leave(&guard);
	return status;
}

int fxi_raw_writer_add_waveform(fxi_raw_writer *w, const fx_waveform *waveform, fx_error *err)
{
	struct block *b = &w->waveforms;
	const fx_array *d = waveform->data;
	int status = FX_OK;

	if (!d || d->type != FX_U32 || d->place != FX_HOST || d->n_dims > 2 ||
	    d->dims[0] != waveform->head.number_of_samples || d->dims[1] != waveform->head.channels)
		return fx_error_set(err, FX_EINVAL, "a waveform of %d samples and %d channels needs data u32 {samples, channels}",
			waveform->head.number_of_samples, waveform->head.channels);
	if (b->dataset < 0)
		status = open_waveforms(w, err);
	if (status != FX_OK)
		return status;
	w->waves[b->n].head = waveform->head;
	w->waves[b->n].data = hold(b, waveform->data, 1);
	b->n++;
	return block_full(b) ? flush_block(w, b, w->waves, err) : FX_OK;
}

/* Drops what is held without writing it. */
static void forget(struct block *b)
{
	b->n = 0;
	write_block(b, NULL);
}

int fxi_raw_writer_commit(fxi_raw_writer *w, fx_error *err)
{
	fxi_h5_guard guard;
	int status = flush_block(w, &w->readouts, w->records, err);

	if (status == FX_OK)
		status = flush_block(w, &w->waveforms, w->waves, err);
	if (status != FX_OK) {
		fxi_raw_writer_abandon(w);
		return status;
	}
	fxi_h5_enter(&guard);
	close_handles(w);
	status = fxi_h5_file_commit(&w->file, err);
	fxi_h5_leave(&guard);
	free(w);
	return status;
}

void fxi_raw_writer_abandon(fxi_raw_writer *w)
{
	fxi_h5_guard guard;

	if (!w)
		return;
	forget(&w->readouts);
	forget(&w->waveforms);
	fxi_h5_enter(&guard);
	close_handles(w);
	fxi_h5_file_abandon(&w->file);
	fxi_h5_leave(&guard);
	free(w);
}

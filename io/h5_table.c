/* SPDX-License-Identifier: MIT */
/* h5_table.c - see h5_table.h. */
#include "h5_table.h"

#include <stdlib.h>
#include <string.h>

#define HEADS 512
#define BODY_RECORDS 512
#define BODY_BYTES ((int64_t)16 << 20)
/* Lets a sequence that is longer than its head says be read, so that the message can tell by how much. */
#define SLACK_BYTES ((int64_t)64 << 20)

struct fxi_piece {
	struct fxi_piece *next;
	max_align_t data[];
};

static void *piece_new(size_t bytes, void *arg)
{
	fxi_h5_table *t = arg;
	struct fxi_piece *piece;

	if (bytes > (size_t)(t->most_bytes - t->piece_bytes))
		return NULL;
	piece = malloc(sizeof *piece + bytes);
	if (!piece)
		return NULL;
	t->piece_bytes += (int64_t)bytes;
	piece->next = t->pieces;
	t->pieces = piece;
	return piece->data;
}

static void piece_free(void *data, void *arg)
{
	(void)data;   /* all of a block at once, in drop_bodies */
	(void)arg;
}

static void drop_bodies(fxi_h5_table *t)
{
	while (t->pieces) {
		struct fxi_piece *next = t->pieces->next;

		free(t->pieces);
		t->pieces = next;
	}
	t->piece_bytes = 0;
	t->n_bodies = 0;
}

/* The memory types {head} and {sequence, ...}, out of the record's. */
static bool make_types(fxi_h5_table *t, hid_t record)
{
	int n = H5Tget_nmembers(record);
	bool ok = n >= 2 && n <= 1 + FXI_TABLE_SEQUENCES;

	t->n_sequences = n - 1;
	t->head_type = H5Tcreate(H5T_COMPOUND, t->head_bytes);
	t->body_type = H5Tcreate(H5T_COMPOUND, sizeof(hvl_t) * (size_t)t->n_sequences);
	for (int i = 0; ok && i < n; i++) {
		char *name = H5Tget_member_name(record, (unsigned)i);
		hid_t member = H5Tget_member_type(record, (unsigned)i);

		ok = name && member >= 0 && (i == 0 ? H5Tinsert(t->head_type, name, 0, member) :
			H5Tinsert(t->body_type, name, sizeof(hvl_t) * (size_t)(i - 1), member)) >= 0;
		fxi_h5_close(&member);
		if (name)
			H5free_memory(name);
	}
	t->transfer = H5Pcreate(H5P_DATASET_XFER);
	return ok && t->transfer >= 0 &&
		H5Pset_vlen_mem_manager(t->transfer, piece_new, t, piece_free, t) >= 0;
}

static int check_shape(fxi_h5_table *t, const char *where, fx_error *err)
{
	hid_t space = H5Dget_space(t->dataset);
	int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1, status = FX_OK;
	hsize_t n = 0;

	if (rank < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot open %s", where);
	else if (rank != 1 || H5Sget_simple_extent_dims(space, &n, NULL) < 0 || n > (hsize_t)INT64_MAX)
		status = fx_error_set(err, FX_EDATA, "%s has %d dimensions; MRD records are a list (1 dimension)", where, rank);
	t->n = (int64_t)n;
	fxi_h5_close(&space);
	return status;
}

int fxi_h5_table_open(hid_t group, const char *name, const char *where, hid_t record, size_t head_bytes,
	int64_t (*expected_bytes)(const void *head), fx_error *err, fxi_h5_table *out)
{
	fxi_h5_table *t = out;
	hid_t in_file = -1;
	int status;

	memset(t, 0, sizeof *t);
	t->head_type = t->body_type = t->transfer = -1;
	t->head_bytes = head_bytes;
	t->expected_bytes = expected_bytes;
	t->dataset = H5Dopen2(group, name, H5P_DEFAULT);
	if (t->dataset < 0 || (in_file = H5Dget_type(t->dataset)) < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot open %s", where);
	else
		status = fxi_h5_check_members(in_file, record, where, err);
	fxi_h5_close(&in_file);
	if (status == FX_OK)
		status = check_shape(t, where, err);
	if (status == FX_OK) {
		t->heads = calloc(HEADS, head_bytes);
		t->bodies = calloc(BODY_RECORDS * FXI_TABLE_SEQUENCES, sizeof *t->bodies);
		if (!t->heads || !t->bodies || !make_types(t, record))
			status = fxi_h5_fail(err, FX_ENOMEM, "cannot prepare to read %s", where);
	}
	if (status != FX_OK)
		fxi_h5_table_close(t);
	return status;
}

static int read_range(fxi_h5_table *t, hid_t type, int64_t first, int64_t n, const char *where, fx_error *err, void *out)
{
	hsize_t start = (hsize_t)first, count = (hsize_t)n;
	hid_t space = H5Dget_space(t->dataset), memory = H5Screate_simple(1, &count, NULL);
	int status = FX_OK;

	if (space < 0 || memory < 0 ||
	    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0 ||
	    H5Dread(t->dataset, type, memory, space, t->transfer, out) < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot read records %lld to %lld of %s: the file is damaged",
			(long long)first, (long long)(first + n - 1), where);
	fxi_h5_close(&memory);
	fxi_h5_close(&space);
	return status;
}

static const void *head_of(const fxi_h5_table *t, int64_t i)
{
	return t->heads + (size_t)(i - t->first_head) * t->head_bytes;
}

static int read_heads(fxi_h5_table *t, int64_t first, const char *where, fx_error *err)
{
	int64_t n = t->n - first < HEADS ? t->n - first : HEADS;
	int status;

	t->n_heads = 0;
	status = read_range(t, t->head_type, first, n, where, err, t->heads);
	if (status == FX_OK) {
		t->first_head = first;
		t->n_heads = n;
	}
	return status;
}

static int read_bodies(fxi_h5_table *t, int64_t first, const char *where, fx_error *err)
{
	int64_t n = 0, bytes = 0, available;
	int status;

	drop_bodies(t);
	while (n < BODY_RECORDS && first + n < t->first_head + t->n_heads) {
		int64_t more = t->expected_bytes(head_of(t, first + n));

		if (n > 0 && bytes + more > BODY_BYTES)
			break;
		bytes += more;
		n++;
	}
	/* Twice: what HDF5 hands over, and the message's own copy. */
	if (bytes > BODY_BYTES && 2 * bytes > (available = fx_memory_available_bytes()))
		return fx_error_set(err, FX_ENOMEM, "record %lld of %s needs %lld MiB of memory, %lld MiB are available",
			(long long)first, where, (long long)(2 * bytes >> 20), (long long)(available >> 20));
	t->most_bytes = bytes + SLACK_BYTES;
	memset(t->bodies, 0, BODY_RECORDS * FXI_TABLE_SEQUENCES * sizeof *t->bodies);
	status = read_range(t, t->body_type, first, n, where, err, t->bodies);
	if (status != FX_OK) {
		drop_bodies(t);
		return status;
	}
	t->first_body = first;
	t->n_bodies = n;
	return FX_OK;
}

bool fxi_h5_table_cached(const fxi_h5_table *t, int64_t i)
{
	return i >= t->first_head && i < t->first_head + t->n_heads && i >= t->first_body &&
		i < t->first_body + t->n_bodies;
}

int fxi_h5_table_at(fxi_h5_table *t, int64_t i, const char *where, fx_error *err, const void **head, const hvl_t **body)
{
	int status = FX_OK;

	if (i < t->first_head || i >= t->first_head + t->n_heads)
		status = read_heads(t, i, where, err);
	if (status == FX_OK && (i < t->first_body || i >= t->first_body + t->n_bodies))
		status = read_bodies(t, i, where, err);
	if (status != FX_OK)
		return status;
	*head = head_of(t, i);
	*body = t->bodies + (i - t->first_body) * t->n_sequences;
	return FX_OK;
}

void fxi_h5_table_close(fxi_h5_table *t)
{
	if (!t->heads && !t->bodies && t->dataset <= 0)
		return;
	drop_bodies(t);
	fxi_h5_close(&t->dataset);
	fxi_h5_close(&t->head_type);
	fxi_h5_close(&t->body_type);
	fxi_h5_close(&t->transfer);
	free(t->heads);
	free(t->bodies);
	memset(t, 0, sizeof *t);
	t->dataset = -1;
}

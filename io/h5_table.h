/* SPDX-License-Identifier: MIT */
/*
 * h5_table.h - reads a one-dimensional dataset of {head, variable-length sequences...} in bulk.
 *
 * Heads come a few hundred at a time; they tell how large the sequences should be, so that those are read in blocks of
 * about 16 MiB and never take more memory than the heads account for.
 */
#ifndef FORNIX_IO_H5_TABLE_H
#define FORNIX_IO_H5_TABLE_H

#include "h5.h"

#define FXI_TABLE_SEQUENCES 2

typedef struct fxi_h5_table {
	hid_t dataset, head_type, body_type, transfer;
	size_t head_bytes;
	int n_sequences;
	/** Bytes that the sequences of a record with this head should take. */
	int64_t (*expected_bytes)(const void *head);
	int64_t n;                       /**< records */
	unsigned char *heads;
	int64_t first_head, n_heads;
	hvl_t *bodies;
	int64_t first_body, n_bodies;
	struct fxi_piece *pieces;        /**< memory of the sequences in `bodies` */
	int64_t piece_bytes, most_bytes;
} fxi_h5_table;

/**
 * Opens dataset `name` of `group`; `record` is its type in memory (fxi_h5_record_type and the like), whose members are
 * checked. `where` names it in messages. Called, like the others, between fxi_h5_enter and fxi_h5_leave.
 */
int fxi_h5_table_open(hid_t group, const char *name, const char *where, hid_t record, size_t head_bytes,
	int64_t (*expected_bytes)(const void *head), fx_error *err, fxi_h5_table *out);
/** Record i (forward access is what is fast): its head and sequences, valid until the next call. */
int fxi_h5_table_at(fxi_h5_table *t, int64_t i, const char *where, fx_error *err, const void **head, const hvl_t **body);
/** True where record i, body included, is in memory already: no HDF5 call is needed. */
bool fxi_h5_table_cached(const fxi_h5_table *t, int64_t i);
/** Safe on a zeroed table. */
void fxi_h5_table_close(fxi_h5_table *t);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * record.h - figures that a gadget leaves behind for run.json: keys in order of first use, each with one item or,
 * recorded again, a list of them.
 */
#ifndef FORNIX_STREAM_RECORD_H
#define FORNIX_STREAM_RECORD_H

#include <fornix/base.h>

enum fxi_entry_type {
	FXI_NUMBER = 1, /**< `numbers[n]` */
	FXI_ARRAY,      /**< n arrays: `lengths[n]`, their numbers one behind the other in `numbers` */
	FXI_TEXT,       /**< `texts[n]` */
	FXI_COUNT       /**< `count`; n is 1 */
};

/** One key. With n = 1 it is written as a plain value, with more as a list of n. NaN and infinities are null in JSON. */
typedef struct fxi_entry {
	char *key;
	int type;          /**< enum fxi_entry_type */
	int64_t n;
	double *numbers;
	int64_t n_numbers; /**< in `numbers`: n, or the sum of lengths */
	int64_t *lengths;
	char **texts;
	int64_t count;
} fxi_entry;

typedef struct fxi_record fxi_record;

/** NULL when memory is short, and FX_ENOMEM below. */
fxi_record *fxi_record_new(void);
void fxi_record_free(fxi_record *r);

/** FX_EINVAL where the key already holds another type: the first one stays. */
int fxi_record_number(fxi_record *r, const char *key, double value);
int fxi_record_numbers(fxi_record *r, const char *key, const double *values, int64_t n);
int fxi_record_text(fxi_record *r, const char *key, const char *value);
int fxi_record_count(fxi_record *r, const char *key, int64_t more);

int64_t fxi_record_n_entries(const fxi_record *r);
const fxi_entry *fxi_record_entry(const fxi_record *r, int64_t i);
/** The entry of that key, or NULL. */
const fxi_entry *fxi_record_find(const fxi_record *r, const char *key);

#endif

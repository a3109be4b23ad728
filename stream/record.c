/* SPDX-License-Identifier: MIT */
/*
 * record.c - how many items a key gets is the input's business (one per frame, say), so the lists grow through
 * allocations that may fail.
 */
#include "record.h"

#include <stdlib.h>
#include <string.h>

struct fxi_record {
	fxi_entry *entries;
	int64_t n;
};

/*
 * The list with room for `more` elements behind n, or NULL (and the list untouched). Capacities are powers of two
 * from 4, so n alone tells what is there.
 */
static void *room(void *list, int64_t n, int64_t more, size_t size)
{
	int64_t have = n ? 4 : 0, want = 4, bytes;

	if (more > INT64_MAX / 4 - n)
		return NULL;
	while (have && have < n)
		have *= 2;
	while (want < n + more)
		want *= 2;
	if (want <= have)
		return list;
	return fx_mul_size(want, (int64_t)size, &bytes) ? realloc(list, (size_t)bytes) : NULL;
}

fxi_record *fxi_record_new(void)
{
	return calloc(1, sizeof(fxi_record));
}

void fxi_record_free(fxi_record *r)
{
	if (!r)
		return;
	for (int64_t i = 0; i < r->n; i++) {
		fxi_entry *e = &r->entries[i];

		for (int64_t j = 0; e->texts && j < e->n; j++)
			free(e->texts[j]);
		free(e->texts);
		free(e->lengths);
		free(e->numbers);
		free(e->key);
	}
	free(r->entries);
	free(r);
}

static fxi_entry *find(const fxi_record *r, const char *key)
{
	for (int64_t i = 0; i < r->n; i++)
		if (strcmp(r->entries[i].key, key) == 0)
			return &r->entries[i];
	return NULL;
}

static int find_or_add(fxi_record *r, const char *key, int type, fxi_entry **out)
{
	fxi_entry *entries;
	char *copy;

	*out = find(r, key);
	if (*out)
		return (*out)->type == type ? FX_OK : FX_EINVAL;
	copy = strdup(key);
	entries = copy ? room(r->entries, r->n, 1, sizeof *entries) : NULL;
	if (!entries) {
		free(copy);
		return FX_ENOMEM;
	}
	r->entries = entries;
	*out = &entries[r->n++];
	**out = (fxi_entry){.key = copy, .type = type};
	return FX_OK;
}

int fxi_record_number(fxi_record *r, const char *key, double value)
{
	fxi_entry *e;
	double *numbers;
	int status = find_or_add(r, key, FXI_NUMBER, &e);

	if (status != FX_OK)
		return status;
	numbers = room(e->numbers, e->n, 1, sizeof *numbers);
	if (!numbers)
		return FX_ENOMEM;
	e->numbers = numbers;
	e->numbers[e->n++] = value;
	e->n_numbers = e->n;
	return FX_OK;
}

int fxi_record_numbers(fxi_record *r, const char *key, const double *values, int64_t n)
{
	fxi_entry *e;
	int64_t *lengths;
	double *numbers;
	int status = find_or_add(r, key, FXI_ARRAY, &e);

	if (status != FX_OK)
		return status;
	lengths = room(e->lengths, e->n, 1, sizeof *lengths);
	if (!lengths)
		return FX_ENOMEM;
	e->lengths = lengths;
	numbers = room(e->numbers, e->n_numbers, n, sizeof *numbers);
	if (!numbers)
		return FX_ENOMEM;
	e->numbers = numbers;
	e->lengths[e->n++] = n;
	if (n > 0)
		memcpy(e->numbers + e->n_numbers, values, (size_t)n * sizeof *values);
	e->n_numbers += n;
	return FX_OK;
}

int fxi_record_text(fxi_record *r, const char *key, const char *value)
{
	fxi_entry *e;
	int status = find_or_add(r, key, FXI_TEXT, &e);
	char *copy, **texts = NULL;

	if (status != FX_OK)
		return status;
	copy = strdup(value);
	if (copy)
		texts = room(e->texts, e->n, 1, sizeof *texts);
	if (!texts) {
		free(copy);
		return FX_ENOMEM;
	}
	e->texts = texts;
	e->texts[e->n++] = copy;
	return FX_OK;
}

int fxi_record_count(fxi_record *r, const char *key, int64_t more)
{
	fxi_entry *e;
	int status = find_or_add(r, key, FXI_COUNT, &e);

	if (status != FX_OK)
		return status;
	e->n = 1;
	e->count += more;
	return FX_OK;
}

int64_t fxi_record_n_entries(const fxi_record *r)
{
	return r->n;
}

const fxi_entry *fxi_record_entry(const fxi_record *r, int64_t i)
{
	return &r->entries[i];
}

const fxi_entry *fxi_record_find(const fxi_record *r, const char *key)
{
	return find(r, key);
}

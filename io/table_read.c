/* SPDX-License-Identifier: MIT */
/* table_read.c - see table_read.h. */
#include "table_read.h"

#include "input.h"

#include <errno.h>
#include <fornix/recon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COLUMNS 65536   /* a row of a series' b-values is as long as the series */
#define MOST_DIMS 64         /* of an MRD trajectory */

/* What is being gathered; grown by doubling, so that a short memory is an error and not a crash. */
struct table {
	int64_t n_columns, n_rows, n_blocks;
	int64_t room, block_room;
	double *values;
	int32_t *lengths;
};

static int grow(void **memory, int64_t used, int64_t *room, int64_t wanted, size_t size, fx_error *err)
{
	int64_t more = *room ? *room : 256;
	void *grown;

	while (more < wanted)
		more *= 2;
	if (more == *room)
		return FX_OK;
	grown = fx_alloc(more, size);
	if (!grown)
		return fx_error_set(err, FX_ENOMEM, "no memory for a table of %lld numbers", (long long)more);
	if (used > 0)
		memcpy(grown, *memory, (size_t)used * size);
	fx_free(*memory);
	*memory = grown;
	*room = more;
	return FX_OK;
}

static int begin_block(struct table *t, fx_error *err)
{
	int status = grow((void **)&t->lengths, t->n_blocks, &t->block_room, t->n_blocks + 1, sizeof *t->lengths, err);

	if (status == FX_OK)
		t->lengths[t->n_blocks++] = 0;
	return status;
}

static int add_row(struct table *t, const double *row, fx_error *err)
{
	int64_t used = t->n_rows * t->n_columns;
	int status = grow((void **)&t->values, used, &t->room, used + t->n_columns, sizeof *t->values, err);

	if (status != FX_OK)
		return status;
	memcpy(t->values + used, row, (size_t)t->n_columns * sizeof *row);
	t->n_rows++;
	t->lengths[t->n_blocks - 1]++;
	return FX_OK;
}

/* ---- text ---------------------------------------------------------------------------------------- */

static bool separates(char c)
{
	return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r' || c == '\n';
}

/* The numbers of one line (MOST_COLUMNS at most); -1 where something else stands there, which *bad points to. */
static int read_line(char *line, double *row, const char **bad)
{
	char *at = line, *comment = strchr(line, '#');
	int n = 0;

	if (comment)
		*comment = '\0';
	for (;;) {
		char *end;

		while (separates(*at))
			at++;
		if (*at == '\0')
			return n;
		*bad = at;
		if (n == MOST_COLUMNS)
			return -1;
		row[n] = strtod(at, &end);
		if (end == at || (*end != '\0' && !separates(*end)) || isinf(row[n]))
			return -1;
		n++;
		at = end;
	}
}

static int read_text(FILE *file, const char *path, struct table *t, fx_error *err)
{
	double *row = fx_alloc(MOST_COLUMNS, sizeof *row);
	char *line = NULL;
	size_t size = 0;
	int64_t number = 0;
	bool blank = true;
	int status = row ? FX_OK : fx_error_set(err, FX_ENOMEM, "no memory to read %s", path);

	while (status == FX_OK && getline(&line, &size, file) >= 0) {
		bool comment_only = line[strspn(line, " \t")] == '#';
		const char *bad = NULL;
		int n = read_line(line, row, &bad);

		number++;
		if (n == 0) {
			blank = blank || !comment_only;
			continue;
		}
		if (n < 0)
			status = fx_error_set(err, FX_EDATA, "%s, line %lld: '%.40s' is no number, or one of more than %d columns",
				path, (long long)number, bad, MOST_COLUMNS);
		else if (t->n_columns != 0 && n != t->n_columns)
			status = fx_error_set(err, FX_EDATA, "%s, line %lld has %d columns, those before it %lld", path, (long long)number,
				n, (long long)t->n_columns);
		t->n_columns = n;
		if (status == FX_OK && blank)
			status = begin_block(t, err);
		if (status == FX_OK)
			status = add_row(t, row, err);
		blank = false;
	}
	if (status == FX_OK && ferror(file))
		status = fx_error_set(err, FX_EIO, "cannot read %s: %s", path, strerror(errno));
	free(line);
	fx_free(row);
	return status;
}

/* ---- MRD ----------------------------------------------------------------------------------------- */

static int add_readout(const fx_acquisition *a, const char *path, struct table *t, fx_error *err)
{
	int64_t columns = a->traj->dims[0];
	int status = FX_OK;

	if (columns > MOST_DIMS || (t->n_columns != 0 && columns != t->n_columns))
		return fx_error_set(err, FX_EDATA, "%s: readout %u has a trajectory of %lld columns, those before it %lld", path,
			a->head.scan_counter, (long long)columns, (long long)t->n_columns);
	t->n_columns = columns;
	status = begin_block(t, err);
	for (int64_t i = 0; status == FX_OK && i < a->traj->dims[1]; i++) {
		double row[MOST_DIMS];

		for (int64_t d = 0; d < columns; d++)
			row[d] = (double)FX_F32_OF(a->traj)[d + columns * i];
		status = add_row(t, row, err);
	}
	return status;
}

static int read_mrd(const char *path, struct table *t, fx_error *err)
{
	fxi_source *source = NULL;
	int status = fxi_input_open(path, NULL, err, &source);
	fx_msg *msg = NULL;

	while (status == FX_OK) {
		const fx_acquisition *a;

		status = source->next(source, &msg, err);
		if (status != FX_OK || !msg)
			break;
		a = fx_msg_acquisition(msg);
		if (a && a->traj && a->traj->dims[1] > 0 && !fx_is_auxiliary(&a->head))
			status = add_readout(a, path, t, err);
		fx_drop(msg);
	}
	if (source)
		source->close(source);
	return status;
}

/* ---- either -------------------------------------------------------------------------------------- */

/* Text holds no control characters; HDF5 and MRD streams begin with some. */
static bool is_text(FILE *file)
{
	char head[256];
	size_t n = fread(head, 1, sizeof head, file);

	rewind(file);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)head[i] < ' ' && !separates(head[i]))
			return false;
	return true;
}

static int hand_over(const struct table *t, const char *path, fx_error *err, fx_array **values, fx_array **lengths)
{
	int status;

	if (t->n_rows == 0)
		return fx_error_set(err, FX_EDATA, "%s holds no numbers", path);
	status = fx_array_new2(FX_F64, t->n_columns, t->n_rows, values);
	if (status == FX_OK)
		status = fx_array_new1(FX_I32, t->n_blocks, lengths);
	if (status != FX_OK) {
		fx_array_unref(*values);
		*values = NULL;
		return fx_error_set(err, status, "no memory for the table in %s", path);
	}
	memcpy((*values)->data, t->values, (size_t)(*values)->bytes);
	memcpy((*lengths)->data, t->lengths, (size_t)(*lengths)->bytes);
	return FX_OK;
}

int fxi_table_read(const char *path, fx_error *err, fx_array **values, fx_array **lengths)
{
	struct table t = {0};
	FILE *file = fopen(path, "rbe");
	int status;

	*values = *lengths = NULL;
	if (!file)
		return fx_error_set(err, FX_EIO, "cannot open %s: %s", path, strerror(errno));
	status = is_text(file) ? read_text(file, path, &t, err) : read_mrd(path, &t, err);
	fclose(file);
	if (status == FX_OK)
		status = hand_over(&t, path, err, values, lengths);
	fx_free(t.values);
	fx_free(t.lengths);
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * columns.c - passes of 1-D transforms with one line a vector lane (vfft.h). Lines that are neighbours in memory become columns by
 * splitting real from imaginary parts; lines along the contiguous axis are transposed, a square of lanes at a time.
 */
#include "columns.h"
#include "lanes.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Transposes LANES rows of LANES numbers: each round shifts the bits of (row, column) around by one. */
INLINE void transpose(lanes v[LANES])
{
	lanes w[LANES];

	for (int round = 0; round < LANES_LOG2; round++) {
		for (int i = 0; i < LANES / 2; i++) {
			w[2 * i] = INTERLEAVE_LOW(v[i], v[i + LANES / 2]);
			w[2 * i + 1] = INTERLEAVE_HIGH(v[i], v[i + LANES / 2]);
		}
		for (int i = 0; i < LANES; i++)
			v[i] = w[i];
	}
}

/* `count` floats (at most LANES), the rest 0; and back. */
INLINE void load_part(const float *at, int64_t count, lanes *v)
{
	if (count >= LANES) {
		*v = *(const lanes_at *)at;
		return;
	}
	*v = (lanes){0};
	for (int64_t i = 0; i < count; i++)
		((float *)v)[i] = at[i];
}

INLINE void store_part(const lanes *v, int64_t count, float *at)
{
	if (count >= LANES)
		*(lanes_at *)at = *v;
	else
		memcpy(at, v, (size_t)count * sizeof *at);
}

/* One side of a block: where its first element is, and what is put into (taken from) how many lines. */
struct side {
	const fxi_line_layout *l;
	const float *weight;
	int64_t n_lines;
};

/* Elements first..last-1 of neighbouring lines into columns p on. */
static void split_rows(const struct side *s, const float *from, int64_t first, int64_t last, float *columns)
{
	for (int64_t j = first; j < last; j++, columns += COLUMN) {
		const float *row = from + 2 * j * s->l->element;
		float w = s->weight ? s->weight[j] : 1;
		lanes a, b;

		load_part(row, 2 * s->n_lines, &a);
		load_part(row + LANES, 2 * s->n_lines - LANES, &b);
		AT(columns) = w * PICK_EVEN(a, b);
		AT(columns + LANES) = w * PICK_ODD(a, b);
	}
}

static void join_rows(const struct side *s, const float *columns, int64_t first, int64_t last, float *to)
{
	for (int64_t j = first; j < last; j++, columns += COLUMN) {
		float *row = to + 2 * j * s->l->element;
		float w = s->weight ? s->weight[j] : 1;
		lanes re = w * CONST_AT(columns), im = w * CONST_AT(columns + LANES);
		lanes a = INTERLEAVE_LOW(re, im), b = INTERLEAVE_HIGH(re, im);

		store_part(&a, 2 * s->n_lines, row);
		if (2 * s->n_lines > LANES)
			store_part(&b, 2 * s->n_lines - LANES, row + LANES);
	}
}

/* Numbers first..last-1 of n_lines contiguous rows, `pitch` apart, into vectors of lanes that are `step` floats apart. */
static void turn_in(const float *rows, int64_t pitch, int64_t n_lines, int64_t first, int64_t last, float *out, int64_t step)
{
	for (int64_t j = first; j < last; j += LANES, out += LANES * step) {
		int64_t count = last - j < LANES ? last - j : LANES;
		lanes v[LANES];

		for (int i = 0; i < LANES; i++)
			load_part(rows + i * pitch + j, i < n_lines ? count : 0, &v[i]);
		transpose(v);
		for (int i = 0; i < LANES; i++)
			if (i < count)
				AT(out + i * step) = v[i];
	}
}

static void turn_out(const float *in, int64_t step, int64_t n_lines, int64_t first, int64_t last, float *rows, int64_t pitch)
{
	for (int64_t j = first; j < last; j += LANES, in += LANES * step) {
		int64_t count = last - j < LANES ? last - j : LANES;
		lanes v[LANES];

		for (int i = 0; i < LANES; i++)
			v[i] = i < count ? CONST_AT(in + i * step) : (lanes){0};
		transpose(v);
		for (int i = 0; i < LANES; i++)
			if (i < n_lines)
				store_part(&v[i], count, rows + i * pitch + j);
	}
}

static void weigh(const float *weight, int64_t n, float *columns)
{
	for (int64_t j = 0; j < n; j++) {
		AT(columns + j * COLUMN) *= weight[j];
		AT(columns + j * COLUMN + LANES) *= weight[j];
	}
}

static void gather(const struct side *s, const float *from, float *columns)
{
	const fxi_line_layout *l = s->l;
	int64_t below = l->centre < l->count ? l->centre : l->count, above = l->count - below;
	float *end = columns + (l->n - l->centre) * COLUMN;

	if (l->count < l->n)
		memset(columns + above * COLUMN, 0, (size_t)((l->n - l->count) * COLUMN) * sizeof *columns);
	if (l->element != 1) {
		split_rows(s, from, 0, below, end);
		split_rows(s, from, below, l->count, columns);
		return;
	}
	turn_in(from, 2 * l->line, s->n_lines, 0, 2 * below, end, LANES);
	turn_in(from, 2 * l->line, s->n_lines, 2 * below, 2 * l->count, columns, LANES);
	if (s->weight) {
		weigh(s->weight, below, end);
		weigh(s->weight + below, above, columns);
	}
}

static void scatter(const struct side *s, float *columns, float *to)
{
	const fxi_line_layout *l = s->l;
	int64_t below = l->centre < l->count ? l->centre : l->count, above = l->count - below;
	float *end = columns + (l->n - l->centre) * COLUMN;

	if (l->element != 1) {
		join_rows(s, end, 0, below, to);
		join_rows(s, columns, below, l->count, to);
		return;
	}
	if (s->weight) {
		weigh(s->weight, below, end);
		weigh(s->weight + below, above, columns);
	}
	turn_out(end, LANES, s->n_lines, 0, 2 * below, to, 2 * l->line);
	turn_out(columns, LANES, s->n_lines, 2 * below, 2 * l->count, to, 2 * l->line);
}

void FXI_NAME(fxi_columns_pass)(const fxi_vfft *plan, int inverse, const fxi_line_layout *in, const float *from,
	const float *weight_in, const fxi_line_layout *out, float *to, const float *weight_out, float *scratch)
{
	const fxi_vfft_ends ends = {0};
	float *columns = scratch, *a = columns + COLUMN * plan->n, *b = a + COLUMN * plan->n, *work = b + COLUMN * plan->n;

	/* All of the block is read before any of it is written, since a pass may be in place: lanes by lanes is enough. */
	for (int64_t first = 0; first < in->n_lines; first += LANES) {
		int64_t n = in->n_lines - first < LANES ? in->n_lines - first : LANES;
		struct side from_side = {in, weight_in, n}, to_side = {out, weight_out, n};

		gather(&from_side, from + 2 * first * in->line, columns);
		scatter(&to_side, FXI_NAME(fxi_vfft_run)(plan, inverse, &ends, columns, a, b, work), to + 2 * first * out->line);
	}
}

void FXI_NAME(fxi_columns_real)(const fxi_vfft *plan, int64_t n_rows, int64_t pitch, int64_t half, const float *weight,
	float *rows, float *scratch)
{
	const fxi_vfft_ends ends = {0};
	int64_t n = plan->n;
	float *columns = scratch, *a = columns + COLUMN * (n + 2), *b = a + COLUMN * n, *work = b + COLUMN * n;

	for (int64_t first = 0; first < n_rows; first += 2 * LANES) {
		/* Rows first.. are the real parts, rows second.. the imaginary ones. */
		int64_t second = first + LANES < n_rows ? first + LANES : n_rows, last = second + LANES < n_rows ? second + LANES : n_rows;
		float *x = rows + first * pitch, *y = rows + second * pitch, *even = columns, *odd = columns + half * COLUMN, *z;

		turn_in(x, pitch, second - first, n / 2, n, columns, COLUMN);
		turn_in(x, pitch, second - first, 0, n / 2, columns + n / 2 * COLUMN, COLUMN);
		turn_in(y, pitch, last - second, n / 2, n, columns + LANES, COLUMN);
		turn_in(y, pitch, last - second, 0, n / 2, columns + n / 2 * COLUMN + LANES, COLUMN);
		z = FXI_NAME(fxi_vfft_run)(plan, 1, &ends, columns, a, b, work);
		for (int64_t k = 0; k < half; k++) {
			const float *p = z + k * COLUMN, *m = z + (k ? n - k : 0) * COLUMN;
			float w = weight[k] / 2;

			AT(even + k * COLUMN) = w * (CONST_AT(p) + CONST_AT(m));
			AT(even + k * COLUMN + LANES) = w * (CONST_AT(p + LANES) - CONST_AT(m + LANES));
			AT(odd + k * COLUMN) = w * (CONST_AT(p + LANES) + CONST_AT(m + LANES));
			AT(odd + k * COLUMN + LANES) = w * (CONST_AT(m) - CONST_AT(p));
		}
		turn_out(even, LANES, second - first, 0, 2 * half, x, pitch);
		turn_out(odd, LANES, last - second, 0, 2 * half, y, pitch);
	}
}

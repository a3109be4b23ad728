/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.c - the passes of the block-Toeplitz product over columns of lanes.
 *
 * A line of n voxels padded to 2 n has even frequencies FFT_n(x) and odd ones FFT_n(x e^{-i pi j/n}); the way back,
 * of which only n voxels are kept, is IFFT_n(even) + e^{i pi j/n} IFFT_n(odd). So the zeros are never seen.
 */
#include "toeplitz.h"
#include "lanes.h"

static float *buffer(const fxi_toeplitz *t, float *scratch, int i)
{
	return scratch + i * t->buffer;
}

#define RUN FXI_NAME(fxi_vfft_run)

/* `count` complex numbers (at most LANES) as a column, the rest of it 0; and back. */
static column load(const float *at, int64_t count)
{
	float part[COLUMN] __attribute__((aligned(64))) = {0};

	if (count < LANES) {
		for (int64_t i = 0; i < 2 * count; i++)
			part[i] = at[i];
		at = part;
	}
	lanes a = *(const lanes_at *)at, b = *(const lanes_at *)(at + LANES);
	return (column){PICK_EVEN(a, b), PICK_ODD(a, b)};
}

static void store(column v, float *at, int64_t count)
{
	float part[COLUMN] __attribute__((aligned(64)));
	float *to = count < LANES ? part : at;

	*(lanes_at *)to = INTERLEAVE_LOW(v.re, v.im);
	*(lanes_at *)(to + LANES) = INTERLEAVE_HIGH(v.re, v.im);
	if (count < LANES)
		for (int64_t i = 0; i < 2 * count; i++)
			at[i] = part[i];
}

static int64_t voxels_in(const fxi_toeplitz *t, int64_t block)
{
	int64_t left = t->n[0] - block * LANES;

	return left < LANES ? left : LANES;
}

void FXI_NAME(fxi_toeplitz_z_forward)(const fxi_toeplitz *t, int64_t y, const float *image, float *planes,
	float *scratch)
{
	const fxi_vfft *plan = &t->plan[2];
	int64_t n = t->n[2], slice = t->n[0] * t->n[1], row = t->blocks_x * COLUMN, plane = t->n[1] * row;
	float *in = buffer(t, scratch, 0), *a = buffer(t, scratch, 1), *b = buffer(t, scratch, 2);
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t block = 0; block < t->blocks_x; block++) {
		const float *from = image + 2 * (y * t->n[0] + block * LANES);
		float *to = planes + y * row + block * COLUMN, *first = n > 1 ? in : to;
		fxi_vfft_ends even = {.out = to, .out_step = 2 * plane};
		fxi_vfft_ends odd = {.twist = true, .out = to + plane, .out_step = 2 * plane};

		for (int64_t z = 0; z < n; z++) {
			column v = load(from + 2 * z * slice, voxels_in(t, block));

			AT(first + z * COLUMN) = v.re;
			AT(first + z * COLUMN + LANES) = v.im;
		}
		if (n > 1) {
			RUN(plan, 0, &even, in, a, b, work);
			RUN(plan, 0, &odd, in, a, b, work);
		}
	}
}

void FXI_NAME(fxi_toeplitz_z_inverse)(const fxi_toeplitz *t, int64_t y, const float *planes, float *image,
	float *scratch)
{
	const fxi_vfft *plan = &t->plan[2];
	int64_t n = t->n[2], slice = t->n[0] * t->n[1], row = t->blocks_x * COLUMN, plane = t->n[1] * row;
	float *sum = buffer(t, scratch, 0), *a = buffer(t, scratch, 1), *b = buffer(t, scratch, 2);
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t block = 0; block < t->blocks_x; block++) {
		const float *from = planes + y * row + block * COLUMN, *last = n > 1 ? sum : from;
		float *to = image + 2 * (y * t->n[0] + block * LANES);

		if (n > 1) {
			fxi_vfft_ends even = {.in_step = 2 * plane, .out = sum};
			fxi_vfft_ends odd = {.in_step = 2 * plane, .add = sum, .out = sum};

			RUN(plan, 1, &even, from, a, b, work);
			RUN(plan, 1, &odd, from + plane, a, b, work);
		}
		for (int64_t z = 0; z < n; z++)
			store((column){CONST_AT(last + z * COLUMN), CONST_AT(last + z * COLUMN + LANES)},
				to + 2 * z * slice, voxels_in(t, block));
	}
}

/* Transposes LANES rows of LANES numbers: each round shifts the bits of (row, column) around by one. */
static inline __attribute__((always_inline)) void transpose(lanes v[LANES])
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

/*
 * A tile of LANES columns from `in` (rows in[0], in[1], ... or, with `second`, by turns from both), transposed into
 * the columns at `out`. Rows from `n_in` on count as 0; columns from `n_out` on are not written.
 */
static inline __attribute__((always_inline)) void tile(const float *in, const float *second, int64_t in_step,
	int64_t n_in, float *out, int64_t out_step, int64_t n_out)
{
	for (int part = 0; part < COLUMN; part += LANES) {
		lanes v[LANES];

		for (int i = 0; i < LANES; i++) {
			const float *from = second ? (i % 2 ? second : in) + i / 2 * in_step : in + i * in_step;

			v[i] = i < n_in ? CONST_AT(from + part) : (lanes){0};
		}
		transpose(v);
		for (int i = 0; i < LANES; i++)
			if (i < n_out)
				AT(out + i * out_step + part) = v[i];
	}
}

/* The other way: `rows` columns at `in` into columns that go, by turns, to `even` and `odd` (NULL: all to `even`). */
static inline __attribute__((always_inline)) void untile(const float *in, int64_t rows, float *even, float *odd,
	int64_t n_out)
{
	for (int part = 0; part < COLUMN; part += LANES) {
		lanes v[LANES];

		for (int i = 0; i < LANES; i++)
			v[i] = i < rows ? CONST_AT(in + i * COLUMN + part) : (lanes){0};
		transpose(v);
		for (int i = 0; i < LANES; i++) {
			float *to = odd ? (i % 2 ? odd : even) + i / 2 * COLUMN : even + i * COLUMN;

			if (i < n_out)
				AT(to + part) = v[i];
		}
	}
}

static int64_t at_most_lanes(int64_t n)
{
	return n < LANES ? n : LANES;
}

/* LANES rows from row y on: along x and into `waves`, blocks of x frequencies, each with all rows. */
static void rows_forward(const fxi_toeplitz *t, int64_t y, const float *plane, float *waves, float *scratch)
{
	int64_t n = t->n[0], row = t->blocks_x * COLUMN, block = t->n[1] * COLUMN;
	int64_t rows = at_most_lanes(t->n[1] - y);
	float *in = buffer(t, scratch, 0), *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);
	const float *even = in, *odd = NULL;

	for (int64_t b = 0; b < t->blocks_x; b++)
		tile(plane + y * row + b * COLUMN, NULL, row, rows, in + b * LANES * COLUMN, COLUMN, voxels_in(t, b));
	if (n > 1) {
		fxi_vfft_ends plain = {0}, twisted = {.twist = true};

		odd = RUN(&t->plan[0], 0, &twisted, in, buffer(t, scratch, 1), buffer(t, scratch, 2), work);
		even = RUN(&t->plan[0], 0, &plain, in, buffer(t, scratch, 3), in, work);
	}
	for (int64_t b = 0; b < t->blocks_f; b++) {
		int64_t at = b * (LANES / 2) * COLUMN;

		tile(even + at, odd ? odd + at : NULL, COLUMN, at_most_lanes(t->f[0] - b * LANES),
			waves + b * block + y * COLUMN, COLUMN, rows);
	}
}

static void rows_inverse(const fxi_toeplitz *t, int64_t y, const float *waves, float *plane, float *scratch)
{
	int64_t n = t->n[0], row = t->blocks_x * COLUMN, block = t->n[1] * COLUMN;
	int64_t rows = at_most_lanes(t->n[1] - y);
	float *even = buffer(t, scratch, 0), *odd = buffer(t, scratch, 1), *a = buffer(t, scratch, 2);
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t b = 0; b < t->blocks_f; b++) {
		int64_t at = b * (LANES / 2) * COLUMN;

		untile(waves + b * block + y * COLUMN, rows, even + at, n > 1 ? odd + at : NULL,
			at_most_lanes(t->f[0] - b * LANES));
	}
	if (n > 1) {
		fxi_vfft_ends plain = {.out = even}, joined = {.add = even, .out = even};

		RUN(&t->plan[0], 1, &plain, even, a, buffer(t, scratch, 3), work);
		RUN(&t->plan[0], 1, &joined, odd, a, buffer(t, scratch, 3), work);
	}
	for (int64_t b = 0; b < t->blocks_x; b++)
		tile(even + b * LANES * COLUMN, NULL, COLUMN, voxels_in(t, b), plane + y * row + b * COLUMN, row, rows);
}

/* Where row 0 of a block's part of the spectrum's plane is, in whole vectors; a narrow block is filled up with 0. */
static const float *weights_of(const fxi_toeplitz *t, const float *spectrum, int64_t count, float *wide, int64_t *step)
{
	*step = t->f[0];
	if (count == LANES)
		return spectrum;
	for (int64_t f = 0; f < t->f[1]; f++)
		for (int64_t i = 0; i < LANES; i++)
			wide[f * LANES + i] = i < count ? spectrum[f * t->f[0] + i] : 0;
	*step = LANES;
	return wide;
}

/* One block of x frequencies: along y, times spectrum, back along y, in place. */
static void wave_block(const fxi_toeplitz *t, const float *spectrum, int64_t count, float *v, float *scratch)
{
	const fxi_vfft *plan = &t->plan[1];
	float *a = buffer(t, scratch, 0), *b = buffer(t, scratch, 1), *sum = buffer(t, scratch, 2), *r;
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);
	int64_t step;
	const float *weights = weights_of(t, spectrum, count, buffer(t, scratch, 3), &step);

	if (plan->n == 1) {
		lanes weight = *(const lanes_at *)weights * t->norm;

		AT(v) *= weight;
		AT(v + LANES) *= weight;
		return;
	}
	fxi_vfft_ends even = {.weights = weights, .weight_step = 2 * step, .norm = t->norm}, back = {.out = sum};
	fxi_vfft_ends odd = even, joined = {.add = sum, .out = v};

	odd.twist = true;
	odd.weights += step;
	r = RUN(plan, 0, &even, v, a, b, work);
	RUN(plan, 1, &back, r, r == a ? b : a, r, work);
	r = RUN(plan, 0, &odd, v, a, b, work);
	RUN(plan, 1, &joined, r, r == a ? b : a, r, work);
}

void FXI_NAME(fxi_toeplitz_plane)(const fxi_toeplitz *t, int64_t fz, float *plane, float *scratch)
{
	float *waves = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS + 1);
	const float *spectrum = t->spectrum + fz * t->f[0] * t->f[1];

	for (int64_t y = 0; y < t->n[1]; y += LANES)
		rows_forward(t, y, plane, waves, scratch);
	for (int64_t b = 0; b < t->blocks_f; b++)
		wave_block(t, spectrum + b * LANES, at_most_lanes(t->f[0] - b * LANES), waves + b * t->n[1] * COLUMN,
			scratch);
	for (int64_t y = 0; y < t->n[1]; y += LANES)
		rows_inverse(t, y, waves, plane, scratch);
}

/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.c - the passes of the block-Toeplitz product over columns of lanes.
 *
 * A line of n voxels padded to 2 n has even frequencies FFT_n(x) and odd ones FFT_n(x e^{-i pi j/n}); the way back,
 * of which only n voxels are kept, is IFFT_n(even) + e^{i pi j/n} IFFT_n(odd). So the zeros are never seen.
 */
#include "toeplitz.h"
#include "lanes.h"

#define COLUMN (2 * LANES) /* floats */

static float *buffer(const fxi_toeplitz *t, float *scratch, int i)
{
	return scratch + i * t->buffer;
}

/* out = in times e^{-i pi j/n}, or with `inverse` e^{+i pi j/n} */
static void twist(const fxi_vfft *plan, int inverse, const float *in, float *out)
{
	int64_t re = inverse ? LANES : 0, im = LANES - re;

	for (int64_t j = 0; j < plan->n; j++) {
		column v = {CONST_AT(in + j * COLUMN + re), CONST_AT(in + j * COLUMN + im)};

		v = times(v, plan->half[2 * j], plan->half[2 * j + 1]);
		AT(out + j * COLUMN + re) = v.re;
		AT(out + j * COLUMN + im) = v.im;
	}
}

static void add(int64_t n, const float *a, const float *b, float *out)
{
	for (int64_t i = 0; i < n * COLUMN; i += LANES)
		AT(out + i) = CONST_AT(a + i) + CONST_AT(b + i);
}

static void copy(int64_t n, const float *in, int64_t in_step, float *out, int64_t out_step)
{
	for (int64_t j = 0; j < n; j++) {
		AT(out + j * out_step) = CONST_AT(in + j * in_step);
		AT(out + j * out_step + LANES) = CONST_AT(in + j * in_step + LANES);
	}
}

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
	float *in = buffer(t, scratch, 0), *odd = buffer(t, scratch, 1), *a = buffer(t, scratch, 2);
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t b = 0; b < t->blocks_x; b++) {
		const float *from = image + 2 * (y * t->n[0] + b * LANES);
		float *to = planes + y * row + b * COLUMN;

		for (int64_t z = 0; z < n; z++) {
			column v = load(from + 2 * z * slice, voxels_in(t, b));

			AT(in + z * COLUMN) = v.re;
			AT(in + z * COLUMN + LANES) = v.im;
		}
		if (n == 1) {
			copy(1, in, 0, to, 0);
			continue;
		}
		twist(plan, 0, in, odd);
		copy(n, FXI_NAME(fxi_vfft_run)(plan, 0, in, a, in, work), COLUMN, to, 2 * plane);
		copy(n, FXI_NAME(fxi_vfft_run)(plan, 0, odd, a, odd, work), COLUMN, to + plane, 2 * plane);
	}
}

void FXI_NAME(fxi_toeplitz_z_inverse)(const fxi_toeplitz *t, int64_t y, const float *planes, float *image,
	float *scratch)
{
	const fxi_vfft *plan = &t->plan[2];
	int64_t n = t->n[2], slice = t->n[0] * t->n[1], row = t->blocks_x * COLUMN, plane = t->n[1] * row;
	float *even = buffer(t, scratch, 0), *odd = buffer(t, scratch, 1);
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t b = 0; b < t->blocks_x; b++) {
		const float *from = planes + y * row + b * COLUMN, *sum = from;
		float *to = image + 2 * (y * t->n[0] + b * LANES);

		if (n > 1) {
			float *e, *o;

			copy(n, from, 2 * plane, even, COLUMN);
			copy(n, from + plane, 2 * plane, odd, COLUMN);
			e = FXI_NAME(fxi_vfft_run)(plan, 1, even, buffer(t, scratch, 2), even, work);
			o = FXI_NAME(fxi_vfft_run)(plan, 1, odd, buffer(t, scratch, 3), odd, work);
			twist(plan, 1, o, o);
			add(n, e, o, e);
			sum = e;
		}
		for (int64_t z = 0; z < n; z++)
			store((column){CONST_AT(sum + z * COLUMN), CONST_AT(sum + z * COLUMN + LANES)},
				to + 2 * z * slice, voxels_in(t, b));
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

static int64_t at_most_lanes(int64_t n)
{
	return n < LANES ? n : LANES;
}

/* LANES rows from row y on: along x and into `waves`, blocks of x frequencies, each with all rows. */
static void rows_forward(const fxi_toeplitz *t, int64_t y, const float *plane, float *waves, float *scratch)
{
	const fxi_vfft *plan = &t->plan[0];
	int64_t n = t->n[0], row = t->blocks_x * COLUMN, block = t->n[1] * COLUMN;
	int64_t rows = at_most_lanes(t->n[1] - y);
	float *even = buffer(t, scratch, 0), *odd = buffer(t, scratch, 1), *e = even, *o = NULL;
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t b = 0; b < t->blocks_x; b++)
		tile(plane + y * row + b * COLUMN, NULL, row, rows, even + b * LANES * COLUMN, COLUMN,
			voxels_in(t, b));
	if (n > 1) {
		twist(plan, 0, even, odd);
		e = FXI_NAME(fxi_vfft_run)(plan, 0, even, buffer(t, scratch, 2), even, work);
		o = FXI_NAME(fxi_vfft_run)(plan, 0, odd, buffer(t, scratch, 3), odd, work);
	}
	for (int64_t b = 0; b < t->blocks_f; b++) {
		int64_t at = b * (LANES / 2) * COLUMN;

		tile(e + at, o ? o + at : NULL, COLUMN, at_most_lanes(t->f[0] - b * LANES),
			waves + b * block + y * COLUMN, COLUMN, rows);
	}
}

static void rows_inverse(const fxi_toeplitz *t, int64_t y, const float *waves, float *plane, float *scratch)
{
	const fxi_vfft *plan = &t->plan[0];
	int64_t n = t->n[0], row = t->blocks_x * COLUMN, block = t->n[1] * COLUMN;
	int64_t rows = at_most_lanes(t->n[1] - y);
	float *even = buffer(t, scratch, 0), *odd = buffer(t, scratch, 1), *sum = even;
	float *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);

	for (int64_t b = 0; b < t->blocks_f; b++) {
		lanes v[2][LANES];
		int64_t first = b * LANES, count = at_most_lanes(t->f[0] - first);

		for (int part = 0; part < 2; part++) {
			for (int i = 0; i < LANES; i++)
				v[part][i] = i < rows ? CONST_AT(waves + b * block + (y + i) * COLUMN + part * LANES)
						      : (lanes){0};
			transpose(v[part]);
			for (int64_t i = 0; i < count; i++) {
				float *to = n > 1 ? (i % 2 ? odd : even) + (first + i) / 2 * COLUMN : even;

				AT(to + part * LANES) = v[part][i];
			}
		}
	}
	if (n > 1) {
		float *o;

		sum = FXI_NAME(fxi_vfft_run)(plan, 1, even, buffer(t, scratch, 2), even, work);
		o = FXI_NAME(fxi_vfft_run)(plan, 1, odd, buffer(t, scratch, 3), odd, work);
		twist(plan, 1, o, o);
		add(n, sum, o, sum);
	}
	for (int64_t b = 0; b < t->blocks_x; b++)
		tile(sum + b * LANES * COLUMN, NULL, COLUMN, voxels_in(t, b), plane + y * row + b * COLUMN, row, rows);
}

/* Column of y frequencies times spectrum: frequency f of `v` is row `first + f * step` of the spectrum's plane. */
static void multiply(const fxi_toeplitz *t, const float *spectrum, int64_t first, int64_t step, int64_t count, float *v)
{
	for (int64_t f = 0; f < t->n[1]; f++) {
		const float *from = spectrum + (first + f * step) * t->f[0];
		float part[LANES] __attribute__((aligned(64))) = {0};
		lanes s;

		if (count < LANES) {
			for (int64_t i = 0; i < count; i++)
				part[i] = from[i];
			from = part;
		}
		s = *(const lanes_at *)from * t->norm;
		AT(v + f * COLUMN) *= s;
		AT(v + f * COLUMN + LANES) *= s;
	}
}

/* One block of x frequencies: along y, times spectrum, back along y, in place. */
static void wave_block(const fxi_toeplitz *t, const float *spectrum, int64_t count, float *v, float *scratch)
{
	const fxi_vfft *plan = &t->plan[1];
	float *a = buffer(t, scratch, 0), *b = buffer(t, scratch, 1), *work = buffer(t, scratch, FXI_TOEPLITZ_BUFFERS);
	float *odd = buffer(t, scratch, 2), *r, *o;

	if (plan->n == 1) {
		multiply(t, spectrum, 0, 1, count, v);
		return;
	}
	twist(plan, 0, v, odd);
	r = FXI_NAME(fxi_vfft_run)(plan, 0, odd, a, odd, work);
	multiply(t, spectrum, 1, 2, count, r);
	o = FXI_NAME(fxi_vfft_run)(plan, 1, r, r == a ? odd : a, r, work);
	if (o == a) { /* keep it out of the way of the even half */
		a = odd;
		odd = o;
	}
	twist(plan, 1, o, o);
	r = FXI_NAME(fxi_vfft_run)(plan, 0, v, a, b, work);
	multiply(t, spectrum, 0, 2, count, r);
	r = FXI_NAME(fxi_vfft_run)(plan, 1, r, r == a ? b : a, r, work);
	add(plan->n, r, o, v);
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

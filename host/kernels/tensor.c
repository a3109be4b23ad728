/* SPDX-License-Identifier: MIT */
/*
 * tensor.c - weighted log-linear fits of LANES voxels at a time.
 *
 * The design's columns are orthonormal, so that an unweighted fit is one product with Q^T, and a weighted one solves for
 * the correction of the last: (Q^T W Q) dz = Q^T W (y - Q z). Its rounding is relative to a residual, which is small, and
 * the next correction takes off the rounding of the one before: single precision does (host/tensor.c checks the pivots).
 */
#include "tensor.h"
#include "tensor_math.h"

#define TILE FXI_TENSOR_TILE
#define X FXI_TENSOR_X
#define XX FXI_TENSOR_XX

enum weighting { BY_USE, BY_SIGNAL, BY_FIT };

/* One vector of voxels inside a tile. */
struct column_of {
	const fxi_tensor_rows *rows;
	float *s, *y;       /* row i at TILE i */
	float *w, *wr;      /* row i at LANES i */
	lanes z[X], pivot;
};

void FXI_NAME(fxi_tensor_log)(int64_t n, const float *s, float *y)
{
	for (int64_t i = 0; i < n; i += LANES) {
		float block[LANES] __attribute__((aligned(64))) = {0};
		int64_t length = n - i < LANES ? n - i : LANES;
		lanes v;
		whole good;

		for (int64_t k = 0; k < length; k++)
			block[k] = s[i + k];
		v = AT(block);
		good = usable(v);
		AT(block) = choose(good, logarithm(v), __builtin_nanf("") + (lanes){0});
		for (int64_t k = 0; k < length; k++)
			y[i + k] = block[k];
	}
}

void FXI_NAME(fxi_tensor_exp)(int64_t n, const float *x, float *y)
{
	for (int64_t i = 0; i < n; i += LANES) {
		float block[LANES] __attribute__((aligned(64))) = {0};
		int64_t length = n - i < LANES ? n - i : LANES;

		for (int64_t k = 0; k < length; k++)
			block[k] = x[i + k];
		AT(block) = exponential(AT(block));
		for (int64_t k = 0; k < length; k++)
			y[i + k] = block[k];
	}
}

static inline __attribute__((always_inline)) lanes fitted(const float *q, const lanes z[X])
{
	lanes f = q[0] * z[0];

#pragma GCC unroll 8
	for (int k = 1; k < X; k++)
		f += q[k] * z[k];
	return f;
}

/* sums of w products[first ..] over the volumes; few enough to stay in registers */
static inline __attribute__((always_inline)) void sum(int64_t n, const float *w, const float *products, int64_t stride,
	int n_sums, lanes *out)
{
	lanes s[14] = {{0}};

	for (int64_t i = 0; i < n; i++) {
		lanes wi = AT(w + i * LANES);

#pragma GCC unroll 16
		for (int k = 0; k < n_sums; k++)
			s[k] += products[i * stride + k] * wi;
	}
#pragma GCC unroll 16
	for (int k = 0; k < n_sums; k++)
		out[k] = s[k];
}

/* z += A^-1 g with A = L D L^T. Lanes whose matrix is not positive come out as anything, and their pivot says so. */
static void correct(struct column_of *c, lanes a[XX], lanes g[X])
{
	lanes inverse[X];

#pragma GCC unroll 8
	for (int k = 0; k < X; k++) {
		lanes *row = a + k * (k + 1) / 2, diagonal = row[k], relative;

#pragma GCC unroll 8
		for (int l = 0; l < k; l++) {
			const lanes *other = a + l * (l + 1) / 2;

#pragma GCC unroll 8
			for (int j = 0; j < l; j++)
				row[l] -= row[j] * other[j];
		}
#pragma GCC unroll 8
		for (int l = 0; l < k; l++) { /* row[l] is L_kl D_l up to here */
			lanes scaled = row[l] * inverse[l];

			row[k] -= scaled * row[l];
			g[k] -= scaled * g[l];
			row[l] = scaled;
		}
		inverse[k] = 1 / row[k];
		relative = row[k] / diagonal;
		c->pivot = choose((whole)(relative < c->pivot) | (whole)(relative != relative), relative, c->pivot);
	}
#pragma GCC unroll 8
	for (int k = X - 1; k >= 0; k--) {
		g[k] *= inverse[k];
#pragma GCC unroll 8
		for (int l = k + 1; l < X; l++)
			g[k] -= a[l * (l + 1) / 2 + k] * g[l];
		c->z[k] += g[k];
	}
}

/* One weighted fit: z moves to the minimum of sum w (y - Q z)^2. */
static inline __attribute__((always_inline)) void solve(struct column_of *c, enum weighting by)
{
	const fxi_tensor_rows *rows = c->rows;
	lanes mean = rows->q[0] * c->z[0], unit = exponential(-mean), a[XX], g[X];

	for (int64_t i = 0; i < rows->n; i++) {
		lanes s = AT(c->s + i * TILE), f = fitted(rows->q + X * i, c->z), w;
		whole use = (whole)(s > 0);

		if (by == BY_USE)
			w = keep(use, 1 + (lanes){0});
		else if (by == BY_SIGNAL)
			w = (s * unit) * (s * unit);
		else
			w = keep(use, exponential(2 * (f - mean)));
		AT(c->w + i * LANES) = w;
		AT(c->wr + i * LANES) = w * (AT(c->y + i * TILE) - f);
	}
	sum(rows->n, c->w, rows->qq, XX, 14, a);
	sum(rows->n, c->w, rows->qq + 14, XX, 14, a + 14);
	sum(rows->n, c->wr, rows->q, X, X, g);
	correct(c, a, g);
}

/* Without weights Q^T (y - Q z) is the whole correction; from z = 0 a second one takes off the rounding of large y. */
static inline __attribute__((always_inline)) void solve_unweighted(struct column_of *c)
{
	const fxi_tensor_rows *rows = c->rows;

	for (int pass = 0; pass < 2; pass++) {
		lanes g[X] = {{0}};

		for (int64_t i = 0; i < rows->n; i++) {
			lanes r = AT(c->y + i * TILE) - fitted(rows->q + X * i, c->z);

#pragma GCC unroll 8
			for (int k = 0; k < X; k++)
				g[k] += rows->q[X * i + k] * r;
		}
		for (int k = 0; k < X; k++)
			c->z[k] += g[k];
	}
}

/* Logarithms of a vector's signals, and what can be said of them at once. True where all are of use. */
static inline __attribute__((always_inline)) bool prepare(struct column_of *c, lanes *used, lanes *differs)
{
	lanes first = {0}, n = {0};
	whole other = {0};
	bool all = true;

	for (int64_t i = 0; i < c->rows->n; i++) {
		lanes s = AT(c->s + i * TILE);
		whole good = usable(s);

		s = keep(good, s);
		n += keep(good, 1 + (lanes){0});
		first = choose((whole)(first > 0), first, s);
		other |= good & (whole)(s != first);
		AT(c->s + i * TILE) = s;
		AT(c->y + i * TILE) = keep(good, logarithm(s));
	}
	*used = n;
	*differs = keep(other, 1 + (lanes){0});
	for (int k = 0; k < LANES; k++)
		all = all && n[k] == (float)c->rows->n;
	return all;
}

/* In units of e^mean, whose square neither over- nor underflows. */
static inline __attribute__((always_inline)) lanes residual(const struct column_of *c, lanes used)
{
	const fxi_tensor_rows *rows = c->rows;
	lanes mean = rows->q[0] * c->z[0], unit = exponential(-mean), squares = {0}, out;

	for (int64_t i = 0; i < rows->n; i++) {
		lanes s = AT(c->s + i * TILE), f = fitted(rows->q + X * i, c->z), r = s * unit - exponential(f - mean);

		squares += keep((whole)(s > 0), r * r);
	}
	squares /= used;
	for (int k = 0; k < LANES; k++)
		out[k] = __builtin_sqrtf(squares[k]);
	return out * exponential(mean);
}

void FXI_NAME(fxi_tensor_fit)(const fxi_tensor_rows *rows, fxi_tensor_tile *tile)
{
	for (int64_t at = 0; at < TILE; at += LANES) {
		struct column_of c = {.rows = rows, .s = tile->s + at, .y = tile->y + at, .w = tile->work,
			.wr = tile->work + rows->n * LANES, .pivot = 1 + (lanes){0}};
		lanes used, differs;
		bool any = false, whole_rows;

		for (int k = 0; k < LANES; k++)
			any = any || tile->wanted[at + k];
		if (!any)
			continue;
		whole_rows = prepare(&c, &used, &differs);
		solve_unweighted(&c);
		if (!whole_rows)
			solve(&c, BY_USE);
		if (rows->from_signals)
			solve(&c, BY_SIGNAL);
		for (int i = 0; i < rows->reweightings; i++)
			solve(&c, BY_FIT);
		for (int k = 0; k < X; k++)
			AT(tile->z + k * TILE + at) = c.z[k];
		AT(tile->residual + at) = residual(&c, used);
		AT(tile->used + at) = used;
		AT(tile->pivot + at) = c.pivot;
		AT(tile->differs + at) = differs;
	}
}

void FXI_NAME(fxi_tensor_accumulate)(int64_t n, int64_t stride, const float *row, const float *s, const float *first,
	float *sums, uint8_t *seen)
{
	float block[2][TILE] __attribute__((aligned(64)));

	for (int64_t i = 0; i < n; i += TILE) {
		int64_t length = n - i < TILE ? n - i : TILE;

		FXI_NAME(fxi_tensor_log)(length, s + i, block[0]);
		for (int64_t k = 0; k < length; k++) {
			bool good = block[0][k] == block[0][k];

			seen[i + k] |= (uint8_t)((good ? 0 : 1) | (s[i + k] == first[i + k] ? 0 : 2));
			block[1][k] = good ? block[0][k] : 0;
		}
		for (int x = 0; x < X; x++) {
			float *restrict to = sums + x * stride + i;
			float q = row[x];

#pragma omp simd
			for (int64_t k = 0; k < length; k++)
				to[k] += q * block[1][k];
		}
	}
}

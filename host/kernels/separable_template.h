/* SPDX-License-Identifier: MIT */
/*
 * separable_template.h - included by separable.c with REAL, PHASE, SIGNED, FN and the coefficients of one precision.
 *
 * The product keeps a tile of sums in registers: VECTORS vectors of voxels by COLUMNS, four multiplications and additions
 * each a term. The columns of a tile are copied together first, into what stays in the first cache while the left
 * factor streams by.
 */
#include "sincos_template.h"

#define BAND (FXI_SEPARABLE_BYTES / (int)sizeof(REAL))

void FN(fxi_separable_waves)(int64_t n, const PHASE *step, int64_t first, int64_t count, int64_t row, REAL *out)
{
	VPHASE lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = (PHASE)first + (PHASE)i;
	for (int64_t m = 0; m < n; m++) {
		VPHASE phase = step[m] * lane;
		PHASE jump = LANES * step[m];

		for (int64_t v = 0; v < count; v += LANES, phase += jump) {
			VREAL sine, cosine;

			FN(sincos)(&phase, &sine, &cosine);
			__builtin_memcpy(out + 2 * m * row + v, &cosine, sizeof cosine);
			__builtin_memcpy(out + (2 * m + 1) * row + v, &sine, sizeof sine);
		}
	}
}

void FN(fxi_separable_left)(int64_t n, const REAL *value, int64_t row, const REAL *wave, REAL *left)
{
	for (int64_t m = 0; m < n; m++) {
		REAL re = value[2 * m], im = value[2 * m + 1];

		for (int64_t band = 0; band < row / BAND; band++) {
			const REAL *r = wave + 2 * m * row + band * BAND, *i = r + row;
			REAL *to = left + (band * FXI_SEPARABLE_DEPTH + m) * 2 * BAND;

#pragma omp simd
			for (int v = 0; v < BAND; v++) {
				to[v] = re * r[v] - im * i[v];
				to[BAND + v] = re * i[v] + im * r[v];
			}
		}
	}
}

void FN(fxi_separable_right)(int64_t n, int64_t n_y, int64_t row_y, const REAL *wave_y, int64_t n_z, int64_t row_z,
	const REAL *wave_z, int64_t row, REAL *right)
{
	for (int64_t m = 0; m < n; m++)
		for (int64_t z = 0; z < n_z; z++) {
			const REAL *r = wave_y + 2 * m * row_y, *i = r + row_y;
			REAL re = wave_z[2 * m * row_z + z], im = wave_z[(2 * m + 1) * row_z + z];
			REAL *to = right + 2 * m * row + z * n_y;

#pragma omp simd
			for (int64_t y = 0; y < n_y; y++) {
				to[y] = re * r[y] - im * i[y];
				to[row + y] = re * i[y] + im * r[y];
			}
		}
}

/* A tile of the product; `right` is {2, COLUMNS, n_terms}, and n_columns of its columns are wanted. */
static inline __attribute__((always_inline)) void FN(tile)(const int vectors, int64_t n_terms, int64_t row, int64_t v,
	int64_t n_columns, const REAL *left, const REAL *right, REAL *product)
{
	VREAL re[COLUMNS][VECTORS], im[COLUMNS][VECTORS];
	const REAL *from[VECTORS];

#pragma GCC unroll 4
	for (int i = 0; i < vectors; i++)
		from[i] = left + (v + i * LANES) / BAND * (2 * BAND * FXI_SEPARABLE_DEPTH) + (v + i * LANES) % BAND;
#pragma GCC unroll 8
	for (int c = 0; c < COLUMNS; c++)
#pragma GCC unroll 4
		for (int i = 0; i < vectors; i++)
			re[c][i] = im[c][i] = (VREAL){0};
	for (int64_t k = 0; k < n_terms; k++) {
		VREAL r[VECTORS], q[VECTORS];

#pragma GCC unroll 4
		for (int i = 0; i < vectors; i++) {
			__builtin_memcpy(&r[i], from[i] + 2 * BAND * k, sizeof r[i]);
			__builtin_memcpy(&q[i], from[i] + 2 * BAND * k + BAND, sizeof q[i]);
		}
#pragma GCC unroll 8
		for (int c = 0; c < COLUMNS; c++) {
			REAL a = right[2 * (COLUMNS * k + c)], b = right[2 * (COLUMNS * k + c) + 1];

			/* One multiplication and addition a line: sums of products would be rounded once more. */
#pragma GCC unroll 4
			for (int i = 0; i < vectors; i++) {
				re[c][i] += r[i] * a;
				re[c][i] -= q[i] * b;
				im[c][i] += r[i] * b;
				im[c][i] += q[i] * a;
			}
		}
	}
	for (int c = 0; c < COLUMNS && c < n_columns; c++)
#pragma GCC unroll 4
		for (int i = 0; i < vectors; i++) {
			__builtin_memcpy(product + 2 * c * row + v + i * LANES, &re[c][i], sizeof(VREAL));
			__builtin_memcpy(product + (2 * c + 1) * row + v + i * LANES, &im[c][i], sizeof(VREAL));
		}
}

void FN(fxi_separable_product)(int64_t n_terms, int64_t row, int64_t n_columns, const REAL *left, const REAL *right,
	const fxi_separable_steps *at, REAL *product)
{
	REAL some[2 * COLUMNS * FXI_SEPARABLE_DEPTH];

	for (int64_t c = 0; c < n_columns; c += COLUMNS) {
		int64_t v = 0, n = n_columns - c < COLUMNS ? n_columns - c : COLUMNS;

		for (int64_t k = 0; k < n_terms; k++)
			for (int64_t i = 0; i < COLUMNS; i++) {
				const REAL *from = right + k * at->term + (c + i) * at->column;

				some[2 * (COLUMNS * k + i)] = i < n ? from[0] : 0;
				some[2 * (COLUMNS * k + i) + 1] = i < n ? from[at->im] : 0;
			}
		for (; v + VECTORS * LANES <= row; v += VECTORS * LANES)
			FN(tile)(VECTORS, n_terms, row, v, n, left, some, product + 2 * c * row);
		for (; v < row; v += LANES)
			FN(tile)(1, n_terms, row, v, n, left, some, product + 2 * c * row);
	}
}

void FN(fxi_separable_dots)(int64_t n, int64_t count, int64_t row, const REAL *a, const REAL *b, double *sum)
{
	for (int64_t m = 0; m < n; m++) {
		const REAL *x = a + 2 * m * row, *y = b + 2 * m * row;
		REAL re = 0, im = 0;

#pragma omp simd reduction(+ : re, im)
		for (int64_t v = 0; v < count; v++) {
			re += x[v] * y[v] - x[row + v] * y[row + v];
			im += x[v] * y[row + v] + x[row + v] * y[v];
		}
		sum[2 * m] += (double)re;
		sum[2 * m + 1] += (double)im;
	}
}

void FN(fxi_separable_add)(int64_t n, const REAL *part, double *sum)
{
#pragma omp simd
	for (int64_t i = 0; i < n; i++)
		sum[i] += (double)part[i];
}

#undef BAND
#undef LANES
#undef VREAL
#undef VPHASE
#undef VSIGNED

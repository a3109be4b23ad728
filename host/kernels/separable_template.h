/* SPDX-License-Identifier: MIT */
/* separable_template.h - included by separable.c with REAL, PHASE, SIGNED, FN and the coefficients of one precision. */
#include "sincos_template.h"

void FN(fxi_separable_waves)(int64_t n, const PHASE *step, int64_t first, int64_t count, int64_t row, REAL *out)
{
	VPHASE lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = (PHASE)first + (PHASE)i;
	for (int64_t m = 0; m < n; m++) {
		VPHASE phase = step[m] * lane;
		PHASE jump = LANES * step[m];

		for (int64_t v = 0; v < count; v += LANES, phase += jump) {
			REAL *to = out + 2 * (m * row + v);
			VREAL sine, cosine;

			FN(sincos)(&phase, &sine, &cosine);
#pragma GCC unroll 16
			for (int i = 0; i < LANES; i++) {
				to[2 * i] = cosine[i];
				to[2 * i + 1] = sine[i];
			}
		}
	}
}

void FN(fxi_separable_products)(int64_t n, int64_t n_factors, const REAL *factor, int64_t factor_row, int64_t count,
	const REAL *in, int64_t row, REAL *out)
{
	for (int64_t m = 0; m < n; m++)
		for (int64_t j = 0; j < n_factors; j++) {
			const REAL *from = in + 2 * m * row;
			REAL re = factor[2 * (m * factor_row + j)], im = factor[2 * (m * factor_row + j) + 1];
			REAL *to = out + 2 * (m * n_factors + j) * count;

#pragma omp simd
			for (int64_t v = 0; v < count; v++) {
				REAL r = from[2 * v], i = from[2 * v + 1];

				to[2 * v] = re * r - im * i;
				to[2 * v + 1] = re * i + im * r;
			}
		}
}

void FN(fxi_separable_dots)(int64_t n, int64_t count, const REAL *a, const REAL *b, double *sum)
{
	for (int64_t m = 0; m < n; m++) {
		const REAL *x = a + 2 * m * count, *y = b + 2 * m * count;
		REAL re = 0, im = 0;

#pragma omp simd reduction(+ : re, im)
		for (int64_t v = 0; v < count; v++) {
			re += x[2 * v] * y[2 * v] - x[2 * v + 1] * y[2 * v + 1];
			im += x[2 * v] * y[2 * v + 1] + x[2 * v + 1] * y[2 * v];
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

#undef LANES
#undef VREAL
#undef VPHASE
#undef VSIGNED

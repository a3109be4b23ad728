/* SPDX-License-Identifier: MIT */
/*
 * direct_template.h - included by direct.c with REAL, PHASE, SIGNED, FN and the coefficients of one precision.
 *
 * Vectors are the compilers' generic ones, as wide as the instruction-set level's registers; where those are narrower than
 * FXI_DIRECT_BYTES the block of outputs is done in several passes. The loops over vectors and coils have constant bounds after
 * inlining and unroll wholly, which keeps the sums in registers.
 */
#include "sincos_template.h"

#define PASSES (FXI_DIRECT_BYTES / VECTOR_BYTES)

static inline __attribute__((always_inline)) void FN(voxels)(const int n_coils, const int n_vectors, int64_t n,
	const PHASE *base, const PHASE *step, const REAL *const *values, REAL *const *sum, const int at)
{
	VREAL re[FXI_DIRECT_COILS][FXI_DIRECT_VECTORS], im[FXI_DIRECT_COILS][FXI_DIRECT_VECTORS];
	VPHASE lane;

	for (int i = 0; i < LANES; i++)
		lane[i] = (PHASE)(at + i);
#pragma GCC unroll 4
	for (int c = 0; c < n_coils; c++)
#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++)
			re[c][v] = im[c][v] = (VREAL){0};
	for (int64_t m = 0; m < n; m++) {
		VPHASE phase = base[m] + step[m] * lane;
		PHASE jump = LANES * step[m];

#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++) {
			VREAL sine, cosine;

			FN(sincos)(&phase, &sine, &cosine);
			phase += jump;
#pragma GCC unroll 4
			for (int c = 0; c < n_coils; c++) {
				REAL vr = values[2 * c][m], vi = values[2 * c + 1][m];

				re[c][v] += vr * cosine - vi * sine;
				im[c][v] += vr * sine + vi * cosine;
			}
		}
	}
#pragma GCC unroll 4
	for (int c = 0; c < n_coils; c++)
#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++) {
			__builtin_memcpy(sum[2 * c] + at + v * LANES, &re[c][v], sizeof(VREAL));
			__builtin_memcpy(sum[2 * c + 1] + at + v * LANES, &im[c][v], sizeof(VREAL));
		}
}

static inline __attribute__((always_inline)) void FN(samples)(const int n_coils, const int n_vectors, int64_t n,
	const PHASE *base, const PHASE *step, const REAL *const *values, int64_t stride, REAL *const *sum,
	const int at)
{
	VREAL re[FXI_DIRECT_COILS][FXI_DIRECT_VECTORS], im[FXI_DIRECT_COILS][FXI_DIRECT_VECTORS];
	VPHASE phase[FXI_DIRECT_VECTORS], by[FXI_DIRECT_VECTORS];

#pragma GCC unroll 4
	for (int v = 0; v < n_vectors; v++) {
		__builtin_memcpy(&phase[v], base + at + v * LANES, sizeof phase[v]);
		__builtin_memcpy(&by[v], step + at + v * LANES, sizeof by[v]);
	}
#pragma GCC unroll 4
	for (int c = 0; c < n_coils; c++)
#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++)
			re[c][v] = im[c][v] = (VREAL){0};
	for (int64_t x = 0; x < n; x++)
#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++) {
			VREAL sine, cosine;

			FN(sincos)(&phase[v], &sine, &cosine);
			phase[v] += by[v];
#pragma GCC unroll 4
			for (int c = 0; c < n_coils; c++) {
				REAL vr = values[c][2 * x * stride], vi = values[c][2 * x * stride + 1];

				re[c][v] += vr * cosine + vi * sine;
				im[c][v] += vi * cosine - vr * sine;
			}
		}
#pragma GCC unroll 4
	for (int c = 0; c < n_coils; c++)
#pragma GCC unroll 4
		for (int v = 0; v < n_vectors; v++) {
			__builtin_memcpy(sum[2 * c] + at + v * LANES, &re[c][v], sizeof(VREAL));
			__builtin_memcpy(sum[2 * c + 1] + at + v * LANES, &im[c][v], sizeof(VREAL));
		}
}

/* The bounds become constants here: one copy of the loop for each case. */
#define EACH_CASE(call) \
	do { \
		if (n_coils == 1 && n_vectors == 1) \
			call(1, 1); \
		else if (n_coils == 1 && n_vectors == 2) \
			call(1, 2); \
		else if (n_coils == 1) \
			call(1, 4); \
		else if (n_coils == 2 && n_vectors == 1) \
			call(2, 1); \
		else if (n_coils == 2) \
			call(2, 2); \
		else if (n_vectors == 1) \
			call(4, 1); \
		else \
			call(4, 2); \
	} while (0)

void FN(fxi_direct_voxels)(int n_coils, int n_vectors, int64_t n, const PHASE *base, const PHASE *step,
	const REAL *const *values, REAL *const *sum)
{
#define CALL(coils, vectors) FN(voxels)(coils, vectors, n, base, step, values, sum, pass * (vectors) * LANES)
	for (int pass = 0; pass < PASSES; pass++)
		EACH_CASE(CALL);
#undef CALL
}

void FN(fxi_direct_samples)(int n_coils, int n_vectors, int64_t n, const PHASE *base, const PHASE *step,
	const REAL *const *values, int64_t stride, REAL *const *sum)
{
#define CALL(coils, vectors) FN(samples)(coils, vectors, n, base, step, values, stride, sum, pass * (vectors) * LANES)
	for (int pass = 0; pass < PASSES; pass++)
		EACH_CASE(CALL);
#undef CALL
}

void FN(fxi_direct_base)(int64_t n, const PHASE *const p[3], const int64_t x[3], PHASE *base)
{
	const PHASE x0 = (PHASE)x[0], x1 = (PHASE)x[1], x2 = (PHASE)x[2];
	const PHASE *p0 = p[0], *p1 = p[1], *p2 = p[2];

#pragma omp simd
	for (int64_t m = 0; m < n; m++)
		base[m] = p0[m] * x0 + p1[m] * x1 + p2[m] * x2;
}

#undef LANES
#undef PASSES
#undef VREAL
#undef VPHASE
#undef VSIGNED
#undef EACH_CASE

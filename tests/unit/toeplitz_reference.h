/* SPDX-License-Identifier: MIT */
/*
 * toeplitz_reference.h - the chapter's sums in double, straight from their definitions, for the tests of the normal
 * operator. Nothing of Fornix computes in here.
 */
#ifndef TESTS_TOEPLITZ_REFERENCE_H
#define TESTS_TOEPLITZ_REFERENCE_H

#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>

/* A trajectory of m random points in the whole band, and |phi|^2 of each. */
struct problem {
	int64_t dims[3], m;
	double scale;
	fx_array *k, *phi2; /* f64 {3, m}, f32 {m} */
};

static inline double next_random(unsigned *seed) /* -1 .. 1 */
{
	*seed = *seed * 1664525u + 1013904223u;
	return (double)(*seed >> 8) / 8388608.0 - 1;
}

static inline fx_array *random_array(int type, int n_dims, const int64_t *dims, unsigned seed)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(type, n_dims, dims, &a), FX_OK);
	for (int64_t i = 0; i < a->bytes / 4; i++)
		((float *)a->data)[i] = (float)next_random(&seed);
	return a;
}

static inline struct problem problem_new(const int64_t dims[3], int64_t m, unsigned seed)
{
	struct problem p = {.m = m, .scale = 1 / sqrt((double)(dims[0] * dims[1] * dims[2]))};

	for (int d = 0; d < 3; d++)
		p.dims[d] = dims[d];
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, m, &p.k), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, m, &p.phi2), FX_OK);
	for (int64_t i = 0; i < m; i++) {
		for (int d = 0; d < 3; d++)
			FX_F64_OF(p.k)[3 * i + d] = dims[d] > 1 ? 0.5 * next_random(&seed) : 0;
		FX_F32_OF(p.phi2)[i] = (float)(0.6 + 0.4 * next_random(&seed));
	}
	return p;
}

static inline void problem_free(struct problem *p)
{
	fx_array_unref(p->k);
	fx_array_unref(p->phi2);
}

/* e^{i 2 pi k_m . (position of index `at` from the centre floor(N/2))} */
static inline fx_cf64 wave(const struct problem *p, int64_t m, const int64_t dims[3], int64_t at)
{
	const double *k = FX_F64_OF(p->k) + 3 * m;
	double turns = k[0] * (double)(at % dims[0] - dims[0] / 2) +
		k[1] * (double)(at / dims[0] % dims[1] - dims[1] / 2) +
		k[2] * (double)(at / dims[0] / dims[1] - dims[2] / 2);

	return cexp(2 * M_PI * I * (turns - floor(turns)));
}

/* Q on the doubled grid, centred, as cf32 {2x, 2y, 2z}. */
static inline fx_array *reference_q(const struct problem *p)
{
	int64_t dims[3];
	fx_array *q;

	for (int d = 0; d < 3; d++)
		dims[d] = p->dims[d] > 1 ? 2 * p->dims[d] : 1;
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &q), FX_OK);
	for (int64_t i = 0; i < q->n; i++) {
		fx_cf64 sum = 0;

		for (int64_t m = 0; m < p->m; m++)
			sum += (double)FX_F32_OF(p->phi2)[m] * wave(p, m, dims, i);
		FX_CF32_OF(q)[i] = (fx_cf32)(p->scale * p->scale * sum);
	}
	return q;
}

/* F^H |phi|^2 F of images {x, y, z, c} as two sums, in double. */
static inline fx_array *reference_normal(const struct problem *p, const fx_array *x)
{
	int64_t voxels = p->dims[0] * p->dims[1] * p->dims[2];
	fx_array *out;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF64, x->n_dims, x->dims, &out), FX_OK);
	for (int64_t c = 0; c < x->n / voxels; c++)
		for (int64_t m = 0; m < p->m; m++) {
			fx_cf64 sample = 0;

			for (int64_t i = 0; i < voxels; i++)
				sample += (fx_cf64)FX_CF32_OF(x)[i + c * voxels] * conj(wave(p, m, p->dims, i));
			sample *= p->scale * p->scale * (double)FX_F32_OF(p->phi2)[m];
			for (int64_t i = 0; i < voxels; i++)
				FX_CF64_OF(out)[i + c * voxels] += sample * wave(p, m, p->dims, i);
		}
	return out;
}

static inline fx_cf64 inner_product(const fx_array *x, const fx_array *y)
{
	fx_cf64 sum = 0;

	for (int64_t i = 0; i < x->n; i++)
		sum += conj((fx_cf64)FX_CF32_OF(x)[i]) * (fx_cf64)FX_CF32_OF(y)[i];
	return sum;
}

static inline double norm_of(const fx_array *x)
{
	return sqrt(creal(inner_product(x, x)));
}

/* ||a - b|| / ||b||, a in single, b in double */
static inline double relative_difference(const fx_array *a, const fx_array *b)
{
	double above = 0, below = 0;

	for (int64_t i = 0; i < b->n; i++) {
		above += pow(cabs((fx_cf64)FX_CF32_OF(a)[i] - FX_CF64_OF(b)[i]), 2);
		below += pow(cabs(FX_CF64_OF(b)[i]), 2);
	}
	return sqrt(above / below);
}

#endif

/* SPDX-License-Identifier: MIT */
/* check.h - what the operators' unit tests share: seeded random arrays, a handle, distances. */
#ifndef FORNIX_TESTS_CHECK_H
#define FORNIX_TESTS_CHECK_H

#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <stdint.h>

/** splitmix64 (Steele et al. 2014): uniform in [-1, 1). */
static inline double random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-52 - 1;
}

/** A new array with uniform random elements, re and im in [-1, 1). */
static inline fx_array *random_array(int type, int n_dims, const int64_t *dims, uint64_t seed)
{
	fx_array *a = NULL;

	if (fx_array_new(type, n_dims, dims, &a) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's array");
	for (int64_t i = 0; i < a->n; i++) {
		double re = random_next(&seed), im = type >= FX_CF32 ? random_next(&seed) : 0;

		if (type == FX_F32)
			FX_F32_OF(a)[i] = (float)re;
		else if (type == FX_F64)
			FX_F64_OF(a)[i] = re;
		else if (type == FX_CF32)
			FX_CF32_OF(a)[i] = (float)re + I * (float)im;
		else
			FX_CF64_OF(a)[i] = re + I * im;
	}
	return a;
}

/** A host handle of n threads; its error slot is the test's and is emptied here. */
static inline fx_math *math_of(int n_threads)
{
	static fx_error err;
	fx_math *m = NULL;

	err = (fx_error){0};
	if (fx_math_new("host", n_threads, &err, &m) != FX_OK)
		CU_FAIL_FATAL("no host backend");
	return m;
}

static inline double _Complex element_of(const fx_array *a, int64_t i)
{
	switch (a->type) {
	case FX_F32:
		return FX_F32_OF(a)[i];
	case FX_F64:
		return FX_F64_OF(a)[i];
	case FX_CF32:
		return FX_CF32_OF(a)[i];
	default:
		return FX_CF64_OF(a)[i];
	}
}

/** ||a - b|| / ||b||; ||a|| where b is zero. */
static inline double distance(const fx_array *a, const fx_array *b)
{
	double difference = 0, norm = 0;

	if (a->n != b->n)
		return INFINITY;
	for (int64_t i = 0; i < a->n; i++) {
		double _Complex d = element_of(a, i) - element_of(b, i), y = element_of(b, i);

		difference += creal(d) * creal(d) + cimag(d) * cimag(d);
		norm += creal(y) * creal(y) + cimag(y) * cimag(y);
	}
	return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

#endif

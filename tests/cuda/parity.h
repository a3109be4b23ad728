/* SPDX-License-Identifier: MIT */
/* parity.h - what the parity suites share: a handle on each backend, random arrays, and the distance between results. */
#ifndef FORNIX_TESTS_PARITY_H
#define FORNIX_TESTS_PARITY_H

#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

extern fx_math *host, *gpu;
extern fx_error host_error, gpu_error;

/** Uniform numbers in [-1, 1), real or complex, the same for the same seed. */
fx_array *parity_random(int type, int n_dims, const int64_t *dims, unsigned seed);
/** A trajectory f64 {3, n}: uniform in [-1/2, 1/2), 0 on axes of 1; the first few at the edges and the centre. */
fx_array *parity_trajectory(const int64_t dims[3], int64_t n, unsigned seed);
/** The array on the GPU (new). */
fx_array *to_gpu(const fx_array *a);
/** Zeroed, on the host and on the GPU. */
fx_array *zeros(fx_math *m, int type, int n_dims, const int64_t *dims);
/** || a - b || / || b ||, a on the GPU, b on the host; infinite where shapes differ or a number is not finite. */
double parity_distance(const fx_array *on_gpu, const fx_array *on_host);

extern CU_SuiteInfo suite_parity_vectors;
extern CU_SuiteInfo suite_parity_fourier;
extern CU_SuiteInfo suite_parity_gridding;
extern CU_SuiteInfo suite_parity_solve;
extern CU_SuiteInfo suite_parity_direct;
extern CU_SuiteInfo suite_parity_tracking;
extern CU_SuiteInfo suite_parity_diffusion;

#endif

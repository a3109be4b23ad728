/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.cuh - Toeplitz products as a sequence of launches on a stream that may be capturing: what toeplitz.cu makes and normal.cu
 * and solve.cu build on. Nothing here allocates; plans and work memory come from the caller.
 */
#ifndef FORNIX_CUDA_TOEPLITZ_CUH
#define FORNIX_CUDA_TOEPLITZ_CUH

#include "cuda.cuh"

/** An image's axes and the doubled ones; axes of 1 stay 1. */
typedef struct fxi_box {
	int64_t n[3], f[3];
} fxi_box;

typedef struct fxi_product {
	fxi_box box;
	int64_t n_coils, batch; /* coils that are in work at once */
	const float *spectrum;
	const float2 *maps;     /* NULL: y_c = T x_c of every coil; else y = sum_c conj(S_c) T S_c x of one image */
	const float2 *x;
	float2 *y;
	float2 *work;           /* fxi_product_bytes of it */
} fxi_product;

/** False where a spectrum does not belong to images of these axes. */
bool fxi_product_box(const int64_t dims[3], const fx_array *spectrum, fxi_box *b);
/**
 * Coils in work at once: as many as are worth it (beyond that, reading the spectrum once a batch no longer shows), less where their work
 * memory would be more than an eighth of the GPU's. Results do not depend on it.
 */
int64_t fxi_product_batch(fx_math *m, const fxi_box *b, int64_t n_coils);
/** Work memory of a batch; with maps, sizes that are not the own passes' take a coil image besides. */
int64_t fxi_product_bytes(const fxi_box *b, int64_t batch);
/** Makes the cuFFT plans, which cannot be made while a stream captures. */
int fxi_product_prepare(fx_math *m, const fxi_box *b);
int fxi_product_run(fx_math *m, cudaStream_t s, const fxi_product *p);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * espirit_kernels.c - the part of ESPIRiT that looks at calibration data: the row space of the matrix of all windows of a
 * block of k-space, by the eigenvectors of its Gram matrix, and the projection onto it as a short convolution.
 *
 * The matrix itself is never whole: the Gram matrix is summed over its windows plane by plane. BLAS works on one thread;
 * blocks of fixed size are given to Fornix's own, so bits do not depend on their number.
 */
#include "espirit.h"

#include <cblas.h>
#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* Unknowns of one kernel (window samples times coils) beyond which the eigenvectors take many minutes. */
#define MOST_UNKNOWNS 8192

struct job {
	const fx_cf32 *block;
	int64_t dims[3], kernel[3], windows[3];
	int64_t n_coils, k, n;   /* k samples of a window; n = k n_coils unknowns */
	int64_t plane, n_rows;   /* windows of one plane */
	fx_cf32 *rows;           /* {n_rows, n} */
	fx_cf32 *gram;           /* {n, n}, lower triangle; then eigenvectors */
	int64_t n_kept;
	fxi_espirit_kernels *out;
	_Atomic bool no_memory;
};

static void one_blas_thread(void)
{
	openblas_set_num_threads(1);
}

/* Column i of the calibration matrix: one sample of the window, in every window of the plane. */
static void fill_column(void *arg, int64_t i)
{
	const struct job *j = arg;
	int64_t c = i / j->k, kx = i % j->k % j->kernel[0], ky = i % j->k / j->kernel[0] % j->kernel[1];
	int64_t kz = i % j->k / (j->kernel[0] * j->kernel[1]);
	const fx_cf32 *plane = j->block + (c * j->dims[2] + j->plane + kz) * j->dims[1] * j->dims[0];
	fx_cf32 *to = j->rows + i * j->n_rows;

	for (int64_t y = 0; y < j->windows[1]; y++)
		for (int64_t x = 0; x < j->windows[0]; x++)
			*to++ = plane[(y + ky) * j->dims[0] + x + kx];
}

/* Gram matrix of coils a <= b: rows of b, columns of a. */
static void add_pair(void *arg, int64_t i)
{
	const struct job *j = arg;
	const fx_cf32 one = 1;
	int64_t b = 0, a;

	while ((b + 1) * (b + 2) / 2 <= i)
		b++;
	a = i - b * (b + 1) / 2;
	cblas_cgemm(CblasColMajor, CblasConjTrans, CblasNoTrans, (int)j->k, (int)j->k, (int)j->n_rows, &one,
		j->rows + b * j->k * j->n_rows, (int)j->n_rows, j->rows + a * j->k * j->n_rows, (int)j->n_rows, &one,
		j->gram + b * j->k + j->n * a * j->k, (int)j->n);
}

static int sum_gram(fx_math *m, struct job *j)
{
	int status = FX_OK;

	for (j->plane = 0; j->plane < j->windows[2] && status == FX_OK; j->plane++) {
		fx_parallel(m->n_threads, j->n, fill_column, j);
		fx_parallel(m->n_threads, j->out->n_pairs, add_pair, j);
		status = fx_math_check(m);
	}
	return status;
}

/* gram becomes its eigenvectors, those kept the last n_kept columns. */
static int decompose(fx_math *m, struct job *j, double threshold)
{
	float *values = fx_alloc(j->n, sizeof *values), least;
	lapack_int info;

	if (!values)
		return fx_math_fail(m, FX_ENOMEM, "no memory for coil maps");
	info = LAPACKE_cheevd(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)j->n, j->gram, (lapack_int)j->n, values);
	if (info != 0) {
		fx_free(values);
		if (info == LAPACK_WORK_MEMORY_ERROR)
			return fx_math_fail(m, FX_ENOMEM, "no memory for the eigenvectors of %lld unknowns", (long long)j->n);
		return fx_math_fail(m, FX_EDATA, "the calibration data have no eigenvectors that can be found (LAPACK says %d): "
			"are they finite?", (int)info);
	}
	/* singular values are roots of these */
	least = (float)(threshold * threshold) * values[j->n - 1];
	while (j->n_kept < j->n && values[j->n - 1 - j->n_kept] > least)
		j->n_kept++;
	fx_free(values);
	if (j->n_kept == 0)
		j->n_kept = 1; /* threshold=1 */
	return FX_OK;
}

/* R_ab for all a <= b: diagonals of coil b's columns of the projection, summed. */
static void correlate(void *arg, int64_t b)
{
	struct job *j = arg;
	const fx_cf32 one = 1, none = 0, *v = j->gram + j->n * (j->n - j->n_kept);
	const int64_t *half = j->out->half;
	int64_t n = (b + 1) * j->k;
	fx_cf32 *p = fx_alloc(n * j->k, sizeof *p);

	if (!p) {
		atomic_store(&j->no_memory, true);
		return;
	}
	cblas_cgemm(CblasColMajor, CblasNoTrans, CblasConjTrans, (int)n, (int)j->k, (int)j->n_kept, &one, v, (int)j->n,
		v + b * j->k, (int)j->n, &none, p, (int)n);
	for (int64_t from = 0; from < j->k; from++)
		for (int64_t i = 0; i < n; i++) {
			int64_t a = i / j->k, k = i % j->k, at = 0;
			int64_t nx = j->kernel[0], ny = j->kernel[1];

			at = k / (nx * ny) - from / (nx * ny) + half[2];
			at = at * (2 * half[1] + 1) + k / nx % ny - from / nx % ny + half[1];
			at = at * (2 * half[0] + 1) + k % nx - from % nx + half[0];
			at = at * j->out->n_pairs + a + b * (b + 1) / 2;
			j->out->re[at] += crealf(p[i + n * from]) / (float)j->k;
			j->out->im[at] += cimagf(p[i + n * from]) / (float)j->k;
		}
	fx_free(p);
}

static int new_job(fx_math *m, const fx_array *block, int64_t kernel_size, fxi_espirit_kernels *out, struct job *j)
{
	int64_t n_out = 1;

	*j = (struct job){.block = block->data, .n_coils = block->dims[3], .k = 1, .n_rows = 1, .out = out};
	*out = (fxi_espirit_kernels){.n_coils = j->n_coils, .n_pairs = j->n_coils * (j->n_coils + 1) / 2};
	for (int d = 0; d < 3; d++) {
		j->dims[d] = block->dims[d];
		j->kernel[d] = kernel_size < block->dims[d] ? kernel_size : block->dims[d];
		j->windows[d] = j->dims[d] - j->kernel[d] + 1;
		j->k *= j->kernel[d];
		out->half[d] = j->kernel[d] - 1;
		n_out *= 2 * out->half[d] + 1;
	}
	j->n_rows = j->windows[0] * j->windows[1];
	j->n = j->k * j->n_coils;
	if (j->n > MOST_UNKNOWNS)
		return fx_math_fail(m, FX_EINVAL, "an ESPIRiT kernel of %lld x %lld x %lld samples and %lld coils has %lld unknowns, "
			"more than the %d that can be solved in reasonable time: make kernel_size smaller or compress the coils",
			(long long)j->kernel[0], (long long)j->kernel[1], (long long)j->kernel[2], (long long)j->n_coils,
			(long long)j->n, MOST_UNKNOWNS);
	j->rows = fx_alloc(j->n_rows * j->n, sizeof *j->rows);
	j->gram = fx_alloc(j->n * j->n, sizeof *j->gram);
	out->re = fx_alloc(n_out * out->n_pairs, sizeof *out->re);
	out->im = fx_alloc(n_out * out->n_pairs, sizeof *out->im);
	if (!j->rows || !j->gram || !out->re || !out->im)
		return fx_math_fail(m, FX_ENOMEM, "no memory for ESPIRiT kernels of %lld unknowns", (long long)j->n);
	/* LAPACK's divide and conquer takes twice the matrix besides, and asks malloc */
	if ((double)fx_memory_available_bytes() < 2.5 * (double)(j->n * j->n) * (double)sizeof *j->gram)
		return fx_math_fail(m, FX_ENOMEM, "the eigenvectors of %lld unknowns take %.0f MB more than there are: make "
			"kernel_size smaller or compress the coils", (long long)j->n, 2e-6 * (double)(j->n * j->n) * (double)sizeof *j->gram);
	return FX_OK;
}

int fxi_espirit_kernels_new(fx_math *m, const fx_array *block, int64_t kernel_size, double threshold,
	fxi_espirit_kernels *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct job j;
	int status;

	pthread_once(&once, one_blas_thread);
	status = new_job(m, block, kernel_size, out, &j);
	if (status == FX_OK)
		status = sum_gram(m, &j);
	if (status == FX_OK)
		status = decompose(m, &j, threshold);
	if (status == FX_OK) {
		out->n_kept = j.n_kept;
		fx_parallel(m->n_threads, j.n_coils, correlate, &j);
		if (j.no_memory)
			status = fx_math_fail(m, FX_ENOMEM, "no memory for ESPIRiT kernels of %lld unknowns", (long long)j.n);
	}
	fx_free(j.rows);
	fx_free(j.gram);
	if (status != FX_OK)
		fxi_espirit_kernels_clear(out);
	return status;
}

void fxi_espirit_kernels_clear(fxi_espirit_kernels *k)
{
	fx_free(k->re);
	fx_free(k->im);
	k->re = k->im = NULL;
}

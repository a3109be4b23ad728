/* SPDX-License-Identifier: MIT */
/*
 * prior: the weighted differences against a matrix made from the definition, W = 1 against a Laplacian, the data residual
 * with W, and volumes resampled by affines against closed forms.
 */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "toeplitz_reference.h"

static fx_error error;
static fx_math *math;

static int set_up(void)
{
	memset(&error, 0, sizeof error);
	return fx_math_new("host", 2, &error, &math);
}

static int tear_down(void)
{
	fx_math_free(math);
	return 0;
}

#define NX 5
#define NY 4
#define NZ 3
#define N (NX * NY * NZ)
static const int64_t dims[3] = {NX, NY, NZ};

static fx_array *reference_of(unsigned seed)
{
	fx_array *r = random_array(FX_F32, 3, dims, seed);

	for (int i = 0; i < N; i++)
		FX_F32_OF(r)[i] = FX_F32_OF(r)[i] > 0.3f ? 1 : 0.01f * FX_F32_OF(r)[i];
	return r;
}

/* Voxels that are neighbours: one step along one axis. */
static bool neighbours(int a, int b)
{
	int dx = a % NX - b % NX, dy = a / NX % NY - b / NX % NY, dz = a / NX / NY - b / NX / NY;

	return dx * dx + dy * dy + dz * dz == 1;
}

/* W^H W as a dense matrix, from ||W x||^2 = sum over pairs of w |x_n - x_m|^2 with the stated weights. */
static void dense(const fx_array *r, double edge, double range, double *a)
{
	double trace = 0;

	memset(a, 0, N * N * sizeof *a);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double step = ((double)FX_F32_OF(r)[i] - (double)FX_F32_OF(r)[j]) / (edge * range), w;

			if (!neighbours(i, j))
				continue;
			w = 1 / (1 + step * step);
			a[i * N + j] -= w;
			a[i * N + i] += w;
			trace += w;
		}
	for (int i = 0; i < N * N; i++)
		a[i] *= N / trace;
}

static double compare(const fx_array *w, const double *a)
{
	fx_array *x = random_array(FX_CF32, 3, dims, 5), *y, *want;
	double difference;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &y), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF64, 3, dims, &want), FX_OK);
	for (int i = 0; i < N; i++) {
		FX_CF32_OF(y)[i] = 2; /* it adds to what is there */
		FX_CF64_OF(want)[i] = 2;
		for (int j = 0; j < N; j++)
			FX_CF64_OF(want)[i] += 0.7 * a[i * N + j] * (fx_cf64)FX_CF32_OF(x)[j];
	}
	CU_ASSERT_EQUAL_FATAL(fx_prior_apply(math, w, 0.7, x, y), FX_OK);
	difference = relative_difference(y, want);
	fx_array_unref(x);
	fx_array_unref(y);
	fx_array_unref(want);
	return difference;
}

static void against_a_dense_matrix(void)
{
	fx_array *r = reference_of(3), *w = NULL;
	double *a = malloc(N * N * sizeof *a), values[N], range, lowest = 2, highest = 0;

	CU_ASSERT_EQUAL_FATAL(fx_prior_weights(math, r, 0.1, &w, &range), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(range, 1.01, 0.02); /* ones, and values down to -0.01 */
	dense(r, 0.1, range, a);
	CU_ASSERT(compare(w, a) < 1e-6); /* sums of 24-bit numbers */
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			CU_ASSERT_EQUAL(a[i * N + j], a[j * N + i]);
	CU_ASSERT_EQUAL_FATAL(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', N, a, N, values), 0);
	CU_ASSERT(fabs(values[0]) < 1e-12 && values[1] > 1e-4); /* only what is constant costs nothing */
	for (int i = 0; i < N; i++) {
		lowest = fmin(lowest, (double)FX_F32_OF(w)[i]);
		highest = fmax(highest, (double)FX_F32_OF(w)[i]);
	}
	CU_ASSERT(lowest < 0.02 * highest); /* a step of 1 in units of 0.1: 1/101 */
	free(a);
	fx_array_unref(r);
	fx_array_unref(w);
}

/* The operator itself, by unit vectors: symmetric to rounding and never negative. */
static void symmetric_and_positive(void)
{
	fx_array *r = reference_of(8), *w = NULL, *x, *y;
	double *a = malloc(N * N * sizeof *a), values[N], range;

	CU_ASSERT_EQUAL_FATAL(fx_prior_weights(math, r, 0.1, &w, &range), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &x), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &y), FX_OK);
	for (int j = 0; j < N; j++) {
		memset(y->data, 0, (size_t)y->bytes);
		FX_CF32_OF(x)[j] = 1;
		CU_ASSERT_EQUAL_FATAL(fx_prior_apply(math, w, 1, x, y), FX_OK);
		FX_CF32_OF(x)[j] = 0;
		for (int i = 0; i < N; i++)
			a[i * N + j] = creal((fx_cf64)FX_CF32_OF(y)[i]);
	}
	for (int i = 0; i < N; i++)
		for (int j = 0; j < i; j++)
			CU_ASSERT_EQUAL(a[i * N + j], a[j * N + i]); /* the very same product */
	CU_ASSERT_EQUAL_FATAL(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', N, a, N, values), 0);
	CU_ASSERT(values[0] > -1e-6); /* rounding of sums of six 24-bit weights */
	CU_ASSERT_EQUAL(fx_prior_apply(math, w, 1, x, x), FX_EINVAL);
	error = (fx_error){0};
	free(a);
	fx_array *all[] = {r, w, x, y};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
}

/* A constant reference knows no edges: (degree x_n - sum of neighbours) over the mean degree. */
static void constant_reference_is_a_laplacian(void)
{
	fx_array *r = NULL, *w = NULL;
	double *a = malloc(N * N * sizeof *a), range, degree = 0;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, dims, &r), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_prior_weights(math, r, 0.1, &w, &range), FX_OK);
	CU_ASSERT_EQUAL(range, 0);
	memset(a, 0, N * N * sizeof *a);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if (neighbours(i, j)) {
				a[i * N + j] = -1;
				a[i * N + i] += 1;
				degree++;
			}
	for (int i = 0; i < N * N; i++)
		a[i] *= N / degree;
	CU_ASSERT(compare(w, a) < 1e-6);
	fx_array_unref(w);
	memset(a, 0, N * N * sizeof *a);
	for (int i = 0; i < N; i++)
		a[i * N + i] = 1;
	CU_ASSERT(compare(NULL, a) < 1e-6); /* W = I */
	FX_F32_OF(r)[7] = NAN;
	CU_ASSERT_EQUAL(fx_prior_weights(math, r, 0.1, &w, &range), FX_EDATA);
	CU_ASSERT_PTR_NULL(w);
	error = (fx_error){0};
	free(a);
	fx_array_unref(r);
}

/* ||F rho - D|| from its definition, against what CG reports of a system with weighted differences. */
static void data_residual(void)
{
	struct problem p = problem_new(dims, 40, 14);
	fx_array *q = reference_q(&p), *r = reference_of(4), *x;
	fx_frame frame = {.n_coils = 1, .has_prior = true, .lambda = 0.3, .scale = p.scale};
	fx_cg_options options = {.iterations = 4};
	fx_cg_report report;
	fx_cf64 data[40];
	double norm2 = 0, misfit2 = 0, lambda, range;
	unsigned seed = 9;

	memcpy(frame.grid, dims, sizeof dims);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &frame.kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, frame.kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_prior_weights(math, r, 0.1, &frame.w, &range), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &frame.fhd), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &x), FX_OK);
	for (int64_t m = 0; m < p.m; m++) {
		double amplitude = p.scale * sqrt((double)FX_F32_OF(p.phi2)[m]);

		frame.phi2_sum += (double)FX_F32_OF(p.phi2)[m];
		data[m] = next_random(&seed) + I * next_random(&seed);
		norm2 += pow(cabs(data[m]), 2);
		for (int64_t i = 0; i < N; i++)
			FX_CF32_OF(frame.fhd)[i] += (fx_cf32)(amplitude * data[m] * wave(&p, m, dims, i));
	}
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &frame, &lambda), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_frame_solve(math, &frame, lambda, norm2, frame.fhd, &options, x, &report), FX_OK);
	for (int64_t m = 0; m < p.m; m++) {
		fx_cf64 rest = -data[m];

		for (int64_t i = 0; i < N; i++)
			rest += p.scale * sqrt((double)FX_F32_OF(p.phi2)[m]) * conj(wave(&p, m, dims, i)) *
				(fx_cf64)FX_CF32_OF(x)[i];
		misfit2 += pow(cabs(rest), 2);
	}
	/* single precision in sums that nearly cancel; without W's part it would be off by several per cent */
	CU_ASSERT_DOUBLE_EQUAL(report.residual_data[report.n_residuals - 1], sqrt(misfit2 / norm2), 1e-5);
	fx_cg_report_free(&report);
	fx_array *all[] = {q, r, x, frame.kernel, frame.w, frame.fhd};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	problem_free(&p);
}

/* ---- resampling ------------------------------------------------------------------------------- */

static double ramp(double affine[3][4], double x, double y, double z)
{
	double at[3];

	for (int i = 0; i < 3; i++)
		at[i] = affine[i][0] * x + affine[i][1] * y + affine[i][2] * z + affine[i][3];
	return 3 + 0.5 * at[0] - 0.25 * at[1] + 0.125 * at[2];
}

/* A ramp in millimetres on an oblique, anisotropic volume, given back on another oblique grid inside it: finer and coarser. */
static void ramp_by_oblique_affines(void)
{
	/* rows of Q are orthonormal: 1/3 (2 -1 2; 2 2 -1; -1 2 2) */
	double from[3][4] = {{2 * 2 / 3.0, -1.5 / 3, 2 * 1.0 / 3, -20}, {2 * 2 / 3.0, 2 * 1.5 / 3, -1.0 / 3, -25},
		{-2 / 3.0, 2 * 1.5 / 3, 2 * 1.0 / 3, -20}};
	const int64_t size[3] = {24, 32, 40}, grid[3] = {6, 5, 4};
	fx_array *volume, *out;
	double inside;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, size, &volume), FX_OK);
	for (int64_t i = 0; i < volume->n; i++)
		FX_F32_OF(volume)[i] = (float)ramp(from, (double)(i % 24), (double)(i / 24 % 32), (double)(i / 24 / 32));
	for (int coarse = 0; coarse < 2; coarse++) {
		double s = coarse ? 2.75 : 0.8, to[3][4] = {{s * 0.8, s * -0.6, 0}, {s * 0.6, s * 0.8, 0}, {0, 0, s}};

		for (int i = 0; i < 3; i++) { /* centres meet */
			to[i][3] = from[i][3] + 11.5 * from[i][0] + 15.5 * from[i][1] + 19.5 * from[i][2];
			to[i][3] -= 2.5 * to[i][0] + 2 * to[i][1] + 1.5 * to[i][2];
		}
		CU_ASSERT_EQUAL_FATAL(fx_resample_affine(math, volume, from, grid, to, &out, &inside), FX_OK);
		CU_ASSERT_EQUAL(inside, 1);
		for (int64_t i = 0; i < out->n; i++) /* f32 of numbers up to 30 */
			CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out)[i],
				ramp(to, (double)(i % 6), (double)(i / 6 % 5), (double)(i / 30)), 1e-5);
		fx_array_unref(out);
	}
	CU_ASSERT_EQUAL_FATAL(fx_resample_affine(math, volume, from, size, from, &out, &inside), FX_OK);
	CU_ASSERT_EQUAL(inside, 1);
	for (int64_t i = 0; i < out->n; i++)
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out)[i], FX_F32_OF(volume)[i], 1e-5); /* its own grid gives it back */
	fx_array_unref(out);
	memset(from[2], 0, sizeof from[2]);
	CU_ASSERT_EQUAL(fx_resample_affine(math, volume, from, grid, from, &out, &inside), FX_EDATA);
	error = (fx_error){0};
	fx_array_unref(volume);
}

/* Twice as fine along each axis: a voxel is the mean of the eight in it. */
static void finer_volumes_are_averaged(void)
{
	const int64_t size[3] = {8, 8, 8}, grid[3] = {4, 4, 4};
	double from[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}, to[3][4] = {{2, 0, 0, 0.5}, {0, 2, 0, 0.5}, {0, 0, 2, 0.5}};
	fx_array *volume = random_array(FX_F32, 3, size, 4), *out;
	double inside;

	CU_ASSERT_EQUAL_FATAL(fx_resample_affine(math, volume, from, grid, to, &out, &inside), FX_OK);
	for (int64_t i = 0; i < out->n; i++) {
		double sum = 0;

		for (int c = 0; c < 8; c++)
			sum += (double)FX_F32_OF(volume)[2 * (i % 4) + (c & 1) + 8 * (2 * (i / 4 % 4) + (c >> 1 & 1)) +
				64 * (2 * (i / 16) + (c >> 2))];
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out)[i], sum / 8, 1e-6);
	}
	fx_array_unref(out);
	for (int i = 0; i < 3; i++)
		to[i][3] += 100;
	CU_ASSERT_EQUAL_FATAL(fx_resample_affine(math, volume, from, grid, to, &out, &inside), FX_OK);
	CU_ASSERT_EQUAL(inside, 0); /* elsewhere */
	fx_array_unref(out);
	fx_array_unref(volume);
}

/* position is the centre of voxel floor(N/2), LPS; the grid may be larger than the matrix. */
static void affine_of_a_frame(void)
{
	fx_frame f = {.grid = {6, 5, 1}, .geometry = {.matrix = {4, 5, 1}, .fov_mm = {8, 15, 0}, .position = {10, 20, 30},
		.read_dir = {0.6f, 0.8f, 0}, .phase_dir = {-0.8f, 0.6f, 0}, .slice_dir = {0, 0, 1}}};
	double a[3][4];

	CU_ASSERT_TRUE_FATAL(fx_frame_affine(&f, a));
	for (int i = 0; i < 3; i++) {
		double at = a[i][0] * 3 + a[i][1] * 2 + a[i][3], sign = i < 2 ? -1 : 1;

		CU_ASSERT_DOUBLE_EQUAL(at, sign * (double)f.geometry.position[i], 1e-5);
		CU_ASSERT_DOUBLE_EQUAL(a[i][0], sign * 2 * (double)f.geometry.read_dir[i], 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(a[i][1], sign * 3 * (double)f.geometry.phase_dir[i], 1e-6);
	}
	f.geometry.read_dir[0] = f.geometry.read_dir[1] = 0;
	CU_ASSERT_FALSE(fx_frame_affine(&f, a));
}

static CU_TestInfo tests[] = {
	{"weighted differences against a dense matrix", against_a_dense_matrix},
	{"symmetric, never negative", symmetric_and_positive},
	{"a constant reference is a Laplacian", constant_reference_is_a_laplacian},
	{"the data residual with W", data_residual},
	{"a ramp by oblique affines", ramp_by_oblique_affines},
	{"finer volumes are averaged", finer_volumes_are_averaged},
	{"affine of a frame", affine_of_a_frame},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_prior = {"prior", set_up, tear_down, NULL, NULL, tests};

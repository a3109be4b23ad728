/* SPDX-License-Identifier: MIT */
/*
 * cg: multi-coil normal equations with a prior, small enough to be solved densely (LAPACK) and to have every residual
 * computed from its definition in double.
 */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "toeplitz_reference.h"

#define N_COILS 2
#define N_SAMPLES 50
static const int64_t dims[4] = {6, 5, 4, N_COILS};
#define VOXELS 120

/* F S as one dense matrix E (rows: samples of all coils), A = E^H E + lambda I, b = E^H D. */
struct system {
	fx_cf64 e[N_SAMPLES * N_COILS][VOXELS], a[VOXELS][VOXELS], d[N_SAMPLES * N_COILS], solution[VOXELS];
	double lambda, d_norm2, b_norm;
	fx_array *b;
	fx_array *maps, *kernel, *work; /* for the operator proper */
	fx_math *m;
	int64_t n_applied;
};

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

static void solve_densely(struct system *s)
{
	fx_cf64 *a = malloc(sizeof s->a);

	for (int i = 0; i < VOXELS; i++) {
		s->solution[i] = FX_CF32_OF(s->b)[i];
		for (int j = 0; j < VOXELS; j++)
			a[i * VOXELS + j] = s->a[i][j];
	}
	CU_ASSERT_EQUAL_FATAL(LAPACKE_zposv(LAPACK_ROW_MAJOR, 'U', VOXELS, 1, (void *)a, VOXELS, (void *)s->solution, 1), 0);
	free(a);
}

static struct system *system_new(void)
{
	struct system *s = calloc(1, sizeof *s);
	struct problem p = problem_new(dims, N_SAMPLES, 3);
	fx_array *q;
	unsigned seed = 17;

	s->m = math;
	s->maps = random_array(FX_CF32, 4, dims, 4);
	for (int64_t r = 0; r < N_SAMPLES * N_COILS; r++) {
		int64_t sample = r % N_SAMPLES, coil = r / N_SAMPLES;
		double amplitude = p.scale * sqrt((double)FX_F32_OF(p.phi2)[sample]);

		for (int64_t v = 0; v < VOXELS; v++)
			s->e[r][v] = amplitude * conj(wave(&p, sample, dims, v)) *
				(fx_cf64)FX_CF32_OF(s->maps)[v + coil * VOXELS];
		s->d[r] = next_random(&seed) + I * next_random(&seed);
		s->d_norm2 += pow(cabs(s->d[r]), 2);
	}
	s->lambda = 0.05;
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &s->b), FX_OK);
	for (int i = 0; i < VOXELS; i++) {
		fx_cf64 b = 0;

		for (int r = 0; r < N_SAMPLES * N_COILS; r++) {
			b += conj(s->e[r][i]) * s->d[r];
			for (int j = 0; j < VOXELS; j++)
				s->a[i][j] += conj(s->e[r][i]) * s->e[r][j];
		}
		s->a[i][i] += s->lambda;
		FX_CF32_OF(s->b)[i] = (fx_cf32)b;
	}
	s->b_norm = norm_of(s->b);
	solve_densely(s);
	q = reference_q(&p);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &s->kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, s->kernel), FX_OK);
	fx_array_unref(q);
	problem_free(&p);
	return s;
}

static void system_free(struct system *s)
{
	fx_array_unref(s->b);
	fx_array_unref(s->maps);
	fx_array_unref(s->kernel);
	fx_array_unref(s->work);
	free(s);
}

/* The operator proper: coil maps around the Toeplitz product. */
static int apply(void *arg, const fx_array *x, fx_array *y)
{
	struct system *s = arg;

	s->n_applied++;
	return fx_normal_apply(s->m, s->kernel, s->maps, NULL, s->lambda, x, &s->work, y);
}

static fx_array *zeros(void)
{
	fx_array *x;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &x), FX_OK);
	return x;
}

static double true_normal_residual(const struct system *s, const fx_array *x)
{
	double sum = 0;

	for (int i = 0; i < VOXELS; i++) {
		fx_cf64 r = -(fx_cf64)FX_CF32_OF(s->b)[i];

		for (int j = 0; j < VOXELS; j++)
			r += s->a[i][j] * (fx_cf64)FX_CF32_OF(x)[j];
		sum += pow(cabs(r), 2);
	}
	return sqrt(sum) / s->b_norm;
}

static double true_data_residual(const struct system *s, const fx_array *x)
{
	double sum = 0;

	for (int r = 0; r < N_SAMPLES * N_COILS; r++) {
		fx_cf64 v = -s->d[r];

		for (int j = 0; j < VOXELS; j++)
			v += s->e[r][j] * (fx_cf64)FX_CF32_OF(x)[j];
		sum += pow(cabs(v), 2);
	}
	return sqrt(sum / s->d_norm2);
}

static int solve(struct system *s, int64_t iterations, double tolerance, fx_array *x, fx_cg_report *report)
{
	fx_cg_options options = {.iterations = iterations, .tolerance = tolerance};

	return fx_cg_solve(math, apply, s, s->b, s->lambda, s->d_norm2, &options, x, report);
}

static void equals_a_dense_solve(void)
{
	struct system *s = system_new();
	fx_array *starts[2] = {zeros(), random_array(FX_CF32, 3, dims, 9)};

	for (int i = 0; i < 2; i++) {
		fx_array *x = starts[i];
		fx_cg_report report;
		double error2 = 0, norm2 = 0;

		CU_ASSERT_EQUAL_FATAL(solve(s, 500, 1e-6, x, &report), FX_OK);
		CU_ASSERT_EQUAL(report.stop, FX_STOP_CONVERGED);
		CU_ASSERT_EQUAL(report.n_residuals, report.iterations + 1);
		CU_ASSERT(report.residual_normal[report.iterations] <= 1e-6);
		for (int v = 0; v < VOXELS; v++) {
			error2 += pow(cabs((fx_cf64)FX_CF32_OF(x)[v] - s->solution[v]), 2);
			norm2 += pow(cabs(s->solution[v]), 2);
		}
		/* ||x - x*|| <= ||r|| / smallest eigenvalue, which is at least lambda; half as much again for A's rounding */
		CU_ASSERT(sqrt(error2) <= 1.5 * 1e-6 * s->b_norm / s->lambda);
		CU_ASSERT(sqrt(error2 / norm2) < 1e-4); /* that bound on this system */
		fx_cg_report_free(&report);
		fx_array_unref(x);
	}
	system_free(s);
}

/* What is said of each iteration is what its image gives. Sums of squares near 1 in single: 1e-6, rounds to 1e-5. */
static void residuals_are_true(void)
{
	struct system *s = system_new();
	fx_array *all = zeros();
	fx_cg_report long_run;

	CU_ASSERT_EQUAL_FATAL(solve(s, 8, 0, all, &long_run), FX_OK);
	CU_ASSERT_EQUAL(long_run.stop, FX_STOP_ITERATIONS);
	CU_ASSERT_EQUAL_FATAL(long_run.n_residuals, 9);
	for (int n = 0; n <= 8; n++) {
		fx_array *x = zeros();
		fx_cg_report report;

		CU_ASSERT_EQUAL_FATAL(solve(s, n, 0, x, &report), FX_OK);
		CU_ASSERT_EQUAL(report.iterations, n);
		CU_ASSERT_DOUBLE_EQUAL(report.residual_normal[n], true_normal_residual(s, x), 1e-5);
		CU_ASSERT_DOUBLE_EQUAL(report.residual_data[n], true_data_residual(s, x), 1e-5);
		CU_ASSERT_DOUBLE_EQUAL(long_run.residual_normal[n], true_normal_residual(s, x), 1e-5);
		CU_ASSERT_DOUBLE_EQUAL(long_run.residual_data[n], true_data_residual(s, x), 1e-5);
		fx_cg_report_free(&report);
		fx_array_unref(x);
	}
	CU_ASSERT(long_run.residual_normal[8] < 0.5 * long_run.residual_normal[0]);
	fx_cg_report_free(&long_run);
	fx_array_unref(all);
	system_free(s);
}

static void reasons_to_stop(void)
{
	struct system *s = system_new();
	fx_array *x = zeros();
	fx_cg_report report;

	CU_ASSERT_EQUAL_FATAL(solve(s, 0, 1e-6, x, &report), FX_OK);
	CU_ASSERT_EQUAL(report.stop, FX_STOP_ITERATIONS);
	CU_ASSERT_EQUAL(report.n_residuals, 1);
	CU_ASSERT_DOUBLE_EQUAL(report.residual_normal[0], 1, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(report.residual_data[0], 1, 1e-12);
	fx_cg_report_free(&report);

	CU_ASSERT_EQUAL_FATAL(solve(s, 500, 1e-4, x, &report), FX_OK);
	CU_ASSERT_EQUAL(report.stop, FX_STOP_CONVERGED);
	CU_ASSERT(report.iterations > 0 && report.iterations < 500);
	fx_cg_report_free(&report);
	s->n_applied = 0;
	CU_ASSERT_EQUAL_FATAL(solve(s, 500, 1e-3, x, &report), FX_OK); /* already there */
	CU_ASSERT_EQUAL(report.stop, FX_STOP_CONVERGED);
	CU_ASSERT_EQUAL(report.iterations, 0);
	CU_ASSERT_EQUAL(s->n_applied, 1);
	fx_cg_report_free(&report);

	memset(s->b->data, 0, (size_t)s->b->bytes);
	CU_ASSERT_EQUAL_FATAL(solve(s, 10, 1e-6, x, &report), FX_OK);
	CU_ASSERT_EQUAL(report.stop, FX_STOP_ZERO);
	CU_ASSERT_EQUAL(report.iterations, 0);
	CU_ASSERT_EQUAL(report.residual_normal[0], 0);
	CU_ASSERT_EQUAL(report.residual_data[0], 1);
	CU_ASSERT_EQUAL(norm_of(x), 0);
	fx_cg_report_free(&report);
	fx_array_unref(x);
	system_free(s);
}

static int apply_coarse(void *arg, const fx_array *x, fx_array *y)
{
	int status = apply(arg, x, y);

	for (int64_t i = 0; i < 2 * y->n; i++) { /* as if numbers had 10 bits */
		int exponent;
		float mantissa = frexpf(((float *)y->data)[i], &exponent);

		((float *)y->data)[i] = ldexpf(roundf(mantissa * 1024) / 1024, exponent);
	}
	return status;
}

/* A rough operator makes the updated residual shrink without end while the true one does not: it must not show. */
static void does_not_believe_its_own_updates(void)
{
	struct system *s = system_new();
	fx_array *x = zeros(), *ax = zeros();
	fx_cg_options options = {.iterations = 400, .tolerance = 1e-6};
	fx_cg_report report;
	double sum = 0;

	CU_ASSERT_EQUAL_FATAL(fx_cg_solve(math, apply_coarse, s, s->b, s->lambda, 0, &options, x, &report), FX_OK);
	CU_ASSERT_EQUAL_FATAL(apply_coarse(s, x, ax), FX_OK);
	for (int64_t i = 0; i < ax->n; i++)
		sum += pow(cabs((fx_cf64)FX_CF32_OF(ax)[i] - (fx_cf64)FX_CF32_OF(s->b)[i]), 2);
	CU_ASSERT_EQUAL(report.stop, FX_STOP_ITERATIONS);
	CU_ASSERT_EQUAL(report.iterations, 400);
	CU_ASSERT(report.residual_normal[400] > 1e-5); /* 10 bits hold no more */
	CU_ASSERT(report.residual_normal[400] < 1e-2);
	CU_ASSERT_DOUBLE_EQUAL(report.residual_normal[400], sqrt(sum) / s->b_norm, 1e-7);
	CU_ASSERT(isnan(report.residual_data[400])); /* no ||D|| was given */
	fx_cg_report_free(&report);
	fx_array_unref(x);
	fx_array_unref(ax);
	system_free(s);
}

static int apply_negative(void *arg, const fx_array *x, fx_array *y)
{
	int status = apply(arg, x, y);

	return status == FX_OK ? math->ops->scale(math, -1, y) : status;
}

static int apply_infinite(void *arg, const fx_array *x, fx_array *y)
{
	int status = apply(arg, x, y);

	FX_CF32_OF(y)[7] = INFINITY;
	return status;
}

static int apply_failing(void *arg, const fx_array *x, fx_array *y)
{
	(void)arg;
	(void)x;
	(void)y;
	return fx_math_fail(math, FX_ENOMEM, "nothing left");
}

static void trouble_is_explained(void)
{
	static const struct {
		int (*apply)(void *, const fx_array *, fx_array *);
		int status;
		const char *says;
	} cases[] = {
		{apply_negative, FX_EDATA, "not positive definite"},
		{apply_infinite, FX_EDATA, "finite"},
		{apply_failing, FX_ENOMEM, "nothing left"},
	};
	struct system *s = system_new();
	fx_cg_options options = {.iterations = 10};
	fx_array *x = zeros();
	fx_cg_report report;

	for (size_t i = 0; i < 3; i++) {
		memset(&error, 0, sizeof error);
		CU_ASSERT_EQUAL(fx_cg_solve(math, cases[i].apply, s, s->b, 0, 0, &options, x, &report), cases[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(error.text, cases[i].says));
		fx_cg_report_free(&report);
	}
	memset(x->data, 0, (size_t)x->bytes);
	FX_CF32_OF(x)[3] = NAN;
	memset(&error, 0, sizeof error);
	CU_ASSERT_EQUAL(solve(s, 10, 0, x, &report), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "starting image"));
	fx_cg_report_free(&report);
	FX_CF32_OF(x)[3] = 0;
	FX_CF32_OF(s->b)[5] = NAN;
	memset(&error, 0, sizeof error);
	CU_ASSERT_EQUAL(solve(s, 10, 0, x, &report), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "F^H D"));
	fx_cg_report_free(&report);
	memset(&error, 0, sizeof error);
	CU_ASSERT_EQUAL(solve(s, -1, 0, x, &report), FX_EINVAL);
	CU_ASSERT_EQUAL(solve(s, 1, NAN, x, &report), FX_EINVAL);
	memset(&error, 0, sizeof error);
	fx_array_unref(x);
	system_free(s);
}

static CU_TestInfo tests[] = {
	{"multi-coil normal equations against a dense solve", equals_a_dense_solve},
	{"residuals are what they are called", residuals_are_true},
	{"reasons to stop", reasons_to_stop},
	{"updates of the residual are checked", does_not_believe_its_own_updates},
	{"trouble is explained", trouble_is_explained},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_cg = {"cg", set_up, tear_down, NULL, NULL, tests};

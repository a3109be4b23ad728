/* SPDX-License-Identifier: MIT */
/*
 * predict: the noise and the resolution that are foretold, against dense matrices and against replicas drawn here; lambda
 * from a target.
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

#define NX 6
#define NY 5
#define NZ 4
#define N (NX * NY * NZ)
#define M 90
#define COILS 2
#define ROWS (M * COILS)
static const int64_t dims[4] = {NX, NY, NZ, COILS};

/* E = F S densely, A0 = E^H E, R = A^-1 A0 and so on; the frame that says the same to Fornix. */
struct system {
	fx_cf64 e[ROWS][N], a0[N][N], inverse[N][N];
	fx_frame frame;
	double lambda_abs;
	fx_array *magnitude;
};

static void invert(struct system *s, double lambda_abs)
{
	fx_array *x, *y;
	int pivots[N];

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &x), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, dims, &y), FX_OK);
	memcpy(s->inverse, s->a0, sizeof s->a0);
	for (int j = 0; j < N; j++) { /* W^H W has its own test against its definition */
		memset(y->data, 0, (size_t)y->bytes);
		FX_CF32_OF(x)[j] = 1;
		CU_ASSERT_EQUAL_FATAL(fx_prior_apply(math, s->frame.w, 1, x, y), FX_OK);
		FX_CF32_OF(x)[j] = 0;
		for (int i = 0; i < N; i++)
			s->inverse[i][j] += lambda_abs * (fx_cf64)FX_CF32_OF(y)[i];
	}
	CU_ASSERT_EQUAL_FATAL(LAPACKE_zgetrf(LAPACK_ROW_MAJOR, N, N, (void *)s->inverse, N, pivots), 0);
	CU_ASSERT_EQUAL_FATAL(LAPACKE_zgetri(LAPACK_ROW_MAJOR, N, (void *)s->inverse, N, pivots), 0);
	fx_array_unref(x);
	fx_array_unref(y);
}

static struct system *system_new(bool with_weights)
{
	struct system *s = calloc(1, sizeof *s);
	struct problem p = problem_new(dims, M, 3);
	fx_array *q = reference_q(&p), *r = random_array(FX_F32, 3, dims, 5);
	double range;

	s->frame = (fx_frame){.grid = {NX, NY, NZ}, .n_coils = COILS, .has_prior = true, .lambda = 0.2, .scale = p.scale,
		.k = fx_array_ref(p.k), .phi2 = fx_array_ref(p.phi2), .maps = random_array(FX_CF32, 4, dims, 4)};
	for (int i = 0; i < M; i++)
		s->frame.phi2_sum += (double)FX_F32_OF(p.phi2)[i];
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, q->dims, &s->frame.kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(math->ops->toeplitz_spectrum(math, q, s->frame.kernel), FX_OK);
	if (with_weights)
		CU_ASSERT_EQUAL_FATAL(fx_prior_weights(math, r, 0.3, &s->frame.w, &range), FX_OK);
	for (int row = 0; row < ROWS; row++)
		for (int64_t v = 0; v < N; v++)
			s->e[row][v] = p.scale * sqrt((double)FX_F32_OF(p.phi2)[row % M]) * conj(wave(&p, row % M, dims, v)) *
				(fx_cf64)FX_CF32_OF(s->frame.maps)[v + row / M * N];
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			for (int row = 0; row < ROWS; row++)
				s->a0[i][j] += conj(s->e[row][i]) * s->e[row][j];
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &s->frame, &s->lambda_abs), FX_OK);
	invert(s, s->lambda_abs);
	s->magnitude = r;
	fx_array_unref(q);
	problem_free(&p);
	return s;
}

static void system_free(struct system *s)
{
	fx_array *all[] = {s->frame.k, s->frame.phi2, s->frame.maps, s->frame.kernel, s->frame.w, s->magnitude};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fx_array_unref(all[i]);
	free(s);
}

/* inverse times a0 times e_j, the local response of voxel j */
static void response(const struct system *s, int j, fx_cf64 out[N])
{
	for (int i = 0; i < N; i++) {
		out[i] = 0;
		for (int l = 0; l < N; l++)
			out[i] += s->inverse[i][l] * s->a0[l][j];
	}
}

/* diag(A^-1 A0 A^-1): ||row n of A^-1 E^H||^2 */
static void dense_variance(const struct system *s, double variance[N])
{
	for (int n = 0; n < N; n++) {
		variance[n] = 0;
		for (int row = 0; row < ROWS; row++) {
			fx_cf64 sum = 0;

			for (int l = 0; l < N; l++)
				sum += s->inverse[n][l] * conj(s->e[row][l]);
			variance[n] += pow(cabs(sum), 2);
		}
	}
}

/* Replicas drawn with a generator of this file and reconstructed densely: the brute force that the map replaces. */
static void replica_variance(const struct system *s, int n_replicas, double variance[N])
{
	unsigned seed = 77;

	memset(variance, 0, N * sizeof *variance);
	for (int r = 0; r < n_replicas; r++) {
		fx_cf64 noise[ROWS], right[N] = {0};

		for (int row = 0; row < ROWS; row++) { /* uniform numbers of variance 1: only second moments matter */
			double re = sqrt(3) * next_random(&seed), im = sqrt(3) * next_random(&seed);

			noise[row] = re + I * im;
		}
		for (int row = 0; row < ROWS; row++)
			for (int l = 0; l < N; l++)
				right[l] += conj(s->e[row][l]) * noise[row];
		for (int n = 0; n < N; n++) {
			fx_cf64 sum = 0;

			for (int l = 0; l < N; l++)
				sum += s->inverse[n][l] * right[l];
			variance[n] += pow(cabs(sum), 2) / (2 * n_replicas);
		}
	}
}

static void compare_sigma(bool with_weights)
{
	enum { PROBES = 400, REPLICAS = 400 };
	struct system *s = system_new(with_weights);
	fx_predict_options o = {.noise_sigma = 1, .n_probes = PROBES, .seed = 11, .iterations = 100, .tolerance = 1e-5};
	fx_array **right = NULL, *sigma = NULL;
	double exact[N], drawn[N], mean = 0, square = 0, drawn_square = 0;

	CU_ASSERT_EQUAL_FATAL(fx_predict_noise(math, &s->frame, &o, &right), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_predict_sigma(math, &s->frame, s->lambda_abs, &o, right, &sigma), FX_OK);
	dense_variance(s, exact);
	replica_variance(s, REPLICAS, drawn);
	for (int i = 0; i < N; i++) {
		double is = FX_F32_OF(sigma)[i], ratio = is / sqrt(exact[i]);

		mean += (ratio - 1) / N;
		square += pow(ratio - 1, 2) / N;
		drawn_square += pow(is / sqrt(drawn[i]) - 1, 2) / N;
		CU_ASSERT(fabs(ratio - 1) < 5 / sqrt(4.0 * PROBES)); /* five standard deviations of sqrt of a mean of |.|^2 */
	}
	/* A mean of n |.|^2 of circular numbers has relative deviation 1/sqrt(n), its root half of that: 0.025 here. */
	CU_ASSERT(sqrt(square) < 1.5 / sqrt(4.0 * PROBES) && sqrt(square) > 0.5 / sqrt(4.0 * PROBES));
	CU_ASSERT(fabs(mean) < 0.01); /* 120 voxels, of which dozens are independent */
	CU_ASSERT(sqrt(drawn_square) < 1.5 * sqrt(2) / sqrt(4.0 * PROBES)); /* both are drawn */
	fx_arrays_free(right, PROBES);
	fx_array_unref(sigma);
	system_free(s);
}

static void sigma_of_plain_lambda(void)
{
	compare_sigma(false);
}

static void sigma_with_weights(void)
{
	compare_sigma(true);
}

/* All axes are shorter than the combs' spacing: one point in the middle, whose response is known densely. */
static void width_of_one_point(void)
{
	struct system *s = system_new(true);
	fx_predict_options o = {.noise_sigma = 1, .n_probes = 1, .seed = 11, .iterations = 200, .tolerance = 1e-6};
	fx_cf64 p[N];
	fx_array *width = NULL;
	double energy = 0, want;
	int centre = NX / 2 + NX * (NY / 2 + NY * (NZ / 2));

	response(s, centre, p);
	for (int i = 0; i < N; i++)
		energy += pow(cabs(p[i]), 2);
	want = 2 * sqrt(2 * log(2) / M_PI) * cbrt(energy / pow(cabs(p[centre]), 2));
	CU_ASSERT_EQUAL_FATAL(fx_predict_resolution(math, &s->frame, s->lambda_abs, &o, &width), FX_OK);
	for (int i = 0; i < N; i++)
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(width)[i], want, 1e-3 * want); /* the systems' tolerance, conditioned */
	for (int i = 0; i < 3; i++) {
		s->frame.geometry.matrix[i] = dims[i];
		s->frame.geometry.fov_mm[i] = (double)dims[i] * (i + 1);
	}
	fx_array_unref(width);
	CU_ASSERT_EQUAL_FATAL(fx_predict_resolution(math, &s->frame, s->lambda_abs, &o, &width), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(width)[0], cbrt(6) * want, 1e-3 * cbrt(6) * want); /* voxels of 1 x 2 x 3 mm */
	fx_array_unref(width);
	system_free(s);
}

/*
 * A full Cartesian scan: A0 = I, so lambda with W = I scales the image by 1/(1 + lambda) and widens nothing. Points at
 * every cell's middle are told apart exactly.
 */
static void width_of_a_full_scan(void)
{
	const int64_t grid[3] = {20, 16, 9}, voxels = 20 * 16 * 9;
	fx_frame f = {.grid = {20, 16, 9}, .n_coils = 1, .has_prior = true, .lambda = 0.5, .scale = 1 / sqrt((double)voxels),
		.phi2_sum = (double)voxels};
	fx_predict_options o = {.noise_sigma = 1, .n_probes = 1, .seed = 2, .iterations = 100, .tolerance = 1e-6};
	fx_array *k, *width = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, voxels, &k), FX_OK);
	for (int64_t i = 0; i < voxels; i++) {
		FX_F64_OF(k)[3 * i] = (double)(i % 20) / 20 - 0.5;
		FX_F64_OF(k)[3 * i + 1] = (double)(i / 20 % 16) / 16 - 0.5;
		FX_F64_OF(k)[3 * i + 2] = (double)(i / 320 - 4) / 9;
	}
	CU_ASSERT_EQUAL_FATAL(fx_toeplitz_kernel(math, FX_FOURIER_DIRECT, 1e-6, grid, f.scale, k, NULL, &f.kernel), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_predict_resolution(math, &f, 0.5, &o, &width), FX_OK);
	for (int64_t i = 0; i < voxels; i++)
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(width)[i], 2 * sqrt(2 * log(2) / M_PI), 1e-4);
	fx_array_unref(width);
	fx_array_unref(f.kernel);
	fx_array_unref(k);
}

static void count_steps(void *arg, double lambda, double sigma)
{
	int *n = arg;

	CU_ASSERT(lambda >= 1e-6 && lambda <= 1e3 && sigma > 0);
	++*n;
}

static double exact_sigma(struct system *s, double lambda, const fx_array *mask)
{
	double variance[N], sum = 0, n = 0, lambda_abs;

	s->frame.lambda = lambda;
	CU_ASSERT_EQUAL_FATAL(fx_lambda_absolute(math, &s->frame, &lambda_abs), FX_OK);
	invert(s, lambda_abs);
	dense_variance(s, variance);
	for (int i = 0; i < N; i++)
		if (((const uint8_t *)mask->data)[i]) {
			sum += variance[i];
			n++;
		}
	return sqrt(sum / n);
}

static void lambda_meets_a_target(void)
{
	struct system *s = system_new(true);
	fx_predict_options o = {.noise_sigma = 1, .n_probes = 64, .seed = 11, .iterations = 100, .tolerance = 1e-4};
	fx_array *mask;
	double lambda, target;
	int64_t n;
	int steps = 0;

	for (int i = 0; i < N; i++)
		FX_F32_OF(s->magnitude)[i] = fabsf(FX_F32_OF(s->magnitude)[i]);
	CU_ASSERT_EQUAL_FATAL(fx_object_mask(math, s->magnitude, &mask, &n), FX_OK);
	CU_ASSERT(n > N / 2 && n < N);
	target = exact_sigma(s, 0.05, mask);
	CU_ASSERT_EQUAL_FATAL(fx_lambda_for_sigma(math, &s->frame, target, mask, &o, count_steps, &steps, &lambda), FX_OK);
	/* 64 probes over some 90 voxels of which at least ten are independent: 2 % of sigma; lambda itself is found to 2 % */
	CU_ASSERT_DOUBLE_EQUAL(exact_sigma(s, lambda, mask), target, 0.04 * target);
	CU_ASSERT(steps > 5 && steps < 30);
	CU_ASSERT_EQUAL(fx_lambda_for_sigma(math, &s->frame, 1e-9, mask, &o, NULL, NULL, &lambda), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "target_sigma"));
	error = (fx_error){0};
	fx_array_unref(mask);
	system_free(s);
}

static CU_TestInfo tests[] = {
	{"sigma with W = I", sigma_of_plain_lambda},
	{"sigma with weights", sigma_with_weights},
	{"width of one point", width_of_one_point},
	{"width of a full scan", width_of_a_full_scan},
	{"lambda meets a target", lambda_meets_a_target},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_predict = {"predict", set_up, tear_down, NULL, NULL, tests};

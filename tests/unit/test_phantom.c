/* SPDX-License-Identifier: MIT */
/* The phantom's object side: transforms against quadrature and sums, voxel averages, slices, coils. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <string.h>

#include "recon/phantom.h"

#define PI 3.14159265358979323846

static const fxi_ellipsoid tilted[] = {
	{1.5, {0.1, -0.05, 0.08}, {0.5, 0.7, 0.4}, {20, 35, -50}},
	{-0.7, {-0.1, 0.2, 0}, {0.25, 0.2, 0.3}, {0}},
};

/* Simpson's rule on f(r) r^(dims-1), where f is the transform of a shell: error about (u/n)^4 */
static double quadrature(double u, bool ball)
{
	const int n = 2000;
	double sum = 0;

	for (int i = 0; i <= n; i++) {
		double r = (double)i / n, w = i == 0 || i == n ? 1 : i % 2 ? 4 : 2;
		double shell = ball ? 4 * PI * r * r * (u * r > 0 ? sin(u * r) / (u * r) : 1) : 2 * PI * r * j0(u * r);

		sum += w * shell;
	}
	return sum / (3 * n);
}

static void transforms_against_quadrature(void)
{
	/* on both sides of where the series takes over */
	const double at[] = {0, 1e-9, 5e-5, 1.1e-4, 0.01, 0.5, 0.999, 1.001, 3, 17, 60};

	CU_ASSERT_DOUBLE_EQUAL(fxi_disc_transform(0), PI, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(fxi_ball_transform(0), 4 * PI / 3, 1e-15);
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		/* Simpson with 2000 steps: (60/2000)^4 is 8e-7, times the integrand's 1/u that is left at 60 */
		CU_ASSERT_DOUBLE_EQUAL(fxi_disc_transform(at[i]), quadrature(at[i], false), at[i] > 3 ? 1e-6 : 1e-11);
		CU_ASSERT_DOUBLE_EQUAL(fxi_ball_transform(at[i]), quadrature(at[i], true), at[i] > 3 ? 1e-6 : 1e-11);
	}
	/* no step where the series takes over: neighbours differ by slope times distance, below 1e-12 */
	CU_ASSERT_DOUBLE_EQUAL(fxi_ball_transform(1 - 1e-13), fxi_ball_transform(1 + 1e-13), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(fxi_disc_transform(1e-4 - 1e-14), fxi_disc_transform(1e-4 + 1e-14), 1e-12);
}

/* sum over voxels of truth * map * e^{-i2pi k.x} / (voxel's own transform): what aliases adds is left */
static fx_cf64 voxel_sum(const fx_array *truth, const fxi_coils *coils, int64_t coil, const double k[3])
{
	fx_cf64 sum = 0;
	const float *value = FX_F32_OF(truth);

	for (int64_t z = 0, i = 0; z < truth->dims[2]; z++)
		for (int64_t y = 0; y < truth->dims[1]; y++)
			for (int64_t x = 0; x < truth->dims[0]; x++, i++) {
				double at[3] = {(double)(x - truth->dims[0] / 2), (double)(y - truth->dims[1] / 2),
					(double)(z - truth->dims[2] / 2)};
				fx_cf64 maps[32];

				if (value[i] == 0)
					continue;
				fxi_coils_at(coils, at, maps);
				sum += (double)value[i] * maps[coil] * cexp(-2 * PI * I * (k[0] * at[0] + k[1] * at[1] + k[2] * at[2]));
			}
	return sum;
}

/*
 * The voxel sum misses the coil's and the wave's change inside a voxel: a factor sinc(k) per wave with k below 0.03
 * cycles/voxel, 1.5e-3; and gains aliases from k near 1, where the object's transform is below 1e-3 of its centre.
 */
static void kspace_against_voxel_sum(void)
{
	const int64_t matrix[2][3] = {{72, 60, 1}, {48, 40, 36}};
	const double ks[][3] = {{0, 0, 0}, {0.013, -0.02, 0.011}, {-0.004, 0.017, -0.023}, {0.024, 0.002, 0}};

	for (int n_dims = 2; n_dims <= 3; n_dims++) {
		const int64_t *m = matrix[n_dims - 2];
		double scale = 1 / sqrt((double)(m[0] * m[1] * m[2]));
		fxi_phantom *p;
		fxi_coils *coils;
		fx_array *truth;
		fx_cf32 out[4 * 8];
		fx_error err = {0};

		CU_ASSERT_FATAL(fxi_phantom_new(n_dims, m, tilted, 2, &err, &p) == FX_OK);
		CU_ASSERT_FATAL(fxi_coils_new(8, n_dims, m, &err, &coils) == FX_OK);
		CU_ASSERT_FATAL(fxi_phantom_truth(p, m, 2, &err, &truth) == FX_OK);
		CU_ASSERT_FATAL(fxi_phantom_samples(p, coils, ks[0], 4, scale, 2, &err, out) == FX_OK);
		double centre = cabs(fxi_phantom_transform(p, (double[3]){0})) * scale;

		for (int64_t c = 0; c < 8; c++)
			for (int64_t i = 0; i < 4; i++) {
				double k[3] = {ks[i][0], ks[i][1], n_dims == 3 ? ks[i][2] : 0};

				CU_ASSERT_DOUBLE_EQUAL(cabs(voxel_sum(truth, coils, c, k) * scale - out[i + 4 * c]), 0, 2e-3 * centre);
			}
		fxi_phantom_free(p);
		fxi_coils_free(coils);
		fx_array_unref(truth);
	}
}

static void centre_is_volume(void)
{
	const int64_t m[3] = {40, 30, 20};
	const double volume = 4 * PI / 3 * 20 * 15 * 10;
	fxi_phantom *p;
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_phantom_new(3, m, tilted, 2, &err, &p) == FX_OK);
	fx_cf64 at0 = fxi_phantom_transform(p, (double[3]){0});

	CU_ASSERT_DOUBLE_EQUAL(creal(at0), volume * (1.5 * 0.5 * 0.7 * 0.4 - 0.7 * 0.25 * 0.2 * 0.3), 1e-9 * volume);
	CU_ASSERT_DOUBLE_EQUAL(cimag(at0), 0, 1e-9);
	fxi_phantom_free(p);
	CU_ASSERT_FATAL(fxi_phantom_new(2, (int64_t[3]){40, 30, 1}, tilted, 1, &err, &p) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(creal(fxi_phantom_transform(p, (double[3]){0})), PI * 20 * 15 * 1.5 * 0.35, 1e-9);
	fxi_phantom_free(p);
}

/* Midpoints of n x n x n points a voxel: an estimate that shares nothing with the chords. */
static double brute_average(const fxi_phantom *p, const int64_t m[3], int64_t x, int64_t y, int64_t z, int n)
{
	double sum = 0;
	int nz = p->n_dims == 3 ? n : 1;

	for (int c = 0; c < nz; c++)
		for (int b = 0; b < n; b++)
			for (int a = 0; a < n; a++) {
				double at[3] = {(double)(x - m[0] / 2) - 0.5 + (a + 0.5) / n, (double)(y - m[1] / 2) - 0.5 + (b + 0.5) / n,
					(double)(z - m[2] / 2) - 0.5 + (c + 0.5) / nz};

				sum += fxi_phantom_at(p, at);
			}
	return sum / (n * n * nz);
}

static void truth_is_the_voxel_average(void)
{
	const int64_t matrix[2][3] = {{33, 24, 1}, {17, 20, 13}};

	for (int n_dims = 2; n_dims <= 3; n_dims++) {
		const int64_t *m = matrix[n_dims - 2];
		double total = 0, squares = 0;
		int64_t edges = 0;
		fxi_phantom *p;
		fx_array *truth;
		fx_error err = {0};

		CU_ASSERT_FATAL(fxi_phantom_new(n_dims, m, tilted, 1, &err, &p) == FX_OK);
		CU_ASSERT_FATAL(fxi_phantom_truth(p, m, 2, &err, &truth) == FX_OK);
		for (int64_t i = 0; i < truth->n; i++) {
			double value = FX_F32_OF(truth)[i], brute;

			total += value;
			if ((value == 0 || fabs(value - 1.5) < 1e-6) && i % 7)
				continue;
			brute = brute_average(p, m, i % m[0], (i / m[0]) % m[1], i / (m[0] * m[1]), n_dims == 3 ? 24 : 100);
			squares += (value - brute) * (value - brute);
			edges++;
			/* the brute sum's own error on a face is its last layer's: 1.5 * 0.5/24 and 1.5 * 0.5/100 at worst */
			CU_ASSERT_DOUBLE_EQUAL(value, brute, n_dims == 3 ? 0.032 : 0.008);
		}
		CU_ASSERT(edges > 50);
		CU_ASSERT(sqrt(squares / (double)edges) < 0.003);
		/* 1e-3 root mean square on a third of the voxels, errors of either sign: a tenth of that is left in the sum */
		CU_ASSERT_DOUBLE_EQUAL(total / creal(fxi_phantom_transform(p, (double[3]){0})), 1, 1e-4);
		fxi_phantom_free(p);
		fx_array_unref(truth);
	}
}

static void objects_may_leave_the_matrix(void)
{
	const fxi_ellipsoid big = {2, {0.9, 0, 0}, {3, 3, 3}, {0}};
	const int64_t m[3] = {9, 8, 7};
	fxi_phantom *p;
	fx_array *truth;
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_phantom_new(3, m, &big, 1, &err, &p) == FX_OK);
	CU_ASSERT_FATAL(fxi_phantom_truth(p, m, 1, &err, &truth) == FX_OK);
	for (int64_t i = 0; i < truth->n; i++)
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(truth)[i], 2, 1e-6);
	fx_array_unref(truth);
	fxi_phantom_free(p);
}

static void slices_are_cuts(void)
{
	const int64_t m[3] = {40, 48, 30};
	fxi_phantom *whole, *slice;
	fxi_random r;
	fx_error err = {0};
	int64_t differing = 0, inside = 0;

	CU_ASSERT_FATAL(fxi_phantom_new(3, m, tilted, 2, &err, &whole) == FX_OK);
	fxi_random_start(&r, 1, 1);
	for (int i = -8; i <= 8; i++) {
		CU_ASSERT_FATAL(fxi_phantom_slice(whole, 0.9 * i, &err, &slice) == FX_OK);
		for (int j = 0; j < 400; j++) {
			double x[3] = {40 * (fxi_random_uniform(&r) - 0.5), 48 * (fxi_random_uniform(&r) - 0.5), 0.9 * i};
			double a = fxi_phantom_at(whole, x), b = fxi_phantom_at(slice, x);

			inside += a != 0;
			differing += a != b;
		}
		fxi_phantom_free(slice);
	}
	CU_ASSERT(inside > 500);
	CU_ASSERT_EQUAL(differing, 0);
	CU_ASSERT_FATAL(fxi_phantom_slice(whole, 40, &err, &slice) == FX_OK);
	CU_ASSERT_EQUAL(slice->n_shapes, 0);
	fxi_phantom_free(slice);
	fxi_phantom_free(whole);
}

static void coils_have_unit_power(void)
{
	const int64_t m[3] = {32, 40, 24};
	const int64_t counts[] = {1, 2, 3, 4, 5, 7, 8, 12, 31, 64};
	fx_error err = {0};
	fxi_coils *c;

	for (int n_dims = 2; n_dims <= 3; n_dims++)
		for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
			fx_cf64 at[64];
			fxi_random r;

			CU_ASSERT_FATAL(fxi_coils_new(counts[i], n_dims, m, &err, &c) == FX_OK);
			fxi_random_start(&r, 5, i);
			for (int j = 0; j < 50; j++) {
				double x[3], power = 0;

				for (int d = 0; d < 3; d++)
					x[d] = (double)m[d] * (2 * fxi_random_uniform(&r) - 1);
				fxi_coils_at(c, x, at);
				for (int64_t k = 0; k < counts[i]; k++)
					power += creal(at[k] * conj(at[k]));
				/* rounding of at most 64 products */
				CU_ASSERT_DOUBLE_EQUAL(power, 1, 1e-12);
			}
			if (counts[i] == 1)
				CU_ASSERT(at[0] == 1);
			fxi_coils_free(c);
		}
	CU_ASSERT_EQUAL(fxi_coils_new(0, 3, m, &err, &c), FX_EINVAL);
}

/* Each of 8 coils in 3-D outshines the mean on its own side, and no two maps are alike. */
static void coils_differ(void)
{
	const int64_t m[3] = {32, 32, 32};
	fx_cf64 maps[27][8];
	fx_error err = {0};
	fxi_coils *c;
	int n = 0;

	CU_ASSERT_FATAL(fxi_coils_new(8, 3, m, &err, &c) == FX_OK);
	for (int z = -1; z <= 1; z++)
		for (int y = -1; y <= 1; y++)
			for (int x = -1; x <= 1; x++)
				fxi_coils_at(c, (double[3]){12 * x, 12 * y, 12 * z}, maps[n++]);
	for (int a = 0; a < 8; a++) {
		double low = 1, high = 0;

		for (int i = 0; i < n; i++) {
			low = fmin(low, cabs(maps[i][a]));
			high = fmax(high, cabs(maps[i][a]));
		}
		CU_ASSERT(high > 0.5 && low < 0.2);
		for (int b = 0; b < a; b++) {
			double aa = 0, bb = 0;
			fx_cf64 ab = 0;

			for (int i = 0; i < n; i++) {
				aa += creal(maps[i][a] * conj(maps[i][a]));
				bb += creal(maps[i][b] * conj(maps[i][b]));
				ab += maps[i][a] * conj(maps[i][b]);
			}
			CU_ASSERT(cabs(ab) < 0.9 * sqrt(aa * bb));
		}
	}
	/* maps whose conjugate would do as well would hide a missing conj: sum S_c S_c is far from sum |S_c|^2 */
	fx_cf64 twice = 0;

	for (int a = 0; a < 8; a++)
		twice += maps[0][a] * maps[0][a];
	CU_ASSERT(cabs(twice) < 0.8);
	fxi_coils_free(c);
}

/* The inverse transform of a full Cartesian matrix is the object, band-limited: amplitudes come out unscaled. */
static void cartesian_gives_the_amplitude(void)
{
	const int64_t m[3] = {32, 27, 1};
	const fxi_ellipsoid disc = {3, {0.05, -0.1}, {0.7, 0.6}, {30}};
	fxi_phantom *p;
	fx_array *k, *truth;
	fx_error err = {0};
	double error = 0, norm = 0;

	CU_ASSERT_FATAL(fxi_phantom_new(2, m, &disc, 1, &err, &p) == FX_OK);
	CU_ASSERT_FATAL(fxi_phantom_cartesian(p, m, 2, &err, &k) == FX_OK);
	CU_ASSERT_FATAL(fxi_phantom_truth(p, m, 2, &err, &truth) == FX_OK);
	for (int64_t y = 0; y < m[1]; y++)
		for (int64_t x = 0; x < m[0]; x++) {
			fx_cf64 sum = 0;
			double value = FX_F32_OF(truth)[x + m[0] * y];

			for (int64_t b = 0; b < m[1]; b++)
				for (int64_t a = 0; a < m[0]; a++)
					sum += FX_CF32_OF(k)[a + m[0] * b] *
						cexp(2 * PI * I * ((double)((a - 16) * (x - 16)) / 32 + (double)((b - 13) * (y - 13)) / 27));
			sum /= sqrt(32 * 27);
			error += creal((sum - value) * conj(sum - value));
			norm += value * value;
			/* well inside, Gibbs ripples are below 5 % of the step */
			if (hypot((double)(x - 16) / 16 - 0.05, (double)(y - 13) / 13.5 + 0.1) < 0.3)
				CU_ASSERT_DOUBLE_EQUAL(cabs(sum - 3), 0, 0.15);
		}
	/* k-space beyond the matrix holds about 2 / (pi^2 * diameter in voxels) of a disc's energy: 1 %, so 10 % of its norm */
	CU_ASSERT(sqrt(error / norm) < 0.1);
	fx_array_unref(k);
	fx_array_unref(truth);
	fxi_phantom_free(p);
}

static void threads_do_not_matter(void)
{
	const int64_t m[3] = {20, 20, 20};
	static double k[3 * 1000];
	static fx_cf32 a[1000 * 4], b[1000 * 4];
	fxi_phantom *p;
	fxi_coils *c;
	fxi_random r;
	fx_error err = {0};

	fxi_random_start(&r, 2, 0);
	for (int i = 0; i < 3000; i++)
		k[i] = fxi_random_uniform(&r) - 0.5;
	CU_ASSERT_FATAL(fxi_phantom_shepp_logan(3, m, &err, &p) == FX_OK);
	CU_ASSERT_FATAL(fxi_coils_new(4, 3, m, &err, &c) == FX_OK);
	CU_ASSERT(fxi_phantom_samples(p, c, k, 1000, 1, 1, &err, a) == FX_OK);
	CU_ASSERT(fxi_phantom_samples(p, c, k, 1000, 1, 3, &err, b) == FX_OK);
	CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
	fxi_phantom_free(p);
	fxi_coils_free(c);
}

static void wrong_shapes_are_refused(void)
{
	const int64_t m[3] = {8, 8, 8};
	const fxi_ellipsoid flat = {1, {0}, {1, 0, 1}, {0}}, wild = {NAN, {0}, {1, 1, 1}, {0}};
	fx_error err = {0};
	fxi_phantom *p;

	CU_ASSERT_EQUAL(fxi_phantom_new(3, m, &flat, 1, &err, &p), FX_EINVAL);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT(strstr(err.text, "shape 1") != NULL);
	CU_ASSERT_EQUAL(fxi_phantom_new(3, m, &wild, 1, &err, &p), FX_EINVAL);
}

static CU_TestInfo tests[] = {
	{"transforms against quadrature", transforms_against_quadrature},
	{"k = 0 is the volume", centre_is_volume},
	{"k-space of coils against voxel sums", kspace_against_voxel_sum},
	{"the truth is the voxel average", truth_is_the_voxel_average},
	{"objects may leave the matrix", objects_may_leave_the_matrix},
	{"slices are cuts", slices_are_cuts},
	{"coils have unit power", coils_have_unit_power},
	{"coils differ", coils_differ},
	{"Cartesian data give the amplitude", cartesian_gives_the_amplitude},
	{"threads do not matter", threads_do_not_matter},
	{"wrong shapes are refused", wrong_shapes_are_refused},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_phantom = {"phantom", NULL, NULL, NULL, NULL, tests};

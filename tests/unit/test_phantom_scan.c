/* SPDX-License-Identifier: MIT */
/* The phantom's scan side: trajectories and noise. */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include <complex.h>
#include <math.h>
#include <string.h>

#include "recon/phantom.h"

static void cartesian_covers_the_matrix(void)
{
	fxi_sampling s = {.kind = FXI_CARTESIAN, .matrix = {9, 8, 5}, .oversampling = 2};
	double k[3 * 18];
	int64_t step[2];
	bool seen[8][5] = {{0}};
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
	CU_ASSERT_EQUAL_FATAL(s.n_samples, 18);
	CU_ASSERT_EQUAL(s.center_sample, 9);
	CU_ASSERT_EQUAL_FATAL(s.n_readouts, 40);
	for (int64_t i = 0; i < 40; i++) {
		fxi_sampling_readout(&s, i, k, step);
		CU_ASSERT(step[0] >= 0 && step[0] < 8 && step[1] >= 0 && step[1] < 5);
		seen[step[0]][step[1]] = true;
		CU_ASSERT_DOUBLE_EQUAL(k[3 * 9], 0, 0);
		CU_ASSERT_DOUBLE_EQUAL(k[0], -0.5, 1e-15);
		CU_ASSERT_DOUBLE_EQUAL(k[1], (double)(step[0] - 4) / 8, 1e-15);
		CU_ASSERT_DOUBLE_EQUAL(k[2], (double)(step[1] - 2) / 5, 1e-15);
	}
	for (int y = 0; y < 8; y++)
		for (int z = 0; z < 5; z++)
			CU_ASSERT(seen[y][z]);
}

static void partial_cartesian_keeps_the_centre(void)
{
	fxi_sampling s = {.kind = FXI_CARTESIAN, .matrix = {16, 16, 9}, .oversampling = 2, .echo = 0.75,
		.partial_fourier = {0.625, 0.5}};
	double k[3 * 32];
	int64_t step[2];
	bool centre = false;
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
	CU_ASSERT_EQUAL_FATAL(s.n_samples, 24);
	CU_ASSERT_EQUAL(s.center_sample, 8);
	CU_ASSERT_EQUAL(s.n_steps[0], 10);
	CU_ASSERT_EQUAL(s.skipped[0], 6);
	CU_ASSERT_EQUAL(s.skipped[1], 4);
	for (int64_t i = 0; i < s.n_readouts; i++) {
		fxi_sampling_readout(&s, i, k, step);
		CU_ASSERT_DOUBLE_EQUAL(k[3 * s.center_sample], 0, 0);
		CU_ASSERT_DOUBLE_EQUAL(k[3 * (s.n_samples - 1)], 15.0 / 32, 1e-15);
		centre = centre || (k[1] == 0 && k[2] == 0);
	}
	CU_ASSERT(centre);
	s = (fxi_sampling){.kind = FXI_CARTESIAN, .matrix = {8, 8, 1}, .echo = 0.3};
	CU_ASSERT_EQUAL(fxi_sampling_complete(&s, &err), FX_EINVAL);
}

/* An even cover of directions has second moments I/3 (diameters: first moments say nothing); 1 % at 1000 spokes. */
static void spokes_cover_the_sphere(void)
{
	for (int golden = 0; golden <= 1; golden++) {
		fxi_sampling s = {.kind = FXI_RADIAL3D, .matrix = {16, 16, 16}, .n_readouts = 1000, .golden = golden};
		double k[3 * 32], moment[3][3] = {{0}};
		int64_t step[2];
		fx_error err = {0};

		CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
		CU_ASSERT_EQUAL_FATAL(s.n_samples, 32);
		for (int64_t i = 0; i < 1000; i++) {
			fxi_sampling_readout(&s, i, k, step);
			CU_ASSERT_EQUAL(step[0], i);
			CU_ASSERT_DOUBLE_EQUAL(k[3 * 16] + k[3 * 16 + 1] + k[3 * 16 + 2], 0, 0);
			CU_ASSERT_DOUBLE_EQUAL(sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]), 0.5, 1e-14);
			for (int a = 0; a < 3; a++)
				for (int b = 0; b < 3; b++)
					moment[a][b] += k[a] * k[b] / 250;
		}
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++)
				CU_ASSERT_DOUBLE_EQUAL(moment[a][b], a == b ? 1.0 / 3 : 0, 0.01);
	}
}

static void golden_goes_on_and_equal_repeats(void)
{
	for (int kind = FXI_RADIAL; kind <= FXI_RADIAL3D; kind++)
		for (int golden = 0; golden <= 1; golden++) {
			fxi_sampling s = {.kind = kind, .matrix = {12, 12, kind >= FXI_STACK_OF_STARS ? 4 : 1}, .golden = golden,
				.n_readouts = 5, .n_samples = 24};
			double first[72], later[72];
			int64_t step[2], again[2];
			fx_error err = {0};

			CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
			CU_ASSERT_EQUAL(s.n_readouts, kind == FXI_STACK_OF_STARS ? 20 : 5);
			fxi_sampling_readout(&s, 3, first, step);
			fxi_sampling_readout(&s, 3 + s.n_readouts, later, again);
			CU_ASSERT(step[0] == again[0] && step[1] == again[1]);
			CU_ASSERT_EQUAL(memcmp(first, later, sizeof first) != 0, golden);
		}
}

static void spiral_is_dense_enough(void)
{
	fxi_sampling s = {.kind = FXI_SPIRAL, .matrix = {64, 64, 1}};
	static double k[3 * 8192];
	int64_t step[2];
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
	CU_ASSERT_FATAL(s.n_samples < 8192);
	fxi_sampling_readout(&s, 0, k, step);
	CU_ASSERT_DOUBLE_EQUAL(hypot(k[0], k[1]), 0, 0);
	for (int64_t j = 1; j < s.n_samples; j++) {
		double apart = hypot(k[3 * j] - k[3 * j - 3], k[3 * j + 1] - k[3 * j - 2]);

		/* along an arm: below Nyquist's 1/N throughout; outwards always, never beyond 0.5 */
		CU_ASSERT(apart < 1.0 / 64);
		CU_ASSERT(hypot(k[3 * j], k[3 * j + 1]) > hypot(k[3 * j - 3], k[3 * j - 2]));
		CU_ASSERT(hypot(k[3 * j], k[3 * j + 1]) <= 0.5);
	}
	/* between arms: after 1/n of a turn the next arm is there, 1/N further out */
	double turns = 64.0 / (2.0 * (double)s.n_readouts);

	CU_ASSERT_DOUBLE_EQUAL(0.5 / turns / (double)s.n_readouts, 1.0 / 64, 1e-15);
	/* accelerated: arms 3/N apart; its first arm is the first of the full set */
	fxi_sampling fast = {.kind = FXI_SPIRAL, .matrix = {64, 64, 1}, .n_readouts = 2, .acceleration = 3};
	fxi_sampling whole = {.kind = FXI_SPIRAL, .matrix = {64, 64, 1}, .n_readouts = 6};
	static double first[3 * 8192];

	CU_ASSERT_FATAL(fxi_sampling_complete(&fast, &err) == FX_OK && fxi_sampling_complete(&whole, &err) == FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(0.5 / fxi_spiral_turns(&fast) / 2, 3.0 / 64, 1e-15);
	CU_ASSERT_EQUAL_FATAL(fast.n_samples, whole.n_samples);
	fxi_sampling_readout(&fast, 1, k, step);
	fxi_sampling_readout(&whole, 3, first, step);
	CU_ASSERT_EQUAL(memcmp(k, first, (size_t)(24 * fast.n_samples)), 0);
}

static void kinds_and_matrices_must_fit(void)
{
	fx_error err = {0};
	fxi_sampling s = {.kind = FXI_RADIAL, .matrix = {8, 8, 8}};

	CU_ASSERT_EQUAL(fxi_sampling_complete(&s, &err), FX_EINVAL);
	CU_ASSERT(strstr(err.text, "stack-of-stars") != NULL);
	s = (fxi_sampling){.kind = FXI_RADIAL3D, .matrix = {8, 8, 1}};
	CU_ASSERT_EQUAL(fxi_sampling_complete(&s, &err), FX_EINVAL);
	s = (fxi_sampling){.kind = FXI_RANDOM, .matrix = {8, 0, 1}};
	CU_ASSERT_EQUAL(fxi_sampling_complete(&s, &err), FX_EINVAL);
	CU_ASSERT_STRING_EQUAL(fxi_sampling_name(FXI_STACK_OF_STARS), "stack-of-stars");
}

static void random_stays_inside(void)
{
	fxi_sampling s = {.kind = FXI_RANDOM, .matrix = {8, 6, 1}, .n_samples = 500, .seed = 4};
	double k[1500];
	int64_t step[2];
	fx_error err = {0};

	CU_ASSERT_FATAL(fxi_sampling_complete(&s, &err) == FX_OK);
	fxi_sampling_readout(&s, 2, k, step);
	for (int i = 0; i < 1500; i++)
		CU_ASSERT(i % 3 == 2 ? k[i] == 0 : k[i] >= -0.5 && k[i] < 0.5);
}

/* The generator and the normal numbers from an independent program (Python integers and math.log). */
static void known_random_numbers(void)
{
	const double uniform[3] = {0.14767465720885453, 0.9728292062233844, 0.22705786064304745};
	const double normal[4] = {-1.3329758992934655, 0.5626819450700487, 0.6645401372468526, 0.4851286492893355};
	fxi_random r;
	double pair[2];

	fxi_random_start(&r, 7, 3);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_DOUBLE_EQUAL(fxi_random_uniform(&r), uniform[i], 0);
	fxi_random_start(&r, 7, 3);
	for (int i = 0; i < 2; i++) {
		fxi_random_normal(&r, pair);
		/* another logarithm: a few units in the last place */
		CU_ASSERT_DOUBLE_EQUAL(pair[0], normal[2 * i], 4e-15);
		CU_ASSERT_DOUBLE_EQUAL(pair[1], normal[2 * i + 1], 4e-15);
	}
}

static void noise_has_its_covariance(void)
{
	enum { N = 40000, COILS = 4 };
	const fxi_noise noise = {.sigma = 0.5, .correlation = 0.6, .gain_spread = 0.8, .seed = 11};
	static fx_cf32 data[N * COILS];
	fx_cf64 mean = 0;

	memset(data, 0, sizeof data);
	fxi_noise_add(&noise, 0, 2, N, COILS, data);
	for (int a = 0; a < COILS; a++)
		for (int b = 0; b < COILS; b++) {
			fx_cf64 got = 0, want = 4 * fxi_noise_covariance(&noise, a, b);
			double size = 4 * sqrt(creal(fxi_noise_covariance(&noise, a, a)) * creal(fxi_noise_covariance(&noise, b, b)));

			for (int i = 0; i < N; i++)
				got += (fx_cf64)data[i + N * a] * conj((fx_cf64)data[i + N * b]);
			/* an estimate from N samples scatters by size / sqrt N; five of those */
			CU_ASSERT_DOUBLE_EQUAL(cabs(got / N - want), 0, 5 * size / sqrt(N));
		}
	for (int i = 0; i < N; i++)
		mean += data[i];
	CU_ASSERT_DOUBLE_EQUAL(cabs(mean) / N, 0, 5 * sqrt(2.0) / sqrt(N));
	/* the real part alone has sigma^2: 4 * 0.25 for coil 0 */
	double real = 0;

	for (int i = 0; i < N; i++)
		real += (double)crealf(data[i]) * crealf(data[i]);
	CU_ASSERT_DOUBLE_EQUAL(real / N, 1, 5 * sqrt(2.0 / N));
}

static void noise_streams_repeat(void)
{
	const fxi_noise noise = {.sigma = 1, .seed = 3};
	fx_cf32 a[50] = {0}, b[50] = {0}, c[50] = {0};

	fxi_noise_add(&noise, 8, 1, 25, 2, a);
	fxi_noise_add(&noise, 8, 1, 25, 2, b);
	fxi_noise_add(&noise, 9, 1, 25, 2, c);
	CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(a, c, sizeof a), 0);
}

static CU_TestInfo tests[] = {
	{"Cartesian covers the matrix", cartesian_covers_the_matrix},
	{"partial Fourier keeps the centre", partial_cartesian_keeps_the_centre},
	{"spokes cover the sphere", spokes_cover_the_sphere},
	{"golden goes on, equal repeats", golden_goes_on_and_equal_repeats},
	{"a spiral is dense enough", spiral_is_dense_enough},
	{"kinds and matrices must fit", kinds_and_matrices_must_fit},
	{"random stays inside", random_stays_inside},
	{"known random numbers", known_random_numbers},
	{"noise has its covariance", noise_has_its_covariance},
	{"noise streams repeat", noise_streams_repeat},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_phantom_scan = {"phantom_scan", NULL, NULL, NULL, NULL, tests};

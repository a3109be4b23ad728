/* SPDX-License-Identifier: MIT */
/* Tensor fits against known tensors and against a plain fit in double. */
#include "fit_reference.h"

#include "host/tensor.h"

static const double one_shell[] = {1000}, two_shells[] = {1000, 2000}, high[] = {3000};

static void noise_free_tensors_come_back(void)
{
	const int64_t sizes[][3] = {{1, 1, 1}, {5, 3, 7}, {17, 4, 1}, {64, 1, 3}};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int method = FX_FIT_OLS; method <= FX_FIT_WLS; method++) {
			int64_t n = sizes[i][0] * sizes[i][1] * sizes[i][2];
			fx_series_info *info = table_of(7 + 6 * (int64_t)i, 1, one_shell, 1, sizes[i]);
			double *truth = fx_alloc(6 * n, sizeof *truth), worst = 0, worst_s0 = 0, worst_residual = 0;
			fx_array **volumes = series_of(info, 1500, 0, 42, truth);
			fx_fit_spec spec = {.method = method, .reweightings = 2, .b0_max = 50};
			fx_msg *out = finished(info, volumes, &spec, NULL, 2);
			fx_tensors *t = fx_msg_tensors(out);

			for (int64_t v = 0; v < n; v++) {
				for (int k = 0; k < 6; k++)
					worst = fmax(worst, fabs(FX_F32_OF(t->d)[6 * v + k] - truth[6 * v + k]));
				worst_s0 = fmax(worst_s0, fabs(FX_F32_OF(t->s0)[v] / 1500 - 1));
				worst_residual = fmax(worst_residual, FX_F32_OF(t->residual)[v] / 1500);
				CU_ASSERT_EQUAL(((uint8_t *)t->flags->data)[v], 0);
				CU_ASSERT_EQUAL(((uint8_t *)t->mask->data)[v], 1);
			}
			/* signals and their logarithms are rounded to single: 6e-8, and ln 1500 to 5e-7 */
			CU_ASSERT(worst < 4e-6);
			CU_ASSERT(worst_s0 < 3e-6);
			CU_ASSERT(worst_residual < 2e-6);
			CU_ASSERT_EQUAL(t->fit, method);
			CU_ASSERT_FALSE(t->provisional);
			fx_drop(out);
			free_series(volumes, info->n_volumes);
			fx_free(truth);
			fx_series_info_unref(info);
		}
}

/* Largest differences to the reference over all voxels where it has a solution. */
static void compare(fx_series_info *info, fx_array **volumes, const fx_fit_spec *spec, double s0, double tolerance)
{
	fx_msg *out = finished(info, volumes, spec, NULL, 2);
	fx_tensors *t = fx_msg_tensors(out);
	double worst = 0, worst_s0 = 0, worst_residual = 0;

	for (int64_t v = 0; v < t->s0->n; v++) {
		double x[7], residual, size = 0, difference = 0;
		uint8_t flags = ((uint8_t *)t->flags->data)[v];

		if (flags & FX_TENSOR_UNFITTED)
			continue;
		CU_ASSERT_FATAL(reference_fit(info, volumes, v, spec, x, &residual));
		fx_tensor_raise(x + 1, spec->floor);
		for (int k = 0; k < 6; k++) {
			difference = fmax(difference, fabs(FX_F32_OF(t->d)[6 * v + k] - x[k + 1]));
			size = fmax(size, fabs(x[k + 1]));
		}
		worst = fmax(worst, difference / fmax(1, size));
		worst_s0 = fmax(worst_s0, fabs(FX_F32_OF(t->s0)[v] / exp(x[0]) - 1));
		worst_residual = fmax(worst_residual, fabs(FX_F32_OF(t->residual)[v] - residual) / s0);
	}
	CU_ASSERT(worst < tolerance);
	CU_ASSERT(worst_s0 < 2 * tolerance);
	CU_ASSERT(worst_residual < 2 * tolerance);
	if (worst >= tolerance || worst_s0 >= 2 * tolerance || worst_residual >= 2 * tolerance)
		fprintf(stderr, "method %d start %d reweightings %d: D %.2g S0 %.2g residual %.2g\n", spec->method, spec->start,
			spec->reweightings, worst, worst_s0, worst_residual);
	fx_drop(out);
}

static void noisy_fits_match_the_reference(void)
{
	const int64_t dims[3] = {13, 11, 9};
	/*
	 * Logarithms up to 15 are rounded to 1e-6 in single. Where noise is as large as the signals of b 3000, weights go over
	 * decades, and they and the rounding are magnified as the noise is, which leaves errors in D of 0.5 there.
	 */
	const struct { const double *b; int n_shells; double s0, noise; int64_t n; double tolerance; } cases[] = {
		{one_shell, 1, 1000, 0.03, 31, 5e-6}, {two_shells, 2, 1e-7, 0.01, 46, 5e-6}, {high, 1, 2e6, 0.005, 66, 1e-5},
		{high, 1, 2e6, 0.05, 66, 2e-4},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_series_info *info = table_of(cases[i].n, 3, cases[i].b, cases[i].n_shells, dims);
		fx_array **volumes = series_of(info, cases[i].s0, cases[i].noise, 5 + i, NULL);

		for (int fit = 0; fit < 7; fit++) {
			fx_fit_spec spec = {.method = fit == 0 ? FX_FIT_OLS : FX_FIT_WLS, .start = fit % 2 ? FX_START_SIGNALS : FX_START_OLS,
				.reweightings = fit / 2, .b0_max = 50, .floor = fit == 3 ? 0.35 : 0}; /* in the midst of the eigenvalues */

			compare(info, volumes, &spec, cases[i].s0, cases[i].tolerance);
		}
		free_series(volumes, info->n_volumes);
		fx_series_info_unref(info);
	}
}

/* Weights spread over many orders of magnitude: where single precision is left for double. */
static void extreme_weights(void)
{
	const double b[] = {500, 4000, 12000};
	const int64_t dims[3] = {16, 8, 2};
	fx_series_info *info = table_of(40, 2, b, 3, dims);
	fx_array **volumes = series_of(info, 1e4, 0, 77, NULL);
	uint64_t seed = 1;

	for (int64_t i = 0; i < 40; i++) /* multiplicative noise: signals down to 1e-12 stay positive */
		for (int64_t v = 0; v < volumes[i]->n; v++)
			FX_F32_OF(volumes[i])[v] *= (float)exp(0.1 * random_next(&seed));
	for (int fit = 0; fit < 4; fit++) {
		fx_fit_spec spec = {.method = FX_FIT_WLS, .start = fit % 2, .reweightings = 1 + fit, .b0_max = 50};

		compare(info, volumes, &spec, 1e4, 3e-5);
	}
	free_series(volumes, 40);
	fx_series_info_unref(info);
}

/* Signals of no use anywhere: they count in no iteration, and the rest is fitted as if they had not been. */
static void unusable_signals_are_left_out(void)
{
	const float odd[] = {NAN, INFINITY, -INFINITY, 0, -3, 1e-40f};
	const int64_t dims[3] = {31, 5, 3};
	fx_series_info *info = table_of(24, 2, two_shells, 2, dims);
	fx_array **volumes = series_of(info, 800, 0.05, 9, NULL);
	fx_fit_spec specs[] = {{.method = FX_FIT_OLS, .b0_max = 50}, {.method = FX_FIT_WLS, .reweightings = 2, .b0_max = 50},
		{.method = FX_FIT_WLS, .reweightings = 3, .start = FX_START_OLS, .b0_max = 50}};
	uint64_t seed = 3;

	for (int64_t v = 0; v < volumes[0]->n; v++)
		for (int64_t k = 0; k < v % 30; k++) /* in some voxels all of them */
			FX_F32_OF(volumes[v % 7 == 0 ? k % 24 : (int64_t)(12 * (1 + random_next(&seed)))])[v] = odd[(v + k) % 6];
	for (int s = 0; s < 3; s++) {
		fx_msg *out = finished(info, volumes, &specs[s], NULL, 2);
		fx_tensors *t = fx_msg_tensors(out);
		int64_t unfitted = 0, dropped = 0;

		for (int64_t v = 0; v < volumes[0]->n; v++) {
			int64_t used = 0;
			uint8_t flags = ((uint8_t *)t->flags->data)[v];

			for (int64_t i = 0; i < 24; i++)
				used += FX_F32_OF(volumes[i])[v] > 1e-37f && isfinite(FX_F32_OF(volumes[i])[v]);
			CU_ASSERT_EQUAL(!!(flags & FX_TENSOR_DROPPED), used < 24);
			if (used < 7)
				CU_ASSERT(flags & FX_TENSOR_UNFITTED);
			CU_ASSERT_EQUAL(((uint8_t *)t->mask->data)[v], !(flags & FX_TENSOR_UNFITTED));
			CU_ASSERT(isfinite(FX_F32_OF(t->d)[6 * v]) && isfinite(FX_F32_OF(t->residual)[v]) && isfinite(FX_F32_OF(t->s0)[v]));
			if (flags & FX_TENSOR_UNFITTED)
				CU_ASSERT(FX_F32_OF(t->d)[6 * v] == 0 && FX_F32_OF(t->s0)[v] == 0 && FX_F32_OF(t->residual)[v] == 0);
			unfitted += !!(flags & FX_TENSOR_UNFITTED);
			dropped += !!(flags & FX_TENSOR_DROPPED);
		}
		CU_ASSERT(unfitted > 20 && dropped > 200 && unfitted < dropped);
		fx_drop(out);
		/* Few signals in a plane or nearly so magnify 1e-6 of rounded logarithms a thousandfold; 1e-40 counts as no signal. */
		for (int64_t i = 0; i < 24; i++)
			for (int64_t v = 0; v < volumes[0]->n; v++)
				if (FX_F32_OF(volumes[i])[v] < 1e-37f)
					FX_F32_OF(volumes[i])[v] = 0;
		compare(info, volumes, &specs[s], 800, 1e-3);
	}
	free_series(volumes, 24);
	fx_series_info_unref(info);
}

static void special_voxels_are_flagged(void)
{
	const int64_t dims[3] = {6, 1, 1};
	fx_series_info *info = table_of(20, 2, one_shell, 1, dims);
	fx_array **volumes = series_of(info, 100, 0, 1, NULL), *mask = NULL;
	fx_fit_spec spec = {.method = FX_FIT_WLS, .reweightings = 2, .b0_max = 50, .floor = 0.1};
	const uint8_t want[6] = {FX_TENSOR_OUTSIDE, FX_TENSOR_ISOTROPIC | FX_TENSOR_CLAMPED, FX_TENSOR_CLAMPED, FX_TENSOR_UNFITTED |
		FX_TENSOR_DROPPED, 0, FX_TENSOR_ISOTROPIC | FX_TENSOR_CLAMPED | FX_TENSOR_DROPPED};
	const double negative[6] = {-0.3, 0, 0.5, 0, 0, 1.2};

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, dims, &mask), FX_OK);
	memset(mask->data, 1, 6);
	((uint8_t *)mask->data)[0] = 0;
	for (int64_t i = 0; i < 20; i++) {
		FX_F32_OF(volumes[i])[1] = 17;
		FX_F32_OF(volumes[i])[2] = (float)signal_of(&info->gradients[i], 100, negative);
		FX_F32_OF(volumes[i])[3] = 0;
		FX_F32_OF(volumes[i])[5] = i == 0 ? NAN : 3.7f;
	}
	for (int pass = 0; pass < 2; pass++) {
		fx_msg *out = NULL;
		fx_tensors *t;
		double d[6], l[3], e[3][3];

		spec.stream = pass == 1;
		if (pass == 0) {
			out = finished(info, volumes, &spec, mask, 1);
		} else { /* the sums know the same */
			fx_math *m = math_of(1);
			fx_fit *f = fit_of(m, info, volumes, &spec);

			CU_ASSERT_EQUAL_FATAL(fx_fit_provisional(f, mask, &out), FX_OK);
			fx_fit_free(f);
			fx_math_free(m);
		}
		t = fx_msg_tensors(out);
		CU_ASSERT_EQUAL(t->provisional, pass == 1);
		for (int v = 0; v < 6; v++) {
			CU_ASSERT_EQUAL(((uint8_t *)t->flags->data)[v], want[v]);
			CU_ASSERT_EQUAL(((uint8_t *)t->mask->data)[v], !(want[v] & (FX_TENSOR_OUTSIDE | FX_TENSOR_UNFITTED)));
		}
		for (int k = 0; k < 6; k++)
			d[k] = FX_F32_OF(t->d)[12 + k];
		fx_tensor_eigen(d, l, e);
		CU_ASSERT_DOUBLE_EQUAL(l[0], 1.2, 1e-5);
		CU_ASSERT_DOUBLE_EQUAL(l[2], 0.1, 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t->d)[6], 0.1, 1e-7);
		CU_ASSERT_EQUAL(FX_F32_OF(t->d)[7], 0);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t->s0)[1], 17, 1e-4);
		CU_ASSERT_EQUAL(FX_F32_OF(t->d)[0], 0);
		fx_drop(out);
	}
	memset(mask->data, 0, 6); /* nothing to fit is no failure */
	fx_msg *none = finished(info, volumes, &spec, mask, 2);
	for (int v = 0; v < 6; v++)
		CU_ASSERT_EQUAL(((uint8_t *)fx_msg_tensors(none)->flags->data)[v], FX_TENSOR_OUTSIDE);
	fx_drop(none);
	fx_array_unref(mask);
	free_series(volumes, 20);
	fx_series_info_unref(info);
}

static void threads_change_nothing(void)
{
	const int64_t dims[3] = {41, 37, 13}; /* several chunks, the last one cut */
	fx_series_info *info = table_of(20, 2, two_shells, 2, dims);
	fx_array **volumes = series_of(info, 100, 0.1, 4, NULL);
	fx_fit_spec spec = {.method = FX_FIT_WLS, .reweightings = 2, .b0_max = 50, .floor = 0.05};
	fx_msg *a = finished(info, volumes, &spec, NULL, 1), *b = finished(info, volumes, &spec, NULL, 5);

	CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(a)->d->data, fx_msg_tensors(b)->d->data, (size_t)fx_msg_tensors(a)->d->bytes), 0);
	CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(a)->residual->data, fx_msg_tensors(b)->residual->data,
		(size_t)fx_msg_tensors(a)->residual->bytes), 0);
	CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(a)->flags->data, fx_msg_tensors(b)->flags->data,
		(size_t)fx_msg_tensors(a)->flags->bytes), 0);
	fx_drop(a);
	fx_drop(b);
	free_series(volumes, 20);
	fx_series_info_unref(info);
}

static void logarithm_and_exponential(void)
{
	enum { N = 100003 };
	float *x = fx_alloc(N, sizeof *x), *y = fx_alloc(N, sizeof *y);
	const float special[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-40f};
	double worst_log = 0, worst_exp = 0;
	uint64_t seed = 2;

	for (int i = 0; i < N; i++)
		x[i] = (float)(i % 2 ? exp(84 * random_next(&seed)) : 1 + 0.5 * random_next(&seed));
	fxi_host_tensor_log(N, x, y);
	for (int i = 0; i < N; i++) { /* in units of 2^-24 of the result, or of 1 where that is smaller */
		double want = log(x[i]);

		worst_log = fmax(worst_log, fabs(y[i] - want) / fmax(1, fabs(want)) * 0x1p24);
	}
	for (int i = 0; i < N; i++)
		x[i] = (float)(87 * random_next(&seed));
	fxi_host_tensor_exp(N, x, y);
	for (int i = 0; i < N; i++)
		worst_exp = fmax(worst_exp, fabs(y[i] / exp(x[i]) - 1) * 0x1p24);
	CU_ASSERT(worst_log < 3);
	CU_ASSERT(worst_exp < 4);
	fxi_host_tensor_log(6, special, y);
	for (int i = 0; i < 6; i++)
		CU_ASSERT(isnan(y[i]));
	x[0] = 0, x[1] = 1000, x[2] = -1000, x[3] = 1;
	fxi_host_tensor_exp(4, x, y);
	CU_ASSERT_EQUAL(y[0], 1);
	CU_ASSERT(isfinite(y[1]) && y[1] > 1e37f && y[2] > 0 && y[2] < 1e-37f);
	fx_free(x);
	fx_free(y);
}

static CU_TestInfo tests[] = {
	{"noise-free tensors come back", noise_free_tensors_come_back},
	{"noisy fits match a plain fit in double", noisy_fits_match_the_reference},
	{"weights over many orders of magnitude", extreme_weights},
	{"signals of no use are left out", unusable_signals_are_left_out},
	{"special voxels are flagged", special_voxels_are_flagged},
	{"threads change nothing", threads_change_nothing},
	{"logarithm and exponential in vectors", logarithm_and_exponential},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_fit = {"fit", NULL, NULL, NULL, NULL, tests};

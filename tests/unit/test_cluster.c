/* SPDX-License-Identifier: MIT */
/* Leader clustering, resampled lines, and the distance between fibres. */
#include "check.h"

#include "diffusion/cluster.h"

#include <string.h>

static double on_line(const void *arg, int64_t i, int64_t j)
{
	const double *x = arg;

	return fabs(x[i] - x[j]);
}

static void leaders(void)
{
	/* best first: 5 leads 4.2, 6 and 4; 3.1 is nearer to nobody within 1; 3.9 is nearest to 3.1 */
	const double x[] = {5, 4.2, 3.1, 6, 4, 3.9, NAN};
	const int64_t expected[] = {0, 0, 2, 0, 2, 2, 6};
	int64_t leader[7];
	double distance[7];

	fxi_cluster_leaders(7, on_line, x, 1, leader, distance);
	for (int i = 0; i < 7; i++) {
		if (i == 4) /* 0.9 to 3.1, 1.0 to 5 */
			CU_ASSERT_DOUBLE_EQUAL(distance[i], 0.9, 1e-12);
		CU_ASSERT_EQUAL(leader[i], expected[i]);
		CU_ASSERT(distance[i] <= 1);
	}
	fxi_cluster_leaders(0, on_line, x, 1, leader, distance);
}

/* What the header promises, on random items. */
static void leaders_promises(void)
{
	double x[200];
	int64_t leader[200];
	uint64_t seed = 5;

	for (int i = 0; i < 200; i++)
		x[i] = 20 * random_next(&seed);
	fxi_cluster_leaders(200, on_line, x, 1.5, leader, NULL);
	for (int64_t i = 0; i < 200; i++) {
		CU_ASSERT(leader[i] <= i && leader[leader[i]] == leader[i] && fabs(x[i] - x[leader[i]]) <= 1.5);
		for (int64_t j = 0; j < i; j++)
			CU_ASSERT(leader[i] != i || leader[j] != j || fabs(x[i] - x[j]) > 1.5);
	}
}

static void resampled(void)
{
	const float bent[] = {0, 0, 0, 0, 0, 0, 3, 0, 0, 3, 1, 0};
	float out[3 * 16], one[3] = {7, 8, 9};

	CU_ASSERT_EQUAL_FATAL(fxi_line_resample(bent, 4, 1, 16, out), 5);
	for (int i = 0; i < 5; i++) { /* at 0, 1, 2, 3 along x, then 1 up y */
		CU_ASSERT_DOUBLE_EQUAL(out[3 * i], fmin(i, 3), 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(out[3 * i + 1], fmax(i - 3, 0), 1e-6);
	}
	CU_ASSERT_EQUAL(fxi_line_resample(bent, 4, 1e-9, 16, out), 16);
	CU_ASSERT_DOUBLE_EQUAL(out[45], 3, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(out[46], 1, 1e-6);
	CU_ASSERT_EQUAL(fxi_line_resample(one, 1, 1, 16, out), 1);
	CU_ASSERT_EQUAL(out[2], 9);
	CU_ASSERT_EQUAL(fxi_line_resample(bent, 2, 1, 16, out), 1); /* two points in one place */
	CU_ASSERT_EQUAL(fxi_line_resample(bent, 0, 1, 16, out), 0);
}

static void distances(void)
{
	const float a[] = {0, 0, 0, 1, 0, 0, 2, 0, 0}, shifted[] = {0.5f, 0, 0, 1.5f, 0, 0}, up[] = {0, 3, 0, 2, 3, 0};
	const float half[] = {0, 0, 0, 1, 0, 0}, point[] = {1, 2, 0};

	CU_ASSERT_EQUAL(fx_tract_distance(a, 3, a, 3), 0);
	/* the ends of a are 0.5 beyond the other line, which lies on a: (1/3 + 0)/2 */
	CU_ASSERT_DOUBLE_EQUAL(fx_tract_distance(a, 3, shifted, 2), (1.0 / 3) / 2, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(fx_tract_distance(a, 3, up, 2), 3, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(fx_tract_distance(a, 3, half, 2), (1.0 / 3) / 2, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(fx_tract_distance(half, 2, a, 3), fx_tract_distance(a, 3, half, 2), 0);
	CU_ASSERT_DOUBLE_EQUAL(fx_tract_distance(a, 3, point, 1), ((sqrt(5) + 2 + sqrt(5)) / 3 + 2) / 2, 1e-12);
	CU_ASSERT(isnan(fx_tract_distance(a, 0, point, 1)));
}

static CU_TestInfo tests[] = {
	{"leaders", leaders},
	{"leaders lie apart, and all others near one", leaders_promises},
	{"lines at equal arc lengths", resampled},
	{"mean closest-point distance", distances},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_cluster = {"cluster", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* Distances of fibres in closed cases, and the search for the nearest against trying all. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include <fornix/diffusion.h>

#include "diffusion/tract_distance.h"

static void closed_cases(void)
{
	const float line[] = {0, 0, 0, 10, 0, 0}, dense[] = {0, 0, 0, 1, 0, 0, 2.5f, 0, 0, 10, 0, 0}, beside[] = {10, 3, 4, 0, 3, 4};
	const float point[] = {5, 12, 0}, half[] = {0, 0, 0, 5, 0, 0};

	/* the same line, however it is sampled; the other way round; parallel at a distance of (3, 4) */
	CU_ASSERT_EQUAL(fx_tract_distance(line, 2, line, 2), 0);
	CU_ASSERT_EQUAL(fx_tract_distance(line, 2, dense, 4), 0);
	CU_ASSERT_EQUAL(fx_tract_distance(line, 2, beside, 2), 5);
	CU_ASSERT_EQUAL(fx_tract_distance(dense, 4, beside, 2), 5);
	/* a point: from the line's ends 13, from the point 12 to the line's inside */
	CU_ASSERT_EQUAL(fx_tract_distance(line, 2, point, 1), 12.5);
	CU_ASSERT_EQUAL(fx_tract_distance(point, 1, line, 2), 12.5);
	CU_ASSERT_EQUAL(fx_tract_distance(point, 1, point, 1), 0);
	/* half of the line: its far end is 5 away, the half is on the line */
	CU_ASSERT_EQUAL(fx_tract_distance(line, 2, half, 2), 1.25);
	CU_ASSERT(isnan(fx_tract_distance(line, 0, half, 2)));
	CU_ASSERT(isnan(fx_tract_distance(line, 2, half, 0)));
}

/* Bent lines by a linear congruential generator, some without points and some of one. */
static void fill(fxi_tract_set *s, int n, uint32_t seed)
{
	float p[3 * 24];
	fx_error err = {0};

	for (int i = 0; i < n; i++) {
		int points = i % 13 == 0 ? 0 : 1 + (i * 7) % 24;

		for (int k = 0; k < 3 * points; k++) {
			seed = seed * 1664525u + 1013904223u;
			p[k] = (k < 3 ? 0 : p[k - 3]) + (float)(seed >> 8) / (float)(1 << 24) * (k < 3 ? 60.0f : 4.0f);
		}
		CU_ASSERT_EQUAL_FATAL(fxi_tract_set_add(s, p, points, &err), FX_OK);
	}
}

static void nearest_of_all(void)
{
	fxi_tract_set a = {0}, b = {0};
	fx_error err = {0};
	double nearest[2][90];

	fill(&a, 90, 1);
	fill(&b, 200, 2);
	for (int threads = 1; threads <= 2; threads++) {
		for (int i = 0; i < 90; i++)
			nearest[threads - 1][i] = (double)INFINITY;
		CU_ASSERT_EQUAL(fxi_tract_nearest(&a, &b, threads, nearest[threads - 1], &err), FX_OK);
	}
	CU_ASSERT(memcmp(nearest[0], nearest[1], sizeof nearest[0]) == 0);
	for (int64_t i = 0; i < a.n; i++) {
		double best = (double)INFINITY;

		for (int64_t j = 0; j < b.n; j++) {
			double d = fx_tract_distance(a.points + 3 * a.offsets[i], a.offsets[i + 1] - a.offsets[i], b.points + 3 * b.offsets[j],
				b.offsets[j + 1] - b.offsets[j]);

			best = d < best ? d : best;
		}
		CU_ASSERT_EQUAL(nearest[0][i], best);
	}
	/* what is already nearer stays */
	nearest[0][1] = 0;
	CU_ASSERT_EQUAL(fxi_tract_nearest(&a, &b, 2, nearest[0], &err), FX_OK);
	CU_ASSERT_EQUAL(nearest[0][1], 0);
	/* against nothing nothing is near */
	fxi_tract_set_clear(&b);
	nearest[0][1] = (double)INFINITY;
	CU_ASSERT_EQUAL(fxi_tract_nearest(&a, &b, 2, nearest[0], &err), FX_OK);
	CU_ASSERT(isinf(nearest[0][1]));
	fxi_tract_set_free(&a);
	fxi_tract_set_free(&b);
}

static CU_TestInfo tests[] = {
	{"closed cases", closed_cases},
	{"nearest of all", nearest_of_all},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_tract_distance = {"tract_distance", NULL, NULL, NULL, NULL, tests};

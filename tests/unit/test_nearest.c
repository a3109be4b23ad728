/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>

#include "stream/nearest.h"

#include <string.h>

static void distances(void)
{
	CU_ASSERT_EQUAL(fxi_edit_distance("", ""), 0);
	CU_ASSERT_EQUAL(fxi_edit_distance("", "abc"), 3);
	CU_ASSERT_EQUAL(fxi_edit_distance("abc", ""), 3);
	CU_ASSERT_EQUAL(fxi_edit_distance("nufft", "nfft"), 1);
	CU_ASSERT_EQUAL(fxi_edit_distance("lamdba", "lambda"), 1); /* a swap is one edit */
	CU_ASSERT_EQUAL(fxi_edit_distance("ca", "abc"), 3);        /* no letter is touched twice */
	CU_ASSERT_EQUAL(fxi_edit_distance("Kitten", "sitting"), 3);
	CU_ASSERT_EQUAL(fxi_edit_distance("CG", "cg"), 0);
}

static void long_names_are_turned_away(void)
{
	char name[4096];
	const char *names[] = {"fhd"};

	memset(name, 'a', sizeof name);
	name[sizeof name - 1] = '\0';
	CU_ASSERT_EQUAL(fxi_edit_distance(name, "a"), -1);
	CU_ASSERT_PTR_NULL(fxi_nearest_name(name, names, 1));
	name[64] = '\0';
	CU_ASSERT_EQUAL(fxi_edit_distance(name, name), 0);
}

static void suggestions(void)
{
	const char *names[] = {NULL, "cartesian", "cg", "coil_maps", "grid", "iterations"};
	int64_t n = sizeof names / sizeof names[0];

	CU_ASSERT_STRING_EQUAL(fxi_nearest_name("cartesain", names, n), "cartesian");
	CU_ASSERT_STRING_EQUAL(fxi_nearest_name("gird", names, n), "grid");
	CU_ASSERT_STRING_EQUAL(fxi_nearest_name("coilmaps", names, n), "coil_maps");
	CU_ASSERT_STRING_EQUAL(fxi_nearest_name("iter", names, n), "iterations");
	CU_ASSERT_STRING_EQUAL(fxi_nearest_name("cg_solver", names, n), "cg");
	CU_ASSERT_PTR_NULL(fxi_nearest_name("tensor_fit", names, n));
	CU_ASSERT_PTR_NULL(fxi_nearest_name("", names, n));
	CU_ASSERT_PTR_NULL(fxi_nearest_name("x", NULL, 0));
}

static CU_TestInfo tests[] = {
	{"edit distances", distances},
	{"long names are turned away", long_names_are_turned_away},
	{"suggestions", suggestions},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_nearest = {"nearest", NULL, NULL, NULL, NULL, tests};

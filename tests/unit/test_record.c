/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>

#include "stream/record.h"

#include <math.h>

static void everything_in_order(void)
{
	fxi_record *r = fxi_record_new();
	const fxi_entry *e;

	CU_ASSERT_EQUAL(fxi_record_number(r, "unit", 1.5), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_text(r, "word", "a"), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_count(r, "frames", 2), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_numbers(r, "curve", (double[]){1, NAN}, 2), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_numbers(r, "curve", NULL, 0), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_numbers(r, "curve", (double[]){3}, 1), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_count(r, "frames", 3), FX_OK);
	CU_ASSERT_EQUAL(fxi_record_text(r, "word", "b"), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_record_n_entries(r), 4);
	CU_ASSERT_STRING_EQUAL(fxi_record_entry(r, 0)->key, "unit");
	CU_ASSERT_STRING_EQUAL(fxi_record_entry(r, 3)->key, "curve");
	e = fxi_record_find(r, "curve");
	CU_ASSERT_PTR_NOT_NULL_FATAL(e);
	CU_ASSERT(e->type == FXI_ARRAY && e->n == 3 && e->n_numbers == 3);
	CU_ASSERT(e->lengths[0] == 2 && e->lengths[1] == 0 && e->lengths[2] == 1);
	CU_ASSERT(e->numbers[0] == 1 && isnan(e->numbers[1]) && e->numbers[2] == 3);
	e = fxi_record_find(r, "word");
	CU_ASSERT_EQUAL(e->n, 2);
	CU_ASSERT_STRING_EQUAL(e->texts[1], "b");
	e = fxi_record_find(r, "frames");
	CU_ASSERT(e->type == FXI_COUNT && e->count == 5 && e->n == 1);
	CU_ASSERT_PTR_NULL(fxi_record_find(r, "nothing"));
	CU_ASSERT_EQUAL(fxi_record_number(r, "word", 1), FX_EINVAL);
	CU_ASSERT_EQUAL(fxi_record_find(r, "word")->n, 2);
	fxi_record_free(r);
	fxi_record_free(NULL);
}

static void long_lists(void)
{
	fxi_record *r = fxi_record_new();
	const fxi_entry *e;
	double chunk[37];

	for (int i = 0; i < 1000; i++) {
		for (int j = 0; j < 37; j++)
			chunk[j] = i * 37 + j;
		CU_ASSERT_EQUAL_FATAL(fxi_record_number(r, "n", i), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fxi_record_numbers(r, "a", chunk, i % 38), FX_OK);
	}
	e = fxi_record_find(r, "n");
	CU_ASSERT_EQUAL(e->n, 1000);
	for (int i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(e->numbers[i], i);
	e = fxi_record_find(r, "a");
	for (int64_t i = 0, at = 0; i < 1000; at += e->lengths[i++])
		if (e->lengths[i] > 0)
			CU_ASSERT_EQUAL(e->numbers[at + e->lengths[i] - 1], (double)(i * 37 + e->lengths[i] - 1));
	fxi_record_free(r);
}

static CU_TestInfo tests[] = {
	{"everything in order of first use", everything_in_order},
	{"long lists", long_lists},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_record = {"record", NULL, NULL, NULL, NULL, tests};

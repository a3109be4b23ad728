/* SPDX-License-Identifier: MIT */
/* The null chain: all that comes is taken, nothing leaves. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"

static void takes_all(void)
{
	fx_msg *in[4] = {harness_acquisition(8, 2, 2), fx_msg_new(FX_WAVEFORM), fx_msg_new_text("hello"), harness_acquisition(0, 1, 0)};
	fxi_stage_report report;
	harness h;

	harness_run(&h, "discard", NULL, in, 4);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 0);
	harness_stage(&h, 0, &report);
	CU_ASSERT_EQUAL(report.n_in, 4);
	CU_ASSERT_EQUAL(report.n_out, 0);
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"takes all, gives nothing", takes_all},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_discard = {"discard", NULL, NULL, NULL, NULL, tests};

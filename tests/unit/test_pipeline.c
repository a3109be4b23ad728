/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>

#include "stream/pipeline.h"

#include <string.h>

static fxi_pipeline *sample(void)
{
	fxi_pipeline *p = fxi_pipeline_new("a.xml", "/somewhere");
	fxi_stage *stage;

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	fxi_pipeline_add(p, "mu", 2);
	stage = fxi_pipeline_add(p, "fhd", 3);
	fxi_stage_add(stage, "method", "nufft", 3);
	fxi_pipeline_add(p, "write_mrd", 4);
	fxi_pipeline_add(p, "write_mrd", 5);
	return p;
}

static void refused(fxi_pipeline *p, const char *assignment, const char *why)
{
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_pipeline_set(p, assignment, &err), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void set(void)
{
	fxi_pipeline *p = sample();
	fx_error err = {0};

	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "fhd.method=direct", &err), FX_OK);
	CU_ASSERT_EQUAL(p->stages[1].n_settings, 1);
	CU_ASSERT_STRING_EQUAL(p->stages[1].settings[0].value, "direct");
	CU_ASSERT_EQUAL(p->stages[1].settings[0].line, 0);
	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "fhd.note=a=b.c=", &err), FX_OK);
	CU_ASSERT_STRING_EQUAL(p->stages[1].settings[1].value, "a=b.c=");
	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "mu.voxel=", &err), FX_OK);
	CU_ASSERT_STRING_EQUAL(p->stages[0].settings[0].value, "");
	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "write_mrd#2.name=b.h5", &err), FX_OK);
	CU_ASSERT_EQUAL(p->stages[2].n_settings, 0);
	CU_ASSERT_STRING_EQUAL(p->stages[3].settings[0].name, "name");
	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "fhd#1.method=nufft", &err), FX_OK);
	fxi_pipeline_free(p);
}

static void wrong_assignments(void)
{
	static const char *const shapes[] = {"", "fhd", "fhd.method", "fhd=x", ".x=1", "fhd.=1", "=", "fhd=a.b"};
	fxi_pipeline *p = sample();

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		refused(p, shapes[i], "GADGET.PROPERTY=VALUE");
	refused(p, "fdh.method=direct", "did you mean 'fhd'?");
	refused(p, "nothing_like_it.method=direct", "a.xml has no gadget");
	refused(p, "write_mrd.name=b.h5", "write_mrd#1");
	refused(p, "write_mrd#3.name=b.h5", "only 2 times");
	refused(p, "fhd#2.method=direct", "only 1 time");
	refused(p, "fhd#0.method=direct", "behind #");
	refused(p, "fhd#x.method=direct", "behind #");
	refused(p, "fhd#.method=direct", "behind #");
	CU_ASSERT_EQUAL(p->stages[1].n_settings, 1);
	fxi_pipeline_free(p);
	fxi_pipeline_free(NULL);
}

static CU_TestInfo tests[] = {
	{"--set replaces and appends", set},
	{"wrong assignments", wrong_assignments},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_pipeline = {"pipeline", NULL, NULL, NULL, NULL, tests};

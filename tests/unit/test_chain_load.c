/* SPDX-License-Identifier: MIT */
/* test_chain_load.c - what is refused before anything runs, and in which words. */
#include <CUnit/CUnit.h>

#include "stream/context.h"
#include "unit/probe.h"

#include <stdio.h>
#include <string.h>

static void refused(const char *text, unsigned kinds, const char *why)
{
	fxi_registry *registry;
	fxi_chain *chain = (fxi_chain *)1;
	fx_error err;

	CU_ASSERT_EQUAL(probe_load(text, kinds, &err, &registry, &chain), FX_EINVAL);
	CU_ASSERT_PTR_NULL(chain);
	if (!strstr(err.text, why)) {
		CU_FAIL("the sentence lacks a part");
		fprintf(stderr, "'%s' lacks '%s'\n", err.text, why);
	}
	fxi_registry_free(registry);
}

static void accepted(const char *text, unsigned kinds)
{
	fxi_registry *registry;
	fxi_chain *chain;
	fx_error err;

	CU_ASSERT_EQUAL(probe_load(text, kinds, &err, &registry, &chain), FX_OK);
	if (err.status)
		fprintf(stderr, "%s\n", err.text);
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

static void kinds_meet(void)
{
	accepted("probe | idle | to_image | draw", FX_ACQUISITION);
	accepted("either", FX_TEXT);
	accepted("either", FX_WAVEFORM);
	accepted("idle", 0);
	/* what a gadget does not take stays there for those behind it */
	accepted("probe | to_image | either | draw", FX_ACQUISITION | FX_TEXT);
}

static void kinds_do_not_meet(void)
{
	refused("probe | draw", FX_ACQUISITION,
		"test.xml:2: <draw> needs image, but what reaches it is acquisition: put <to_image/> in front of it");
	refused("to_image | probe", FX_ACQUISITION | FX_TEXT,
		"test.xml:2: <probe> needs acquisition, but what reaches it is text and image: no gadget here makes that");
	refused("either", FX_ACQUISITION, "needs waveform or text");
	refused("probe", 0, "reaches it is nothing");
	/* draw may see frames, but makes none: only what was there passes */
	refused("to_image | to_image", FX_ACQUISITION, "test.xml:2: <to_image#2>");
}

static void passing_on_is_not_making(void)
{
	fx_gadget frames = draw_gadget;
	fxi_pipeline *p = fxi_pipeline_new("test.xml", NULL);
	fxi_registry *registry;
	fxi_chain *chain;
	fx_error err = {0};

	frames.name = "frames";
	frames.needs = FX_FRAME;
	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(NULL, &err, &registry), FX_OK);
	fxi_registry_add(registry, &draw_gadget, &err);
	fxi_registry_add(registry, &frames, &err);
	fxi_pipeline_add(p, "draw", 1);
	fxi_pipeline_add(p, "frames", 2);
	CU_ASSERT_EQUAL(fxi_chain_new(p, registry, FX_IMAGE, &err, &chain), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "<frames> needs frame, but what reaches it is image"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_chain_new(p, registry, FX_IMAGE | FX_FRAME, &err, &chain), FX_OK);
	fxi_chain_free(chain);
	fxi_pipeline_free(p);
	fxi_registry_free(registry);
}

static void properties(void)
{
	refused("probe | probe tga=1", FX_ACQUISITION, "test.xml:2: <probe#2> has no property 'tga'; did you mean 'tag'?");
	refused("idle tag=1 | probe", FX_ACQUISITION, "test.xml:1: <idle> has no property 'tag', but <probe> in this");
	refused("idle unheard_of=1", FX_ACQUISITION, "nor any other");
	refused("probe unheard_of=1", FX_ACQUISITION, "'fornix describe probe'");
	refused("probe tag=1001", FX_ACQUISITION, "test.xml:1: <probe>: property 'tag' is '1001'");
	refused("probe | probe fail=proces", FX_ACQUISITION, "did you mean 'process'?");
	refused("porbe", FX_ACQUISITION, "test.xml:1: there is no gadget 'porbe'; did you mean 'probe'?");
}

static void values_from_the_command_line(void)
{
	fxi_pipeline *p = fxi_pipeline_new("test.xml", NULL), *empty = fxi_pipeline_new("empty.xml", NULL);
	fxi_registry *registry;
	fxi_chain *chain;
	fx_error err = {0};

	fxi_pipeline_add(p, "probe", 7);
	CU_ASSERT_EQUAL(fxi_pipeline_set(p, "probe.tag=x", &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(NULL, &err, &registry), FX_OK);
	fxi_registry_add(registry, &probe_gadget, &err);
	CU_ASSERT_EQUAL(fxi_chain_new(p, registry, FX_ACQUISITION, &err, &chain), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--set probe.tag: <probe>: property 'tag' is 'x'"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_chain_new(empty, registry, FX_ACQUISITION, &err, &chain), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at least one gadget"));
	fxi_pipeline_free(empty);
	fxi_pipeline_free(p);
	fxi_registry_free(registry);
}

static void report_before_running(void)
{
	fxi_registry *registry;
	fxi_chain *chain = probe_chain("probe tag=3 | idle | probe", &registry);
	fxi_stage_report r;

	CU_ASSERT_EQUAL(fxi_chain_n_stages(chain), 3);
	fxi_chain_stage(chain, 0, &r);
	CU_ASSERT_STRING_EQUAL(r.gadget, "probe#1");
	CU_ASSERT_EQUAL(r.n_properties, 9);
	CU_ASSERT_STRING_EQUAL(r.property_names[0], "tag");
	CU_ASSERT_STRING_EQUAL(r.property_values[0], "3");
	CU_ASSERT_STRING_EQUAL(r.property_values[1], "never");
	fxi_chain_stage(chain, 1, &r);
	CU_ASSERT_STRING_EQUAL(r.gadget, "idle");
	CU_ASSERT_EQUAL(r.n_properties, 0);
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

static CU_TestInfo tests[] = {
	{"kinds that meet", kinds_meet},
	{"kinds that do not meet", kinds_do_not_meet},
	{"passing a kind on is not making it", passing_on_is_not_making},
	{"wrong properties", properties},
	{"wrong values from the command line", values_from_the_command_line},
	{"a report before running", report_before_running},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_chain_load = {"chain_load", NULL, NULL, NULL, NULL, tests};

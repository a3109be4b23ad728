/* SPDX-License-Identifier: MIT */
/* test_chain_entry.c - inputs that are no raw data: they enter behind the gadgets that would have made them. */
#include <CUnit/CUnit.h>

#include "stream/chain.h"
#include "unit/probe.h"

#include <stdio.h>
#include <string.h>

struct images {
	fxi_source base;
	int64_t n;
};

static int next_image(fxi_source *self, fx_msg **out, fx_error *err)
{
	struct images *s = (struct images *)self;

	(void)err;
	*out = s->n-- > 0 ? fx_msg_new(FX_IMAGE) : NULL;
	return FX_OK;
}

static char heard[2048];

static void keep_log(void *arg, int level, const char *gadget, const char *text)
{
	size_t used = strlen(heard);

	(void)arg;
	snprintf(heard + used, sizeof heard - used, "%d %s: %s\n", level, gadget ? gadget : "", text);
}

static void run(fxi_chain *chain)
{
	struct images source = {{.next = next_image}, 3};
	fxi_services services = {.log = keep_log};
	fxi_run_options options = {.backend = "host", .n_threads = 1};
	fx_header header = {0};
	fx_error err = {0};

	heard[0] = '\0';
	CU_ASSERT_EQUAL(fxi_chain_run(chain, &header, &source.base, &services, &options, &err), FX_OK);
	if (err.status)
		fprintf(stderr, "%s\n", err.text);
}

static void leading_gadgets_stand_idle(void)
{
	fxi_registry *registry;
	fxi_stage_report r;
	fxi_chain *chain;
	fx_error err;

	probe_reset();
	CU_ASSERT_EQUAL_FATAL(probe_load("probe tag=1 | either | to_image | draw | idle", FX_IMAGE, &err, &registry, &chain),
		FX_OK);
	run(chain);
	CU_ASSERT_EQUAL(probe_count(PROBE_OPEN, -1), 0);
	CU_ASSERT_EQUAL(probe_count(PROBE_CLOSE, -1), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(heard, "1 : the input is already image: probe, either and to_image stand idle\n"));
	CU_ASSERT_EQUAL(fxi_chain_n_stages(chain), 5);
	for (int64_t i = 0; i < 5; i++) {
		fxi_chain_stage(chain, i, &r);
		CU_ASSERT_EQUAL(r.idle, i < 3);
		CU_ASSERT_EQUAL(r.n_in, i == 3 ? 3 : 0);
		CU_ASSERT_EQUAL(r.n_warnings, 0);
	}
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

static void no_word_where_all_work(void)
{
	fxi_registry *registry;
	fxi_stage_report r;
	fxi_chain *chain;
	fx_error err;

	CU_ASSERT_EQUAL_FATAL(probe_load("draw | idle", FX_IMAGE, &err, &registry, &chain), FX_OK);
	run(chain);
	CU_ASSERT_STRING_EQUAL(heard, "");
	fxi_chain_stage(chain, 0, &r);
	CU_ASSERT_FALSE(r.idle);
	CU_ASSERT_EQUAL(r.n_in, 3);
	fxi_chain_free(chain);
	fxi_registry_free(registry);
}

static void settings_of_idle_gadgets(void)
{
	fxi_pipeline *p = fxi_pipeline_new("test.xml", NULL);
	fxi_registry *registry;
	fxi_stage_report r;
	fxi_chain *chain;
	fx_error err = {0};

	fxi_pipeline_add(p, "probe", 1);
	fxi_pipeline_add(p, "draw", 2);
	CU_ASSERT_EQUAL_FATAL(fxi_pipeline_set(p, "probe.tag=4", &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(NULL, &err, &registry), FX_OK);
	for (int i = 0; probe_gadgets[i]; i++)
		fxi_registry_add(registry, probe_gadgets[i], &err);
	CU_ASSERT_EQUAL_FATAL(fxi_chain_new(p, registry, FX_IMAGE, &err, &chain), FX_OK);
	run(chain);
	CU_ASSERT_PTR_NOT_NULL(strstr(heard, "2 probe: stands idle with this input, so that what --set says of it"));
	CU_ASSERT_PTR_NOT_NULL(strstr(heard, "probe stands idle\n"));
	fxi_chain_stage(chain, 0, &r);
	CU_ASSERT_EQUAL(r.n_warnings, 1);
	CU_ASSERT_STRING_EQUAL(r.property_values[0], "4");
	fxi_chain_free(chain);
	fxi_pipeline_free(p);
	fxi_registry_free(registry);
}

static void refused(const char *text, unsigned kinds, const char *why)
{
	fxi_registry *registry;
	fxi_chain *chain = (fxi_chain *)1;
	fx_error err;

	CU_ASSERT_EQUAL(probe_load(text, kinds, &err, &registry, &chain), FX_EINVAL);
	CU_ASSERT_PTR_NULL(chain);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
	if (!strstr(err.text, why))
		fprintf(stderr, "%s\n", err.text);
	fxi_registry_free(registry);
}

static void what_is_still_refused(void)
{
	refused("probe tga=1 | draw", FX_IMAGE, "did you mean 'tag'?");
	refused("probe tag=x | draw", FX_IMAGE, "property 'tag' is 'x'");
	refused("probe | either", FX_IMAGE, "test.xml:1: <probe> needs acquisition, but what reaches it is image");
	refused("probe | draw | probe", FX_IMAGE, "test.xml:3: <probe#2> needs acquisition");
	/* raw data enter at the front, whatever else comes along */
	refused("draw | probe", FX_ACQUISITION, "test.xml:1: <draw> needs image");
}

static CU_TestInfo tests[] = {
	{"leading gadgets stand idle", leading_gadgets_stand_idle},
	{"no word where all work", no_word_where_all_work},
	{"settings of idle gadgets", settings_of_idle_gadgets},
	{"what is still refused", what_is_still_refused},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_chain_entry = {"chain_entry", NULL, NULL, NULL, NULL, tests};

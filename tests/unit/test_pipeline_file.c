/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xml/pipeline_file.h"

#define OPEN "<pipeline xmlns=\"urn:fornix:pipeline:1\">"

static void a_whole_file(void)
{
	static const char text[] =
		"<?xml version=\"1.0\"?>\n"
		"<!--\n"
		"  Iterative SENSE.\n"
		"\n"
		"    - tested on spirals   \n"
		"  The end.\n"
		"-->\n"
		"<pipeline xmlns=\"urn:fornix:pipeline:1\"\n"
		"    summary=\"A &lt; B\">\n"
		"  <!-- whiten > first -->\n"
		"  <noise_adjust/>\n"
		"  <fhd\n"
		"    method=\"nufft\"\n"
		"    tolerance='1e-3'\n"
		"  />\n"
		"  <fhd xmlns=\"urn:fornix:pipeline:1\" method='a>b \"c\"'></fhd>\n"
		"</pipeline>\n";
	fx_error err = {0};
	fxi_pipeline *p;
	int status = fxi_pipeline_parse(text, sizeof text - 1, "x/test.xml", "x", &err, &p);

	if (status != FX_OK)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(status, FX_OK);
	CU_ASSERT_STRING_EQUAL(p->file, "x/test.xml");
	CU_ASSERT_STRING_EQUAL(p->folder, "x");
	CU_ASSERT_STRING_EQUAL(p->summary, "A < B");
	CU_ASSERT_STRING_EQUAL(p->description, "Iterative SENSE.\n\n  - tested on spirals\nThe end.");
	CU_ASSERT_EQUAL_FATAL(p->n_stages, 3);
	CU_ASSERT_STRING_EQUAL(p->stages[0].gadget, "noise_adjust");
	CU_ASSERT_EQUAL(p->stages[0].line, 11);
	CU_ASSERT_EQUAL(p->stages[0].n_settings, 0);
	CU_ASSERT_EQUAL(p->stages[1].line, 12);
	CU_ASSERT_EQUAL_FATAL(p->stages[1].n_settings, 2);
	CU_ASSERT_STRING_EQUAL(p->stages[1].settings[0].name, "method");
	CU_ASSERT_EQUAL(p->stages[1].settings[0].line, 13);
	CU_ASSERT_STRING_EQUAL(p->stages[1].settings[1].value, "1e-3");
	CU_ASSERT_EQUAL(p->stages[1].settings[1].line, 14);
	CU_ASSERT_EQUAL(p->stages[2].line, 16);
	CU_ASSERT_EQUAL_FATAL(p->stages[2].n_settings, 1);
	CU_ASSERT_STRING_EQUAL(p->stages[2].settings[0].value, "a>b \"c\"");
	CU_ASSERT_EQUAL(p->stages[2].settings[0].line, 16);
	fxi_pipeline_free(p);
}

static void comment_inside_the_root(void)
{
	static const char text[] = OPEN "<!-- inside --><cg/><!-- later --></pipeline>";
	fxi_pipeline *p;

	CU_ASSERT_EQUAL_FATAL(fxi_pipeline_parse(text, sizeof text - 1, "f", ".", NULL, &p), FX_OK);
	CU_ASSERT_STRING_EQUAL(p->description, "inside");
	CU_ASSERT_PTR_NULL(p->summary);
	fxi_pipeline_free(p);
}

/* Refused with this status, and the message holds both texts. */
static void refused(const char *text, int status, const char *place, const char *reason)
{
	fx_error err = {0};
	fxi_pipeline *p = (fxi_pipeline *)1;

	CU_ASSERT_EQUAL(fxi_pipeline_parse(text, strlen(text), "p.xml", ".", &err, &p), status);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT_EQUAL(strncmp(err.text, place, strlen(place)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, reason));
	if (strncmp(err.text, place, strlen(place)) != 0 || !strstr(err.text, reason))
		fprintf(stderr, "said: %s\n", err.text);
}

static void what_is_no_pipeline(void)
{
	const char *line = "xmlns=\"urn:fornix:pipeline:1\"";

	refused("\n<pipeline><cg/></pipeline>", FX_EINVAL, "p.xml:2: ", line);
	refused("<pipeline xmlns=\"urn:fornix:pipeline:2\"><cg/></pipeline>", FX_EINVAL, "p.xml:1: ", "urn:fornix:pipeline:2");
	refused("<ismrmrdHeader/>", FX_EINVAL, "p.xml:1: ", "<ismrmrdHeader>");
	refused("<configuration><version>2</version></configuration>", FX_EINVAL, "p.xml:1: ", "no <stream>");
	refused("", FX_EINVAL, "p.xml:", "not well-formed");
	refused(OPEN "\n<cg>\n</pipeline>", FX_EINVAL, "p.xml:3: ", "not well-formed");
	refused(OPEN "\n\n<cg a=\"1\" a=\"2\"/></pipeline>", FX_EINVAL, "p.xml:3: ", "a redefined");
	refused("<!DOCTYPE pipeline [<!ENTITY a \"b\">]>" OPEN "<cg/></pipeline>", FX_EINVAL, "p.xml", "DOCTYPE");
	refused(OPEN "</pipeline>", FX_EINVAL, "p.xml", "no gadget");
}

static void what_has_no_place(void)
{
	refused("<pipeline xmlns=\"urn:fornix:pipeline:1\"\n sumary=\"\"><cg/></pipeline>", FX_EINVAL, "p.xml:2: ", "'sumary'");
	refused(OPEN "\n<cg/>\nstray</pipeline>", FX_EINVAL, "p.xml:", "text between");
	refused(OPEN "\n<cg>12</cg></pipeline>", FX_EINVAL, "p.xml:2: ", "<cg> holds text");
	refused(OPEN "\n<cg/>\n<mu><cg/></mu></pipeline>", FX_EINVAL, "p.xml:3: ", "<mu> holds an element <cg>");
	refused(OPEN "\n<cg xmlns=\"urn:x\"/></pipeline>", FX_EINVAL, "p.xml:2: ", "namespace");
	refused(OPEN "\n<cg xmlns:q=\"urn:x\" q:a=\"1\"/></pipeline>", FX_EINVAL, "p.xml:2: ", "'a'");
}

static void files(void)
{
	char *folder = g_dir_make_tmp("fornix-XXXXXX", NULL), *path = g_build_filename(folder, "chain.xml", NULL);
	fx_error err = {0};
	fxi_pipeline *p;

	CU_ASSERT_EQUAL(fxi_pipeline_load(path, &err, &p), FX_EIO);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_PTR_NULL(p);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_pipeline_load(folder, &err, &p), FX_EIO);
	CU_ASSERT_TRUE(g_file_set_contents(path, OPEN "<cg/></pipeline>", -1, NULL));
	CU_ASSERT_EQUAL_FATAL(fxi_pipeline_load(path, NULL, &p), FX_OK);
	CU_ASSERT_STRING_EQUAL(p->folder, folder);
	CU_ASSERT_STRING_EQUAL(p->file, path);
	fxi_pipeline_free(p);
	char *large = g_malloc(2 << 20);
	memset(large, ' ', 2 << 20);
	CU_ASSERT_TRUE(g_file_set_contents(path, large, 2 << 20, NULL));
	g_free(large);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_pipeline_load(path, &err, &p), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "1048576"));
	g_remove(path);
	g_rmdir(folder);
	g_free(path);
	g_free(folder);
}

static CU_TestInfo tests[] = {
	{"a whole file, with lines and description", a_whole_file},
	{"the opening comment may stand inside", comment_inside_the_root},
	{"what is no pipeline", what_is_no_pipeline},
	{"what has no place in one", what_has_no_place},
	{"files", files},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_pipeline_file = {"pipeline_file", NULL, NULL, NULL, NULL, tests};

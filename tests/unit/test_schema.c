/* SPDX-License-Identifier: MIT */
/* The schema accepts every shipped pipeline and refuses what the loader refuses. */
#include <CUnit/CUnit.h>
#include <glib.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdlib.h>
#include <string.h>

#include "xml/schema.h"

static void silent(void *arg, const char *fmt, ...)
{
	(void)arg;
	(void)fmt;
}

static xmlSchemaPtr load_schema(void)
{
	fxi_registry *registry;
	fx_error err = {0};
	char *text, *again;
	xmlSchemaParserCtxtPtr parser;
	xmlSchemaPtr schema;

	CU_ASSERT_EQUAL_FATAL(fxi_registry_new(NULL, &err, &registry), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_schema_format(registry, &err, &text), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_schema_format(registry, &err, &again), FX_OK);
	CU_ASSERT_STRING_EQUAL(text, again);
	parser = xmlSchemaNewMemParserCtxt(text, (int)strlen(text));
	schema = xmlSchemaParse(parser);
	xmlSchemaFreeParserCtxt(parser);
	free(text);
	free(again);
	fxi_registry_free(registry);
	CU_ASSERT_PTR_NOT_NULL_FATAL(schema);
	return schema;
}

static bool accepts(xmlSchemaPtr schema, xmlDocPtr doc)
{
	xmlSchemaValidCtxtPtr validator = xmlSchemaNewValidCtxt(schema);
	int result;

	xmlSchemaSetValidErrors(validator, silent, silent, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
	result = xmlSchemaValidateDoc(validator, doc);
	xmlSchemaFreeValidCtxt(validator);
	xmlFreeDoc(doc);
	return result == 0;
}

static void accepts_what_is_shipped(void)
{
	xmlSchemaPtr schema = load_schema();
	GDir *dir = g_dir_open(TEST_SOURCE_DIR "/pipelines", 0, NULL);
	const char *name;
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while ((name = g_dir_read_name(dir))) {
		char *path = g_build_filename(TEST_SOURCE_DIR "/pipelines", name, NULL);

		if (g_str_has_suffix(name, ".xml")) {
			CU_ASSERT_TRUE(accepts(schema, xmlReadFile(path, NULL, XML_PARSE_NONET)));
			n++;
		}
		g_free(path);
	}
	CU_ASSERT(n >= 4);
	g_dir_close(dir);
	xmlSchemaFree(schema);
}

static void refuses_what_the_loader_refuses(void)
{
	static const struct {
		const char *body;
		bool good;
	} cases[] = {
		{"<cg iterations=\"12\" tolerance=\"1e-4\" start=\"zero\"/>", true},
		{"<coil_maps save=\"on\"/>", true},
		{"<cgg/>", false},
		{"<cg iteration=\"12\"/>", false},
		{"<cg iterations=\"0\"/>", false},
		{"<cg iterations=\"many\"/>", false},
		{"<cg tolerance=\"2\"/>", false},
		{"<cg start=\"middle\"/>", false},
		{"<coil_maps save=\"perhaps\"/>", false},
		{"<write_nifti name=\"\"/>", false},
		{"<cg><mu/></cg>", false},
	};
	xmlSchemaPtr schema = load_schema();

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *text = g_strdup_printf("<pipeline xmlns=\"urn:fornix:pipeline:1\">%s</pipeline>", cases[i].body);

		CU_ASSERT_EQUAL(accepts(schema, xmlReadMemory(text, (int)strlen(text), "case.xml", NULL, XML_PARSE_NONET)), cases[i].good);
		g_free(text);
	}
	xmlSchemaFree(schema);
}

static CU_TestInfo tests[] = {
	{"accepts what is shipped", accepts_what_is_shipped},
	{"refuses what the loader refuses", refuses_what_the_loader_refuses},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_schema = {"schema", NULL, NULL, NULL, NULL, tests};

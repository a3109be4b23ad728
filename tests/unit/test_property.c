/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <fornix/fornix.h>

#include "stream/property.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct state {
	bool on;
	int64_t count;
	float factor;
	double tolerance;
	double any;
	const char *title;
	const char *must;
	const char *file;
	int method;
};

static const char *const methods[] = {"direct", "nufft", NULL};

static const fx_prop props[] = {
	FX_PROP(struct state, on, "true", 0, 0, "Whether"),
	FX_PROP(struct state, count, "8", -2, 64, "How many"),
	FX_PROP(struct state, factor, "1.5", 1, 1e300, "Factor"),
	FX_PROP(struct state, tolerance, "1e-4", 1e-9, 1e-1, "Tolerance"),
	FX_PROP(struct state, any, "0", -INFINITY, INFINITY, "Any number"),
	FX_PROP(struct state, title, "", 0, 0, "Title"),
	FX_PROP(struct state, must, "x", 1, 0, "Never empty"),
	FX_PROP_FILE(struct state, file, "", "File"),
	FX_PROP_WORD(struct state, method, "nufft", methods, "Method"),
	FX_PROP_END
};
#define N_PROPS 9

static struct state s;
static char *keep[N_PROPS];
static fx_error err;

static int set_in(const char *name, const char *text, const char *folder)
{
	const fx_prop *p = fxi_property_find(props, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	err = (fx_error){0};
	return fxi_property_set(p, &s, text, folder, &keep[p - props], &err);
}

static int set(const char *name, const char *text)
{
	return set_in(name, text, NULL);
}

static int drop_texts(void)
{
	for (int i = 0; i < N_PROPS; i++) {
		free(keep[i]);
		keep[i] = NULL;
	}
	return 0;
}

/* Refused, with the name and the value in the sentence; the field stays. */
static void refused(const char *name, const char *text, const char *also)
{
	struct state before = s;

	CU_ASSERT_EQUAL(set(name, text), FX_EINVAL);
	CU_ASSERT(memcmp(&before, &s, sizeof s) == 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, name));
	if (*text)
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
	if (also && !strstr(err.text, also)) {
		CU_FAIL("the sentence lacks a part");
		fprintf(stderr, "'%s' lacks '%s'\n", err.text, also);
	}
}

static void defaults(void)
{
	CU_ASSERT_EQUAL(fxi_properties_count(props), N_PROPS);
	CU_ASSERT_EQUAL(fxi_properties_count(NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fxi_properties_check(props, sizeof s, &err), FX_OK);
	for (const fx_prop *p = props; p->name; p++)
		CU_ASSERT_EQUAL(set(p->name, p->def), FX_OK);
	CU_ASSERT(s.on && s.count == 8 && s.factor == 1.5f && s.tolerance == 1e-4 && s.method == 1);
	CU_ASSERT_STRING_EQUAL(s.title, "");
	CU_ASSERT_STRING_EQUAL(s.must, "x");
	CU_ASSERT_STRING_EQUAL(s.file, "");
}

static void bools(void)
{
	static const char *const yes[] = {"true", "1", "yes", "on", "True", " on "};
	static const char *const no[] = {"false", "0", "no", "off", "FALSE"};

	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		s.on = false;
		CU_ASSERT_EQUAL(set("on", yes[i]), FX_OK);
		CU_ASSERT(s.on);
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		s.on = true;
		CU_ASSERT_EQUAL(set("on", no[i]), FX_OK);
		CU_ASSERT(!s.on);
	}
	refused("on", "maybe", "true or false");
	refused("on", "", NULL);
	refused("on", "2", NULL);
}

static void ints(void)
{
	CU_ASSERT_EQUAL(set("count", "-2"), FX_OK);
	CU_ASSERT_EQUAL(s.count, -2);
	CU_ASSERT_EQUAL(set("count", " 64\n"), FX_OK);
	CU_ASSERT_EQUAL(s.count, 64);
	refused("count", "65", "a whole number from -2 to 64");
	refused("count", "-3", NULL);
	refused("count", "8.0", NULL);
	refused("count", "8 coils", NULL);
	refused("count", "nan", NULL);
	refused("count", "", NULL);
	refused("count", "99999999999999999999", NULL);
	refused("count", "0x10", NULL);
}

static void numbers(void)
{
	CU_ASSERT_EQUAL(set("tolerance", "1e-9"), FX_OK);
	CU_ASSERT_EQUAL(s.tolerance, 1e-9);
	CU_ASSERT_EQUAL(set("tolerance", "0.1"), FX_OK);
	CU_ASSERT_EQUAL(s.tolerance, 0.1);
	refused("tolerance", "0.11", "a number from 1e-09 to 0.1");
	refused("tolerance", "0.9e-9", NULL);
	refused("tolerance", "nan", NULL);
	refused("tolerance", "-nan", NULL);
	refused("tolerance", "inf", NULL);
	refused("tolerance", "1e-4x", NULL);
	refused("tolerance", "1,5", NULL);
	refused("tolerance", "", NULL);
	CU_ASSERT_EQUAL(set("any", "-inf"), FX_OK);
	CU_ASSERT(isinf(s.any));
	refused("any", "nan", "a number");
	refused("any", "1e999", NULL);
	CU_ASSERT_EQUAL(set("factor", "1"), FX_OK);
	CU_ASSERT_EQUAL(s.factor, 1.0f);
	CU_ASSERT_EQUAL(set("factor", "3e38"), FX_OK);
	refused("factor", "1e39", NULL); /* inside the range, beyond single precision */
	refused("factor", "0.999", NULL);
}

static void words(void)
{
	CU_ASSERT_EQUAL(set("method", "direct"), FX_OK);
	CU_ASSERT_EQUAL(s.method, 0);
	refused("method", "nfft", "did you mean 'nufft'?");
	refused("method", "0", "one of direct, nufft");
	refused("method", "", NULL);
}

static void texts(void)
{
	const char *text = "  kept as it is ";

	CU_ASSERT_EQUAL(set("title", text), FX_OK);
	CU_ASSERT_STRING_EQUAL(s.title, text);
	CU_ASSERT_PTR_NOT_EQUAL(s.title, text);
	refused("must", "", "non-empty");
	CU_ASSERT_EQUAL(set_in("file", "maps.nii", "/data"), FX_OK);
	CU_ASSERT_STRING_EQUAL(s.file, "/data/maps.nii");
	CU_ASSERT_EQUAL(set_in("file", "/maps.nii", "/data"), FX_OK);
	CU_ASSERT_STRING_EQUAL(s.file, "/maps.nii");
	CU_ASSERT_EQUAL(set_in("file", "", "/data"), FX_OK);
	CU_ASSERT_STRING_EQUAL(s.file, "");
	CU_ASSERT_EQUAL(set_in("file", "maps.nii", NULL), FX_OK);
	CU_ASSERT_STRING_EQUAL(s.file, "maps.nii");
}

static void locale_has_no_say(void)
{
	const char *german = setlocale(LC_NUMERIC, "de_DE.UTF-8");

	CU_ASSERT_EQUAL(set("tolerance", "0.05"), FX_OK);
	CU_ASSERT_EQUAL(s.tolerance, 0.05);
	if (!german)
		printf("(de_DE.UTF-8 is not installed: tried in the C locale only) ");
	setlocale(LC_NUMERIC, "C");
}

static void broken(const fx_prop *table, size_t size, const char *why)
{
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fxi_properties_check(table, size, &err), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, why));
}

static void broken_tables(void)
{
	static const char *const none[] = {NULL}, *const twice[] = {"a", "b", "a", NULL};
	fx_prop t[3] = {props[1], FX_PROP_END, FX_PROP_END};

	t[0].def = "65";
	broken(t, sizeof s, "default");
	t[0].def = NULL;
	broken(t, sizeof s, "default");
	t[0] = props[1];
	t[0].help = NULL;
	broken(t, sizeof s, "help");
	t[0] = props[1];
	t[0].min = 65;
	broken(t, sizeof s, "empty range");
	t[0].min = NAN;
	broken(t, sizeof s, "empty range");
	t[0] = props[1];
	broken(t, 9, "outside the state");
	t[0].offset = SIZE_MAX;
	broken(t, sizeof s, "outside the state");
	t[0].offset = 1;
	broken(t, sizeof s, "aligned");
	t[0] = props[1];
	t[0].type = 77;
	broken(t, sizeof s, "type");
	t[0] = t[1] = props[1];
	broken(t, sizeof s, "twice");
	t[0] = props[8];
	t[1] = props[9];
	t[0].words = none;
	broken(t, sizeof s, "without words");
	t[0].words = twice;
	broken(t, sizeof s, "twice");
}

static CU_TestInfo tests[] = {
	{"defaults", defaults},
	{"bool", bools},
	{"int", ints},
	{"float and double", numbers},
	{"enum", words},
	{"string and path", texts},
	{"the locale has no say", locale_has_no_say},
	{"broken tables are refused", broken_tables},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_property = {"property", NULL, drop_texts, NULL, NULL, tests};

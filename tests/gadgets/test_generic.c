/* SPDX-License-Identifier: MIT */
/* test_generic.c - what every gadget that is built must stand, whatever it does: a new plugin is tested before its own suite is. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"
#include "stream/property.h"
#include "stream/registry.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fxi_registry *registry;
static char **names;
static const fx_gadget **gadgets; /* those that load, ends with NULL */

static void complain(const char *gadget, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", gadget, what, why);
	CU_FAIL("a gadget breaks a rule");
}

static int open_registry(void)
{
	fx_error err = {0};
	int n = 0;

	if (fxi_registry_new(NULL, &err, &registry) != FX_OK)
		return 1;
	names = fxi_registry_names(registry);
	gadgets = g_new0(const fx_gadget *, g_strv_length(names) + 1);
	for (int i = 0; names[i]; i++)
		if (fxi_registry_find(registry, names[i], NULL, &gadgets[n]) == FX_OK)
			n++;
	return 0;
}

static int close_registry(void)
{
	g_free(gadgets);
	g_strfreev(names);
	fxi_registry_free(registry);
	return 0;
}

/* Loads, so its table is sound and every default parses: the registry refuses others. */
static void all_load(void)
{
	for (int i = 0; names[i]; i++) {
		const fx_gadget *g;
		fx_error err = {0};

		if (fxi_registry_find(registry, names[i], &err, &g) != FX_OK)
			complain(names[i], "loading", err.text);
	}
}

struct trial {
	const fx_gadget *gadget;
	const fx_prop *prop;
	void *state;
	char *keep;
};

static void expect(struct trial *t, int status, const char *text)
{
	fx_error err = {0};
	int got = fxi_property_set(t->prop, t->state, text, NULL, &t->keep, &err);

	if (got != status)
		complain(t->gadget->name, t->prop->name, status == FX_OK ? err.text : text);
	if (got != FX_OK && !strstr(err.text, t->prop->name))
		complain(t->gadget->name, t->prop->name, "a refusal does not name the property");
}

static void expect_number(struct trial *t, int status, double value)
{
	char text[64];

	if (t->prop->type == FX_PROP_INT && (fabs(value) >= 9.2e18 || value != floor(value)))
		return;
	snprintf(text, sizeof text, t->prop->type == FX_PROP_INT ? "%.0f" : "%.17g", value);
	expect(t, status, text);
}

static void try_property(struct trial *t)
{
	const fx_prop *p = t->prop;

	expect(t, FX_OK, p->def);
	if (p->type == FX_PROP_ENUM) {
		for (int i = 0; p->words[i]; i++)
			expect(t, FX_OK, p->words[i]);
		expect(t, FX_EINVAL, "no such word");
	} else if (p->type == FX_PROP_BOOL) {
		expect(t, FX_EINVAL, "perhaps");
	} else if (p->type == FX_PROP_STRING || p->type == FX_PROP_PATH) {
		expect(t, p->min >= 1 ? FX_EINVAL : FX_OK, "");
	} else {
		bool whole = p->type == FX_PROP_INT;

		expect_number(t, FX_OK, p->min);
		expect_number(t, FX_OK, p->max);
		if (isfinite(p->min) && (whole || isfinite(nextafter(p->min, -INFINITY))))
			expect_number(t, FX_EINVAL, whole ? p->min - 1 : nextafter(p->min, -INFINITY));
		if (isfinite(p->max) && (whole || isfinite(nextafter(p->max, INFINITY))))
			expect_number(t, FX_EINVAL, whole ? p->max + 1 : nextafter(p->max, INFINITY));
		expect(t, FX_EINVAL, "nan");
		expect(t, FX_EINVAL, "1 apple");
		expect(t, FX_EINVAL, "");
	}
}

static void property_ranges(void)
{
	for (int i = 0; gadgets[i]; i++) {
		const fx_gadget *g = gadgets[i];

		for (const fx_prop *p = g->props; p && p->name; p++) {
			struct trial t = {g, p, fx_alloc(1, g->state_size), NULL};

			CU_ASSERT_PTR_NOT_NULL_FATAL(t.state);
			try_property(&t);
			free(t.keep);
			fx_free(t.state);
		}
	}
}

static void unknown_properties(void)
{
	for (int i = 0; gadgets[i]; i++) {
		const fx_gadget *g = gadgets[i];
		const char *first = g->props && g->props[0].name ? g->props[0].name : NULL;
		char *chain;
		harness h;

		if (!first)
			continue;
		chain = g_strdup_printf("%s %sq=1", gadgets[i]->name, first);
		harness_run(&h, chain, NULL, NULL, 0);
		if (h.status != FX_EINVAL || !strstr(h.err.text, gadgets[i]->name) || !strstr(h.err.text, "did you mean"))
			complain(gadgets[i]->name, "a misspelt property", h.err.text);
		harness_free(&h);
		g_free(chain);
	}
}

static char *header(int which)
{
	static const char *const trajectories[] = {"cartesian", "spiral", "radial"};

	return harness_header((int64_t[]){16, 16, which == 2 ? 16 : 1}, (double[]){200, 200, 200}, trajectories[which], 8);
}

/* Runs well, or (where it may) stops with a sentence that begins with the gadget's name: nothing else is right. */
static void runs_or_explains(const char *name, const char *what, int which, fx_msg **messages, int64_t n, bool must_run)
{
	char *xml = header(which), *front = g_strconcat(name, ": ", NULL);
	harness h;

	harness_run(&h, name, xml, messages, n);
	if (h.status != FX_OK && (must_run || !g_str_has_prefix(h.err.text, front)))
		complain(name, what, h.err.text);
	harness_free(&h);
	g_free(front);
	free(xml);
}

/* One that makes images or frames out of something else may miss it; all others have nothing to say. */
static void nothing_comes(void)
{
	for (int i = 0; gadgets[i]; i++)
		for (int which = 0; which < 3; which++)
			runs_or_explains(gadgets[i]->name, "a scan without messages", which, NULL, 0,
				!(gadgets[i]->gives & ~gadgets[i]->takes));
}

/* An empty message of each kind: what a damaged file, or a gadget in front that gives too little, can bring. */
static void empty_messages(void)
{
	static const unsigned kinds[] = {FX_ACQUISITION, FX_WEIGHTED, FX_WAVEFORM, FX_TEXT, FX_FRAME, FX_IMAGE};

	for (int i = 0; gadgets[i]; i++)
		for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
			for (int which = 0; which < 3; which++) {
				fx_msg *m[1] = {fx_msg_new(kinds[k])};
				fx_acquisition *a = fx_msg_acquisition(m[0]);

				if (fx_msg_weighted(m[0]))
					a = &fx_msg_weighted(m[0])->readout;
				if (a)
					CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF32, 0, 0, &a->data), FX_OK);
				if (fx_msg_image(m[0]))
					CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 0, 0, 0, 0, &fx_msg_image(m[0])->data), FX_OK);
				runs_or_explains(gadgets[i]->name, fx_kind_name(kinds[k]), which, m, 1, false);
			}
}

static int refuse_image(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	fx_drop(msg);
	return fx_fail(ctx, FX_EIO, "planned");
}

static const fx_gadget wall = {
	.abi = FX_ABI, .name = "wall", .summary = "Fails at the first image", .takes = FX_IMAGE, .places = FX_HOST,
	.process = refuse_image,
};

static fx_msg *small_image(void)
{
	fx_msg *m = fx_msg_new(FX_IMAGE);
	fx_image *image = fx_msg_image(m);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 4, 4, 1, 1, &image->data), FX_OK);
	image->head.version = 1;
	image->head.data_type = ISMRMRD_FLOAT;
	image->head.image_type = ISMRMRD_IMTYPE_MAGNITUDE;
	image->head.channels = 1;
	for (int i = 0; i < 3; i++) {
		image->head.matrix_size[i] = i < 2 ? 4 : 1;
		image->head.field_of_view[i] = 40;
	}
	image->head.read_dir[0] = image->head.phase_dir[1] = image->head.slice_dir[2] = 1;
	return m;
}

/*
 * A gadget that writes files must not leave one behind where the run fails before its flush, nor lose hold of it.
 * Four images through queues that hold one: the third cannot be passed on before the wall has failed at the first.
 */
static void no_files_of_a_failed_run(void)
{
	const fx_gadget *const more[] = {&wall, NULL};
	int64_t n_writers = 0;

	for (int i = 0; gadgets[i]; i++) {
		harness_options options = {.gadgets = more, .queue_bytes = 1};
		fx_msg *m[4];
		char *chain;
		harness h;

		if (!(gadgets[i]->takes & gadgets[i]->gives & FX_IMAGE))
			continue;
		for (int j = 0; j < 4; j++)
			m[j] = small_image();
		chain = g_strdup_printf("%s | wall", gadgets[i]->name);
		harness_run_with(&h, chain, NULL, m, 4, &options);
		if (h.status != FX_EIO || strcmp(h.err.text, "wall: planned") != 0)
			complain(gadgets[i]->name, "an image passed on at once", h.err.text);
		if (h.n_products > 0)
			complain(gadgets[i]->name, "a failed run", "left a file behind");
		n_writers += h.n_abandoned > 0;
		harness_free(&h);
		g_free(chain);
	}
	CU_ASSERT(n_writers >= 3); /* MRD, NIfTI, PNG: or this test looks at nothing */
}

static CU_TestInfo tests[] = {
	{"every gadget loads", all_load},
	{"properties at, within and beyond their ranges", property_ranges},
	{"misspelt properties", unknown_properties},
	{"a scan without messages", nothing_comes},
	{"an empty message of each kind", empty_messages},
	{"no files of a failed run", no_files_of_a_failed_run},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_generic = {"generic", open_registry, close_registry, NULL, NULL, tests};

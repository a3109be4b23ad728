/* SPDX-License-Identifier: MIT */
/* test_harness.c - the harness itself: what it collects, and that a broken chain shows. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct state {
	int64_t copies;
	const char *name;
	const char *note;
};

static const fx_prop props[] = {
	FX_PROP(struct state, copies, "1", 0, 9, "Files to write"),
	FX_PROP(struct state, name, "image.nii.gz", 1, 0, "File name"),
	FX_PROP(struct state, note, "", 0, 0, "Recorded"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	fx_record_text(ctx, "note", s->note);
	fx_record_number(ctx, "fov", fx_scan(ctx)->encodings[0].encoded.fov_mm[0]);
	fx_warn(ctx, "opened for %d", (int)s->copies);
	return fx_math_of(ctx) && fx_math_of(ctx)->err == fx_err(ctx) ? FX_OK : FX_EINVAL;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	fx_sink_options options = {.format = FX_FORMAT_NIFTI, .name = s->name};
	fx_sink *sink;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < s->copies; i++) {
		status = fx_sink_open(ctx, &options, &sink);
		if (status != FX_OK)
			break;
		status = fx_sink_add(ctx, sink, fx_msg_image(msg));
		if (i % 2 == 0)
			status = fx_sink_commit(ctx, sink);
		else
			fx_sink_abandon(sink);
		fx_record_count(ctx, "files", 1);
	}
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	return fx_emit(ctx, msg);
}

static const fx_gadget saver = {
	.abi = FX_ABI, .name = "saver", .summary = "Writes files", .props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .places = FX_HOST, .open = open_gadget, .process = process,
};
static const fx_gadget *const gadgets[] = {&saver, NULL};
static const harness_options with_saver = {.gadgets = gadgets};

static fx_msg *image(void)
{
	fx_msg *m = fx_msg_new(FX_IMAGE);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 2, 2, 1, 1, &fx_msg_image(m)->data), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_image_set_meta(fx_msg_image(m), "k", "v"), FX_OK);
	return m;
}

static void collects(void)
{
	fx_msg *in[] = {harness_acquisition(8, 2, 3), image()};
	harness h;

	harness_run_with(&h, "saver copies=3 note='two words' | saver copies=0", NULL, in, 2, &with_saver);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	CU_ASSERT_EQUAL(fx_msg_kind(h.out[0]), FX_ACQUISITION);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[0])->head.active_channels, 2);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[0])->traj->dims[0], 3);
	CU_ASSERT_EQUAL(fx_msg_kind(h.out[1]), FX_IMAGE);
	CU_ASSERT_EQUAL_FATAL(h.n_products, 2);
	CU_ASSERT_STRING_EQUAL(h.products[0].name, "image.nii.gz");
	CU_ASSERT_EQUAL(h.products[0].options.format, FX_FORMAT_NIFTI);
	CU_ASSERT_EQUAL_FATAL(h.products[0].n_images, 1);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(h.products[0].images[0]), "k"), "v");
	CU_ASSERT_EQUAL(h.n_abandoned, 1);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "files"), 3);
	CU_ASSERT_EQUAL(harness_count(&h, 1, "files"), -1);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "note", 0), "two words");
	CU_ASSERT_EQUAL(harness_number(&h, 0, "fov", 0), 256);
	CU_ASSERT(isnan(harness_number(&h, 0, "fov", 1)));
	CU_ASSERT(harness_warned(&h, "saver#1: opened for 3"));
	CU_ASSERT_FALSE(harness_warned(&h, "no such words"));
	harness_free(&h);
}

/* Writes each volume of a series, and at its end a text in two parts and a tract file of one end mark. */
static int file_series(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const fx_series *s = fx_msg_series(msg);
	fx_volume v = {.lattice = &s->info->lattice, .data = s->data, .comment = "no correction"};
	fx_tracts_info *info = s->end ? fx_tracts_info_new() : NULL;
	fx_tracts end = {.info = info, .end = true, .first = 5};
	fx_sink *sink = NULL;
	int status = s->end ? fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_TEXT, .name = "a.csv"}, &sink) :
		fx_write_volume(ctx, "v.nii.gz", &v);

	(void)self;
	if (s->end) {
		status = fx_sink_text(ctx, sink, "a,b\n");
		status = status == FX_OK ? fx_sink_text(ctx, sink, "1,2\n") : status;
		status = status == FX_OK ? fx_sink_commit(ctx, sink) : status;
		status = status == FX_OK ? fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_TCK, .name = "t.tck",
			.tracts = info}, &sink) : status;
		status = status == FX_OK ? fx_sink_tracts(ctx, sink, &end) : status;
		status = status == FX_OK ? fx_sink_commit(ctx, sink) : status;
		fx_tracts_info_unref(info);
	}
	fx_drop(msg);
	return status;
}

static const fx_gadget filer = {
	.abi = FX_ABI, .name = "filer", .summary = "Writes series", .takes = FX_SERIES, .places = FX_HOST,
	.process = file_series,
};

static void diffusion_products(void)
{
	static const double table[2][4] = {{0, 0, 0, 0}, {1000, 3, 0, 4}};
	static const float data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
	const fx_gadget *const list[] = {&filer, NULL};
	fx_series_info *info = harness_series_info((int64_t[]){3, 2, 1}, (double[]){2, 2, 3}, 2, table);
	const harness_product *p;
	fx_msg *in[3];
	harness h;

	CU_ASSERT_DOUBLE_EQUAL(info->gradients[1].dir[2], 0.8, 1e-15);
	harness_series(info, data, in);
	CU_ASSERT(fx_msg_series(in[2])->end && fx_msg_series(in[2])->volume == -1);
	fx_series_info_unref(info);
	harness_run_with(&h, "filer", NULL, in, 3, &(harness_options){.gadgets = list});
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_products, 4);
	p = harness_find_product(&h, "v.nii.gz");
	CU_ASSERT_EQUAL_FATAL(p->n_volumes, 1);
	CU_ASSERT_EQUAL(p->volumes[0].lattice.affine[2][2], 3);
	CU_ASSERT_EQUAL(FX_F32_OF(p->volumes[0].data)[0], 7);
	CU_ASSERT_STRING_EQUAL(p->volumes[0].comment, "no correction");
	CU_ASSERT_PTR_NULL(p->volumes[0].description);
	CU_ASSERT_STRING_EQUAL(harness_find_product(&h, "a.csv")->text, "a,b\n1,2\n");
	p = harness_find_product(&h, "t.tck");
	CU_ASSERT_EQUAL_FATAL(p->n_tracts, 1);
	CU_ASSERT_EQUAL(fx_msg_tracts(p->tracts[0])->first, 5);
	CU_ASSERT_PTR_NOT_NULL(p->options.tracts);
	CU_ASSERT_PTR_NULL(harness_find_product(&h, "nothing"));
	harness_free(&h);
}

static void shows_what_is_wrong(void)
{
	fx_msg *in[] = {image()};
	harness h;

	harness_run_with(&h, "savre", NULL, NULL, 0, &with_saver);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "did you mean 'saver'?"));
	harness_free(&h);
	harness_run_with(&h, "saver copies=10", NULL, in, 1, &with_saver);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NULL(in[0]);
	harness_free(&h);
	in[0] = image();
	harness_run_with(&h, "saver name=../escape.nii", NULL, in, 1, &with_saver);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "saver: '../escape.nii'"));
	CU_ASSERT_EQUAL(h.n_out, 0);
	harness_free(&h);
	in[0] = image();
	harness_run_with(&h, "saver", NULL, in, 1, &(harness_options){.gadgets = gadgets, .no_files = true});
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "no output folder"));
	harness_free(&h);
	harness_run_with(&h, "saver 'unbalanced", NULL, NULL, 0, &with_saver);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	harness_free(&h);
}

static void headers(void)
{
	char *xml = harness_header((int64_t[]){12, 10, 3}, (double[]){240.5, 200, 30}, "spiral", 7);
	harness h;

	CU_ASSERT_PTR_NOT_NULL(strstr(xml, "<maximum>6</maximum>"));
	harness_run_with(&h, "saver", xml, NULL, 0, &with_saver);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "fov", 0), 240.5);
	harness_free(&h);
	free(xml);
}

static void cache_keeps(void)
{
	fxi_cache *cache = harness_cache();
	fx_array *a, *b;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, 4, &a), FX_OK);
	CU_ASSERT_EQUAL(cache->get(cache, "12", &b, &err), FX_OK);
	CU_ASSERT_PTR_NULL(b);
	CU_ASSERT_EQUAL(cache->put(cache, "12", a, &err), FX_OK);
	CU_ASSERT_EQUAL(cache->get(cache, "12", &b, &err), FX_OK);
	CU_ASSERT_PTR_EQUAL(a, b);
	fx_array_unref(a);
	fx_array_unref(b);
	cache->close(cache);
}

static CU_TestInfo tests[] = {
	{"what comes out is collected", collects},
	{"volumes, tracts and text are kept", diffusion_products},
	{"what is wrong shows", shows_what_is_wrong},
	{"headers are read", headers},
	{"the cache keeps", cache_keeps},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_harness = {"harness", NULL, NULL, NULL, NULL, tests};

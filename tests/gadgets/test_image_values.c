/* SPDX-License-Identifier: MIT */
/* auto_scale, to_integer, extract_parts, extract part=typed and intensity, against values worked out by hand or by other sums. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"

static fx_msg *image(int type, int64_t nx, int64_t ny, uint16_t image_type)
{
	fx_msg *msg = fx_msg_new(FX_IMAGE);
	fx_image *i = fx_msg_image(msg);

	CU_ASSERT_EQUAL_FATAL(fx_array_new4(type, nx, ny, 1, 1, &i->data), FX_OK);
	fx_image_describe(i);
	if (image_type)
		i->head.image_type = image_type;
	return msg;
}

static void run(harness *h, const char *chain, fx_msg *in)
{
	harness_run(h, chain, NULL, &in, 1);
	if (h->status != FX_OK)
		fprintf(stderr, "%s: %s\n", chain, h->err.text);
	CU_ASSERT_EQUAL_FATAL(h->status, FX_OK);
}

static int by_value(const void *a, const void *b)
{
	return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

/* The 99th percentile, sorted and not counted, is at most two bins below what becomes max_value. */
static void auto_scale_reaches_its_value(void)
{
	static const int64_t sizes[][2] = {{1, 1}, {7, 5}, {33, 31}, {128, 96}};

	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		fx_msg *in = image(FX_F32, sizes[k][0], sizes[k][1], 0);
		fx_array *data = fx_array_ref(fx_msg_image(in)->data);
		int64_t n = data->n;
		float *sorted = malloc((size_t)n * sizeof *sorted), at, end;
		harness h;

		for (int64_t i = 0; i < n; i++)
			sorted[i] = FX_F32_OF(data)[i] = (float)((i * 7919) % n + 1) * 0.37f;
		qsort(sorted, (size_t)n, sizeof *sorted, by_value);
		at = sorted[(int64_t)ceil(0.99 * (double)n) - 1];
		run(&h, "auto_scale max_value=1000", in);
		const fx_image *out = fx_msg_image(h.out[0]);
		end = 1000 * FX_F32_OF(data)[0] / FX_F32_OF(out->data)[0]; /* what became 1000 */
		CU_ASSERT(end > at && end <= at + 2.001f * sorted[n - 1] / 100);
		CU_ASSERT_DOUBLE_EQUAL(harness_number(&h, 0, "factor", 0), 1000 / (double)end, 1e-5 * 1000 / (double)end);
		for (int64_t i = 0; i < n; i++) /* one factor: two roundings to single precision */
			CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out->data)[i] / FX_F32_OF(data)[i] * end, 1000, 2e-3);
		CU_ASSERT_EQUAL(out->head.image_type, ISMRMRD_IMTYPE_MAGNITUDE);
		harness_free(&h);
		fx_array_unref(data);
		free(sorted);
	}
}

/* Ten bins, 100 values: 99 in the lowest bin, one at the top. 99 are reached in bin 1; its edge and one more bin: 2 x max / 10. */
static void auto_scale_by_hand(void)
{
	fx_msg *in = image(FX_F32, 10, 10, 0), *zeros = image(FX_F32, 3, 1, 0), *phase = image(FX_F32, 2, 1, ISMRMRD_IMTYPE_PHASE),
		*odd = image(FX_F32, 2, 1, 0), *cplx = image(FX_CF32, 1, 1, 0);
	harness h;

	for (int i = 0; i < 100; i++)
		FX_F32_OF(fx_msg_image(in)->data)[i] = i == 57 ? 50 : 1;
	run(&h, "auto_scale max_value=20 histogram_bins=10", in);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], 2, 1e-6); /* 20 / (2 x 5) */
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[57], 100, 1e-5);
	harness_free(&h);
	run(&h, "auto_scale", zeros); /* nothing to divide by */
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[1], 0);
	harness_free(&h);
	FX_F32_OF(fx_msg_image(phase)->data)[0] = 3;
	run(&h, "auto_scale", phase);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], 3);
	harness_free(&h);
	FX_F32_OF(fx_msg_image(odd)->data)[0] = NAN; /* counts as 0 and stays */
	FX_F32_OF(fx_msg_image(odd)->data)[1] = 1;
	run(&h, "auto_scale max_value=1.01", odd);
	CU_ASSERT(isnan(FX_F32_OF(fx_msg_image(h.out[0])->data)[0]));
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[1], 1, 1e-6);
	harness_free(&h);
	FX_CF32_OF(fx_msg_image(cplx)->data)[0] = 7;
	run(&h, "auto_scale", cplx);
	CU_ASSERT_EQUAL(crealf(FX_CF32_OF(fx_msg_image(h.out[0])->data)[0]), 7);
	harness_free(&h);
}

static void integers_by_type(void)
{
	static const struct {
		const char *chain;
		uint16_t image_type;
		int type;
		float in;
		double out;
	} cases[] = {
		{"to_integer", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, 1.5f, 2},
		{"to_integer", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, 2.4999f, 2},
		{"to_integer", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, -7, 7},
		{"to_integer", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, 5000, 4095},
		{"to_integer max=65535", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, 1e9f, 65535},
		{"to_integer min=64", ISMRMRD_IMTYPE_MAGNITUDE, FX_U16, 3, 64},
		{"to_integer", ISMRMRD_IMTYPE_REAL, FX_U16, -48, 2000},
		{"to_integer", ISMRMRD_IMTYPE_IMAG, FX_U16, -3000, 0},
		{"to_integer", ISMRMRD_IMTYPE_PHASE, FX_U16, -3.14159265f, 0},
		{"to_integer", ISMRMRD_IMTYPE_PHASE, FX_U16, 0, 2048},
		{"to_integer", ISMRMRD_IMTYPE_PHASE, FX_U16, 1.57079633f, 3072},
		{"to_integer", ISMRMRD_IMTYPE_PHASE, FX_U16, 3.14159265f, 4095},
		{"to_integer type=int16 min=-32768 max=32767 offset=0", ISMRMRD_IMTYPE_REAL, FX_I16, -40000, -32768},
		{"to_integer type=int32 max=2147483647", ISMRMRD_IMTYPE_MAGNITUDE, FX_I32, 16777216, 16777216},
		{"to_integer type=uint32 max=4294967295", ISMRMRD_IMTYPE_MAGNITUDE, FX_U32, 1e20f, 4294967295.0},
	};

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		fx_msg *in = image(FX_F32, 1, 1, cases[k].image_type);
		fx_array *wide = NULL;
		harness h;

		FX_F32_OF(fx_msg_image(in)->data)[0] = cases[k].in;
		run(&h, cases[k].chain, in);
		const fx_image *out = fx_msg_image(h.out[0]);
		CU_ASSERT_EQUAL(out->data->type, cases[k].type);
		CU_ASSERT_EQUAL(out->head.image_type, cases[k].image_type);
		CU_ASSERT_EQUAL_FATAL(fx_array_convert(out->data, FX_F64, &wide), FX_OK);
		CU_ASSERT_EQUAL(FX_F64_OF(wide)[0], cases[k].out);
		if (FX_F64_OF(wide)[0] != cases[k].out)
			fprintf(stderr, "case %zu: %g\n", k, FX_F64_OF(wide)[0]);
		fx_array_unref(wide);
		harness_free(&h);
	}
}

static void integers_aside(void)
{
	fx_msg *real = image(FX_F32, 1, 1, ISMRMRD_IMTYPE_REAL), *ready = image(FX_I16, 1, 1, 0), *cplx = image(FX_CF32, 1, 1, 0),
		*none = image(FX_F32, 1, 1, 0), *clipped = image(FX_F32, 3, 1, 0), *nan = image(FX_F32, 1, 1, 0);
	harness h;

	fx_image_set_meta(fx_msg_image(real), "GADGETRON_WindowCenter", "100");
	run(&h, "to_integer", real);
	CU_ASSERT_STRING_EQUAL(fx_image_get_meta(fx_msg_image(h.out[0]), "GADGETRON_WindowCenter"), "2148");
	harness_free(&h);
	run(&h, "to_integer", ready);
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->data->type, FX_I16);
	harness_free(&h);
	run(&h, "to_integer", cplx);
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->data->type, FX_CF32);
	harness_free(&h);
	fx_msg_image(none)->head.image_type = 0;
	run(&h, "to_integer", none);
	CU_ASSERT(harness_warned(&h, "taken to be magnitudes"));
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->head.image_type, ISMRMRD_IMTYPE_MAGNITUDE);
	harness_free(&h);
	for (int i = 0; i < 3; i++)
		FX_F32_OF(fx_msg_image(clipped)->data)[i] = 4095 + (float)i;
	run(&h, "to_integer", clipped);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "clipped"), 2);
	harness_free(&h);
	FX_F32_OF(fx_msg_image(nan)->data)[0] = NAN; /* becomes the least value, counted */
	run(&h, "to_integer min=5", nan);
	CU_ASSERT_EQUAL(((uint16_t *)fx_msg_image(h.out[0])->data->data)[0], 5);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "clipped"), 1);
	harness_free(&h);
	harness_run(&h, "to_integer min=-1", NULL, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "uint16"));
	harness_free(&h);
	harness_run(&h, "to_integer min=7 max=6", NULL, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	harness_free(&h);
}

static void every_part_a_series(void)
{
	static const uint16_t types[] = {ISMRMRD_IMTYPE_MAGNITUDE, ISMRMRD_IMTYPE_PHASE, ISMRMRD_IMTYPE_REAL, ISMRMRD_IMTYPE_IMAG};
	static const uint16_t series[] = {5, 3005, 1005, 2005};
	static const float values[] = {5, 2.2142974f + 1, -3 + 10, 4 + 10}; /* atan2(4, -3) + 1 */
	fx_msg *in = image(FX_CF32, 1, 1, 0), *phase = image(FX_F32, 1, 1, ISMRMRD_IMTYPE_PHASE), *rss = image(FX_F32, 1, 1, 0);
	harness h;

	FX_CF32_OF(fx_msg_image(in)->data)[0] = FX_CF32(-3, 4);
	fx_msg_image(in)->head.image_series_index = 5;
	fx_image_set_meta(fx_msg_image(in), "a", "b");
	run(&h, "extract_parts phase=true real=true imaginary=true offset=10 phase_offset=1", in);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 4);
	for (int i = 0; i < 4; i++) {
		const fx_image *out = fx_msg_image(h.out[i]);

		CU_ASSERT_EQUAL(out->head.image_type, types[i]);
		CU_ASSERT_EQUAL(out->head.image_series_index, series[i]);
		CU_ASSERT_EQUAL(out->head.data_type, ISMRMRD_FLOAT);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(out->data)[0], values[i], 1e-6);
		CU_ASSERT_STRING_EQUAL(fx_image_get_meta(out, "a"), "b");
	}
	harness_free(&h);
	/* a phase is none of what is extracted from; a magnitude has a phase of 0 */
	FX_F32_OF(fx_msg_image(phase)->data)[0] = -2;
	run(&h, "extract_parts real=true", phase);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], -2);
	harness_free(&h);
	FX_F32_OF(fx_msg_image(rss)->data)[0] = 9;
	run(&h, "extract_parts magnitude=true phase=true", rss);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], 9);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[1])->data)[0], 0);
	harness_free(&h);
	harness_run(&h, "extract_parts magnitude=false", NULL, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	harness_free(&h);
}

static void extract_by_type(void)
{
	static const struct {
		uint16_t image_type, becomes;
		float value;
	} cases[] = {
		{ISMRMRD_IMTYPE_MAGNITUDE, ISMRMRD_IMTYPE_MAGNITUDE, 5}, {ISMRMRD_IMTYPE_PHASE, ISMRMRD_IMTYPE_PHASE, 2.2142974f},
		{ISMRMRD_IMTYPE_REAL, ISMRMRD_IMTYPE_REAL, -3}, {ISMRMRD_IMTYPE_IMAG, ISMRMRD_IMTYPE_IMAG, 4},
		{ISMRMRD_IMTYPE_COMPLEX, ISMRMRD_IMTYPE_MAGNITUDE, 5},
	};
	fx_msg *real = image(FX_F32, 1, 1, ISMRMRD_IMTYPE_REAL);
	harness h;

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		fx_msg *in = image(FX_CF32, 1, 1, cases[k].image_type);

		FX_CF32_OF(fx_msg_image(in)->data)[0] = FX_CF32(-3, 4);
		run(&h, "extract part=typed", in);
		CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->head.image_type, cases[k].becomes);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], cases[k].value, 5e-7);
		harness_free(&h);
	}
	FX_F32_OF(fx_msg_image(real)->data)[0] = -3; /* is one already */
	run(&h, "extract part=typed", real);
	CU_ASSERT_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[0], -3);
	CU_ASSERT_EQUAL(fx_msg_image(h.out[0])->head.image_type, ISMRMRD_IMTYPE_REAL);
	harness_free(&h);
}

/* An image whose largest magnitude is `max`, complex where wanted. */
static fx_msg *bright(float max, bool is_complex)
{
	fx_msg *msg = image(is_complex ? FX_CF32 : FX_F32, 2, 1, 0);

	if (is_complex)
		FX_CF32_OF(fx_msg_image(msg)->data)[1] = FX_CF32(0.6f * max, -0.8f * max);
	else
		FX_F32_OF(fx_msg_image(msg)->data)[1] = max;
	return msg;
}

static void one_scaling(void)
{
	static const struct {
		const char *chain;
		float max[2];
		double factor[2];
	} cases[] = {
		{"intensity", {7, 1e6f}, {4, 4}},
		{"intensity factor=10", {7, 1e6f}, {10, 10}},
		{"intensity constant=false", {32, 4}, {64, 64}},                       /* 2048 / 32, kept */
		{"intensity constant=false once=false", {32, 4096}, {64, 0.5}},
		{"intensity constant=false once=false", {100, 1500}, {4, 2}},          /* 4 x 1500 is above 4095 */
		{"intensity constant=false once=false", {4000, 2500}, {1, 1}},
		{"intensity constant=false once=false high=3000", {2999, 0}, {1, 2048}}, /* a dark image has a largest value of 1 */
		{"intensity factor=0", {32, 4}, {64, 64}},
	};

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		for (int is_complex = 0; is_complex < 2; is_complex++) {
			fx_msg *in[] = {bright(cases[k].max[0], is_complex), bright(cases[k].max[1], is_complex)};
			harness h;

			harness_run(&h, cases[k].chain, NULL, in, 2);
			CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
			for (int i = 0; i < 2; i++) {
				const fx_image *out = fx_msg_image(h.out[i]);
				double got = is_complex ? cabs(FX_CF32_OF(out->data)[1]) : (double)FX_F32_OF(out->data)[1];

				CU_ASSERT_DOUBLE_EQUAL(harness_number(&h, 0, "factor", i), cases[k].factor[i], 1e-4 * cases[k].factor[i]);
				if (fabs(harness_number(&h, 0, "factor", i) - cases[k].factor[i]) > 1e-4 * cases[k].factor[i])
					fprintf(stderr, "case %zu image %d: %g\n", k, i, harness_number(&h, 0, "factor", i));
				CU_ASSERT_DOUBLE_EQUAL(got, (double)cases[k].max[i] * cases[k].factor[i], 1e-4 * got);
				CU_ASSERT_EQUAL(out->data->type, is_complex ? FX_CF32 : FX_F32);
			}
			harness_free(&h);
		}
}

static void maps_have_their_own(void)
{
	static const struct {
		const char *entry, *value;
		double factor;
	} cases[] = {
		{"GADGETRON_DataRole", "SNR_MAP", 10}, {"GADGETRON_DataRole", "Gfactor", 100}, {"GADGETRON_DataRole", "STD_MAP", 1000},
		{"GADGETRON_DataRole", "Image", 4}, {"Use_dedicated_scaling_factor", "1", 50},
	};

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		fx_msg *in = bright(1, false);
		harness h;

		fx_image_set_meta(fx_msg_image(in), cases[k].entry, cases[k].value);
		fx_image_set_meta(fx_msg_image(in), "GADGETRON_ImageComment", "GT");
		run(&h, "intensity dedicated=50", in);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(fx_msg_image(h.out[0])->data)[1], cases[k].factor, 1e-4);
		CU_ASSERT_EQUAL(atof(fx_image_get_meta(fx_msg_image(h.out[0]), "GADGETRON_ScaleRatio")), cases[k].factor);
		CU_ASSERT_EQUAL(strncmp(fx_image_get_meta(fx_msg_image(h.out[0]), "GADGETRON_ImageComment"), "GT x", 4), 0);
		harness_free(&h);
	}
}

static CU_TestInfo tests[] = {
	{"auto_scale reaches its value", auto_scale_reaches_its_value},
	{"auto_scale by hand", auto_scale_by_hand},
	{"integers, by what an image shows", integers_by_type},
	{"integers: what is left alone, clipped, refused", integers_aside},
	{"every part a series", every_part_a_series},
	{"extract by an image's type", extract_by_type},
	{"one scaling for all", one_scaling},
	{"maps have their own", maps_have_their_own},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_image_values = {"image_values", NULL, NULL, NULL, NULL, tests};

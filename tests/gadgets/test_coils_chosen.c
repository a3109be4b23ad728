/* SPDX-License-Identifier: MIT */
/* coil_pca, coil_select and write_scan: coils that are turned, kept or left alone; readouts kept on the way. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"

#define COILS 5

static double uniform(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0 - 0.5;
}

/* Two signals of unlike strength, mixed into all coils, and a little of each coil's own. */
static fx_msg *readout(uint64_t *state, int64_t samples, uint16_t slice, uint64_t flags)
{
	fx_msg *msg = harness_acquisition(samples, COILS, 0);
	fx_acquisition *a = fx_msg_acquisition(msg);

	a->head.idx.slice = slice;
	a->head.flags = flags;
	a->head.center_sample = (uint16_t)(samples / 2);
	for (int64_t i = 0; i < samples; i++) {
		fx_cf64 strong = FX_CF64(uniform(state), uniform(state)), weak = 0.2 * FX_CF64(uniform(state), uniform(state));

		for (int c = 0; c < COILS; c++)
			FX_CF32_OF(a->data)[c * samples + i] = (fx_cf32)(strong * cexp(I * (double)c) * (1 + 0.3 * c) +
				weak * cexp(-2 * I * (double)c) + 0.01 * (uniform(state) + 3));
	}
	return msg;
}

#define LAST (UINT64_C(1) << (ISMRMRD_ACQ_LAST_IN_SLICE - 1))
#define NOISE (UINT64_C(1) << (ISMRMRD_ACQ_IS_NOISE_MEASUREMENT - 1))

static double energy(const fx_array *d, int64_t coil)
{
	double sum = 0;

	for (int64_t i = 0; i < d->dims[0]; i++)
		sum += pow(cabs(FX_CF32_OF(d)[coil * d->dims[0] + i]), 2);
	return sum;
}

/* Every sample's sum of squares stays, variances fall, and components of what was learned from are uncorrelated about their means. */
static void components(void)
{
	enum { N = 20, SAMPLES = 16 };
	uint64_t state = 7;
	fx_msg *in[N];
	fx_array *before[N];
	double worst = 0, power[COILS] = {0}, variance[COILS];
	harness h;

	for (int i = 0; i < N; i++) {
		in[i] = readout(&state, SAMPLES, 0, i == N - 1 ? LAST : 0);
		before[i] = fx_array_ref(fx_msg_acquisition(in[i])->data);
	}
	harness_run(&h, "coil_pca", NULL, in, N);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, N);
	for (int i = 0; i < N; i++) {
		const fx_array *after = fx_msg_acquisition(h.out[i])->data;

		for (int64_t s = 0; s < SAMPLES; s++) {
			double was = 0, is = 0;

			for (int c = 0; c < COILS; c++) {
				was += pow(cabs(FX_CF32_OF(before[i])[c * SAMPLES + s]), 2);
				is += pow(cabs(FX_CF32_OF(after)[c * SAMPLES + s]), 2);
			}
			CU_ASSERT_DOUBLE_EQUAL(is, was, 1e-5 * was); /* five products in single precision */
		}
		for (int c = 0; c < COILS; c++)
			power[c] += energy(after, c);
		fx_array_unref(before[i]);
	}
	CU_ASSERT(power[0] > 10 * power[1]);
	CU_ASSERT(power[1] > 10 * power[2]);
	for (int a = 0; a < COILS; a++)
		for (int b = 0; b <= a; b++) {
			fx_cf64 cross = 0, mean_a = 0, mean_b = 0;

			for (int i = 0; i < N; i++)
				for (int64_t s = 0; s < SAMPLES; s++) {
					fx_cf64 x = FX_CF32_OF(fx_msg_acquisition(h.out[i])->data)[a * SAMPLES + s];
					fx_cf64 y = FX_CF32_OF(fx_msg_acquisition(h.out[i])->data)[b * SAMPLES + s];

					cross += x * conj(y);
					mean_a += x / (N * SAMPLES);
					mean_b += y / (N * SAMPLES);
				}
			cross -= mean_a * conj(mean_b) * (N * SAMPLES);
			if (a == b)
				variance[a] = creal(cross);
			else
				worst = fmax(worst, cabs(cross) / power[0]);
		}
	for (int c = 1; c < COILS; c++)
		CU_ASSERT(variance[c] <= variance[c - 1]);
	CU_ASSERT(worst < 1e-6); /* single precision of the strongest */
	harness_free(&h);
}

/* What is held leaves in order when 100 readouts are there, a slice ends, or the input does; each slice has its own turn. */
static void when_they_leave(void)
{
	enum { N = 130 };
	uint64_t state = 11;
	fx_msg *in[N], *two[4];
	harness h;

	for (int i = 0; i < N; i++) {
		in[i] = readout(&state, 4, 0, 0);
		fx_msg_acquisition(in[i])->head.scan_counter = (uint32_t)i;
	}
	harness_run(&h, "coil_pca", NULL, in, N);
	CU_ASSERT_EQUAL_FATAL(h.n_out, N);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[i])->head.scan_counter, (uint32_t)i);
	harness_free(&h);
	for (int i = 0; i < 4; i++) {
		two[i] = readout(&state, 9, (uint16_t)(i & 1), i == 1 ? LAST : i == 2 ? NOISE : 0); /* slice 1 ends first; noise passes */
		fx_msg_acquisition(two[i])->head.scan_counter = (uint32_t)i;
	}
	harness_run(&h, "coil_pca", NULL, two, 4);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 4);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[0])->head.scan_counter, 1);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[1])->head.scan_counter, 2);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[2])->head.scan_counter, 3);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[3])->head.scan_counter, 0);
	harness_free(&h);
}

static char *named_coils(void)
{
	char *plain = harness_header((const int64_t[]){8, 8, 1}, (const double[]){80, 80, 8}, "cartesian", 8), *at, *xml = NULL;
	static const char labels[] = "<acquisitionSystemInformation><coilLabel><coilNumber>1</coilNumber><coilName>A</coilName></coilLabel>"
		"<coilLabel><coilNumber>2</coilNumber><coilName>Loop:1</coilName></coilLabel><coilLabel><coilNumber>3</coilNumber><coilName>C"
		"</coilName></coilLabel></acquisitionSystemInformation>";

	at = strstr(plain, "<encoding>");
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	CU_ASSERT_FATAL(asprintf(&xml, "%.*s%s%s", (int)(at - plain), plain, labels, at) > 0);
	free(plain);
	return xml;
}

static void some_are_left_alone(void)
{
	uint64_t state = 3;
	char *xml = named_coils();
	fx_msg *in[2] = {readout(&state, 32, 0, 0), readout(&state, 32, 0, LAST)};
	fx_array *before = fx_array_ref(fx_msg_acquisition(in[1])->data);
	double was = 0, is = 0;
	harness h;

	harness_run(&h, "coil_pca uncombined='C, A ,nobody'", xml, in, 2);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	const fx_array *after = fx_msg_acquisition(h.out[1])->data;
	CU_ASSERT_EQUAL(memcmp(FX_CF32_OF(after), FX_CF32_OF(before), 32 * sizeof(fx_cf32)), 0);                 /* A, by the header's order */
	CU_ASSERT_EQUAL(memcmp(FX_CF32_OF(after) + 32, FX_CF32_OF(before) + 2 * 32, 32 * sizeof(fx_cf32)), 0);   /* C */
	for (int c = 2; c < COILS; c++)
		is += energy(after, c);
	was = energy(before, 1) + energy(before, 3) + energy(before, 4);
	CU_ASSERT_DOUBLE_EQUAL(is, was, 1e-5 * was);
	CU_ASSERT(energy(after, 2) > 0.9 * was);
	CU_ASSERT(harness_warned(&h, "'nobody'"));
	harness_free(&h);
	fx_array_unref(before);
	free(xml);
}

static void awkward_coils(void)
{
	uint64_t state = 5;
	fx_msg *one = harness_acquisition(8, 1, 0), *zeros = harness_acquisition(8, COILS, 0), *empty[2] = {harness_acquisition(0, COILS, 0),
		readout(&state, 1, 0, LAST)}, *fewer[2] = {readout(&state, 8, 0, 0), harness_acquisition(8, 3, 0)};
	harness h;

	FX_CF32_OF(fx_msg_acquisition(one)->data)[3] = 2;
	harness_run(&h, "coil_pca", NULL, &one, 1);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(crealf(FX_CF32_OF(fx_msg_acquisition(h.out[0])->data)[3]), 2);
	harness_free(&h);
	harness_run(&h, "coil_pca", NULL, &zeros, 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(energy(fx_msg_acquisition(h.out[0])->data, 0), 0);
	harness_free(&h);
	harness_run(&h, "coil_pca", NULL, empty, 2);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 2);
	harness_free(&h);
	harness_run(&h, "coil_pca", NULL, fewer, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "3 coils"));
	harness_free(&h);
}

static void chosen(void)
{
	static const struct {
		const char *chain;
		int n, coils[COILS];
	} cases[] = {
		{"coil_select coils=2", 2, {0, 1}}, {"coil_select", 5, {0, 1, 2, 3, 4}}, {"coil_select mask='0 1 0 2'", 2, {1, 3}},
		{"coil_select mask=10101", 3, {0, 2, 4}}, {"coil_select mask='1'", 1, {0}}, {"coil_select coils=1 mask=' 0  0 1 1 1 1 1 '", 3, {2, 3, 4}},
	};

	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		uint64_t state = 9;
		fx_msg *in = readout(&state, 3, 0, 0);
		fx_array *before = fx_array_ref(fx_msg_acquisition(in)->data);
		harness h;

		harness_run(&h, cases[k].chain, NULL, &in, 1);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		const fx_acquisition *a = fx_msg_acquisition(h.out[0]);
		CU_ASSERT_EQUAL_FATAL(a->data->dims[1], cases[k].n);
		CU_ASSERT_EQUAL(a->head.active_channels, cases[k].n);
		for (int c = 0; c < cases[k].n; c++)
			CU_ASSERT_EQUAL(memcmp(FX_CF32_OF(a->data) + 3 * c, FX_CF32_OF(before) + 3 * cases[k].coils[c], 3 * sizeof(fx_cf32)), 0);
		harness_free(&h);
		fx_array_unref(before);
	}
}

static void badly_chosen(void)
{
	static const char *const chains[] = {"coil_select mask='1 x'", "coil_select mask=102", "coil_select mask='0 0'", "coil_select mask='1 0y'"};
	uint64_t state = 9;
	fx_msg *in = readout(&state, 3, 0, 0);
	harness h;

	for (size_t k = 0; k < sizeof chains / sizeof chains[0]; k++) {
		harness_run(&h, chains[k], NULL, NULL, 0);
		CU_ASSERT_EQUAL(h.status, FX_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "mask"));
		harness_free(&h);
	}
	harness_run(&h, "coil_select mask='0 0 0 0 0 1'", NULL, &in, 1); /* the sixth of five */
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	harness_free(&h);
}

static void scan_is_kept(void)
{
	uint64_t state = 13;
	fx_msg *in[3] = {readout(&state, 6, 0, 0), fx_msg_new(FX_WAVEFORM), readout(&state, 6, 1, 0)};
	fx_array *first = fx_array_ref(fx_msg_acquisition(in[0])->data);
	fx_waveform *w = fx_msg_waveform(in[1]);
	char *xml = named_coils();
	const harness_product *p;
	harness h;

	w->head.number_of_samples = 2;
	w->head.channels = 1;
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_U32, 2, 1, &w->data), FX_OK);
	harness_run(&h, "write_scan prefix='../a b' dated=false pass_waveforms=false", xml, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 2);
	p = harness_find_product(&h, "_._a_b.h5"); /* no name leads out of the folder */
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL_FATAL(p->n_scan, 3);
	CU_ASSERT_STRING_EQUAL(p->options.header_xml, xml);
	CU_ASSERT_EQUAL(fx_msg_kind(p->scan[1]), FX_WAVEFORM);
	CU_ASSERT_PTR_EQUAL(fx_msg_acquisition(p->scan[0])->data, first);
	harness_free(&h);
	harness_run(&h, "write_scan dated=false header_only=true", xml, NULL, 0);
	p = harness_find_product(&h, "scan.h5");
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(p->n_scan, 0);
	harness_free(&h);
	harness_run(&h, "write_scan", xml, NULL, 0); /* scan_20261201-023400.h5 */
	CU_ASSERT_EQUAL_FATAL(h.n_products, 1);
	CU_ASSERT_EQUAL(strlen(h.products[0].name), strlen("scan_20261201-023400.h5"));
	harness_free(&h);
	fx_array_unref(first);
	free(xml);
}

/* Two readouts of correlated noise and one of signal, through noise_adjust with these options. */
static void whitened(const char *options, const char *xml, const fx_array *signal, harness *h)
{
	char chain[128];
	uint64_t state = 17;
	fx_msg *in[3] = {readout(&state, 512, 0, NOISE), readout(&state, 512, 0, NOISE), harness_acquisition(signal->dims[0], signal->dims[1], 0)};

	snprintf(chain, sizeof chain, "noise_adjust %s", options);
	for (int i = 0; i < 3; i++)
		fx_msg_acquisition(in[i])->head.sample_time_us = 4;
	memcpy(fx_msg_acquisition(in[2])->data->data, signal->data, (size_t)signal->bytes);
	harness_run(h, chain, xml, in, 3);
}

static void noise_in_other_units(void)
{
	uint64_t state = 19, again = 17;
	fx_msg *m = readout(&state, 4, 0, 0), *n[2] = {readout(&again, 512, 0, 0), readout(&again, 512, 0, 0)};
	const fx_array *signal = fx_msg_acquisition(m)->data;
	char *xml = named_coils();
	double sigma2 = (energy(fx_msg_acquisition(n[0])->data, 0) + energy(fx_msg_acquisition(n[1])->data, 0)) / 1024;
	harness plain, parts, apart, wide;

	whitened("", xml, signal, &plain);
	whitened("unit=parts", xml, signal, &parts);
	whitened("scale_only=A", xml, signal, &apart);
	whitened("bandwidth=4", xml, signal, &wide);
	CU_ASSERT_EQUAL_FATAL(plain.n_out + parts.n_out + apart.n_out + wide.n_out, 4);
	/*
	 * Both parts of unit variance: sqrt 2; a bandwidth of 4: twice. Coils here are nearly dependent, so that rows of L^-1 reach some
	 * hundreds and nearly cancel: single precision leaves a few 1e-5.
	 */
	for (int64_t i = 0; i < signal->n; i++) {
		fx_cf32 v = FX_CF32_OF(fx_msg_acquisition(plain.out[0])->data)[i];

		CU_ASSERT(cabs(FX_CF32_OF(fx_msg_acquisition(parts.out[0])->data)[i] - M_SQRT2 * v) <= 5e-4);
		CU_ASSERT(cabs(FX_CF32_OF(fx_msg_acquisition(wide.out[0])->data)[i] - 2.0 * v) <= 5e-4);
	}
	for (int64_t i = 0; i < 4; i++) { /* A is the first coil: its own noise alone */
		fx_cf64 want = FX_CF32_OF(signal)[i] / sqrt(sigma2);

		CU_ASSERT(cabs(FX_CF32_OF(fx_msg_acquisition(apart.out[0])->data)[i] - want) <= 1e-5 * cabs(want));
	}
	/* and no other coil has anything of it: coil 1 then starts the triangle, and sees itself alone */
	sigma2 = (energy(fx_msg_acquisition(n[0])->data, 1) + energy(fx_msg_acquisition(n[1])->data, 1)) / 1024;
	for (int64_t i = 0; i < 4; i++) {
		fx_cf64 want = FX_CF32_OF(signal)[4 + i] / sqrt(sigma2);

		CU_ASSERT(cabs(FX_CF32_OF(fx_msg_acquisition(apart.out[0])->data)[4 + i] - want) <= 1e-5 * cabs(want));
	}
	harness_free(&plain);
	harness_free(&parts);
	harness_free(&apart);
	harness_free(&wide);
	fx_drop(m);
	fx_drop(n[0]);
	fx_drop(n[1]);
	free(xml);
}

static void other_coils_pass(void)
{
	fx_msg *m = harness_acquisition(4, 2, 0);
	harness h;

	FX_CF32_OF(fx_msg_acquisition(m)->data)[5] = 3;
	whitened("nonconforming=pass", NULL, fx_msg_acquisition(m)->data, &h);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(crealf(FX_CF32_OF(fx_msg_acquisition(h.out[0])->data)[5]), 3);
	CU_ASSERT(harness_warned(&h, "other coils than the noise"));
	harness_free(&h);
	whitened("", NULL, fx_msg_acquisition(m)->data, &h);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	harness_free(&h);
	fx_drop(m);
}

static CU_TestInfo tests[] = {
	{"components of a slice", components},
	{"when held readouts leave", when_they_leave},
	{"coils that are left alone", some_are_left_alone},
	{"one coil, no samples, zeros, coils that change", awkward_coils},
	{"coils that are kept", chosen},
	{"masks that make no sense", badly_chosen},
	{"a raw scan is kept", scan_is_kept},
	{"noise in other units, coils apart", noise_in_other_units},
	{"readouts of other coils than the noise", other_coils_pass},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_coils_chosen = {"coils_chosen", NULL, NULL, NULL, NULL, tests};

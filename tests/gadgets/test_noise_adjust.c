/* SPDX-License-Identifier: MIT */
/* noise_adjust and coil_compress: what happens to the coils before anything else. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"

#define COILS 4

static double uniform(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double _Complex gauss(uint64_t *state)
{
	double r = sqrt(-log(uniform(state))), p = 2 * M_PI * uniform(state); /* E|x|^2 = 1 */

	return r * cos(p) + I * r * sin(p);
}

/* Correlated noise x = A w: coil c sees its own and its neighbour's, at its own strength. */
static void fill(fx_msg *msg, uint64_t *state, double gain)
{
	fx_array *d = fx_msg_acquisition(msg)->data;

	for (int64_t i = 0; i < d->dims[0]; i++) {
		double _Complex w[COILS];

		for (int c = 0; c < COILS; c++)
			w[c] = gauss(state);
		for (int c = 0; c < COILS; c++)
			FX_CF32_OF(d)[c * d->dims[0] + i] = (fx_cf32)(gain * (c + 1) * (w[c] + 0.5 * I * w[(c + 1) % COILS]));
	}
}

static fx_msg *noise(uint64_t *state, float dwell_us)
{
	fx_msg *msg = harness_acquisition(4096, COILS, 0);

	fx_msg_acquisition(msg)->head.flags = UINT64_C(1) << (ISMRMRD_ACQ_IS_NOISE_MEASUREMENT - 1);
	fx_msg_acquisition(msg)->head.sample_time_us = dwell_us;
	fill(msg, state, 1);
	return msg;
}

/* Largest deviation of the covariance of what came out from `expected` on the diagonal and 0 elsewhere. */
static double deviation(const harness *h, double expected)
{
	double worst = 0;

	for (int a = 0; a < COILS; a++)
		for (int b = 0; b < COILS; b++) {
			double _Complex sum = 0;
			int64_t n = 0;

			for (int64_t m = 0; m < h->n_out; m++) {
				const fx_array *d = fx_msg_acquisition(h->out[m])->data;

				for (int64_t i = 0; i < d->dims[0]; i++, n++)
					sum += (double _Complex)FX_CF32_OF(d)[a * d->dims[0] + i] *
						conj((double _Complex)FX_CF32_OF(d)[b * d->dims[0] + i]);
			}
			worst = fmax(worst, cabs(sum / (double)n - (a == b ? expected : 0)));
		}
	return worst;
}

static void whitened_noise_has_unit_covariance(void)
{
	uint64_t state = 1;
	fx_msg *in[12];
	harness h;

	for (int i = 0; i < 8; i++)
		in[i] = noise(&state, 5);
	for (int i = 8; i < 12; i++) {
		in[i] = harness_acquisition(4096, COILS, 0);
		fx_msg_acquisition(in[i])->head.sample_time_us = 5;
		fill(in[i], &state, 1);
	}
	harness_run(&h, "noise_adjust", NULL, in, 12);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 4);
	/* 16384 samples: an element's standard error is 1/sqrt(16384) = 0.008, and the covariance itself has 0.0055 */
	CU_ASSERT(deviation(&h, 1) < 5 * 0.0097);
	harness_free(&h);
}

/* Noise power goes with bandwidth: imaging at half the dwell time has twice the noise, and is scaled for it. */
static void covariance_is_scaled_by_dwell(void)
{
	uint64_t state = 2;
	fx_msg *in[12];
	harness h;

	for (int i = 0; i < 8; i++)
		in[i] = noise(&state, 10);
	for (int i = 8; i < 12; i++) {
		in[i] = harness_acquisition(4096, COILS, 0);
		fx_msg_acquisition(in[i])->head.sample_time_us = 5;
		fill(in[i], &state, sqrt(2));
	}
	harness_run(&h, "noise_adjust", NULL, in, 12);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(harness_number(&h, 0, "power_ratio", 0), 2, 1e-6); /* 10 us / 5 us in float */
	CU_ASSERT(deviation(&h, 1) < 5 * 0.0097);
	harness_free(&h);
}

static void without_noise_data_pass(void)
{
	fx_msg *in[] = {harness_acquisition(8, 2, 0)};
	harness h;

	FX_CF32_OF(fx_msg_acquisition(in[0])->data)[3] = 7;
	harness_run(&h, "noise_adjust", NULL, in, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT(FX_CF32_OF(fx_msg_acquisition(h.out[0])->data)[3] == 7.0f);
	CU_ASSERT(harness_warned(&h, "no noise readouts"));
	harness_free(&h);
}

static void coils_must_agree(void)
{
	uint64_t state = 3;
	fx_msg *in[] = {noise(&state, 5), harness_acquisition(8, 2, 0)};
	harness h;

	harness_run(&h, "noise_adjust", NULL, in, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "2 coils"));
	harness_free(&h);
}

static void a_dead_coil_is_named(void)
{
	uint64_t state = 4;
	fx_msg *in[] = {noise(&state, 5), harness_acquisition(8, COILS, 0)};
	fx_array *d = fx_msg_acquisition(in[0])->data;
	harness h;

	for (int64_t i = 0; i < d->dims[0]; i++)
		FX_CF32_OF(d)[2 * d->dims[0] + i] = 0;
	harness_run(&h, "noise_adjust", NULL, in, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "coil 2"));
	harness_free(&h);
}

/* ---- noise of an earlier scan ---------------------------------------------------------------- */

struct kept {
	fxi_noise_store base;
	char id[64];
	fx_noise noise;
};

static int copy(const fx_array *from, fx_array **out)
{
	int status = fx_array_new2(FX_CF64, from->dims[0], from->dims[1], out);

	if (status == FX_OK)
		memcpy((*out)->data, from->data, (size_t)from->bytes);
	return status;
}

static int kept_get(fxi_noise_store *self, const char *id, fx_noise *out, fx_error *err)
{
	struct kept *k = (struct kept *)self;

	(void)err;
	*out = (fx_noise){0};
	if (!k->noise.covariance || strcmp(id, k->id) != 0)
		return FX_OK;
	*out = k->noise;
	return copy(k->noise.covariance, &out->covariance);
}

static int kept_put(fxi_noise_store *self, const char *id, const fx_noise *noise, fx_error *err)
{
	struct kept *k = (struct kept *)self;

	(void)err;
	fx_noise_clear(&k->noise);
	snprintf(k->id, sizeof k->id, "%s", id);
	k->noise = *noise;
	return copy(noise->covariance, &k->noise.covariance);
}

/* A scan of that measurement id whose noise is another's. */
static char *header_of(const char *id, const char *dependency)
{
	static const char form[] = "<ismrmrdHeader xmlns='http://www.ismrm.org/ISMRMRD'><measurementInformation><measurementID>%s"
		"</measurementID>%s%s%s</measurementInformation><experimentalConditions><H1resonanceFrequency_Hz>1</H1resonanceFrequency_Hz>"
		"</experimentalConditions><encoding><encodedSpace><matrixSize><x>64</x><y>64</y><z>1</z></matrixSize><fieldOfView_mm><x>300"
		"</x><y>300</y><z>5</z></fieldOfView_mm></encodedSpace><encodingLimits/><trajectory>cartesian</trajectory></encoding>"
		"</ismrmrdHeader>";
	char *xml = NULL;

	if (asprintf(&xml, form, id, dependency ? "<measurementDependency><dependencyType>Noise</dependencyType><measurementID>" : "",
		    dependency ? dependency : "", dependency ? "</measurementID></measurementDependency>" : "") < 0)
		return NULL;
	return xml;
}

/* A scan of noise alone, then images without noise readouts that name it: whitened as if they had been one scan. */
static void noise_of_an_earlier_scan(void)
{
	struct kept kept = {.base = {kept_get, kept_put}};
	const harness_options options = {.noise = &kept.base};
	char *first = header_of("n1", NULL), *second = header_of("i1", "n1"), *third = header_of("i2", "n2");
	uint64_t state = 6;
	fx_msg *in[8];
	harness h;

	for (int i = 0; i < 8; i++)
		in[i] = noise(&state, 10);
	harness_run_with(&h, "noise_adjust", first, in, 8, &options);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 0);
	CU_ASSERT_EQUAL(h.n_warnings, 0);
	harness_free(&h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(kept.noise.covariance);
	CU_ASSERT_STRING_EQUAL(kept.id, "n1");
	CU_ASSERT_EQUAL(kept.noise.n_samples, 8 * 4096);
	CU_ASSERT_EQUAL(kept.noise.dwell_us, 10);
	for (int run = 0; run < 2; run++) {
		for (int i = 0; i < 4; i++) {
			in[i] = harness_acquisition(4096, COILS, 0);
			fx_msg_acquisition(in[i])->head.sample_time_us = 5;
			fill(in[i], &state, sqrt(2)); /* half the dwell time, twice the power */
		}
		harness_run_with(&h, "noise_adjust", run == 0 ? second : third, in, 4, &options);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 4);
		if (run == 0) {
			CU_ASSERT(deviation(&h, 1) < 5 * 0.0097); /* as above */
			CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "noise_measurement", 0), "n1");
		} else
			CU_ASSERT(harness_warned(&h, "no noise is kept of measurement 'n2'"));
		harness_free(&h);
	}
	fx_noise_clear(&kept.noise);
	free(first);
	free(second);
	free(third);
}

/* Kept noise of another number of coils is no reason to fail: the scan is reconstructed, and said to be unwhitened. */
static void noise_of_other_coils_is_a_warning(void)
{
	struct kept kept = {.base = {kept_get, kept_put}};
	const harness_options options = {.noise = &kept.base};
	char *first = header_of("n1", NULL), *second = header_of("i1", "n1");
	uint64_t state = 7;
	fx_msg *in[] = {noise(&state, 10)};
	harness h;

	harness_run_with(&h, "noise_adjust", first, in, 1, &options);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	harness_free(&h);
	in[0] = harness_acquisition(8, 2, 0);
	FX_CF32_OF(fx_msg_acquisition(in[0])->data)[3] = 7;
	harness_run_with(&h, "noise_adjust", second, in, 1, &options);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT(FX_CF32_OF(fx_msg_acquisition(h.out[0])->data)[3] == 7.0f);
	CU_ASSERT(harness_warned(&h, "has 4 coils, this scan has 2"));
	harness_free(&h);
	fx_noise_clear(&kept.noise);
	free(first);
	free(second);
}

/* Four coils that see two signals: two virtual coils hold all of it, and sums of squares are kept. */
static void compression_keeps_the_energy(void)
{
	fx_msg *in[3];
	uint64_t state = 5;
	double before[3] = {0};
	harness h;

	for (int m = 0; m < 3; m++) {
		in[m] = harness_acquisition(64, COILS, 0);
		fx_array *d = fx_msg_acquisition(in[m])->data;

		for (int64_t i = 0; i < 64; i++) {
			double _Complex s = gauss(&state), t = gauss(&state);

			for (int c = 0; c < COILS; c++) {
				double _Complex v = s * cexp(I * (double)c) + t * (c - 1.5);

				FX_CF32_OF(d)[c * 64 + i] = (fx_cf32)v;
				before[m] += creal(v * conj(v));
			}
		}
	}
	fx_msg_acquisition(in[1])->head.flags = UINT64_C(1) << (ISMRMRD_ACQ_LAST_IN_SLICE - 1);
	fx_msg_acquisition(in[2])->head.idx.repetition = 1;
	harness_run(&h, "coil_compress energy=0.9999", NULL, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 3);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "channels", 0), 2);
	for (int m = 0; m < 3; m++) {
		const fx_acquisition *a = fx_msg_acquisition(h.out[m]);
		double after = 0;

		CU_ASSERT_EQUAL_FATAL(a->data->dims[1], 2);
		CU_ASSERT_EQUAL(a->head.active_channels, 2);
		for (int64_t i = 0; i < a->data->n; i++)
			after += pow(cabs((double _Complex)FX_CF32_OF(a->data)[i]), 2);
		CU_ASSERT_DOUBLE_EQUAL(after / before[m], 1, 1e-5); /* single precision products */
	}
	harness_free(&h);
}

static void few_coils_pass_untouched(void)
{
	fx_msg *in[] = {harness_acquisition(8, 3, 0)};
	harness h;

	harness_run(&h, "coil_compress channels=3", NULL, in, 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(fx_msg_acquisition(h.out[0])->data->dims[1], 3);
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"whitened noise has unit covariance", whitened_noise_has_unit_covariance},
	{"the covariance is scaled by dwell time", covariance_is_scaled_by_dwell},
	{"without noise readouts data pass, with a warning", without_noise_data_pass},
	{"coils must agree", coils_must_agree},
	{"a dead coil is named", a_dead_coil_is_named},
	{"a scan of noise alone serves a later one", noise_of_an_earlier_scan},
	{"kept noise of other coils is a warning", noise_of_other_coils_is_a_warning},
	{"compression keeps the energy", compression_keeps_the_energy},
	{"few coils pass untouched", few_coils_pass_untouched},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_noise_adjust = {"noise_adjust", NULL, NULL, NULL, NULL, tests};

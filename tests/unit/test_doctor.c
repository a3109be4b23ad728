/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recon/doctor.h"
#include "recon/phantom.h"

#define SPOKES 52 /* pi/2 * 32, and a little */

/* A good radial scan, for one thing at a time to be broken. */
struct scan {
	fx_encoding encoding;
	fx_header header;
	fxi_sampling sampling;
	fx_acquisition readouts[SPOKES];
};

static struct scan *scan_new(void)
{
	struct scan *s = fx_alloc(1, sizeof *s);
	double *k;

	s->sampling = (fxi_sampling){.kind = FXI_RADIAL, .matrix = {32, 32, 1}, .n_readouts = SPOKES};
	s->encoding = (fx_encoding){.encoded = {{32, 32, 1}, {240, 240, 5}}, .trajectory = FX_TRAJ_RADIAL, .acceleration = {1, 1}};
	s->encoding.limits[FX_STEP_1] = (fx_limit){true, 0, SPOKES - 1, 0};
	s->header = (fx_header){.n_encodings = 1, .encodings = &s->encoding, .receiver_channels = 2, .field_t = 3};
	if (fxi_sampling_complete(&s->sampling, NULL) != FX_OK)
		CU_FAIL_FATAL("no trajectory");
	k = fx_alloc(3 * s->sampling.n_samples, sizeof *k);
	for (int64_t i = 0; i < SPOKES; i++) {
		fx_acquisition *a = &s->readouts[i];
		int64_t step[2], n = s->sampling.n_samples;

		if (fx_array_new2(FX_CF32, n, 2, &a->data) != FX_OK || fx_array_new2(FX_F32, 2, n, &a->traj) != FX_OK)
			CU_FAIL_FATAL("no memory");
		fxi_sampling_readout(&s->sampling, i, k, step);
		for (int64_t j = 0; j < n; j++) {
			FX_F32_OF(a->traj)[2 * j] = (float)k[3 * j];
			FX_F32_OF(a->traj)[2 * j + 1] = (float)k[3 * j + 1];
		}
		FX_CF32_OF(a->data)[0] = 1;
		a->head.idx.kspace_encode_step_1 = (uint16_t)i;
		a->head.scan_counter = (uint32_t)i;
		a->head.center_sample = (uint16_t)s->sampling.center_sample;
		a->head.sample_time_us = 4;
		a->head.read_dir[0] = a->head.phase_dir[1] = a->head.slice_dir[2] = 1;
	}
	fx_free(k);
	return s;
}

static void scan_free(struct scan *s)
{
	for (int64_t i = 0; i < SPOKES; i++) {
		fx_array_unref(s->readouts[i].data);
		fx_array_unref(s->readouts[i].traj);
	}
	fx_free(s);
}

/* The worst verdict on an aspect; -1 where there is none. Frees the scan. */
static int verdict(struct scan *s, int64_t n, const char *aspect, const char *says)
{
	fxi_doctor *d = NULL;
	fxi_report report;
	int worst = -1;
	bool said = says == NULL;

	if (fxi_doctor_new(&s->header, NULL, &d) != FX_OK)
		CU_FAIL_FATAL("no doctor");
	for (int64_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(fxi_doctor_add(d, &s->readouts[i], NULL), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_doctor_end(d, NULL, &report), FX_OK);
	for (int64_t i = 0; i < report.n_findings; i++) {
		const fxi_finding *f = &report.findings[i];

		if (aspect && strcmp(f->aspect, aspect) != 0)
			continue;
		worst = f->verdict > worst ? f->verdict : worst;
		said = said || strstr(f->text, says);
	}
	if (!said)
		for (int64_t i = 0; i < report.n_findings; i++)
			printf("%s: %s\n", report.findings[i].aspect, report.findings[i].text);
	CU_ASSERT_TRUE(said);
	fxi_doctor_free(d);
	scan_free(s);
	return worst;
}

static void a_good_scan(void)
{
	struct scan *s = scan_new();

	s->readouts[0].head.flags = (uint64_t)1 << (ISMRMRD_ACQ_IS_NOISE_MEASUREMENT - 1);
	/* nothing but the sign, which no data can tell */
	CU_ASSERT_EQUAL(verdict(s, SPOKES, NULL, NULL), FXI_UNTOLD);
	CU_ASSERT_EQUAL(verdict(scan_new(), SPOKES, "sign", "half turn"), FXI_UNTOLD);
	CU_ASSERT_EQUAL(verdict(scan_new(), SPOKES, "units", "cycles/voxel"), FXI_FINE);
}

static void header_and_counters(void)
{
	struct scan *s = scan_new();

	CU_ASSERT_EQUAL(verdict(s, SPOKES, "noise", "2 coils"), FXI_DOUBT);
	s = scan_new();
	s->encoding.encoded.fov_mm[0] = 0;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "geometry", "field of view"), FXI_DOUBT);
	s = scan_new();
	s->encoding.encoded.fov_mm[0] = s->encoding.encoded.fov_mm[1] = 0.24;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "geometry", "metres"), FXI_DOUBT);
	s = scan_new();
	s->readouts[3].head.phase_dir[0] = 0.1f;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "geometry", "1 readouts"), FXI_DOUBT);
	s = scan_new();
	s->encoding.limits[FX_STEP_1].present = false;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "frames", "neither"), FXI_DOUBT);
	s = scan_new();
	s->encoding.limits[FX_STEP_1].max = 9;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "frames", "beyond"), FXI_DOUBT);
	s = scan_new();
	s->header.receiver_channels = 8;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "coils", "8"), FXI_DOUBT);
	s = scan_new();
	s->readouts[5].head.encoding_space_ref = 1;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "readouts", "the first is 5"), FXI_REFUSAL);
	s = scan_new();
	CU_ASSERT_EQUAL(verdict(s, 0, "readouts", NULL), FXI_REFUSAL);
	s = scan_new();
	s->readouts[7].head.idx.kspace_encode_step_1 = 6;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "counters", "1 readouts"), FXI_FINE);
}

static void numbers(void)
{
	struct scan *s = scan_new();

	FX_CF32_OF(s->readouts[4].data)[9] = NAN;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "numbers", "the first is 4"), FXI_REFUSAL);
	s = scan_new();
	FX_F32_OF(s->readouts[4].traj)[9] = INFINITY;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "numbers", "finite"), FXI_REFUSAL);
	s = scan_new();
	FX_CF32_OF(s->readouts[4].data)[9] = 1e30f;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "numbers", "never written"), FXI_DOUBT);
	s = scan_new();
	for (int64_t i = 0; i < SPOKES; i++)
		FX_CF32_OF(s->readouts[i].data)[0] = 0;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "numbers", "every sample is 0"), FXI_REFUSAL);
}

static void trajectories(void)
{
	struct scan *s = scan_new();

	/* spokes 1/FOV apart at the edge are dense enough; a third of them leaves holes three times as wide, less the cells' own width */
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "density", "no hole"), FXI_FINE);
	s = scan_new();
	for (int64_t i = 0; i < SPOKES / 4; i++) { /* every fourth */
		fx_acquisition a = s->readouts[i];

		s->readouts[i] = s->readouts[4 * i];
		s->readouts[4 * i] = a;
	}
	CU_ASSERT_EQUAL(verdict(s, SPOKES / 4, "density", "undersampled about"), FXI_DOUBT);
	s = scan_new();
	for (int64_t j = 0; j < 128; j++)
		FX_F32_OF(s->readouts[0].traj)[j] *= 1.1f;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "edge", "up to 0.55 cycles/voxel"), FXI_DOUBT);
	s = scan_new();
	s->readouts[2].head.center_sample = 10;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "centre", "10, nearest is 32"), FXI_DOUBT);
	s = scan_new();
	for (int64_t i = 0; i < SPOKES; i++)
		for (int64_t j = 0; j < 128; j++)
			FX_F32_OF(s->readouts[i].traj)[j] *= 0.01f; /* largest 0.005: no unit fills the matrix */
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "units", "cycles/FOV fills"), FXI_REFUSAL);
	s = scan_new();
	s->encoding.encoded.matrix[2] = 4;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "third column", "kz is missing"), FXI_DOUBT);
	s = scan_new();
	fx_slot_take(&s->readouts[1].traj, NULL);
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "trajectory", "others none"), FXI_REFUSAL);
	s = scan_new();
	for (int64_t i = 0; i < SPOKES; i++)
		s->readouts[i].head.sample_time_us = 400; /* 64 samples: 25.6 ms at 50 Hz are 1.28 cycles */
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "blur", "1.28 cycles"), FXI_DOUBT);
	s = scan_new();
	s->readouts[0].head.sample_time_us = 0;
	CU_ASSERT_EQUAL(verdict(s, SPOKES, "blur", "not known"), FXI_UNTOLD);
}

/* A third column on one plane: a weight is ignored without a word of doubt, kz is not. */
static void third_column(void)
{
	for (int kz = 0; kz < 2; kz++) {
		struct scan *s = scan_new();

		for (int64_t i = 0; i < SPOKES; i++) {
			fx_array *wide = NULL, *narrow = s->readouts[i].traj;

			CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, 3, narrow->dims[1], &wide), FX_OK);
			for (int64_t j = 0; j < narrow->dims[1]; j++) {
				memcpy(FX_F32_OF(wide) + 3 * j, FX_F32_OF(narrow) + 2 * j, 2 * sizeof(float));
				FX_F32_OF(wide)[3 * j + 2] = kz ? (float)i / SPOKES - 0.5f : 0.3f;
			}
			fx_slot_take(&s->readouts[i].traj, wide);
		}
		CU_ASSERT_EQUAL(verdict(s, SPOKES, "third column", kz ? "like kz" : "not kz"), kz ? FXI_DOUBT : FXI_FINE);
	}
}

static CU_TestInfo tests[] = {
	{"a good scan", a_good_scan},
	{"header and counters", header_and_counters},
	{"numbers", numbers},
	{"trajectories", trajectories},
	{"third column", third_column},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_doctor = {"doctor", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* Raw files of scanners and simulators, against what h5py reads of them; skipped where the folder of test data is absent. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/input.h"

/* Counts and sums that h5py gives for the files in TEST_DATA_DIR; sums of the same floats in double differ by their order alone. */
static void real_files(void)
{
	static const struct {
		const char *name;
		int64_t n, samples;
		double re, im;
	} files[] = {
		{"recon/bonn_spiralout_clean.h5", 16, 74101, 0.987243532, 39.6366234},
		{"recon/koma_epi.mrd", 101, 10201, -0.00491049938, 1.83544665},
		{"recon/mriq_64.h5", 1, 2048, 256.657642, 0},
		{"recon/mrireco_brain_sim.h5", 256, 65536, 51363.1157, 0},
		{"recon/spiral_acr_5slices.h5", 395, 325875, 809431.653, -170965.578},
		{"recon/spiral_phantom_8ch.h5", 60, 567360, -1924089, -1608414},
		{"odd/gre_b0mapping_4e1a6.h5", 236, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char name[256];
		fx_error err = {0};
		fxi_source *source;
		fx_msg *m;
		int64_t n = 0, samples = 0;
		double re = 0, im = 0;

		snprintf(name, sizeof name, "%s/%s", TEST_DATA_DIR, files[i].name);
		if (access(name, R_OK) != 0) {
			printf("\n    skipped: %s is not here", name);
			continue;
		}
		CU_ASSERT_EQUAL_FATAL(fxi_input_open(name, NULL, &err, &source), FX_OK);
		while (source->next(source, &m, &err) == FX_OK && m) {
			const fx_array *a = fx_msg_acquisition(m)->data;

			n++;
			samples += a->n;
			for (int64_t j = 0; j < a->n; j++) {
				re += (double)((const float *)a->data)[2 * j];
				im += (double)((const float *)a->data)[2 * j + 1];
			}
			fx_drop(m);
		}
		CU_ASSERT_EQUAL(err.status, FX_OK);
		CU_ASSERT_EQUAL(n, files[i].n);
		CU_ASSERT_EQUAL(samples, files[i].samples);
		/* h5py's figures are given to 9 digits. */
		CU_ASSERT_DOUBLE_EQUAL(re, files[i].re, 1e-8 * (fabs(files[i].re) + 1));
		CU_ASSERT_DOUBLE_EQUAL(im, files[i].im, 1e-8 * (fabs(files[i].im) + 1));
		source->close(source);
	}
}

/* Not raw MRD: what it is instead is said. */
static void another_format(void)
{
	char name[512];
	fx_error err = {0};
	fxi_source *source = NULL;

	snprintf(name, sizeof name, "%s/recon/koma_spiral.h5", TEST_DATA_DIR);
	if (access(name, R_OK) != 0) {
		printf("\n    skipped: %s is not here", name);
		return;
	}
	CU_ASSERT_EQUAL(fxi_input_open(name, NULL, &err, &source), FX_EDATA);
	CU_ASSERT_PTR_NULL(source);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "JEMRIS signal file"));
}

static CU_TestInfo tests[] = {
	{"real files, as h5py reads them", real_files},
	{"another format", another_format},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_mrd_real = {"mrd_real", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* test_short_memory.c - the shipped chains on a tiny scan, with each allocation failing in turn: explained, tidy, no crash. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"
#include "unit/short_memory.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 8
#define COILS 2
#define SPOKES 12
/* Allocations of a chain are tried one by one up to this many runs; of more, every second, third ... is. */
#define MOST_RUNS 400

/* A point in the middle, seen alike by all coils but for a phase: ones throughout k-space. */
static void fill(fx_acquisition *a, uint16_t counter, bool last)
{
	for (int64_t i = 0; i < a->data->n; i++)
		FX_CF32_OF(a->data)[i] = i < a->data->dims[0] ? 1.0f : (fx_cf32)_Complex_I;
	a->head.scan_counter = counter;
	a->head.idx.kspace_encode_step_1 = counter;
	if (last)
		a->head.flags |= 1ull << (ISMRMRD_ACQ_LAST_IN_SLICE - 1);
}

static int64_t cartesian_scan(fx_msg **messages)
{
	for (uint16_t i = 0; i < SIZE; i++) {
		messages[i] = harness_acquisition(SIZE, COILS, 0);
		fill(fx_msg_acquisition(messages[i]), i, i == SIZE - 1);
	}
	return SIZE;
}

static int64_t radial_scan(fx_msg **messages)
{
	for (uint16_t i = 0; i < SPOKES; i++) {
		fx_acquisition *a;
		double angle = i * acos(-1.0) / SPOKES;

		messages[i] = harness_acquisition(SIZE, COILS, 2);
		a = fx_msg_acquisition(messages[i]);
		fill(a, i, i == SPOKES - 1);
		for (int j = 0; j < SIZE; j++) {
			FX_F32_OF(a->traj)[2 * j] = (float)(cos(angle) * (j - SIZE / 2) / SIZE);
			FX_F32_OF(a->traj)[2 * j + 1] = (float)(sin(angle) * (j - SIZE / 2) / SIZE);
		}
	}
	return SPOKES;
}

static int64_t run_once(const char *chain, bool radial, int64_t failing, int64_t *calls)
{
	fx_msg *messages[SPOKES];
	int64_t n = radial ? radial_scan(messages) : cartesian_scan(messages), n_images = -1;
	char *header = harness_header((int64_t[]){SIZE, SIZE, 1}, (double[]){200, 200, 5}, radial ? "radial" : "cartesian",
		n);
	harness h;

	short_memory_at(failing);
	harness_run_with(&h, chain, header, messages, n, &(harness_options){.n_threads = 1});
	*calls = short_memory_off();
	if (h.status == FX_OK)
		n_images = h.n_products > 0 ? h.products[0].n_images : 0;
	else if (h.status != FX_ENOMEM || h.err.text[0] == '\0') {
		CU_FAIL("memory ran out, and something else was said");
		fprintf(stderr, "%s, allocation %lld: status %d, %s\n", chain, (long long)failing, h.status, h.err.text);
	}
	CU_ASSERT(h.status == FX_OK || h.n_products == 0 || h.products[0].n_images == 1);
	harness_free(&h);
	free(header);
	return n_images;
}

static void short_of_memory(const char *chain, bool radial)
{
	int64_t calls, step;

	CU_ASSERT_EQUAL_FATAL(run_once(chain, radial, INT64_MAX, &calls), 1);
	CU_ASSERT(calls > 50);
	step = 1 + calls / MOST_RUNS;
	for (int64_t i = 0; i < calls; i += step) {
		int64_t now, images = run_once(chain, radial, i, &now);

		/* what can be done without (a cache, say) may be; then the image is there all the same */
		CU_ASSERT(images == -1 || images == 1);
	}
}

static void cartesian(void)
{
	short_of_memory("noise_adjust | cartesian | coil_maps | combine | scale | write_mrd | write_nifti | write_png", false);
}

static void gadgetron(void)
{
	short_of_memory("noise_adjust unit=parts | coil_pca | coil_select coils=1 | cartesian averages=separate matrix=encoded | combine method=rss | "
		"intensity | extract_parts | auto_scale | to_integer | write_mrd", false);
}

static void espirit(void)
{
	short_of_memory("cartesian | coil_maps method=espirit calibration_size=7 kernel_size=3 crop=0 | combine | write_mrd", false);
}

static void gridding(void)
{
	short_of_memory("noise_adjust | trajectory | density | grid | coil_maps | combine | write_mrd", true);
}

static void direct(void)
{
	short_of_memory("trajectory | density | mu | fhd method=direct accumulate=weighted | coil_maps | combine | write_mrd",
		true);
}

static void iterative(void)
{
	short_of_memory("noise_adjust | coil_compress channels=2 | trajectory | density | mu | fhd | coil_maps | toeplitz | "
		"prior | cg iterations=3 | write_mrd", true);
}

/* The prior's own solves: a first reconstruction, lambda from a target, both maps. */
static void anatomical(void)
{
	short_of_memory("trajectory | density | mu | fhd | coil_maps | toeplitz | prior reference_from=first save=true probes=2 "
		"target_sigma=0.3 | cg iterations=3 | write_mrd", true);
}

static CU_TestInfo tests[] = {
	{"cartesian", cartesian},
	{"what Gadgetron's classes become", gadgetron},
	{"espirit", espirit},
	{"gridding", gridding},
	{"direct", direct},
	{"iterative", iterative},
	{"anatomical", anatomical},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_short_memory = {"short_memory", NULL, NULL, NULL, NULL, tests};

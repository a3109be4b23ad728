/* SPDX-License-Identifier: MIT */
/* fhd: which readouts make a frame, and that what it sums is the chapter's sum, whatever the way it came. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "gadgets/harness.h"
#include "unit/plain_sums.h"

#define SAMPLES 24
#define COILS 2

static const int64_t matrix[3] = {9, 8, 1};

/* A readout of random samples along a random trajectory; the number is its seed. */
static fx_msg *readout(uint64_t seed, uint16_t slice, uint16_t repetition)
{
	fx_msg *msg = harness_acquisition(SAMPLES, COILS, 2);
	fx_acquisition *a = fx_msg_acquisition(msg);
	fx_array *k = random_array(FX_F64, 2, (int64_t[]){2, SAMPLES}, 1000 + seed);

	for (int64_t i = 0; i < k->n; i++)
		FX_F32_OF(a->traj)[i] = (float)(FX_F64_OF(k)[i] / 2);
	fx_array_unref(k);
	fx_slot_take(&a->data, random_array(FX_CF32, 2, (int64_t[]){SAMPLES, COILS}, seed));
	a->head.scan_counter = (uint32_t)seed;
	a->head.idx.kspace_encode_step_1 = (uint16_t)seed;
	a->head.idx.slice = slice;
	a->head.idx.repetition = repetition;
	return msg;
}

static void last_of_slice(fx_msg *msg)
{
	fx_msg_acquisition(msg)->head.flags |= UINT64_C(1) << (ISMRMRD_ACQ_LAST_IN_SLICE - 1);
}

static char *header(void)
{
	return harness_header(matrix, (double[]){90, 80, 5}, "other", 0);
}

/* The plain sum over readouts with these seeds, and the data's norm; weights come from the frame. */
static fx_array *expected(const uint64_t *seeds, int64_t n, const float *weights, double *norm2)
{
	fx_array *k = NULL, *s = NULL, *image;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n * SAMPLES, &k), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_CF64, n * SAMPLES, COILS, &s), FX_OK);
	*norm2 = 0;
	for (int64_t r = 0; r < n; r++) {
		fx_msg *msg = readout(seeds[r], 0, 0);
		const fx_acquisition *a = fx_msg_acquisition(msg);

		for (int64_t i = 0; i < SAMPLES; i++) {
			for (int d = 0; d < 2; d++)
				FX_F64_OF(k)[3 * (r * SAMPLES + i) + d] = (double)FX_F32_OF(a->traj)[2 * i + d];
			for (int64_t c = 0; c < COILS; c++) {
				double _Complex v = (double _Complex)FX_CF32_OF(a->data)[c * SAMPLES + i];

				*norm2 += creal(v * conj(v));
				FX_CF64_OF(s)[c * n * SAMPLES + r * SAMPLES + i] = weights ? v * (double)weights[r * SAMPLES + i] : v;
			}
		}
		fx_drop(msg);
	}
	image = plain_adjoint(k, s, matrix, 1 / sqrt(72));
	fx_array_unref(k);
	fx_array_unref(s);
	return image;
}

static void check_frame(const harness *h, int64_t at, const uint64_t *seeds, int64_t n, double tolerance)
{
	double norm2;
	fx_array *want = expected(seeds, n, NULL, &norm2);
	const fx_frame *f = fx_msg_frame(h->out[at]);

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(f->n_readouts, n);
	CU_ASSERT_EQUAL(f->k->dims[1], n * SAMPLES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->fhd);
	CU_ASSERT(distance(f->fhd, want) < tolerance);
	CU_ASSERT_DOUBLE_EQUAL(f->data_norm2 / norm2, 1, 1e-6); /* f32 data, sums in double */
	fx_array_unref(want);
}

/* direct: single precision against double, as the operator itself promises; nufft: its own tolerance. */
static const struct {
	const char *chain;
	double tolerance;
} ways[] = {
	{"trajectory unit=cycles_per_voxel | mu | fhd method=direct", 2e-6},
	{"trajectory unit=cycles_per_voxel | mu | fhd tolerance=1e-3", 1e-3},
	{"trajectory unit=cycles_per_voxel | mu | fhd tolerance=1e-5", 1e-5},
	{"trajectory unit=cycles_per_voxel | mu | fhd precision=double tolerance=1e-7", 1e-6}, /* the frame holds cf32 */
};

static void interleaved_slices(void)
{
	for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
		fx_msg *in[6];
		char *xml = header();
		harness h;

		for (uint64_t i = 0; i < 6; i++)
			in[i] = readout(i, (uint16_t)(i % 2), 0);
		last_of_slice(in[4]);
		last_of_slice(in[5]);
		harness_run(&h, ways[w].chain, xml, in, 6);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
		check_frame(&h, 0, (uint64_t[]){0, 2, 4}, 3, ways[w].tolerance);
		check_frame(&h, 1, (uint64_t[]){1, 3, 5}, 3, ways[w].tolerance);
		CU_ASSERT_EQUAL(fx_msg_frame(h.out[1])->head.idx.slice, 1);
		harness_free(&h);
		free(xml);
	}
}

static void a_counter_that_moves_on_closes(void)
{
	fx_msg *in[] = {readout(0, 0, 0), readout(1, 0, 0), readout(2, 0, 1)};
	char *xml = header();
	harness h;

	harness_run(&h, ways[0].chain, xml, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	check_frame(&h, 0, (uint64_t[]){0, 1}, 2, ways[0].tolerance);
	check_frame(&h, 1, (uint64_t[]){2}, 1, ways[0].tolerance);
	harness_free(&h);
	free(xml);
}

static void sliding_window(void)
{
	fx_msg *in[5];
	char *xml = header();
	harness h;

	for (uint64_t i = 0; i < 5; i++)
		in[i] = readout(i, 0, 0);
	harness_run(&h, "trajectory unit=cycles_per_voxel | mu | fhd method=direct readouts_per_frame=3 frame_step=1", xml, in, 5);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_FATAL(h.n_out >= 3);
	for (uint64_t f = 0; f < 3; f++)
		check_frame(&h, (int64_t)f, (uint64_t[]){f, f + 1, f + 2}, 3, ways[0].tolerance);
	harness_free(&h);
	free(xml);
}

/* The header promises three readouts and two come. */
static void partial_frames(void)
{
	static const struct {
		const char *chain;
		int status;
		int64_t n;
	} cases[] = {
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct", FX_OK, 1},
		{"trajectory unit=cycles_per_voxel | mu | fhd method=direct partial=refuse", FX_EDATA, 0},
	};
	char *xml = harness_header(matrix, (double[]){90, 80, 5}, "other", 3);

	for (size_t i = 0; i < 2; i++) {
		fx_msg *in[] = {readout(0, 0, 0), readout(1, 0, 0)};
		harness h;

		harness_run(&h, cases[i].chain, xml, in, 2);
		CU_ASSERT_EQUAL(h.status, cases[i].status);
		CU_ASSERT_EQUAL(h.n_out, cases[i].n);
		if (h.n_out == 1) {
			CU_ASSERT_TRUE(fx_msg_frame(h.out[0])->partial);
			CU_ASSERT(harness_warned(&h, "cut short"));
		} else {
			CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "partial=emit"));
		}
		harness_free(&h);
	}
	free(xml);
}

/* Iterative weights come when the frame is whole: the kept samples are weighed then. */
static void weighted_sum(void)
{
	fx_msg *in[] = {readout(0, 0, 0), readout(1, 0, 0)};
	char *xml = header();
	double norm2;
	fx_array *want;
	harness h;

	harness_run(&h, "trajectory unit=cycles_per_voxel | density method=pipe_menon iterations=3 | mu | fhd method=direct", xml, in,
		2);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	const fx_frame *f = fx_msg_frame(h.out[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->weights);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->direct);
	want = expected((uint64_t[]){0, 1}, 2, FX_F32_OF(f->weights), &norm2);
	CU_ASSERT(distance(f->direct, want) < 2e-6);
	fx_array_unref(want);
	check_frame(&h, 0, (uint64_t[]){0, 1}, 2, 2e-6);
	harness_free(&h);
	free(xml);
}

/* Calibration readouts make a frame of their own before the image's. */
static void calibration_is_a_frame_of_its_own(void)
{
	fx_msg *in[] = {readout(7, 0, 0), readout(0, 0, 0), readout(1, 0, 0)};
	char *xml = header();
	harness h;

	fx_msg_acquisition(in[0])->head.flags = UINT64_C(1) << (ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1);
	harness_run(&h, ways[0].chain, xml, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	CU_ASSERT_TRUE(fx_msg_frame(h.out[0])->calibration);
	check_frame(&h, 0, (uint64_t[]){7}, 1, 2e-6);
	CU_ASSERT_FALSE(fx_msg_frame(h.out[1])->calibration);
	check_frame(&h, 1, (uint64_t[]){0, 1}, 2, 2e-6);
	harness_free(&h);
	free(xml);
}

static void wrong_inputs(void)
{
	fx_msg *coils[] = {readout(0, 0, 0), harness_acquisition(SAMPLES, 3, 2)};
	char *xml = header();
	harness h;

	harness_run(&h, ways[0].chain, xml, coils, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "3 coils, those before it 2"));
	harness_free(&h);
	harness_run(&h, "trajectory | mu | fhd tolerance=1e-8", xml, NULL, 0);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "precision=double"));
	harness_free(&h);
	free(xml);
}

static CU_TestInfo tests[] = {
	{"interleaved slices, by every method", interleaved_slices},
	{"a counter that moves on closes a frame", a_counter_that_moves_on_closes},
	{"sliding window", sliding_window},
	{"frames cut short", partial_frames},
	{"the weighted sum of kept samples", weighted_sum},
	{"calibration is a frame of its own", calibration_is_a_frame_of_its_own},
	{"wrong inputs", wrong_inputs},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_fhd = {"fhd", NULL, NULL, NULL, NULL, tests};

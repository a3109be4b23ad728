/* SPDX-License-Identifier: MIT */
/* tensor_fit in the engine: what it gives, says and records. The numbers themselves are tests/unit/test_fit.c's. */
#include "gadgets/harness.h"
#include "unit/fit_reference.h"

enum { N = 20, VOXELS = 60 };

static const int64_t dims[3] = {5, 4, 3};
static const double one_shell[] = {1000}, two_shells[] = {1000, 3000};

/* A series of random tensors as messages, its end mark last; the table and the messages are the caller's. */
static fx_series_info *series(const double *b, int n_shells, double noise, fx_msg *messages[N + 1], double *truth)
{
	fx_series_info *info = table_of(N, 2, b, n_shells, dims);
	fx_array **volumes = series_of(info, 900, noise, 31, truth);

	for (int64_t i = 0; i <= N; i++) {
		fx_series *s;

		messages[i] = fx_msg_new(FX_SERIES);
		s = fx_msg_series(messages[i]);
		s->info = fx_series_info_ref(info);
		s->end = i == N;
		s->volume = i == N ? -1 : i;
		s->data = i == N ? NULL : fx_array_ref(volumes[i]);
	}
	free_series(volumes, N);
	return info;
}

static float *volume_of(fx_msg *m)
{
	return FX_F32_OF(fx_msg_series(m)->data);
}

static void tensors_come_at_the_end(void)
{
	double truth[6 * VOXELS];
	fx_msg *messages[N + 1];
	fx_series_info *info = series(one_shell, 1, 0, messages, truth);
	harness h;

	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	fx_tensors *t = fx_msg_tensors(h.out[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	for (int i = 0; i < 6 * VOXELS; i++)
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t->d)[i], truth[i], 4e-6);
	CU_ASSERT_EQUAL(t->fit, FX_FIT_WLS);
	CU_ASSERT_EQUAL(t->caveats, 0);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "shells_used", 0), "b 0 (2), 1000 (18)");
	CU_ASSERT_EQUAL(harness_count(&h, 0, "voxels"), VOXELS);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "clamped"), 0);
	CU_ASSERT(harness_number(&h, 0, "seconds_to_final", 0) >= 0);
	CU_ASSERT_EQUAL(h.n_warnings, 0);
	harness_free(&h);
	fx_series_info_unref(info);
}

static void provisional_tensors_come_first(void)
{
	fx_msg *messages[N + 1];
	fx_series_info *info = series(one_shell, 1, 0.02, messages, NULL);
	harness h;

	harness_run(&h, "tensor_fit provisional=true reweightings=1 start=ols", NULL, messages, N + 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
	CU_ASSERT(fx_msg_tensors(h.out[0])->provisional && fx_msg_tensors(h.out[0])->fit == FX_FIT_OLS);
	CU_ASSERT(!fx_msg_tensors(h.out[1])->provisional && fx_msg_tensors(h.out[1])->fit == FX_FIT_WLS);
	/* near each other, and not the same */
	double d = distance(fx_msg_tensors(h.out[0])->d, fx_msg_tensors(h.out[1])->d);
	CU_ASSERT(d > 1e-4 && d < 0.1);
	CU_ASSERT(harness_number(&h, 0, "seconds_to_provisional", 0) <= harness_number(&h, 0, "seconds_to_final", 0));
	harness_free(&h);
	fx_series_info_unref(info);
	info = series(one_shell, 1, 0.02, messages, NULL);
	harness_run(&h, "tensor_fit provisional=true method=ols", NULL, messages, N + 1); /* which is final */
	CU_ASSERT_EQUAL(h.n_out, 1);
	harness_free(&h);
	fx_series_info_unref(info);
}

static void shells_run(const char *chain, const char *used)
{
	fx_msg *messages[N + 1];
	fx_series_info *info = series(two_shells, 2, 0, messages, NULL);
	harness h;

	harness_run(&h, chain, NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "shells_used", 0), used);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "shells", 0), "b 0 (2), 1000 (9), 3000 (9)");
	harness_free(&h);
	fx_series_info_unref(info);
}

static void shells_are_chosen(void)
{
	const double high[] = {2000};
	fx_msg *messages[N + 1];
	fx_series_info *info;
	harness h;

	shells_run("tensor_fit", "b 0 (2), 1000 (9)");
	shells_run("tensor_fit b_max=5000", "b 0 (2), 1000 (9), 3000 (9)");
	shells_run("tensor_fit b_min=2000 b_max=5000", "b 0 (2), 3000 (9)");
	shells_run("tensor_fit b_min=2000", "b 0 (2), 3000 (9)"); /* below 1500 nothing is left */
	info = series(high, 1, 0, messages, NULL);
	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "shells_used", 0), "b 0 (2), 2000 (18)");
	harness_free(&h);
	fx_series_info_unref(info);
	info = series(high, 1, 0, messages, NULL);
	harness_run(&h, "tensor_fit b_max=1000", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "b 0 (2), 2000 (18) it has b 0 (2)"));
	harness_free(&h);
	fx_series_info_unref(info);
}

static void mask_and_caveats_are_kept(void)
{
	fx_msg *messages[N + 1];
	fx_series_info *info = series(one_shell, 1, 0, messages, NULL);
	fx_series *end = fx_msg_series(messages[N]);
	harness h;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, dims, &end->mask), FX_OK);
	((uint8_t *)end->mask->data)[7] = 1;
	end->caveats = FX_CAVEAT_SHOT_PHASE;
	harness_run(&h, "tensor_fit method=ols", NULL, messages, N + 1);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	fx_tensors *t = fx_msg_tensors(h.out[0]);
	for (int v = 0; v < VOXELS; v++)
		CU_ASSERT_EQUAL(((uint8_t *)t->mask->data)[v], v == 7);
	CU_ASSERT_EQUAL(t->caveats, FX_CAVEAT_SHOT_PHASE);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "voxels"), 1);
	harness_free(&h);
	fx_series_info_unref(info);
}

static void poor_data_are_told(void)
{
	fx_msg *messages[N + 1];
	fx_series_info *info = series(one_shell, 1, 0, messages, NULL);
	harness h;

	memset(volume_of(messages[4]), 0, VOXELS * sizeof(float)); /* one volume of zeros */
	volume_of(messages[9])[3] = NAN;
	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT(harness_warned(&h, "1 volume without a positive signal, the first is volume 4"));
	CU_ASSERT_EQUAL(harness_count(&h, 0, "dropped"), VOXELS);
	CU_ASSERT_EQUAL(harness_count(&h, 0, "unfitted"), 0);
	harness_free(&h);
	fx_series_info_unref(info);

	info = series(one_shell, 1, 0, messages, NULL);
	for (int i = 1; i < N; i++) /* all volumes the same */
		memcpy(volume_of(messages[i]), volume_of(messages[0]), VOXELS * sizeof(float));
	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT(harness_warned(&h, "all volumes are the same"));
	CU_ASSERT_EQUAL(harness_count(&h, 0, "isotropic"), VOXELS);
	harness_free(&h);
	fx_series_info_unref(info);

	info = series(one_shell, 1, 0, messages, NULL);
	for (int i = 0; i < N; i++) /* nothing anywhere */
		memset(volume_of(messages[i]), 0, VOXELS * sizeof(float));
	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "no voxel could be fitted"));
	harness_free(&h);
	fx_series_info_unref(info);

	info = series(one_shell, 1, 0, messages, NULL);
	for (int i = 0; i < 2; i++) /* b0 below all others: D is negative */
		for (int v = 0; v < VOXELS; v++)
			volume_of(messages[i])[v] = 20;
	harness_run(&h, "tensor_fit", NULL, messages, N + 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT(harness_warned(&h, "there is no mask"));
	CU_ASSERT(harness_count(&h, 0, "clamped") > VOXELS / 2);
	harness_free(&h);
	fx_series_info_unref(info);
}

static void broken_series(void)
{
	fx_msg *messages[N + 1], *again[2];
	fx_series_info *info = series(one_shell, 1, 0, messages, NULL);
	harness h;

	fx_drop(messages[N]); /* no end mark, and volumes missing: what came is fitted */
	fx_drop(messages[N - 1]);
	harness_run(&h, "tensor_fit", NULL, messages, N - 1);
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 1);
	CU_ASSERT_EQUAL(fx_msg_tensors(h.out[0])->caveats, FX_CAVEAT_PARTIAL);
	CU_ASSERT(harness_warned(&h, "only 19 of 20 volumes came"));
	harness_free(&h);
	fx_series_info_unref(info);

	info = series(one_shell, 1, 0, messages, NULL);
	for (int i = 5; i <= N; i++)
		fx_drop(messages[i]);
	harness_run(&h, "tensor_fit", NULL, messages, 5); /* too few: a warning, for the run did not fail here */
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 0);
	CU_ASSERT(harness_warned(&h, "do not determine a tensor"));
	harness_free(&h);
	fx_series_info_unref(info);

	info = series(one_shell, 1, 0, messages, NULL);
	again[0] = fx_msg_ref(messages[N]);
	for (int i = 0; i <= N; i++)
		fx_drop(messages[i]);
	harness_run(&h, "tensor_fit", NULL, again, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "ended without a volume"));
	harness_free(&h);
	fx_series_info_unref(info);
}

static CU_TestInfo tests[] = {
	{"tensors come at the end", tensors_come_at_the_end},
	{"provisional tensors come first", provisional_tensors_come_first},
	{"shells are chosen", shells_are_chosen},
	{"mask and caveats are kept", mask_and_caveats_are_kept},
	{"poor data are told", poor_data_are_told},
	{"broken series", broken_series},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_tensor_fit = {"tensor_fit", NULL, NULL, NULL, NULL, tests};

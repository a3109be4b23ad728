/* SPDX-License-Identifier: MIT */
/* What surrounds a tensor fit: volumes in any order, provisional tensors, shells, refusals. */
#include "fit_reference.h"

static const double one_shell[] = {1000}, two_shells[] = {1000, 2000};
static const int64_t small[3] = {9, 7, 5};

/* Sums give the tensors that a fit over the series gives; with volumes missing, those of a fit of the rest. */
static void sums_are_the_ols_fit(void)
{
	fx_series_info *info = table_of(30, 2, two_shells, 2, small);
	fx_array **volumes = series_of(info, 700, 0.02, 12, NULL);
	fx_fit_spec spec = {.method = FX_FIT_OLS, .b0_max = 50, .stream = true, .floor = 0.05};
	fx_math *m = math_of(2);

	FX_F32_OF(volumes[3])[17] = NAN; /* one voxel that is not in the sums alone */
	FX_F32_OF(volumes[29])[200] = 0;
	for (int missing = 0; missing < 20; missing += 9) {
		fx_fit *f = NULL;
		fx_msg *sums = NULL, *all = NULL;

		CU_ASSERT_EQUAL_FATAL(fx_fit_new(m, info, &spec, &f), FX_OK);
		for (int64_t i = 0; i < 30; i++) {
			int64_t volume = (7 * i + 3) % 30; /* any order */

			if (volume >= missing || volume == 0)
				CU_ASSERT_EQUAL_FATAL(fx_fit_add(f, volume, volumes[volume]), FX_OK);
		}
		CU_ASSERT_EQUAL_FATAL(fx_fit_provisional(f, NULL, &sums), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_fit_finish(f, NULL, FX_CAVEAT_PARTIAL, &all), FX_OK);
		/* sums of 30 terms up to 7 in single; the 12 directions left at last lie within 40 degrees of a plane, which magnifies it */
		CU_ASSERT(distance(fx_msg_tensors(sums)->d, fx_msg_tensors(all)->d) < (missing < 18 ? 5e-6 : 1e-4));
		CU_ASSERT(distance(fx_msg_tensors(sums)->s0, fx_msg_tensors(all)->s0) < (missing < 18 ? 5e-6 : 1e-4));
		CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(sums)->flags->data, fx_msg_tensors(all)->flags->data, 9 * 7 * 5), 0);
		CU_ASSERT_EQUAL(((uint8_t *)fx_msg_tensors(sums)->flags->data)[200] & FX_TENSOR_DROPPED, FX_TENSOR_DROPPED);
		CU_ASSERT(fx_msg_tensors(sums)->provisional && !fx_msg_tensors(all)->provisional);
		CU_ASSERT_PTR_NULL(fx_msg_tensors(sums)->residual);
		CU_ASSERT_EQUAL(fx_msg_tensors(all)->caveats, FX_CAVEAT_PARTIAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(fx_msg_tensors(all)->origin, "OLS fit of b 0 ("));
		fx_drop(sums);
		fx_drop(all);
		fx_fit_free(f);
	}
	fx_math_free(m);
	free_series(volumes, 30);
	fx_series_info_unref(info);
}

static void complex_volumes_count_by_magnitude(void)
{
	fx_series_info *info = table_of(14, 1, one_shell, 1, small);
	fx_array **volumes = series_of(info, 700, 0.02, 2, NULL), **complex_ones = fx_alloc(14, sizeof *volumes);
	fx_fit_spec spec = {.method = FX_FIT_WLS, .reweightings = 2, .b0_max = 50};
	fx_msg *a, *b;
	uint64_t seed = 8;

	for (int i = 0; i < 14; i++) {
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, small, &complex_ones[i]), FX_OK);
		for (int64_t v = 0; v < volumes[i]->n; v++) {
			double s = FX_F32_OF(volumes[i])[v], angle = 3 * random_next(&seed);

			FX_CF32_OF(complex_ones[i])[v] = FX_CF32(s * cos(angle), s * sin(angle));
		}
	}
	a = finished(info, volumes, &spec, NULL, 2);
	b = finished(info, complex_ones, &spec, NULL, 2);
	CU_ASSERT(distance(fx_msg_tensors(a)->d, fx_msg_tensors(b)->d) < 1e-6);
	fx_drop(a);
	fx_drop(b);
	free_series(volumes, 14);
	free_series(complex_ones, 14);
	fx_series_info_unref(info);
}

static void bounds_choose_shells(void)
{
	const double b[] = {990, 1010, 2000, 3000};
	fx_series_info *info = table_of(42, 2, b, 4, small);
	const struct { double b_min, b_max; const char *used; } cases[] = {
		{0, 0, "b 0 (2), 1000 (20), 2000 (10), 3000 (10)"}, {0, 1500, "b 0 (2), 1000 (20)"}, {0, 1000, "b 0 (2), 1000 (20)"},
		{1500, 0, "b 0 (2), 2000 (10), 3000 (10)"}, {2000, 2000, "b 0 (2), 2000 (10)"},
	};
	fx_math *m = math_of(1);
	char text[100], cut[20];

	info->gradients[1].b = 5;
	info->gradients[1].dir[0] = 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_fit_spec spec = {.method = FX_FIT_OLS, .b0_max = 50, .b_min = cases[i].b_min, .b_max = cases[i].b_max};
		fx_fit *f = NULL;

		CU_ASSERT_EQUAL_FATAL(fx_fit_new(m, info, &spec, &f), FX_OK);
		fx_fit_shells_text(f, text, sizeof text);
		CU_ASSERT_STRING_EQUAL(text, cases[i].used);
		fx_fit_free(f);
	}
	fx_shells_text(info, 50, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, cases[0].used);
	fx_shells_text(info, 0, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "b 0 (1), 5 (1), 1000 (20), 2000 (10), 3000 (10)");
	fx_shells_text(info, 50, cut, sizeof cut);
	CU_ASSERT_STRING_EQUAL(cut, "b 0 (2), ...");
	fx_math_free(m);
	fx_series_info_unref(info);
}

/* A volume that is not used changes nothing, whatever is in it. */
static void unused_volumes_are_let_go(void)
{
	fx_series_info *info = table_of(33, 3, two_shells, 2, small);
	fx_array **volumes = series_of(info, 700, 0.02, 2, NULL);
	fx_fit_spec spec = {.method = FX_FIT_OLS, .b0_max = 50, .b_max = 1500};
	fx_msg *a = finished(info, volumes, &spec, NULL, 2), *b;

	for (int64_t i = 3; i < 33; i++)
		if (info->gradients[i].b > 1500)
			for (int64_t v = 0; v < volumes[i]->n; v++)
				FX_F32_OF(volumes[i])[v] = NAN;
	b = finished(info, volumes, &spec, NULL, 2);
	CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(a)->d->data, fx_msg_tensors(b)->d->data, (size_t)fx_msg_tensors(a)->d->bytes), 0);
	fx_drop(a);
	fx_drop(b);
	free_series(volumes, 33);
	fx_series_info_unref(info);
}

static void refused(fx_series_info *info, const fx_fit_spec *spec, const char *text)
{
	fx_math *m = math_of(1);
	fx_fit *f = (fx_fit *)1;

	CU_ASSERT_EQUAL(fx_fit_new(m, info, spec, &f), FX_EDATA);
	CU_ASSERT_PTR_NULL(f);
	CU_ASSERT_PTR_NOT_NULL(strstr(m->err->text, text));
	if (!strstr(m->err->text, text))
		fprintf(stderr, "'%s' lacks '%s'\n", m->err->text, text);
	fx_math_free(m);
}

static void poor_tables_are_refused(void)
{
	fx_fit_spec spec = {.method = FX_FIT_WLS, .b0_max = 50};
	fx_series_info *info = table_of(20, 0, one_shell, 1, small);

	refused(info, &spec, "two b-values or more; of the table's b 1000 (20) it has b 1000 (20)");
	info->gradients[0].b = 0;
	for (int i = 1; i < 20; i++) /* all in one plane */
		info->gradients[i] = (fx_gradient){1000, {cos(i), sin(i), 0}};
	refused(info, &spec, "rank is 4 of 7");
	for (int i = 1; i < 20; i++) /* on a cone about z: g_z^2 is a multiple of |g|^2, but then S0 and traces still differ by b0 */
		info->gradients[i] = (fx_gradient){1000, {0.6 * cos(i), 0.6 * sin(i), 0.8}};
	refused(info, &spec, "rank is 6 of 7");
	for (int i = 1; i < 20; i++) /* five directions, each often */
		info->gradients[i] = (fx_gradient){1000, {sin(i % 5 + 0.2) * cos(i % 5), sin(i % 5 + 0.2) * sin(i % 5), cos(i % 5 + 0.2)}};
	refused(info, &spec, "rank is 6 of 7");
	fx_series_info_unref(info);
	info = table_of(6, 1, one_shell, 1, small);
	refused(info, &spec, "rank is");
	fx_series_info_unref(info);
	info = table_of(30, 2, two_shells, 1, small);
	spec.b_min = 3000;
	refused(info, &spec, "of the table's b 0 (2), 1000 (28) it has b 0 (2)");
	fx_series_info_unref(info);
	info = table_of(0, 0, one_shell, 1, small);
	refused(info, &spec, "it has no volumes");
	fx_series_info_unref(info);
}

static void wrong_volumes_are_refused(void)
{
	fx_series_info *info = table_of(14, 1, one_shell, 1, small);
	const int64_t other[3] = {9, 7, 4};
	fx_array **volumes = series_of(info, 700, 0.02, 2, NULL), *wrong = NULL, *mask = NULL;
	fx_fit_spec spec = {.method = FX_FIT_OLS, .b0_max = 50};
	fx_math *m = math_of(1);
	fx_msg *out = NULL;
	fx_fit *f = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_fit_new(m, info, &spec, &f), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_add(f, 14, volumes[0]), FX_EDATA);
	CU_ASSERT_EQUAL(fx_fit_add(f, -1, volumes[0]), FX_EDATA);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, other, &wrong), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_add(f, 0, wrong), FX_EDATA);
	fx_array_unref(wrong);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F64, 3, small, &wrong), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_add(f, 0, wrong), FX_EDATA);
	fx_array_unref(wrong);
	CU_ASSERT_EQUAL(fx_fit_add(f, 0, volumes[0]), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_add(f, 0, volumes[0]), FX_EDATA);
	for (int64_t i = 1; i < 6; i++)
		CU_ASSERT_EQUAL(fx_fit_add(f, i, volumes[i]), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_finish(f, NULL, 0, &out), FX_EDATA); /* six volumes do not do */
	CU_ASSERT_EQUAL(fx_fit_provisional(f, NULL, &out), FX_EDATA);
	CU_ASSERT_PTR_NULL(out);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, other, &mask), FX_OK);
	CU_ASSERT_EQUAL(fx_fit_finish(f, mask, 0, &out), FX_EINVAL);
	fx_array_unref(mask);
	fx_fit_free(f);
	fx_math_free(m);
	free_series(volumes, 14);
	fx_series_info_unref(info);
}

static bool at_once(const void *arg)
{
	(void)arg;
	return true;
}

static void a_stopped_fit_ends(void)
{
	fx_series_info *info = table_of(14, 1, one_shell, 1, small);
	fx_array **volumes = series_of(info, 700, 0.02, 2, NULL);
	fx_fit_spec spec = {.method = FX_FIT_OLS, .b0_max = 50};
	fx_math *m = math_of(1);
	fx_fit *f = fit_of(m, info, volumes, &spec);
	fx_msg *out = NULL;

	m->stopped = at_once;
	CU_ASSERT_EQUAL(fx_fit_finish(f, NULL, 0, &out), FX_ECANCELED);
	CU_ASSERT_PTR_NULL(out);
	fx_fit_free(f);
	fx_math_free(m);
	free_series(volumes, 14);
	fx_series_info_unref(info);
}

static CU_TestInfo tests[] = {
	{"running sums give the OLS fit, also of a part", sums_are_the_ols_fit},
	{"complex volumes count by magnitude", complex_volumes_count_by_magnitude},
	{"bounds choose shells", bounds_choose_shells},
	{"volumes outside the bounds are let go", unused_volumes_are_let_go},
	{"tables that determine no tensor are refused", poor_tables_are_refused},
	{"volumes that do not belong are refused", wrong_volumes_are_refused},
	{"a fit that is stopped ends", a_stopped_fit_ends},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_fit_stream = {"fit_stream", NULL, NULL, NULL, NULL, tests};

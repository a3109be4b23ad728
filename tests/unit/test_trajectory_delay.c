/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "recon/phantom.h"

#include <fornix/fornix.h>

static void parses(void)
{
	static const char *const bad[] = {"", "1,2", "1,2,3,4", "x", "1,,2", "nan", "1,2,3 "};
	double us[3];

	CU_ASSERT_EQUAL(fx_delay_parse("1.5", NULL, us), FX_OK);
	CU_ASSERT(us[0] == 1.5 && us[1] == 1.5 && us[2] == 1.5);
	CU_ASSERT_EQUAL(fx_delay_parse("1,-2.5,0", NULL, us), FX_OK);
	CU_ASSERT(us[0] == 1 && us[1] == -2.5 && us[2] == 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CU_ASSERT_EQUAL(fx_delay_parse(bad[i], NULL, us), FX_EINVAL);
}

/* The nominal trajectory, shifted, against the one that is travelled. */
static double shift_error(fxi_sampling s, const double shift[3])
{
	fx_math *m = math_of(1);
	fx_acquisition a = {0};
	fxi_sampling late;
	double worst = 0, *k;
	int64_t step[2];

	if (fxi_sampling_complete(&s, NULL) != FX_OK || fx_array_new2(FX_F64, 3, s.n_samples, &a.k) != FX_OK)
		CU_FAIL_FATAL("no trajectory");
	late = s;
	memcpy(late.shift, shift, sizeof late.shift);
	k = fx_alloc(3 * s.n_samples, sizeof *k);
	fxi_sampling_readout(&s, 3, FX_F64_OF(a.k), step);
	fxi_sampling_readout(&late, 3, k, step);
	CU_ASSERT_EQUAL(fx_trajectory_delay(m, &a, shift), FX_OK);
	for (int64_t i = 0; i < 3 * s.n_samples; i++)
		worst = fmax(worst, fabs(k[i] - FX_F64_OF(a.k)[i]));
	fx_array_unref(a.k);
	fx_free(k);
	fx_math_free(m);
	return worst;
}

static void shifts(void)
{
	const double shift[3] = {0.7, -1.3, 0.4};
	fxi_sampling radial = {.kind = FXI_RADIAL, .matrix = {64, 64, 1}}, volume = {.kind = FXI_RADIAL3D, .matrix = {16, 16, 16}};
	fxi_sampling spiral = {.kind = FXI_SPIRAL, .matrix = {64, 64, 1}};

	/* straight lines are met exactly, beyond their ends too */
	CU_ASSERT(shift_error(radial, shift) < 1e-14);
	CU_ASSERT(shift_error(volume, shift) < 1e-14);
	/* a spiral bends, most at its start, where the cubic through samples a radian apart is off by a tenth of their distance */
	CU_ASSERT(shift_error(spiral, shift) < 0.1 / 96);
}

static fx_acquisition *scan_of(fxi_sampling *s, int64_t coils, const double shift[3])
{
	fxi_phantom *p = NULL;
	fxi_coils *c = NULL;
	fx_acquisition *list;

	if (fxi_sampling_complete(s, NULL) != FX_OK || fxi_phantom_shepp_logan(s->n_k_dims, s->matrix, NULL, &p) != FX_OK ||
		fxi_coils_new(coils, s->n_k_dims, s->matrix, NULL, &c) != FX_OK)
		CU_FAIL_FATAL("no phantom");
	list = fx_alloc(s->n_readouts, sizeof *list);
	for (int64_t i = 0; i < s->n_readouts; i++) {
		fxi_sampling late = *s;
		int64_t step[2];

		memcpy(late.shift, shift, sizeof late.shift);
		if (fx_array_new2(FX_F64, 3, s->n_samples, &list[i].k) != FX_OK ||
			fx_array_new2(FX_CF32, s->n_samples, coils, &list[i].data) != FX_OK)
			CU_FAIL_FATAL("no memory");
		fxi_sampling_readout(&late, i, FX_F64_OF(list[i].k), step);
		fxi_phantom_samples(p, c, FX_F64_OF(list[i].k), s->n_samples, 1, 1, NULL, FX_CF32_OF(list[i].data));
		fxi_sampling_readout(s, i, FX_F64_OF(list[i].k), step);
	}
	fxi_phantom_free(p);
	fxi_coils_free(c);
	return list;
}

static fx_delay_report estimate(fxi_sampling s, int64_t coils, const double shift[3])
{
	fx_acquisition *list = scan_of(&s, coils, shift), **pointers = fx_alloc(s.n_readouts, sizeof *pointers);
	fx_math *m = math_of(1);
	fx_delay_report report;

	for (int64_t i = 0; i < s.n_readouts; i++)
		pointers[i] = &list[i];
	if (s.n_readouts > 0 && fx_delay_estimate(m, pointers, s.n_readouts, &report) != FX_OK)
		CU_FAIL_FATAL("no estimate");
	for (int64_t i = 0; i < s.n_readouts; i++) {
		fx_array_unref(list[i].k);
		fx_array_unref(list[i].data);
	}
	fx_free(list);
	fx_free(pointers);
	fx_math_free(m);
	return report;
}

static void finds_them(void)
{
	fxi_sampling flat = {.kind = FXI_RADIAL, .matrix = {64, 64, 1}, .n_readouts = 40, .full_turn = true};
	fxi_sampling odd = {.kind = FXI_RADIAL, .matrix = {63, 63, 1}, .n_readouts = 40, .n_samples = 101, .full_turn = true};
	fxi_sampling volume = {.kind = FXI_RADIAL3D, .matrix = {24, 24, 24}, .n_readouts = 200, .full_turn = true};
	const double same[3] = {0.6, 0.6, 0.6}, apart[3] = {0.6, -0.25, 0.375}, none[3] = {0};
	const fxi_sampling scans[] = {flat, odd, volume};

	for (int i = 0; i < 3; i++)
		for (int64_t coils = 1; coils <= 4; coils += 3) {
			fx_delay_report r = estimate(scans[i], coils, same);
			int axes = i == 2 ? 3 : 2;

			CU_ASSERT_EQUAL(r.n_pairs, scans[i].n_readouts / 2);
			/* alike delays move spokes along themselves: what is left is the cut ends of the readout */
			for (int d = 0; d < axes; d++) {
				CU_ASSERT_TRUE(r.known[d]);
				CU_ASSERT_DOUBLE_EQUAL(r.shift[d], 0.6, 0.01);
			}
			CU_ASSERT_EQUAL(r.known[2], axes == 3);
			r = estimate(scans[i], coils, none);
			for (int d = 0; d < 3; d++)
				CU_ASSERT_DOUBLE_EQUAL(r.shift[d], 0, 1e-3);
			/* unlike ones move them sideways as well, which first order leaves out: a tenth of the largest difference, 0.85 */
			r = estimate(scans[i], coils, apart);
			for (int d = 0; d < axes; d++)
				CU_ASSERT_DOUBLE_EQUAL(r.shift[d], apart[d], 0.1);
		}
}

static void says_when_it_cannot(void)
{
	const double shift[3] = {0.5, 0.5, 0.5};
	fxi_sampling half = {.kind = FXI_RADIAL, .matrix = {32, 32, 1}, .n_readouts = 20};
	fxi_sampling one = {.kind = FXI_RADIAL, .matrix = {32, 32, 1}, .n_readouts = 2, .full_turn = true};
	fxi_sampling spiral = {.kind = FXI_SPIRAL, .matrix = {32, 32, 1}};
	fx_delay_report r = estimate(half, 1, shift);

	CU_ASSERT_EQUAL(r.n_spokes, 20);
	CU_ASSERT_EQUAL(r.n_pairs, 0);
	CU_ASSERT_FALSE(r.known[0] || r.known[1] || r.known[2]);
	r = estimate(spiral, 1, shift);
	CU_ASSERT_EQUAL(r.n_spokes, 0);
	/* one pair along x tells of x alone */
	r = estimate(one, 1, shift);
	CU_ASSERT_EQUAL(r.n_pairs, 1);
	CU_ASSERT_TRUE(r.known[0]);
	CU_ASSERT_FALSE(r.known[1]);
	CU_ASSERT_DOUBLE_EQUAL(r.shift[0], 0.5, 0.01);
}

static CU_TestInfo tests[] = {
	{"delay_us", parses},
	{"shifts a trajectory", shifts},
	{"finds simulated delays", finds_them},
	{"says when it cannot", says_when_it_cannot},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_trajectory_delay = {"trajectory_delay", NULL, NULL, NULL, NULL, tests};

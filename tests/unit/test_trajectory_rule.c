/* SPDX-License-Identifier: MIT */
#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "recon/phantom.h"

#include <fornix/fornix.h>

/* f32 numbers up to 0.5 cycles/voxel are rounded by at most half of 2^-25 */
#define ROUNDING 3.1e-8

static fx_encoding encoding_of(int64_t n, int64_t nz, int64_t spokes)
{
	fx_encoding e = {.encoded = {.matrix = {n, n, nz}}};

	if (spokes > 0)
		e.limits[FX_STEP_1] = (fx_limit){true, 0, spokes - 1, spokes / 2};
	if (nz > 1)
		e.limits[FX_STEP_2] = (fx_limit){true, 0, nz - 1, nz / 2};
	return e;
}

static fx_acquisition readout_of(int64_t samples, int64_t step_1, int64_t step_2)
{
	fx_acquisition a = {0};

	if (fx_array_new2(FX_CF32, samples, 1, &a.data) != FX_OK)
		CU_FAIL_FATAL("no memory");
	a.head.center_sample = (uint16_t)(samples / 2);
	a.head.idx.kspace_encode_step_1 = (uint16_t)step_1;
	a.head.idx.kspace_encode_step_2 = (uint16_t)step_2;
	return a;
}

/* Every readout of a test scan against the rule's. */
static void same_as_phantom(fxi_sampling s, const fx_encoding *e, const fx_rule_options *options)
{
	fx_math *m = math_of(1);
	fx_error err = {0};
	fx_rule *rule = NULL;
	double *k;

	CU_ASSERT_EQUAL_FATAL(fxi_sampling_complete(&s, &err), FX_OK);
	k = fx_alloc(3 * s.n_samples, sizeof *k);
	if (fx_rule_new(e, options, &err, &rule) != FX_OK)
		CU_FAIL_FATAL("no rule");
	for (int64_t i = 0; i < s.n_readouts; i++) {
		int64_t step[2];
		double worst = 0;

		fxi_sampling_readout(&s, i, k, step);
		fx_acquisition a = readout_of(s.n_samples, step[0], step[1]);

		CU_ASSERT_EQUAL_FATAL(fx_rule_readout(rule, m, &a), FX_OK);
		for (int64_t j = 0; j < s.n_samples; j++)
			for (int64_t d = 0; d < a.traj->dims[0]; d++)
				worst = fmax(worst, fabs((double)FX_F32_OF(a.traj)[d + a.traj->dims[0] * j] - k[3 * j + d]));
		CU_ASSERT(worst < ROUNDING);
		fx_array_unref(a.data);
		fx_array_unref(a.traj);
	}
	fx_rule_free(rule);
	fx_free(k);
	fx_math_free(m);
}

static void built_in_ones_are_the_phantoms(void)
{
	fx_encoding flat = encoding_of(32, 1, 20), stack = encoding_of(16, 6, 12), volume = encoding_of(16, 16, 0);
	fxi_sampling s = {.kind = FXI_RADIAL, .matrix = {32, 32, 1}, .n_readouts = 20};

	same_as_phantom(s, &flat, &(fx_rule_options){.kind = FX_RULE_RADIAL});
	s.full_turn = true;
	same_as_phantom(s, &flat, &(fx_rule_options){.kind = FX_RULE_RADIAL, .full_turn = true});
	s.golden = true;
	same_as_phantom(s, &flat, &(fx_rule_options){.kind = FX_RULE_GOLDEN});
	s = (fxi_sampling){.kind = FXI_STACK_OF_STARS, .matrix = {16, 16, 6}, .n_readouts = 12};
	same_as_phantom(s, &stack, &(fx_rule_options){.kind = FX_RULE_RADIAL});
	s = (fxi_sampling){.kind = FXI_RADIAL3D, .matrix = {16, 16, 16}, .n_readouts = 50, .golden = true};
	same_as_phantom(s, &volume, &(fx_rule_options){.kind = FX_RULE_GOLDEN3D});
}

static void spiral_by_its_description(void)
{
	fx_encoding e = encoding_of(32, 1, 4);
	fxi_sampling s = {.kind = FXI_SPIRAL, .matrix = {32, 32, 1}, .n_readouts = 4};
	fx_error err = {0};
	fx_rule *rule = NULL;

	CU_ASSERT_EQUAL(fx_rule_new(&e, &(fx_rule_options){.kind = FX_RULE_SPIRAL}, &err, &rule), FX_EDATA);
	CU_ASSERT_PTR_NULL(rule);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "`turns`"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "`equal_arcs`"));
	CU_ASSERT_PTR_NULL(strstr(err.text, "kspace_encoding_step_1"));
	CU_ASSERT_EQUAL_FATAL(fxi_sampling_complete(&s, &err), FX_OK);
	fx_param params[] = {{"turns", FX_PARAM_DOUBLE, fxi_spiral_turns(&s), "4"}, {"equal_arcs", FX_PARAM_LONG, 1, "1"}};

	e.description = (fx_params){2, params};
	same_as_phantom(s, &e, &(fx_rule_options){.kind = FX_RULE_SPIRAL});
	params[1].number = 2;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_rule_new(&e, &(fx_rule_options){.kind = FX_RULE_SPIRAL}, &err, &rule), FX_EDATA);
}

static void lists_what_is_missing(void)
{
	fx_encoding e = encoding_of(32, 1, 0), stack = encoding_of(16, 6, 0);
	fx_error err = {0};
	fx_rule *rule = NULL;

	CU_ASSERT_EQUAL(fx_rule_new(&e, &(fx_rule_options){.kind = FX_RULE_RADIAL}, &err, &rule), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kspace_encoding_step_1"));
	CU_ASSERT_EQUAL(fx_rule_new(&e, &(fx_rule_options){.kind = FX_RULE_RADIAL, .n_spokes = 8}, NULL, &rule), FX_OK);
	fx_rule_free(rule);
	stack.limits[FX_STEP_2].present = false;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_rule_new(&stack, &(fx_rule_options){.kind = FX_RULE_RADIAL}, &err, &rule), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kspace_encoding_step_1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "kspace_encoding_step_2"));
	CU_ASSERT_EQUAL(fx_rule_new(&e, &(fx_rule_options){.kind = FX_RULE_GOLDEN3D}, NULL, &rule), FX_EDATA);
}

static void tables(void)
{
	fx_encoding e = encoding_of(32, 1, 4);
	const double rows[] = {0.1, 0, 0.2, 0, 0.3, 0.1, 0.4, 0.1};
	fx_array *table = NULL, *one = NULL, *two = NULL;
	fx_rule_options o = {.kind = FX_RULE_TABLE, .name = "t.txt"};
	fx_math *m = math_of(1);
	fx_rule *rule = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 2, 4, &table), FX_OK);
	memcpy(table->data, rows, sizeof rows);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_I32, 1, &one), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_I32, 2, &two), FX_OK);
	((int32_t *)one->data)[0] = 4;
	((int32_t *)two->data)[0] = ((int32_t *)two->data)[1] = 2;
	o.table = table;

	/* one readout, turned by a quarter turn: (x, y) -> (-y, x) */
	fx_acquisition a = readout_of(4, 1, 0);

	o.lengths = one;
	CU_ASSERT_EQUAL_FATAL(fx_rule_new(&e, &o, NULL, &rule), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_rule_readout(rule, m, &a), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a.traj)[6], -0.1, ROUNDING);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a.traj)[7], 0.4, ROUNDING);
	fx_rule_free(rule);
	fx_array_unref(a.data);
	fx_array_unref(a.traj);

	/* every readout its own; a third one there is not, unless they are counted as they come */
	o.lengths = two;
	CU_ASSERT_EQUAL_FATAL(fx_rule_new(&e, &o, NULL, &rule), FX_OK);
	a = readout_of(2, 1, 0);
	CU_ASSERT_EQUAL_FATAL(fx_rule_readout(rule, m, &a), FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a.traj)[0], 0.3, ROUNDING);
	a.head.idx.kspace_encode_step_1 = 2;
	CU_ASSERT_EQUAL(fx_rule_readout(rule, m, &a), FX_EDATA);
	fx_rule_free(rule);
	o.index = FX_INDEX_ORDER;
	CU_ASSERT_EQUAL_FATAL(fx_rule_new(&e, &o, NULL, &rule), FX_OK);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(fx_rule_readout(rule, m, &a), FX_OK);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a.traj)[0], i == 1 ? 0.3 : 0.1, ROUNDING);
	}
	fx_rule_free(rule);
	fx_array_unref(a.data);
	fx_array_unref(a.traj);

	/* samples that do not match */
	a = readout_of(3, 0, 0);
	CU_ASSERT_EQUAL_FATAL(fx_rule_new(&e, &o, NULL, &rule), FX_OK);
	CU_ASSERT_EQUAL(fx_rule_readout(rule, m, &a), FX_EDATA);
	CU_ASSERT_PTR_NULL(a.traj);
	fx_rule_free(rule);
	fx_array_unref(a.data);
	fx_array_unref(table);
	fx_array_unref(one);
	fx_array_unref(two);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"built-in ones are the phantom's", built_in_ones_are_the_phantoms},
	{"a spiral by its description", spiral_by_its_description},
	{"lists what is missing", lists_what_is_missing},
	{"tables", tables},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_trajectory_rule = {"trajectory_rule", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/*
 * Fibres that `connect` cannot use are dropped by the tracker: what `connect` finds is the same with and without, whatever space the regions lie in,
 * and most of the rest is gone.
 */
#include "tracking.h"

#include <stdlib.h>

static int blocks(const int64_t v[3])
{
	return v[0] < 5 && v[1] < 30 ? 1 : v[0] > 26 && v[2] > 5 ? 2 : v[1] > 34 && v[2] < 4 ? 3 : 0;
}

static fx_regions *read_regions(const fx_lattice *l, const char *wanted)
{
	fx_array *image = NULL;
	fx_regions *r = NULL;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, l->dims, &image), FX_OK);
	for (int64_t i = 0; i < image->n; i++)
		FX_F32_OF(image)[i] = (float)blocks((int64_t[]){i % l->dims[0], i / l->dims[0] % l->dims[1], i / l->dims[0] / l->dims[1]});
	CU_ASSERT_EQUAL_FATAL(fx_regions_new(image, (const double (*)[4])l->affine, true, "blocks", wanted, FX_REGIONS_LABELS, &err, &r), FX_OK);
	fx_array_unref(image);
	return r;
}

/* Fibres of a metric, kept by the rule or not. */
static fx_msg *fibres_of(fx_math *m, fx_msg *metric, double step, const fx_regions *sources, const fx_regions *targets, int require, bool rule,
	int64_t *n_missed)
{
	const fx_track_spec spec = {.integrator = FX_INTEGRATOR_RK2, .step = step, .step_in_voxels = true, .max_steps = 300, .both_ways = true};
	fx_tracts_info *info = fx_tracts_info_new();
	double six[400 * 6];
	fx_array *seeds;
	fx_tracker *t = NULL;
	fx_msg *out = NULL;
	int64_t n_outside;
	uint64_t seed = 4;

	for (int i = 0; i < 400 * 6; i++)
		six[i] = random_next(&seed) * (i % 6 < 3 ? 0.7 : 1);
	seeds = seeds_of(400, six);
	CU_ASSERT_EQUAL_FATAL(fx_tracker_new(m, fx_msg_metric(metric), &spec, &t), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_tracker_info(t, info), FX_OK);
	if (rule)
		CU_ASSERT_EQUAL_FATAL(fx_tracker_keep(t, sources, targets, require), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_tracker_run(t, info, seeds, 0, &out, &n_outside), FX_OK);
	*n_missed = fx_tracker_missed(t);
	fx_tracker_free(t);
	fx_array_unref(seeds);
	fx_tracts_info_unref(info);
	return out;
}

/* What connect makes of them: points and counts. */
static fx_msg *connections(fx_math *m, fx_msg *tracts, const fx_regions *sources, const fx_regions *targets, int require, fx_connect_counts *counts)
{
	const fx_connect_spec spec = {.require = require, .best = 1000, .families = 1000, .resample = true, .degenerate = 0.05};
	fx_connect *c = NULL;
	fx_msg *out = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_connect_new(m, &spec, sources, targets, NULL, &c), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_connect_add(c, fx_msg_tracts(tracts)), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_connect_finish(c, 0), FX_OK);
	fx_connect_count(c, counts);
	CU_ASSERT_EQUAL_FATAL(fx_connect_next(c, &out), FX_OK);
	fx_connect_free(c);
	return out;
}

static bool same_bytes(const fx_array *a, const fx_array *b)
{
	return (!a && !b) || (a && b && fx_array_same_shape(a, b) && memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

static void connections_stay(void)
{
	const field f = {.d = bent};
	const fx_lattice here = straight(33, 38, 29, 0.05, -0.8, -0.9, -0.7);
	const double turned[3][3] = {{0.055, -0.02, 0}, {0.02, 0.05, 0.01}, {0, -0.01, 0.06}}, corner[3] = {-0.6, -1.3, -0.5};
	double axes[3][3];
	fx_math *m = math_of(2);
	fx_msg *metric = sampled_metric(m, &f, &here, &plain);
	fx_lattice spaces[2];

	memcpy(axes, turned, sizeof axes);
	spaces[0] = here;
	spaces[1] = lattice_of(31, 40, 25, axes, corner);
	for (int k = 0; k < 2; k++)
		for (int sourced = 0; sourced < 2; sourced++)
			for (int require = 0; require < 2; require++)
				for (int step = 0; step < 2; step++) { /* of less and of more than a voxel */
					fx_regions *targets = read_regions(&spaces[k], sourced ? "2" : "2, 3"), *sources = sourced ? read_regions(&spaces[k], "1") : NULL;
					fx_connect_counts all, some;
					int64_t none, missed;
					fx_msg *a = fibres_of(m, metric, step ? 1.7 : 0.3, sources, targets, require, false, &none);
					fx_msg *b = fibres_of(m, metric, step ? 1.7 : 0.3, sources, targets, require, true, &missed);
					fx_msg *p = connections(m, a, sources, targets, require, &all), *q = connections(m, b, sources, targets, require, &some);
					int64_t n_all = fx_msg_tracts(a)->n, n_some = fx_msg_tracts(b)->n;

					CU_ASSERT(none == 0 && missed > 0 && n_some + missed == n_all);
					CU_ASSERT(all.n_connected == some.n_connected && all.n_pairs == some.n_pairs && all.n_kept == some.n_kept);
					/* at least a third of what is left connects: grazed voxels, seeds within a target and orders that do not count are the rest */
					CU_ASSERT(all.n_connected > 0 || require == FX_REQUIRE_ALL);
					CU_ASSERT(3 * all.n_connected >= n_some || require == FX_REQUIRE_ALL || sourced);
					CU_ASSERT(same_bytes(fx_msg_tracts(p)->points, fx_msg_tracts(q)->points));
					CU_ASSERT(same_bytes(fx_msg_tracts(p)->seeds, fx_msg_tracts(q)->seeds));
					CU_ASSERT(same_bytes(fx_msg_tracts(p)->values, fx_msg_tracts(q)->values));
					fx_drop(a);
					fx_drop(b);
					fx_drop(p);
					fx_drop(q);
					fx_regions_free(targets);
					fx_regions_free(sources);
				}
	fx_drop(metric);
	fx_math_free(m);
}

/* The forms of a GPU are refused on the host, by name. */
static void forms_are_refused(void)
{
	fx_math *m = math_of(1);
	const field f = {.d = bent};
	const fx_lattice l = straight(5, 5, 5, 0.1, 0, 0, 0);
	fx_msg *metric = sampled_metric(m, &f, &l, &plain);
	fx_track_spec spec = steady;

	for (spec.form = -1; spec.form <= FX_N_TRACK_FORMS; spec.form++) {
		fx_tracker *t = NULL;
		int status = fx_tracker_new(m, fx_msg_metric(metric), &spec, &t);

		CU_ASSERT_EQUAL(status, spec.form < 0 || spec.form >= FX_N_TRACK_FORMS ? FX_EINVAL : spec.form <= FX_TRACK_FORM_KERNEL ? FX_OK : FX_ENOTSUP);
		CU_ASSERT(status != FX_ENOTSUP || strstr(m->err->text, "cuda"));
		m->err->status = FX_OK;
		fx_tracker_free(t);
	}
	fx_drop(metric);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"what connect finds is the same", connections_stay}, {"a GPU's forms are refused on the host", forms_are_refused}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_track_keep = {"fibres worth keeping", NULL, NULL, NULL, NULL, tests};

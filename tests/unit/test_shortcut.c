/* SPDX-License-Identifier: MIT */
/*
 * What the choice of metric does to ranks: a bundle bent round a lake of cerebrospinal fluid, a region at either end. Under D^-1 the way through
 * the lake is cheaper than white matter and ranks first; under adj D the bundle does, and a mask leaves the bundle alone too.
 */
#include "connections.h"
#include "fields.h"

#define CENTRE_X 26.0
#define CENTRE_Y 4.0
#define RADIUS 20.0
#define HALF_WIDTH 4.0

static double radius_at(double x, double y)
{
	return hypot(x - CENTRE_X, y - CENTRE_Y);
}

static bool in_bundle(double x, double y)
{
	return y >= CENTRE_Y && fabs(radius_at(x, y) - RADIUS) <= HALF_WIDTH + 0.01;
}

static int ends(const int64_t v[3])
{
	if ((double)v[1] < CENTRE_Y || (double)v[1] > CENTRE_Y + 1 || !in_bundle((double)v[0], (double)v[1]))
		return 0;
	return (double)v[0] < CENTRE_X ? 1 : 2;
}

/* White matter (1.7, 0.3, 0.3) along the ring, grey 0.8, fluid 3 um^2/ms; sharp borders, so no derivatives are given. */
static void tissue(const double x[3], double d[6], double dd[3][6])
{
	double r = radius_at(x[0], x[1]), tx = -(x[1] - CENTRE_Y) / r, ty = (x[0] - CENTRE_X) / r;
	double iso = in_bundle(x[0], x[1]) ? 0.3 : r < RADIUS - HALF_WIDTH ? 3 : 0.8;
	double along = in_bundle(x[0], x[1]) ? 1.4 : 0;

	memset(dd, 0, 3 * sizeof *dd);
	memset(d, 0, 6 * sizeof *d);
	d[0] = d[2] = d[5] = iso;
	if (along > 0) {
		d[0] += along * tx * tx;
		d[1] += along * tx * ty;
		d[2] += along * ty * ty;
	}
}

/* Seeds in the left end, a fan of directions in the plane that all have a part towards the bundle or the lake. */
static fx_array *fan(void)
{
	enum { PLACES = 5, WAYS = 541 };
	fx_array *seeds = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 6, PLACES * WAYS, &seeds), FX_OK);
	for (int i = 0; i < PLACES * WAYS; i++) {
		double angle = M_PI * (i % WAYS / 3.0 - 45) / 180, *s = FX_F64_OF(seeds) + 6 * i;

		s[0] = CENTRE_X - RADIUS + 1.5 * (i / WAYS - 2);
		s[1] = CENTRE_Y + 0.5;
		s[2] = 2;
		s[3] = cos(angle);
		s[4] = sin(angle);
	}
	return seeds;
}

/* Radius of the best connection half-way, at the height of the ring's centre line; NaN where there is none. Its measure too. */
static double best_radius(const fx_metric_spec *metric_spec, double *measure)
{
	const fx_track_spec spec = {.method = FX_TRACK_GEODESIC, .integrator = FX_INTEGRATOR_RK2, .step = 0.2, .max_steps = 600,
		.stop_mask = true};
	double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, radius = NAN;
	fx_lattice l = lattice_of(53, 31, 5, axes, (double[]){0, 0, 0});
	fx_regions *regions = regions_of(&l, ends, "ends", NULL, FX_REGIONS_LABELS);
	const fx_connect_spec connect = {.best = 3, .families = 5, .degenerate = 0.05};
	const field f = {.d = tissue};
	fx_math *m = math_of(1);
	fx_msg *metric = sampled_metric(m, &f, &l, metric_spec), *tracts = NULL;
	fx_tracts_info *info = fx_tracts_info_new();
	fx_array *seeds = fan();
	fx_tracker *tracker = NULL;
	fx_connect *c = NULL;
	int64_t n_outside = 0;

	CU_ASSERT_EQUAL_FATAL(fx_tracker_new(m, fx_msg_metric(metric), &spec, &tracker), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_tracker_info(tracker, info), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_tracker_run(tracker, info, seeds, 0, &tracts, &n_outside), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_connect_new(m, &connect, NULL, regions, NULL, &c), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_connect_add(c, fx_msg_tracts(tracts)), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_connect_finish(c, 0), FX_OK);
	*measure = NAN;
	if (c->n_pairs == 1) {
		const struct fxi_connection *k = c->pairs[0]->kept[0];

		*measure = k->measure;
		for (int64_t i = 0; i + 1 < k->n_points && isnan(radius); i++)
			if (k->points[3 * i] <= CENTRE_X && k->points[3 * i + 3] > CENTRE_X)
				radius = radius_at((double)k->points[3 * i], (double)k->points[3 * i + 1]);
	}
	fx_connect_free(c);
	fx_tracker_free(tracker);
	fx_tracts_info_unref(info);
	fx_array_unref(seeds);
	fx_drop(tracts);
	fx_drop(metric);
	fx_regions_free(regions);
	fx_math_free(m);
	return radius;
}

static void the_lake(void)
{
	const fx_metric_spec inverse = {.kind = FX_METRIC_INVERSE, .floor = 0.05}, adjugate = {.kind = FX_METRIC_ADJUGATE, .floor = 0.05};
	const fx_metric_spec masked = {.kind = FX_METRIC_INVERSE, .floor = 0.05, .csf = FX_CSF_MASK, .csf_md = 2};
	const fx_metric_spec sharp = {.kind = FX_METRIC_SHARPENED, .power = 2, .floor = 0.05, .csf = FX_CSF_MASK, .csf_md = 2};
	double measure, radius = best_radius(&inverse, &measure);

	printf("\n    inverse: half-way at %.1f of %.0f voxels, m %.2f", radius, RADIUS, measure);
	CU_ASSERT(radius < RADIUS - HALF_WIDTH);                       /* the shortcut ranks first */
	CU_ASSERT(measure > sqrt(1.7) && measure < sqrt(3) + 1e-3);    /* more than white matter can have */
	radius = best_radius(&adjugate, &measure);
	printf("\n    adjugate: %.1f, m %.2f", radius, measure);
	CU_ASSERT(fabs(radius - RADIUS) < HALF_WIDTH + 0.5);           /* the bundle, to the half voxel that its border is drawn to */
	radius = best_radius(&masked, &measure);
	printf("\n    inverse, masked: %.1f, m %.2f", radius, measure);
	CU_ASSERT(!(radius < RADIUS - HALF_WIDTH - 0.5));              /* no way through the lake is left */
	radius = best_radius(&sharp, &measure);
	printf("\n    sharpened, masked: %.1f, m %.2f", radius, measure);
	CU_ASSERT(fabs(radius - RADIUS) < HALF_WIDTH + 0.5);
}

static CU_TestInfo tests[] = {
	{"a bundle round a lake", the_lake},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_shortcut = {"shortcut", NULL, NULL, NULL, NULL, tests};

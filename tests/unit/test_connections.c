/* SPDX-License-Identifier: MIT */
/* Connections: where fibres are cut, what they measure, which regions count, how they rank. */
#include "connections.h"

/* 20^3 voxels of 2 mm. Regions are plates across x: 1 at voxel 2, 2 at 10, 3 at 16 and 17; blocks at 13. */
static int plates(const int64_t v[3])
{
	return v[0] == 2 ? 1 : v[0] == 10 ? 2 : v[0] == 16 || v[0] == 17 ? 3 : 0;
}

static int wall(const int64_t v[3])
{
	return v[0] == 13;
}

/* A single precision position of up to 40 mm, and a length made of such. */
#define MM 1e-5

static fibres *along_x(double from, double to, int64_t n, double cost, int64_t seed_point)
{
	fx_lattice l = cube_lattice(20, 2);
	fibres *f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);

	fibres_line(f, (double[]){from, 20, 18.6}, (double[]){to, 20, 18.6}, n, cost, seed_point, 7);
	return f;
}

static fx_regions *plate_regions(const char *wanted)
{
	fx_lattice l = cube_lattice(20, 2);

	return regions_of(&l, plates, "plates.nii", wanted, FX_REGIONS_LABELS);
}

/* D constant, 1.7 along the fibre: m = sqrt(1.7), and the length is from the seed to the face at 31 mm (index 15.5), whatever the steps. */
static void straight(void)
{
	const int64_t points[] = {2, 3, 24, 1001};
	fx_regions *targets = plate_regions("3");

	for (int k = 0; k < 4; k++) {
		fibres *f = along_x(7.3, 38, points[k], 1 / sqrt(1.7), 0);
		result r;

		connect_fibres(&r, &(question){.targets = targets}, f);
		CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(r.n_out, 2);
		CU_ASSERT_EQUAL(fx_msg_tracts(r.out[0])->n, 1);
		CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 7.3, MM);
		CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "riemann"), (31 - 7.3) / sqrt(1.7), MM);
		CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "measure"), sqrt(1.7), 1e-6);
		CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, false)[0], 7.3, MM);
		CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, true)[0], 31, MM);
		CU_ASSERT_EQUAL(value(&r, 0, "rank"), 1);
		CU_ASSERT_EQUAL(value(&r, 0, "source"), 0);
		CU_ASSERT_EQUAL(value(&r, 0, "target"), 3);
		CU_ASSERT_EQUAL(value(&r, 0, "family"), 1);
		CU_ASSERT_EQUAL(value(&r, 0, "drift"), 103); /* the whole fibre's, carried over */
		CU_ASSERT_EQUAL(value(&r, 0, "stop_end"), FX_TRACK_STOP_TARGET);
		CU_ASSERT(isnan(value(&r, 0, "jacobi")) && isnan(value(&r, 0, "seed_point")));
		CU_ASSERT_EQUAL(seed_of(&r, 0), 7);
		CU_ASSERT(fx_msg_tracts(r.out[1])->end && fx_msg_tracts(r.out[1])->first == 1);
		result_free(&r);
		fibres_free(f);
	}
	fx_regions_free(targets);
}

/* The seed between plates 1 and 2, tracked both ways: each half on its own, and cut at the first target. */
static void both_ways(void)
{
	fx_regions *targets = plate_regions(NULL);
	fibres *f = along_x(0, 38, 39, 1, 12); /* the seed at 12 mm */
	const fx_tracts *t;
	result r;

	connect_fibres(&r, &(question){.targets = targets}, f);
	CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
	t = fx_msg_tracts(r.out[0]);
	CU_ASSERT_EQUAL_FATAL(t->n, 2);
	CU_ASSERT_EQUAL(value(&r, 0, "target"), 1);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 12 - 5, MM);
	CU_ASSERT_EQUAL(value(&r, 1, "target"), 2);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 1, "length_mm"), 19 - 12, MM);
	CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, false)[0], 12, MM); /* both run from the seed */
	CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, true)[0], 5, MM);
	CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 1, false)[0], 12, MM);
	for (int64_t i = 1; i < t->riemann->n; i++)
		CU_ASSERT(FX_F32_OF(t->riemann)[i] > FX_F32_OF(t->riemann)[i - 1]
			|| i == ((const uint32_t *)t->offsets->data)[1]);
	CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(t->riemann)[((const uint32_t *)t->offsets->data)[1] - 1], 7, MM);
	CU_ASSERT_EQUAL(r.n.n_fibres, 1);
	CU_ASSERT_EQUAL(r.n.n_connected, 1);
	result_free(&r);
	fibres_free(f);
	fx_regions_free(targets);
}

/* A seed inside plate 2 makes it the source: from where the fibre leaves it last, never to itself. */
static void seed_inside(void)
{
	fx_regions *targets = plate_regions("2 3");
	fibres *f = along_x(20.4, 38, 23, 1, 0);
	const double there[3] = {20.4, 20, 18}, back[3] = {20.4, 22, 18};
	result r;

	connect_fibres(&r, &(question){.targets = targets}, f);
	CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 1);
	CU_ASSERT_EQUAL(value(&r, 0, "source"), 2);
	CU_ASSERT_EQUAL(value(&r, 0, "target"), 3);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 21, MM);
	result_free(&r);
	fibres_free(f);

	/* out of plate 2, back through it, and on to plate 3 on the other side */
	fx_lattice l = cube_lattice(20, 2);
	float *riemann, *p;
	const double way[4][3] = {{20.4, 20, 18}, {24, 20, 18}, {18, 21, 18}, {36, 21, 18}};

	f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	p = fibres_add(f, 4, 0, 1, &riemann);
	for (int i = 0; i < 12; i++)
		p[i] = (float)way[i / 3][i % 3];
	for (int i = 0; i < 4; i++)
		riemann[i] = (float)i;
	fibres_line(f, there, back, 3, 1, 0, 2); /* stays inside: no connection */
	connect_fibres(&r, &(question){.targets = targets}, f);
	CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 1);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 21, MM);
	CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, false)[0], 21, MM);
	result_free(&r);
	fibres_free(f);
	fx_regions_free(targets);
}

/* Sources of an image: in either order along the fibre, the nearest of each, seeds do not matter. */
static void sources(void)
{
	fx_regions *one = plate_regions("1"), *both = plate_regions("1, 2"), *three = plate_regions("3"), *all = plate_regions(NULL);
	fibres *there = along_x(0, 38, 39, 1, 12), *back = along_x(38, 0, 39, 1, 3);
	result r;

	for (int k = 0; k < 2; k++) {
		connect_fibres(&r, &(question){.sources = one, .targets = three}, k == 0 ? there : back);
		CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 1);
		CU_ASSERT_EQUAL(value(&r, 0, "source"), 1);
		CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 5, MM);
		CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, false)[0], 5, MM);
		CU_ASSERT_DOUBLE_EQUAL(end_of(&r, 0, true)[0], 31, MM);
		result_free(&r);
		connect_fibres(&r, &(question){.sources = both, .targets = three}, k == 0 ? there : back);
		CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 1);
		CU_ASSERT_EQUAL(value(&r, 0, "source"), 2); /* plate 2 lies between 1 and 3 */
		CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 21, MM);
		result_free(&r);
	}
	connect_fibres(&r, &(question){.sources = all, .targets = all}, there); /* an atlas: neighbours, both ways */
	CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 4);
	CU_ASSERT(pair_of(&r, 1, 2) && pair_of(&r, 2, 1) && pair_of(&r, 2, 3) && pair_of(&r, 3, 2));
	result_free(&r);
	connect_fibres(&r, &(question){.sources = one, .targets = all, .spec.require = FX_REQUIRE_ALL}, there);
	CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 2); /* 1-2 and 1-3, through 2 */
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 1, "length_mm"), 31 - 5, MM);
	result_free(&r);
	fibres_free(there);
	fibres_free(back);
	fx_regions_free(one);
	fx_regions_free(both);
	fx_regions_free(three);
	fx_regions_free(all);
}

static void any_all_exclude(void)
{
	fx_lattice l = cube_lattice(20, 2);
	fx_regions *both = plate_regions("2,3"), *all = plate_regions(NULL), *stop = regions_of(&l, wall, "wall", NULL, FX_REGIONS_ANY);
	fibres *f = along_x(8, 38, 31, 1, 0);
	result r;

	connect_fibres(&r, &(question){.targets = both}, f);
	CU_ASSERT(r.n.n_pairs == 1 && pair_of(&r, 0, 2));
	result_free(&r);
	connect_fibres(&r, &(question){.targets = both, .spec.require = FX_REQUIRE_ALL}, f);
	CU_ASSERT(r.n.n_pairs == 2 && pair_of(&r, 0, 2) && pair_of(&r, 0, 3) && r.n.n_incomplete == 0);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 19 - 8, MM);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 1, "length_mm"), 31 - 8, MM);
	result_free(&r);
	connect_fibres(&r, &(question){.targets = all, .spec.require = FX_REQUIRE_ALL}, f);
	CU_ASSERT(r.n.n_pairs == 0 && r.n.n_incomplete == 1 && r.n.n_connected == 0);
	result_free(&r);
	connect_fibres(&r, &(question){.targets = both, .spec.require = FX_REQUIRE_ALL, .exclude = stop}, f);
	CU_ASSERT(r.n.n_pairs == 1 && pair_of(&r, 0, 2) && r.n.n_excluded == 0); /* the wall is behind plate 2 */
	result_free(&r);
	fx_regions_free(both);
	both = plate_regions("3");
	connect_fibres(&r, &(question){.targets = both, .exclude = stop}, f);
	CU_ASSERT(r.n.n_pairs == 0 && r.n.n_excluded == 1 && r.n_out == 1 && fx_msg_tracts(r.out[0])->end);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.json->str, "\"pairs\": []"));
	result_free(&r);
	fibres_free(f);
	fx_regions_free(both);
	fx_regions_free(all);
	fx_regions_free(stop);
}

/* Larger measures first, ties by seed, in whatever order they come; best of each pair; streamlines by length. */
static void ranks(void)
{
	static const double measures[] = {1.0, 1.3, 1.1, 1.3, 0.9, 1.2};
	static const int expected[] = {11, 13, 15, 12};
	fx_lattice l = cube_lattice(20, 2);
	fx_regions *targets = plate_regions("3");

	for (int backwards = 0; backwards < 2; backwards++) {
		fibres *f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
		result r;

		for (int k = 0; k < 6; k++) {
			int i = backwards ? 5 - k : k;

			fibres_line(f, (double[]){8, 20, 18}, (double[]){36, 20, 18}, 15, 1 / measures[i], 0, (uint32_t)(10 + i));
		}
		connect_fibres(&r, &(question){.targets = targets, .spec.best = 4}, f);
		CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(r.out[0])->n, 4);
		for (int i = 0; i < 4; i++) {
			CU_ASSERT_EQUAL(seed_of(&r, i), expected[i]);
			CU_ASSERT_EQUAL(value(&r, i, "rank"), i + 1);
		}
		CU_ASSERT_EQUAL(pair_of(&r, 0, 3)->n_fibres, 6);
		CU_ASSERT_EQUAL(pair_of(&r, 0, 3)->families[0].n_fibres, 6);
		CU_ASSERT_DOUBLE_EQUAL(pair_of(&r, 0, 3)->families[0].worst, 0.9, 1e-6);
		result_free(&r);
		fibres_free(f);
	}
	fibres *f = fibres_new(&l, FX_TRACK_STREAMLINE, FX_METRIC_INVERSE);
	result r;

	for (int i = 0; i < 3; i++)
		fibres_line(f, (double[]){8 + i, 20, 18}, (double[]){36, 20, 18}, 15, 1, 0, (uint32_t)i);
	connect_fibres(&r, &(question){.targets = targets, .spec.jacobi = true}, f);
	CU_ASSERT(seed_of(&r, 0) == 2 && seed_of(&r, 2) == 0 && isnan(value(&r, 0, "measure")));
	CU_ASSERT_PTR_NULL(fx_msg_tracts(r.out[0])->riemann);
	CU_ASSERT_PTR_NOT_NULL(strstr(r.json->str, "\"measure\": null,\n  \"ranked_by\": \"length_mm, shortest first\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(r.csv->str, "\n0,3,1,1,1,0,,21,,,,2,2,0\n"));
	result_free(&r);
	fibres_free(f);
	fx_regions_free(targets);
}

static void refusals(void)
{
	fx_lattice l = cube_lattice(20, 2), other = l;
	fx_regions *targets = plate_regions("3");
	fibres *f = along_x(8, 38, 31, 1, 0), *mixed, *elsewhere;
	fx_msg *batch;
	result r;

	other.affine[1][3] = 2;
	elsewhere = fibres_new(&other, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	fibres_line(elsewhere, (double[]){8, 20, 18}, (double[]){36, 20, 18}, 15, 1, 0, 0);
	connect_fibres(&r, &(question){.targets = targets}, elsewhere);
	CU_ASSERT(r.status == FX_EDATA && strstr(r.err.text, "another space"));
	result_free(&r);
	connect_fibres(&r, &(question){.targets = targets, .spec.resample = true}, elsewhere);
	CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "length_mm"), 31 - 8, MM); /* plates by their own affine */
	result_free(&r);
	fibres_free(elsewhere);

	for (int k = 0; k < 3; k++) {
		mixed = fibres_new(&l, k == 2 ? FX_TRACK_STREAMLINE : FX_TRACK_GEODESIC, k == 0 ? FX_METRIC_ADJUGATE : FX_METRIC_INVERSE);
		if (k == 1)
			mixed->info->n_values--;
		fibres_line(mixed, (double[]){8, 20, 18}, (double[]){36, 20, 18}, 15, 1, 0, 0);
		r.m = math_of(1);
		CU_ASSERT_EQUAL_FATAL(fx_connect_new(r.m, &(fx_connect_spec){.best = 1, .families = 1}, NULL, targets, NULL, &r.c), FX_OK);
		batch = fibres_batch(f, 0, 1);
		CU_ASSERT_EQUAL(fx_connect_add(r.c, fx_msg_tracts(batch)), FX_OK);
		fx_drop(batch);
		batch = fibres_batch(mixed, 0, 1);
		CU_ASSERT_EQUAL(fx_connect_add(r.c, fx_msg_tracts(batch)), FX_EDATA);
		CU_ASSERT_PTR_NOT_NULL(strstr(r.m->err->text, k == 0 ? "another metric (adjugate) than those before (inverse)" : k == 1
			? "" : "come mixed"));
		fx_drop(batch);
		fibres_free(mixed);
		fx_connect_free(r.c);
		fx_math_free(r.m);
	}
	fibres_free(f);
	fx_regions_free(targets);
}

/* Fibres that are not finite, of one point, or of none, and damaged batches. */
static void odd_fibres(void)
{
	fx_regions *targets = plate_regions("3");
	fibres *f = along_x(8, 38, 31, 1, 0);
	float *riemann, *p = fibres_add(f, 2, 0, 1, &riemann);
	fx_msg *batch;
	result r;

	memcpy(p, (float[]){8, 20, 18, NAN, 20, 18}, 6 * sizeof *p);
	riemann[1] = 1;
	p = fibres_add(f, 1, 0, 2, &riemann);
	memcpy(p, (float[]){32, 20, 18}, 3 * sizeof *p);
	fibres_add(f, 0, 0, 3, &riemann);
	fibres_line(f, (double[]){8, 20, 18}, (double[]){36, 20, 18}, 15, 0, 0, 4);       /* a metric of nothing */
	fibres_line(f, (double[]){8, 20, 18}, (double[]){36, 20, 18}, 15, 1, 1000000, 5); /* a seed beyond its points */
	connect_fibres(&r, &(question){.targets = targets}, f);
	CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
	CU_ASSERT(r.n.n_fibres == 6 && r.n.n_unusable == 2 && r.n.n_connected == 2 && fx_msg_tracts(r.out[0])->n == 2);
	result_free(&r);

	r.m = math_of(1);
	CU_ASSERT_EQUAL_FATAL(fx_connect_new(r.m, &(fx_connect_spec){.best = 1, .families = 1}, NULL, targets, NULL, &r.c), FX_OK);
	batch = fibres_batch(f, 0, 3);
	((uint32_t *)fx_msg_tracts(batch)->offsets->data)[2] = 1000;
	CU_ASSERT_EQUAL(fx_connect_add(r.c, fx_msg_tracts(batch)), FX_EDATA);
	fx_slot_take(&fx_msg_tracts(batch)->values, NULL);
	CU_ASSERT_EQUAL(fx_connect_add(r.c, fx_msg_tracts(batch)), FX_EDATA);
	fx_drop(batch);
	CU_ASSERT_EQUAL(fx_connect_finish(r.c, 0), FX_OK); /* nothing ever came */
	CU_ASSERT_EQUAL(fx_connect_next(r.c, &batch), FX_OK);
	CU_ASSERT_PTR_NULL(batch);
	fx_connect_free(r.c);
	fx_math_free(r.m);
	fibres_free(f);
	fx_regions_free(targets);
}

static void units(void)
{
	char text[64];

	fx_measure_unit(FX_METRIC_INVERSE, 1, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "sqrt(um^2/ms)");
	fx_measure_unit(FX_METRIC_ADJUGATE, 1, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "ms/um^2");
	fx_measure_unit(FX_METRIC_SHARPENED, 4, text, sizeof text);
	CU_ASSERT_STRING_EQUAL(text, "(um^2/ms)^2");
}

static CU_TestInfo tests[] = {
	{"a straight fibre in a constant field, whatever the step", straight},
	{"both ways: each half from the seed", both_ways},
	{"a seed inside a target", seed_inside},
	{"source regions", sources},
	{"any, all, exclude", any_all_exclude},
	{"ranks", ranks},
	{"other spaces, other metrics", refusals},
	{"odd fibres and damaged batches", odd_fibres},
	{"units", units},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_connections = {"connections", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* Distinct solutions of a pair: families, continua between conjugate points, bounded memory, no dependence on batches. */
#include "connections.h"
#include "fields.h"

static int far_end(const int64_t v[3])
{
	return v[0] >= 17 ? 9 : 0;
}

/* A fibre that bows out to `bow` mm on its way from (8, 20, 18) to (36, 20, 18). */
static void bowed(fibres *f, double bow, double cost, uint32_t seed)
{
	enum { N = 57 };
	float *riemann, *p = fibres_add(f, N, 0, seed, &riemann);
	double length = 0;

	for (int i = 0; i < N; i++) {
		double t = (double)i / (N - 1);

		p[3 * i] = (float)(8 + 28 * t);
		p[3 * i + 1] = (float)(20 + bow * sin(M_PI * t));
		p[3 * i + 2] = 18;
		if (i > 0)
			length += hypot((double)p[3 * i] - p[3 * i - 3], (double)p[3 * i + 1] - p[3 * i - 2]);
		riemann[i] = (float)(length * cost);
	}
}

/* Two tubes: their fibres rank among each other, but are two families, each with its best. */
static void two_tubes(void)
{
	fx_lattice l = cube_lattice(20, 2);
	fx_regions *targets = regions_of(&l, far_end, "end", NULL, FX_REGIONS_LABELS);
	fibres *f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	const struct fxi_pair *p;
	result r;

	for (uint32_t i = 0; i < 6; i++) {
		bowed(f, 10 + 0.3 * i, 1 / (1.30 - 0.01 * i), 2 * i);
		bowed(f, -10 - 0.3 * i, 1 / (1.285 - 0.01 * i), 2 * i + 1);
	}
	connect_fibres(&r, &(question){.targets = targets, .spec.best = 2}, f);
	CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
	p = pair_of(&r, 0, 9);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL_FATAL(p->n_families, 2);
	CU_ASSERT(p->families[0].n_fibres == 6 && p->families[1].n_fibres == 6 && p->n_dropped == 0 && p->n_fibres == 12);
	CU_ASSERT_DOUBLE_EQUAL(value(&r, 0, "measure"), 1.30, 1e-5);
	/* the two best, both of the first tube, and the best of the other */
	CU_ASSERT_EQUAL(p->n_kept, 3);
	CU_ASSERT(p->families[1].leader == 2 && fabs(p->kept[2]->measure - 1.285) < 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(p->families[0].worst, 1.25, 1e-5);
	/* others lie 0.3 i sin(pi t) mm away or a little less: the slope of the bow is up to 1 */
	CU_ASSERT(p->families[0].spread_mm > 0.3 && p->families[0].spread_mm < 0.3 * 3 * 2 / M_PI + 0.05);
	CU_ASSERT_FALSE(p->families[0].degenerate);
	result_free(&r);
	connect_fibres(&r, &(question){.targets = targets, .spec.cluster_mm = 30}, f);
	CU_ASSERT_EQUAL(pair_of(&r, 0, 9)->n_families, 1);
	result_free(&r);
	fibres_free(f);
	fx_regions_free(targets);
}

/* 1000 fibres of five tubes in shuffled order: no more is kept than was asked for, all are counted, and batches do not matter. */
static void many(void)
{
	fx_lattice l = cube_lattice(20, 2);
	fx_regions *targets = regions_of(&l, far_end, "end", NULL, FX_REGIONS_LABELS);
	fibres *f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	const int64_t batches[] = {0, 1, 7, 64, 333};
	uint64_t seed = 11;
	GString *json = NULL, *csv = NULL;

	for (uint32_t i = 0; i < 1000; i++) {
		int tube = (int)(floor(2.5 * (random_next(&seed) + 1)));
		double aside = 0.3 * random_next(&seed), more = 0.02 * random_next(&seed);

		/* tubes differ by more than their fibres do, in place (by the default of 4 mm neighbours could be one) and in measure: the
		   best three families stay so once they are met, and lose no count */
		bowed(f, 8 * (tube - 2) + aside, 1 / (1.5 - 0.05 * tube + more), i);
	}
	for (int k = 0; k < 5; k++) {
		const struct fxi_pair *p;
		int64_t counted;
		result r;

		connect_fibres(&r, &(question){.targets = targets, .spec = {.best = 5, .families = 3, .cluster_mm = 2}, .batch = batches[k]}, f);
		CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
		p = pair_of(&r, 0, 9);
		CU_ASSERT(p->n_kept >= 5 && p->n_kept <= 8 && p->n_families == 3 && p->n_fibres == 1000);
		counted = p->n_dropped;
		for (int64_t i = 0; i < p->n_families; i++)
			counted += p->families[i].n_fibres;
		CU_ASSERT_EQUAL(counted, 1000);
		for (int64_t i = 0; i < p->n_families; i++) /* a tube is a fifth of them */
			CU_ASSERT(p->families[i].n_fibres > 150 && p->families[i].n_fibres < 250);
		if (k == 0) {
			json = g_string_new(r.json->str);
			csv = g_string_new(r.csv->str);
		}
		CU_ASSERT_STRING_EQUAL(r.json->str, json->str);
		CU_ASSERT_STRING_EQUAL(r.csv->str, csv->str);
		result_free(&r);
	}
	g_string_free(json, TRUE);
	g_string_free(csv, TRUE);
	fibres_free(f);
	fx_regions_free(targets);
}

/* ---- the sphere ------------------------------------------------------------------------------- */

/* From (R, 0, 0), where D is the identity, all geodesics meet at (-R, 0, 0) after pi R. 0.1 mm voxels, centred. */
static fx_lattice sphere_lattice(void)
{
	double axes[3][3] = {{0.1, 0, 0}, {0, 0.1, 0}, {0, 0, 0.1}};

	return lattice_of(43, 25, 25, axes, (double[]){-2.1, -1.2, -1.2});
}

static int antipode(const int64_t v[3])
{
	double x = -2.1 + 0.1 * (double)v[0] + SPHERE_R, y = -1.2 + 0.1 * (double)v[1], z = -1.2 + 0.1 * (double)v[2];

	return x * x + y * y + z * z < 0.25 * 0.25 ? 4 : 0;
}

static int half_way(const int64_t v[3])
{
	return v[0] <= 21 ? 5 : 0; /* x <= 0 */
}

/* n geodesics on a cone of 50 degrees about the way through the middle, in double on the exact field. */
static fibres *cone(const fx_lattice *l, uint32_t n)
{
	const field exact = {.d = sphere};
	fibres *f = fibres_new(l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	enum { STEPS = 200 };
	double points[3 * (STEPS + 1)], h = 1.02 * M_PI * SPHERE_R / STEPS;

	for (uint32_t k = 0; k < n; k++) {
		double phi = 2 * M_PI * k / n, open = 50 * M_PI / 180, x[3] = {SPHERE_R, 0, 0};
		double v[3] = {-cos(open), sin(open) * cos(phi), sin(open) * sin(phi)};
		float *riemann, *p = fibres_add(f, STEPS + 1, 0, k, &riemann);

		CU_ASSERT_EQUAL_FATAL(fxi_geodesic_shoot(field_metric, &exact, FX_INTEGRATOR_RK4, h, STEPS, x, v, points), STEPS);
		for (int i = 0; i <= STEPS; i++) {
			for (int c = 0; c < 3; c++)
				p[3 * i + c] = (float)points[3 * i + c];
			riemann[i] = (float)(h * i);
		}
	}
	return f;
}

/* The antipode: one degenerate family. Half-way the same fan is several families, and its determinant (2/pi)^2. */
static void sphere_antipode(void)
{
	const fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 1e-4};
	const field exact = {.d = sphere};
	fx_lattice l = sphere_lattice();
	fx_math *m = math_of(1);
	fx_msg *metric = sampled_metric(m, &exact, &l, &spec);
	fibres *f = cone(&l, 24);

	for (int k = 0; k < 2; k++) {
		fx_regions *targets = regions_of(&l, k == 0 ? antipode : half_way, "there", NULL, FX_REGIONS_LABELS);
		question q = {.targets = targets, .metric = metric, .spec = {.jacobi = true, .best = 30}};
		const struct fxi_pair *p;
		result r;

		connect_fibres(&r, &q, f);
		CU_ASSERT_EQUAL_FATAL(r.status, FX_OK);
		p = pair_of(&r, 0, k == 0 ? 4 : 5);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_EQUAL(p->n_kept, 24);
		CU_ASSERT_EQUAL(r.n.n_undetermined, 0);
		if (k == 0) {
			CU_ASSERT(p->n_families == 1 && p->families[0].degenerate && p->families[0].n_fibres == 24);
			CU_ASSERT(r.n.n_degenerate == 1 && strstr(r.json->str, "\"degenerate\": true"));
		} else {
			CU_ASSERT(p->n_families > 4 && r.n.n_degenerate == 0);
		}
		for (int64_t i = 0; i < p->n_kept; i++) /* on the plane x = 0 a quarter of the sphere's girth has been gone; 0.02: the lattice */
			CU_ASSERT(k == 0 ? fabs(p->kept[i]->jacobi) < 0.02 : fabs(p->kept[i]->jacobi - pow(2 / M_PI, 2)) < 0.04);
		result_free(&r);
		connect_fibres(&r, &(question){.targets = targets, .spec.best = 30}, f);
		CU_ASSERT(pair_of(&r, 0, k == 0 ? 4 : 5)->n_families > 4); /* not asked for: slices of the fan */
		result_free(&r);
		fx_regions_free(targets);
	}
	fibres_free(f);
	fx_drop(metric);
	fx_math_free(m);
}

/* A determinant is not given for a fibre that is no geodesic of the metric, and a metric of another kind is refused. */
static void other_paths(void)
{
	const fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 1e-4};
	const field exact = {.d = sphere};
	fx_lattice l = sphere_lattice();
	fx_math *m = math_of(1);
	fx_msg *metric = sampled_metric(m, &exact, &l, &spec);
	fx_regions *targets = regions_of(&l, half_way, "there", NULL, FX_REGIONS_LABELS);
	fibres *f = fibres_new(&l, FX_TRACK_GEODESIC, FX_METRIC_INVERSE);
	result r;

	fibres_line(f, (double[]){1, -1, 0}, (double[]){-1, -1, 0.3}, 50, 1.5, 0, 0);
	connect_fibres(&r, &(question){.targets = targets, .metric = metric, .spec.jacobi = true}, f);
	CU_ASSERT_EQUAL(r.status, FX_OK);
	CU_ASSERT(r.n.n_undetermined == 1 && isnan(value(&r, 0, "jacobi")) && strstr(r.json->str, "\"jacobi\": null"));
	result_free(&r);
	f->info->metric_kind = FX_METRIC_ADJUGATE;
	connect_fibres(&r, &(question){.targets = targets, .metric = metric, .spec.jacobi = true}, f);
	CU_ASSERT(r.status == FX_EDATA && strstr(r.err.text, "not tracked in the metric"));
	result_free(&r);
	fibres_free(f);
	fx_regions_free(targets);
	fx_drop(metric);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"two tubes, two families", two_tubes},
	{"many fibres in bounded memory, whatever the batches", many},
	{"the sphere's antipode is one degenerate family", sphere_antipode},
	{"no determinant for what is no geodesic here", other_paths},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_families = {"families", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/*
 * tracking.c - fibres on the GPU: against the host over methods, integrators, shares of threads and stops; every form against the double path and
 * a closed form; the keep rule; the same bytes twice.
 */
#include "parity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/tracking.h"

#define HUNDRED 100 /* steps over which paths are compared: beyond, the field's own divergence of paths grows any rounding */

static fx_lattice tilted(int64_t nx, int64_t ny, int64_t nz, double mm)
{
	double axes[3][3] = {{0.8 * mm, -0.44 * mm, 0.13 * mm}, {0.6 * mm, 0.6 * mm, -0.26 * mm}, {0.05 * mm, 0.24 * mm, 1.235 * mm}};
	const double half[3] = {(double)(nx - 1) / 2, (double)(ny - 1) / 2, (double)(nz - 1) / 2};
	double origin[3] = {0, 0, 0};

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			origin[i] -= axes[i][k] * half[k];
	return lattice_of(nx, ny, nz, axes, origin);
}

/* n seeds in the lattice's box, a few outside; every third without a direction. */
static double *some_seeds(const fx_lattice *l, int64_t n, uint64_t seed)
{
	double *six = fx_alloc(6 * n, sizeof *six);

	CU_ASSERT_PTR_NOT_NULL_FATAL(six);
	for (int64_t i = 0; i < n; i++) {
		double index[3];

		for (int k = 0; k < 3; k++)
			index[k] = (0.5 + 0.52 * random_next(&seed)) * (double)(l->dims[k] - 1);
		place_of(l, index, six + 6 * i);
		for (int k = 0; k < 3; k++)
			six[6 * i + 3 + k] = i % 3 ? random_next(&seed) : 0;
	}
	return six;
}

/* A metric of the bent field, with a mask that has a hole where `holed`. */
static fx_msg *a_metric(const fx_lattice *l, bool holed)
{
	const field f = {.d = bent};
	fx_msg *tensors = sampled_tensors(&f, l), *metric = NULL;
	fx_tensors *t = fx_msg_tensors(tensors);

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, l->dims, &t->mask), FX_OK);
	for (int64_t i = 0; i < t->mask->n; i++) {
		int64_t x = i % l->dims[0], y = i / l->dims[0] % l->dims[1];

		((uint8_t *)t->mask->data)[i] = !(holed && (x - l->dims[0] / 2) * (x - l->dims[0] / 2) + (y - l->dims[1] / 3) * (y - l->dims[1] / 3) < 12);
	}
	CU_ASSERT_EQUAL_FATAL(fx_metric_build(host, t, &plain, &metric), FX_OK);
	fx_drop(tensors);
	return metric;
}

struct difference {
	double apart;         /* voxels, largest over the first steps */
	int64_t n_common, n_others; /* fibres that both have; that one has */
	int64_t n_lengths, n_stops; /* of the common ones, of other lengths by more than a point, or other stops */
};

/* Compares from the seed on, both ways; fibres come in the order of their seeds on both sides. */
static struct difference compare(fx_msg *a, fx_msg *b, double voxel)
{
	const fx_tracts *t = fx_msg_tracts(a), *u = fx_msg_tracts(b);
	const uint32_t *s = t->seeds->data, *r = u->seeds->data;
	struct difference d = {0};
	int64_t i = 0, k = 0;

	while (i < t->n && k < u->n) {
		int64_t n, m, from, with;
		const float *p, *q;

		if (s[i] != r[k]) {
			d.n_others++;
			s[i] < r[k] ? i++ : k++;
			continue;
		}
		p = points_of(a, i, &n);
		q = points_of(b, k, &m);
		from = (int64_t)value_of(a, i, FX_VALUE_SEED);
		with = (int64_t)value_of(b, k, FX_VALUE_SEED);
		for (int64_t step = -HUNDRED; step <= HUNDRED; step++) {
			double sum = 0;

			if (from + step < 0 || from + step >= n || with + step < 0 || with + step >= m)
				continue;
			for (int c = 0; c < 3; c++)
				sum += pow((double)p[3 * (from + step) + c] - (double)q[3 * (with + step) + c], 2);
			d.apart = fmax(d.apart, sqrt(sum) / voxel);
		}
		d.n_common++;
		d.n_lengths += llabs((n - from) - (m - with)) > 1 || llabs(from - with) > 1;
		d.n_stops += value_of(a, i, FX_VALUE_STOP_END) != value_of(b, k, FX_VALUE_STOP_END);
		i++;
		k++;
	}
	d.n_others += t->n - i + u->n - k;
	return d;
}

static fx_msg *track_with(fx_math *m, fx_msg *metric, const fx_track_spec *spec, int64_t n, const double *six, int64_t *n_outside)
{
	m->err->status = FX_OK;
	return track(m, metric, spec, n, six, n_outside);
}

/*
 * Single precision on both sides: 6e-8 a step in other orders of summation, grown by the field over a hundred steps, is below a thousandth of a
 * voxel. A fibre that just meets a stop may do so a step sooner or later, and of these a few in a hundred take another way.
 */
static void like_the_host(void)
{
	static const int64_t shapes[][3] = {{37, 41, 33}, {5, 3, 7}, {33, 1, 29}, {1, 17, 9}, {64, 40, 24}};
	double worst = 0;

	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
		fx_lattice l = tilted(shapes[s][0], shapes[s][1], shapes[s][2], 0.05);
		fx_msg *metric = a_metric(&l, s == 0);
		double *six = some_seeds(&l, 300, 3 + s);

		for (int method = 0; method < 2; method++)
			for (int integrator = 0; integrator <= FX_INTEGRATOR_FROZEN; integrator++)
				for (int rules = 0; rules < 3; rules++) {
					fx_track_spec spec = {.method = method, .integrator = integrator, .step = 0.2, .step_in_voxels = true, .max_steps = 150,
						.both_ways = rules > 0, .stop_mask = rules != 1};
					int64_t outside[2] = {0};
					struct difference d;
					fx_msg *a, *b;

					if (method == FX_TRACK_STREAMLINE && integrator == FX_INTEGRATOR_FROZEN)
						continue;
					if (rules == 2) {
						spec.stop_fa = 0.05;
						spec.stop_angle = 80;
						spec.stop_md = 2.5;
						spec.max_length_mm = 0.905; /* no whole number of steps: sums that round differently end alike */
						spec.min_length_mm = 0.05;
					}
					a = track_with(host, metric, &spec, 300, six, &outside[0]);
					b = track_with(gpu, metric, &spec, 300, six, &outside[1]);
					d = compare(a, b, 0.05);
					worst = fmax(worst, d.apart);
					if (d.apart > 1e-3 || d.n_others > 3 || d.n_lengths > 6 || d.n_stops > 6 || llabs(outside[0] - outside[1]) > 2)
						printf("\n    shape %zu method %d integrator %d rules %d: apart %.1e, common %lld others %lld lengths %lld stops %lld outside %lld %lld",
							s, method, integrator, rules, d.apart, (long long)d.n_common, (long long)d.n_others, (long long)d.n_lengths,
							(long long)d.n_stops, (long long)outside[0], (long long)outside[1]);
					CU_ASSERT(d.apart <= 1e-3);
					CU_ASSERT(d.n_others <= 3 && d.n_lengths <= 6 && d.n_stops <= 6);
					CU_ASSERT(llabs(outside[0] - outside[1]) <= 2);
					CU_ASSERT(outside[0] > 0 || s > 0);
					fx_drop(a);
					fx_drop(b);
				}
		fx_free(six);
		fx_drop(metric);
	}
	printf("\n    at most %.1e voxel from the host over %d steps", worst, HUNDRED);
}

/* Ways of one and the same computation: the sharing threads, one walk or two, sorted seeds. */
static int batch_of(fx_track_plan *plan, fx_metric_arrays *arrays, fx_array *starts, const fx_track_keep *keep, fx_track_arrays *out)
{
	fx_track_counts counts;
	void *prepared = NULL;
	fx_track_arrays there = {0};
	int status = gpu->ops->track_prepare(gpu, plan, arrays, &prepared);

	if (status == FX_OK)
		status = gpu->ops->track_batch(gpu, plan, arrays, prepared, keep, starts, &there, &counts);
	if (status == FX_OK) {
		gpu->ops->download(gpu, there.offsets, &out->offsets);
		gpu->ops->download(gpu, there.points, &out->points);
		gpu->ops->download(gpu, there.riemann, &out->riemann);
		gpu->ops->download(gpu, there.values, &out->values);
		gpu->ops->download(gpu, there.seeds, &out->seeds);
	}
	fx_array_unref(there.offsets);
	fx_array_unref(there.points);
	fx_array_unref(there.riemann);
	fx_array_unref(there.values);
	fx_array_unref(there.seeds);
	gpu->ops->track_release(gpu, prepared);
	return status;
}

static bool same_arrays(const fx_track_arrays *a, const fx_track_arrays *b)
{
	fx_array *const x[] = {a->offsets, a->points, a->riemann, a->values, a->seeds};
	fx_array *const y[] = {b->offsets, b->points, b->riemann, b->values, b->seeds};

	for (int i = 0; i < 5; i++)
		if (!fx_array_same_shape(x[i], y[i]) || memcmp(x[i]->data, y[i]->data, (size_t)x[i]->bytes) != 0)
			return false;
	return true;
}

static void drop_arrays(fx_track_arrays *a)
{
	fx_array_unref(a->offsets);
	fx_array_unref(a->points);
	fx_array_unref(a->riemann);
	fx_array_unref(a->values);
	fx_array_unref(a->seeds);
	*a = (fx_track_arrays){0};
}

static void the_same_bytes(void)
{
	const int64_t n = 20000; /* enough to be sorted */
	fx_lattice l = straight(40, 33, 21, 1, 0, 0, 0);
	fx_msg *msg = a_metric(&l, true);
	fx_metric *g = fx_msg_metric(msg);
	fx_metric_arrays arrays = {.field = to_gpu(g->field), .d = to_gpu(g->d), .mask = to_gpu(g->mask)};
	fx_array *starts = NULL, *there;
	fx_track_plan plan = {.integrator = FX_INTEGRATOR_RK2, .step = 0.1, .voxel = 1, .max_steps = 300, .both_ways = true, .stop_mask = true};
	uint64_t seed = 5;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 6, n, &starts), FX_OK);
	for (int64_t i = 0; i < 6 * n; i++)
		FX_F64_OF(starts)[i] = i % 6 < 3 ? (0.5 + 0.5 * random_next(&seed)) * (double)(l.dims[i % 6] - 1) : random_next(&seed);
	there = to_gpu(starts);
	for (int i = 0; i < 3; i++) {
		plan.affine[i][i] = plan.to_mm[i][i] = plan.to_index[i][i] = 1;
	}
	for (plan.form = FX_TRACK_FORM_KERNEL; plan.form < FX_N_TRACK_FORMS; plan.form++)
		for (plan.lanes = 1; plan.lanes <= 4; plan.lanes *= 2) {
			fx_track_arrays a = {0}, b = {0};

			plan.count_first = false;
			CU_ASSERT_EQUAL_FATAL(batch_of(&plan, &arrays, there, NULL, &a), FX_OK);
			plan.count_first = true;
			CU_ASSERT_EQUAL_FATAL(batch_of(&plan, &arrays, there, NULL, &b), FX_OK);
			CU_ASSERT(a.seeds->n > 10000);
			CU_ASSERT(same_arrays(&a, &b));
			drop_arrays(&a);
			drop_arrays(&b);
		}
	fx_array_unref(arrays.field);
	fx_array_unref(arrays.d);
	fx_array_unref(arrays.mask);
	fx_array_unref(starts);
	fx_array_unref(there);
	fx_drop(msg);
}

/* Largest distance in voxels from the double path of the same field, over the points up to `most`. */
static double from_double(const fx_metric *g, const fx_track_spec *spec, const double six[6], const float *p, int64_t n)
{
	double x[3], v[3], worst = 0;

	memcpy(x, six, sizeof x);
	memcpy(v, six + 3, sizeof v);
	for (int64_t i = 0; i < n; i++) {
		double length = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), away = 0;

		for (int k = 0; k < 3; k++) {
			v[k] /= length;
			away += pow(x[k] - (double)p[3 * i + k], 2);
		}
		worst = fmax(worst, sqrt(away));
		if (!fxi_geodesic_step(fxi_metric_sampled, g, spec->integrator, spec->step, x, v))
			return INFINITY;
	}
	return worst;
}

/*
 * The accuracy class of every form (docs/diffusion.md): 1000 steps of a tenth of a voxel on the ring whose geodesics are circles, radii of 20 to 40
 * voxels, against the double path of the same sampled field, and against the circle itself, from which the grid alone parts any of them. Halves
 * round g to 5e-4, texture weights to 1/512: errors that differ from voxel to voxel, of which a path of a hundred voxels sees the mean.
 */
static void classes_of_forms(void)
{
	static const double most[FX_N_TRACK_FORMS] = {1e-3, 1e-3, 0.05, 0.05, 0.1, 1e-3};
	fx_lattice l = straight(97, 97, 5, 1, 0, 0, 0);
	double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
	const double origin[3] = {0, 0, 0}, to_unit = 1 / 32.0;
	fx_lattice unit = straight(97, 97, 5, to_unit, -48 * to_unit, -48 * to_unit, -2 * to_unit);
	const field f = {.d = round_ring};
	fx_msg *metric = sampled_metric(host, &f, &unit, &plain);
	fx_track_spec spec = {.integrator = FX_INTEGRATOR_RK2, .step = 0.1, .max_steps = 1000};
	double six[64 * 6];
	uint64_t seed = 17;

	(void)l;
	fx_msg_metric(metric)->lattice = lattice_of(97, 97, 5, axes, origin); /* in voxels; the metric of the sampled field times a constant */
	for (int i = 0; i < 64; i++) {
		double r = 30 + 10 * random_next(&seed), angle = 3.14159 * random_next(&seed);
		const double one[6] = {48 + r * cos(angle), 48 + r * sin(angle), 2, -sin(angle), cos(angle), 0};

		memcpy(six + 6 * i, one, sizeof one);
	}
	printf("\n    1000 steps of 0.1 voxel: largest distance in voxels from the double path, and from the circle");
	for (spec.form = FX_TRACK_FORM_KERNEL; spec.form < FX_N_TRACK_FORMS; spec.form++) {
		int64_t n_outside;
		fx_msg *tracts = track_with(gpu, metric, &spec, 64, six, &n_outside);
		double worst = 0, circle = 0;

		CU_ASSERT_EQUAL_FATAL(fx_msg_tracts(tracts)->n, 64);
		for (int i = 0; i < 64; i++) {
			int64_t n;
			const float *p = points_of(tracts, i, &n);
			double r = hypot(six[6 * i] - 48, six[6 * i + 1] - 48);

			worst = fmax(worst, from_double(fx_msg_metric(metric), &spec, six + 6 * i, p, n));
			for (int64_t k = 0; k < n && k < 300; k++)
				circle = fmax(circle, fabs(hypot((double)p[3 * k] - 48, (double)p[3 * k + 1] - 48) - r));
			CU_ASSERT(n == 1001 || spec.form == FX_TRACK_FORM_TEXTURE || spec.form == FX_TRACK_FORM_TEXTURE_HALF);
		}
		printf("\n    form %d: %.1e, %.1e", spec.form, worst, circle);
		CU_ASSERT(worst < most[spec.form]);
		fx_drop(tracts);
	}
	fx_drop(metric);
}

static int two_blocks(const int64_t v[3])
{
	return v[0] < 4 && v[1] < 30 ? 1 : v[0] > 26 && v[2] > 5 ? 2 : v[1] == 20 ? 3 : 0;
}

/* Every fibre that both of the rules' bits can be seen on comes out, with the same bytes as without the rule, and no more than the host keeps. */
static void what_is_kept(void)
{
	fx_lattice l = straight(40, 41, 23, 0.05, -1, -1, -0.5), far = straight(31, 60, 40, 0.07, -1, -1.1, -0.7);
	fx_msg *metric = a_metric(&l, false);
	double *six = some_seeds(&l, 2000, 9);
	fx_track_spec spec = {.integrator = FX_INTEGRATOR_RK2, .step = 0.3, .step_in_voxels = true, .max_steps = 400, .both_ways = true, .stop_mask = true};

	for (int where = 0; where < 2; where++)
		for (int require = 0; require < 2; require++) {
			fx_regions *targets = NULL;
			fx_array *image = NULL;
			fx_error err = {0};
			const fx_lattice *space = where ? &far : &l;
			fx_math *both[2] = {host, gpu};
			int64_t kept[2], missed[2];

			CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, space->dims, &image), FX_OK);
			for (int64_t i = 0; i < image->n; i++)
				FX_F32_OF(image)[i] = (float)two_blocks((int64_t[]){i % space->dims[0], i / space->dims[0] % space->dims[1],
					i / space->dims[0] / space->dims[1]});
			CU_ASSERT_EQUAL_FATAL(fx_regions_new(image, (const double (*)[4])space->affine, true, "two", "1 2", FX_REGIONS_LABELS, &err, &targets), FX_OK);
			for (int k = 0; k < 2; k++) {
				fx_tracts_info *info = fx_tracts_info_new();
				fx_array *seeds = seeds_of(2000, six);
				fx_tracker *t = NULL;
				fx_msg *out = NULL;
				int64_t n_outside;

				CU_ASSERT_EQUAL_FATAL(fx_tracker_new(both[k], fx_msg_metric(metric), &spec, &t), FX_OK);
				CU_ASSERT_EQUAL_FATAL(fx_tracker_keep(t, NULL, targets, require), FX_OK);
				CU_ASSERT_EQUAL_FATAL(fx_tracker_run(t, info, seeds, 0, &out, &n_outside), FX_OK);
				kept[k] = fx_msg_tracts(out)->n;
				missed[k] = fx_tracker_missed(t);
				fx_drop(out);
				fx_tracker_free(t);
				fx_array_unref(seeds);
				fx_tracts_info_unref(info);
			}
			printf("\n    space %d require %d: host keeps %lld misses %lld, GPU %lld %lld", where, require, (long long)kept[0], (long long)missed[0],
				(long long)kept[1], (long long)missed[1]);
			CU_ASSERT(kept[0] > 20 && missed[0] > 20);
			CU_ASSERT(llabs(kept[0] - kept[1]) <= 4); /* fibres that graze a region, after hundreds of steps */
			fx_regions_free(targets);
			fx_array_unref(image);
		}
	fx_free(six);
	fx_drop(metric);
}

static CU_TestInfo tests[] = {
	{"fibres like the host's", like_the_host}, {"the same bytes, however they come", the_same_bytes},
	{"every form against the double path", classes_of_forms}, {"what touches no target is dropped", what_is_kept}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_tracking = {"parity: fibres", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* Density weights: Cartesian grids weigh 1, closed forms fill their disc, weighted sums give a known object's amplitude. */
#include <CUnit/CUnit.h>
#include <complex.h>
#include <fornix/fornix.h>
#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

static fx_error err;

static fx_math math(int n_threads)
{
	err = (fx_error){0};
	return (fx_math){.ops = fx_backend_host(), .n_threads = n_threads, .err = &err};
}

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 11) / 9007199254740992.0;
}

static fx_array *cartesian(const int64_t dims[3], double shift, double jitter, int64_t copies)
{
	int64_t n = dims[0] * dims[1] * dims[2];
	uint64_t state = 5;
	fx_array *k;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n * copies, &k), FX_OK);
	for (int64_t i = 0; i < n * copies; i++) {
		int64_t index[3] = {i % n % dims[0], i % n / dims[0] % dims[1], i % n / dims[0] / dims[1]};

		for (int axis = 0; axis < 3; axis++)
			if (dims[axis] > 1)
				FX_F64_OF(k)[3 * i + axis] = ((double)(index[axis] - dims[axis] / 2) + shift +
					jitter * (2 * uniform(&state) - 1)) / (double)dims[axis];
	}
	return k;
}

static fx_array *iterative(const fx_array *k, const int64_t dims[3], int64_t n_iterations)
{
	fx_math m = math(2);
	fx_array *w;

	CU_ASSERT_EQUAL_FATAL(fx_density_iterative(&m, k, dims, n_iterations, &w), FX_OK);
	CU_ASSERT_EQUAL_FATAL(w->n, k->dims[1]);
	return w;
}

static double sum_of(const fx_array *w)
{
	double sum = 0;

	for (int64_t i = 0; i < w->n; i++)
		sum += FX_F32_OF(w)[i];
	return sum;
}

/*
 * Largest error of (1/N) sum w D e^{i2pi k.x} for a Gaussian of amplitude 1 (sigma in voxels: D is known exactly and
 * vanishes well within the matrix), over points on a diagonal through the centre.
 */
static double gaussian_error(const fx_array *k, const fx_array *w, const int64_t dims[3], double sigma)
{
	int n_axes = (dims[0] > 1) + (dims[1] > 1) + (dims[2] > 1);
	double voxels = (double)(dims[0] * dims[1] * dims[2]), worst = 0;

	for (int step = 0; step < 8; step++) {
		double x[3] = {dims[0] > 1 ? step * sigma / 4 : 0, dims[1] > 1 ? step * sigma / 6 : 0, dims[2] > 1 ? -step * sigma / 8 : 0};
		fx_cf64 sum = 0;

		for (int64_t i = 0; i < w->n; i++) {
			const double *q = FX_F64_OF(k) + 3 * i;
			double k2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2], phase = 2 * PI * (q[0] * x[0] + q[1] * x[1] + q[2] * x[2]);

			sum += FX_F32_OF(w)[i] * pow(sigma * sqrt(2 * PI), n_axes) * exp(-2 * PI * PI * sigma * sigma * k2) * cexp(I * phase);
		}
		worst = fmax(worst, cabs(sum / voxels - exp(-(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) / (2 * sigma * sigma))));
	}
	return worst;
}

static void cartesian_grids_weigh_one(void)
{
	static const int64_t sizes[][3] = {{16, 16, 1}, {15, 9, 1}, {8, 9, 7}, {1, 12, 5}, {31, 1, 1}};

	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
		for (int shift = 0; shift < 3; shift++) {
			fx_array *k = cartesian(sizes[s], 0.25 * shift, 0, 1), *w = iterative(k, sizes[s], 10);
			double worst = 0;

			for (int64_t i = 0; i < w->n; i++)
				worst = fmax(worst, fabs(FX_F32_OF(w)[i] - 1));
			CU_ASSERT(worst < 1e-4); /* positions in single precision */
			fx_array_unref(k);
			fx_array_unref(w);
		}
}

static void averages_share_their_weight(void)
{
	int64_t dims[3] = {9, 8, 1};
	fx_array *k = cartesian(dims, 0, 0, 3), *w = iterative(k, dims, 3);

	for (int64_t i = 0; i < w->n; i++)
		CU_ASSERT(fabs(FX_F32_OF(w)[i] - 1.0 / 3) < 1e-4);
	fx_array_unref(k);
	fx_array_unref(w);
}

static void perturbed_grids_keep_amplitude(void)
{
	int64_t flat[3] = {48, 41, 1}, deep[3] = {20, 21, 18};
	fx_array *k = cartesian(flat, 0, 0.4, 1), *w = iterative(k, flat, 30);

	/* about one sample a cell at random offsets: weights fit the density, but no weights undo the gaps; unweighted: 0.07 */
	CU_ASSERT(gaussian_error(k, w, flat, 5) < 0.03);
	CU_ASSERT(fabs(sum_of(w) / (48 * 41) - 1) < 0.03); /* the jittered edge is not where the grid's was */
	fx_array_unref(k);
	fx_array_unref(w);
	k = cartesian(deep, 0, 0.4, 1);
	w = iterative(k, deep, 30);
	CU_ASSERT(gaussian_error(k, w, deep, 3) < 0.03);
	fx_array_unref(k);
	fx_array_unref(w);
}

/* ---- readouts ---- */

/* {3, n}: samples r0 .. of step dr (cycles/voxel) along a direction. */
static fx_array *spoke(int64_t n, double r0, double dr, const double u[3])
{
	fx_array *k;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n, &k), FX_OK);
	for (int64_t i = 0; i < n; i++)
		for (int axis = 0; axis < 3; axis++)
			FX_F64_OF(k)[3 * i + axis] = (r0 + dr * (double)i) * u[axis];
	return k;
}

/* All readouts of a frame with their closed-form weights. */
struct scan {
	fx_array *k, *w;
	int64_t n;
};

static struct scan scan_new(int64_t samples)
{
	struct scan s = {0};

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, samples, &s.k), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_F32, samples, &s.w), FX_OK);
	return s;
}

static void scan_add(struct scan *s, fx_array *k_take, const int64_t dims[3], int64_t n_readouts)
{
	fx_math m = math(1);
	fx_array *w = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_density_analytic(&m, k_take, dims, n_readouts, &w), FX_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	CU_ASSERT_EQUAL_FATAL(w->n, k_take->dims[1]);
	memcpy(FX_F64_OF(s->k) + 3 * s->n, k_take->data, (size_t)k_take->bytes);
	memcpy(FX_F32_OF(s->w) + s->n, w->data, (size_t)w->bytes);
	s->n += w->n;
	fx_array_unref(w);
	fx_array_unref(k_take);
}

static void scan_free(struct scan *s)
{
	fx_array_unref(s->k);
	fx_array_unref(s->w);
}

enum { FULL, FULL_SHIFTED, HALF, HALF_SHIFTED, INWARDS, ASYMMETRIC, N_KINDS };

static fx_array *spoke_of_kind(int kind, int64_t n, const double u[3])
{
	double dr = 1.0 / (double)n;

	switch (kind) {
	case FULL:
		return spoke(n, -0.5, dr, u);
	case FULL_SHIFTED: /* the centre lies between two samples, a third of the way */
		return spoke(n, -0.5 + 0.3 * dr, dr, u);
	case HALF:
		return spoke(n / 2, 0, dr, u);
	case HALF_SHIFTED:
		return spoke(n / 2, 0.8 * dr, dr, u);
	case INWARDS:
		return spoke(n / 2, 0.5, -dr, u);
	default: /* 60 % of a full spoke */
		return spoke(6 * n / 10, -0.1, dr, u);
	}
}

static void flat_radial(void)
{
	int64_t dims[3] = {48, 48, 1}, n = 96, spokes = 120;

	for (int kind = 0; kind < N_KINDS; kind++) {
		struct scan s = scan_new(spokes * n);
		double turn = kind <= FULL_SHIFTED ? PI : 2 * PI, sum;

		for (int64_t i = 0; i < spokes; i++) {
			double angle = turn * (double)i / (double)spokes;

			scan_add(&s, spoke_of_kind(kind, n, (double[]){cos(angle), sin(angle), 0}), dims, spokes);
		}
		s.w->dims[0] = s.w->n = s.n;
		sum = sum_of(s.w);
		/* outermost samples in cells, and half a step of half a cell beyond; unequal ends each fill half the disc */
		static const double ends[][2] = {{24, 23.5}, {23.85, 23.65}, {23.5, 23.5}, {23.9, 23.9}, {24, 24}, {23.2, 23.2}};
		/* less what the bend of the Jacobian at the centre takes: 2 pi spacing^2 / 24, spacing half a cell */
		double filled = PI / 2 * (pow(ends[kind][0] + 0.25, 2) + pow(ends[kind][1] + 0.25, 2)) - PI / 48;

		CU_ASSERT(fabs(sum / filled - 1) < 1e-5); /* single precision weights */
		/* the rule's second order leaves 7e-4 where the centre itself was not sampled; without the bend it is 5e-3 */
		CU_ASSERT(gaussian_error(s.k, s.w, dims, 4) < 1e-3);
		scan_free(&s);
	}
}

static void round_radial(void)
{
	int64_t dims[3] = {20, 20, 20}, n = 80, spokes = 1600;

	for (int kind = 0; kind < N_KINDS; kind++) {
		struct scan s = scan_new(spokes * n);

		for (int64_t i = 0; i < spokes; i++) { /* a spiral of equal area over the half or whole sphere */
			double z = kind <= FULL_SHIFTED ? ((double)i + 0.5) / (double)spokes : (2 * (double)i + 1) / (double)spokes - 1;
			double angle = 2.399963229728653 * (double)i, r = sqrt(1 - z * z);

			scan_add(&s, spoke_of_kind(kind, n, (double[]){r * cos(angle), r * sin(angle), z}), dims, spokes);
		}
		s.w->dims[0] = s.w->n = s.n;
		/* the rule is good to fourth order here; without the bend it is 5e-3 */
		CU_ASSERT(gaussian_error(s.k, s.w, dims, 2.5) < 2e-4);
		scan_free(&s);
	}
}

/* Both ways agree where the trajectory is dense, within what the iterative kernel resolves. */
static void spirals(void)
{
	int64_t dims[3] = {64, 64, 1}, n = 900, arms = 16;
	struct scan s = scan_new(arms * n);
	fx_array *w;
	double difference = 0, norm = 0;

	for (int64_t arm = 0; arm < arms; arm++) {
		fx_array *k;

		CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n, &k), FX_OK);
		for (int64_t i = 0; i < n; i++) {
			double t = pow((double)i / (double)(n - 1), 0.7), angle = 2 * PI * (2.4 * t + (double)arm / (double)arms);
			int64_t at = arm % 2 ? n - 1 - i : i; /* every other one inwards */

			FX_F64_OF(k)[3 * at] = 0.5 * t * cos(angle);
			FX_F64_OF(k)[3 * at + 1] = 0.5 * t * sin(angle);
		}
		scan_add(&s, k, dims, arms);
	}
	CU_ASSERT(fabs(sum_of(s.w) / (PI * 32 * 32) - 1) < 0.01);
	CU_ASSERT(gaussian_error(s.k, s.w, dims, 5) < 0.005);
	w = iterative(s.k, dims, 20);
	CU_ASSERT(gaussian_error(s.k, w, dims, 5) < 0.002);
	for (int64_t i = 0; i < w->n; i++) { /* away from the rim, where the iterative weights rise */
		if (hypot(FX_F64_OF(s.k)[3 * i], FX_F64_OF(s.k)[3 * i + 1]) > 0.45)
			continue;
		difference += pow(FX_F32_OF(w)[i] - FX_F32_OF(s.w)[i], 2);
		norm += pow(FX_F32_OF(s.w)[i], 2);
	}
	CU_ASSERT(sqrt(difference / norm) < 0.01);
	fx_array_unref(w);
	scan_free(&s);
}

static void dense_radial_iterative(void)
{
	int64_t dims[3] = {24, 24, 24}, n = 48, spokes = 900;
	fx_array *k, *w, *again;
	fx_math one = math(1);

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, n * spokes, &k), FX_OK);
	for (int64_t i = 0; i < spokes; i++) {
		double z = ((double)i + 0.5) / (double)spokes, angle = 2.399963229728653 * (double)i, r = sqrt(1 - z * z);
		fx_array *one_spoke = spoke(n, -0.5, 1.0 / (double)n, (double[]){r * cos(angle), r * sin(angle), z});

		memcpy(FX_F64_OF(k) + 3 * n * i, one_spoke->data, (size_t)one_spoke->bytes);
		fx_array_unref(one_spoke);
	}
	w = iterative(k, dims, 15);
	CU_ASSERT(gaussian_error(k, w, dims, 3) < 0.02);
	CU_ASSERT_EQUAL_FATAL(fx_density_iterative(&one, k, dims, 15, &again), FX_OK);
	CU_ASSERT_EQUAL(memcmp(w->data, again->data, (size_t)w->bytes), 0);
	fx_array_unref(again);
	fx_array_unref(w);
	fx_array_unref(k);
}

static void shapes_that_are_neither(void)
{
	int64_t flat[3] = {32, 32, 1}, deep[3] = {32, 32, 8};
	fx_math m = math(1);
	fx_array *k, *w;

	/* a Cartesian line off the centre */
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 32, &k), FX_OK);
	for (int64_t i = 0; i < 32; i++) {
		FX_F64_OF(k)[3 * i] = (double)(i - 16) / 32;
		FX_F64_OF(k)[3 * i + 1] = 0.2;
	}
	CU_ASSERT_EQUAL(fx_density_analytic(&m, k, flat, 10, &w), FX_OK);
	CU_ASSERT_PTR_NULL(w);
	/* a spoke of a partition off the centre */
	for (int64_t i = 0; i < 32; i++) {
		FX_F64_OF(k)[3 * i + 1] = 0;
		FX_F64_OF(k)[3 * i + 2] = 0.25;
	}
	CU_ASSERT_EQUAL(fx_density_analytic(&m, k, deep, 10, &w), FX_OK);
	CU_ASSERT_PTR_NULL(w);
	/* there and back again */
	for (int64_t i = 0; i < 32; i++) {
		FX_F64_OF(k)[3 * i] = (double)(i < 20 ? i : 38 - i) / 64;
		FX_F64_OF(k)[3 * i + 2] = 0;
	}
	CU_ASSERT_EQUAL(fx_density_analytic(&m, k, flat, 10, &w), FX_OK);
	CU_ASSERT_PTR_NULL(w);
	/* all zero, one sample, none */
	memset(k->data, 0, (size_t)k->bytes);
	CU_ASSERT_EQUAL(fx_density_analytic(&m, k, flat, 10, &w), FX_OK);
	CU_ASSERT_PTR_NULL(w);
	for (k->dims[1] = 1; k->dims[1] >= 0; k->dims[1]--) {
		CU_ASSERT_EQUAL(fx_density_analytic(&m, k, flat, 10, &w), FX_OK);
		CU_ASSERT_PTR_NULL(w);
	}
	fx_array_unref(k);
}

/* Samples beyond the matrix were dropped: their neighbours do not inherit the hole. */
static void gaps_are_not_filled(void)
{
	int64_t dims[3] = {32, 32, 1};
	fx_math m = math(1);
	fx_array *whole = spoke(32, 0, 1.0 / 64, (double[]){1, 0, 0}), *cut, *w_whole, *w_cut;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 22, &cut), FX_OK);
	memcpy(cut->data, whole->data, 12 * 3 * sizeof(double));
	memcpy(FX_F64_OF(cut) + 12 * 3, FX_F64_OF(whole) + 22 * 3, 10 * 3 * sizeof(double));
	CU_ASSERT_EQUAL_FATAL(fx_density_analytic(&m, whole, dims, 7, &w_whole), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_density_analytic(&m, cut, dims, 7, &w_cut), FX_OK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(w_cut);
	for (int64_t i = 0; i < 22; i++) /* single precision weights up to about 3 */
		CU_ASSERT(fabsf(FX_F32_OF(w_cut)[i] - FX_F32_OF(w_whole)[i < 12 ? i : i + 10]) < 1e-5f);
	fx_array_unref(whole);
	fx_array_unref(cut);
	fx_array_unref(w_whole);
	fx_array_unref(w_cut);
}

static void kinds_with_a_closed_form(void)
{
	fx_encoding e = {.trajectory = FX_TRAJ_RADIAL};
	int64_t flat[3] = {64, 64, 1}, deep[3] = {64, 64, 64}, line[3] = {64, 1, 1};

	CU_ASSERT_TRUE(fx_density_has_analytic(&e, flat));
	CU_ASSERT_TRUE(fx_density_has_analytic(&e, deep));
	CU_ASSERT_FALSE(fx_density_has_analytic(&e, line));
	e.limits[FX_STEP_2] = (fx_limit){.present = true, .max = 15};
	CU_ASSERT_FALSE(fx_density_has_analytic(&e, deep)); /* a stack of stars */
	e = (fx_encoding){.trajectory = FX_TRAJ_SPIRAL};
	CU_ASSERT_TRUE(fx_density_has_analytic(&e, flat));
	CU_ASSERT_FALSE(fx_density_has_analytic(&e, deep));
	e.trajectory = FX_TRAJ_OTHER;
	CU_ASSERT_FALSE(fx_density_has_analytic(&e, flat));
}

static void odd_inputs(void)
{
	int64_t dims[3] = {8, 8, 8};
	fx_math m = math(2);
	fx_array *k, *w;

	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 1, &k), FX_OK);
	FX_F64_OF(k)[1] = -0.3;
	CU_ASSERT_EQUAL_FATAL(fx_density_iterative(&m, k, dims, 5, &w), FX_OK);
	CU_ASSERT(fabsf(FX_F32_OF(w)[0] - 1) < 1e-5f); /* single precision */
	fx_array_unref(w);
	FX_F64_OF(k)[2] = NAN;
	CU_ASSERT_EQUAL(fx_density_iterative(&m, k, dims, 5, &w), FX_EDATA);
	CU_ASSERT_PTR_NULL(w);
	FX_F64_OF(k)[2] = 1e300;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_density_iterative(&m, k, dims, 5, &w), FX_EDATA);
	CU_ASSERT_PTR_NULL(w);
	fx_array_unref(k);
	/* two samples a million cells apart along every axis: more cells than memory */
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 2, &k), FX_OK);
	for (int axis = 0; axis < 3; axis++)
		FX_F64_OF(k)[3 + axis] = 1e6 / 8;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_density_iterative(&m, k, dims, 5, &w), FX_ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "GB"));
	fx_array_unref(k);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 0, &k), FX_OK);
	err = (fx_error){0};
	CU_ASSERT_EQUAL_FATAL(fx_density_iterative(&m, k, dims, 5, &w), FX_OK);
	CU_ASSERT_EQUAL(w->n, 0);
	fx_array_unref(w);
	CU_ASSERT_EQUAL(fx_density_iterative(&m, k, dims, 0, &w), FX_EINVAL);
	fx_array_unref(k);
}

static CU_TestInfo tests[] = {
	{"Cartesian grids weigh 1, edges too", cartesian_grids_weigh_one},
	{"averages share their weight", averages_share_their_weight},
	{"perturbed grids keep amplitude", perturbed_grids_keep_amplitude},
	{"2-D spokes of every kind", flat_radial},
	{"3-D spokes of every kind", round_radial},
	{"spirals, both ways", spirals},
	{"3-D radial, iterative", dense_radial_iterative},
	{"shapes that are neither", shapes_that_are_neither},
	{"gaps are not filled", gaps_are_not_filled},
	{"kinds with a closed form", kinds_with_a_closed_form},
	{"one sample, NaN, too far, nothing", odd_inputs},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_density = {"density", NULL, NULL, NULL, NULL, tests};

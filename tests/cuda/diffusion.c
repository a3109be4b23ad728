/* SPDX-License-Identifier: MIT */
/* diffusion.c - marks, tensor fits, smoothing and metrics, CUDA against the host, on awkward shapes and with values that are no numbers. */
#include "parity.h"

#include <math.h>
#include <string.h>

/* One voxel, lines, planes, odd and larger than a block, and more than one warp of which the last is partial. */
static const int64_t shapes[][3] = {{1, 1, 1}, {13, 1, 1}, {1, 1, 7}, {7, 5, 3}, {33, 17, 1}, {21, 19, 17}};
#define N_SHAPES (sizeof shapes / sizeof shapes[0])

static fx_array *here(const fx_array *on_gpu)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(gpu->ops->download(gpu, on_gpu, &a), FX_OK);
	return a;
}

static void drop(fx_array **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fx_array_unref(list[i]);
}

static fx_array *random_bytes(const int64_t dims[3], unsigned seed, double share)
{
	fx_array *r = parity_random(FX_F32, 3, dims, seed), *a = zeros(host, FX_U8, 3, dims);

	for (int64_t i = 0; i < a->n; i++)
		((uint8_t *)a->data)[i] = (double)FX_F32_OF(r)[i] < 2 * share - 1;
	fx_array_unref(r);
	return a;
}

static bool same_bytes(const fx_array *on_gpu, const fx_array *on_host)
{
	fx_array *a = here(on_gpu);
	bool same = a->bytes == on_host->bytes && memcmp(a->data, on_host->data, (size_t)a->bytes) == 0;

	fx_array_unref(a);
	return same;
}

/* Largest |a - b| over finite b, relative to `scale`; infinite where one is a number and the other is none. */
static double worst(const fx_array *on_gpu, const fx_array *on_host, double scale)
{
	fx_array *a = here(on_gpu);
	double most = 0;

	for (int64_t i = 0; i < a->n; i++) {
		double x = (double)FX_F32_OF(a)[i], y = (double)FX_F32_OF(on_host)[i];

		if (isnan(x) || isnan(y))
			most = isnan(x) && isnan(y) ? most : (double)INFINITY;
		else
			most = fmax(most, fabs(x - y) / scale);
	}
	fx_array_unref(a);
	return most;
}

/* ---- marks and magnitudes ----------------------------------------------------------------------- */

static void marks(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *r = parity_random(FX_F32, 3, shapes[s], 1), *a = zeros(host, FX_U8, 3, shapes[s]);
		fx_array *within = random_bytes(shapes[s], 2, 0.6), *out = zeros(host, FX_U8, 3, shapes[s]);
		fx_array *ga, *gw = to_gpu(within), *go = zeros(gpu, FX_U8, 3, shapes[s]);
		int64_t n[9], gn[9];

		for (int64_t i = 0; i < a->n; i++)
			((uint8_t *)a->data)[i] = (uint8_t)(128 + 127 * FX_F32_OF(r)[i]);
		ga = to_gpu(a);
		for (int form = 0; form < 3; form++) { /* with and without `within`; counts alone */
			const fx_array *w = form == 1 ? within : NULL, *gwithin = form == 1 ? gw : NULL;

			CU_ASSERT_EQUAL(host->ops->marks(host, a, 0x2a, 3, 1, w, form < 2 ? out : NULL, n), FX_OK);
			CU_ASSERT_EQUAL(gpu->ops->marks(gpu, ga, 0x2a, 3, 1, gwithin, form < 2 ? go : NULL, gn), FX_OK);
			CU_ASSERT_TRUE(memcmp(n, gn, sizeof n) == 0);
			CU_ASSERT_TRUE(same_bytes(go, out));
		}
		CU_ASSERT_EQUAL(host->ops->marks(host, a, 1, 0, 7, within, a, NULL), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->marks(gpu, ga, 1, 0, 7, gw, ga, NULL), FX_OK);
		CU_ASSERT_TRUE(same_bytes(ga, a));
		drop((fx_array *[]){r, a, within, out, ga, gw, go}, 7);
	}
}

static void magnitudes(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		fx_array *x = parity_random(FX_CF32, 3, shapes[s], 3), *none = zeros(host, FX_F32, 3, shapes[s]);
		fx_array *size = zeros(host, FX_F32, 3, shapes[s]), *gsize = zeros(gpu, FX_F32, 3, shapes[s]), *gx, *gnone;
		bool any, gany;

		FX_CF32_OF(x)[x->n / 2] = FX_CF32(NAN, 1);
		FX_CF32_OF(x)[0] = FX_CF32(3e30f, 4e30f); /* whose square overflows single precision */
		gx = to_gpu(x);
		CU_ASSERT_EQUAL(host->ops->magnitude(host, x, size, &any), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->magnitude(gpu, gx, gsize, &gany), FX_OK);
		CU_ASSERT_TRUE(any && gany);
		CU_ASSERT_TRUE(same_bytes(gsize, size)); /* a correctly rounded root in double of products that are exact but for one rounding */
		FX_F32_OF(none)[none->n - 1] = -1;
		gnone = to_gpu(none);
		CU_ASSERT_EQUAL(gpu->ops->magnitude(gpu, gnone, NULL, &gany), FX_OK);
		CU_ASSERT_FALSE(gany);
		FX_F32_OF(none)[none->n - 1] = 1e-30f;
		fx_array_unref(gnone);
		gnone = to_gpu(none);
		CU_ASSERT_EQUAL(gpu->ops->magnitude(gpu, gnone, NULL, &gany), FX_OK);
		CU_ASSERT_TRUE(gany);
		drop((fx_array *[]){x, none, size, gsize, gx, gnone}, 6);
	}
}

/* ---- tensors ------------------------------------------------------------------------------------ */

/* Tensors of tissue, some with a negative eigenvalue, some not finite, some isotropic, some fluid. */
static fx_array *tensors_of(const int64_t dims[3], unsigned seed)
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	fx_array *d = zeros(host, FX_F32, 4, (int64_t[]){6, dims[0], dims[1], dims[2]});
	fx_array *r = parity_random(FX_F32, 4, d->dims, seed);

	for (int64_t i = 0; i < d->n / 6; i++) {
		const float *v = FX_F32_OF(r) + 6 * i;
		float *to = FX_F32_OF(d) + 6 * i;

		for (int c = 0; c < 6; c++)
			to[c] = v[row[c]] * v[column[c]] + v[3 + row[c]] * v[3 + column[c]] + (row[c] == column[c] ? 0.2f : 0);
		if (i % 11 == 5)
			to[0] = -1;
		if (i % 13 == 7)
			to[3] = NAN;
		if (i % 17 == 3)
			for (int c = 0; c < 6; c++)
				to[c] = row[c] == column[c] ? 3.1f : 0;
		if (i % 19 == 4)
			for (int c = 0; c < 6; c++)
				to[c] = row[c] == column[c] ? -0.3f : 0;
	}
	fx_array_unref(r);
	return d;
}

static int metric_arrays(fx_math *m, const int64_t n[3], fx_metric_arrays *a)
{
	const int64_t field[4] = {24, n[0], n[1], n[2]}, d[4] = {6, n[0], n[1], n[2]};

	*a = (fx_metric_arrays){.field = zeros(m, FX_F32, 4, field), .d = zeros(m, FX_F32, 4, d), .fa = zeros(m, FX_F32, 3, n),
		.md = zeros(m, FX_F32, 3, n), .mask = zeros(m, FX_U8, 3, n)};
	return FX_OK;
}

static void one_metric(const int64_t dims[3], const fx_metric_plan *plan, int marked)
{
	fx_array *d = tensors_of(dims, 5), *mask = random_bytes(dims, 6, marked == 2 ? 0.02 : 0.8), *flags = random_bytes(dims, 7, 0.1);
	fx_array *gd = to_gpu(d), *gmask = to_gpu(mask), *gflags = to_gpu(flags);
	fx_metric_counts n, gn, again_n;
	fx_metric_arrays a, g, again;

	metric_arrays(host, dims, &a);
	metric_arrays(gpu, dims, &g);
	metric_arrays(gpu, dims, &again);
	CU_ASSERT_EQUAL(host->ops->metric_build(host, plan, d, marked ? mask : NULL, marked ? flags : NULL, &a, &n), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->metric_build(gpu, plan, gd, marked ? gmask : NULL, marked ? gflags : NULL, &g, &gn), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->metric_build(gpu, plan, gd, marked ? gmask : NULL, marked ? gflags : NULL, &again, &again_n), FX_OK);
	CU_ASSERT_TRUE(memcmp(&n, &gn, sizeof n) == 0 && memcmp(&gn, &again_n, sizeof n) == 0);
	CU_ASSERT_TRUE(same_bytes(g.mask, a.mask));
	/*
	 * Both in double, and rounded once: an element may fall to the other side, 6e-8 of the largest, which the floor bounds at 20 (its cube
	 * where sharpened) and the affine at 4; of differences of such elements twice that.
	 */
	double scale = 4 * pow(1 / plan->floor, plan->kind == FX_METRIC_SHARPENED ? plan->power : 1) * (plan->kind == FX_METRIC_ADJUGATE ? 10 : 1);

	CU_ASSERT_TRUE(worst(g.field, a.field, scale) < 4 * 1.2e-7);
	CU_ASSERT_TRUE(worst(g.d, a.d, 4) < 1.2e-7);
	CU_ASSERT_TRUE(worst(g.fa, a.fa, 1) < 1.2e-7);
	CU_ASSERT_TRUE(worst(g.md, a.md, 4) < 1.2e-7);
	fx_array *one = here(g.field), *two = here(again.field);

	CU_ASSERT_TRUE(memcmp(one->data, two->data, (size_t)one->bytes) == 0);
	drop((fx_array *[]){d, mask, flags, gd, gmask, gflags, a.field, a.d, a.fa, a.md, a.mask, g.field, g.d, g.fa, g.md, g.mask, again.field,
		again.d, again.fa, again.md, again.mask, one, two}, 23);
}

static void metrics(void)
{
	static const int kinds[] = {FX_METRIC_INVERSE, FX_METRIC_ADJUGATE, FX_METRIC_SHARPENED};

	for (size_t s = 0; s < N_SHAPES; s++)
		for (int k = 0; k < 3; k++)
			for (int marked = 0; marked < 3; marked++) {
				fx_metric_plan plan = {.kind = kinds[k], .power = 3, .floor = 0.05, .csf_md = k == 1 ? (double)INFINITY : 2,
					.count_md = 2, .skip_flags = 1, .to_mm = {{1.6, -1.1, 0.2}, {1.2, 1.5, -0.4}, {0.1, 0.6, 1.9}}};

				one_metric(shapes[s], &plan, marked);
			}
}

static void no_voxel(void)
{
	const int64_t dims[3] = {5, 4, 3};
	fx_array *d = tensors_of(dims, 5), *mask = zeros(host, FX_U8, 3, dims), *gd = to_gpu(d), *gmask = to_gpu(mask);
	fx_metric_plan plan = {.kind = FX_METRIC_INVERSE, .floor = 0.05, .csf_md = 2, .count_md = 2, .to_mm = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
	fx_metric_counts n;
	fx_metric_arrays g;

	metric_arrays(gpu, dims, &g);
	CU_ASSERT_EQUAL(gpu->ops->metric_build(gpu, &plan, gd, gmask, NULL, &g, &n), FX_OK);
	CU_ASSERT_EQUAL(n.n_inside + n.n_bad + n.n_csf + n.n_above + n.n_floored, 0);
	fx_array *field = here(g.field);

	for (int64_t i = 0; i < field->n; i++)
		CU_ASSERT_TRUE(isnan(FX_F32_OF(field)[i]));
	drop((fx_array *[]){d, mask, gd, gmask, g.field, g.d, g.fa, g.md, g.mask, field}, 10);
}

static void smoothing(void)
{
	static const double sigma[3] = {1.3, 0.4, 2.1};

	for (size_t s = 0; s < N_SHAPES; s++)
		for (int marked = 0; marked < 2; marked++) {
			fx_array *d = tensors_of(shapes[s], 8), *mask = random_bytes(shapes[s], 9, 0.7), *flags = random_bytes(shapes[s], 10, 0.2);
			fx_array *gd = to_gpu(d), *gmask = to_gpu(mask), *gflags = to_gpu(flags);
			fx_array *out = zeros(host, FX_F32, 4, d->dims), *gout = zeros(gpu, FX_F32, 4, d->dims);

			CU_ASSERT_EQUAL(host->ops->tensor_smooth(host, d, marked ? mask : NULL, marked ? flags : NULL, 1, sigma, out), FX_OK);
			CU_ASSERT_EQUAL(gpu->ops->tensor_smooth(gpu, gd, marked ? gmask : NULL, marked ? gflags : NULL, 1, sigma, gout), FX_OK);
			/* sums in double, in one order; rounded to single once an axis and once divided: four roundings of up to 3.1 */
			CU_ASSERT_TRUE(worst(gout, out, 3.1) < 4 * 1.2e-7);
			drop((fx_array *[]){d, mask, flags, gd, gmask, gflags, out, gout}, 8);
		}
}

/* ---- fits --------------------------------------------------------------------------------------- */

#define MOST_VOLUMES 300

struct series {
	int64_t n;
	double *q;
	fx_tensor_design design;
	fx_array *volumes[MOST_VOLUMES], *on_gpu[MOST_VOLUMES];
};

/* Of few volumes one is b0, so that six directions are left. */
static bool is_b0(int64_t n, int64_t i)
{
	return n < 12 ? i == 0 : i % 6 == 0;
}

/* Columns 1, -b g g^T made orthonormal (Gram and Schmidt); to_x is the inverse of the triangle. b in ms/um^2. */
static void make_design(struct series *s)
{
	double r[7][7] = {{0}};

	for (int64_t i = 0; i < s->n; i++) {
		double z = 1 - ((double)i + 0.5) / (double)s->n, c = sqrt(1 - z * z), a = 2.4 * (double)i, b = is_b0(s->n, i) ? 0 : i % 2 ? 1 : 1.6;
		const double g[3] = {c * cos(a), c * sin(a), z};
		const double row[7] = {1, -b * g[0] * g[0], -2 * b * g[0] * g[1], -b * g[1] * g[1], -2 * b * g[0] * g[2], -2 * b * g[1] * g[2],
			-b * g[2] * g[2]};

		memcpy(s->q + 7 * i, row, sizeof row);
	}
	for (int k = 0; k < 7; k++) {
		for (int pass = 0; pass < 2; pass++)
			for (int l = 0; l < k; l++) {
				double dot = 0;

				for (int64_t i = 0; i < s->n; i++)
					dot += s->q[7 * i + l] * s->q[7 * i + k];
				r[l][k] += dot;
				for (int64_t i = 0; i < s->n; i++)
					s->q[7 * i + k] -= dot * s->q[7 * i + l];
			}
		for (int64_t i = 0; i < s->n; i++)
			r[k][k] += s->q[7 * i + k] * s->q[7 * i + k];
		r[k][k] = sqrt(r[k][k]);
		for (int64_t i = 0; i < s->n; i++)
			s->q[7 * i + k] /= r[k][k];
	}
	for (int c = 0; c < 7; c++)
		for (int k = 6; k >= 0; k--) {
			double sum = k == c;

			for (int l = k + 1; l <= c; l++)
				sum -= r[k][l] * s->design.to_x[l][c];
			s->design.to_x[k][c] = sum / r[k][k];
		}
}

/* Signals of tissue with noise; some voxels with zeros, NaN, all alike, one b0 only, or signals of ten decades. */
static void make_series(struct series *s, const int64_t dims[3], int64_t n)
{
	fx_array *d = tensors_of(dims, 11);
	double back[7][7];

	*s = (struct series){.n = n, .q = fx_alloc(n, 7 * sizeof(double))};
	s->design = (fx_tensor_design){.n = n, .q = s->q};
	make_design(s);
	memcpy(back, s->design.to_x, sizeof back);
	for (int64_t v = 0; v < n; v++) {
		double z = 1 - ((double)v + 0.5) / (double)n, c = sqrt(1 - z * z), a = 2.4 * (double)v, b = is_b0(n, v) ? 0 : v % 2 ? 1 : 1.6;
		const double g[3] = {c * cos(a), c * sin(a), z};
		fx_array *noise = parity_random(FX_F32, 3, dims, 20 + (unsigned)v);

		s->volumes[v] = zeros(host, FX_F32, 3, dims);
		for (int64_t i = 0; i < noise->n; i++) {
			const float *t = FX_F32_OF(d) + 6 * i;
			double p = (double)t[0] * g[0] * g[0] + 2 * (double)t[1] * g[0] * g[1] + (double)t[2] * g[1] * g[1] +
				2 * (double)t[3] * g[0] * g[2] + 2 * (double)t[4] * g[1] * g[2] + (double)t[5] * g[2] * g[2];
			float *out = FX_F32_OF(s->volumes[v]) + i;

			*out = (float)(800 * exp(-b * p) + 8 * (double)FX_F32_OF(noise)[i]);
			if (i % 23 == 2)
				*out = 500;
			if (i % 29 == 9 && v % 5 == 0)
				*out = 0;
			if (i % 31 == 8 && v > 3)
				*out = NAN; /* too few are left */
			if (i % 37 == 6)
				*out = (float)exp(-23 * b * (double)(v % 3)); /* weights of twenty decades */
		}
		s->on_gpu[v] = to_gpu(s->volumes[v]);
		fx_array_unref(noise);
	}
	fx_array_unref(d);
}

static void free_series(struct series *s)
{
	drop(s->volumes, (size_t)s->n);
	drop(s->on_gpu, (size_t)s->n);
	fx_free(s->q);
}

static fx_tensor_arrays fit_arrays(fx_math *m, const int64_t n[3])
{
	return (fx_tensor_arrays){.d = zeros(m, FX_F32, 4, (int64_t[]){6, n[0], n[1], n[2]}), .s0 = zeros(m, FX_F32, 3, n),
		.residual = zeros(m, FX_F32, 3, n), .flags = zeros(m, FX_U8, 3, n)};
}

static void drop_fit(fx_tensor_arrays *a)
{
	drop((fx_array *[]){a->d, a->s0, a->residual, a->flags}, 4);
}

/*
 * D is compared where its noise is ordinary. host/tensor.c states 5e-6 um^2/ms against double for single precision there, and here two such
 * results meet; where signals span decades a rounding of a logarithm (1e-6) may be amplified by a pivot of 2e-2, the least that single
 * precision is trusted with, to 5e-5.
 */
static void compare_fits(const fx_tensor_arrays *g, const fx_tensor_arrays *a)
{
	CU_ASSERT_TRUE(same_bytes(g->flags, a->flags));
	CU_ASSERT_TRUE(worst(g->d, a->d, 1) < 5e-5);
	CU_ASSERT_TRUE(worst(g->s0, a->s0, 800) < 1e-5);
	CU_ASSERT_TRUE(worst(g->residual, a->residual, 800) < 1e-5);
}

static void one_fit(struct series *s, const int64_t dims[3], int from_signals, int reweightings, bool masked)
{
	fx_array *mask = random_bytes(dims, 12, 0.7), *gmask = to_gpu(mask);
	fx_tensor_arrays a = fit_arrays(host, dims), g = fit_arrays(gpu, dims), again = fit_arrays(gpu, dims);

	s->design.from_signals = from_signals;
	s->design.reweightings = reweightings;
	CU_ASSERT_EQUAL(host->ops->tensor_fit(host, &s->design, (const fx_array *const *)s->volumes, masked ? mask : NULL, &a), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->tensor_fit(gpu, &s->design, (const fx_array *const *)s->on_gpu, masked ? gmask : NULL, &g), FX_OK);
	CU_ASSERT_EQUAL(gpu->ops->tensor_fit(gpu, &s->design, (const fx_array *const *)s->on_gpu, masked ? gmask : NULL, &again), FX_OK);
	compare_fits(&g, &a);
	fx_array *one = here(g.d), *two = here(again.d);

	CU_ASSERT_TRUE(memcmp(one->data, two->data, (size_t)one->bytes) == 0);
	drop((fx_array *[]){one, two, mask, gmask}, 4);
	drop_fit(&a);
	drop_fit(&g);
	drop_fit(&again);
}

static void fits(void)
{
	static const int64_t volumes[] = {7, 33, MOST_VOLUMES}; /* just enough, odd, more than shared memory takes at a time */

	for (size_t s = 0; s < N_SHAPES; s++)
		for (size_t v = 0; v < sizeof volumes / sizeof volumes[0]; v++) {
			struct series series;

			make_series(&series, shapes[s], volumes[v]);
			one_fit(&series, shapes[s], 0, 0, false);
			one_fit(&series, shapes[s], 1, 2, true);
			one_fit(&series, shapes[s], 0, 1, false);
			free_series(&series);
		}
}

static void sums(void)
{
	for (size_t s = 0; s < N_SHAPES; s++) {
		const int64_t *n = shapes[s], four[4] = {n[0], n[1], n[2], 7};
		struct series series;
		fx_array *sum = zeros(host, FX_F32, 4, four), *seen = zeros(host, FX_U8, 3, n);
		fx_array *gsum = zeros(gpu, FX_F32, 4, four), *gseen = zeros(gpu, FX_U8, 3, n), *mask = random_bytes(n, 13, 0.7), *gmask = to_gpu(mask);
		fx_tensor_arrays a = fit_arrays(host, n), g = fit_arrays(gpu, n);

		make_series(&series, n, 33);
		for (int64_t v = 0; v < series.n; v++) {
			const double *row = series.q + 7 * v;

			CU_ASSERT_EQUAL(host->ops->tensor_accumulate(host, row, series.volumes[v], series.volumes[0], sum, seen), FX_OK);
			CU_ASSERT_EQUAL(gpu->ops->tensor_accumulate(gpu, row, series.on_gpu[v], series.on_gpu[0], gsum, gseen), FX_OK);
		}
		CU_ASSERT_TRUE(same_bytes(gseen, seen));
		/* 33 logarithms of up to 23 in size, each good to 2 units in the last place, added in single precision in one order */
		CU_ASSERT_TRUE(worst(gsum, sum, 23) < 33 * 1.2e-7);
		CU_ASSERT_EQUAL(host->ops->tensor_solve(host, &series.design, sum, seen, mask, &a), FX_OK);
		CU_ASSERT_EQUAL(gpu->ops->tensor_solve(gpu, &series.design, gsum, gseen, gmask, &g), FX_OK);
		CU_ASSERT_TRUE(same_bytes(g.flags, a.flags));
		CU_ASSERT_TRUE(worst(g.d, a.d, 1) < 5e-5); /* the design's inverse turns 1e-6 of a sum into no more than ten times that */
		CU_ASSERT_TRUE(worst(g.s0, a.s0, 800) < 1e-4);
		free_series(&series);
		drop((fx_array *[]){sum, seen, gsum, gseen, mask, gmask}, 6);
		drop_fit(&a);
		drop_fit(&g);
	}
}

static CU_TestInfo tests[] = {
	{"marks", marks}, {"magnitudes", magnitudes}, {"metrics, the same bits twice", metrics}, {"a metric without a voxel", no_voxel},
	{"smoothed tensors", smoothing}, {"tensor fits, the same bits twice", fits}, {"sums of fits", sums}, CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_parity_diffusion = {"parity: tensors and metrics", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* The metric of a tensor field: kinds, floor, derivatives and mask borders against a plain computation in double. */
#include "fields.h"

#include <stdio.h>

#define NX 7
#define NY 6
#define NZ 5
#define N (NX * NY * NZ)

static const fx_metric_spec plain = {.kind = FX_METRIC_INVERSE, .floor = 0.05};
static const int64_t dims[3] = {NX, NY, NZ};

/* A random tensor with eigenvalues from 0.2 to 3, drawn as D = sum of two outer products and 0.2 I. */
static void random_tensor(uint64_t *seed, float d[6])
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	double v[2][3];

	for (int i = 0; i < 6; i++)
		v[i / 3][i % 3] = random_next(seed);
	for (int c = 0; c < 6; c++)
		d[c] = (float)(v[0][row[c]] * v[0][column[c]] + v[1][row[c]] * v[1][column[c]] + (row[c] == column[c] ? 0.2 : 0));
}

static fx_msg *random_tensors(uint64_t seed, bool masked)
{
	double axes[3][3] = {{1.6, -1.1, 0.2}, {1.2, 1.5, -0.4}, {0.1, 0.6, 1.9}}, origin[3] = {-3, 4, 5};
	const int64_t four[4] = {6, NX, NY, NZ};
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t;

	if (!msg || fx_array_new(FX_F32, 4, four, &fx_msg_tensors(msg)->d) != FX_OK ||
		(masked && fx_array_new(FX_U8, 3, dims, &fx_msg_tensors(msg)->mask) != FX_OK))
		CU_FAIL_FATAL("no memory for a test's tensors");
	t = fx_msg_tensors(msg);
	t->lattice = lattice_of(NX, NY, NZ, axes, origin);
	for (int64_t i = 0; i < N; i++) {
		random_tensor(&seed, FX_F32_OF(t->d) + 6 * i);
		if (masked)
			((uint8_t *)t->mask->data)[i] = random_next(&seed) < 0.2;
	}
	return msg;
}

static fx_msg *build(fx_msg *tensors, const fx_metric_spec *spec, int n_threads)
{
	fx_math *m = math_of(n_threads);
	fx_msg *metric = NULL;

	if (fx_metric_build(m, fx_msg_tensors(tensors), spec, &metric) != FX_OK) {
		printf("\n%s\n", m->err->text);
		CU_FAIL_FATAL("a test's metric could not be built");
	}
	fx_math_free(m);
	return metric;
}

static int fails(fx_msg *tensors, const fx_metric_spec *spec)
{
	fx_math *m = math_of(1);
	fx_msg *metric = (fx_msg *)1;
	int status = fx_metric_build(m, fx_msg_tensors(tensors), spec, &metric);

	CU_ASSERT_PTR_NULL(metric);
	CU_ASSERT(m->err->text[0] != 0);
	fx_math_free(m);
	return status;
}

/* g of one tensor in index space: the inverse of A^-1 G A^-T. */
static void exact(const fx_lattice *l, const fx_metric_spec *spec, const float *from, double small[6])
{
	double d[6], inverse[3][4], det, work[6], big[6];
	fx_error err = {0};

	for (int c = 0; c < 6; c++)
		d[c] = (double)from[c];
	CU_ASSERT_EQUAL_FATAL(fx_lattice_inverse(l, inverse, &err), FX_OK);
	const double back[3][3] = {{inverse[0][0], inverse[0][1], inverse[0][2]}, {inverse[1][0], inverse[1][1], inverse[1][2]},
		{inverse[2][0], inverse[2][1], inverse[2][2]}};
	const double full[3][3] = {{d[0], d[1], d[3]}, {d[1], d[2], d[4]}, {d[3], d[4], d[5]}};

	memcpy(work, d, sizeof work);
	if (spec->kind == FX_METRIC_ADJUGATE) {
		det = d[0] * (d[2] * d[5] - d[4] * d[4]) - d[1] * (d[1] * d[5] - d[3] * d[4]) + d[3] * (d[1] * d[4] - d[2] * d[3]);
		for (int c = 0; c < 6; c++)
			work[c] /= det;
	} else if (spec->kind == FX_METRIC_SHARPENED) { /* power 3: D D D^T */
		fx_tensor_turn(full, d, work);
	}
	fx_tensor_turn(back, work, big);
	CU_ASSERT_FATAL(fx_tensor_inverse(big, small));
}

static bool at_mask(const fx_metric *g, const int64_t x[3])
{
	for (int a = 0; a < 3; a++)
		if (x[a] < 0 || x[a] >= g->lattice.dims[a])
			return false;
	return ((const uint8_t *)g->mask->data)[(x[2] * NY + x[1]) * NX + x[0]] != 0;
}

/* The rule of fx_metric_build for one voxel and axis. */
static void exact_difference(const fx_metric *g, double small[N][6], const int64_t x[3], int axis, double out[6])
{
	const int64_t stride[3] = {1, NX, (int64_t)NX * NY};
	int64_t at = x[0] + NX * x[1] + NX * NY * x[2], s = stride[axis];
	bool in[5];

	for (int step = -2; step <= 2; step++) {
		int64_t to[3] = {x[0], x[1], x[2]};

		to[axis] += step;
		in[step + 2] = at_mask(g, to);
	}
	for (int c = 0; c < 6; c++) {
		if (in[1] && in[3])
			out[c] = (small[at + s][c] - small[at - s][c]) / 2;
		else if (in[3])
			out[c] = in[4] ? (-3 * small[at][c] + 4 * small[at + s][c] - small[at + 2 * s][c]) / 2 : small[at + s][c] - small[at][c];
		else if (in[1])
			out[c] = in[0] ? (3 * small[at][c] - 4 * small[at - s][c] + small[at - 2 * s][c]) / 2 : small[at][c] - small[at - s][c];
		else
			out[c] = 0;
	}
}

/* Largest relative difference from the plain computation: single's rounding of g, 6e-8, times weights of up to 4 and the ratio
 * of g to its differences. */
static double worst_difference(fx_msg *tensors, const fx_metric_spec *spec)
{
	static double small[N][6];
	fx_msg *msg = build(tensors, spec, 1);
	const fx_metric *g = fx_msg_metric(msg);
	const fx_tensors *t = fx_msg_tensors(tensors);
	double worst = 0, most = 0;

	for (int64_t i = 0; i < N; i++)
		exact(&t->lattice, spec, FX_F32_OF(t->d) + 6 * i, small[i]);
	for (int64_t i = 0; i < N; i++) {
		const int64_t x[3] = {i % NX, i / NX % NY, i / NX / NY};
		const float *f = FX_F32_OF(g->field) + 24 * i;
		bool given = !t->mask || ((const uint8_t *)t->mask->data)[i];

		CU_ASSERT_EQUAL(at_mask(g, x), given);
		for (int axis = 0; axis < 3 && given; axis++) {
			double d[6];

			exact_difference(g, small, x, axis, d);
			for (int c = 0; c < 6; c++) {
				worst = fmax(worst, fabs((double)f[6 + 6 * axis + c] - d[c]));
				most = fmax(most, fabs(small[i][c]));
			}
		}
		for (int c = 0; c < 6 && given; c++)
			CU_ASSERT_DOUBLE_EQUAL((double)f[c], small[i][c], 1e-6 * fabs(small[i][0] + small[i][2] + small[i][5]));
	}
	fx_drop(msg);
	return worst / most;
}

static void kinds_and_derivatives(void)
{
	for (int masked = 0; masked < 2; masked++) {
		fx_msg *tensors = random_tensors(17, masked);

		for (int kind = FX_METRIC_INVERSE; kind <= FX_METRIC_SHARPENED; kind++) {
			const fx_metric_spec spec = {.kind = kind, .power = 3, .floor = 0.05};

			CU_ASSERT(worst_difference(tensors, &spec) < 1e-6);
		}
		fx_drop(tensors);
	}
}

/* Central and second-order one-sided differences of a quadratic are exact; 1e-5: D and g in single, values near 3. */
static void exact_on_quadratics(void)
{
	double axes[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, origin[3] = {0, 0, 0};
	fx_msg *tensors = random_tensors(3, false), *msg;
	const float *f;

	fx_msg_tensors(tensors)->lattice = lattice_of(NX, NY, NZ, axes, origin);
	for (int64_t i = 0; i < N; i++) {
		double x = (double)(i % NX), y = (double)(i / NX % NY), z = (double)(i / NX / NY), d[6];
		const double g[6] = {1 + 0.1 * x + 0.02 * x * x, 0.05 * y, 2 - 0.03 * y * y, 0.02 * x, -0.03 * z, 1.5 + 0.04 * z * z};

		CU_ASSERT_FATAL(fx_tensor_inverse(g, d));
		for (int c = 0; c < 6; c++)
			FX_F32_OF(fx_msg_tensors(tensors)->d)[6 * i + c] = (float)d[c];
	}
	msg = build(tensors, &plain, 1);
	f = fx_msg_metric(msg)->field->data;
	for (int64_t i = 0; i < N; i++, f += 24) {
		double x = (double)(i % NX), y = (double)(i / NX % NY), z = (double)(i / NX / NY);
		const double slope[18] = {0.1 + 0.04 * x, 0, 0, 0.02, 0, 0, 0, 0.05, -0.06 * y, 0, 0, 0, 0, 0, 0, 0, -0.03, 0.08 * z};

		for (int c = 0; c < 18; c++)
			CU_ASSERT_DOUBLE_EQUAL((double)f[6 + c], slope[c], 1e-5);
	}
	fx_drop(msg);
	fx_drop(tensors);
}

/* Outside voxels take the mean of the nearest kind of neighbour inside, and are NaN where there is none. */
static void continued_beyond_the_mask(void)
{
	fx_msg *tensors = random_tensors(29, true), *msg;
	uint8_t *mask = fx_msg_tensors(tensors)->mask->data;
	const fx_metric *g;
	const float *f, *a, *b;

	memset(mask, 0, N);
	mask[(2 * NY + 2) * NX + 2] = mask[(2 * NY + 2) * NX + 4] = 1; /* two voxels, one between them */
	msg = build(tensors, &plain, 1);
	g = fx_msg_metric(msg);
	f = g->field->data;
	a = f + 24 * ((2 * NY + 2) * NX + 2);
	b = a + 48;
	for (int c = 0; c < 24; c++) {
		CU_ASSERT_DOUBLE_EQUAL((double)a[24 + c], ((double)a[c] + (double)b[c]) / 2, 1e-6); /* by two faces */
		CU_ASSERT_EQUAL(a[-24 + c], a[c]);                        /* by one */
		CU_ASSERT_EQUAL(a[24 * (-NX - 1) + c], a[c]);             /* by an edge */
		CU_ASSERT_EQUAL(a[24 * (-NX * NY - NX - 1) + c], a[c]);   /* by a corner */
		CU_ASSERT(isnan(b[48 + c]));                              /* two away */
		CU_ASSERT(c < 6 || a[c] == 0);                            /* alone on each axis */
	}
	CU_ASSERT_EQUAL(FX_F32_OF(g->d)[6 * ((2 * NY + 2) * NX + 1)], FX_F32_OF(g->d)[6 * ((2 * NY + 2) * NX + 2)]);
	CU_ASSERT_EQUAL(FX_F32_OF(g->fa)[0], 0);
	CU_ASSERT(isnan(FX_F32_OF(g->d)[0]));
	CU_ASSERT_EQUAL(((const uint8_t *)g->mask->data)[(2 * NY + 2) * NX + 3], 0);
	fx_drop(msg);
	fx_drop(tensors);
}

static void put_diagonal(fx_msg *tensors, int64_t voxel, float x, float y, float z)
{
	const float d[6] = {x, 0, y, 0, 0, z};

	memcpy(FX_F32_OF(fx_msg_tensors(tensors)->d) + 6 * voxel, d, sizeof d);
}

static void floors_and_unusable_voxels(void)
{
	fx_metric_spec spec = {.kind = FX_METRIC_INVERSE, .floor = 0.05, .csf = FX_CSF_MASK, .csf_md = 2};
	fx_msg *tensors = random_tensors(31, false), *msg;
	fx_tensors *t = fx_msg_tensors(tensors);
	const uint8_t *mask;
	const fx_metric *g;
	uint8_t *flags;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, dims, &t->flags), FX_OK);
	flags = t->flags->data;
	for (int64_t i = 0; i < N; i++)
		put_diagonal(tensors, i, 1.7f, 0.3f, 0.3f);
	put_diagonal(tensors, 0, 1.7f, 0.3f, -0.2f);   /* floored */
	put_diagonal(tensors, 1, 0, 0, 0);             /* no positive eigenvalue */
	put_diagonal(tensors, 2, NAN, 1, 1);
	put_diagonal(tensors, 3, INFINITY, 1, 1);
	put_diagonal(tensors, 4, 3, 3, 3);             /* fluid */
	put_diagonal(tensors, 5, -1, -2, -3);
	flags[8] = FX_TENSOR_UNFITTED;
	flags[9] = FX_TENSOR_CLAMPED;
	msg = build(tensors, &spec, 2);
	g = fx_msg_metric(msg);
	mask = g->mask->data;
	CU_ASSERT(mask[0] && !mask[1] && !mask[2] && !mask[3] && !mask[4] && !mask[5] && mask[6] && mask[7] && !mask[8] && mask[9]);
	CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(g->d)[5], 0.05, 1e-7);
	CU_ASSERT_EQUAL(FX_F32_OF(g->d)[6 * 6], 1.7f);
	CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(g->md)[6], 2.3 / 3, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(g->fa)[6], fx_tensor_fa((double[3]){1.7, 0.3, 0.3}), 1e-6);
	CU_ASSERT_PTR_NOT_NULL(strstr(g->origin, "204 voxels, 1 floored, 4 unusable, 1 fluid"));
	fx_drop(msg);
	for (int64_t i = 0; i < N; i++)
		put_diagonal(tensors, i, 0, 0, 0);
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EDATA);
	fx_drop(tensors);
}

static void what_is_refused(void)
{
	fx_msg *tensors = random_tensors(37, false);
	fx_metric_spec spec = plain;

	spec.floor = 0;
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EINVAL);
	spec.floor = NAN;
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EINVAL);
	spec = plain;
	spec.kind = FX_METRIC_SHARPENED;
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EINVAL);
	spec = plain;
	spec.kind = 9;
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EINVAL);
	spec = plain;
	spec.csf = FX_CSF_MASK;
	CU_ASSERT_EQUAL(fails(tensors, &spec), FX_EINVAL);
	for (int i = 0; i < 3; i++)
		fx_msg_tensors(tensors)->lattice.affine[i][1] = fx_msg_tensors(tensors)->lattice.affine[i][0];
	CU_ASSERT_EQUAL(fails(tensors, &plain), FX_EDATA);
	fx_drop(tensors);
}

static void threads_change_nothing(void)
{
	fx_msg *tensors = random_tensors(41, true), *a = build(tensors, &plain, 1), *b = build(tensors, &plain, 3);

	CU_ASSERT_EQUAL(memcmp(fx_msg_metric(a)->field->data, fx_msg_metric(b)->field->data, N * 24 * sizeof(float)), 0);
	CU_ASSERT_EQUAL(memcmp(fx_msg_metric(a)->d->data, fx_msg_metric(b)->d->data, N * 6 * sizeof(float)), 0);
	fx_drop(a);
	fx_drop(b);
	fx_drop(tensors);
}

static CU_TestInfo tests[] = {
	{"kinds, index space and derivatives as computed plainly, with and without a mask", kinds_and_derivatives},
	{"derivatives of quadratics are exact, at the edges too", exact_on_quadratics},
	{"continued beyond the mask", continued_beyond_the_mask},
	{"floor, fluid, and tensors of no use", floors_and_unusable_voxels},
	{"what is refused", what_is_refused},
	{"threads change no byte", threads_change_nothing},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_metric_build = {"metric_build", NULL, NULL, NULL, NULL, tests};

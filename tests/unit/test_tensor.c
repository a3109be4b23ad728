/* SPDX-License-Identifier: MIT */
/*
 * Algebra, maps and files of tensors against closed forms: matrices are made of known eigenvalues and of a rotation from a
 * quaternion, and their eigenvectors are judged by D v = l v, which needs no second solver.
 */
#include "check.h"

#include <string.h>

static void random_rotation(uint64_t *seed, double r[3][3])
{
	double q[4], norm = 0;

	for (int i = 0; i < 4; i++) {
		q[i] = random_next(seed) + 1e-3;
		norm += q[i] * q[i];
	}
	for (int i = 0; i < 4; i++)
		q[i] /= sqrt(norm);
	r[0][0] = 1 - 2 * (q[2] * q[2] + q[3] * q[3]);
	r[0][1] = 2 * (q[1] * q[2] - q[0] * q[3]);
	r[0][2] = 2 * (q[1] * q[3] + q[0] * q[2]);
	r[1][0] = 2 * (q[1] * q[2] + q[0] * q[3]);
	r[1][1] = 1 - 2 * (q[1] * q[1] + q[3] * q[3]);
	r[1][2] = 2 * (q[2] * q[3] - q[0] * q[1]);
	r[2][0] = 2 * (q[1] * q[3] - q[0] * q[2]);
	r[2][1] = 2 * (q[2] * q[3] + q[0] * q[1]);
	r[2][2] = 1 - 2 * (q[1] * q[1] + q[2] * q[2]);
}

/* sum_i l_i c_i c_i^T with the columns c_i of r, written out here and not by fx_tensor_turn */
static void compose(double r[3][3], const double l[3], double d[6])
{
	static const int at[6][2] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}};

	for (int e = 0; e < 6; e++) {
		d[e] = 0;
		for (int i = 0; i < 3; i++)
			d[e] += l[i] * r[at[e][0]][i] * r[at[e][1]][i];
	}
}

static double element(const double d[6], int i, int j)
{
	static const int at[3][3] = {{0, 1, 3}, {1, 2, 4}, {3, 4, 5}};

	return d[at[i][j]];
}

/* Largest of |D v - l v| and of the vectors' departure from an orthonormal frame, relative to |l|max. */
static double eigen_error(const double d[6], const double l[3], double v[3][3])
{
	double worst = 0, size = fmax(fabs(l[0]), fabs(l[2]));

	for (int i = 0; i < 3; i++) {
		for (int a = 0; a < 3; a++) {
			double dv = 0, dot = 0;

			for (int b = 0; b < 3; b++) {
				dv += element(d, a, b) * v[i][b];
				dot += v[i][b] * v[a][b];
			}
			worst = fmax(worst, fabs(dv - l[i] * v[i][a]) / (size > 0 ? size : 1));
			worst = fmax(worst, fabs(dot - (i == a)));
		}
	}
	return worst;
}

static void eigen_of_random_matrices(void)
{
	uint64_t seed = 7;
	double worst = 0, worst_value = 0;

	for (int n = 0; n < 20000; n++) {
		double r[3][3], made[3], d[6], l[3], v[3][3], scale = pow(10, 12 * random_next(&seed));

		random_rotation(&seed, r);
		for (int i = 0; i < 3; i++)
			made[i] = scale * (n % 3 == 0 ? random_next(&seed) : pow(10, 3 * random_next(&seed)));
		if (n % 5 == 0)
			made[1] = made[0]; /* degenerate */
		if (n % 35 == 0)
			made[2] = made[0];
		compose(r, made, d);
		fx_tensor_eigen(d, l, v);
		CU_ASSERT(l[0] >= l[1] && l[1] >= l[2]);
		worst = fmax(worst, eigen_error(d, l, v));
		for (int i = 0; i < 3; i++) { /* sums of powers know the eigenvalues without sorting */
			double p = 0, q = 0;

			for (int k = 0; k < 3; k++) {
				p += pow(l[k] / scale / 1e3, i + 1);
				q += pow(made[k] / scale / 1e3, i + 1);
			}
			worst_value = fmax(worst_value, fabs(p - q));
		}
	}
	/* a few roundings of 1.1e-16 in the matrix and in each rotation */
	CU_ASSERT(worst < 4e-15);
	CU_ASSERT(worst_value < 1e-14);
}

static void eigen_of_special_matrices(void)
{
	static const double cases[][6] = {
		{0, 0, 0, 0, 0, 0}, {2, 0, 2, 0, 0, 2}, {1, 0, 2, 0, 0, 3}, {0, 1, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1},
		{1e-300, 1e-301, 2e-300, 0, 0, 1e-300}, {1e300, 1e299, -2e300, 3e299, 0, 1e300}, {5e-324, 0, 5e-324, 0, 0, 5e-324},
		{1, 1e-20, 1, 1e-20, 0, 1}, {-1, 0, -2, 0.5, 0, -3}, {0, 0, 0, 0, 1, 0},
	};
	double l[3], v[3][3], nothing[6] = {1, NAN, 1, 0, 0, 1};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_tensor_eigen(cases[i], l, v);
		CU_ASSERT(eigen_error(cases[i], l, v) < 2e-15);
		CU_ASSERT(l[0] >= l[1] && l[1] >= l[2]);
	}
	fx_tensor_eigen(cases[4], l, v); /* of ones: 3, 0, 0 */
	CU_ASSERT_DOUBLE_EQUAL(l[0], 3, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(v[0][0], sqrt(1.0 / 3), 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(l[2], 0, 1e-15);
	fx_tensor_eigen(nothing, l, v);
	CU_ASSERT(isnan(l[0]) && isnan(l[2]));
	nothing[1] = INFINITY;
	fx_tensor_eigen(nothing, l, v);
	CU_ASSERT(isnan(l[1]));
}

/* Graded: the small eigenvalue of [[1e10, 1e5/2], [1e5/2, 1]] is 0.75 to all digits, which 1e10 * eps = 2e-6 would hide. */
static void small_eigenvalues_keep_their_digits(void)
{
	const double d[6] = {1e10, 5e4, 1, 0, 0, 3};
	double l[3], v[3][3], trace = 1e10 + 1, det = 1e10 - 25e8;

	fx_tensor_eigen(d, l, v);
	CU_ASSERT_DOUBLE_EQUAL(l[0], (trace + sqrt(trace * trace - 4 * det)) / 2, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(l[1], 3, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(l[2], det / l[0], 1e-15);
}

static void anisotropy(void)
{
	const double stick[3] = {1.7, 0, 0}, ball[3] = {0.8, 0.8, 0.8}, none[3] = {0}, fibre[3] = {1.7, 0.3, 0.3};
	const double large[3] = {1.7e300, 0.3e300, 0.3e300}, bad[3] = {1, NAN, 1};

	CU_ASSERT_DOUBLE_EQUAL(fx_tensor_fa(stick), 1, 1e-15);
	CU_ASSERT_EQUAL(fx_tensor_fa(ball), 0);
	CU_ASSERT_EQUAL(fx_tensor_fa(none), 0);
	/* |l1 - l2| / sqrt(l1^2 + 2 l2^2) where l2 = l3 */
	CU_ASSERT_DOUBLE_EQUAL(fx_tensor_fa(fibre), 1.4 / sqrt(1.7 * 1.7 + 2 * 0.09), 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(fx_tensor_fa(large), 1.4 / sqrt(1.7 * 1.7 + 2 * 0.09), 1e-15);
	CU_ASSERT(isnan(fx_tensor_fa(bad)));
}

static void inverses(void)
{
	const double flat[6] = {1, 1, 1, 1, 1, 1}, zero[6] = {0}, bad[6] = {1, 0, 1, 0, 0, NAN};
	const double thin[6] = {1, 0, 1e-10, 0, 0, 1e-10}, tiny[6] = {1e-300, 0, 2e-300, 0, 0, 4e-300};
	double inverse[6], worst = 0;
	uint64_t seed = 11;

	for (int n = 0; n < 2000; n++) {
		double r[3][3], d[6], l[3];

		random_rotation(&seed, r);
		for (int i = 0; i < 3; i++)
			l[i] = 2 + random_next(&seed);
		compose(r, l, d);
		CU_ASSERT(fx_tensor_inverse(d, inverse));
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++) {
				double sum = 0;

				for (int k = 0; k < 3; k++)
					sum += element(d, a, k) * element(inverse, k, b);
				worst = fmax(worst, fabs(sum - (a == b)));
			}
	}
	CU_ASSERT(worst < 1e-14); /* the condition is at most 3 */
	CU_ASSERT_FALSE(fx_tensor_inverse(flat, inverse));
	CU_ASSERT_FALSE(fx_tensor_inverse(zero, inverse));
	CU_ASSERT_FALSE(fx_tensor_inverse(bad, inverse));
	CU_ASSERT(fx_tensor_inverse(thin, inverse));
	CU_ASSERT_DOUBLE_EQUAL(inverse[2], 1e10, 1e-4);
	CU_ASSERT(fx_tensor_inverse(tiny, inverse));
	CU_ASSERT_DOUBLE_EQUAL(inverse[5] / 1e299, 2.5, 1e-14);
}

static void turning_and_raising(void)
{
	const double l[3] = {1.7, 0.3, -0.2};
	double r[3][3], diagonal[6] = {1.7, 0, 0.3, 0, 0, -0.2}, want[6], got[6], raised[3], v[3][3], bad[6] = {NAN};
	uint64_t seed = 3;

	random_rotation(&seed, r);
	compose(r, l, want);
	fx_tensor_turn((const double (*)[3])r, diagonal, got);
	for (int e = 0; e < 6; e++)
		CU_ASSERT_DOUBLE_EQUAL(got[e], want[e], 1e-15);
	CU_ASSERT(fx_tensor_raise(got, 0.4));
	fx_tensor_eigen(got, raised, v);
	CU_ASSERT_DOUBLE_EQUAL(raised[0], 1.7, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(raised[1], 0.4, 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(raised[2], 0.4, 1e-15);
	CU_ASSERT_FALSE(fx_tensor_raise(got, 0.1));
	CU_ASSERT_FALSE(fx_tensor_raise(bad, 0.1));
}

/* ---- fields ---- */

/* An oblique, anisotropic lattice whose affine has a determinant of the given sign. */
static fx_lattice oblique(int64_t x, int64_t y, int64_t z, double sign, double r[3][3])
{
	fx_lattice l = {.dims = {x, y, z}, .has_affine = true};
	const double size[3] = {2 * sign, 1.5, 3};
	uint64_t seed = 5;

	random_rotation(&seed, r);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			l.affine[i][k] = r[i][k] * size[k];
	l.affine[0][3] = -17;
	return l;
}

static fx_msg *random_field(const fx_lattice *lattice, uint64_t seed)
{
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t = fx_msg_tensors(msg);
	const int64_t *n = lattice->dims;

	t->lattice = *lattice;
	if (fx_array_new4(FX_F32, 6, n[0], n[1], n[2], &t->d) != FX_OK || fx_array_new(FX_U8, 3, n, &t->mask) != FX_OK ||
		fx_array_new(FX_U8, 3, n, &t->flags) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's tensors");
	for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
		double r[3][3], l[3], d[6];

		random_rotation(&seed, r);
		for (int k = 0; k < 3; k++)
			l[k] = 1.1 + random_next(&seed);
		compose(r, l, d);
		for (int e = 0; e < 6; e++)
			FX_F32_OF(t->d)[6 * i + e] = (float)d[e];
		((uint8_t *)t->mask->data)[i] = i % 5 != 2;
	}
	return msg;
}

static fx_array *map_of(const fx_tensors *t, int map, int n_threads)
{
	fx_math *m = math_of(n_threads);
	fx_array *out = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_tensor_map(m, t, map, &out), FX_OK);
	fx_math_free(m);
	return out;
}

static void maps_of_one_voxel(void)
{
	const double l[3] = {1.7, 0.5, 0.3}, fa = sqrt(0.5 * (1.2 * 1.2 + 0.2 * 0.2 + 1.4 * 1.4) / (1.7 * 1.7 + 0.25 + 0.09));
	const double want[] = {fa, 2.5 / 3, 1.7, 0.4};
	double r[3][3], d[6], axes[3][3];
	fx_lattice lattice = oblique(1, 1, 1, 1, axes);
	fx_msg *msg = random_field(&lattice, 1);
	fx_tensors *t = fx_msg_tensors(msg);
	uint64_t seed = 9;

	random_rotation(&seed, r);
	compose(r, l, d);
	for (int e = 0; e < 6; e++)
		FX_F32_OF(t->d)[e] = (float)d[e];
	for (int map = 0; map < FX_N_MAPS; map++) {
		fx_array *a = map_of(t, map, 1);

		if (map <= FX_MAP_RD)
			CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a)[0], want[map], 1e-6); /* d is rounded to single */
		if (map == FX_MAP_EVALS)
			for (int k = 0; k < 3; k++)
				CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(a)[k], l[k], 1e-6);
		if (map == FX_MAP_EVEC)
			CU_ASSERT_DOUBLE_EQUAL(fabs(FX_F32_OF(a)[0] * r[0][0] + FX_F32_OF(a)[1] * r[1][0] + FX_F32_OF(a)[2] * r[2][0]),
				1, 1e-6);
		if (map == FX_MAP_COLOUR_FA)
			for (int k = 0; k < 3; k++)
				CU_ASSERT_DOUBLE_EQUAL(((uint8_t *)a->data)[k], 255 * fa * fabs(r[k][0]), 0.501);
		fx_array_unref(a);
	}
	fx_drop(msg);
}

static void maps_follow_flags(void)
{
	double axes[3][3];
	fx_lattice lattice = oblique(5, 1, 1, 1, axes);
	fx_msg *msg = random_field(&lattice, 1);
	fx_tensors *t = fx_msg_tensors(msg);
	uint8_t *flags = t->flags->data, *mask = t->mask->data;
	fx_array *fa, *md, *e1, *none = NULL;
	fx_math *m = math_of(1);

	mask[2] = 1;
	mask[0] = 0;
	flags[1] = FX_TENSOR_UNFITTED;
	flags[2] = FX_TENSOR_ISOTROPIC;
	flags[3] = FX_TENSOR_CLAMPED | FX_TENSOR_DROPPED;
	FX_F32_OF(t->d)[6 * 4] = NAN;
	fa = map_of(t, FX_MAP_FA, 1);
	md = map_of(t, FX_MAP_MD, 1);
	e1 = map_of(t, FX_MAP_EVEC, 1);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(FX_F32_OF(fa)[i] > 0, i == 3);
		CU_ASSERT_EQUAL(FX_F32_OF(e1)[i] != 0, i == 3);
		CU_ASSERT_EQUAL(FX_F32_OF(md)[i] > 0, i == 2 || i == 3);
	}
	fx_array_unref(fa);
	fx_array_unref(md);
	fx_array_unref(e1);
	CU_ASSERT_EQUAL(fx_tensor_map(m, t, FX_N_MAPS, &none), FX_EINVAL);
	t->lattice.dims[0] = 4;
	CU_ASSERT_EQUAL(fx_tensor_map(m, t, FX_MAP_FA, &none), FX_EINVAL);
	CU_ASSERT_PTR_NULL(none);
	fx_math_free(m);
	fx_drop(msg);
}

static void maps_do_not_depend_on_threads(void)
{
	double axes[3][3];
	fx_lattice lattice = oblique(19, 23, 11, 1, axes); /* more than two blocks */
	fx_msg *msg = random_field(&lattice, 21);

	for (int map = 0; map < FX_N_MAPS; map++) {
		fx_array *a = map_of(fx_msg_tensors(msg), map, 1), *b = map_of(fx_msg_tensors(msg), map, 4);

		CU_ASSERT_EQUAL(memcmp(a->data, b->data, (size_t)a->bytes), 0);
		fx_array_unref(a);
		fx_array_unref(b);
	}
	lattice.dims[1] = 0;
	fx_msg *empty = random_field(&lattice, 1);
	fx_array *a = map_of(fx_msg_tensors(empty), FX_MAP_FA, 2);
	CU_ASSERT_EQUAL(a->n, 0);
	fx_array_unref(a);
	fx_drop(empty);
	fx_drop(msg);
}

static CU_TestInfo tests[] = {
	{"eigenvalues and vectors of random matrices", eigen_of_random_matrices},
	{"zero, degenerate, graded, tiny and huge matrices", eigen_of_special_matrices},
	{"small eigenvalues beside large ones", small_eigenvalues_keep_their_digits},
	{"fractional anisotropy", anisotropy},
	{"inverses, and what has none", inverses},
	{"turned and raised tensors", turning_and_raising},
	{"maps of a known tensor", maps_of_one_voxel},
	{"maps follow mask and flags", maps_follow_flags},
	{"maps are the same for any number of threads", maps_do_not_depend_on_threads},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_tensor = {"tensor", NULL, NULL, NULL, NULL, tests};

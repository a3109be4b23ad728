/* SPDX-License-Identifier: MIT */
/*
 * Tensor images in other programs' orders, frames and units. What must hold: a signal's exponent g^T D g is the same
 * whether tensor and gradient are both in RAS or both in the other frame, since a gradient is what those frames are for.
 */
#include "check.h"

/* components of a symmetric matrix in each program's order, by its axes */
static const int at[3][6][2] = {
	[FX_ORDER_NIFTI] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2}, {2, 2}},
	[FX_ORDER_MRTRIX] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}},
	[FX_ORDER_FSL] = {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}},
};

/* Axes turned about z by 30 degrees, of sizes 2, 1.5, 3; the first one mirrored where sign is -1, sheared where asked. */
static fx_lattice lattice_of(int64_t x, int64_t y, int64_t z, double sign, double shear)
{
	double c = cos(M_PI / 6), s = sin(M_PI / 6);
	fx_lattice l = {.dims = {x, y, z}, .has_affine = true,
		.affine = {{2 * sign * c, -1.5 * s, shear, 4}, {2 * sign * s, 1.5 * c, 0, 5}, {0, 0, 3, 6}}};

	return l;
}

static fx_msg *field(const fx_lattice *l, double scale)
{
	fx_msg *msg = fx_msg_new(FX_TENSORS);
	fx_tensors *t = fx_msg_tensors(msg);
	uint64_t seed = 1;

	t->lattice = *l;
	if (fx_array_new4(FX_F32, 6, l->dims[0], l->dims[1], l->dims[2], &t->d) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's tensors");
	for (int64_t i = 0; i < t->d->n; i += 6) { /* diagonally dominant: positive */
		for (int e = 0; e < 6; e++)
			FX_F32_OF(t->d)[i + e] = (float)(scale * 0.2 * random_next(&seed));
		for (int k = 0; k < 3; k++)
			FX_F32_OF(t->d)[i + (int[]){0, 2, 5}[k]] += (float)(scale * (0.6 + 0.3 * k));
	}
	return msg;
}

static double form(const int order[6][2], const float *d, int64_t stride, const double g[3])
{
	double sum = 0;

	for (int e = 0; e < 6; e++)
		sum += (order[e][0] == order[e][1] ? 1 : 2) * d[e * stride] * g[order[e][0]] * g[order[e][1]];
	return sum;
}

static void forms_agree(double sign, double shear)
{
	fx_lattice l = lattice_of(3, 2, 4, sign, shear);
	fx_msg *msg = field(&l, 1);
	fx_math *m = math_of(2);
	const double sizes[3] = {2, 1.5, sqrt(9 + shear * shear)};
	double worst = 0;

	for (int order = 0; order < 3; order++)
		for (int frame = 0; frame < 3; frame++) {
			fx_array *out = NULL;
			uint64_t seed = 8;

			CU_ASSERT_EQUAL_FATAL(fx_tensors_export(m, fx_msg_tensors(msg), order, frame, 1, &out), FX_OK);
			for (int64_t v = 0; v < 24; v++) {
				double g[3], ras[3] = {0};

				for (int k = 0; k < 3; k++)
					g[k] = random_next(&seed);
				for (int i = 0; i < 3; i++)
					for (int k = 0; k < 3; k++) { /* FSL's rule; sign > 0 is a positive determinant here */
						double x = frame == FX_FRAME_FSL && k == 0 && sign > 0 ? -g[k] : g[k];

						ras[i] += frame == FX_FRAME_RAS ? (i == k) * g[k] : l.affine[i][k] / sizes[k] * x;
					}
				worst = fmax(worst, fabs(form(at[order], FX_F32_OF(out) + v, 24, g) -
					form(at[FX_ORDER_NIFTI], FX_F32_OF(fx_msg_tensors(msg)->d) + 6 * v, 1, ras)));
			}
			fx_array_unref(out);
		}
	CU_ASSERT(worst < 2e-6); /* a few roundings in single of terms up to 4 */
	fx_math_free(m);
	fx_drop(msg);
}

static void exported_forms_agree(void)
{
	forms_agree(1, 0);
	forms_agree(-1, 0);
	forms_agree(1, 0.7);
	forms_agree(-1, 0.7);
}

static void round_trips(void)
{
	fx_lattice l = lattice_of(5, 1, 3, 1, 0.4);
	fx_msg *msg = field(&l, 1);
	fx_math *m = math_of(2);

	for (int order = 0; order < 3; order++)
		for (int frame = 0; frame < 3; frame++) {
			fx_array *out = NULL;
			fx_msg *back = NULL;

			CU_ASSERT_EQUAL_FATAL(fx_tensors_export(m, fx_msg_tensors(msg), order, frame, 1e-3, &out), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fx_tensors_import(m, out, &l, order, frame, 0, &back), FX_OK);
			CU_ASSERT(distance(fx_msg_tensors(back)->d, fx_msg_tensors(msg)->d) < 3e-7);
			CU_ASSERT_EQUAL(fx_msg_tensors(back)->fit, FX_FIT_GIVEN);
			fx_array_unref(out);
			fx_drop(back);
		}
	fx_math_free(m);
	fx_drop(msg);
}

static int import_scaled(double scale, double factor, fx_msg **back)
{
	fx_lattice l = lattice_of(2, 3, 1, 1, 0);
	fx_msg *msg = field(&l, scale);
	fx_math *m = math_of(1);
	fx_array *out = NULL;
	int status;

	CU_ASSERT_EQUAL_FATAL(fx_tensors_export(m, fx_msg_tensors(msg), FX_ORDER_FSL, FX_FRAME_FSL, 1, &out), FX_OK);
	status = fx_tensors_import(m, out, &l, FX_ORDER_FSL, FX_FRAME_FSL, factor, back);
	fx_array_unref(out);
	fx_math_free(m);
	fx_drop(msg);
	return status;
}

static void units_are_found(void)
{
	const struct { double scale, factor, want; int status; } cases[] = {
		{1e-3, 0, 1, FX_OK}, {1, 0, 1, FX_OK}, {1e3, 0, 0, FX_EDATA}, {0.06, 0, 0, FX_EDATA}, {1e-9, 1e9, 1, FX_OK},
		{1e-3, 1, 1e-3, FX_OK},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_msg *back = NULL;
		fx_array *md = NULL;
		fx_math *m;

		CU_ASSERT_EQUAL(import_scaled(cases[i].scale, cases[i].factor, &back), cases[i].status);
		if (cases[i].status != FX_OK) {
			CU_ASSERT_PTR_NULL(back);
			continue;
		}
		m = math_of(1);
		CU_ASSERT_EQUAL_FATAL(fx_tensor_map(m, fx_msg_tensors(back), FX_MAP_MD, &md), FX_OK);
		CU_ASSERT_DOUBLE_EQUAL(FX_F32_OF(md)[0] / cases[i].want, 0.9, 0.2); /* 0.6, 0.9, 1.2 and up to 0.2 more or less */
		fx_array_unref(md);
		fx_math_free(m);
		fx_drop(back);
	}
}

static void odd_voxels(void)
{
	fx_lattice l = lattice_of(4, 1, 1, 1, 0);
	int64_t five[5] = {4, 1, 1, 1, 6};
	fx_array *image = NULL;
	fx_msg *back = NULL;
	fx_math *m = math_of(1);
	const uint8_t want[4] = {FX_TENSOR_OUTSIDE, FX_TENSOR_OUTSIDE, FX_TENSOR_CLAMPED, 0};
	double d[6], e[3], v[3][3];

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F64, 5, five, &image), FX_OK);
	for (int64_t i = 1; i < 4; i++) {
		FX_F64_OF(image)[i] = 1;
		FX_F64_OF(image)[2 * 4 + i] = i == 2 ? -0.5 : 0.5;
		FX_F64_OF(image)[5 * 4 + i] = i == 1 ? INFINITY : 0.2;
	}
	CU_ASSERT_EQUAL_FATAL(fx_tensors_import(m, image, &l, FX_ORDER_NIFTI, FX_FRAME_RAS, 1, &back), FX_OK);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(((uint8_t *)fx_msg_tensors(back)->flags->data)[i], want[i]);
		CU_ASSERT_EQUAL(((uint8_t *)fx_msg_tensors(back)->mask->data)[i], want[i] != FX_TENSOR_OUTSIDE);
	}
	for (int k = 0; k < 6; k++)
		d[k] = FX_F32_OF(fx_msg_tensors(back)->d)[12 + k];
	fx_tensor_eigen(d, e, v);
	CU_ASSERT_DOUBLE_EQUAL(e[0], 1, 1e-7);
	CU_ASSERT_DOUBLE_EQUAL(e[2], 0, 1e-7);
	fx_drop(back);
	fx_array_unref(image);
	fx_math_free(m);
}

static void refusals(void)
{
	fx_lattice l = lattice_of(2, 2, 2, 1, 0), flat = l;
	fx_msg *msg = field(&l, 1), *back = NULL;
	fx_array *out = NULL, *wrong = NULL;
	fx_math *m = math_of(1);

	CU_ASSERT_EQUAL(fx_tensors_export(m, fx_msg_tensors(msg), 3, 0, 1, &out), FX_EINVAL);
	CU_ASSERT_EQUAL(fx_tensors_export(m, fx_msg_tensors(msg), 0, 0, NAN, &out), FX_EINVAL);
	for (int i = 0; i < 3; i++)
		flat.affine[i][2] = 0;
	fx_msg_tensors(msg)->lattice = flat;
	CU_ASSERT_EQUAL(fx_tensors_export(m, fx_msg_tensors(msg), 0, FX_FRAME_IMAGE, 1, &out), FX_EDATA);
	CU_ASSERT_PTR_NULL(out);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 2, 2, 2, 5, &wrong), FX_OK);
	CU_ASSERT_EQUAL(fx_tensors_import(m, wrong, &l, 0, 0, 0, &back), FX_EDATA);
	fx_array_unref(wrong);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 2, 2, 2, 6, &wrong), FX_OK);
	CU_ASSERT_EQUAL(fx_tensors_import(m, wrong, &l, 0, 0, 0, &back), FX_EINVAL);
	fx_array_unref(wrong);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 2, 2, 2, 6, &wrong), FX_OK); /* of zeros */
	CU_ASSERT_EQUAL(fx_tensors_import(m, wrong, &l, 0, 0, 0, &back), FX_EDATA);
	CU_ASSERT_PTR_NULL(back);
	fx_array_unref(wrong);
	fx_math_free(m);
	fx_drop(msg);
}

static CU_TestInfo tests[] = {
	{"g^T D g is the same in every order and frame", exported_forms_agree},
	{"exported tensors come back", round_trips},
	{"units are found by the median trace", units_are_found},
	{"zeros, infinities and negative eigenvalues", odd_voxels},
	{"wrong shapes, types, orders and affines are refused", refusals},
	CU_TEST_INFO_NULL
};

CU_SuiteInfo suite_tensor_files = {"tensor_files", NULL, NULL, NULL, NULL, tests};

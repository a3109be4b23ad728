/* SPDX-License-Identifier: MIT */
/* test_lattice.c - affines, their inverses and axes, and MRD geometry into RAS, against closed forms. */
#include "unit/check.h"

#include <string.h>

/* Columns a, b, c and the origin t. */
static fx_lattice lattice_of(const int64_t dims[3], const double a[3], const double b[3], const double c[3],
	const double t[3])
{
	fx_lattice l = {.dims = {dims[0], dims[1], dims[2]}, .has_affine = true};

	for (int i = 0; i < 3; i++) {
		l.affine[i][0] = a[i];
		l.affine[i][1] = b[i];
		l.affine[i][2] = c[i];
		l.affine[i][3] = t[i];
	}
	return l;
}

static const int64_t dims_of_some[3] = {5, 6, 7};

/* Oblique: a rotation by 0.4 rad about z, then by -0.7 about x, with 2 x 1.5 x 4 mm; mirrored and sheared on request. */
static fx_lattice oblique(double mirror, double shear)
{
	double cz = cos(0.4), sz = sin(0.4), cx = cos(-0.7), sx = sin(-0.7);
	double a[3] = {2 * cz * mirror, 2 * sz * cx * mirror, 2 * sz * sx * mirror};
	double b[3] = {-1.5 * sz + shear * cz, 1.5 * cz * cx + shear * sz * cx, 1.5 * cz * sx + shear * sz * sx};
	double c[3] = {0, -4 * sx, 4 * cx}, t[3] = {-70.5, 31, 12.25};

	return lattice_of(dims_of_some, a, b, c, t);
}

static void inverse_undoes_the_affine(void)
{
	for (int kind = 0; kind < 4; kind++) {
		fx_lattice l = oblique(kind & 1 ? -1 : 1, kind & 2 ? 0.9 : 0);
		double back[3][4], x[3] = {3.25, -1, 17}, y[3], z[3];
		fx_error err = {0};

		CU_ASSERT_EQUAL_FATAL(fx_lattice_inverse(&l, back, &err), FX_OK);
		fx_affine_apply((const double (*)[4])l.affine, x, y);
		fx_affine_apply((const double (*)[4])back, y, z);
		for (int i = 0; i < 3; i++) /* lengths of 100 mm, a few roundings of double */
			CU_ASSERT_DOUBLE_EQUAL(z[i], x[i], 1e-12);
		fx_affine_apply((const double (*)[4])back, y, y); /* in place */
		CU_ASSERT_DOUBLE_EQUAL(y[2], x[2], 1e-12);
	}
}

static void flat_affines_are_refused(void)
{
	fx_lattice l = oblique(1, 0);
	double back[3][4], axes[3][3];
	fx_error err = {0};

	for (int i = 0; i < 3; i++)
		l.affine[i][2] = l.affine[i][0] + 2 * l.affine[i][1];
	CU_ASSERT_EQUAL(fx_lattice_inverse(&l, back, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "sform"));
	CU_ASSERT_FALSE(fx_lattice_axes(&l, axes));
	l = oblique(1, 0);
	l.affine[1][1] = (double)NAN;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_lattice_inverse(&l, back, &err), FX_EDATA);
	CU_ASSERT_FALSE(fx_lattice_axes(&l, axes));
	l = oblique(1, 0);
	l.affine[2][3] = (double)INFINITY;
	err = (fx_error){0};
	CU_ASSERT_EQUAL(fx_lattice_inverse(&l, back, &err), FX_EDATA);
	l = oblique(1, 0);
	for (int i = 0; i < 3; i++)
		l.affine[i][0] = 0;
	CU_ASSERT_FALSE(fx_lattice_axes(&l, axes));
}

static void axes_without_lengths(void)
{
	for (int mirror = -1; mirror <= 1; mirror += 2) {
		fx_lattice l = oblique(mirror, 0);
		double axes[3][3], mm[3];

		CU_ASSERT_FATAL(fx_lattice_axes(&l, axes));
		fx_lattice_voxel_mm(&l, mm);
		CU_ASSERT_DOUBLE_EQUAL(mm[0], 2, 1e-14);
		CU_ASSERT_DOUBLE_EQUAL(mm[1], 1.5, 1e-14);
		CU_ASSERT_DOUBLE_EQUAL(mm[2], 4, 1e-14);
		for (int i = 0; i < 3; i++)
			for (int a = 0; a < 3; a++)
				CU_ASSERT_DOUBLE_EQUAL(axes[i][a], l.affine[i][a] / mm[a], 1e-14);
	}
}

/* Unit axes x and y at 90 - 2w degrees: the nearest orthogonal ones lie w off each of them, symmetrically. */
static void sheared_axes_are_made_orthogonal(void)
{
	double w = 0.1, a[3] = {3 * cos(w), 3 * sin(w), 0}, b[3] = {2 * sin(w), 2 * cos(w), 0}, c[3] = {0, 0, -5}, t[3] = {0};
	fx_lattice l = lattice_of(dims_of_some, a, b, c, t);
	const double expected[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, -1}};
	double axes[3][3];

	CU_ASSERT_FATAL(fx_lattice_axes(&l, axes));
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			CU_ASSERT_DOUBLE_EQUAL(axes[i][j], expected[i][j], 1e-14);
}

static void same_within_a_tolerance(void)
{
	fx_lattice l = oblique(1, 0), other = l;

	CU_ASSERT(fx_lattice_same(&l, &other, 1e-9));
	other.affine[0][3] += 0.02;
	CU_ASSERT(fx_lattice_same(&l, &other, 0.03));
	CU_ASSERT_FALSE(fx_lattice_same(&l, &other, 0.01));
	other = l;
	other.affine[2][2] *= 1.01; /* at the far corner 6.5 x 0.04 x cos(0.7) = 0.2 mm */
	CU_ASSERT_FALSE(fx_lattice_same(&l, &other, 0.1));
	other = l;
	other.dims[1]++;
	CU_ASSERT_FALSE(fx_lattice_same(&l, &other, 100));
	other = l;
	other.affine[1][0] = (double)NAN;
	CU_ASSERT_FALSE(fx_lattice_same(&l, &other, 100));
}

static fx_image image_of(int nx, int ny, int nz, float fx, float fy, float fz)
{
	fx_image image = {.head = {.matrix_size = {(uint16_t)nx, (uint16_t)ny, (uint16_t)nz}, .field_of_view = {fx, fy, fz},
		.position = {10, 20, 30}, .read_dir = {1, 0, 0}, .phase_dir = {0, 1, 0}, .slice_dir = {0, 0, 1}}};

	return image;
}

static void voxel_is_at(const fx_lattice *l, double i, double j, double k, double x, double y, double z)
{
	double at[3] = {i, j, k}, ras[3];

	fx_affine_apply(l->affine, at, ras);
	CU_ASSERT_DOUBLE_EQUAL(ras[0], x, 1e-5); /* headers are in single precision */
	CU_ASSERT_DOUBLE_EQUAL(ras[1], y, 1e-5);
	CU_ASSERT_DOUBLE_EQUAL(ras[2], z, 1e-5);
}

static void slices_of_an_image_header(void)
{
	fx_image image = image_of(5, 8, 1, 10, 24, 2.5f);
	double step[3] = {0, 0, -4};
	fx_lattice l;

	fx_lattice_of_image(&image, step, 7, &l);
	CU_ASSERT(l.has_affine);
	CU_ASSERT_EQUAL(l.dims[0], 5);
	CU_ASSERT_EQUAL(l.dims[1], 8);
	CU_ASSERT_EQUAL(l.dims[2], 7);
	voxel_is_at(&l, 2, 4, 0, -10, -20, 30);          /* voxel floor(N/2) of the first slice, LPS to RAS */
	voxel_is_at(&l, 3, 4, 0, -12, -20, 30);          /* along LPS +x is towards the left: -x in RAS */
	voxel_is_at(&l, 2, 3, 6, -10, -17, 30 - 6 * 4);
	fx_lattice_of_image(&image, NULL, 1, &l);        /* alone: as thick as its field of view */
	CU_ASSERT(l.has_affine);
	voxel_is_at(&l, 2, 4, 1, -10, -20, 32.5);
}

static void volumes_of_an_image_header(void)
{
	fx_image image = image_of(4, 3, 6, 8, 9, 12);
	fx_lattice l;

	image.head.read_dir[0] = 0; /* read along LPS y, phase along -x: a rotation about z */
	image.head.read_dir[1] = 1;
	image.head.phase_dir[0] = -1;
	image.head.phase_dir[1] = 0;
	fx_lattice_of_image(&image, NULL, 1, &l);
	CU_ASSERT(l.has_affine);
	CU_ASSERT_EQUAL(l.dims[2], 6);
	voxel_is_at(&l, 2, 1, 3, -10, -20, 30);
	voxel_is_at(&l, 3, 1, 3, -10, -22, 30);
	voxel_is_at(&l, 2, 2, 3, -7, -20, 30);
	voxel_is_at(&l, 2, 1, 0, -10, -20, 24);
}

static void headers_without_geometry(void)
{
	fx_image image = image_of(5, 8, 1, 10, 24, 0);
	fx_lattice l;

	fx_lattice_of_image(&image, NULL, 1, &l); /* a slice of no thickness, alone */
	CU_ASSERT_FALSE(l.has_affine);
	voxel_is_at(&l, 1, 1, 1, 2, 3, 1);
	image = image_of(5, 8, 1, 10, 24, 3);
	image.head.phase_dir[1] = 0;
	fx_lattice_of_image(&image, NULL, 1, &l);
	CU_ASSERT_FALSE(l.has_affine);
	voxel_is_at(&l, 1, 1, 1, 2, 3, 3);
	image = image_of(5, 8, 1, 0, 0, 3);
	fx_lattice_of_image(&image, NULL, 1, &l);
	CU_ASSERT_FALSE(l.has_affine);
	voxel_is_at(&l, 1, 1, 1, 1, 1, 3);
	image = image_of(5, 8, 1, 10, 24, 3);
	image.head.position[1] = NAN;
	fx_lattice_of_image(&image, NULL, 1, &l);
	CU_ASSERT_FALSE(l.has_affine);
	CU_ASSERT(isfinite(l.affine[1][3]));
}

static CU_TestInfo tests[] = {
	{"the inverse undoes the affine: oblique, mirrored, sheared", inverse_undoes_the_affine},
	{"what cannot be inverted is refused", flat_affines_are_refused},
	{"axes without their lengths", axes_without_lengths},
	{"sheared axes are made orthogonal", sheared_axes_are_made_orthogonal},
	{"the same within a tolerance", same_within_a_tolerance},
	{"slices by their header", slices_of_an_image_header},
	{"volumes by their header", volumes_of_an_image_header},
	{"headers without geometry", headers_without_geometry},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_lattice = {"lattice", NULL, NULL, NULL, NULL, tests};

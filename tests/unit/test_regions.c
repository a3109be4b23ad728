/* SPDX-License-Identifier: MIT */
/* Label images: what is in them, what is refused, and where a line enters and leaves, against dense sampling. */
#include "fibres.h"

#include "diffusion/regions.h"

static fx_lattice oblique(void)
{
	const double c = cos(0.4), s = sin(0.4);

	return (fx_lattice){.dims = {11, 9, 7}, .has_affine = true,
		.affine = {{-2 * c, 1.5 * s, 0, 12}, {2 * s, 1.5 * c, 0.3, -20}, {0, 0, 3, 5}}};
}

static int blobs(const int64_t v[3])
{
	return v[0] >= 3 && v[0] <= 5 && v[1] > 2 ? 7 : v[1] == 1 || (v[0] + v[1] + v[2]) % 5 == 0 ? 2 : v[0] == 9 ? 40 : 0;
}

static int planes(const int64_t v[3])
{
	return v[0] == 2 ? 5 : v[0] == 6 || v[0] == 7 ? 3 : 0;
}

static void refused(const fx_array *image, const fx_lattice *l, const char *wanted, int status, const char *said)
{
	fx_regions *r = NULL;
	fx_error err = {0};

	CU_ASSERT_EQUAL(fx_regions_new(image, (const double (*)[4])l->affine, true, "rois.nii", wanted, FX_REGIONS_LABELS, &err, &r), status);
	CU_ASSERT_PTR_NULL(r);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, said));
	if (!strstr(err.text, said))
		printf("\n%s\n", err.text);
}

static void what_is_refused(void)
{
	fx_lattice l = cube_lattice(9, 2), flat = l;
	fx_array *image = label_image(&l, planes);

	refused(image, &l, "3, 4", FX_EINVAL, "label 4 has no voxel in rois.nii: an empty target; it has 3, 5");
	refused(image, &l, "three", FX_EINVAL, "no list of labels");
	refused(image, &l, "3 -5", FX_EINVAL, "no list of labels");
	refused(image, &l, "3.5", FX_EINVAL, "no list of labels");
	flat.affine[2][2] = 0;
	refused(image, &flat, NULL, FX_EDATA, "");
	FX_F32_OF(image)[9 * 9 * 2 + 9 * 3 + 4] = 0.5f;
	refused(image, &l, NULL, FX_EDATA, "voxel 4 3 2 holds 0.5");
	FX_F32_OF(image)[9 * 9 * 2 + 9 * 3 + 4] = NAN;
	refused(image, &l, NULL, FX_EDATA, "holds nan");
	for (int64_t i = 0; i < image->n; i++)
		FX_F32_OF(image)[i] = (float)-(i % 3);
	refused(image, &l, NULL, FX_EDATA, "no voxel above 0");
	fx_array_unref(image);
	image = random_array(FX_CF32, 3, l.dims, 1);
	refused(image, &l, NULL, FX_EINVAL, "cannot be read as labels");
	fx_array_unref(image);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, 3, 4, &image), FX_OK);
	refused(image, &l, NULL, FX_EDATA, "not one volume");
	fx_array_unref(image);
}

static void what_is_chosen(void)
{
	fx_lattice l = cube_lattice(9, 2);
	fx_regions *all = regions_of(&l, planes, "r", " ", FX_REGIONS_LABELS), *one = regions_of(&l, planes, "r", "5;5,", 0);
	fx_regions *any = regions_of(&l, planes, "r", NULL, FX_REGIONS_ANY);

	CU_ASSERT(all->n == 2 && all->labels[0] == 3 && all->n_voxels[0] == 2 * 81 && all->labels[1] == 5 && all->n_voxels[1] == 81);
	CU_ASSERT(one->n == 1 && one->labels[0] == 5 && one->n_voxels[0] == 81);
	CU_ASSERT(any->n == 1 && any->labels[0] == 1 && any->n_voxels[0] == 3 * 81);
	CU_ASSERT_EQUAL(fx_regions_at(all, (double[]){11.1, 0, 16.9}), 3);
	CU_ASSERT_EQUAL(fx_regions_at(all, (double[]){10.9, 0, 16.9}), 0);
	CU_ASSERT_EQUAL(fx_regions_at(all, (double[]){11.1, 0, 17.1}), 0);
	CU_ASSERT_EQUAL(fx_regions_at(all, (double[]){NAN, 0, 0}), 0);
	CU_ASSERT_EQUAL(fx_regions_at(one, (double[]){11.1, 0, 16.9}), 0);
	fx_regions_free(all);
	fx_regions_free(one);
	fx_regions_free(any);
	fx_regions_free(NULL);
}

static void other_spaces(void)
{
	fx_lattice l = cube_lattice(9, 2), other = l;
	fx_regions *r = regions_of(&l, planes, "rois.nii", NULL, FX_REGIONS_LABELS);
	fx_error err = {0};

	other.affine[0][3] = 0.1; /* a twentieth of a voxel */
	CU_ASSERT_EQUAL(fx_regions_same_space(r, &other, &err), FX_OK);
	other.affine[0][3] = 0.3;
	CU_ASSERT_EQUAL(fx_regions_same_space(r, &other, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "differ by up to 0.3 mm"));
	err = (fx_error){0};
	other = l;
	other.dims[2] = 8;
	CU_ASSERT_EQUAL(fx_regions_same_space(r, &other, &err), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "9 x 9 x 9 voxels, the fibres' image 9 x 9 x 8"));
	fx_regions_free(r);
}

/* Along x through planes at 2 and 6..7, whole steps far larger than a voxel, and steps of less: the same faces. */
static void faces(void)
{
	fx_lattice l = cube_lattice(9, 2);
	fx_regions *r = regions_of(&l, planes, "r", NULL, FX_REGIONS_LABELS);
	const int64_t points[] = {2, 3, 7, 100};
	struct fxi_visits v = {0};
	fx_error err = {0};

	for (int k = 0; k < 4; k++) {
		float p[300];
		double per_voxel = (double)(points[k] - 1) / 10; /* from index -1 to 9 */

		for (int64_t i = 0; i < points[k]; i++) {
			p[3 * i] = (float)(2 * (-1 + (double)i / per_voxel));
			p[3 * i + 1] = 7;
			p[3 * i + 2] = 8.2f;
		}
		CU_ASSERT_EQUAL_FATAL(fxi_regions_visits(r, p, points[k], &v, &err), FX_OK);
		CU_ASSERT_EQUAL_FATAL(v.n, 2);
		/* positions from single precision points of up to 18 mm */
		CU_ASSERT(v.list[0].region == 2 && fabs(v.list[0].from - 2.5 * per_voxel) < 1e-5 * per_voxel
			&& fabs(v.list[0].to - 3.5 * per_voxel) < 1e-5 * per_voxel);
		CU_ASSERT(v.list[1].region == 1 && fabs(v.list[1].from - 6.5 * per_voxel) < 1e-5 * per_voxel
			&& fabs(v.list[1].to - 8.5 * per_voxel) < 1e-5 * per_voxel);
	}
	CU_ASSERT_EQUAL(fxi_regions_visits(r, (const float[]){4, 0, 0}, 1, &v, &err), FX_OK);
	CU_ASSERT(v.n == 1 && v.list[0].from == 0 && v.list[0].to == 0);
	CU_ASSERT_EQUAL(fxi_regions_visits(r, NULL, 0, &v, &err), FX_OK);
	CU_ASSERT_EQUAL(v.n, 0);
	CU_ASSERT_EQUAL(fxi_regions_visits(r, (const float[]){-1e30f, 0, 0, 1e30f, 1, 1}, 2, &v, &err), FX_OK);
	fxi_visits_free(&v);
	fx_regions_free(r);
}

static int32_t place(const fx_regions *r, const double x[3])
{
	int64_t label = fx_regions_at(r, x);

	for (int64_t i = 0; i < r->n; i++)
		if (r->labels[i] == label)
			return (int32_t)i + 1;
	return 0;
}

/* A random walk on an oblique, sheared lattice: at each of 4000 places of every step, in the visit that dense sampling says. */
static void against_sampling(void)
{
	enum { N = 60, DENSE = 4000 };
	fx_lattice l = oblique();
	fx_regions *r = regions_of(&l, blobs, "r", NULL, FX_REGIONS_LABELS);
	struct fxi_visits v = {0};
	fx_error err = {0};
	uint64_t seed = 3;
	float p[3 * N];
	int64_t wrong = 0, in = 0;

	for (int i = 0; i < N; i++) {
		double x[3];

		fx_affine_apply((const double (*)[4])l.affine, (double[]){5 + 6 * random_next(&seed), 4 + 5 * random_next(&seed), 3 + 4 * random_next(&seed)}, x);
		for (int c = 0; c < 3; c++)
			p[3 * i + c] = (float)x[c];
	}
	CU_ASSERT_EQUAL_FATAL(fxi_regions_visits(r, p, N, &v, &err), FX_OK);
	for (int64_t i = 0, at = 0; i < (N - 1) * DENSE; i++) {
		double x[3], position = ((double)i + 0.5) / DENSE;
		const float *a = p + 3 * (i / DENSE);
		int32_t region;

		for (int c = 0; c < 3; c++)
			x[c] = a[c] + (position - floor(position)) * ((double)a[3 + c] - a[c]);
		while (at < v.n && v.list[at].to <= position)
			at++;
		region = at < v.n && v.list[at].from <= position ? v.list[at].region : 0;
		wrong += region != place(r, x);
		in += region > 0;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(in > DENSE && v.n > 50);
	for (int64_t i = 0; i < v.n; i++)
		CU_ASSERT(v.list[i].from < v.list[i].to && (i == 0 || v.list[i - 1].to <= v.list[i].from));
	fxi_visits_free(&v);
	fx_regions_free(r);
}

static CU_TestInfo tests[] = {
	{"what is refused, by name", what_is_refused},
	{"labels, all and chosen", what_is_chosen},
	{"other spaces", other_spaces},
	{"entered and left on faces, whatever the step", faces},
	{"visits of a random walk against dense sampling", against_sampling},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_regions = {"regions", NULL, NULL, NULL, NULL, tests};

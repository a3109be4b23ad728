/* SPDX-License-Identifier: MIT */
#include "unit/check.h"

#include <stdlib.h>
#include <string.h>

/* An oblique, anisotropic lattice: columns are not along the axes, and not of one length. */
static fx_lattice oblique(int64_t nx, int64_t ny, int64_t nz)
{
	return (fx_lattice){.dims = {nx, ny, nz}, .has_affine = true,
		.affine = {{1.6, -0.9, 0.2, -30}, {1.2, 1.2, 0.3, 12}, {-0.1, 0.2, 4, 5}}};
}

/* Index coordinates of a place. */
static void index_of(const fx_lattice *l, const double *mm, double x[3])
{
	fx_lattice inverse = {0};
	const fx_lattice *back = &inverse;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fx_lattice_inverse(l, inverse.affine, &err), FX_OK);
	fx_affine_apply(back->affine, mm, x);
}

static fx_array *region_of(const fx_lattice *l)
{
	fx_array *r = NULL;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, l->dims, &r), FX_OK);
	return r;
}

/* All seeds, asked for `chunk` at a time: {6, n}. */
static double *gather(const fx_seeds_spec *spec, int64_t chunk, int64_t *n)
{
	fx_math *m = math_of(2);
	fx_seeds *s = NULL;
	fx_array *part = NULL;
	int64_t first, at = 0;
	double *all;

	CU_ASSERT_EQUAL_FATAL(fx_seeds_new(m, spec, &s), FX_OK);
	*n = fx_seeds_count(s);
	all = calloc((size_t)*n * 6, sizeof *all);
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	while (fx_seeds_next(s, chunk, &part, &first) == FX_OK && part) {
		CU_ASSERT_EQUAL(first, at);
		CU_ASSERT_TRUE_FATAL(part->dims[1] <= chunk && at + part->dims[1] <= *n);
		memcpy(all + 6 * at, part->data, (size_t)part->bytes);
		at += part->dims[1];
		fx_array_unref(part);
	}
	CU_ASSERT_EQUAL(at, *n);
	CU_ASSERT_EQUAL(first, *n);
	fx_seeds_free(s);
	fx_math_free(m);
	return all;
}

static void refused(const fx_seeds_spec *spec, int status, const char *part)
{
	fx_math *m = math_of(1);
	fx_seeds *s = NULL;

	CU_ASSERT_EQUAL(fx_seeds_new(m, spec, &s), status);
	CU_ASSERT_PTR_NULL(s);
	if (!strstr(m->err->text, part))
		CU_FAIL("a refusal without its reason");
	fx_math_free(m);
}

/* Mean 1/2, variance 1/12 and no correlation between neighbouring addresses, seeds or streams. */
static void random_numbers(void)
{
	enum { N = 100000 };
	double sum = 0, squares = 0, next = 0, stream = 0, seed = 0;
	int64_t bins[16] = {0};
	double chi2 = 0;

	for (int i = 0; i < N; i++) {
		double u = fx_random_at(7, 3, (uint64_t)i);

		CU_ASSERT_TRUE_FATAL(u >= 0 && u < 1);
		sum += u;
		squares += u * u;
		next += (u - 0.5) * (fx_random_at(7, 3, (uint64_t)i + 1) - 0.5);
		stream += (u - 0.5) * (fx_random_at(7, 4, (uint64_t)i) - 0.5);
		seed += (u - 0.5) * (fx_random_at(8, 3, (uint64_t)i) - 0.5);
		bins[(int)(16 * u)]++;
	}
	/* standard errors: of the mean sqrt(1/12/N) = 9.1e-4; of u^2 sqrt(4/45/N) = 9.4e-4; of a product 1/12/sqrt(N) = 2.6e-4: five of each */
	CU_ASSERT_DOUBLE_EQUAL(sum / N, 0.5, 4.6e-3);
	CU_ASSERT_DOUBLE_EQUAL(squares / N, 1.0 / 3, 4.7e-3);
	CU_ASSERT_DOUBLE_EQUAL(next / N, 0, 1.3e-3);
	CU_ASSERT_DOUBLE_EQUAL(stream / N, 0, 1.3e-3);
	CU_ASSERT_DOUBLE_EQUAL(seed / N, 0, 1.3e-3);
	for (int b = 0; b < 16; b++)
		chi2 += ((double)bins[b] - N / 16.0) * ((double)bins[b] - N / 16.0) / (N / 16.0);
	/* 15 degrees of freedom: above 45 one time in ten thousand */
	CU_ASSERT_TRUE(chi2 < 45);
	CU_ASSERT_EQUAL(fx_random_at(1, 2, 3), fx_random_at(1, 2, 3));
	CU_ASSERT_NOT_EQUAL(fx_random_at(1, 2, 3), fx_random_at(1, 3, 2));
	CU_ASSERT_NOT_EQUAL(fx_random_at(0, 0, 0), fx_random_at(0, 0, UINT64_MAX));
}

static void sphere(void)
{
	static const int64_t sizes[] = {1, 2, 3, 100, 1001};
	fx_array *a = NULL;

	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
		double mean[3] = {0}, n = (double)sizes[k];

		CU_ASSERT_EQUAL_FATAL(fx_fibonacci_sphere(sizes[k], &a), FX_OK);
		CU_ASSERT_EQUAL(a->dims[1], sizes[k]);
		for (int64_t i = 0; i < sizes[k]; i++) {
			const double *v = FX_F64_OF(a) + 3 * i;
			/* the golden angle written another way: a turn over the golden ratio, the other way round */
			double turn = -(double)i * (sqrt(5) - 1) / 2, azimuth = 2 * M_PI * (turn - floor(turn));

			CU_ASSERT_DOUBLE_EQUAL(v[0] * v[0] + v[1] * v[1] + v[2] * v[2], 1, 1e-15 * 4);
			CU_ASSERT_DOUBLE_EQUAL(v[2], 1 - (2 * (double)i + 1) / n, 1e-15 * 4);
			/* 1001 angles of 2.4 rad in double: each product is rounded by 2e-13 */
			CU_ASSERT_DOUBLE_EQUAL(v[0], sqrt(1 - v[2] * v[2]) * cos(azimuth), 1e-11);
			CU_ASSERT_DOUBLE_EQUAL(v[1], sqrt(1 - v[2] * v[2]) * sin(azimuth), 1e-11);
			for (int d = 0; d < 3; d++)
				mean[d] += v[d] / n;
		}
		/* evenly spread: the centre of mass is within a fraction of one point's share */
		if (sizes[k] >= 100)
			CU_ASSERT_TRUE(fabs(mean[0]) < 1 / n && fabs(mean[1]) < 1 / n && fabs(mean[2]) < 1e-14);
		fx_array_unref(a);
	}
	CU_ASSERT_EQUAL(fx_fibonacci_sphere(0, &a), FX_EINVAL);
}

/* The same seeds however they are asked for, and one at its own place whatever the others are. */
static void addressed(void)
{
	fx_lattice l = oblique(5, 4, 3);
	fx_array *r = region_of(&l);
	fx_seeds_spec spec = {.source = FX_SEEDS_REGION, .region = r, .lattice = &l, .per_voxel = 3, .seed = 5,
		.directions = FX_DIRECTIONS_RANDOM, .n_directions = 2};
	int64_t n, n2;
	double *a, *b;

	memset(r->data, 1, (size_t)r->bytes);
	a = gather(&spec, 1000, &n);
	CU_ASSERT_EQUAL_FATAL(n, 5 * 4 * 3 * 3 * 2);
	b = gather(&spec, 7, &n2);
	CU_ASSERT_EQUAL_FATAL(n2, n);
	CU_ASSERT_EQUAL(memcmp(a, b, (size_t)n * 6 * sizeof *a), 0);
	free(b);
	spec.seed = 6;
	b = gather(&spec, 7, &n2);
	CU_ASSERT_NOT_EQUAL(memcmp(a, b, (size_t)n * 6 * sizeof *a), 0);
	free(b);
	spec.seed = 5;
	((uint8_t *)r->data)[59] = 0; /* the last voxel: all seeds before it stay */
	b = gather(&spec, 1000, &n2);
	CU_ASSERT_EQUAL_FATAL(n2, n - 6);
	CU_ASSERT_EQUAL(memcmp(a, b, (size_t)n2 * 6 * sizeof *a), 0);
	free(a);
	free(b);
	fx_array_unref(r);
}

/* Every seed in its own voxel, in millimetres of an oblique lattice; random ones fill it. */
static void voxels(void)
{
	fx_lattice l = oblique(4, 3, 2);
	fx_array *r = NULL;
	fx_seeds_spec spec = {.source = FX_SEEDS_REGION, .lattice = &l, .label = 2, .per_voxel = 400, .seed = 1};
	double low[3] = {9, 9, 9}, high[3] = {-9, -9, -9}, x[3], *a;
	int64_t n;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, l.dims, &r), FX_OK);
	for (int i = 0; i < 24; i++)
		FX_F32_OF(r)[i] = i == 3 ? NAN : i % 2 ? 1 : 0;
	FX_F32_OF(r)[2 + 4 * (1 + 3 * 1)] = 2;
	spec.region = r;
	a = gather(&spec, 64, &n);
	CU_ASSERT_EQUAL_FATAL(n, 400);
	for (int64_t i = 0; i < n; i++) {
		index_of(&l, a + 6 * i, x);
		for (int d = 0; d < 3; d++) {
			double from = x[d] - (double[]){2, 1, 1}[d];

			CU_ASSERT_TRUE(fabs(from) <= 0.5 + 1e-12);
			low[d] = fmin(low[d], from);
			high[d] = fmax(high[d], from);
			CU_ASSERT_EQUAL(a[6 * i + 3 + d], 0);
		}
	}
	/* the outermost of 400 uniform numbers: further than 0.05 from its end once in 1e9 */
	for (int d = 0; d < 3; d++)
		CU_ASSERT_TRUE(low[d] < -0.45 && high[d] > 0.45);
	free(a);
	spec.label = 0;
	spec.per_voxel = 1;
	spec.centred = true;
	a = gather(&spec, 64, &n);
	CU_ASSERT_EQUAL(n, 12); /* eleven ones and the two; not the NaN */
	index_of(&l, a, x);
	/* rounding of the inverse */
	CU_ASSERT_TRUE(fabs(x[0] - 1) < 1e-12 && fabs(x[1]) < 1e-12 && fabs(x[2]) < 1e-12);
	free(a);
	spec.per_voxel = 2;
	refused(&spec, FX_EINVAL, "at random");
	spec.label = 5;
	refused(&spec, FX_EDATA, "no voxel of value 5");
	fx_array_unref(r);
}

/* A number in all: as many in each voxel as its share, within the one that the random start decides. */
static void in_all(void)
{
	fx_lattice l = oblique(10, 1, 1);
	fx_array *r = region_of(&l);
	fx_seeds_spec spec = {.source = FX_SEEDS_REGION, .region = r, .lattice = &l, .count = 1234, .seed = 9};
	double x[3], *a;
	int64_t n, got[10] = {0};

	memset(r->data, 1, 10);
	a = gather(&spec, 100, &n);
	CU_ASSERT_EQUAL_FATAL(n, 1234);
	for (int64_t i = 0; i < n; i++) {
		index_of(&l, a + 6 * i, x);
		got[(int)floor(x[0] + 0.5)]++;
	}
	for (int i = 0; i < 10; i++)
		CU_ASSERT_TRUE(got[i] >= 122 && got[i] <= 125);
	free(a);
	fx_array_unref(r);
}

static void ball(void)
{
	fx_seeds_spec spec = {.source = FX_SEEDS_BALL, .count = 20000, .centre = {10, -20, 30}, .radius = 4, .seed = 2,
		.directions = FX_DIRECTIONS_BOTH, .n_directions = 2};
	double mean[3] = {0}, inner = 0, *a;
	int64_t n;

	a = gather(&spec, 999, &n);
	CU_ASSERT_EQUAL_FATAL(n, 60000);
	for (int64_t i = 0; i < n; i += 3) {
		double d[3], r;

		for (int k = 0; k < 3; k++) {
			d[k] = a[6 * i + k] - spec.centre[k];
			mean[k] += d[k] / 20000;
		}
		r = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
		CU_ASSERT_TRUE(r <= 4 + 1e-12);
		inner += r < 2;
		/* the principal eigenvector first, then the sphere of two */
		CU_ASSERT_EQUAL(a[6 * i + 3], 0);
		CU_ASSERT_EQUAL(a[6 * i + 5], 0);
		CU_ASSERT_DOUBLE_EQUAL(a[6 * (i + 1) + 5], 0.5, 1e-15);
		CU_ASSERT_DOUBLE_EQUAL(a[6 * (i + 2) + 5], -0.5, 1e-15);
		CU_ASSERT_EQUAL(memcmp(a + 6 * i, a + 6 * (i + 2), 3 * sizeof *a), 0);
	}
	/* an axis has variance r^2/5: standard error 0.0126; a binomial of 1/8: 0.0023; five of each */
	for (int k = 0; k < 3; k++)
		CU_ASSERT_DOUBLE_EQUAL(mean[k], 0, 0.063);
	CU_ASSERT_DOUBLE_EQUAL(inner / 20000, 0.125, 0.012);
	free(a);
	spec.count = 0;
	refused(&spec, FX_EDATA, "no seeds");
	spec.radius = NAN;
	refused(&spec, FX_EINVAL, "radius");
}

/* Points of a grid against all points tried in the open: in the region's voxels, and at the asked distance. */
static void grid(void)
{
	fx_lattice l = {.dims = {6, 5, 1}, .affine = {{2, 0, 0, 0}, {0, 3, 0, 0}, {0, 0, 1, 0}}, .has_affine = true};
	fx_array *r = region_of(&l);
	fx_seeds_spec spec = {.source = FX_SEEDS_GRID, .region = r, .lattice = &l, .spacing_mm = 1};
	double *a;
	int64_t n;

	((uint8_t *)r->data)[2 + 6 * 3] = 1; /* 3..5 mm by 7.5..10.5 mm */
	a = gather(&spec, 4, &n);
	CU_ASSERT_EQUAL_FATAL(n, 6);
	for (int64_t i = 0; i < n; i++) {
		/* a box of 12 x 15 mm from -1 and -1.5 mm, in cells of 1 mm */
		CU_ASSERT_DOUBLE_EQUAL(a[6 * i], 3.5 + (double)(i % 2), 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(a[6 * i + 1], 8 + (double)(i / 2), 1e-12);
		CU_ASSERT_DOUBLE_EQUAL(a[6 * i + 2], 0, 1e-12);
	}
	free(a);
	memset(r->data, 1, (size_t)r->bytes);
	spec.spacing_mm = 1000; /* wider than the volume: its middle */
	a = gather(&spec, 4, &n);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_DOUBLE_EQUAL(a[0], 5, 1e-12);
	free(a);
	spec.spacing_mm = 1e-6;
	refused(&spec, FX_EDATA, "wider");
	spec.spacing_mm = 0;
	refused(&spec, FX_EINVAL, "spacing");
	memset(r->data, 0, (size_t)r->bytes);
	spec.spacing_mm = 1;
	refused(&spec, FX_EDATA, "empty");
	fx_array_unref(r);
}

static void list(void)
{
	fx_array *six = random_array(FX_F64, 2, (int64_t[]){6, 5}, 3), *three = random_array(FX_F64, 2, (int64_t[]){3, 5}, 3), *none = NULL;
	fx_seeds_spec spec = {.source = FX_SEEDS_LIST, .list = six, .directions = FX_DIRECTIONS_GIVEN};
	double *a, low[3], high[3];
	fx_array *part = NULL;
	fx_seeds *s = NULL;
	fx_math *m;
	int64_t n, first;

	a = gather(&spec, 2, &n);
	CU_ASSERT_EQUAL_FATAL(n, 5);
	CU_ASSERT_EQUAL(memcmp(a, six->data, (size_t)six->bytes), 0);
	free(a);
	spec.list = three;
	refused(&spec, FX_EINVAL, "three columns");
	spec.directions = FX_DIRECTIONS_PRINCIPAL;
	a = gather(&spec, 2, &n);
	CU_ASSERT_EQUAL(memcmp(a + 6, FX_F64_OF(three) + 3, 24), 0);
	free(a);
	m = math_of(1);
	CU_ASSERT_EQUAL_FATAL(fx_seeds_new(m, &spec, &s), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_seeds_next(s, 1, &part, &first), FX_OK);
	fx_seeds_box(s, low, high);
	CU_ASSERT_TRUE(low[0] == high[0] && low[0] == FX_F64_OF(three)[0]);
	fx_array_unref(part);
	fx_seeds_free(s);
	fx_math_free(m);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F64, 3, 0, &none), FX_OK);
	spec.list = none;
	refused(&spec, FX_EDATA, "empty");
	spec.list = three;
	spec.directions = FX_DIRECTIONS_SPHERE;
	spec.n_directions = INT64_C(1) << 40;
	refused(&spec, FX_EDATA, "2^32");
	spec.n_directions = 0;
	refused(&spec, FX_EINVAL, "0 directions");
	spec.directions = FX_DIRECTIONS_RANDOM;
	refused(&spec, FX_EINVAL, "at least one");
	spec.n_directions = UINT32_MAX;
	refused(&spec, FX_EDATA, "2^32");
	fx_array_unref(none);
	fx_array_unref(six);
	fx_array_unref(three);
}

/* A label finds its place in millimetres on a shifted, finer and turned lattice; directly computed here. */
static void regions(void)
{
	fx_lattice from = {.dims = {4, 3, 2}, .affine = {{0, 2, 0, 10}, {-2, 0, 0, 5}, {0, 0, 3, 0}}, .has_affine = true};
	fx_lattice to = {.dims = {9, 11, 7}, .affine = {{1, 0, 0, 8.5}, {0, 1, 0, -3.25}, {0, 0, 1, -2.5}}, .has_affine = true};
	fx_array *r = region_of(&from), *out = NULL;
	double inside = -1, low[3], high[3];
	fx_math *m = math_of(2);

	for (int i = 0; i < 24; i++)
		((uint8_t *)r->data)[i] = (uint8_t)(i + 1);
	CU_ASSERT_EQUAL_FATAL(fx_region_resample(m, r, &from, &to, &out, &inside), FX_OK);
	CU_ASSERT_EQUAL_FATAL(out->type, FX_U8);
	for (int i = 0; i < out->n; i++) {
		double x = i % 9 + 8.5, y = i / 9 % 11 - 3.25, z = i / 99 - 2.5;
		/* x = 10 + 2 j, y = 5 - 2 i, z = 3 k */
		int a = (int)floor((5 - y) / 2 + 0.5), b = (int)floor((x - 10) / 2 + 0.5), c = (int)floor(z / 3 + 0.5);
		int want = a >= 0 && a < 4 && b >= 0 && b < 3 && c >= 0 && c < 2 ? 1 + a + 4 * (b + 3 * c) : 0;

		CU_ASSERT_EQUAL(((uint8_t *)out->data)[i], want);
	}
	/* of y = 5, 3, 1, -1 and z = 0, 3 all lie within -3.75..7.25 and -3..4; x = 10, 12, 14 within 8..17 */
	CU_ASSERT_EQUAL(inside, 1);
	fx_lattice_box(&from, low, high);
	CU_ASSERT_TRUE(low[0] == 9 && high[0] == 15 && low[1] == -2 && high[1] == 6 && low[2] == -1.5 && high[2] == 4.5);
	fx_array_unref(out);
	to.affine[0][3] = 1000;
	CU_ASSERT_EQUAL_FATAL(fx_region_resample(m, r, &from, &to, &out, &inside), FX_OK);
	CU_ASSERT_EQUAL(inside, 0);
	fx_array_unref(out);
	to.affine[0][0] = 0;
	CU_ASSERT_EQUAL(fx_region_resample(m, r, &from, &to, &out, &inside), FX_EDATA);
	fx_array_unref(r);
	fx_math_free(m);
}

static void written(const char *text, int status, int source)
{
	fx_seeds_spec spec = {.source = -1};
	fx_error err = {0};

	CU_ASSERT_EQUAL(fx_seeds_parse(text, &spec, &err), status);
	CU_ASSERT_EQUAL(err.status, status);
	CU_ASSERT_EQUAL(spec.source, status == FX_OK ? source : -1);
	if (status != FX_OK && !strstr(err.text, text))
		CU_FAIL("a refusal that does not quote what it refuses");
}

static void as_text(void)
{
	fx_seeds_spec spec = {0};
	fx_error err = {0};

	written("mask", FX_OK, FX_SEEDS_REGION);
	written("/some/folder/mask", FX_OK, FX_SEEDS_REGION); /* a path property was made absolute */
	written("grid:2.5", FX_OK, FX_SEEDS_GRID);
	written("sphere:-1,2.5,3e1,4", FX_OK, FX_SEEDS_BALL);
	written("seeds.txt", FX_OK, FX_SEEDS_LIST);
	written("/data/sphere/roi.csv", FX_OK, FX_SEEDS_LIST);
	written("roi.nii", FX_OK, FX_SEEDS_REGION);
	written("/data/mask.nii.gz", FX_OK, FX_SEEDS_REGION);
	written("grid:", FX_EINVAL, 0);
	written("grid:0", FX_EINVAL, 0);
	written("grid:2 mm", FX_EINVAL, 0);
	written("grid:nan", FX_EINVAL, 0);
	written("sphere:1,2,3", FX_EINVAL, 0);
	written("sphere:1,2,3,4,5", FX_EINVAL, 0);
	written("sphere:1,2,3,-4", FX_EINVAL, 0);
	written("sphere:1,2,inf,4", FX_EINVAL, 0);
	CU_ASSERT_EQUAL(fx_seeds_parse("/x/sphere:-1,2.5,3e1,4", &spec, &err), FX_OK);
	CU_ASSERT_TRUE(spec.centre[0] == -1 && spec.centre[1] == 2.5 && spec.centre[2] == 30 && spec.radius == 4);
	CU_ASSERT_EQUAL(fx_seeds_parse("grid:2.5", &spec, &err), FX_OK);
	CU_ASSERT_EQUAL(spec.spacing_mm, 2.5);
}

/* What a region of a file is to the data: of the same space, of another, or to be taken voxel by voxel. */
static void spaces(void)
{
	fx_lattice data = oblique(4, 3, 2), other = data, blind = {.dims = {4, 3, 2}};
	fx_array *r = region_of(&data), *four = NULL, *out = NULL;
	fx_math *m = math_of(1);
	int space = -1;

	other.affine[0][3] += 1e-4;
	CU_ASSERT_EQUAL(fx_region_space(m, "roi.nii", &other, &data, &space), FX_OK);
	CU_ASSERT_EQUAL(space, FX_REGION_SAME);
	other.affine[0][3] += 0.5;
	CU_ASSERT_EQUAL(fx_region_space(m, "roi.nii", &other, &data, &space), FX_OK);
	CU_ASSERT_EQUAL(space, FX_REGION_ELSEWHERE);
	CU_ASSERT_EQUAL(fx_region_space(m, "roi.nii", &blind, &data, &space), FX_OK);
	CU_ASSERT_EQUAL(space, FX_REGION_BY_VOXEL);
	CU_ASSERT_EQUAL(fx_region_space(m, "roi.nii", &data, &blind, &space), FX_OK);
	CU_ASSERT_EQUAL(space, FX_REGION_BY_VOXEL);
	blind.dims[1] = 5;
	CU_ASSERT_EQUAL(fx_region_space(m, "roi.nii", &blind, &data, &space), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(m->err->text, "roi.nii"));
	*m->err = (fx_error){0};
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 4, 3, 2, 1, &four), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_region_of_file(m, "roi.nii", four, &blind, &out), FX_OK);
	CU_ASSERT_TRUE(out->n_dims == 3 && out->n == 24 && blind.dims[1] == 3);
	fx_array_unref(out);
	fx_array_unref(four);
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 4, 3, 2, 2, &four), FX_OK);
	CU_ASSERT_EQUAL(fx_region_of_file(m, "roi.nii", four, &blind, &out), FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(m->err->text, "more than one volume"));
	*m->err = (fx_error){0};
	fx_array_unref(four);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_CF32, 3, data.dims, &four), FX_OK);
	CU_ASSERT_EQUAL(fx_region_of_file(m, "roi.nii", four, &blind, &out), FX_EDATA);
	fx_array_unref(four);
	fx_array_unref(r);
	fx_math_free(m);
}

static CU_TestInfo tests[] = {
	{"random numbers", random_numbers},
	{"sphere", sphere},
	{"addressed", addressed},
	{"voxels", voxels},
	{"in all", in_all},
	{"ball", ball},
	{"grid", grid},
	{"list", list},
	{"regions", regions},
	{"as text", as_text},
	{"spaces", spaces},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_seeds = {"seeds", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
#include "gadgets/harness.h"
#include "gadgets/tensor_field.h"

#include <math.h>
#include <stdlib.h>

/* Oblique: turned by 30 degrees about z, slices of 3 mm; and where (11, 9, 6) voxels of it lie. */
static const fx_lattice oblique = {.dims = {11, 9, 6}, .has_affine = true,
	.affine = {{1.7320508, -1, 0, -10}, {1, 1.7320508, 0, 20}, {0, 0, 3, -5}}};
static const double white[6] = {1.7, 0, 0.3, 0, 0, 0.3};

static void index_of(const fx_lattice *l, const double *mm, double x[3])
{
	fx_lattice inverse = {0};
	const fx_lattice *back = &inverse;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fx_lattice_inverse(l, inverse.affine, &err), FX_OK);
	fx_affine_apply(back->affine, mm, x);
}

static void run(harness *h, const char *properties, int n_threads)
{
	harness_options options = {.n_threads = n_threads};
	fx_msg *in = uniform_tensors(&oblique, white);
	char chain[600];

	snprintf(chain, sizeof chain, "metric | track %s", properties);
	harness_run_with(h, chain, NULL, &in, 1, &options);
	if (h->status != FX_OK && h->n_out > 2)
		CU_FAIL("fibres left a run that fails at once");
}

/* tensors, metric, batches with numbers that go on, one end mark; all fibres counted. */
static int64_t well_formed(const harness *h)
{
	int64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(h->status, FX_OK);
	CU_ASSERT_TRUE_FATAL(h->n_out >= 3);
	CU_ASSERT_EQUAL_FATAL(fx_msg_kind(h->out[1]), FX_METRIC);
	for (int64_t i = 2; i < h->n_out; i++) {
		const fx_tracts *t = fx_msg_tracts(h->out[i]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(t);
		CU_ASSERT_PTR_NOT_NULL_FATAL(t->info);
		CU_ASSERT_EQUAL(t->first, n);
		CU_ASSERT_EQUAL(t->end, i == h->n_out - 1);
		CU_ASSERT_TRUE(t->end ? t->n == 0 && !t->points : t->n > 0);
		n += t->n;
		for (int64_t k = 1; k < t->n; k++)
			CU_ASSERT_TRUE(((uint32_t *)t->seeds->data)[k] > ((uint32_t *)t->seeds->data)[k - 1]);
	}
	CU_ASSERT_EQUAL(harness_number(h, 1, "n_fibres", 0), (double)n);
	CU_ASSERT_EQUAL(harness_number(h, 1, "n_seeds", 0) - harness_number(h, 1, "n_outside", 0) -
		harness_number(h, 1, "n_dropped", 0), (double)n);
	return n;
}

/* Where D is the same everywhere geodesics are straight, whatever the direction, and stay inside the oblique volume. */
static void straight(void)
{
	harness h;
	int64_t n;

	run(&h, "directions=sphere n_directions=5 seeds_per_voxel=2 both_ways=false", 2);
	n = well_formed(&h);
	/* those within a step (0.2 mm) of the outer faces that point outward have one point, and are dropped: of 0.2 mm beside a volume
	   of 11 x 9 x 6 voxels of 2 x 2 x 3 mm there are 5 %, less than half of which point outward */
	CU_ASSERT_TRUE(n <= 11 * 9 * 6 * 2 * 5 && (double)n > 0.975 * 11 * 9 * 6 * 2 * 5);
	CU_ASSERT_EQUAL(harness_number(&h, 1, "n_outside", 0), 0);
	CU_ASSERT_TRUE(h.n_out > 6); /* several batches */
	for (int64_t i = 2; i < h.n_out - 1; i++) {
		const fx_tracts *t = fx_msg_tracts(h.out[i]);

		for (int64_t k = 0; k < t->n; k++) {
			int64_t from = ((uint32_t *)t->offsets->data)[k], to = ((uint32_t *)t->offsets->data)[k + 1] - 1;
			uint32_t seed = ((uint32_t *)t->seeds->data)[k];
			double z = 1 - (2 * (double)(seed % 5) + 1) / 5, x[3], along[3], length = 0;
			const float *a = FX_F32_OF(t->points) + 3 * from, *b = FX_F32_OF(t->points) + 3 * to;

			for (int d = 0; d < 3; d++) {
				along[d] = (double)b[d] - (double)a[d];
				length += along[d] * along[d];
			}
			index_of(&oblique, (double[]){(double)a[0], (double)a[1], (double)a[2]}, x);
			/* the first voxel's seeds come first, ten to a voxel: single precision of 20 mm */
			CU_ASSERT_EQUAL(voxel_of(&oblique, lround(x[0]), lround(x[1]), lround(x[2])), seed / 10);
			if (length > 0.25) /* the direction to 2e-6/0.5 */
				CU_ASSERT_DOUBLE_EQUAL(along[2] / sqrt(length), z, 1e-5);
			index_of(&oblique, (double[]){(double)b[0], (double)b[1], (double)b[2]}, x);
			for (int d = 0; d < 3; d++)
				CU_ASSERT_TRUE(x[d] > -0.501 && x[d] < (double)oblique.dims[d] - 0.499);
		}
	}
	/* g(v, v) of a straight line in a constant field: what rounding of the stored field leaves */
	CU_ASSERT_TRUE(harness_number(&h, 1, "drift_max", 0) < 1e-4);
	CU_ASSERT_TRUE(harness_number(&h, 1, "drift_median", 0) <= harness_number(&h, 1, "drift_max", 0));
	CU_ASSERT_TRUE(harness_number(&h, 1, "points_per_s", 0) > 0);
	harness_free(&h);
}

static bool same_array(const fx_array *a, const fx_array *b)
{
	return a->bytes == b->bytes && memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

static void threads(void)
{
	static const char *const properties[] = {"directions=random n_directions=3", "method=streamline", "seed_count=2000 seed=4",
		"seeds=grid:1.3 integrator=rk4"};

	for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
		harness one, four;

		run(&one, properties[i], 1);
		run(&four, properties[i], 4);
		well_formed(&one);
		CU_ASSERT_EQUAL_FATAL(one.n_out, four.n_out);
		for (int64_t k = 2; k < one.n_out - 1; k++) {
			const fx_tracts *a = fx_msg_tracts(one.out[k]), *b = fx_msg_tracts(four.out[k]);

			CU_ASSERT_TRUE(same_array(a->points, b->points) && same_array(a->offsets, b->offsets) &&
				same_array(a->values, b->values) && same_array(a->seeds, b->seeds));
		}
		harness_free(&one);
		harness_free(&four);
	}
}

/* A list with some seeds outside: counted, said once; directions are the file's. */
static void list_file(void)
{
	char path[] = "/tmp/fornix-seeds-XXXXXX.txt", properties[200];
	int fd = mkstemps(path, 4);
	FILE *f = fdopen(fd, "w");
	const fx_tracts *t;
	double at[3];
	harness h;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fx_affine_apply(oblique.affine, (double[]){5, 4, 2}, at);
	fprintf(f, "# x y z dx dy dz\n900 0 0 1 0 0\n%.9g,%.9g,%.9g,0,0,-2\n0 0 500 0 0 1\n", at[0], at[1], at[2]);
	fclose(f);
	snprintf(properties, sizeof properties, "seeds=%s both_ways=false", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL_FATAL(well_formed(&h), 1);
	CU_ASSERT_EQUAL(harness_number(&h, 1, "n_outside", 0), 2);
	CU_ASSERT_TRUE(harness_warned(&h, "2 of 3 seeds are outside"));
	t = fx_msg_tracts(h.out[2]);
	CU_ASSERT_EQUAL(*(uint32_t *)t->seeds->data, 1);
	CU_ASSERT_TRUE(FX_F32_OF(t->points)[5] < FX_F32_OF(t->points)[2]);
	CU_ASSERT_PTR_NOT_NULL(strstr(t->info->origin, path + 5));
	harness_free(&h);
	snprintf(properties, sizeof properties, "seeds=%s directions=sphere n_directions=7", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL(well_formed(&h), 7);
	harness_free(&h);
	unlink(path);
}

static void refused(const char *text, const char *properties, int status, const char *part)
{
	char path[] = "/tmp/fornix-seeds-XXXXXX.txt", all[300];
	int fd = mkstemps(path, 4);
	FILE *f = fdopen(fd, "w");
	harness h;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
	if (*text)
		snprintf(all, sizeof all, "seeds=%s %s", path, properties);
	else
		snprintf(all, sizeof all, "%s", properties);
	run(&h, all, 2);
	CU_ASSERT_EQUAL(h.status, status);
	if (!strstr(h.err.text, part)) {
		fprintf(stderr, "expected '%s' in '%s'\n", part, h.err.text);
		CU_FAIL("a refusal without its reason");
	}
	harness_free(&h);
	unlink(path);
}

static void refusals(void)
{
	refused("1 2 3 4\n", "", FX_EDATA, "4 columns");
	refused("1 2 3 4 5 6 7\n", "", FX_EDATA, "7 columns");
	refused("1 2 3\n1 2 3 4 5\n", "", FX_EDATA, "line 2");
	refused("0 0 0\n# a comment\n1 nan 3\n", "", FX_EDATA, "seed 2 (comments and blank lines not counted) has no number in column 2");
	refused("0 0 0\n# a comment\n1 inf 3\n", "", FX_EDATA, "line 3");
	refused("0 0 0\n", "directions=given", FX_EINVAL, "three columns");
	/* all outside: where the seeds are, and where the data are */
	refused("-700 0 0\n-800 11 0\n", "", FX_EDATA, "all 2 seeds are outside the mask, or where a stop holds: they lie in "
		"x -800.0..-700.0, y 0.0..11.0, z 0.0..0.0 mm");
	refused("-700 0 0\n", "", FX_EDATA, "the data in x -19.4..8.7, y 18.6..45.2, z -6.5..11.5 mm");
	refused("", "directions=given", FX_EINVAL, "only a list");
	refused("", "placement=centre seeds_per_voxel=3", FX_EINVAL, "at random");
	refused("", "seeds=sphere:0,0,0,5", FX_EINVAL, "seed_count");
	refused("", "seeds=sphere:0,0,0", FX_EINVAL, "sphere:X,Y,Z,RADIUS");
	refused("", "seeds=grid:-1", FX_EINVAL, "grid:SPACING");
	refused("", "seed_fa=0.99", FX_EDATA, "empty");
	refused("", "seeds=/no/such/file.txt", FX_EIO, "/no/such/file.txt");
	refused("", "seeds=/no/such/file.nii.gz", FX_EIO, "/no/such/file.nii.gz");
}

/* A region of another space: every seed lies in its voxels, in millimetres. */
static void region_file(void)
{
	char path[] = "/tmp/fornix-roi-XXXXXX.nii", properties[200];
	fx_lattice own = {.dims = {3, 2, 2}, .has_affine = true, .affine = {{0.5, 0, 0, -6}, {0, 0.5, 0, 30}, {0, 0, 0.5, 1}}};
	float values[12] = {0};
	harness h;

	values[voxel_of(&own, 2, 1, 0)] = 7;
	values[voxel_of(&own, 0, 0, 1)] = 2;
	write_region(path, &own, values);
	snprintf(properties, sizeof properties, "seeds=%s seed_label=7 seeds_per_voxel=50 both_ways=false", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL_FATAL(well_formed(&h), 50);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 1, "seeds_space", 0), "other");
	for (int64_t i = 2; i < h.n_out - 1; i++)
		for (int64_t k = 0; k < fx_msg_tracts(h.out[i])->n; k++) {
			const fx_tracts *t = fx_msg_tracts(h.out[i]);
			const float *p = FX_F32_OF(t->points) + 3 * (int64_t)((uint32_t *)t->offsets->data)[k];

			/* voxel (2, 1, 0) is 0.5 mm about (-5, 30.5, 1) */
			CU_ASSERT_TRUE(fabsf(p[0] + 5) < 0.2501f && fabsf(p[1] - 30.5f) < 0.2501f && fabsf(p[2] - 1) < 0.2501f);
		}
	harness_free(&h);
	snprintf(properties, sizeof properties, "seeds=%s seed_count=100", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL(well_formed(&h), 100);
	harness_free(&h);
	snprintf(properties, sizeof properties, "seeds=%s seed_label=3", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "value 3"));
	harness_free(&h);
	unlink(path);
	own.has_affine = false;
	strcpy(path, "/tmp/fornix-roi-XXXXXX.nii");
	write_region(path, &own, values);
	snprintf(properties, sizeof properties, "seeds=%s", path);
	run(&h, properties, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "voxel by voxel"));
	harness_free(&h);
	unlink(path);
}

/* Streamlines follow x through 2 mm voxels turned by 30 degrees, and are dropped where they are short. */
static void streamlines(void)
{
	harness h;
	int64_t n;

	run(&h, "method=streamline placement=centre", 2);
	n = well_formed(&h);
	/* 5 edges of 2 mm at least: the corners of the volume are shorter along x */
	CU_ASSERT_TRUE(n > 0 && n < 594);
	CU_ASSERT_EQUAL(harness_number(&h, 1, "n_dropped", 0), (double)(594 - n));
	for (int64_t i = 2; i < h.n_out - 1; i++) {
		const fx_tracts *t = fx_msg_tracts(h.out[i]);

		for (int64_t k = 0; k < t->n; k++) {
			int64_t from = ((uint32_t *)t->offsets->data)[k], to = ((uint32_t *)t->offsets->data)[k + 1];

			CU_ASSERT_TRUE(FX_F32_OF(t->values)[t->info->n_values * k + FX_VALUE_LENGTH] >= 10);
			for (int64_t p = from + 1; p < to; p++) /* along x alone: single precision of 46 mm */
				CU_ASSERT_TRUE(fabsf(FX_F32_OF(t->points)[3 * p + 1] - FX_F32_OF(t->points)[3 * from + 1]) < 1e-4f);
		}
	}
	harness_free(&h);
	run(&h, "method=streamline min_length=1000 max_length=0", 2);
	CU_ASSERT_EQUAL(well_formed(&h), 0);
	CU_ASSERT_TRUE(harness_warned(&h, "no fibre came"));
	harness_free(&h);
}

/* The number of steps and of seeds decide the rest. */
static void stops(void)
{
	harness h;

	run(&h, "max_steps=3 step=0.5 step_unit=mm seeds=sphere:-3,34,2,0.1 seed_count=10", 2);
	CU_ASSERT_EQUAL(well_formed(&h), 10);
	CU_ASSERT_EQUAL(harness_number(&h, 1, "stopped_at_steps", 0), 20);
	CU_ASSERT_EQUAL(harness_number(&h, 1, "n_points", 0), 70);
	harness_free(&h);
}

static void one_field(void)
{
	fx_msg *in[2] = {uniform_tensors(&oblique, white), uniform_tensors(&oblique, white)};
	harness h;

	harness_run(&h, "metric | track seed_count=5", NULL, in, 2);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "second tensor field"));
	harness_free(&h);
}

/*
 * Fibres that point elsewhere in every voxel, under D^-8: no interpolation can follow them, which is said. A bundle that turns by a
 * right angle within a few voxels, under D^-1, is followed.
 */
static void beyond_the_voxels(void)
{
	fx_lattice l = {.dims = {8, 8, 3}, .has_affine = true, .affine = {{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 2, 0}}};
	fx_msg *in[2] = {uniform_tensors(&l, white), uniform_tensors(&l, white)};
	harness h;

	for (int64_t v = 0; v < 192; v++) {
		double x = (double)(v % 8) + 1.5, y = (double)(v / 8 % 8) + 1.5, r2 = x * x + y * y, d[6] = {0.3, 0, 0.3, 0, 0, 0.3};

		d[0] += 1.4 * y * y / r2;
		d[1] -= 1.4 * x * y / r2;
		d[2] += 1.4 * x * x / r2;
		set_tensor(in[1], v, d);
		x = cos(2.4 * (double)v), y = sin(2.4 * (double)v);
		d[0] = 0.3 + 1.4 * x * x;
		d[1] = 1.4 * x * y;
		d[2] = 0.3 + 1.4 * y * y;
		set_tensor(in[0], v, d);
	}
	harness_run(&h, "metric kind=sharpened power=8 | track directions=sphere n_directions=9", NULL, in, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_TRUE(harness_number(&h, 1, "drift_median", 0) > 1);
	CU_ASSERT_TRUE(harness_warned(&h, "do not follow the metric"));
	harness_free(&h);
	harness_run(&h, "metric | track directions=sphere n_directions=9", NULL, in + 1, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_FALSE(harness_warned(&h, "do not follow"));
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"straight", straight},
	{"threads", threads},
	{"list file", list_file},
	{"refusals", refusals},
	{"region file", region_file},
	{"streamlines", streamlines},
	{"stops", stops},
	{"one field", one_field},
	{"beyond the voxels", beyond_the_voxels},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_track_gadget = {"track_gadget", NULL, NULL, NULL, NULL, tests};

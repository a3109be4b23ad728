/* SPDX-License-Identifier: MIT */
#include "gadgets/harness.h"
#include "gadgets/tensor_field.h"

#include <math.h>
#include <stdlib.h>

static const double white[6] = {1.7, 0, 0.3, 0, 0, 0.3}, fluid[6] = {3, 0, 3, 0, 0, 3};
static const fx_lattice plain = {.dims = {5, 4, 3}, .has_affine = true, .affine = {{2, 0, 0, -3}, {0, 2, 0, 4}, {0, 0, 2, 7}}};

/* Tensors pass on, before the metric; a provisional look makes none. */
static void passes_on(void)
{
	fx_msg *in[2] = {uniform_tensors(&plain, white), uniform_tensors(&plain, white)};
	harness h;

	fx_msg_tensors(in[0])->provisional = true;
	harness_run(&h, "metric", NULL, in, 2);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL_FATAL(h.n_out, 3);
	CU_ASSERT_EQUAL(fx_msg_kind(h.out[0]), FX_TENSORS);
	CU_ASSERT_TRUE(fx_msg_tensors(h.out[0])->provisional);
	CU_ASSERT_EQUAL(fx_msg_kind(h.out[1]), FX_TENSORS);
	CU_ASSERT_EQUAL(fx_msg_kind(h.out[2]), FX_METRIC);
	harness_free(&h);
}

/* G' = A^-1 D A^-T of the kind's tensor, and no derivative, where D is the same everywhere. */
static void kinds(void)
{
	static const struct {
		const char *chain;
		double values[3]; /* of the tensor that takes D's place */
	} cases[] = {
		{"metric", {1.7, 0.3, 0.3}},
		{"metric kind=adjugate", {1.7 / 0.153, 0.3 / 0.153, 0.3 / 0.153}},
		{"metric kind=sharpened power=3", {4.913, 0.027, 0.027}},
		{"metric floor=0.5", {1.7, 0.5, 0.5}},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_msg *in = uniform_tensors(&plain, white);
		const fx_metric *m;
		harness h;

		harness_run(&h, cases[i].chain, NULL, &in, 1);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL_FATAL(h.n_out, 2);
		m = fx_msg_metric(h.out[1]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		for (int64_t v = 0; v < 60; v++) {
			const float *f = FX_F32_OF(m->field) + 24 * v;

			/* g = 1/values, in voxels of 2 mm four times that; single precision of the field */
			CU_ASSERT_DOUBLE_EQUAL(f[0] * cases[i].values[0], 4, 4e-6);
			CU_ASSERT_DOUBLE_EQUAL(f[2] * cases[i].values[1], 4, 4e-6);
			CU_ASSERT_DOUBLE_EQUAL(f[5] * cases[i].values[2], 4, 4e-6);
			for (int c = 6; c < 24; c++)
				CU_ASSERT_DOUBLE_EQUAL(f[c], 0, 1e-5); /* differences of equal numbers below 20 */
		}
		CU_ASSERT_EQUAL(harness_number(&h, 0, "n_voxels", 0), 60);
		harness_free(&h);
	}
}

static int64_t run_csf(const char *chain, bool *warned, double *above)
{
	fx_msg *in = uniform_tensors(&plain, white);
	const fx_metric *m;
	int64_t n = 0;
	harness h;

	for (int64_t v = 10; v < 17; v++)
		set_tensor(in, v, fluid);
	harness_run(&h, chain, NULL, &in, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	m = fx_msg_metric(h.out[1]);
	for (int64_t v = 0; v < m->mask->n; v++)
		n += ((const uint8_t *)m->mask->data)[v];
	*warned = harness_warned(&h, "cheaper than white matter");
	*above = harness_number(&h, 0, "n_above_csf_md", 0);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "n_voxels", 0), (double)n);
	harness_free(&h);
	return n;
}

static void csf(void)
{
	double above;
	bool warned;

	CU_ASSERT_EQUAL(run_csf("metric", &warned, &above), 53);
	CU_ASSERT_TRUE(!warned && above == 7);
	CU_ASSERT_EQUAL(run_csf("metric csf=keep", &warned, &above), 60);
	CU_ASSERT_TRUE(warned && above == 7);
	CU_ASSERT_EQUAL(run_csf("metric csf=keep kind=sharpened", &warned, &above), 60);
	CU_ASSERT_TRUE(warned);
	CU_ASSERT_EQUAL(run_csf("metric csf=keep kind=adjugate", &warned, &above), 60);
	CU_ASSERT_TRUE(!warned && above == 7);
	CU_ASSERT_EQUAL(run_csf("metric csf=keep csf_md=3.5", &warned, &above), 60);
	CU_ASSERT_TRUE(!warned && above == 0);
}

/* One white voxel under a mask of the tensors: only fluid is left, which is masked. */
static void nothing_left(void)
{
	fx_msg *in = uniform_tensors(&plain, fluid);
	harness h;

	harness_run(&h, "metric", NULL, &in, 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "60"));
	harness_free(&h);
}

static void run_mask(harness *h, const fx_lattice *l, const float *values, const char *more)
{
	char path[] = "/tmp/fornix-mask-XXXXXX.nii", chain[200];
	fx_msg *in = uniform_tensors(&plain, white);
	fx_tensors *t = fx_msg_tensors(in);

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, plain.dims, &t->mask), FX_OK);
	memset(t->mask->data, 1, 60);
	((uint8_t *)t->mask->data)[voxel_of(&plain, 1, 1, 1)] = 0;
	write_region(path, l, values);
	snprintf(chain, sizeof chain, "metric mask=%s %s", path, more);
	harness_run(h, chain, NULL, &in, 1);
	unlink(path);
}

/* Voxels of the first two columns, from files of the same, of another and of no space. */
static void mask_files(void)
{
	fx_lattice other = {.dims = {2, 8, 6}, .has_affine = true, .affine = {{2, 0, 0, -3}, {0, 1, 0, 3.5}, {0, 0, 1, 6.5}}};
	float values[96] = {0};
	fx_lattice l = plain;
	const fx_metric *m;
	harness h;

	for (int i = 0; i < 60; i++)
		values[i] = i % 5 < 2 ? 1 : i % 5 == 2 ? NAN : 0;
	run_mask(&h, &l, values, "");
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(harness_number(&h, 0, "n_voxels", 0), 23); /* 2 x 4 x 3, less the tensors' own hole */
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "mask_space", 0), "same");
	CU_ASSERT_EQUAL(((uint8_t *)fx_msg_tensors(h.out[0])->mask->data)[4], 1); /* what passed on was left alone */
	harness_free(&h);
	l.has_affine = false;
	run_mask(&h, &l, values, "");
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "mask_space", 0), "voxel by voxel");
	harness_free(&h);
	l.has_affine = true;
	l.affine[0][3] += 1;
	run_mask(&h, &l, values, "");
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "affines differ"));
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "resample=true"));
	harness_free(&h);
	for (int i = 0; i < 96; i++)
		values[i] = (float)(i % 2); /* the second column, in voxels of half the height and depth */
	run_mask(&h, &other, values, "");
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "another matrix"));
	harness_free(&h);
	run_mask(&h, &other, values, "resample=true");
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	m = fx_msg_metric(h.out[1]);
	for (int64_t v = 0; v < 60; v++)
		CU_ASSERT_EQUAL(((uint8_t *)m->mask->data)[v], v % 5 == 1 && v != voxel_of(&plain, 1, 1, 1));
	CU_ASSERT_FALSE(harness_warned(&h, "outside"));
	harness_free(&h);
	other.affine[1][3] = 9.5;
	run_mask(&h, &other, values, "resample=true");
	CU_ASSERT_EQUAL(h.status, FX_OK);
	CU_ASSERT_TRUE(harness_warned(&h, "outside the tensors' volume"));
	harness_free(&h);
}

static CU_TestInfo tests[] = {
	{"passes on", passes_on},
	{"kinds", kinds},
	{"CSF", csf},
	{"nothing left", nothing_left},
	{"mask files", mask_files},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_metric = {"metric", NULL, NULL, NULL, NULL, tests};

/* SPDX-License-Identifier: MIT */
/* test_write_tensors.c - what write_tensors makes of a known field; and write_png of fibres. */
#include <CUnit/CUnit.h>
#include <fornix/diffusion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gadgets/harness.h"

/* The index axes are R turned by 30 degrees about z, times 2 and 3 mm; not mirrored, so that FSL turns x round. */
#define C 0.86602540378443865
#define S 0.5

/* One cigar along the first index axis, 1.7 and 0.3 um^2/ms, then an empty voxel. */
static fx_msg *field(bool maps)
{
	fx_msg *m = fx_msg_new(FX_TENSORS);
	fx_tensors *t = fx_msg_tensors(m);
	const double e[3] = {C, S, 0};
	int at = 0;

	t->lattice = (fx_lattice){{2, 1, 1}, {{2 * C, -3 * S, 0, 5}, {2 * S, 3 * C, 0, 6}, {0, 0, 4, 7}}, true};
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 6, 2, 1, 1, &t->d), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, t->lattice.dims, &t->mask), FX_OK);
	((uint8_t *)t->mask->data)[0] = 1;
	for (int j = 0; j < 3; j++)
		for (int i = 0; i <= j; i++)
			FX_F32_OF(t->d)[at++] = (float)(1.4 * e[i] * e[j] + (i == j ? 0.3 : 0));
	if (maps) {
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, t->lattice.dims, &t->s0), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, t->lattice.dims, &t->residual), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_U8, 3, t->lattice.dims, &t->flags), FX_OK);
		FX_F32_OF(t->s0)[0] = 900;
		((uint8_t *)t->flags->data)[1] = FX_TENSOR_OUTSIDE;
	}
	t->fit = FX_FIT_WLS;
	strcpy(t->origin, "a test");
	return m;
}

static const harness_volume *volume(const harness *h, const char *name)
{
	const harness_product *p = harness_find_product(h, name);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL_FATAL(p->n_volumes, 1);
	return &p->volumes[0];
}

static double at(const harness_volume *v, int64_t i)
{
	return (double)FX_F32_OF(v->data)[i];
}

static void maps_and_their_units(void)
{
	fx_msg *in[] = {field(true)};
	const double fa = 1.4 / sqrt(1.7 * 1.7 + 2 * 0.3 * 0.3);   /* sqrt(1/2) sqrt(2) 1.4 / |lambda| */
	const harness_volume *v;
	harness h;

	harness_run(&h, "write_tensors", NULL, in, 1);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 1);
	CU_ASSERT_EQUAL(h.n_products, 10);
	v = volume(&h, "fa.nii.gz");
	CU_ASSERT_DOUBLE_EQUAL(at(v, 0), fa, 1e-6);
	CU_ASSERT_EQUAL(at(v, 1), 0);
	CU_ASSERT_DOUBLE_EQUAL(v->lattice.affine[0][0], 2 * C, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(v->comment, "a test"));
	CU_ASSERT_PTR_NOT_NULL(strstr(v->comment, "weighted least squares"));
	CU_ASSERT_PTR_NOT_NULL(strstr(v->comment, "Not corrected for eddy currents, susceptibility distortion or motion."));
	CU_ASSERT_PTR_NULL(strstr(v->comment, "shots"));
	CU_ASSERT_DOUBLE_EQUAL(at(volume(&h, "md.nii.gz"), 0), 2.3e-3 / 3, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(at(volume(&h, "ad.nii.gz"), 0), 1.7e-3, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(at(volume(&h, "rd.nii.gz"), 0), 0.3e-3, 1e-9);
	CU_ASSERT_PTR_NOT_NULL(strstr(volume(&h, "md.nii.gz")->description, "mm^2/s"));
	CU_ASSERT_EQUAL(at(volume(&h, "s0.nii.gz"), 0), 900);
	CU_ASSERT(volume(&h, "flags.nii.gz")->data->type == FX_U8);
	v = volume(&h, "colour_fa.nii.gz");
	CU_ASSERT(v->rgb && ((uint8_t *)v->data->data)[0] == (int)lrint(255 * fa * C));
	v = volume(&h, "e1.nii.gz");
	CU_ASSERT(v->vector && !v->symmetric);
	CU_ASSERT_DOUBLE_EQUAL(fabs(at(v, 0)), C, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(at(v, 2) / at(v, 0), S / C, 1e-6);
	v = volume(&h, "tensor.nii.gz");
	CU_ASSERT(v->symmetric && v->data->dims[3] == 6);
	CU_ASSERT_DOUBLE_EQUAL(at(v, 2), 1.4e-3 * C * S, 1e-9);   /* xy is the second of NIfTI's */
	CU_ASSERT_STRING_EQUAL(harness_text(&h, 0, "frame", 0), "ras");
	CU_ASSERT_PTR_NOT_NULL(strstr(harness_text(&h, 0, "caveats", 0), "Not corrected"));
	harness_free(&h);
}

static void orders_and_frames(void)
{
	static const struct {
		const char *chain;
		double tensor[6], e1[3];   /* components along the axes said, divided by 1.4 without the isotropic part */
		double unit;
	} cases[] = {
		{"write_tensors maps=tensor,e1 order=mrtrix", {C * C, S * S, 0, C * S, 0, 0}, {C, S, 0}, 1e-3},
		{"write_tensors maps=tensor,e1 order=fsl", {1, 0, 0, 0, 0, 0}, {-1, 0, 0}, 1e-3},
		{"write_tensors maps=e1,tensor order=nifti frame=image unit=um2/ms", {1, 0, 0, 0, 0, 0}, {1, 0, 0}, 1},
		{"write_tensors maps='tensor e1' order=fsl frame=ras", {C * C, C * S, 0, S * S, 0, 0}, {C, S, 0}, 1e-3},
	};
	static const int diagonal[][6] = {{1, 1, 1, 0, 0, 0}, {1, 0, 0, 1, 0, 1}, {1, 0, 1, 0, 0, 1}, {1, 0, 0, 1, 0, 1}};

	for (size_t c = 0; c < 4; c++) {
		fx_msg *in[] = {field(false)};
		const harness_volume *v;
		double sign;
		harness h;

		harness_run(&h, cases[c].chain, NULL, in, 1);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL(h.n_products, 2);
		v = volume(&h, "tensor.nii.gz");
		CU_ASSERT_EQUAL(v->symmetric, c == 2);
		for (int i = 0; i < 6; i++)
			CU_ASSERT_DOUBLE_EQUAL(at(v, 2 * i), cases[c].unit * (1.4 * cases[c].tensor[i] + 0.3 * diagonal[c][i]), 1e-6 * cases[c].unit);
		v = volume(&h, "e1.nii.gz");
		CU_ASSERT_EQUAL(v->vector, c == 2);
		sign = at(v, 0) * cases[c].e1[0] < 0 ? -1 : 1;   /* a direction has none */
		for (int i = 0; i < 3; i++)
			CU_ASSERT_DOUBLE_EQUAL(sign * at(v, 2 * i), cases[c].e1[i], 1e-6);
		harness_free(&h);
	}
}

static void names_and_caveats(void)
{
	fx_msg *in[] = {field(false), field(false), field(false)};
	const harness_volume *v;
	harness h;

	fx_msg_tensors(in[0])->provisional = true;
	fx_msg_tensors(in[1])->caveats = FX_CAVEAT_SHOT_PHASE | FX_CAVEAT_PARTIAL;
	harness_run(&h, "write_tensors maps=fa,s0 prefix=sub1_", NULL, in, 3);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_products, 3);   /* s0 did not come */
	v = volume(&h, "sub1_provisional_fa.nii.gz");
	CU_ASSERT_PTR_NOT_NULL(strstr(v->comment, "Provisional"));
	v = volume(&h, "sub1_fa.nii.gz");
	CU_ASSERT(strstr(v->comment, "without a phase reference") && strstr(v->comment, "volumes are missing"));
	volume(&h, "sub1_fa_2.nii.gz");
	CU_ASSERT_PTR_NOT_NULL(strstr(harness_text(&h, 0, "caveats", 2), "volumes are missing"));
	harness_free(&h);
}

static void wrong_words(void)
{
	static const struct {
		const char *chain, *says;
	} cases[] = {
		{"write_tensors maps=fa,mdd", "maps names 'mdd'; did you mean 'md'?"},
		{"write_tensors maps=quantum", "maps names 'quantum', which is none of its words"},
		{"write_tensors prefix=../x", "prefix is '../x'"},
		{"write_tensors order=mrtix", "did you mean 'mrtrix'?"},
	};

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		harness h;

		harness_run(&h, cases[c].chain, NULL, NULL, 0);
		CU_ASSERT_EQUAL(h.status, FX_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, cases[c].says));
		if (!strstr(h.err.text, cases[c].says))
			fprintf(stderr, "%s\n", h.err.text);
		harness_free(&h);
	}
}

static fx_msg *batch(fx_tracts_info *info, bool end)
{
	fx_msg *m = fx_msg_new(FX_TRACTS);

	fx_msg_tracts(m)->info = fx_tracts_info_ref(info);
	fx_msg_tracts(m)->end = end;
	return m;
}

static void pictures_of_fibres(void)
{
	fx_tracts_info *info = fx_tracts_info_new();
	fx_msg *image = fx_msg_new(FX_IMAGE);
	fx_msg *in[] = {batch(info, false), image, batch(info, true), batch(info, true), batch(info, false)};
	harness h;

	info->power = 4;
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_F32, 2, 2, 1, 1, &fx_msg_image(image)->data), FX_OK);
	harness_run(&h, "write_png low=2", NULL, in, 5);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_out, 5);
	CU_ASSERT_EQUAL_FATAL(h.n_products, 4);
	CU_ASSERT_EQUAL(harness_find_product(&h, "tracts.png")->n_tracts, 2);
	CU_ASSERT_EQUAL(harness_find_product(&h, "tracts.png")->options.tracts->power, 4);
	CU_ASSERT_EQUAL(harness_find_product(&h, "tracts_2.png")->n_tracts, 1);
	CU_ASSERT_EQUAL(harness_find_product(&h, "tracts_3.png")->n_tracts, 1);   /* the input broke off */
	CU_ASSERT_EQUAL(harness_find_product(&h, "preview.png")->n_images, 1);
	CU_ASSERT_PTR_NULL(harness_find_product(&h, "preview.png")->options.tracts);
	harness_free(&h);
	fx_tracts_info_unref(info);
}

static CU_TestInfo tests[] = {
	{"maps and their units", maps_and_their_units},
	{"orders and frames", orders_and_frames},
	{"names and caveats", names_and_caveats},
	{"wrong words", wrong_words},
	{"write_png: pictures of fibres", pictures_of_fibres},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_write_tensors = {"write_tensors", NULL, NULL, NULL, NULL, tests};

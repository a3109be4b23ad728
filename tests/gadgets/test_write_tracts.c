/* SPDX-License-Identifier: MIT */
/* write_tracts: the format by the name, sets in files of their own, the table of values, what is noted. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "gadgets/harness.h"

static fx_tracts_info *info_of(void)
{
	fx_tracts_info *info = fx_tracts_info_new();

	for (int i = 0; i < 3; i++) {
		info->lattice.dims[i] = 8;
		info->lattice.affine[i][i] = 1;
	}
	info->n_values = 2;
	strcpy(info->names[0], "length_mm");
	strcpy(info->names[1], "measure");
	return info;
}

/* Two fibres of 2 and 3 points, or the end mark. */
static fx_msg *item(fx_tracts_info *info, int64_t first, bool end)
{
	const uint32_t offsets[] = {0, 2, 5}, seeds[] = {7, 4000000000u};
	const float values[] = {1.5f, 0.25f, 2, 1e-7f};
	fx_msg *m = fx_msg_new(FX_TRACTS);
	fx_tracts *t = fx_msg_tracts(m);

	t->info = fx_tracts_info_ref(info);
	t->first = first;
	t->end = end;
	if (end)
		return m;
	t->n = 2;
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_U32, 3, &t->offsets), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, 3, 5, &t->points), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(FX_F32, 2, 2, &t->values), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fx_array_new1(FX_U32, 2, &t->seeds), FX_OK);
	memcpy(t->offsets->data, offsets, sizeof offsets);
	memcpy(t->values->data, values, sizeof values);
	memcpy(t->seeds->data, seeds, sizeof seeds);
	return m;
}

static void formats_by_name(void)
{
	static const struct {
		const char *chain, *name;
		int format;
	} cases[] = {
		{"write_tracts", "tracts.tck", FX_FORMAT_TCK},
		{"write_tracts name=a.trk", "a.trk", FX_FORMAT_TRK},
		{"write_tracts name=b.TRX", "b.TRX", FX_FORMAT_TRX},
		{"write_tracts name=c.png", "c.png", FX_FORMAT_PNG},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		fx_tracts_info *info = info_of();
		fx_msg *in[] = {item(info, 0, false), item(info, 2, false), item(info, 4, true)};
		const harness_product *p;
		harness h;

		harness_run(&h, cases[i].chain, NULL, in, 3);
		CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
		CU_ASSERT_EQUAL(h.n_out, 3);
		CU_ASSERT_EQUAL(h.n_products, 1);
		p = harness_find_product(&h, cases[i].name);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_EQUAL(p->options.format, cases[i].format);
		CU_ASSERT_PTR_NOT_NULL(p->options.tracts);
		CU_ASSERT_EQUAL(p->n_tracts, 2);
		CU_ASSERT_EQUAL(harness_number(&h, 0, "fibres", 0), 4);
		CU_ASSERT_EQUAL(harness_number(&h, 0, "points", 0), 10);
		/* only a .tck leaves something out */
		if (cases[i].format == FX_FORMAT_TCK) {
			const char *note = harness_text(&h, 0, "left_out", 0);

			CU_ASSERT_PTR_NOT_NULL_FATAL(note);
			CU_ASSERT(strstr(note, "length_mm") && strstr(note, "measure") && strstr(note, "values=true"));
		} else {
			CU_ASSERT_PTR_NULL(harness_text(&h, 0, "left_out", 0));
		}
		harness_free(&h);
		fx_tracts_info_unref(info);
	}
}

/* The second set, which has no fibre, is a file of its own too; the third breaks off. */
static void sets(void)
{
	fx_tracts_info *info = info_of();
	fx_msg *in[] = {item(info, 0, false), item(info, 2, true), item(info, 0, true), item(info, 0, false)};
	harness h;

	harness_run(&h, "write_tracts name=a.trx values=true", NULL, in, 4);
	CU_ASSERT_EQUAL_FATAL(h.status, FX_OK);
	CU_ASSERT_EQUAL(h.n_products, 6);
	CU_ASSERT_PTR_NOT_NULL(harness_find_product(&h, "a.trx"));
	CU_ASSERT_PTR_NOT_NULL(harness_find_product(&h, "a_3.trx"));
	CU_ASSERT_PTR_NOT_NULL_FATAL(harness_find_product(&h, "a_2_values.csv"));
	CU_ASSERT_STRING_EQUAL(harness_find_product(&h, "a_2_values.csv")->text, "fibre,points,seed,length_mm,measure\n");
	CU_ASSERT_STRING_EQUAL(harness_find_product(&h, "a_values.csv")->text, "fibre,points,seed,length_mm,measure\n"
		"0,2,7,1.5,0.25\n1,3,4000000000,2,1.00000001e-07\n");
	CU_ASSERT(harness_warned(&h, "broke off after 2 fibres"));
	CU_ASSERT_EQUAL(harness_number(&h, 0, "fibres", 1), 0);
	harness_free(&h);
	fx_tracts_info_unref(info);
}

static void unknown_ending(void)
{
	fx_tracts_info *info = info_of();
	fx_msg *in = item(info, 0, true);
	harness h;

	harness_run(&h, "write_tracts name=tracts.vtk", NULL, &in, 1);
	CU_ASSERT_EQUAL(h.status, FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, ".trx"));
	harness_free(&h);
	fx_tracts_info_unref(info);
}

static CU_TestInfo tests[] = {
	{"formats by name", formats_by_name},
	{"sets", sets},
	{"unknown ending", unknown_ending},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_write_tracts = {"write_tracts", NULL, NULL, NULL, NULL, tests};

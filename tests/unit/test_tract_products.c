/* SPDX-License-Identifier: MIT */
/*
 * Tract products and readers back to back: what is written is read, batches that contradict themselves are refused, a full disk is
 * told, nothing is left behind. What other programs read is checked in tests/system/test_tract_files.py.
 */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/tracts.h"

#define FIBRES 3
#define POINTS 6

static const uint32_t offsets[FIBRES + 1] = {0, 3, 4, 6};
static const float points[3 * POINTS] = {1, 2, 3, 4, 5, 6.5f, -7, 8, 9, 0, 0, 0, 10, -11, 12, 13, 14, 15};
static const struct {
	const char *name;
	int format;
} formats[] = {{"x.tck", FX_FORMAT_TCK}, {"x.trk", FX_FORMAT_TRK}, {"x.trx", FX_FORMAT_TRX}, {"x.png", FX_FORMAT_PNG}};

static char folder[32];

static int make_folder(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

static fx_tracts_info *info_of(void)
{
	fx_tracts_info *info = fx_tracts_info_new();

	CU_ASSERT_PTR_NOT_NULL_FATAL(info);
	for (int i = 0; i < 3; i++) {
		info->lattice.dims[i] = 5 + i;
		info->lattice.affine[i][(i + 1) % 3] = i == 1 ? -2 : 1.5;
		info->lattice.affine[i][3] = 3 * i - 20;
	}
	info->lattice.has_affine = true;
	info->n_values = 1;
	strcpy(info->names[0], "length_mm");
	strcpy(info->origin, "test");
	return info;
}

static void put(fx_array **slot, int type, int64_t d0, int64_t d1, const void *from)
{
	CU_ASSERT_EQUAL_FATAL(fx_array_new2(type, d0, d1, slot), FX_OK);
	memcpy((*slot)->data, from, (size_t)(*slot)->bytes);
}

static fx_msg *batch(fx_tracts_info *info)
{
	const float values[FIBRES] = {1, 2, 3}, riemann[POINTS] = {0, 1, 2, 0, 0, 5};
	fx_msg *m = fx_msg_new(FX_TRACTS);
	fx_tracts *t = fx_msg_tracts(m);

	t->info = fx_tracts_info_ref(info);
	t->n = FIBRES;
	put(&t->offsets, FX_U32, FIBRES + 1, 1, offsets);
	put(&t->points, FX_F32, 3, POINTS, points);
	put(&t->values, FX_F32, 1, FIBRES, values);
	put(&t->riemann, FX_F32, POINTS, 1, riemann);
	return m;
}

static fxi_files *files_of(void)
{
	fxi_files *files;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(fxi_files_folder(folder, &err, &files), FX_OK);
	return files;
}

static fxi_product *open_one(fxi_files *files, int i, const fx_tracts_info *info)
{
	fxi_product *p = NULL;
	fx_error err = {0};

	CU_ASSERT_EQUAL_FATAL(files->open(files, &(fx_sink_options){.format = formats[i].format, .name = formats[i].name, .tracts = info,
		.window_high = 100}, &err, &p), FX_OK);
	return p;
}

static int entries(void)
{
	DIR *d = opendir(folder);
	const struct dirent *e;
	int n = 0;

	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

/* Ten batches of the three fibres come back in order. */
static void written_and_read(void)
{
	fx_tracts_info *info = info_of();
	fx_msg *m = batch(info);
	fxi_files *files = files_of();
	fx_error err = {0};
	char path[64];

	for (int f = 0; f < 3; f++) {
		fxi_product *p = open_one(files, f, info);
		fxi_tract_reader *r;
		const float *found;
		int64_t n = 0, fibres = 0;

		for (int i = 0; i < 10; i++)
			CU_ASSERT_EQUAL(p->add_tracts(p, fx_msg_tracts(m), &err), FX_OK);
		CU_ASSERT_EQUAL_FATAL(p->commit(p, &err), FX_OK);
		snprintf(path, sizeof path, "%s/%s", folder, formats[f].name);
		CU_ASSERT_EQUAL(fxi_tracts_format(path), formats[f].format);
		CU_ASSERT_EQUAL_FATAL(fxi_tracts_open(path, &err, &r), FX_OK);
		CU_ASSERT_EQUAL(r->facts.n_stated, 10 * FIBRES);
		while (fxi_tracts_next(r, &err, &found, &n) == FX_OK && n >= 0) {
			int64_t i = fibres++ % FIBRES;

			CU_ASSERT_EQUAL_FATAL(n, (int64_t)offsets[i + 1] - offsets[i]);
			/* a .trk turns them into voxels and back, in single precision: 20 mm to 2e-6 twice */
			for (int64_t k = 0; k < 3 * n; k++)
				CU_ASSERT_DOUBLE_EQUAL(found[k], points[3 * offsets[i] + k], f == 1 ? 1e-5 : 0);
		}
		CU_ASSERT_EQUAL(err.status, FX_OK);
		CU_ASSERT_EQUAL(fibres, 10 * FIBRES);
		fxi_tracts_close(r);
		unlink(path);
	}
	files->close(files);
	fx_drop(m);
	fx_tracts_info_unref(info);
	CU_ASSERT_EQUAL(entries(), 0);
}

/* Every way in which a batch can lie about itself; the product stays whole and can be thrown away. */
static void contradictions(void)
{
	fx_tracts_info *info = info_of();
	fxi_files *files = files_of();

	for (int f = 0; f < 4; f++)
		for (int what = 0; what < (f < 3 ? 5 : 3); what++) {   /* a picture needs neither values nor lengths */
			fxi_product *p = open_one(files, f, info);
			fx_msg *good = batch(info), *bad = batch(info);
			fx_tracts *t = fx_msg_tracts(bad);
			fx_error err = {0};

			CU_ASSERT_EQUAL(p->add_tracts(p, fx_msg_tracts(good), &err), FX_OK);
			if (what == 0)
				t->n = 4;
			else if (what == 1)
				((uint32_t *)t->offsets->data)[1] = 5;
			else if (what == 2)
				((uint32_t *)t->offsets->data)[FIBRES] = POINTS + 1;
			else if (what == 3)
				fx_slot_take(&t->values, NULL);
			else
				fx_slot_take(&t->riemann, NULL);
			CU_ASSERT_EQUAL(p->add_tracts(p, t, &err), FX_EINVAL);
			CU_ASSERT_PTR_NOT_NULL(strstr(err.text, formats[f].name));
			p->abandon(p);
			fx_drop(good);
			fx_drop(bad);
		}
	files->close(files);
	fx_tracts_info_unref(info);
	CU_ASSERT_EQUAL(entries(), 0);
}

/* A limit on the size of files stands for a full disk. */
static void disk_full(void)
{
	fx_tracts_info *info = info_of();
	fx_msg *m = batch(info);
	fxi_files *files = files_of();
	struct rlimit before, small;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 20000;
	for (int f = 0; f < 3; f++) {
		fxi_product *p = open_one(files, f, info);
		fx_error err = {0};
		int status = FX_OK;

		CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (int i = 0; status == FX_OK && i < 1500; i++)
			status = p->add_tracts(p, fx_msg_tracts(m), &err);
		if (status == FX_OK)
			status = p->commit(p, &err);
		else
			p->abandon(p);
		CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
		CU_ASSERT_EQUAL(status, FX_EIO);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, formats[f].name));
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "File too large"));
	}
	signal(SIGXFSZ, handler);
	files->close(files);
	fx_drop(m);
	fx_tracts_info_unref(info);
	CU_ASSERT_EQUAL(entries(), 0);
}

/* Lattices that a format cannot hold. */
static void refused_lattices(void)
{
	fx_tracts_info *info = info_of();
	fxi_files *files = files_of();
	fxi_product *p = NULL;
	fx_error err = {0};

	info->lattice.affine[0][1] = 0;
	CU_ASSERT_EQUAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_TRK, .name = "x.trk", .tracts = info}, &err, &p), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "singular"));
	err = (fx_error){0};
	CU_ASSERT_EQUAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_PNG, .name = "x.png", .tracts = info}, &err, &p), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "extent"));
	err = (fx_error){0};
	info->lattice.affine[0][1] = 1;
	info->lattice.dims[2] = 40000;
	CU_ASSERT_EQUAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_TRK, .name = "x.trk", .tracts = info}, &err, &p), FX_EINVAL);
	info->lattice.dims[2] = 70000;
	CU_ASSERT_EQUAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_TRX, .name = "x.trx", .tracts = info}, &err, &p), FX_EINVAL);
	err = (fx_error){0};
	CU_ASSERT_EQUAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_TRX, .name = "x.trx"}, &err, &p), FX_EINVAL);
	files->close(files);
	fx_tracts_info_unref(info);
	CU_ASSERT_EQUAL(entries(), 0);
}

static CU_TestInfo tests[] = {
	{"written and read", written_and_read},
	{"contradictions", contradictions},
	{"disk full", disk_full},
	{"refused lattices", refused_lattices},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_tract_products = {"tract_products", make_folder, remove_folder, NULL, NULL, tests};

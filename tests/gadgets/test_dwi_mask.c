/* SPDX-License-Identifier: MIT */
/* test_dwi_mask.c - the mask in a series' end mark: from its b = 0 volumes, from files of the same and of other grids. */
#include <CUnit/CUnit.h>

#include "gadgets/harness.h"

#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


enum { NX = 5, NY = 4, NZ = 3, N = NX * NY * NZ, NV = 4 };

/* b, direction: two b = 0, the second of them 5 as some scanners have it. */
static const double table[NV][4] = {{1000, 1, 0, 0}, {0, 0, 0, 0}, {5, 0, 0, 0}, {1000, 0, 1, 0}};
static const int64_t dims[3] = {NX, NY, NZ};
static const double mm[3] = {2, 2, 3};

/* Volumes whose b = 0 mean is 10 in a box of 3 x 2 x 1 and 1 elsewhere; b = 1000 is bright where b = 0 is dark. */
static void messages(fx_msg **msgs, const double (*rows)[4], bool complex_values)
{
	float data[NV * N];
	fx_series_info *info;

	info = harness_series_info(dims, mm, NV, rows ? rows : table);
	for (int i = 0; i < N; i++) {
		int x = i % NX, y = i / NX % NY, z = i / (NX * NY);
		bool in = x >= 1 && x <= 3 && y >= 1 && y <= 2 && z == 1;

		data[i] = data[3 * N + i] = in ? 0 : 500;
		data[N + i] = in ? 19 : 0;       /* neither of them alone has the mean's threshold */
		data[2 * N + i] = in ? 1 : 2;
	}
	harness_series(info, data, msgs);
	fx_series_info_unref(info);
	for (int v = 0; v < NV && complex_values; v++) {
		fx_series *s = fx_msg_series(msgs[v]);
		fx_array *c = NULL;

		CU_ASSERT_EQUAL_FATAL(fx_array_convert(s->data, FX_CF32, &c), FX_OK);
		for (int64_t i = 0; i < c->n; i++)
			FX_CF32_OF(c)[i] *= v == 1 ? -I : I;
		fx_slot_take(&s->data, c);
	}
}

static bool boxed(int i)
{
	int x = i % NX, y = i / NX % NY, z = i / (NX * NY);

	return x >= 1 && x <= 3 && y >= 1 && y <= 2 && z == 1;
}

static void check_box(const harness *h)
{
	const fx_series *end;

	CU_ASSERT_EQUAL(h->status, FX_OK);
	if (h->status != FX_OK)
		fprintf(stderr, "%s\n", h->err.text);
	CU_ASSERT_EQUAL_FATAL(h->n_out, NV + 1);
	for (int v = 0; v < NV; v++)
		CU_ASSERT_EQUAL(fx_msg_series(h->out[v])->volume, v);
	end = fx_msg_series(h->out[NV]);
	CU_ASSERT(end->end);
	CU_ASSERT_PTR_NOT_NULL_FATAL(end->mask);
	CU_ASSERT_EQUAL_FATAL(end->mask->n, N);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(((uint8_t *)end->mask->data)[i], boxed(i));
}

static void from_b0(void)
{
	for (int c = 0; c < 2; c++) {
		fx_msg *msgs[NV + 1];
		harness h;

		messages(msgs, NULL, c);
		harness_run(&h, "dwi_mask median=0", NULL, msgs, NV + 1);
		check_box(&h);
		CU_ASSERT_EQUAL(harness_number(&h, 0, "b0_volumes", 0), 2);
		CU_ASSERT_EQUAL(harness_number(&h, 0, "voxels", 0), 6);
		CU_ASSERT_EQUAL_FATAL(h.n_products, 1);
		CU_ASSERT_STRING_EQUAL(h.products[0].name, "mask.nii.gz");
		CU_ASSERT_EQUAL_FATAL(h.products[0].n_volumes, 1);
		CU_ASSERT_EQUAL(h.products[0].volumes[0].data->type, FX_U8);
		CU_ASSERT_EQUAL(h.products[0].volumes[0].lattice.affine[2][2], 3);
		harness_free(&h);
	}
}

static void not_written(void)
{
	fx_msg *msgs[NV + 1];
	harness h;

	messages(msgs, NULL, false);
	harness_run(&h, "dwi_mask median=0 name=", NULL, msgs, NV + 1);
	check_box(&h);
	CU_ASSERT_EQUAL(h.n_products, 0);
	harness_free(&h);
}

static void no_b0(void)
{
	static const double rows[NV][4] = {{1000, 1, 0, 0}, {800, 0, 0, 1}, {800, 0, 1, 0}, {1000, 0, 1, 0}};
	fx_msg *msgs[NV + 1];
	harness h;

	messages(msgs, rows, false);
	harness_run(&h, "dwi_mask", NULL, msgs, NV + 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "b0_max="));
	harness_free(&h);
	messages(msgs, rows, false);
	harness_run(&h, "dwi_mask median=0 b0_max=800", NULL, msgs, NV + 1);
	check_box(&h);
	harness_free(&h);
}

/* An uncompressed NIfTI-1 file, bytes, voxels of 2 x 2 x 3 mm times `scale`, first voxel at 0. */
static void write_mask(const char *path, int nx, int ny, int nz, double scale, const uint8_t *voxels)
{
	unsigned char head[352] = {0};
	int32_t size = 348;
	int16_t dim[8] = {3, (int16_t)nx, (int16_t)ny, (int16_t)nz, 1, 1, 1, 1}, type = 2, bits = 8, code = 1;
	float pixdim[8] = {1, (float)(2 * scale), (float)(2 * scale), (float)(3 * scale)}, offset = 352, slope = 1;
	FILE *f = fopen(path, "wb");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	memcpy(head, &size, 4);
	memcpy(head + 40, dim, 16);
	memcpy(head + 70, &type, 2);
	memcpy(head + 72, &bits, 2);
	memcpy(head + 76, pixdim, 32);
	memcpy(head + 108, &offset, 4);
	memcpy(head + 112, &slope, 4);
	memcpy(head + 254, &code, 2);
	for (int i = 0; i < 3; i++)
		memcpy(head + 280 + 20 * i, &pixdim[i + 1], 4);
	memcpy(head + 344, "n+1", 4);
	fwrite(head, 1, sizeof head, f);
	fwrite(voxels, 1, (size_t)(nx * ny * nz), f);
	fclose(f);
}

static void from_files(void)
{
	char path[] = "/tmp/fornix-mask-XXXXXX.nii", chain[96];
	uint8_t same[N], half[8 * N];
	fx_msg *msgs[NV + 1];
	harness h;
	int fd = mkstemps(path, 4);

	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	for (int i = 0; i < N; i++)
		same[i] = boxed(i) ? 3 : 0;
	write_mask(path, NX, NY, NZ, 1, same);
	snprintf(chain, sizeof chain, "dwi_mask image=%s", path);
	messages(msgs, NULL, false);
	harness_run(&h, chain, NULL, msgs, NV + 1);
	check_box(&h);
	harness_free(&h);
	/* Half the voxels: voxel 2 i of the file has its centre where voxel i of the series has it. */
	for (int i = 0; i < 8 * N; i++) {
		int x = i % (2 * NX), y = i / (2 * NX) % (2 * NY), z = i / (4 * NX * NY);

		half[i] = x % 2 == 0 && y % 2 == 0 && z % 2 == 0 && boxed(x / 2 + NX * (y / 2 + NY * (z / 2)));
	}
	write_mask(path, 2 * NX, 2 * NY, 2 * NZ, 0.5, half);
	messages(msgs, NULL, false);
	harness_run(&h, chain, NULL, msgs, NV + 1);
	CU_ASSERT_EQUAL(h.status, FX_EDATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.err.text, "resample=true"));
	harness_free(&h);
	snprintf(chain, sizeof chain, "dwi_mask image=%s resample=true", path);
	messages(msgs, NULL, false);
	harness_run(&h, chain, NULL, msgs, NV + 1);
	check_box(&h);
	harness_free(&h);
	unlink(path);
}

static CU_TestInfo tests[] = {
	{"from b = 0, real and complex", from_b0},
	{"not written", not_written},
	{"no b = 0", no_b0},
	{"from files", from_files},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_dwi_mask = {"dwi_mask", NULL, NULL, NULL, NULL, tests};

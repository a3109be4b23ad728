/* SPDX-License-Identifier: MIT */
/* NIfTI files: written by the product and read back; foreign flavours and damage. The geometry is checked in tests/system too. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <nifti/nifti1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/nifti_read.h"

static char folder[32], path[64];

static int make_folder(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/x.nii.gz", folder);
	return 0;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

/* A mirrored oblique volume of odd and even sizes; voxel (x, y, z) holds x + 10 y + 100 z, times i in the second channel. */
static fx_msg *volume(void)
{
	fx_msg *m = fx_msg_new(FX_IMAGE);
	fx_image *im = fx_msg_image(m);
	const double c = cos(0.5), s = sin(0.5);
	const float read[3] = {(float)c, (float)s, 0}, phase[3] = {0, 0, 1}, slice[3] = {(float)-s, (float)c, 0};

	im->head.matrix_size[0] = 3;
	im->head.matrix_size[1] = 4;
	im->head.matrix_size[2] = 5;
	im->head.channels = 2;
	for (int i = 0; i < 3; i++) {
		im->head.field_of_view[i] = 60;
		im->head.position[i] = (float)(7 * i - 3);
		im->head.read_dir[i] = read[i];
		im->head.phase_dir[i] = phase[i];
		im->head.slice_dir[i] = slice[i];
	}
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(FX_CF32, 3, 4, 5, 2, &im->data), FX_OK);
	for (int i = 0; i < 60; i++) {
		float v = (float)(i % 3 + 10 * (i / 3 % 4) + 100 * (i / 12));

		((float *)im->data->data)[2 * i] = v;
		((float *)im->data->data)[2 * (60 + i) + 1] = v;
	}
	return m;
}

static void write_volume(bool complex_values)
{
	const fx_sink_options o = {.format = FX_FORMAT_NIFTI, .name = "x.nii.gz", .complex_values = complex_values, .window_low = 0, .window_high = 100};
	fx_error err = {0};
	fxi_files *files;
	fxi_product *p;
	fx_msg *m = volume();

	CU_ASSERT_EQUAL_FATAL(fxi_files_folder(folder, &err, &files), FX_OK);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add(p, fx_msg_image(m), &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(p->commit(p, &err), FX_OK);
	files->close(files);
	fx_drop(m);
}

/* Where voxel (x, y, z) lies, straight from MRD's rule and the LPS to RAS sign; float32 at 100 mm keeps 1e-5 mm. */
static void check_place(double affine[3][4], int x, int y, int z)
{
	const int centre[3] = {1, 2, 2}, voxel[3] = {x, y, z};
	const double size[3] = {20, 15, 12}, c = cos(0.5), s = sin(0.5);
	const double dirs[3][3] = {{c, s, 0}, {0, 0, 1}, {-s, c, 0}};

	for (int i = 0; i < 3; i++) {
		double lps = 7 * i - 3, ras = affine[i][3];

		for (int a = 0; a < 3; a++) {
			lps += (voxel[a] - centre[a]) * size[a] * dirs[a][i];
			ras += affine[i][a] * voxel[a];
		}
		CU_ASSERT_DOUBLE_EQUAL(ras, i < 2 ? -lps : lps, 1e-4);
	}
}

static void written_and_read(void)
{
	fx_error err = {0};
	fxi_nifti_info info;
	fx_array *a;

	for (int complex_values = 0; complex_values < 2; complex_values++) {
		write_volume(complex_values);
		CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path, &err, &a, &info), FX_OK);
		CU_ASSERT_EQUAL(a->type, complex_values ? FX_CF32 : FX_F32);
		CU_ASSERT(a->dims[0] == 3 && a->dims[1] == 4 && a->dims[2] == 5 && a->dims[3] == 2 && a->n_dims == 4);
		if (complex_values) {
			CU_ASSERT_EQUAL(((float *)a->data)[2 * 59], 432);
			CU_ASSERT_EQUAL(((float *)a->data)[2 * 119], 0);
			CU_ASSERT_EQUAL(((float *)a->data)[2 * 119 + 1], 432);
		} else {
			CU_ASSERT_EQUAL(FX_F32_OF(a)[59], 432);
			CU_ASSERT_EQUAL(FX_F32_OF(a)[119], 432);
		}
		CU_ASSERT_EQUAL(info.sform_code, 1);
		CU_ASSERT_EQUAL(info.qform_code, 1);
		check_place(info.affine, 0, 0, 0);
		check_place(info.affine, 2, 3, 4);
		fx_array_unref(a);
		unlink(path);
	}
}

static void swap(void *p, int size)
{
	unsigned char *b = p;

	for (int i = 0; i < size / 2; i++) {
		unsigned char t = b[i];

		b[i] = b[size - 1 - i];
		b[size - 1 - i] = t;
	}
}

/* A plain NIfTI-1 of 2 x 2 x 1 int16 voxels, scaled, with a qform alone, in either byte order. */
static void write_by_hand(bool swapped)
{
	nifti_1_header h = {.sizeof_hdr = 348, .dim = {3, 2, 2, 1, 1, 1, 1, 1}, .datatype = DT_INT16, .bitpix = 16,
		.pixdim = {-1, 2, 3, 4, 1, 1, 1, 1}, .vox_offset = 352, .scl_slope = 0.5f, .scl_inter = 10,
		.qform_code = 2, .quatern_d = 1, .qoffset_x = 5, .qoffset_y = 6, .qoffset_z = 7, .magic = "n+1"};
	int16_t voxels[4] = {-2, 0, 1, 300};
	const char pad[4] = {0};
	FILE *f = fopen(path, "wb");

	if (swapped) {
		swap(&h.sizeof_hdr, 4);
		for (int i = 0; i < 8; i++) {
			swap(&h.dim[i], 2);
			swap(&h.pixdim[i], 4);
		}
		swap(&h.datatype, 2);
		swap(&h.bitpix, 2);
		swap(&h.vox_offset, 4);
		swap(&h.scl_slope, 4);
		swap(&h.scl_inter, 4);
		swap(&h.qform_code, 2);
		swap(&h.quatern_d, 4);
		swap(&h.qoffset_x, 4);
		swap(&h.qoffset_y, 4);
		swap(&h.qoffset_z, 4);
		for (int i = 0; i < 4; i++)
			swap(&voxels[i], 2);
	}
	fwrite(&h, 348, 1, f);
	fwrite(pad, 4, 1, f);
	fwrite(voxels, 8, 1, f);
	fclose(f);
}

static void other_flavours(void)
{
	/* Half a turn about z, and the third axis reversed by pixdim[0] = -1. */
	const double expected[3][4] = {{-2, 0, 0, 5}, {0, -3, 0, 6}, {0, 0, -4, 7}};
	fx_error err = {0};
	fxi_nifti_info info;
	fx_array *a;

	for (int swapped = 0; swapped < 2; swapped++) {
		write_by_hand(swapped);
		CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path, &err, &a, &info), FX_OK);
		CU_ASSERT_EQUAL(a->type, FX_F32);
		CU_ASSERT_EQUAL(a->n_dims, 3);
		CU_ASSERT_EQUAL(FX_F32_OF(a)[0], 9);
		CU_ASSERT_EQUAL(FX_F32_OF(a)[3], 160);
		CU_ASSERT(info.has_affine && info.sform_code == 0 && info.qform_code == 2);
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 4; j++)
				CU_ASSERT_DOUBLE_EQUAL(info.affine[i][j], expected[i][j], 1e-6);   /* float32 of small integers */
		fx_array_unref(a);
	}
	unlink(path);
}

static void nan_is_kept(void)
{
	const fx_sink_options o = {.format = FX_FORMAT_NIFTI, .name = "x.nii.gz", .complex_values = false, .window_low = 0, .window_high = 100};
	fx_error err = {0};
	fxi_files *files;
	fxi_product *p;
	fxi_nifti_info info;
	fx_array *a;
	fx_msg *m = volume();

	((float *)fx_msg_image(m)->data->data)[4] = NAN;
	((float *)fx_msg_image(m)->data->data)[7] = INFINITY;
	CU_ASSERT_EQUAL_FATAL(fxi_files_folder(folder, &err, &files), FX_OK);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add(p, fx_msg_image(m), &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(p->commit(p, &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path, &err, &a, &info), FX_OK);
	CU_ASSERT(isnan(FX_F32_OF(a)[2]));
	CU_ASSERT(isinf(FX_F32_OF(a)[3]));
	fx_array_unref(a);
	files->close(files);
	fx_drop(m);
	unlink(path);
}

static void expect(int wanted, const char *words)
{
	fx_error err = {0};
	fxi_nifti_info info;
	fx_array *a = (fx_array *)1;

	CU_ASSERT_EQUAL(fxi_nifti_read(path, &err, &a, &info), wanted);
	CU_ASSERT_PTR_NULL(a);
	CU_ASSERT(strstr(err.text, path) && strstr(err.text, words));
	if (!strstr(err.text, words))
		printf("\n    expected '%s', got '%s'\n", words, err.text);
}

static void patch(long at, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "r+b");

	fseek(f, at, SEEK_SET);
	fwrite(bytes, 1, n, f);
	fclose(f);
}

static void what_is_refused(void)
{
	struct stat s;

	write_by_hand(false);
	for (int n = 359; n >= 0; n -= 7) {
		CU_ASSERT_EQUAL_FATAL(truncate(path, n), 0);
		expect(FX_EDATA, "cut short");
	}
	write_volume(false);
	CU_ASSERT_EQUAL_FATAL(stat(path, &s), 0);
	for (int i = 49; i >= 1; i--) {
		CU_ASSERT_EQUAL_FATAL(truncate(path, s.st_size * i / 50), 0);
		expect(FX_EDATA, "");
	}
	write_by_hand(false);
	patch(42, "\xff\x7f\xff\x7f\xff\x7f", 6);
	expect(FX_EDATA, "are there");
	write_by_hand(false);
	patch(42, "\xff\xff", 2);
	expect(FX_EDATA, "dim[1] is -1");
	write_by_hand(false);
	patch(70, "\x80\0", 2);
	expect(FX_ENOTSUP, "type 128");
	write_by_hand(false);
	patch(344, "ni1", 3);
	expect(FX_ENOTSUP, ".hdr/.img");
	patch(344, "\0\0\0", 3);
	expect(FX_EDATA, "ANALYZE");
	patch(0, "hello", 5);
	expect(FX_EDATA, "no NIfTI image");
	unlink(path);
	expect(FX_EIO, "No such file");
}

/* Values that nibabel gives (float32 arithmetic there, double here: a unit in the last place, 1e-6 relative). */
static void real_files(void)
{
	static const struct {
		const char *name;
		int type;
		int64_t dims[4];
		double sum, last_offset;   /* over all voxels, magnitudes; affine[2][3] */
	} files[] = {
		{"odd/shear.nii.gz", FX_F32, {306, 422, 54, 1}, -5577896244.733097, -102.20355224609375},
		{"odd/complex.nii.gz", FX_CF32, {64, 64, 44, 1}, 685164162755.4573, -12.392467498779297},
		{"diffusion/small_64D.nii", FX_F32, {10, 10, 10, 65}, 5967027, 12.320494651794434},
		{"diffusion/aniso_vox.nii.gz", FX_F32, {58, 58, 24, 1}, 7763280, 22.819555282592773},
	};

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		char name[256];
		fx_error err = {0};
		fxi_nifti_info info;
		fx_array *a;
		double sum = 0;

		snprintf(name, sizeof name, "%s/%s", TEST_DATA_DIR, files[i].name);
		if (access(name, R_OK) != 0) {
			printf("\n    skipped: %s is not here", name);
			continue;
		}
		CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(name, &err, &a, &info), FX_OK);
		CU_ASSERT_EQUAL(a->type, files[i].type);
		for (int d = 0; d < 4; d++)
			CU_ASSERT_EQUAL(a->dims[d], files[i].dims[d]);
		for (int64_t j = 0; j < a->n; j++)
			sum += a->type == FX_CF32 ? (double)hypotf(((float *)a->data)[2 * j], ((float *)a->data)[2 * j + 1]) :
				(double)FX_F32_OF(a)[j];
		CU_ASSERT_DOUBLE_EQUAL(sum, files[i].sum, 1e-6 * fabs(files[i].sum));
		CU_ASSERT_DOUBLE_EQUAL(info.affine[2][3], files[i].last_offset, 1e-6 * fabs(files[i].last_offset));
		fx_array_unref(a);
	}
}

static CU_TestInfo tests[] = {
	{"what is written is read, in its place", written_and_read},
	{"scaled, swapped, qform alone", other_flavours},
	{"NaN and infinity are kept", nan_is_kept},
	{"what is refused, and why", what_is_refused},
	{"real files, as nibabel reads them", real_files},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_nifti = {"nifti", make_folder, remove_folder, NULL, NULL, tests};

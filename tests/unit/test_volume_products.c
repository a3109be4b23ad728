/* SPDX-License-Identifier: MIT */
/* Fields of voxels and texts as products: what is written is read back, in its place; mistakes are refused. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"
#include "io/nifti_read.h"

static char folder[32], warned[1024];

static int make_folder(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

static int n_entries(void)
{
	DIR *d = opendir(folder);
	int n = -2;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void warn(void *arg, const char *text)
{
	(void)arg;
	strncat(warned, text, sizeof warned - strlen(warned) - 1);
}

static fxi_files *open_files(void)
{
	fx_error err = {0};
	fxi_files *files;

	CU_ASSERT_EQUAL_FATAL(fxi_files_folder(folder, &err, &files), FX_OK);
	files->warn = warn;
	warned[0] = 0;
	return files;
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

/* Oblique and mirrored, of float32 numbers, so that the file holds exactly these. */
static const fx_lattice oblique = {{3, 4, 2}, {{-1.5f, 0, 0, 10}, {0, 1.2000000476837158, -1.2000000476837158, -20.25},
	{0, 0.89999997615814209, 1.6000000238418579, 7}}, true};

static int write_volume(const char *name, const fx_volume *v, fx_error *err)
{
	fxi_files *files = open_files();
	fxi_product *p;
	int status = files->open(files, &(fx_sink_options){.format = FX_FORMAT_VOLUME, .name = name}, err, &p);

	if (status == FX_OK) {
		status = p->add_volume(p, v, err);
		if (status == FX_OK)
			status = p->commit(p, err);
		else
			p->abandon(p);
	}
	files->close(files);
	return status;
}

static fx_array *numbers(int type, int n_dims, const int64_t *dims)
{
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(type, n_dims, dims, &a), FX_OK);
	for (int64_t i = 0; i < a->n; i++) {
		int v = (int)(i % 120);

		switch (type) {
		case FX_U8: ((uint8_t *)a->data)[i] = (uint8_t)v; break;
		case FX_I16: ((int16_t *)a->data)[i] = (int16_t)v; break;
		case FX_I32: ((int32_t *)a->data)[i] = v; break;
		case FX_F64: FX_F64_OF(a)[i] = v; break;
		case FX_CF32: FX_CF32_OF(a)[i] = FX_CF32(v, 0); break;
		default: FX_F32_OF(a)[i] = (float)v;
		}
	}
	return a;
}

static void every_type_in_its_place(void)
{
	static const int types[] = {FX_U8, FX_I16, FX_I32, FX_F32, FX_F64};
	static const char *const names[] = {"a.nii", "a.nii.gz"};

	for (size_t t = 0; t < 5; t++)
		for (int gz = 0; gz < 2; gz++) {
			fx_array *a = numbers(types[t], 4, (int64_t[]){3, 4, 2, 5}), *back;
			fx_volume v = {.lattice = &oblique, .data = a, .description = "five of them", .comment = "a word"};
			fx_error err = {0};
			fxi_nifti_info info;

			CU_ASSERT_EQUAL_FATAL(write_volume(names[gz], &v, &err), FX_OK);
			CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path_of(names[gz]), &err, &back, &info), FX_OK);
			CU_ASSERT_EQUAL(info.n_dims, 4);
			CU_ASSERT_STRING_EQUAL(info.description, "five of them");
			CU_ASSERT_EQUAL(memcmp(info.affine, oblique.affine, sizeof info.affine), 0);
			CU_ASSERT(info.sform_code == 1 && info.qform_code == 1);
			for (int64_t i = 0; i < back->n; i++)
				CU_ASSERT_EQUAL(back->type == FX_F64 ? FX_F64_OF(back)[i] : (double)FX_F32_OF(back)[i], i % 120);
			unlink(path_of(names[gz]));
			fx_array_unref(a);
			fx_array_unref(back);
		}
	CU_ASSERT_STRING_EQUAL(warned, "");
}

static void shapes(void)
{
	const struct {
		bool symmetric, vector;
		int64_t n;
		int n_dims, intent;
	} cases[] = {{true, false, 6, 5, 1005}, {false, true, 3, 5, 1007}, {false, false, 6, 4, 0}};

	for (size_t i = 0; i < 3; i++) {
		fx_array *a = numbers(FX_F32, 4, (int64_t[]){3, 4, 2, cases[i].n}), *back;
		fx_volume v = {.lattice = &oblique, .data = a, .symmetric = cases[i].symmetric, .vector = cases[i].vector};
		fx_error err = {0};
		fxi_nifti_info info;

		CU_ASSERT_EQUAL_FATAL(write_volume("s.nii.gz", &v, &err), FX_OK);
		CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path_of("s.nii.gz"), &err, &back, &info), FX_OK);
		CU_ASSERT(info.n_dims == cases[i].n_dims && info.intent == cases[i].intent);
		CU_ASSERT_EQUAL(info.dims[cases[i].n_dims - 1], cases[i].n);
		CU_ASSERT_EQUAL(memcmp(a->data, back->data, (size_t)a->bytes), 0);
		unlink(path_of("s.nii.gz"));
		fx_array_unref(a);
		fx_array_unref(back);
	}
}

static void shear_large_unknown(void)
{
	fx_lattice shear = oblique, large = {{40000, 1, 1}, {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}, true}, unknown = oblique;
	fx_array *a = numbers(FX_F32, 3, (int64_t[]){3, 4, 2}), *b = numbers(FX_U8, 3, (int64_t[]){40000, 1, 1}), *back;
	fx_error err = {0};
	fxi_nifti_info info;
	char mark[5] = "";
	int fd;

	shear.affine[0][1] = 0.25;
	CU_ASSERT_EQUAL(write_volume("x.nii", &(fx_volume){.lattice = &shear, .data = a}, &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path_of("x.nii"), &err, &back, &info), FX_OK);
	CU_ASSERT(info.sform_code == 1 && info.qform_code == 0 && info.affine[0][1] == 0.25);
	fx_array_unref(back);
	CU_ASSERT_EQUAL(write_volume("x.nii", &(fx_volume){.lattice = &large, .data = b}, &err), FX_OK);
	fd = open(path_of("x.nii"), O_RDONLY);
	CU_ASSERT_EQUAL(pread(fd, mark, 3, 4), 3);   /* NIfTI-2 has its mark right behind its size */
	close(fd);
	CU_ASSERT_STRING_EQUAL(mark, "n+2");
	CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path_of("x.nii"), &err, &back, &info), FX_OK);
	CU_ASSERT_EQUAL(FX_F32_OF(back)[39999], 39999 % 120);
	fx_array_unref(back);
	unknown.has_affine = false;
	CU_ASSERT_EQUAL(write_volume("x.nii", &(fx_volume){.lattice = &unknown, .data = a}, &err), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(warned, "x.nii: where the volume lies is not known"));
	CU_ASSERT_EQUAL_FATAL(fxi_nifti_read(path_of("x.nii"), &err, &back, &info), FX_OK);
	CU_ASSERT_FALSE(info.has_affine);
	CU_ASSERT_DOUBLE_EQUAL(info.pixdim[1], 1.5, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(info.pixdim[0], 1.5, 1e-6);
	fx_array_unref(back);
	unlink(path_of("x.nii"));
	fx_array_unref(a);
	fx_array_unref(b);
}

static void refused(void)
{
	fx_array *three = numbers(FX_F32, 4, (int64_t[]){3, 4, 2, 3}), *other = numbers(FX_F32, 3, (int64_t[]){4, 3, 2}),
		*complex_one = numbers(FX_CF32, 3, (int64_t[]){3, 4, 2}), *plain = numbers(FX_F32, 3, (int64_t[]){3, 4, 2});
	const struct {
		const char *name;
		fx_volume v;
		const char *says;
	} cases[] = {
		{"a.nii", {.lattice = &oblique, .data = three, .symmetric = true}, "3 numbers a voxel instead of 6"},
		{"a.nii", {.lattice = &oblique, .data = plain, .vector = true}, "1 numbers a voxel instead of 3"},
		{"a.nii", {.lattice = &oblique, .data = other}, "4 x 3 x 2 voxels do not fit a lattice of 3 x 4 x 2"},
		{"a.nii", {.lattice = &oblique, .data = complex_one}, "type cf32"},
		{"a.nii", {.lattice = &oblique, .data = three, .rgb = true}, "colours are u8"},
		{"a.nii", {.lattice = &oblique}, "needs a lattice and voxels"},
		{"a.img", {.lattice = &oblique, .data = plain}, "ends in .nii.gz or .nii"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		fx_error err = {0};

		CU_ASSERT_EQUAL(write_volume(cases[i].name, &cases[i].v, &err), FX_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].says));
		CU_ASSERT_EQUAL(n_entries(), 0);
	}
	fx_array_unref(three);
	fx_array_unref(other);
	fx_array_unref(complex_one);
	fx_array_unref(plain);
}

static void one_volume_whole_or_absent(void)
{
	fx_array *a = numbers(FX_F32, 3, (int64_t[]){3, 4, 2});
	const fx_volume v = {.lattice = &oblique, .data = a};
	const fx_sink_options o = {.format = FX_FORMAT_VOLUME, .name = "fa.nii.gz"};
	fxi_files *files = open_files();
	const char *const *names;
	fx_error err = {0};
	fxi_product *p;
	int64_t n;

	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_PTR_NULL(p->add);
	CU_ASSERT_EQUAL(p->add_volume(p, &v, &err), FX_OK);
	CU_ASSERT_EQUAL(access(path_of("fa.nii.gz"), F_OK), -1);
	CU_ASSERT_EQUAL(p->add_volume(p, &v, &err), FX_EINVAL);
	p->abandon(p);
	CU_ASSERT_EQUAL(n_entries(), 0);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(warned, "no volume came"));
	fxi_files_names(files, &n);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add_volume(p, &v, &(fx_error){0}), FX_OK);
	CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
	names = fxi_files_names(files, &n);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_STRING_EQUAL(names[0], "fa.nii.gz");
	unlink(path_of("fa.nii.gz"));
	files->close(files);
	fx_array_unref(a);
}

static void texts(void)
{
	const fx_sink_options o = {.format = FX_FORMAT_TEXT, .name = "list.csv"};
	char *line = malloc(100001), *back = malloc(300000);
	fxi_files *files = open_files();
	fx_error err = {0};
	size_t n;
	fxi_product *p;
	FILE *f;

	memset(line, 'x', 100000);
	line[100000] = 0;
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add_text(p, "a,b\n", &err), FX_OK);
	CU_ASSERT_EQUAL(p->add_text(p, line, &err), FX_OK);        /* longer than what is held back */
	for (int i = 0; i < 20000; i++)
		CU_ASSERT_EQUAL(p->add_text(p, "1234\n", &err), FX_OK);
	CU_ASSERT_EQUAL(access(path_of("list.csv"), F_OK), -1);
	CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
	f = fopen(path_of("list.csv"), "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	n = fread(back, 1, 300000, f);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(n, 4 + 100000 + 100000);
	CU_ASSERT(memcmp(back, "a,b\nxxx", 7) == 0 && memcmp(back + n - 10, "1234\n1234\n", 10) == 0);
	unlink(path_of("list.csv"));
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add_text(p, "a", &err), FX_OK);
	p->abandon(p);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &o, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(warned, "list.csv: not written"));
	CU_ASSERT_EQUAL(n_entries(), 0);
	files->close(files);
	free(line);
	free(back);
}

static CU_TestInfo tests[] = {
	{"every type, in its place", every_type_in_its_place},
	{"tensors, vectors, series", shapes},
	{"sheared, large, orientation unknown", shear_large_unknown},
	{"what does not fit is refused", refused},
	{"one volume, whole or absent", one_volume_whole_or_absent},
	{"texts", texts},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_volume_products = {"volume_products", make_folder, remove_folder, NULL, NULL, tests};

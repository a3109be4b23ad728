/* SPDX-License-Identifier: MIT */
/* Products of a run: whole or absent, whatever the disk does; MRD images read back; slices of a picture in place. */
#include <CUnit/CUnit.h>
#include <cairo.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/files.h"
#include "io/mrd_hdf5_write.h"
#include "io/nifti_read.h"

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

/* Entries of the folder, hidden ones too. */
static int n_entries(void)
{
	DIR *d = opendir(folder);
	int n = -2;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void remove_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	CU_ASSERT_EQUAL(unlink(path), 0);
}

static fx_msg *image(int64_t nx, int64_t ny, int64_t nz, int type, int series)
{
	fx_msg *m = fx_msg_new(FX_IMAGE);
	fx_image *im = fx_msg_image(m);

	im->head.matrix_size[0] = (uint16_t)nx;
	im->head.matrix_size[1] = (uint16_t)ny;
	im->head.matrix_size[2] = (uint16_t)nz;
	im->head.channels = 1;
	im->head.image_series_index = (uint16_t)series;
	im->head.read_dir[0] = im->head.phase_dir[1] = im->head.slice_dir[2] = 1;
	for (int i = 0; i < 3; i++)
		im->head.field_of_view[i] = 100;
	CU_ASSERT_EQUAL_FATAL(fx_array_new4(type, nx, ny, nz, 1, &im->data), FX_OK);
	return m;
}

static const struct {
	int format;
	const char *name;
} formats[] = {{FX_FORMAT_MRD, "images.h5"}, {FX_FORMAT_NIFTI, "image.nii.gz"}, {FX_FORMAT_PNG, "preview.png"}};

static int open_product(fxi_files *files, int i, fx_error *err, fxi_product **out)
{
	const fx_sink_options o = {.format = formats[i].format, .name = formats[i].name, .window_high = 100};

	return files->open(files, &o, err, out);
}

static char warned[2048];

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

static void whole_or_absent(void)
{
	fxi_files *files = open_files();
	const char *const *names;
	int64_t n;

	for (int i = 0; i < 3; i++) {
		fx_error err = {0};
		fxi_product *p;
		fx_msg *m = image(4, 4, 2, FX_CF32, 0);

		CU_ASSERT_EQUAL_FATAL(open_product(files, i, &err, &p), FX_OK);
		CU_ASSERT_EQUAL(p->add(p, fx_msg_image(m), &err), FX_OK);
		p->abandon(p);
		CU_ASSERT_EQUAL(n_entries(), 0);
		for (int twice = 0; twice < 2; twice++) {   /* the second replaces the first */
			CU_ASSERT_EQUAL_FATAL(open_product(files, i, &err, &p), FX_OK);
			CU_ASSERT_EQUAL(p->add(p, fx_msg_image(m), &err), FX_OK);
			CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
			CU_ASSERT_EQUAL(n_entries(), 1);
		}
		names = fxi_files_names(files, &n);
		CU_ASSERT_EQUAL_FATAL(n, i + 1);
		CU_ASSERT_STRING_EQUAL(names[i], formats[i].name);
		remove_file(formats[i].name);
		fx_drop(m);
	}
	files->close(files);
}

static void nothing_came(void)
{
	fxi_files *files = open_files();

	for (int i = 0; i < 3; i++) {
		fx_error err = {0};
		fxi_product *p;

		CU_ASSERT_EQUAL_FATAL(open_product(files, i, &err, &p), FX_OK);
		CU_ASSERT_EQUAL(p->commit(p, &err), FX_OK);
		CU_ASSERT_PTR_NOT_NULL(strstr(warned, formats[i].name));
	}
	CU_ASSERT_EQUAL(n_entries(), 0);
	files->close(files);
}

/* Writes a product that is larger than the limit; the child's exit status says what happened. */
static int try_limited(int i)
{
	const struct rlimit limit = {40000, 40000};
	fxi_files *files = open_files();
	fx_error err = {0};
	fxi_product *p;
	fx_msg *m = image(100, 100, 3, FX_CF32, 0);
	uint32_t seed = 1;
	int status;

	/* Noise, which does not compress. */
	for (int64_t j = 0; j < 2 * fx_msg_image(m)->data->n; j++) {
		seed = seed * 1664525u + 1013904223u;
		((float *)fx_msg_image(m)->data->data)[j] = (float)(seed >> 8);
	}
	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 10;
	status = open_product(files, i, &err, &p);
	if (status == FX_OK) {
		status = p->add(p, fx_msg_image(m), &err);
		if (status == FX_OK)
			status = p->commit(p, &err);
		else
			p->abandon(p);
	}
	fx_drop(m);
	files->close(files);
	if (status != FX_EIO)
		return 11;
	if (!strstr(err.text, formats[i].name) || !strstr(err.text, strerror(EFBIG))) {
		printf("\n    %s\n", err.text);
		return 12;
	}
	return n_entries() == 0 ? 0 : 13;
}

/* RLIMIT_FSIZE fails writes as a full disk does, and needs no file system of its own. */
static void full_disk(void)
{
	for (int i = 0; i < 3; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			signal(SIGXFSZ, SIG_IGN);
			alarm(20);   /* a close that never ends is a failure too */
			exit(try_limited(i));
		}
		CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
		CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			printf("\n    %s: status %x\n", formats[i].name, (unsigned)status);
		CU_ASSERT_EQUAL(n_entries(), 0);
	}
}

/* The raw writer too, whose blocks fail at different moments. */
static int try_raw(void)
{
	const struct rlimit limit = {30000, 30000};
	char path[128];
	fx_error err = {0};
	fxi_raw_writer *w;
	fx_msg *m = fx_msg_new(FX_ACQUISITION);
	fx_acquisition *a = fx_msg_acquisition(m);
	int status = FX_OK;

	a->head.number_of_samples = 100;
	a->head.active_channels = 4;
	if (fx_array_new2(FX_CF32, 100, 4, &a->data) != FX_OK || setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 10;
	snprintf(path, sizeof path, "%s/raw.h5", folder);
	if (fxi_raw_writer_open(path, "<h/>", &err, &w) != FX_OK)
		return 11;
	for (int i = 0; i < 300 && status == FX_OK; i++)
		status = fxi_raw_writer_add(w, a, &err);
	if (status == FX_OK)
		status = fxi_raw_writer_commit(w, &err);
	else
		fxi_raw_writer_abandon(w);
	fx_drop(m);
	if (status != FX_EIO || !strstr(err.text, "raw.h5") || !strstr(err.text, strerror(EFBIG)))
		return 12;
	return n_entries() == 0 ? 0 : 13;
}

static void full_disk_raw(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN);
		alarm(20);
		exit(try_raw());
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CU_ASSERT_EQUAL(n_entries(), 0);
}

static void bad_names_and_folders(void)
{
	static const char *const names[] = {"", "a/b.nii.gz", "../x.nii", ".hidden.nii", "image.txt"};
	fx_sink_options o = {.format = FX_FORMAT_NIFTI, .name = NULL, .complex_values = false, .window_low = 0, .window_high = 100};
	fxi_files *files = open_files(), *none = (fxi_files *)1;
	fx_error err = {0};
	fxi_product *p;
	char path[128];

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		o.name = names[i];
		CU_ASSERT_EQUAL(files->open(files, &o, NULL, &p), FX_EINVAL);
	}
	o = (fx_sink_options){.format = FX_FORMAT_PNG, .name = "x.png", .complex_values = false, .window_low = 60, .window_high = 40};
	CU_ASSERT_EQUAL(files->open(files, &o, NULL, &p), FX_EINVAL);
	files->close(files);
	snprintf(path, sizeof path, "%s/file", folder);
	fclose(fopen(path, "w"));
	snprintf(path, sizeof path, "%s/file/inside", folder);
	CU_ASSERT_EQUAL(fxi_files_folder(path, &err, &none), FX_EIO);
	CU_ASSERT_PTR_NULL(none);
	CU_ASSERT(strstr(err.text, path) && strstr(err.text, "Not a directory"));
	remove_file("file");
}

/* A folder that vanishes, or is read-only (which root does not notice), between opening and committing. */
static void vanished_folder(void)
{
	fxi_files *files = open_files();

	for (int i = 0; i < 3; i++) {
		fx_error err = {0};
		fxi_product *p;
		fx_msg *m = image(4, 4, 1, FX_F32, 0);

		CU_ASSERT_EQUAL_FATAL(rmdir(folder), 0);
		if (open_product(files, i, &err, &p) == FX_OK) {
			CU_ASSERT_EQUAL(p->add(p, fx_msg_image(m), &err), FX_OK);
			CU_ASSERT_EQUAL(p->commit(p, &err), FX_EIO);
		}
		CU_ASSERT(strstr(err.text, formats[i].name) && strstr(err.text, "No such file"));
		CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0700), 0);
		fx_drop(m);
	}
	files->close(files);
}

static void images_read_back(void)
{
	static const int types[] = {FX_U16, FX_I16, FX_U32, FX_I32, FX_F32, FX_F64, FX_CF32, FX_CF64};
	fxi_files *files = open_files();
	fx_error err = {0};
	fxi_product *p;
	fxi_images back;
	char path[128];

	CU_ASSERT_EQUAL_FATAL(open_product(files, 0, &err, &p), FX_OK);
	for (int i = 0; i < 24; i++) {
		/* Eight types; the third round has another shape, and so goes to series of its own. */
		fx_msg *m = image(3, i < 16 ? 2 : 4, 2, types[i % 8], 5 + i % 8);

		memset(fx_msg_image(m)->data->data, i + 1, (size_t)fx_msg_image(m)->data->bytes);
		fx_msg_image(m)->head.repetition = (uint16_t)i;
		CU_ASSERT_EQUAL(fx_image_set_meta(fx_msg_image(m), "two words", "x < y"), FX_OK);
		CU_ASSERT_EQUAL_FATAL(p->add(p, fx_msg_image(m), &err), FX_OK);
		fx_drop(m);
	}
	CU_ASSERT_EQUAL_FATAL(p->commit(p, &err), FX_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(warned, "image_5_2"));
	files->close(files);
	snprintf(path, sizeof path, "%s/images.h5", folder);
	CU_ASSERT_EQUAL_FATAL(fxi_mrd_images_read(path, NULL, &err, &back), FX_OK);
	CU_ASSERT_EQUAL(back.n, 24);
	for (int64_t i = 0; i < back.n; i++) {
		const fx_image *im = fx_msg_image(back.list[i]);
		int number = im->head.repetition;

		CU_ASSERT_EQUAL(im->head.image_series_index, 5 + i / 3);
		CU_ASSERT_EQUAL(number, i / 3 + 8 * (i % 3));
		CU_ASSERT_EQUAL(im->data->type, types[number % 8]);
		CU_ASSERT_EQUAL(im->data->dims[1], number < 16 ? 2 : 4);
		CU_ASSERT_EQUAL(((unsigned char *)im->data->data)[im->data->bytes - 1], number + 1);
		CU_ASSERT_STRING_EQUAL(fx_image_get_meta(im, "two words"), "x < y");
	}
	fxi_images_free(&back);
	CU_ASSERT_EQUAL(fxi_mrd_images_read(path, "nowhere", &err, &back), FX_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'dataset'"));
	remove_file("images.h5");
}

static uint32_t pixel(cairo_surface_t *s, int x, int y)
{
	const unsigned char *line = cairo_image_surface_get_data(s) + y * cairo_image_surface_get_stride(s);

	return ((const uint32_t *)(const void *)line)[x] & 0xff;
}

/*
 * A sagittal slice whose readout runs from the foot up and whose phase runs from the front back: the picture has the head
 * up and the front on the left, so its columns are phase and its rows the readout, reversed.
 */
static void picture_is_turned(void)
{
	fxi_files *files = open_files();
	fx_error err = {0};
	fxi_product *p;
	fx_msg *m = image(2, 3, 1, FX_F32, 0);
	fx_image *im = fx_msg_image(m);
	char path[128];
	cairo_surface_t *s;
	int w, h;

	for (int i = 0; i < 3; i++) {
		im->head.read_dir[i] = i == 2;    /* S */
		im->head.phase_dir[i] = i == 1;   /* P */
		im->head.slice_dir[i] = i == 0;
	}
	im->head.field_of_view[0] = 80;   /* voxels of 40 x 20 mm */
	im->head.field_of_view[1] = 60;
	for (int i = 0; i < 6; i++)
		FX_F32_OF(im->data)[i] = (float)i;   /* x + 2 y */
	CU_ASSERT_EQUAL_FATAL(open_product(files, 2, &err, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add(p, im, &err), FX_OK);
	CU_ASSERT_EQUAL_FATAL(p->commit(p, &err), FX_OK);
	files->close(files);
	fx_drop(m);
	snprintf(path, sizeof path, "%s/preview.png", folder);
	s = cairo_image_surface_create_from_png(path);
	CU_ASSERT_EQUAL_FATAL(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
	w = cairo_image_surface_get_width(s);
	h = cairo_image_surface_get_height(s);
	CU_ASSERT_EQUAL(3 * h, 4 * w);   /* 60 mm wide, 80 mm high */
	for (int column = 0; column < 3; column++)
		for (int row = 0; row < 2; row++) {
			int value = 1 - row + 2 * column;

			CU_ASSERT_EQUAL(pixel(s, w * (2 * column + 1) / 6, h * (2 * row + 1) / 4), (uint32_t)(255 * value / 5));
		}
	cairo_surface_destroy(s);
	remove_file("preview.png");
}

static CU_TestInfo tests[] = {
	{"products are whole or absent", whole_or_absent},
	{"no image, no product", nothing_came},
	{"a full disk leaves nothing", full_disk},
	{"a full disk leaves no raw file", full_disk_raw},
	{"bad names and folders", bad_names_and_folders},
	{"a folder that vanishes", vanished_folder},
	{"MRD images read back", images_read_back},
	{"a picture is turned and keeps its shape", picture_is_turned},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_products = {"products", make_folder, remove_folder, NULL, NULL, tests};

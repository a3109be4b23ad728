/* SPDX-License-Identifier: MIT */
/* NIfTI files as inputs of a run: series with their gradients, tensor images, and what is refused in which words. */
#include <CUnit/CUnit.h>
#include <fornix/diffusion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"
#include "io/input.h"
#include "io/nifti_source.h"
#include "xml/mrd_header.h"

static char folder[32], paths[8][64];

static int make_folder(void)
{
	strcpy(folder, "/tmp/fornix-test-XXXXXX");
	return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void)
{
	return rmdir(folder);
}

static const char *path_of(const char *name)
{
	static int next;

	next = (next + 1) % 8;
	snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
	return paths[next];
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static const fx_lattice sheared = {{3, 2, 2}, {{2, 0.5, 0, -7}, {0, 2, 0.25, 8}, {0, 0, 3, 9.5}}, true};

/* n volumes of 3 x 2 x 2 (n 0: no fourth dimension) as a product, whose writer has tests of its own. */
static void write_image(const char *name, const fx_lattice *l, int64_t n, bool symmetric)
{
	fxi_files *files;
	fxi_product *p;
	fx_array *a;

	CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, n ? 4 : 3, (int64_t[]){3, 2, 2, n}, &a), FX_OK);
	for (int64_t i = 0; i < a->n; i++)
		FX_F32_OF(a)[i] = (float)(i / 12 == 0 || i / 12 == 3 || i / 12 == 5 ? 1e-3 : 1e-5) * (float)(1 + i % 12);
	CU_ASSERT_EQUAL_FATAL(fxi_files_folder(folder, NULL, &files), FX_OK);
	CU_ASSERT_EQUAL_FATAL(files->open(files, &(fx_sink_options){.format = FX_FORMAT_VOLUME, .name = name}, NULL, &p), FX_OK);
	CU_ASSERT_EQUAL(p->add_volume(p, &(fx_volume){.lattice = l, .data = a, .symmetric = symmetric}, NULL), FX_OK);
	CU_ASSERT_EQUAL(p->commit(p, NULL), FX_OK);
	files->close(files);
	fx_array_unref(a);
}

static fxi_source *opened(const char *name, const fxi_nifti_options *o)
{
	fx_error err = {0};
	fxi_source *s;
	int status = fxi_nifti_source_open(path_of(name), o, &err, &s);

	if (status != FX_OK)
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(status, FX_OK);
	return s;
}

static void series_item_by_item(void)
{
	fxi_source *s;
	fx_header *header;
	fx_msg *m;

	write_image("dwi.nii.gz", &sheared, 4, false);
	write_text("b.txt", "0 1000 1000\t1000 \n");
	write_text("v.txt", "nan 1 0 0\nnan 0 2 0\nnan 0 0 -1\n");
	CU_ASSERT_TRUE(fxi_input_is_nifti(path_of("dwi.nii.gz")));
	CU_ASSERT_FALSE(fxi_input_is_nifti(path_of("b.txt")));
	CU_ASSERT_FALSE(fxi_input_is_nifti(folder));
	s = opened("dwi.nii.gz", &(fxi_nifti_options){.bval = path_of("b.txt"), .bvec = path_of("v.txt")});
	CU_ASSERT_EQUAL(s->kinds, FX_SERIES);
	CU_ASSERT(s->digest && strncmp(s->digest, "sha256:", 7) == 0);
	CU_ASSERT(s->note && strstr(s->note, "1 of the vectors were not of unit length"));
	CU_ASSERT_PTR_NULL(s->warning);
	CU_ASSERT_EQUAL_FATAL(fxi_header_parse(s->header_xml, strlen(s->header_xml), NULL, &header), FX_OK);
	CU_ASSERT_EQUAL(header->encodings[0].encoded.matrix[0], 3);
	CU_ASSERT_DOUBLE_EQUAL(header->encodings[0].recon.fov_mm[0], 6, 1e-12);
	fx_header_free(header);
	for (int64_t v = 0; v < 4; v++) {
		const fx_series *item;

		CU_ASSERT_EQUAL(s->progress(s), (double)v / 5);
		CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
		item = fx_msg_series(m);
		CU_ASSERT(!item->end && item->volume == v && item->data->type == FX_F32 && item->data->n_dims == 3);
		CU_ASSERT_EQUAL(FX_F32_OF(item->data)[11], (v == 0 || v == 3 ? 1e-3f : 1e-5f) * 12);
		CU_ASSERT_EQUAL(memcmp(item->info->lattice.affine, sheared.affine, sizeof sheared.affine), 0);
		CU_ASSERT_EQUAL(item->info->gradients[v].b, v == 0 ? 0 : 1000);
		CU_ASSERT_STRING_EQUAL(item->info->origin, "b.txt and v.txt");
		fx_drop(m);
	}
	CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
	CU_ASSERT(fx_msg_series(m)->end && fx_msg_series(m)->volume == -1 && !fx_msg_series(m)->data);
	/* the third axis of the grid is y 0.25, z 3 away from being orthogonal to the second: unit all the same */
	CU_ASSERT_DOUBLE_EQUAL(fabs(fx_msg_series(m)->info->gradients[3].dir[2]), 1, 0.02);
	fx_drop(m);
	CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
	CU_ASSERT_PTR_NULL(m);
	s->close(s);
	unlink(path_of("dwi.nii.gz"));
	unlink(path_of("b.txt"));
	unlink(path_of("v.txt"));
}

static void other_tables(void)
{
	fxi_source *s;
	fx_lattice unknown = sheared;
	fx_msg *m;

	unknown.has_affine = false;
	write_image("dwi.nii", &unknown, 4, false);
	write_text("dwi.bval", "0\n1000\n1000\n1000\n");
	write_text("dwi.bvec", "0 0 0\n0 1 0\n0 0 1\n1 0 0\n");
	write_text("grad.b", "# x y z b\n0 0 0 0\n0 1 0 700\n0 0 1 700\n1 0 0 700\n");
	s = opened("dwi.nii", &(fxi_nifti_options){0});
	CU_ASSERT(s->note && strstr(s->note, "dwi.bval and dwi.bvec, found beside the image"));
	CU_ASSERT(s->warning && strstr(s->warning, "has no orientation"));
	CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
	/* FSL turns x round where the affine does not mirror; diag(pixdim) does not */
	CU_ASSERT_DOUBLE_EQUAL(fx_msg_series(m)->info->gradients[3].dir[0], -1, 1e-12);
	CU_ASSERT_FALSE(fx_msg_series(m)->info->lattice.has_affine);
	fx_drop(m);
	s->close(s);
	s = opened("dwi.nii", &(fxi_nifti_options){.grad = path_of("grad.b")});
	CU_ASSERT_PTR_NULL(s->note);
	CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
	CU_ASSERT_EQUAL(fx_msg_series(m)->info->gradients[3].b, 700);
	CU_ASSERT_DOUBLE_EQUAL(fx_msg_series(m)->info->gradients[3].dir[0], 1, 1e-12);
	fx_drop(m);
	s->close(s);
	unlink(path_of("dwi.nii"));
	unlink(path_of("dwi.bval"));
	unlink(path_of("dwi.bvec"));
	unlink(path_of("grad.b"));
}

static void tensor_images(void)
{
	static const fxi_nifti_options options[] = {{0}, {.tensor_order = "nifti", .tensor_unit = "mm2/s"}};
	static const char *const names[] = {"five.nii", "four.nii"};
	fxi_source *s;
	fx_msg *m;

	write_image("five.nii", &sheared, 6, true);
	write_image("four.nii", &sheared, 6, false);
	for (int i = 0; i < 2; i++) {
		s = opened(names[i], &options[i]);
		CU_ASSERT_EQUAL(s->kinds, FX_TENSORS);
		CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
		/* component 0 of the second voxel: 2e-3 mm^2/s; the third is yy, which is small */
		CU_ASSERT_DOUBLE_EQUAL((double)FX_F32_OF(fx_msg_tensors(m)->d)[6], 2, 1e-6);
		CU_ASSERT_EQUAL(memcmp(fx_msg_tensors(m)->lattice.affine, sheared.affine, sizeof sheared.affine), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(fx_msg_tensors(m)->origin, "as nifti tensors in ras axes"));
		fx_drop(m);
		CU_ASSERT_EQUAL_FATAL(s->next(s, &m, NULL), FX_OK);
		CU_ASSERT_PTR_NULL(m);
		s->close(s);
		unlink(path_of(names[i]));
	}
}

static void refused(const char *name, const fxi_nifti_options *o, int status, const char *says, const char *and_says)
{
	fx_error err = {0};
	fxi_source *s = (fxi_source *)1;
	int got = fxi_nifti_source_open(path_of(name), o, &err, &s);

	CU_ASSERT_EQUAL(got, status);
	CU_ASSERT_PTR_NULL(s);
	CU_ASSERT(strstr(err.text, says) && strstr(err.text, and_says));
	if (got != status || !strstr(err.text, says) || !strstr(err.text, and_says))
		fprintf(stderr, "%d: '%s' lacks '%s' or '%s'\n", got, err.text, says, and_says);
}

static void what_is_refused(void)
{
	const fxi_nifti_options none = {0};

	write_image("dwi.nii", &sheared, 4, false);
	write_image("six.nii", &sheared, 6, false);
	write_image("flat.nii", &sheared, 0, false);
	write_image("five.nii", &sheared, 6, true);
	write_text("b3", "0 1 1\n");
	write_text("b4", "0 1000 1000 1000\n");
	write_text("bad", "0 1000 minus 1000\n");
	write_text("v5", "1 1 1 1 1\n0 0 0 0 0\n0 0 0 0 0\n");
	write_text("v4", "0 1 0 0\n0 0 1 0\n0 0 0 0\n");
	write_text("v2", "0 1 0 0\n0 0 1 0\n");
	refused("dwi.nii", &none, FX_EINVAL, "has 4 volumes and no gradient table", "--bval and --bvec");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("b4")}, FX_EINVAL, "b4 but no --bvec", "--grad");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("b3"), .bvec = path_of("v4")}, FX_EDATA, "b3 has 3 b-values",
		"dwi.nii has 4 volumes");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("b4"), .bvec = path_of("v5")}, FX_EDATA, "v5 has 5 b-vectors",
		"dwi.nii has 4 volumes");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("b4"), .bvec = path_of("v2")}, FX_EDATA, "v2 has 2 rows of 4", "three rows");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("b4"), .bvec = path_of("v4")}, FX_EDATA, "b4 and", "volume 4");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("bad"), .bvec = path_of("v4")}, FX_EDATA, "bad, line 1", "minus");
	refused("dwi.nii", &(fxi_nifti_options){.bval = path_of("nowhere"), .bvec = path_of("v4")}, FX_EIO, "nowhere", "No such file");
	refused("dwi.nii", &(fxi_nifti_options){.grad = path_of("b3")}, FX_EDATA, "x, y, z and b", "b3");
	refused("dwi.nii", &(fxi_nifti_options){.grad = path_of("v4"), .bval = path_of("b4")}, FX_EINVAL, "give one", "--grad");
	refused("dwi.nii", &(fxi_nifti_options){.tensor_order = "fsl"}, FX_EDATA, "4 volumes instead of 6", "--tensor-order");
	refused("dwi.nii", &(fxi_nifti_options){.tensor_order = "mrtix"}, FX_EINVAL, "did you mean 'mrtrix'", "mrtix");
	refused("dwi.nii", &(fxi_nifti_options){.tensor_unit = "furlong"}, FX_EINVAL, "auto, um2/ms or mm2/s", "furlong");
	refused("six.nii", &none, FX_EINVAL, "six volumes", "--tensor-order");
	refused("six.nii", &(fxi_nifti_options){.tensor_order = "fsl", .bval = "x", .bvec = "y"}, FX_EINVAL, "no gradient table", "six.nii");
	refused("six.nii", &(fxi_nifti_options){.tensor_frame = "ras"}, FX_EINVAL, "six volumes", "--tensor-order");
	refused("flat.nii", &none, FX_EDATA, "one volume of 3 x 2 x 2", "gradient");
	refused("five.nii", &(fxi_nifti_options){.bval = path_of("b4"), .bvec = path_of("v4")}, FX_EINVAL, "tensor image", "five.nii");
	for (size_t i = 0; i < 10; i++)
		unlink(path_of((const char *const[]){"dwi.nii", "six.nii", "flat.nii", "five.nii", "b3", "b4", "bad", "v5", "v4", "v2"}[i]));
}

static void cut_short(void)
{
	fxi_source *s;
	fx_error err = {0};
	fx_msg *m = NULL;
	FILE *f;
	long size;

	write_image("dwi.nii.gz", &sheared, 4, false);
	write_text("dwi.bval", "0 1000 1000 1000\n");
	write_text("dwi.bvec", "0 1 0 0\n0 0 1 0\n0 0 0 1\n");
	f = fopen(path_of("dwi.nii.gz"), "r");
	CU_ASSERT_EQUAL(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	fclose(f);
	CU_ASSERT_EQUAL(truncate(path_of("dwi.nii.gz"), size - 6), 0);   /* voxels are there, the checksum is not whole */
	s = opened("dwi.nii.gz", &(fxi_nifti_options){0});
	for (int v = 0; v < 3; v++) {
		CU_ASSERT_EQUAL_FATAL(s->next(s, &m, &err), FX_OK);
		fx_drop(m);
	}
	CU_ASSERT_EQUAL(s->next(s, &m, &err), FX_EDATA);
	CU_ASSERT(strstr(err.text, "dwi.nii.gz") && strstr(err.text, "cut short") && !s->cut_short);
	s->close(s);
	unlink(path_of("dwi.nii.gz"));
	unlink(path_of("dwi.bval"));
	unlink(path_of("dwi.bvec"));
}

static CU_TestInfo tests[] = {
	{"a series, item by item", series_item_by_item},
	{"tables beside the image, in columns, of MRtrix", other_tables},
	{"tensor images", tensor_images},
	{"what is refused", what_is_refused},
	{"a file that was cut short", cut_short},
	CU_TEST_INFO_NULL,
};

CU_SuiteInfo suite_nifti_source = {"nifti_source", make_folder, remove_folder, NULL, NULL, tests};

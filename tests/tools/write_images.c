/* SPDX-License-Identifier: MIT */
/*
 * write_images FOLDER - writes images of known content and geometry through the products, for tests in other languages.
 *
 * Voxel (x, y, z) of channel c and image i holds x + 100 y + 10000 z + 1e6 c + 1e7 i, so that a reader can tell
 * where each value came from.
 */
#include "io/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fx_error err;

static void stop(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, err.text);
	exit(1);
}

static void warn(void *arg, const char *text)
{
	(void)arg;
	printf("warning: %s\n", text);
}

/* Two rotations away from the axes; mirrored where `hand` is -1. */
static void orient(ISMRMRD_ImageHeader *h, double a, double b, int hand)
{
	double read[3] = {cos(a), sin(a), 0}, phase[3] = {-sin(a) * cos(b), cos(a) * cos(b), sin(b)};

	for (int i = 0; i < 3; i++) {
		int j = (i + 1) % 3, k = (i + 2) % 3;

		h->read_dir[i] = (float)read[i];
		h->phase_dir[i] = (float)phase[i];
		h->slice_dir[i] = (float)(hand * (read[j] * phase[k] - read[k] * phase[j]));
	}
}

static fx_msg *image(int type, const int64_t dims[4], int number)
{
	fx_msg *m = fx_msg_new(FX_IMAGE);
	fx_image *im = fx_msg_image(m);
	int64_t at = 0;

	if (fx_array_new(type, 4, dims, &im->data) != FX_OK)
		stop("memory");
	im->head.version = 1;
	for (int i = 0; i < 3; i++)
		im->head.matrix_size[i] = (uint16_t)dims[i];
	im->head.channels = (uint16_t)dims[3];
	for (int64_t c = 0; c < dims[3]; c++)
		for (int64_t z = 0; z < dims[2]; z++)
			for (int64_t y = 0; y < dims[1]; y++)
				for (int64_t x = 0; x < dims[0]; x++, at++) {
					double v = (double)(x + 100 * y + 10000 * z + 1000000 * c) + 1e7 * number;

					if (type == FX_CF32)   /* magnitude v, phase of 3-4-5 */
						((float *)im->data->data)[2 * at] = (float)(0.6 * v),
						((float *)im->data->data)[2 * at + 1] = (float)(-0.8 * v);
					else if (type == FX_F32)
						((float *)im->data->data)[at] = (float)v;
					else
						((int16_t *)im->data->data)[at] = (int16_t)fmod(v, 30000);
				}
	return m;
}

static fxi_product *product(fxi_files *files, int format, const char *name, bool complex_values)
{
	fx_sink_options o = {.format = format, .name = name, .complex_values = complex_values, .window_low = 1, .window_high = 99};
	fxi_product *p;

	if (files->open(files, &o, &err, &p) != FX_OK)
		stop(name);
	return p;
}

static void add(fxi_product *const *p, int n, fx_msg *m)
{
	for (int i = 0; i < n; i++)
		if (p[i]->add(p[i], fx_msg_image(m), &err) != FX_OK)
			stop("add");
	fx_drop(m);
}

static void commit(fxi_product *const *p, int n)
{
	for (int i = 0; i < n; i++)
		if (p[i]->commit(p[i], &err) != FX_OK)
			stop("commit");
}

static void place(ISMRMRD_ImageHeader *h, float x, float y, float z, float fx, float fy, float fz)
{
	const float position[3] = {x, y, z}, fov[3] = {fx, fy, fz};

	memcpy(h->position, position, sizeof position);
	memcpy(h->field_of_view, fov, sizeof fov);
}

/* Oblique, odd and even, right- and left-handed volumes, complex and real, with meta data. */
static void volumes(fxi_files *files)
{
	static const int64_t dims[3][4] = {{5, 4, 3, 1}, {4, 7, 2, 3}, {3, 5, 5, 1}};

	for (int i = 0; i < 3; i++) {
		char name[3][32];
		fxi_product *p[3];

		snprintf(name[0], sizeof name[0], "volume_%d.nii.gz", i);
		snprintf(name[1], sizeof name[1], "volume_%d_complex.nii", i);
		snprintf(name[2], sizeof name[2], "volume_%d.h5", i);
		p[0] = product(files, FX_FORMAT_NIFTI, name[0], false);
		p[1] = product(files, FX_FORMAT_NIFTI, name[1], true);
		p[2] = product(files, FX_FORMAT_MRD, name[2], false);
		for (int v = 0; v < 2; v++) {
			fx_msg *m = image(i == 2 ? FX_I16 : FX_CF32, dims[i], v);
			ISMRMRD_ImageHeader *h = &fx_msg_image(m)->head;

			orient(h, 0.3 + i, 2.0 * i - 0.7, i == 1 ? -1 : 1);
			place(h, 10.5f, -20.25f, 30.125f, 50, 44, 36);
			h->repetition = (uint16_t)(1 - v);   /* arrives in reverse */
			h->image_series_index = 7;
			h->image_index = (uint16_t)v;
			if (fx_image_set_meta(fx_msg_image(m), "name", "a < b & \"c\"") != FX_OK)
				stop("meta");
			add(p, 3, m);
		}
		commit(p, 3);
	}
}

/* Slices in the order of excitation (odd ones first), 7.5 mm apart though 3 mm thick, along an oblique normal. */
static void slices(fxi_files *files)
{
	static const int order[5] = {1, 3, 0, 2, 4};
	static const int64_t dims[4] = {6, 5, 1, 1};
	fxi_product *p[3] = {product(files, FX_FORMAT_NIFTI, "slices.nii.gz", false),
		product(files, FX_FORMAT_MRD, "slices.h5", false), product(files, FX_FORMAT_PNG, "slices.png", false)};

	for (int i = 0; i < 5; i++) {
		fx_msg *m = image(FX_CF32, dims, order[i]);
		ISMRMRD_ImageHeader *h = &fx_msg_image(m)->head;
		float s = 7.5f * (float)order[i];

		orient(h, 0.4, 0.9, 1);
		place(h, 1 + s * h->slice_dir[0], 2 + s * h->slice_dir[1], 3 + s * h->slice_dir[2], 60, 100, 3);
		h->slice = (uint16_t)i;
		add(p, 3, m);
	}
	commit(p, 3);
}

/* Three orientations of one slice each, an unevenly spaced stack with a hole, images without geometry. */
static void odd_ones(fxi_files *files)
{
	static const int64_t dims[4] = {4, 3, 1, 1};
	fxi_product *p = product(files, FX_FORMAT_NIFTI, "localizer.nii.gz", false);

	for (int i = 0; i < 3; i++) {
		fx_msg *m = image(FX_F32, dims, i);
		ISMRMRD_ImageHeader *h = &fx_msg_image(m)->head;

		h->read_dir[i] = h->phase_dir[(i + 1) % 3] = h->slice_dir[(i + 2) % 3] = 1;
		place(h, 0, 0, 0, 40, 30, 5);
		add(&p, 1, m);
	}
	commit(&p, 1);

	p = product(files, FX_FORMAT_NIFTI, "uneven.nii.gz", false);
	for (int i = 0; i < 5; i++) {
		fx_msg *m = image(FX_F32, dims, i);
		ISMRMRD_ImageHeader *h = &fx_msg_image(m)->head;

		h->read_dir[0] = h->phase_dir[1] = h->slice_dir[2] = 1;
		place(h, 0, 0, (float)((i % 3) * (i % 3) * 10), 40, 30, 5);   /* 0, 10, 40; then 0, 10 again */
		h->contrast = i > 2;
		add(&p, 1, m);
	}
	commit(&p, 1);

	p = product(files, FX_FORMAT_NIFTI, "nowhere.nii.gz", false);
	for (int i = 0; i < 3; i++) {
		fx_msg *m = image(FX_F32, dims, i);

		fx_msg_image(m)->head.slice = (uint16_t)(2 - i);
		add(&p, 1, m);
	}
	commit(&p, 1);
}

/* Wider than NIfTI-1 can say. */
static void wide(fxi_files *files)
{
	static const int64_t dims[4] = {40000, 2, 1, 1};
	fxi_product *p = product(files, FX_FORMAT_NIFTI, "wide.nii.gz", false);
	fx_msg *m = image(FX_F32, dims, 0);
	ISMRMRD_ImageHeader *h = &fx_msg_image(m)->head;

	orient(h, 0.1, 0.2, 1);
	place(h, 1, 2, 3, 400, 2, 1);
	add(&p, 1, m);
	commit(&p, 1);
}

int main(int argc, char **argv)
{
	fxi_files *files;
	int64_t n;

	if (argc != 2) {
		fprintf(stderr, "usage: write_images FOLDER\n");
		return 2;
	}
	if (fxi_files_folder(argv[1], &err, &files) != FX_OK)
		stop(argv[1]);
	files->warn = warn;
	volumes(files);
	slices(files);
	odd_ones(files);
	wide(files);
	fxi_files_names(files, &n);
	for (int64_t i = 0; i < n; i++)
		printf("%s\n", fxi_files_names(files, &n)[i]);
	files->close(files);
	return 0;
}

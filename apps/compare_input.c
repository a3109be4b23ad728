/* SPDX-License-Identifier: MIT */
/* compare_input.c - see compare_input.h. */
#include "apps/compare_input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/nifti_read.h"

static int looks_like_hdf5(const char *path, fx_error *err, bool *yes)
{
	static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
	unsigned char head[8] = {0};
	FILE *f = fopen(path, "rb");

	if (!f)
		return fx_error_set(err, FX_EIO, "cannot open %s: %s", path, strerror(errno));
	*yes = fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, signature, sizeof head) == 0;
	fclose(f);
	return FX_OK;
}

/* One image of the file and what it is sorted by. */
struct entry {
	const fx_image *image;
	double along;  /* position along the slice direction, mm */
	int64_t order; /* in the file */
};

static bool same_volume(const ISMRMRD_ImageHeader *a, const ISMRMRD_ImageHeader *b)
{
	return a->image_series_index == b->image_series_index && a->repetition == b->repetition && a->phase == b->phase &&
		a->contrast == b->contrast && a->set == b->set && a->average == b->average;
}

static int by_position(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->along != b->along)
		return a->along < b->along ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static int check_same(const char *path, const fxi_images *images, fx_error *err)
{
	const fx_array *first = fx_msg_image(images->list[0])->data;

	for (int64_t i = 1; i < images->n; i++) {
		const fx_array *a = fx_msg_image(images->list[i])->data;

		if (!fx_array_same_shape(a, first))
			return fx_error_set(err, FX_EDATA, "%s: image %lld is %lld x %lld x %lld of type %s, the first %lld x %lld x %lld of "
				"type %s; compare files that hold images of one size", path, (long long)i, (long long)a->dims[0],
				(long long)a->dims[1], (long long)a->dims[2], fx_type_name(a->type), (long long)first->dims[0],
				(long long)first->dims[1], (long long)first->dims[2], fx_type_name(first->type));
	}
	return FX_OK;
}

/* Slices of one volume stand side by side, ordered by position; volumes keep the file's order. */
static int64_t arrange(const fxi_images *images, struct entry *entries)
{
	int64_t start = 0, longest = 0;

	for (int64_t i = 0; i < images->n; i++) {
		const fx_image *image = fx_msg_image(images->list[i]);
		const ISMRMRD_ImageHeader *h = &image->head;

		entries[i] = (struct entry){.image = image, .order = i};
		for (int d = 0; d < 3; d++)
			entries[i].along += (double)h->position[d] * (double)h->slice_dir[d];
	}
	for (int64_t i = 1; i <= images->n; i++) {
		if (i < images->n && entries[0].image->data->dims[2] == 1 &&
			same_volume(&entries[i].image->head, &entries[start].image->head))
			continue;
		qsort(entries + start, (size_t)(i - start), sizeof *entries, by_position);
		if (start > 0 && i - start != longest)
			return 0;
		longest = i - start;
		start = i;
	}
	return longest;
}

static int join(const char *path, const fxi_images *images, fx_error *err, fx_array **out)
{
	const fx_array *first = fx_msg_image(images->list[0])->data;
	struct entry *entries = fx_alloc(images->n, sizeof *entries);
	int64_t in_volume, dims[4];
	int status = FX_OK;

	if (!entries)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory for %lld images", path, (long long)images->n);
	in_volume = arrange(images, entries);
	if (in_volume == 0)
		status = fx_error_set(err, FX_EDATA, "%s: its volumes have different numbers of slices", path);
	if (status == FX_OK) {
		dims[0] = first->dims[0];
		dims[1] = first->dims[1];
		dims[2] = first->dims[2] * in_volume;
		dims[3] = first->dims[3] * (images->n / in_volume);
		status = fx_array_new(first->type, 4, dims, out);
		if (status != FX_OK)
			fx_error_set(err, status, "%s: no memory for %lld images", path, (long long)images->n);
	}
	/* {x, y, slice, channel and volume}: an image's channels lie in_volume slices apart */
	for (int64_t i = 0; status == FX_OK && i < images->n; i++)
		for (int64_t c = 0; c < first->dims[3]; c++) {
			size_t bytes = (size_t)(first->bytes / first->dims[3]);
			int64_t volume = i / in_volume * first->dims[3] + c;

			memcpy((char *)(*out)->data + (size_t)(volume * in_volume + i % in_volume) * bytes,
				(const char *)entries[i].image->data->data + (size_t)c * bytes, bytes);
		}
	fx_free(entries);
	return status;
}

static int read_mrd(const char *path, fx_error *err, fxi_compared *out)
{
	fxi_images images = {0};
	int status = fxi_mrd_images_read(path, NULL, err, &images);

	if (status == FX_OK && images.n == 0)
		status = fx_error_set(err, FX_EDATA, "%s holds no images", path);
	if (status == FX_OK)
		status = check_same(path, &images, err);
	if (status == FX_OK)
		status = join(path, &images, err, &out->data);
	fxi_images_free(&images);
	return status;
}

int fxi_compared_read(const char *path, fx_error *err, fxi_compared *out)
{
	fxi_nifti_info info;
	bool hdf5 = false;
	int status = looks_like_hdf5(path, err, &hdf5);

	memset(out, 0, sizeof *out);
	if (status != FX_OK)
		return status;
	if (hdf5)
		return read_mrd(path, err, out);
	status = fxi_nifti_read(path, err, &out->data, &info);
	if (status == FX_OK) {
		out->has_affine = info.has_affine;
		memcpy(out->affine, info.affine, sizeof out->affine);
	}
	return status;
}

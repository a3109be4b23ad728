/* SPDX-License-Identifier: MIT */
/* mrd_images_read.c - reconstructed images of an MRD HDF5 file: every series of a group, in order (nifti_read.h). */
#include "nifti_read.h"

#include "h5_find.h"
#include "meta.h"
#include "mrd_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
	const char *path;      /* of the file, for messages */
	char where[512];       /* "FILE:/GROUP/image_1" */
	hid_t group, data, header, type, head_type;
	int element;           /* enum fx_type */
	hsize_t dims[5];       /* image, channel, z, y, x */
};

static void close_series(struct series *s)
{
	fxi_h5_close(&s->group);
	fxi_h5_close(&s->data);
	fxi_h5_close(&s->header);
	fxi_h5_close(&s->type);
	fxi_h5_close(&s->head_type);
}

/* The fx_type that holds a file's numbers without loss, and the matching type in memory. */
static int element_of(hid_t type, hid_t *memory)
{
	size_t size = H5Tget_size(type);
	bool is_signed;
	hid_t part;

	switch (H5Tget_class(type)) {
	case H5T_INTEGER:
		is_signed = H5Tget_sign(type) == H5T_SGN_2;
		if (size <= 2) {
			*memory = H5Tcopy(is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16);
			return is_signed ? FX_I16 : FX_U16;
		}
		*memory = H5Tcopy(is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32);
		return size <= 4 ? (is_signed ? FX_I32 : FX_U32) : 0;
	case H5T_FLOAT:
		*memory = H5Tcopy(size <= 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE);
		return size <= 4 ? FX_F32 : FX_F64;
	case H5T_COMPOUND:
		if (H5Tget_nmembers(type) != 2 || H5Tget_member_index(type, "real") < 0 ||
		    H5Tget_member_index(type, "imag") < 0)
			return 0;
		part = H5Tget_member_type(type, 0);
		size = part >= 0 && H5Tget_class(part) == H5T_FLOAT ? H5Tget_size(part) : 0;
		fxi_h5_close(&part);
		*memory = fxi_h5_complex_type(size > 4);
		return size == 0 ? 0 : size <= 4 ? FX_CF32 : FX_CF64;
	default:
		return 0;
	}
}

static int check_dims(struct series *s, fx_error *err)
{
	hid_t space = H5Dget_space(s->data), heads = H5Dget_space(s->header);
	hsize_t n_heads = 0;
	int status = FX_OK;

	if (space < 0 || heads < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot open %s", s->where);
	else if (H5Sget_simple_extent_ndims(space) != 5 || H5Sget_simple_extent_dims(space, s->dims, NULL) < 0)
		status = fx_error_set(err, FX_EDATA, "%s/data has %d dimensions; MRD images have 5 (image, channel, z, y, x)",
			s->where, H5Sget_simple_extent_ndims(space));
	else if (H5Sget_simple_extent_ndims(heads) != 1 || H5Sget_simple_extent_dims(heads, &n_heads, NULL) < 0 ||
		 n_heads != s->dims[0])
		status = fx_error_set(err, FX_EDATA, "%s has %lld images but %lld headers", s->where, (long long)s->dims[0],
			(long long)n_heads);
	for (int i = 1; i < 5 && status == FX_OK; i++)
		if (s->dims[i] < 1 || s->dims[i] > UINT16_MAX)
			status = fx_error_set(err, FX_EDATA, "%s/data has %lld entries along axis %d; MRD allows 1 to 65535",
				s->where, (long long)s->dims[i], i);
	fxi_h5_close(&space);
	fxi_h5_close(&heads);
	return status;
}

static int open_series(struct series *s, hid_t parent, const char *name, fx_error *err)
{
	hid_t in_file = -1, heads = -1;
	char where[600];
	int status = FX_OK;

	s->group = H5Gopen2(parent, name, H5P_DEFAULT);
	if (s->group >= 0) {
		s->data = H5Dopen2(s->group, "data", H5P_DEFAULT);
		s->header = H5Dopen2(s->group, "header", H5P_DEFAULT);
	}
	if (s->data < 0 || s->header < 0 || (in_file = H5Dget_type(s->data)) < 0 || (heads = H5Dget_type(s->header)) < 0)
		status = fxi_h5_fail(err, FX_EDATA, "cannot open %s", s->where);
	if (status == FX_OK && (s->element = element_of(in_file, &s->type)) == 0)
		status = fx_error_set(err, FX_EDATA, "%s/data holds no numbers of a kind MRD has", s->where);
	if (status == FX_OK && (s->head_type = fxi_h5_image_head_type()) < 0)
		status = fxi_h5_fail(err, FX_ENOMEM, "cannot read %s", s->where);
	if (status == FX_OK) {
		snprintf(where, sizeof where, "%s/header", s->where);
		status = fxi_h5_check_members(heads, s->head_type, where, err);
	}
	fxi_h5_close(&in_file);
	fxi_h5_close(&heads);
	return status == FX_OK ? check_dims(s, err) : status;
}

/* Entry i of a dataset whose first axis counts images. */
static bool read_entry(hid_t dataset, hid_t type, hsize_t i, int rank, const hsize_t *dims, void *out)
{
	hsize_t start[5] = {i}, count[5] = {1};
	hid_t space = H5Dget_space(dataset), memory;
	bool ok;

	for (int d = 1; d < rank; d++)
		count[d] = dims[d];
	memory = H5Screate_simple(rank, count, NULL);
	ok = space >= 0 && memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
		H5Dread(dataset, type, memory, space, H5P_DEFAULT, out) >= 0;
	fxi_h5_close(&memory);
	fxi_h5_close(&space);
	return ok;
}

/* Meta data are an extra: files without them, or with fewer than images, are fine. */
static int read_meta(const struct series *s, hsize_t i, fx_image *image, fx_error *err)
{
	hid_t data, type = -1, space = -1, memory = -1;
	hsize_t n = 0;
	char *text = NULL;
	int status = FX_OK;

	if (!fxi_h5_has(s->group, "attributes"))
		return FX_OK;
	data = H5Dopen2(s->group, "attributes", H5P_DEFAULT);
	if (data >= 0 && (type = H5Dget_type(data)) >= 0 && (space = H5Dget_space(data)) >= 0 &&
	    H5Tis_variable_str(type) > 0 && H5Sget_simple_extent_ndims(space) == 1 &&
	    H5Sget_simple_extent_dims(space, &n, NULL) >= 0 && i < n &&
	    (memory = fxi_h5_text_type(H5Tget_cset(type))) >= 0) {
		if (!read_entry(data, memory, i, 1, &n, &text))
			status = fxi_h5_fail(err, FX_EDATA, "cannot read the meta data of image %lld of %s", (long long)i, s->where);
		else if (text)
			status = fxi_meta_parse(text, strlen(text), image, err);
		if (text)
			H5free_memory(text);
	}
	fxi_h5_close(&memory);
	fxi_h5_close(&space);
	fxi_h5_close(&type);
	fxi_h5_close(&data);
	return status;
}

static int read_image(const struct series *s, hsize_t i, fx_error *err, fx_msg **out)
{
	const int64_t dims[4] = {(int64_t)s->dims[4], (int64_t)s->dims[3], (int64_t)s->dims[2], (int64_t)s->dims[1]};
	fx_image *image;
	int status = FX_OK;

	*out = fx_msg_new(FX_IMAGE);
	image = *out ? fx_msg_image(*out) : NULL;
	if (!image || fx_array_new(s->element, 4, dims, &image->data) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "out of memory for image %lld of %s", (long long)i, s->where);
	else if (!read_entry(s->header, s->head_type, i, 1, NULL, &image->head) ||
		 !read_entry(s->data, s->type, i, 5, s->dims, image->data->data))
		status = fxi_h5_fail(err, FX_EDATA, "cannot read image %lld of %s: the file is damaged", (long long)i, s->where);
	if (status == FX_OK) {
		/* What the data are counts, not what the header says of them. */
		for (int d = 0; d < 3; d++)
			image->head.matrix_size[d] = (uint16_t)dims[d];
		image->head.channels = (uint16_t)dims[3];
		image->head.data_type = (uint16_t)fxi_mrd_from_type(s->element);
		status = read_meta(s, i, image, err);
	}
	if (status != FX_OK) {
		fx_drop(*out);
		*out = NULL;
	}
	return status;
}

static int check_memory(const struct series *s, fx_error *err)
{
	int64_t bytes = (int64_t)fx_type_size(s->element);

	for (int i = 0; i < 5; i++)
		if (!fx_mul_size(bytes, (int64_t)s->dims[i], &bytes))
			bytes = INT64_MAX;
	if (bytes > fx_memory_available_bytes())
		return fx_error_set(err, FX_ENOMEM, "%s needs %lld MiB of memory, %lld MiB are available", s->where,
			(long long)(bytes >> 20), (long long)(fx_memory_available_bytes() >> 20));
	return FX_OK;
}

static int read_series(struct series *s, fx_error *err, fxi_images *out)
{
	int status = check_memory(s, err);
	fx_msg **list;

	if (status != FX_OK || s->dims[0] == 0)
		return status;
	list = realloc(out->list, ((size_t)out->n + s->dims[0]) * sizeof *list);
	if (!list)
		return fx_error_set(err, FX_ENOMEM, "out of memory for the images of %s", s->where);
	out->list = list;
	for (hsize_t i = 0; i < s->dims[0] && status == FX_OK; i++) {
		status = read_image(s, i, err, &out->list[out->n]);
		out->n += status == FX_OK;
	}
	return status;
}

struct ordered {
	fx_msg *msg;
	int64_t place;
};

static int by_series(const void *pa, const void *pb)
{
	const struct ordered *a = pa, *b = pb;
	int first = fx_msg_image(a->msg)->head.image_series_index, second = fx_msg_image(b->msg)->head.image_series_index;

	return first != second ? first - second : (a->place > b->place) - (a->place < b->place);
}

/* HDF5 lists names by their letters: image_10 comes before image_2. */
static int sort_images(fxi_images *images, const char *path, fx_error *err)
{
	struct ordered *list = fx_alloc(images->n, sizeof *list);

	if (!list)
		return fx_error_set(err, FX_ENOMEM, "out of memory for the images of %s", path);
	for (int64_t i = 0; i < images->n; i++)
		list[i] = (struct ordered){images->list[i], i};
	qsort(list, (size_t)images->n, sizeof *list, by_series);
	for (int64_t i = 0; i < images->n; i++)
		images->list[i] = list[i].msg;
	fx_free(list);
	return FX_OK;
}

static int read_group(hid_t group, const char *path, const char *name, fx_error *err, fxi_images *out)
{
	H5G_info_t info;
	int status = FX_OK;

	if (H5Gget_info(group, &info) < 0)
		return fxi_h5_fail(err, FX_EDATA, "cannot read %s:/%s", path, name);
	for (hsize_t i = 0; i < info.nlinks && status == FX_OK; i++) {
		struct series s = {.path = path, .group = -1, .data = -1, .header = -1, .type = -1, .head_type = -1};
		char link[256];

		if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, link, sizeof link, H5P_DEFAULT) < 0 ||
		    !fxi_h5_is_series(group, link))
			continue;
		snprintf(s.where, sizeof s.where, "%s:/%s%s%s", path, name, *name ? "/" : "", link);
		status = open_series(&s, group, link, err);
		if (status == FX_OK)
			status = read_series(&s, err, out);
		close_series(&s);
	}
	return status;
}

int fxi_mrd_images_read(const char *path, const char *group, fx_error *err, fxi_images *out)
{
	hid_t file = -1, id = -1;
	char *name = NULL;
	fxi_h5_guard guard;
	int status;

	memset(out, 0, sizeof *out);
	fxi_h5_enter(&guard);
	status = fxi_h5_open_file(path, err, &file);
	if (status == FX_OK)
		status = fxi_h5_open_group(file, path, group, FXI_H5_IMAGES, err, &id, &name);
	if (status == FX_OK)
		status = read_group(id, path, name, err, out);
	free(name);
	fxi_h5_close(&id);
	if (file >= 0)
		H5Fclose(file);
	fxi_h5_leave(&guard);
	if (status == FX_OK && out->n == 0)
		status = fx_error_set(err, FX_EDATA, "%s holds no images", path);
	if (status == FX_OK)
		status = sort_images(out, path, err);
	if (status != FX_OK)
		fxi_images_free(out);
	return status;
}

void fxi_images_free(fxi_images *images)
{
	for (int64_t i = 0; i < images->n; i++)
		fx_drop(images->list[i]);
	free(images->list);
	memset(images, 0, sizeof *images);
}

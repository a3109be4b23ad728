/* SPDX-License-Identifier: MIT */
/*
 * files_mrd.c - the product MRD images: group `dataset`, a group image_SERIES for each series with the datasets `header`,
 * `attributes` (XML of the meta data) and `data` {image, channel, z, y, x}, as libismrmrd lays them out. A series holds one
 * shape and type; images that differ go to image_SERIES_2 and so on. Images are written as they come.
 */
#include "folder.h"
#include "h5_file.h"
#include "meta.h"
#include "mrd_wire.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HDF5 takes chunks of less than 4 GiB. */
#define CHUNK_BYTES ((hsize_t)1 << 30)

struct series {
	struct series *next;
	uint16_t index;
	int part;              /* 1: the first of that index */
	int type;
	int64_t dims[4];
	hsize_t n;
	hid_t header, attributes, data;
};

struct mrd {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	fxi_h5_file file;
	hid_t group, header_type, text_type;
	struct series *series;
	bool any;
};

static hid_t element_type(int type)
{
	switch (type) {
	case FX_U16:
		return H5Tcopy(H5T_NATIVE_UINT16);
	case FX_I16:
		return H5Tcopy(H5T_NATIVE_INT16);
	case FX_U32:
		return H5Tcopy(H5T_NATIVE_UINT32);
	case FX_I32:
		return H5Tcopy(H5T_NATIVE_INT32);
	case FX_F32:
		return H5Tcopy(H5T_NATIVE_FLOAT);
	case FX_F64:
		return H5Tcopy(H5T_NATIVE_DOUBLE);
	case FX_CF32:
		return fxi_h5_complex_type(false);
	case FX_CF64:
		return fxi_h5_complex_type(true);
	default:
		return -1;
	}
}

static void close_series(struct series *s)
{
	fxi_h5_close(&s->header);
	fxi_h5_close(&s->attributes);
	fxi_h5_close(&s->data);
}

static void close_handles(struct mrd *p)
{
	for (struct series *s = p->series; s; s = s->next)
		close_series(s);
	fxi_h5_close(&p->header_type);
	fxi_h5_close(&p->text_type);
	fxi_h5_close(&p->group);
}

static void free_product(struct mrd *p)
{
	while (p->series) {
		struct series *next = p->series->next;

		free(p->series);
		p->series = next;
	}
	free(p->name);
	free(p);
}

static void abandon(fxi_product *self)
{
	struct mrd *p = (struct mrd *)self;
	fxi_h5_guard guard;

	fxi_h5_enter(&guard);
	close_handles(p);
	fxi_h5_file_abandon(&p->file);
	fxi_h5_leave(&guard);
	free_product(p);
}

static bool create_datasets(struct mrd *p, struct series *s)
{
	/* libismrmrd's order: channel, z, y, x. */
	hsize_t tail[4] = {(hsize_t)s->dims[3], (hsize_t)s->dims[2], (hsize_t)s->dims[1], (hsize_t)s->dims[0]};
	hid_t type = element_type(s->type), group;
	char name[32];

	snprintf(name, sizeof name, s->part > 1 ? "image_%d_%d" : "image_%d", s->index, s->part);
	group = H5Gcreate2(p->group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (group >= 0 && type >= 0) {
		s->header = fxi_h5_growing(group, "header", p->header_type, 0, NULL, 1, 0);
		s->attributes = fxi_h5_growing(group, "attributes", p->text_type, 0, NULL, 1, 0);
		s->data = fxi_h5_growing(group, "data", type, 4, tail, 1, CHUNK_BYTES);
	}
	fxi_h5_close(&group);
	fxi_h5_close(&type);
	return s->header >= 0 && s->attributes >= 0 && s->data >= 0;
}

static void warn_parts(const struct mrd *p, const struct series *s)
{
	char text[256];

	snprintf(text, sizeof text, "%s: images of series %d differ in shape or type; those are in image_%d_%d", p->name,
		s->index, s->index, s->part);
	fxi_folder_warn(p->folder, text);
}

/* The series that takes such an image, made where there is none yet; NULL with *status set. */
static struct series *series_for(struct mrd *p, const fx_image *image, fx_error *err, int *status)
{
	uint16_t index = image->head.image_series_index;
	struct series *s, **end = &p->series;
	int part = 1;

	for (; *end; end = &(*end)->next) {
		s = *end;
		if (s->index == index && s->type == image->data->type &&
		    memcmp(s->dims, image->data->dims, sizeof s->dims) == 0)
			return s;
		part += s->index == index;
	}
	s = calloc(1, sizeof *s);
	if (!s) {
		*status = fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", p->name);
		return NULL;
	}
	s->index = index;
	s->part = part;
	s->type = image->data->type;
	memcpy(s->dims, image->data->dims, sizeof s->dims);
	s->header = s->attributes = s->data = -1;
	*end = s;
	if (!create_datasets(p, s)) {
		*status = fxi_h5_file_failed(&p->file, err);
		return NULL;
	}
	if (part > 1)
		warn_parts(p, s);
	return s;
}

static int append(struct mrd *p, const fx_image *image, char *meta, fx_error *err)
{
	ISMRMRD_ImageHeader head = image->head;
	int status = FX_OK;
	struct series *s = series_for(p, image, err, &status);
	hid_t type;
	bool ok;

	if (!s)
		return status;
	head.data_type = (uint16_t)fxi_mrd_from_type(image->data->type);
	head.attribute_string_len = (uint32_t)strlen(meta);
	type = element_type(s->type);
	ok = type >= 0 && fxi_h5_append(s->header, p->header_type, s->n, 1, &head) &&
		fxi_h5_append(s->attributes, p->text_type, s->n, 1, &meta) &&
		fxi_h5_append(s->data, type, s->n, 1, image->data->data);
	status = ok ? fxi_h5_file_check(&p->file, err) : fxi_h5_file_failed(&p->file, err);
	fxi_h5_close(&type);
	s->n++;
	p->any = true;
	return status;
}

static int add(fxi_product *self, const fx_image *image, fx_error *err)
{
	struct mrd *p = (struct mrd *)self;
	fxi_held_list checked = {0};
	int status = fxi_held_add(&checked, image, err);
	fxi_h5_guard guard;
	char *meta;

	fxi_held_clear(&checked);
	if (status != FX_OK)
		return status;
	meta = fxi_meta_format(image);
	if (!meta)
		return fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", p->name);
	fxi_h5_enter(&guard);
	status = append(p, image, meta, err);
	fxi_h5_leave(&guard);
	free(meta);
	return status;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct mrd *p = (struct mrd *)self;
	fxi_h5_guard guard;
	int status;

	if (!p->any) {
		char text[256];

		snprintf(text, sizeof text, "%s: not written, no image came", p->name);
		fxi_folder_warn(p->folder, text);
		abandon(self);
		return FX_OK;
	}
	fxi_h5_enter(&guard);
	close_handles(p);
	status = fxi_h5_file_commit(&p->file, err);
	fxi_h5_leave(&guard);
	if (status == FX_OK)
		status = fxi_folder_add(p->folder, p->name, err);
	free_product(p);
	return status;
}

static int create(struct mrd *p, const char *path, fx_error *err)
{
	int status = fxi_h5_file_create(path, err, &p->file);

	if (status != FX_OK)
		return status;
	p->header_type = fxi_h5_image_head_type();
	p->text_type = fxi_h5_text_type(H5T_CSET_ASCII);   /* what libismrmrd reads */
	p->group = H5Gcreate2(p->file.id, "dataset", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	if (p->group < 0 || p->header_type < 0 || p->text_type < 0) {
		status = fxi_h5_file_failed(&p->file, err);
		close_handles(p);
		fxi_h5_file_abandon(&p->file);
	}
	return status;
}

int fxi_product_mrd(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct mrd *p = calloc(1, sizeof *p);
	char *path = fxi_folder_path(folder, options->name);
	fxi_h5_guard guard;
	int status;

	if (!p || !path || !(p->name = strdup(options->name))) {
		free(p);
		free(path);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add = add, .commit = commit, .abandon = abandon};
	p->folder = folder;
	p->group = p->header_type = p->text_type = -1;
	fxi_h5_enter(&guard);
	status = create(p, path, err);
	fxi_h5_leave(&guard);
	free(path);
	if (status != FX_OK) {
		free_product(p);
		return status;
	}
	*out = &p->base;
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * files_volume.c - the product of one field of voxels (fx_volume) as NIfTI: NAME.nii.gz or NAME.nii. Written aside as it is
 * given, in its own type, with the affine that its lattice has.
 */
#include "folder.h"
#include "nifti_out.h"

#include <math.h>
#include <nifti/nifti1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct volume {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	fxi_aside *file;   /* NULL until the volume came */
};

static void free_product(fxi_product *self)
{
	struct volume *p = (struct volume *)self;

	fxi_aside_abandon(p->file);
	free(p->name);
	free(p);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

static const struct {
	int type, datatype;
} types[] = {{FX_U8, DT_UINT8}, {FX_I16, DT_INT16}, {FX_I32, DT_INT32}, {FX_F32, DT_FLOAT32}, {FX_F64, DT_FLOAT64}};

static int datatype_of(int type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].type == type)
			return types[i].datatype;
	return DT_UNKNOWN;
}

/* Refuses what cannot be written as said: the caller's mistake, told before the file is touched. */
static int check(const struct volume *p, const fx_volume *v, fx_error *err)
{
	const fx_array *d = v->data;
	const int64_t *dims = v->lattice ? v->lattice->dims : NULL, *voxels = d ? d->dims + (v->rgb ? 1 : 0) : NULL;
	int64_t wanted = v->symmetric ? 6 : v->vector ? 3 : 0, n;

	if (p->file)
		return fx_error_set(err, FX_EINVAL, "%s: one file holds one volume", p->name);
	if (!d || !dims || d->place != FX_HOST)
		return fx_error_set(err, FX_EINVAL, "%s: a volume needs a lattice and voxels in host memory", p->name);
	if (datatype_of(d->type) == DT_UNKNOWN)
		return fx_error_set(err, FX_EINVAL, "%s: voxels of type %s cannot be written", p->name, fx_type_name(d->type));
	if (v->rgb && (d->type != FX_U8 || d->n_dims != 4 || d->dims[0] != 3 || wanted))
		return fx_error_set(err, FX_EINVAL, "%s: colours are u8 {3, x, y, z}", p->name);
	if (d->n_dims < 3 || d->n_dims > 4)
		return fx_error_set(err, FX_EINVAL, "%s: %d dimensions instead of 3 or 4", p->name, d->n_dims);
	if (voxels[0] != dims[0] || voxels[1] != dims[1] || voxels[2] != dims[2] || d->n == 0)
		return fx_error_set(err, FX_EINVAL, "%s: %lld x %lld x %lld voxels do not fit a lattice of %lld x %lld x %lld", p->name,
			(long long)voxels[0], (long long)voxels[1], (long long)voxels[2], (long long)dims[0], (long long)dims[1],
			(long long)dims[2]);
	n = v->rgb || d->n_dims == 3 ? 1 : d->dims[3];
	if (wanted && n != wanted)
		return fx_error_set(err, FX_EINVAL, "%s: %lld numbers a voxel instead of %lld", p->name, (long long)n,
			(long long)wanted);
	return FX_OK;
}

/* The range of scalar maps, so that viewers start with a sensible window; NaN and infinity do not count. */
static void find_range(const fx_array *a, fxi_nifti_facts *f)
{
	double low = 0, high = 0;

	for (int64_t i = 0; i < a->n; i++) {
		double v = a->type == FX_F32 ? (double)FX_F32_OF(a)[i] : a->type == FX_F64 ? FX_F64_OF(a)[i] :
			a->type == FX_U8 ? ((const uint8_t *)a->data)[i] : a->type == FX_I16 ? ((const int16_t *)a->data)[i] :
			((const int32_t *)a->data)[i];

		if (isfinite(v)) {
			low = fmin(low, v);
			high = fmax(high, v);
		}
	}
	f->cal_min = low;
	f->cal_max = high;
}

static fxi_nifti_facts facts_of(const fx_volume *v)
{
	const fx_array *d = v->data;
	fxi_nifti_facts f = fxi_nifti_facts_new(v->rgb ? DT_RGB24 : datatype_of(d->type),
		8 * (int)fx_type_size(d->type) * (v->rgb ? 3 : 1));
	int64_t n = v->rgb || d->n_dims == 3 ? 1 : d->dims[3];

	for (int i = 0; i < 3; i++)
		f.dim[i + 1] = v->lattice->dims[i];
	if (v->symmetric || v->vector) {
		f.dim[0] = 5;
		f.dim[5] = n;
		f.intent = v->symmetric ? NIFTI_INTENT_SYMMATRIX : NIFTI_INTENT_VECTOR;
		f.intent_p1 = v->symmetric ? 3 : 0;
	} else {
		f.dim[0] = n > 1 ? 4 : 3;
		f.dim[4] = n;
		if (!v->rgb)
			find_range(d, &f);
	}
	f.description = v->description;
	f.comment = v->comment;
	fxi_nifti_geometry(&f, v->lattice);
	return f;
}

static int write_file(const struct volume *p, const fx_volume *v, fx_error *err)
{
	fxi_nifti_facts f = facts_of(v);
	fxi_nifti_out o;
	int status = fxi_nifti_out_open(&o, p->file, ends_with(p->name, ".gz"), err);

	if (status == FX_OK)
		status = fxi_nifti_header_write(&o, &f, err);
	if (status == FX_OK)
		status = fxi_nifti_out_write(&o, v->data->data, (size_t)v->data->bytes, err);
	if (status == FX_OK)
		status = fxi_nifti_out_finish(&o, err);
	fxi_nifti_out_close(&o);
	return status;
}

static int add_volume(fxi_product *self, const fx_volume *v, fx_error *err)
{
	struct volume *p = (struct volume *)self;
	int status = check(p, v, err);
	char *path;

	if (status != FX_OK)
		return status;
	path = fxi_folder_path(p->folder, p->name);
	status = path ? fxi_aside_open(path, err, &p->file) : fx_error_set(err, FX_ENOMEM, "out of memory while writing %s", p->name);
	free(path);
	if (status == FX_OK)
		status = write_file(p, v, err);
	if (status == FX_OK && !v->lattice->has_affine) {
		char text[256];

		snprintf(text, sizeof text, "%s: where the volume lies is not known; the file has voxel sizes, no orientation",
			p->name);
		fxi_folder_warn(p->folder, text);
	}
	return status;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct volume *p = (struct volume *)self;
	int status = FX_OK;

	if (p->file) {
		status = fxi_aside_commit(p->file, err);
		p->file = NULL;
		if (status == FX_OK)
			status = fxi_folder_add(p->folder, p->name, err);
	} else {
		char text[256];

		snprintf(text, sizeof text, "%s: not written, no volume came", p->name);
		fxi_folder_warn(p->folder, text);
	}
	free_product(self);
	return status;
}

int fxi_product_volume(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct volume *p;

	if (!ends_with(options->name, ".nii.gz") && !ends_with(options->name, ".nii"))
		return fx_error_set(err, FX_EINVAL, "'%s': the name of a NIfTI file ends in .nii.gz or .nii", options->name);
	p = calloc(1, sizeof *p);
	if (!p || !(p->name = strdup(options->name))) {
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add_volume = add_volume, .commit = commit, .abandon = free_product};
	p->folder = folder;
	*out = &p->base;
	return FX_OK;
}

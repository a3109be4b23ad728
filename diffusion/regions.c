/* SPDX-License-Identifier: MIT */
/* regions.c - a label image into regions: what is there, what was asked for, and in which space it lies. */
#include "diffusion/regions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE_TOLERANCE 0.1 /* of the smallest voxel edge: more than affines lose by a header's single precision, too little to
                               move a border */

static int compare_labels(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static bool sensible_shape(const fx_array *image)
{
	if (image->n_dims < 3 || image->n <= 0)
		return false;
	for (int i = 3; i < FX_MAX_DIMS; i++)
		if (image->dims[i] > 1)
			return false;
	return true;
}

/* Label of each voxel into `out`. */
static int read_labels(const fx_regions *r, const fx_array *image, int use, int64_t *out, fx_error *err)
{
	fx_array *values = NULL;
	int status = fx_array_convert(image, FX_F64, &values);

	if (status != FX_OK)
		return fx_error_set(err, status, "%s: its voxels of type %s cannot be read as labels", r->name,
			fx_type_name(image->type));
	for (int64_t i = 0; i < values->n && status == FX_OK; i++) {
		double v = FX_F64_OF(values)[i];

		if (!isfinite(v) || (use == FX_REGIONS_LABELS && (v != floor(v) || fabs(v) > 9e15)))
			status = fx_error_set(err, FX_EDATA, "%s: voxel %lld %lld %lld holds %g, which is no label; threshold a "
				"probability map before it is used as regions", r->name, (long long)(i % r->lattice.dims[0]),
				(long long)(i / r->lattice.dims[0] % r->lattice.dims[1]),
				(long long)(i / r->lattice.dims[0] / r->lattice.dims[1]), v);
		else
			out[i] = use == FX_REGIONS_ANY ? v != 0 : v > 0 ? (int64_t)v : 0;
	}
	fx_array_unref(values);
	return status;
}

/* The distinct labels above 0 of n voxels, ascending, into r->labels. */
static int find_labels(fx_regions *r, const int64_t *voxels, int64_t n, fx_error *err)
{
	int64_t *sorted = fx_alloc(n, sizeof *sorted), n_found = 0;

	if (!sorted)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory for its labels", r->name);
	memcpy(sorted, voxels, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, compare_labels);
	for (int64_t i = 0; i < n; i++)
		if (sorted[i] > 0 && (n_found == 0 || sorted[n_found - 1] != sorted[i]))
			sorted[n_found++] = sorted[i];
	r->labels = sorted;
	r->n = n_found;
	if (n_found == 0)
		return fx_error_set(err, FX_EDATA, "%s has no voxel above 0: there is no region in it", r->name);
	if (n_found > FXI_REGIONS_MOST)
		return fx_error_set(err, FX_EDATA, "%s has %lld different labels (the most is %d): is it a label image?", r->name,
			(long long)n_found, FXI_REGIONS_MOST);
	return FX_OK;
}

static int64_t place_of(const fx_regions *r, int64_t label)
{
	const int64_t *found = bsearch(&label, r->labels, (size_t)r->n, sizeof label, compare_labels);

	return found ? found - r->labels : -1;
}

/* "1, 2, 5 and 12 more" */
static void list_labels(const fx_regions *r, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int64_t i = 0; i < r->n; i++) {
		if (i == 20) {
			snprintf(text + used, size - used, " and %lld more", (long long)(r->n - i));
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "", (long long)r->labels[i]);
	}
}

/* Keeps those of r->labels that `wanted` lists. */
static int choose_labels(fx_regions *r, const char *wanted, fx_error *err)
{
	bool *chosen = fx_alloc(r->n, sizeof *chosen);
	const char *p = wanted + strspn(wanted, " \t,;");
	int64_t n = 0;
	int status = chosen ? FX_OK : fx_error_set(err, FX_ENOMEM, "%s: no memory for its labels", r->name);

	while (status == FX_OK && *p) {
		char *end;
		long long label = strtoll(p, &end, 10);
		char there[512];

		if (end == p || label <= 0 || !strchr(" \t,;", *end)) { /* strchr finds the NUL too */
			status = fx_error_set(err, FX_EINVAL, "'%s' is no list of labels above 0, such as \"3, 5\"", wanted);
		} else if (place_of(r, label) < 0) {
			list_labels(r, there, sizeof there);
			status = fx_error_set(err, FX_EINVAL, "label %lld has no voxel in %s: an empty target; it has %s", label, r->name,
				there);
		} else {
			chosen[place_of(r, label)] = true;
			p = end + strspn(end, " \t,;");
		}
	}
	for (int64_t i = 0; status == FX_OK && i < r->n; i++)
		if (chosen[i])
			r->labels[n++] = r->labels[i];
	if (n > 0)
		r->n = n;
	fx_free(chosen);
	return status;
}

static int place_voxels(fx_regions *r, const int64_t *voxels, int64_t n, fx_error *err)
{
	r->region = fx_alloc(n, sizeof *r->region);
	r->n_voxels = fx_alloc(r->n, sizeof *r->n_voxels);
	if (!r->region || !r->n_voxels)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory for its %lld voxels", r->name, (long long)n);
	for (int64_t i = 0; i < n; i++) {
		int64_t place = voxels[i] > 0 ? place_of(r, voxels[i]) : -1;

		r->region[i] = (int32_t)(place + 1);
		if (place >= 0)
			r->n_voxels[place]++;
	}
	return FX_OK;
}

int fx_regions_new(const fx_array *image, const double affine[3][4], bool has_affine, const char *name, const char *wanted,
	int use, fx_error *err, fx_regions **out)
{
	fx_regions *r = fx_alloc(1, sizeof *r);
	int64_t *voxels = NULL;
	int status = FX_OK;

	*out = NULL;
	if (!r)
		return fx_error_set(err, FX_ENOMEM, "%s: no memory", name);
	snprintf(r->name, sizeof r->name, "%s", name);
	if (!sensible_shape(image)) {
		status = fx_error_set(err, FX_EDATA, "%s is not one volume of labels {x, y, z}", name);
		goto done;
	}
	for (int i = 0; i < 3; i++)
		r->lattice.dims[i] = image->dims[i];
	memcpy(r->lattice.affine, affine, sizeof r->lattice.affine);
	r->lattice.has_affine = has_affine;
	status = fx_lattice_inverse(&r->lattice, r->to_index, err);
	voxels = status == FX_OK ? fx_alloc(image->n, sizeof *voxels) : NULL;
	if (status == FX_OK && !voxels)
		status = fx_error_set(err, FX_ENOMEM, "%s: no memory for its %lld voxels", name, (long long)image->n);
	if (status == FX_OK)
		status = read_labels(r, image, use, voxels, err);
	if (status == FX_OK)
		status = find_labels(r, voxels, image->n, err);
	if (status == FX_OK && wanted)
		status = choose_labels(r, wanted, err);
	if (status == FX_OK)
		status = place_voxels(r, voxels, image->n, err);
done:
	fx_free(voxels);
	if (status != FX_OK)
		fx_regions_free(r);
	else
		*out = r;
	return status;
}

void fx_regions_free(fx_regions *r)
{
	if (!r)
		return;
	fx_free(r->labels);
	fx_free(r->n_voxels);
	fx_free(r->region);
	fx_free(r);
}

int fx_regions_same_space(const fx_regions *r, const fx_lattice *lattice, fx_error *err)
{
	double mm[3], worst = 0;

	for (int i = 0; i < 3; i++)
		if (r->lattice.dims[i] != lattice->dims[i])
			return fx_error_set(err, FX_EDATA, "%s has %lld x %lld x %lld voxels, the fibres' image %lld x %lld x %lld: it is in "
				"another space; resample it, or set resample=true to read it by its own affine", r->name,
				(long long)r->lattice.dims[0], (long long)r->lattice.dims[1], (long long)r->lattice.dims[2],
				(long long)lattice->dims[0], (long long)lattice->dims[1], (long long)lattice->dims[2]);
	for (int corner = 0; corner < 8; corner++) {
		double x[3], a[3], b[3];

		for (int i = 0; i < 3; i++)
			x[i] = corner >> i & 1 ? (double)(lattice->dims[i] - 1) : 0;
		fx_affine_apply(r->lattice.affine, x, a);
		fx_affine_apply(lattice->affine, x, b);
		worst = fmax(worst, sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])
			+ (a[2] - b[2]) * (a[2] - b[2])));
	}
	fx_lattice_voxel_mm(lattice, mm);
	if (worst > SPACE_TOLERANCE * fmin(mm[0], fmin(mm[1], mm[2])))
		return fx_error_set(err, FX_EDATA, "%s is in another space: its affine and that of the fibres' image differ by up to %.3g mm; "
			"resample it, or set resample=true to read it by its own affine", r->name, worst);
	return FX_OK;
}

int64_t fx_regions_at(const fx_regions *r, const double ras[3])
{
	double x[3];
	int64_t at = 0;

	fx_affine_apply(r->to_index, ras, x);
	for (int i = 2; i >= 0; i--) {
		double nearest = floor(x[i] + 0.5);

		if (!(nearest >= 0 && nearest < (double)r->lattice.dims[i]))
			return 0;
		at = at * r->lattice.dims[i] + (int64_t)nearest;
	}
	return r->region[at] > 0 ? r->labels[r->region[at] - 1] : 0;
}

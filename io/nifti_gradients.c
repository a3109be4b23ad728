/* SPDX-License-Identifier: MIT */
/*
 * nifti_gradients.c - finds the gradient table of a series and reads it. Lengths are compared here, where the names of the
 * files are known; what the numbers mean is fx_gradients_from_*'s business.
 */
#include "nifti_source.h"
#include "table_read.h"

#include <fornix/diffusion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *fxi_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* STEM and an ending, where that file is there; else NULL. */
static char *beside(const char *path, const char *ending)
{
	static const char *const endings[] = {".nii.gz", ".nii"};
	size_t n = strlen(path);
	char *name;

	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		size_t m = strlen(endings[i]);

		if (n > m && strcmp(path + n - m, endings[i]) == 0) {
			n -= m;
			break;
		}
	}
	if (asprintf(&name, "%.*s%s", (int)n, path, ending) < 0)
		return NULL;
	if (access(name, F_OK) == 0)
		return name;
	free(name);
	return NULL;
}

bool fxi_nifti_has_gradients(const char *path, const fxi_nifti_options *o)
{
	char *bval = beside(path, ".bval"), *bvec = beside(path, ".bvec");
	bool has = o->bval || o->bvec || o->grad || bval || bvec;

	free(bval);
	free(bvec);
	return has;
}

static int read_table(const char *path, fx_error *err, fx_array **values)
{
	fx_array *lengths = NULL;
	int status = fxi_table_read(path, err, values, &lengths);

	fx_array_unref(lengths);
	return status;
}

static int other_count(const char *table, int64_t n, const char *what, const char *path, int64_t volumes, fx_error *err)
{
	return fx_error_set(err, FX_EDATA, "%s has %lld %s, but %s has %lld volumes: each volume needs one", table, (long long)n,
		what, path, (long long)volumes);
}

static int from_fsl(const char *path, const char *bval, const char *bvec, fx_series_info *info, int64_t *n_scaled, fx_error *err)
{
	fx_array *values = NULL, *vectors = NULL;
	fx_error why = {0};
	int status = read_table(bval, err, &values);

	if (status == FX_OK)
		status = read_table(bvec, err, &vectors);
	if (status == FX_OK && values->n != info->n_volumes)
		status = other_count(bval, values->n, "b-values", path, info->n_volumes, err);
	if (status == FX_OK && vectors->dims[0] != 3 && vectors->dims[1] != 3)
		status = fx_error_set(err, FX_EDATA, "%s has %lld rows of %lld numbers; b-vectors are three rows, or rows of three", bvec,
			(long long)vectors->dims[1], (long long)vectors->dims[0]);
	if (status == FX_OK && vectors->n / 3 != info->n_volumes)
		status = other_count(bvec, vectors->n / 3, "b-vectors", path, info->n_volumes, err);
	if (status == FX_OK && fx_gradients_from_fsl(values, vectors, &info->lattice, info->n_volumes, info->gradients, n_scaled,
			&why) != FX_OK)
		status = fx_error_set(err, why.status, "%s and %s: %s", bval, bvec, why.text);
	if (status == FX_OK)
		snprintf(info->origin, sizeof info->origin, "%.90s and %.90s", fxi_file_name(bval), fxi_file_name(bvec));
	fx_array_unref(values);
	fx_array_unref(vectors);
	return status;
}

static int from_mrtrix(const char *path, const char *grad, fx_series_info *info, fx_error *err)
{
	fx_array *table = NULL;
	fx_error why = {0};
	int status = read_table(grad, err, &table);

	if (status == FX_OK && table->dims[0] != 4)
		status = fx_error_set(err, FX_EDATA, "%s has rows of %lld numbers; MRtrix's table has x, y, z and b in each", grad,
			(long long)table->dims[0]);
	if (status == FX_OK && table->dims[1] != info->n_volumes)
		status = other_count(grad, table->dims[1], "rows", path, info->n_volumes, err);
	if (status == FX_OK && fx_gradients_from_mrtrix(table, info->n_volumes, info->gradients, &why) != FX_OK)
		status = fx_error_set(err, why.status, "%s: %s", grad, why.text);
	if (status == FX_OK)
		snprintf(info->origin, sizeof info->origin, "%.150s", fxi_file_name(grad));
	fx_array_unref(table);
	return status;
}

static int missing(const char *path, const char *has, const char *lacks, fx_error *err)
{
	return fx_error_set(err, FX_EINVAL, "%s: there is %s but no %s; both are needed, or --grad with MRtrix's table", path, has,
		lacks);
}

static int make_note(const fx_series_info *info, bool found, int64_t n_scaled, fx_error *err, char **note)
{
	char scaled[96] = "";

	if (n_scaled > 0)
		snprintf(scaled, sizeof scaled, "; %lld of the vectors were not of unit length and were made so", (long long)n_scaled);
	if (!found && n_scaled == 0)
		return FX_OK;
	if (asprintf(note, "gradients from %s%s%s", info->origin, found ? ", found beside the image" : "", scaled) < 0) {
		*note = NULL;
		return fx_error_set(err, FX_ENOMEM, "out of memory");
	}
	return FX_OK;
}

int fxi_nifti_gradients(const char *path, const fxi_nifti_options *o, fx_series_info *info, fx_error *err, char **note)
{
	char *bval = NULL, *bvec = NULL;
	bool found = !o->bval && !o->bvec && !o->grad;
	int64_t n_scaled = 0;
	int status;

	*note = NULL;
	if (o->grad && (o->bval || o->bvec))
		return fx_error_set(err, FX_EINVAL, "--grad and --bval, --bvec are two ways to say the same: give one");
	if (o->grad)
		return from_mrtrix(path, o->grad, info, err);
	bval = found ? beside(path, ".bval") : o->bval ? strdup(o->bval) : NULL;
	bvec = found ? beside(path, ".bvec") : o->bvec ? strdup(o->bvec) : NULL;
	if (!bval && !bvec)
		status = fx_error_set(err, FX_EINVAL, "%s has %lld volumes and no gradient table: give --bval and --bvec (FSL's), or --grad "
			"(MRtrix's); the same name with .bval and .bvec beside it would be taken too", path, (long long)info->n_volumes);
	else if (!bval || !bvec)
		status = missing(path, bval ? bval : bvec, bval ? found ? "file of that name with .bvec" : "--bvec" :
			found ? "file of that name with .bval" : "--bval", err);
	else
		status = from_fsl(path, bval, bvec, info, &n_scaled, err);
	if (status == FX_OK)
		status = make_note(info, found, n_scaled, err, note);
	free(bval);
	free(bvec);
	return status;
}

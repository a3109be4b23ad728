/* SPDX-License-Identifier: MIT */
/* phantom_dwi.c - see phantom_dwi.h: bundles become the image of a scan, and their answer files beside it. */
#include "apps/phantom_dwi.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fornix/gadget.h>

#include "apps/phantom_image.h"
#include "io/aside.h"
#include "io/files.h"

#define PHASE_STREAM 0x73686f742070686full /* seeds phases apart from noise */
#define RICIAN_STREAM 0x7269636961ull
#define LINE_POINTS 201

void fxi_phantom_dwi_free(fxi_phantom_dwi *dwi)
{
	if (!dwi)
		return;
	fx_free(dwi->gradients);
	g_free(dwi->images);
	fx_free(dwi);
}

/* ---- the series -------------------------------------------------------------------------------- */

/* The scan's voxels in RAS; the head's cylinder goes along its slices and everything is about its middle. */
static void place(const fxi_phantom_job *job, fxi_phantom_dwi *dwi)
{
	const float *axes[3] = {job->read_dir, job->phase_dir, job->slice_dir};
	fx_lattice *l = &dwi->grid.lattice;
	int64_t planes = job->sampling.matrix[2] * job->n_slices;

	*l = (fx_lattice){.dims = {job->sampling.matrix[0], job->sampling.matrix[1], planes}, .has_affine = true};
	for (int i = 0; i < 3; i++) {
		double sign = i < 2 ? -1 : 1;

		for (int d = 0; d < 3; d++) {
			double voxel = d == 2 && job->n_slices > 1 ? job->slice_spacing_mm : job->fov_mm[d] / (double)job->sampling.matrix[d];

			l->affine[i][d] = sign * (double)axes[d][i] * voxel;
		}
		l->affine[i][3] = dwi->object.centre[i] = sign * job->position_mm[i];
		for (int d = 0; d < 3; d++) {
			l->affine[i][3] -= l->affine[i][d] * (double)(l->dims[d] / 2);
			/* between the middle two of an even number of voxels */
			dwi->object.centre[i] -= l->affine[i][d] * (l->dims[d] % 2 == 0 ? 0.5 : 0);
		}
		dwi->object.head_axis[i] = sign * (double)job->slice_dir[i];
	}
}

int fxi_phantom_dwi_make(fxi_phantom_job *job, fx_error *err)
{
	fxi_phantom_dwi *dwi = job->dwi;
	fxi_phantom_image *image = job->image = fx_alloc(1, sizeof *job->image);
	fx_array *series = NULL;
	int status;

	if (!image)
		return fx_error_set(err, FX_ENOMEM, "no memory for a series");
	place(job, dwi);
	for (int d = 0; d < 3; d++) {
		image->dims[d] = dwi->grid.lattice.dims[d];
		image->position[d] = (float)job->position_mm[d];
	}
	image->n_frames = dwi->n_volumes;
	if (dwi->snr > 0) {
		double of_image;

		status = fxi_phantom_dwi_noise(job, err, &of_image);
		if (status != FX_OK)
			return status;
		job->noise.sigma = dwi->object.s0_fibre / dwi->snr / of_image;
	}
	status = fxi_dwi_series(&dwi->object, &dwi->grid, dwi->gradients, dwi->n_volumes, err, &series);
	if (status == FX_OK && fx_array_convert(series, FX_CF64, &image->volume) != FX_OK)
		status = fx_error_set(err, FX_ENOMEM, "no memory for the series in double precision");
	fx_array_unref(series);
	return status;
}

void fxi_phantom_dwi_phase(const fxi_phantom_job *job, int64_t volume, int64_t slice, int64_t shot, double *turns, double slope[3])
{
	const fxi_phantom_dwi *dwi = job->dwi;
	fxi_random r;

	*turns = slope[0] = slope[1] = slope[2] = 0;
	if (!dwi || !dwi->shot_phase || !(dwi->gradients[volume].b > 0))
		return;
	fxi_random_start(&r, job->noise.seed ^ PHASE_STREAM, (uint64_t)((volume * job->n_slices + slice) * dwi->n_shots + shot));
	*turns = fxi_random_uniform(&r);
	for (int d = 0; d < job->sampling.n_k_dims; d++) /* up to half a turn across the field of view, either way */
		slope[d] = (fxi_random_uniform(&r) - 0.5) / (double)job->sampling.matrix[d];
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end, size_t *without)
{
	size_t n = strlen(text), m = strlen(end);

	*without = n - m;
	return n > m && strcmp(text + n - m, end) == 0;
}

/* scan_truth.nii.gz and "fa.nii.gz" -> scan_truth_fa.nii.gz; with "" for the joint "dwi.nii.gz" and ".bval" -> dwi.bval */
static char *beside(const char *path, const char *joint, const char *name)
{
	size_t stem = strlen(path);

	if (!ends_with(path, ".nii.gz", &stem) && !ends_with(path, ".nii", &stem))
		stem = strlen(path);
	return g_strdup_printf("%.*s%s%s", (int)stem, path, joint, name);
}

static int write_text(const char *path, const char *joint, const char *name, const void *data, size_t bytes, fx_error *err)
{
	char *file = beside(path, joint, name);
	fxi_aside *aside = NULL;
	int status = fxi_aside_open(file, err, &aside);

	if (status == FX_OK)
		status = fxi_aside_write(aside, data, bytes, err);
	if (status == FX_OK)
		status = fxi_aside_commit(aside, err);
	else
		fxi_aside_abandon(aside);
	g_free(file);
	return status;
}

static int write_volume(const char *path, const fx_volume *volume, fx_error *err)
{
	char *folder = g_path_get_dirname(path), *base = g_path_get_basename(path);
	const fx_sink_options options = {.format = FX_FORMAT_VOLUME, .name = base};
	fxi_product *product = NULL;
	fxi_files *files = NULL;
	int status = fxi_files_folder(folder, err, &files);

	if (status == FX_OK)
		status = files->open(files, &options, err, &product);
	if (status == FX_OK) {
		status = product->add_volume(product, volume, err);
		if (status == FX_OK)
			status = product->commit(product, err);
		else
			product->abandon(product);
	}
	if (files)
		files->close(files);
	g_free(folder);
	g_free(base);
	return status;
}

static int write_map(const fxi_phantom_dwi *dwi, const char *path, const char *name, fx_array *data, fx_error *err)
{
	char *file = beside(path, "_", name);
	const fx_volume volume = {.lattice = &dwi->grid.lattice, .data = data, .symmetric = data->n_dims == 4};
	int status = write_volume(file, &volume, err);

	g_free(file);
	return status;
}

static void put_point(GByteArray *bytes, const double x[3])
{
	for (int d = 0; d < 3; d++) {
		float value = (float)x[d];
		guint32 bits;

		memcpy(&bits, &value, sizeof bits);
		bits = GUINT32_TO_LE(bits);
		g_byte_array_append(bytes, (const guint8 *)&bits, sizeof bits);
	}
}

/* MRtrix's tracks: RAS mm, NaN after each, infinity after the last. */
static int write_lines(const fxi_phantom_dwi *dwi, const char *path, fx_error *err)
{
	const double after[3] = {NAN, NAN, NAN}, last[3] = {INFINITY, INFINITY, INFINITY};
	GByteArray *bytes = g_byte_array_new();
	int n = fxi_dwi_n_bundles(&dwi->object), status;
	char header[128];

	memset(header, 0, sizeof header);
	g_snprintf(header, sizeof header, "mrtrix tracks\ndatatype: Float32LE\ncount: %d\nfile: . %zu\nEND\n", n, sizeof header);
	g_byte_array_append(bytes, (const guint8 *)header, sizeof header);
	for (int i = 0; i < n; i++) {
		for (int p = 0; p < LINE_POINTS; p++) {
			double x[3];

			fxi_dwi_centre_line(&dwi->object, i, p / (LINE_POINTS - 1.0), x);
			put_point(bytes, x);
		}
		put_point(bytes, after);
	}
	put_point(bytes, last);
	status = write_text(path, "_", "centre.tck", bytes->data, bytes->len, err);
	g_byte_array_free(bytes, TRUE);
	return status;
}

static int write_table(const fxi_phantom_dwi *dwi, const char *path, fx_error *err)
{
	char *bvals = NULL, *bvecs = NULL;
	int status = fxi_dwi_fsl_texts(dwi->gradients, dwi->n_volumes, &dwi->grid.lattice, err, &bvals, &bvecs);

	if (status == FX_OK)
		status = write_text(path, "", ".bval", bvals, strlen(bvals), err);
	if (status == FX_OK)
		status = write_text(path, "", ".bvec", bvecs, strlen(bvecs), err);
	free(bvals);
	free(bvecs);
	return status;
}

int fxi_phantom_dwi_write_truth(const fxi_phantom_job *job, const char *path, fx_error *err)
{
	const fxi_phantom_dwi *dwi = job->dwi;
	fxi_dwi_truth t = {0};
	int status = fxi_dwi_truth_new(&dwi->object, &dwi->grid, err, &t);
	const struct {
		const char *name;
		fx_array *data;
	} maps[] = {{"tensors.nii.gz", t.tensors}, {"fa.nii.gz", t.fa}, {"md.nii.gz", t.md}, {"s0.nii.gz", t.s0},
		{"bundle.nii.gz", t.bundle}, {"labels.nii.gz", t.labels}};

	for (size_t i = 0; status == FX_OK && i < G_N_ELEMENTS(maps); i++)
		status = write_map(dwi, path, maps[i].name, maps[i].data, err);
	if (status == FX_OK)
		status = write_lines(dwi, path, err);
	if (status == FX_OK)
		status = write_table(dwi, path, err);
	fxi_dwi_truth_clear(&t);
	return status;
}

int fxi_phantom_dwi_write_images(const fxi_phantom_job *job, fx_error *err)
{
	const fxi_phantom_dwi *dwi = job->dwi;
	double sigma = dwi->snr > 0 ? dwi->object.s0_fibre / dwi->snr : 0;
	fx_array *data = NULL;
	fx_volume volume = {.lattice = &dwi->grid.lattice};
	const fx_array *series = job->image->volume;
	fxi_random r;
	int status = fx_array_new4(FX_F32, series->dims[0], series->dims[1], series->dims[2], series->dims[3], &data);

	fxi_random_start(&r, job->noise.seed ^ RICIAN_STREAM, 0);
	if (status != FX_OK)
		fx_error_set(err, status, "no memory for the series");
	for (int64_t i = 0; status == FX_OK && i < series->n; i++) {
		double pair[2] = {0}, s = creal(FX_CF64_OF(series)[i]);

		if (sigma > 0)
			fxi_random_normal(&r, pair);
		FX_F32_OF(data)[i] = (float)hypot(s + sigma * pair[0], sigma * pair[1]);
	}
	if (status == FX_OK) {
		volume.data = data;
		status = write_volume(dwi->images, &volume, err);
	}
	if (status == FX_OK)
		status = write_table(dwi, dwi->images, err);
	fx_array_unref(data);
	return status;
}

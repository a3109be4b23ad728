/* SPDX-License-Identifier: MIT */
/* phantom_truth.c - the answer to a test scan, with the scan's geometry, and how near any image can come to it. */
#include "apps/phantom.h"

#include <complex.h>
#include <glib.h>
#include <ismrmrd/version.h>
#include <math.h>
#include <string.h>

#include "apps/phantom_image.h"
#include "io/files.h"
#include "recon/metrics.h"

/* The band-limited image of one slice or volume. */
static int band_limited(const fxi_phantom_job *job, const fxi_phantom *p, fx_math *m, fx_error *err, fx_array **out)
{
	const int64_t *n = job->sampling.matrix;
	int status = fxi_phantom_cartesian(p, n, job->n_threads, err, out);

	if (status == FX_OK)
		status = m->ops->fft(m, *out, 1, 1 / sqrt((double)n[0] * (double)n[1] * (double)n[2]));
	if (status != FX_OK)
		fx_error_set(err, status, "%s", m->err->text);
	return status;
}

/* One slice or volume as an image with its place. */
static void describe(const fxi_phantom_job *job, int64_t slice, fx_array *truth, fx_image *image)
{
	float position[3]; /* MRD's headers are packed: no pointers into them */

	memset(image, 0, sizeof *image);
	image->data = truth;
	image->head.version = ISMRMRD_VERSION_MAJOR;
	image->head.data_type = ISMRMRD_FLOAT;
	image->head.image_type = ISMRMRD_IMTYPE_MAGNITUDE;
	image->head.channels = 1;
	image->head.slice = (uint16_t)slice;
	image->head.image_index = (uint16_t)(slice + 1);
	fxi_phantom_position(job, slice, position);
	for (int d = 0; d < 3; d++) {
		image->head.position[d] = position[d];
		image->head.matrix_size[d] = (uint16_t)job->sampling.matrix[d];
		image->head.field_of_view[d] = (float)job->fov_mm[d];
		image->head.read_dir[d] = job->read_dir[d];
		image->head.phase_dir[d] = job->phase_dir[d];
		image->head.slice_dir[d] = job->slice_dir[d];
	}
}

/* True where the truth has a phase: the image has, or fewer frequencies of it gave it one. */
static bool keeps_phase(const fxi_phantom_job *job)
{
	const int64_t *n = job->sampling.matrix, *d = job->image->dims;

	return job->image->is_complex || n[0] != d[0] || n[1] != d[1] || (n[2] != d[2] && job->n_slices != d[2]);
}

static int open_product(const char *path, bool complex_values, fx_error *err, fxi_files **files, fxi_product **product)
{
	char *folder = g_path_get_dirname(path), *name = g_path_get_basename(path);
	const fx_sink_options options = {.format = FX_FORMAT_NIFTI, .name = name, .complex_values = complex_values};
	int status = fxi_files_folder(folder, err, files);

	if (status == FX_OK)
		status = (*files)->open(*files, &options, err, product);
	g_free(folder);
	g_free(name);
	return status;
}

/* Slices one after the other in all_truth and all_best, to be compared as one. */
static int add_slice(const fxi_phantom_job *job, int64_t slice, fx_math *m, fxi_product *product, fx_error *err,
	fx_array *all_truth, fx_array *all_best)
{
	fx_array *truth = NULL, *best = NULL, *stored = NULL;
	fx_image image;
	int status = fxi_phantom_truth(job->slices[slice], job->sampling.matrix, job->n_threads, err, &truth);

	if (status == FX_OK)
		status = band_limited(job, job->slices[slice], m, err, &best);
	if (status == FX_OK) {
		memcpy(FX_F32_OF(all_truth) + slice * truth->n, truth->data, (size_t)truth->bytes);
		memcpy(FX_CF32_OF(all_best) + slice * best->n, best->data, (size_t)best->bytes);
		/* images are {x, y, z, channels} */
		status = fx_array_new4(FX_F32, truth->dims[0], truth->dims[1], truth->dims[2], 1, &stored);
		if (status != FX_OK)
			fx_error_set(err, status, "no memory for the truth");
	}
	if (status == FX_OK) {
		memcpy(stored->data, truth->data, (size_t)truth->bytes);
		describe(job, slice, stored, &image);
		status = product->add(product, &image, err);
	}
	fx_array_unref(truth);
	fx_array_unref(best);
	fx_array_unref(stored);
	return status;
}

/* Every slice of every frame of an image. */
static int add_image(const fxi_phantom_job *job, fx_math *m, fxi_product *product, fx_error *err)
{
	const int64_t *n = job->sampling.matrix;
	int64_t frames = job->image->n_frames;
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < frames * job->n_slices; i++) {
		fx_array *truth = NULL, *stored = NULL;
		fx_image image;

		status = fxi_phantom_image_truth(job, i % job->n_slices, i / job->n_slices, m, &truth);
		if (status == FX_OK)
			status = fx_array_new4(keeps_phase(job) ? FX_CF32 : FX_F32, n[0], n[1], n[2], 1, &stored);
		if (status != FX_OK)
			fx_error_set(err, status, "%s", m->err->status != FX_OK ? m->err->text : "no memory for the truth");
		for (int64_t v = 0; status == FX_OK && v < stored->n; v++) {
			if (keeps_phase(job))
				FX_CF32_OF(stored)[v] = (fx_cf32)FX_CF64_OF(truth)[v];
			else
				FX_F32_OF(stored)[v] = (float)creal(FX_CF64_OF(truth)[v]);
		}
		if (status == FX_OK) {
			describe(job, i % job->n_slices, stored, &image);
			image.head.repetition = (uint16_t)(i / job->n_slices);
			image.head.data_type = keeps_phase(job) ? ISMRMRD_CXFLOAT : ISMRMRD_FLOAT;
			image.head.image_type = keeps_phase(job) ? ISMRMRD_IMTYPE_COMPLEX : ISMRMRD_IMTYPE_MAGNITUDE;
			status = product->add(product, &image, err);
		}
		fx_array_unref(truth);
		fx_array_unref(stored);
	}
	return status;
}

int fxi_phantom_write_truth(const fxi_phantom_job *job, const char *path, fx_error *err, fxi_ceiling *ceiling)
{
	const int64_t *n = job->sampling.matrix;
	const int64_t all[3] = {n[0], n[1], n[2] * job->n_slices};
	fx_array *truth = NULL, *best = NULL;
	fxi_files *files = NULL;
	fxi_product *product = NULL;
	fxi_metrics metrics;
	fx_math *m = NULL;
	int status = fx_math_new("host", job->n_threads, err, &m);

	if (status == FX_OK && job->image) {
		status = open_product(path, keeps_phase(job), err, &files, &product);
		if (status == FX_OK)
			status = add_image(job, m, product, err);
		if (status == FX_OK) {
			*ceiling = (fxi_ceiling){.psnr_db = INFINITY};
			status = product->commit(product, err);
			product = NULL;
		}
		goto done;
	}
	if (status == FX_OK) {
		status = fx_array_new(FX_F32, 3, all, &truth);
		if (status == FX_OK)
			status = fx_array_new(FX_CF32, 3, all, &best);
		if (status != FX_OK)
			fx_error_set(err, status, "no memory for a truth of %lld x %lld x %lld voxels", (long long)all[0],
				(long long)all[1], (long long)all[2]);
	}
	if (status == FX_OK)
		status = open_product(path, false, err, &files, &product);
	for (int64_t s = 0; status == FX_OK && s < job->n_slices; s++)
		status = add_slice(job, s, m, product, err, truth, best);
	if (status == FX_OK)
		status = fxi_compare(best, truth, NULL, false, job->n_threads, err, &metrics);
	if (status == FX_OK) {
		*ceiling = (fxi_ceiling){.psnr_db = metrics.psnr_db, .nrmse = metrics.nrmse};
		status = product->commit(product, err);
		product = NULL;
	}
done:
	if (product)
		product->abandon(product);
	if (files)
		files->close(files);
	fx_array_unref(truth);
	fx_array_unref(best);
	fx_math_free(m);
	return status;
}

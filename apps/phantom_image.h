/* SPDX-License-Identifier: MIT */
/* phantom_image.h - a test scan of an image instead of shapes. */
#ifndef FORNIX_APPS_PHANTOM_IMAGE_H
#define FORNIX_APPS_PHANTOM_IMAGE_H

#include "apps/phantom.h"

/**
 * The object as an image: voxels are points, so that a sample is the sum D(k) = scale sum_x S(x) rho(x) e^{-i2pi (k.x + f(x) t)},
 * with scale as for shapes.
 */
struct fxi_phantom_image {
	fx_array *volume;     /**< cf64 {x, y, z, frames} */
	fx_array *field_hz;   /**< f64 {x, y, z}; NULL: on resonance */
	int64_t dims[3], n_frames;
	bool is_complex;      /**< the file is */
	double te_s;          /**< between excitation and k = 0 */
	float position[3];    /**< LPS mm, centre of voxel floor(N/2) */
	int64_t n_samples;    /**< arrays in `samples` */
	fx_array **samples;   /**< cf32 {M, coils} of slice + slices (average + averages repetition); then, where coils are calibrated, of slices */
};

/**
 * Reads the image and the field map (NULL: none) and gives the job their geometry, frames, slices and, where has_matrix is
 * false, matrix. A 3-D image is a stack of slices for 2-D trajectories (and for Cartesian and random ones where as_slices).
 * FX_EINVAL for what does not go together, FX_EDATA for an image that cannot be a scan.
 */
int fxi_phantom_image_load(fxi_phantom_job *job, const char *path, const char *field_path, double te_ms, bool has_matrix,
	bool as_slices, fx_error *err);
/** Samples every frame, exactly: NUFFT in double to 1e-9, or with a field map the plain sum. After fxi_phantom_prepare. */
int fxi_phantom_image_sample(fxi_phantom_job *job, const volatile int *stop, fx_error *err);
/** The band-limited image on the job's matrix: cf64 {x, y, z} of one slice or volume; the image itself where the matrix is its own. */
int fxi_phantom_image_truth(const fxi_phantom_job *job, int64_t slice, int64_t frame, fx_math *m, fx_array **out);
/** The sampling of calibration readouts: the full set of an accelerated scan's. */
fxi_sampling fxi_phantom_calibration(const fxi_phantom_job *job);
void fxi_phantom_image_free(fxi_phantom_image *image);

#endif

/* SPDX-License-Identifier: MIT */
/* phantom_dwi.h - test scans of fibre bundles: a diffusion series, its gradient table, and the tensors behind it. */
#ifndef FORNIX_APPS_PHANTOM_DWI_H
#define FORNIX_APPS_PHANTOM_DWI_H

#include <glib.h>

#include "apps/phantom.h"
#include "diffusion/phantom_dwi.h"

struct fxi_phantom_dwi {
	fxi_dwi_object object;
	fxi_dwi_grid grid;
	int64_t n_volumes;
	fx_gradient *gradients;
	double snr;              /**< of fibres in the b0 image; 0: no noise */
	int64_t n_shots;         /**< of a volume and slice: groups of its readouts with a phase of their own */
	bool shot_phase;
	char *images;            /**< write the series itself there; NULL: not */
};

/** What was said on the command line; below 0 and NULL: not said. */
typedef struct fxi_phantom_dwi_options {
	int directions, b0s, shots, detail;
	double bvalue, snr, radius, width, height, pitch, turns, angle, length, lake, head, along, across;
	char *images;
	gboolean no_shot_phase;
} fxi_phantom_dwi_options;

fxi_phantom_dwi_options fxi_phantom_dwi_defaults(void);
/** Appends its entries. */
void fxi_phantom_dwi_entries(fxi_phantom_dwi_options *o, GArray *entries);
void fxi_phantom_dwi_options_clear(fxi_phantom_dwi_options *o);
/** True where one was given. */
bool fxi_phantom_dwi_options_given(const fxi_phantom_dwi_options *o);

/**
 * Makes job->dwi and what of the job follows from it: repetitions, slices, readouts. After the common options were read. `matrix`
 * and `fov_mm` of the volume.
 */
int fxi_phantom_dwi_load(const fxi_phantom_dwi_options *o, fx_error *err, fxi_phantom_job *job);
/** The series as the job's image, and the noise that gives the SNR. After fxi_phantom_prepare. */
int fxi_phantom_dwi_make(fxi_phantom_job *job, fx_error *err);
/** Standard deviation of a voxel's real part in fibres, where that of a sample's is 1. */
int fxi_phantom_dwi_noise(const fxi_phantom_job *job, fx_error *err, double *sigma);
/** Phase in turns and its slope (cycles/voxel of the matrix) in one shot of a slice of a volume; zeros where there is none. */
void fxi_phantom_dwi_phase(const fxi_phantom_job *job, int64_t volume, int64_t slice, int64_t shot, double *turns, double slope[3]);
/** Tensors, FA, MD, S0, bundle, labels and centre lines beside `path`, SCAN_truth.nii.gz: SCAN_truth_tensors.nii.gz and so on. */
int fxi_phantom_dwi_write_truth(const fxi_phantom_job *job, const char *path, fx_error *err);
/** The series as NIfTI with .bval and .bvec; magnitudes with Rician noise where there is an SNR. */
int fxi_phantom_dwi_write_images(const fxi_phantom_job *job, fx_error *err);
void fxi_phantom_dwi_free(fxi_phantom_dwi *dwi);

#endif

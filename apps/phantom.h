/* SPDX-License-Identifier: MIT */
/* phantom.h - what `fornix phantom` was asked for, and its parts: scan, output, truth. */
#ifndef FORNIX_APPS_PHANTOM_H
#define FORNIX_APPS_PHANTOM_H

#include <fornix/fornix.h>
#include <fornix/message.h>
#include <fornix/scan.h>

#include "recon/phantom.h"

enum fxi_object {
	FXI_OBJECT_SHEPP_LOGAN = 0, FXI_OBJECT_ELLIPSE, FXI_OBJECT_SHAPES, FXI_OBJECT_IMAGE,
	FXI_OBJECT_RING, FXI_OBJECT_CROSSING, FXI_OBJECT_HELIX /* as in enum fxi_dwi_kind */
};

/** See phantom_image.h. */
typedef struct fxi_phantom_image fxi_phantom_image;
/** See phantom_dwi.h. */
typedef struct fxi_phantom_dwi fxi_phantom_dwi;

typedef struct fxi_phantom_job {
	int object;                  /**< enum fxi_object */
	int64_t n_shapes;
	fxi_ellipsoid *shapes;       /**< of FXI_OBJECT_SHAPES */

	fxi_phantom_image *image;    /**< of FXI_OBJECT_IMAGE, and from FXI_OBJECT_RING on */
	fxi_phantom_dwi *dwi;        /**< from FXI_OBJECT_RING on */

	fxi_sampling sampling;
	int64_t n_coils, n_slices, n_repetitions, n_averages;
	bool interleaved;            /**< slices take turns readout by readout */
	bool no_flags, no_limits;    /**< leave FIRST/LAST flags, or the header's encoding limits, out */
	bool attach;                 /**< write a trajectory for Cartesian readouts too */
	bool detach;                 /**< write no trajectory for any */
	int unit;                    /**< enum fx_unit of the written trajectory */
	int columns;                 /**< of the trajectory; more than the axes are zeros */

	fxi_noise noise;
	int64_t n_noise_readouts;
	int64_t n_calibrations;      /**< readouts of one slice that calibrate its coils: the unaccelerated set; 0: none */
	double dwell_us, noise_dwell_us;
	double noise_bandwidth;      /**< of the noise readouts, relative to the nominal; 0: not told, 1 */

	double fov_mm[3], oblique_deg[3], position_mm[3], slice_spacing_mm;
	int n_threads;

	/* made by fxi_phantom_prepare */
	fxi_phantom **slices;        /**< one object a slice; one for a volume */
	fxi_coils *coils;
	int64_t encoded[3];          /**< matrix with readout oversampling */
	double encoded_fov_mm[3];
	float read_dir[3], phase_dir[3], slice_dir[3];
} fxi_phantom_job;

/** Completes a job: objects, coils, directions. FX_EINVAL for what does not go together. */
int fxi_phantom_prepare(fxi_phantom_job *job, fx_error *err);
/** Releases what prepare made, and the shapes. */
void fxi_phantom_clear(fxi_phantom_job *job);
/** Where slice s lies: centre of voxel floor(N/2), LPS mm. */
void fxi_phantom_position(const fxi_phantom_job *job, int64_t slice, float position[3]);

/* ---- output (phantom_output.c) ---- */

/** Takes readouts, as an MRD HDF5 file or an MRD stream. */
typedef struct fxi_phantom_output fxi_phantom_output;

/** `stream`: MRD's wire format instead of HDF5; "-" then is standard output. */
int fxi_phantom_output_open(const char *path, bool stream, const char *header_xml, fx_error *err,
	fxi_phantom_output **out);
int fxi_phantom_output_add(fxi_phantom_output *o, const fx_acquisition *acquisition, fx_error *err);
/** Both end its life; what is committed appears whole. */
int fxi_phantom_output_commit(fxi_phantom_output *o, fx_error *err);
void fxi_phantom_output_abandon(fxi_phantom_output *o);

/* ---- scan (phantom_header.c, phantom_scan.c) ---- */

/** The scan's MRD header; free with free(). */
int fxi_phantom_header(const fxi_phantom_job *job, fx_error *err, char **xml);
/** Readouts that the scan has, noise readouts included. */
int64_t fxi_phantom_n_readouts(const fxi_phantom_job *job);
/** Makes and writes every readout. FX_ECANCELED once *stop is not 0. */
int fxi_phantom_scan(const fxi_phantom_job *job, fxi_phantom_output *o, const volatile int *stop, fx_error *err);

/* ---- truth (phantom_truth.c) ---- */

typedef struct fxi_ceiling {
	double psnr_db, nrmse;
} fxi_ceiling;

/**
 * Writes the voxel averages as NIfTI, and says how near to them the best band-limited image comes: the inverse FFT
 * of the exact k-space on the full Cartesian matrix.
 */
int fxi_phantom_write_truth(const fxi_phantom_job *job, const char *path, fx_error *err, fxi_ceiling *ceiling);

#endif

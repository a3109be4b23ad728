/* SPDX-License-Identifier: MIT */
/* bench_fhd.h - what the two files of `fornix bench fhd` share: one problem, and one way to solve it. */
#ifndef FORNIX_APPS_BENCH_FHD_H
#define FORNIX_APPS_BENCH_FHD_H

#include <fornix/fornix.h>

#include <complex.h>

#include "apps/bench_ladder.h"

typedef struct fxi_fhd_options {
	const char *backend;
	int64_t matrix[3];
	int n_samples, n_threads;  /**< threads of the library's operations */
	int library_only;          /**< the chapter's loops take long on large matrices; an int, as GLib's boolean */
	double seconds;            /**< an operation is repeated for this long, once at least */
} fxi_fhd_options;

/** The samples and what they should become. */
typedef struct fxi_fhd {
	const fxi_fhd_options *o;
	fx_math *m;
	bool device;               /**< arrays are not the host's: kernels are timed on arrays that are there already */
	int64_t n_samples, n_voxels;
	fxi_ladder ladder;
	float *memory;             /**< of the ladder */
	fx_array *k, *mu, *wide;   /**< Mu as cf32 and cf64 */
	fx_array *there_k, *there_mu, *there_wide; /**< the same where the backend works */
	fx_array *image;           /**< the last result, on the host */
	int64_t n_checked, step;   /**< voxel i * step of each of n_checked */
	double _Complex *truth;
} fxi_fhd;

/** One way to F^H D: a loop of the chapter, a kernel of the chapter, or a method of the library. */
typedef struct fxi_fhd_rung {
	const char *name, *what;
	void (*loop)(fxi_ladder *l);
	fx_direct_plan plan;
	int method;
	double tolerance;
	bool is_double;
} fxi_fhd_rung;

typedef struct fxi_fhd_outcome {
	double wall_s, cpu_s, error, psnr_db;
	int64_t n_runs;
} fxi_fhd_outcome;

/** Makes samples and truth. On failure, explained, end it all the same. */
int fxi_fhd_begin(const fxi_fhd_options *o, fx_error *err, fxi_fhd *b);
void fxi_fhd_end(fxi_fhd *b);
/** Times one way and compares what it gives. */
int fxi_fhd_climb(fxi_fhd *b, const fxi_fhd_rung *r, fxi_fhd_outcome *out);

#endif

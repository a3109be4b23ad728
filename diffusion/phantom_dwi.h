/* SPDX-License-Identifier: MIT */
/*
 * phantom_dwi.h - fibre bundles whose diffusion tensors are known in closed form: what a test scan of them shows, volume by
 * volume, and the answer. Everything is defined in RAS millimetres about the object's centre, so that an oblique or
 * anisotropic lattice changes what is seen, not what there is.
 */
#ifndef FORNIX_DIFFUSION_PHANTOM_DWI_H
#define FORNIX_DIFFUSION_PHANTOM_DWI_H

#include <fornix/array.h>
#include <fornix/message.h>

enum fxi_dwi_kind {
	FXI_DWI_RING = 0,  /**< round z at `radius`: a torus of diameter `width`, or with `height` above 0 a shell width x height */
	FXI_DWI_CROSSING,  /**< two straight round bundles in the xy plane, `angle_deg` apart, symmetric about x */
	FXI_DWI_HELIX      /**< round z at `radius`, rising `pitch` a turn, `turns` turns about z = 0, where it crosses +x */
};

#define FXI_DWI_LABELS 4

typedef struct fxi_dwi_object {
	int kind;                /**< enum fxi_dwi_kind */
	double centre[3];        /**< RAS mm */
	double radius, width, height, pitch, length; /**< mm; `length` of straight bundles */
	double turns, angle_deg;
	double lake_mm;          /**< radius of a ball of free water beside the bundles; 0: none */
	double head_mm;          /**< radius of the cylinder of tissue that everything lies in; 0: none */
	double head_axis[3];     /**< its axis through the centre: unit vector */
	double along, across;    /**< eigenvalues of fibres, um^2/ms */
	double tissue, water;    /**< mean diffusivity of tissue and free water, um^2/ms */
	double s0_fibre, s0_tissue, s0_water;
} fxi_dwi_object;

/** Defaults of a kind in a field of view: sizes that fit, white matter 1.7 and 0.3, tissue 0.8, water 3 um^2/ms. */
void fxi_dwi_defaults(int kind, const double fov_mm[3], fxi_dwi_object *out);
/** FX_EINVAL names what cannot be: sizes not above 0, bundles that overlap themselves, negative diffusivities. */
int fxi_dwi_check(const fxi_dwi_object *o, fx_error *err);

/** What there is at a point: up to two compartments, each a share of the point. */
typedef struct fxi_dwi_point {
	int n;                   /**< 0: air */
	int bundles;             /**< how many of the compartments are fibres */
	double s0[2];            /**< share times amplitude */
	double d[2][6];          /**< xx, xy, yy, xz, yz, zz in RAS axes, um^2/ms */
	int label;               /**< end region that the point is in, from 1; 0: none */
} fxi_dwi_point;

void fxi_dwi_at(const fxi_dwi_object *o, const double x[3], double label_mm, fxi_dwi_point *out);
/** Signal of a point: sum of s0 exp(-b g^T D g), b in s/mm^2. */
double fxi_dwi_signal(const fxi_dwi_point *p, const fx_gradient *g);

/** Bundles: 1, or 2 in a crossing. */
int fxi_dwi_n_bundles(const fxi_dwi_object *o);
/** Point t (0..1) of a bundle's centre line, RAS mm. */
void fxi_dwi_centre_line(const fxi_dwi_object *o, int bundle, double t, double x[3]);

/**
 * n_b0 volumes of b = 0, spread evenly and one first, and n_directions of b along a Fibonacci half sphere about z:
 * out has n_b0 + n_directions.
 */
void fxi_dwi_gradients(int64_t n_b0, int64_t n_directions, double b, fx_gradient *out);

/* ---- on a lattice (phantom_dwi_image.c) --------------------------------------------------------- */

/** Means over detail^3 points of every voxel, of the signal, never of tensors. */
typedef struct fxi_dwi_grid {
	fx_lattice lattice;
	int detail;
	int n_threads;
} fxi_dwi_grid;

/** The series, f32 {x, y, z, volumes} (new). */
int fxi_dwi_series(const fxi_dwi_object *o, const fxi_dwi_grid *grid, const fx_gradient *gradients, int64_t n, fx_error *err,
	fx_array **out);

/** The answer; f32 {x, y, z}, tensors {x, y, z, 6}, bundle and labels u8; 0 where there is no signal. */
typedef struct fxi_dwi_truth {
	fx_array *tensors;       /**< mean over what there is in the voxel, weighted with s0: the slope of its signal at b = 0 */
	fx_array *fa, *md, *s0;
	fx_array *bundle;        /**< 1 where the whole voxel is in one bundle, and in nothing else */
	fx_array *labels;        /**< end regions: ring 1, 2, 3 at 0, 90 and 180 degrees from +x; others two a bundle, first and last end */
} fxi_dwi_truth;

int fxi_dwi_truth_new(const fxi_dwi_object *o, const fxi_dwi_grid *grid, fx_error *err, fxi_dwi_truth *out);
void fxi_dwi_truth_clear(fxi_dwi_truth *t);

/**
 * Directions as FSL's bvecs hold them: in the image's index axes, x negated where the affine's determinant is positive. Text of
 * three rows, and bvals of one; free both with free().
 */
int fxi_dwi_fsl_texts(const fx_gradient *gradients, int64_t n, const fx_lattice *lattice, fx_error *err, char **bvals,
	char **bvecs);

#endif

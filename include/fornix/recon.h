/* SPDX-License-Identifier: MIT */
/*
 * recon.h - the operators of iterative non-Cartesian reconstruction, backend-neutral.
 *
 * Conventions: forward e^{-i2pi k.x}, adjoint +; x in voxels from the image centre floor(N/2); k in
 * cycles/voxel (f64 {3, M}); F = scale * sum, scale = 1/sqrt(voxels of the nominal matrix).
 * Shapes: image {x, y, z, coils}, samples {M, coils}. Failures are explained in m->err.
 */
#ifndef FORNIX_RECON_H
#define FORNIX_RECON_H

#include <fornix/array.h>
#include <fornix/backend.h>
#include <fornix/message.h>
#include <fornix/scan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the Fourier operator F ---------------------------------------------------------------- */

/** Direct and separable sums are exact; separable ones are matrix products, many times faster on all but lines. */
enum fx_fourier_method { FX_FOURIER_DIRECT = 0, FX_FOURIER_NUFFT, FX_FOURIER_SEPARABLE };

typedef struct fx_fourier_spec {
	int method;        /**< enum fx_fourier_method */
	int type;          /**< FX_CF32, FX_CF64 */
	double tolerance;  /**< NUFFT: relative l2 error; 1e-2..1e-6 in single, to 1e-9 in double */
	int64_t dims[3];   /**< image matrix; axes of 1 are not transformed */
	double scale;      /**< factor in front of the sum */
	bool real_samples; /**< adjoint of real weights only (Q): samples are f32/f64 */
	fx_direct_plan direct; /**< which kernel of the chapter's ladder the adjoint takes: FX_FOURIER_DIRECT in cf32 only */
} fx_fourier_spec;

/** "auto", "scatter", ... as in fhd.kernel; NULL where there is no such kernel. */
FX_EXPORT const char *fx_direct_kernel_name(int kernel);
/** The cache's key of a plan tuned for where this handle computes and images of about this size. */
FX_EXPORT int fx_direct_tuned_key(fx_math *m, const int64_t dims[3], char key[80]);
/** A plan as an array (new), to be kept in the cache, and back; false where it holds none. */
FX_EXPORT int fx_direct_plan_pack(const fx_direct_plan *plan, fx_array **out);
FX_EXPORT bool fx_direct_plan_unpack(const fx_array *packed, fx_direct_plan *plan);

typedef struct fx_fourier fx_fourier;

FX_EXPORT int fx_fourier_new(fx_math *m, const fx_fourier_spec *spec, fx_fourier **out);
FX_EXPORT void fx_fourier_free(fx_fourier *f);
/** Bytes that one accumulator of n_coils takes, plus what finishing needs on top. */
FX_EXPORT int64_t fx_fourier_bytes(const fx_fourier *f, int64_t n_coils);
/** The oversampled grid of a NUFFT, f's own; NULL for the exact sums. */
FX_EXPORT const fx_fine_grid *fx_fourier_grid(const fx_fourier *f);

/* Trajectories, samples that come in and weights are on the host, where readouts arrive; images, and what F gives, are the backend's. */

/** F^H on a whole trajectory. *image (new) is {x, y, z, coils}. */
FX_EXPORT int fx_fourier_adjoint(fx_fourier *f, const fx_array *k, const fx_array *samples, fx_array **image);
/** F on a whole trajectory. *samples (new) is {M, coils}. */
FX_EXPORT int fx_fourier_forward(fx_fourier *f, const fx_array *k, const fx_array *image, fx_array **samples);

/**
 * F^H piece by piece, while readouts arrive. Pieces are gathered into chunks of a fixed number of
 * samples, so that the result does not depend on how the caller cuts them.
 */
typedef struct fx_accumulator fx_accumulator;
FX_EXPORT int fx_accumulator_new(fx_fourier *f, int64_t n_coils, fx_accumulator **out);
/** Adds samples {M, coils}, each multiplied by weights[m] where weights is not NULL. Borrows all. */
FX_EXPORT int fx_accumulator_add(fx_accumulator *a, const fx_array *k, const fx_array *samples,
	const fx_array *weights);
/** The sum so far as an image (new); ends the accumulator's life, also on failure. */
FX_EXPORT int fx_accumulator_finish(fx_accumulator *a, fx_array **image);
FX_EXPORT void fx_accumulator_free(fx_accumulator *a);

/* ---- voxel function ------------------------------------------------------------------------- */

enum fx_voxel { FX_VOXEL_DELTA = 0, FX_VOXEL_BOX };

/** phi(k) = prod sinc(k_d) for a box voxel (phi(0) = 1), 1 for delta; axes where `dims` is 1 count 1. cf32 {M}. */
FX_EXPORT int fx_voxel_function(fx_math *m, int voxel, const fx_array *k, const int64_t dims[3], fx_array **phi);
/**
 * Mu = conj(phi) D in place over samples {M, coils}; *phi2 (new) = |phi|^2 {M}; *norm2 = ||D||^2.
 * phi NULL means 1: only the norm is taken and *phi2 is NULL.
 */
FX_EXPORT int fx_apply_mu(fx_math *m, const fx_array *phi, fx_array *samples, fx_array **phi2, double *norm2);

/* ---- the normal operator -------------------------------------------------------------------- */

/**
 * The Toeplitz operator of F^H F: the spectrum of Q[n] = scale^2 sum_m |phi_m|^2 e^{i2pi k_m.n} on the
 * doubled grid (axes of 1 stay 1), f32. phi2 NULL means 1. Any method and N, even or odd.
 */
FX_EXPORT int fx_toeplitz_kernel(fx_math *m, int method, double tolerance, const int64_t dims[3], double scale,
	const fx_array *k, const fx_array *phi2, fx_array **kernel);
/** The same piece by piece: an fx_fourier of this spec accumulates Q, and this turns it into the kernel. */
FX_EXPORT fx_fourier_spec fx_toeplitz_spec(int method, double tolerance, const int64_t dims[3], double scale);
/** What such an accumulator is given for n samples: |phi|^2 {n}, real, in the spec's precision; phi2 NULL means 1. */
FX_EXPORT int fx_toeplitz_samples(fx_math *m, const fx_fourier_spec *spec, int64_t n, const fx_array *phi2,
	fx_array **samples);
FX_EXPORT int fx_toeplitz_from_q(fx_math *m, fx_array *q_take, fx_array **kernel);
/** A complex volume of the backend's (given away) in single precision; what was made in double goes by way of the host. */
FX_EXPORT int fx_to_single(fx_math *m, fx_array *take, fx_array **out);
/** A digest (64 hex digits and a NUL) of trajectory, phi2, matrix, method, tolerance and scale. */
FX_EXPORT void fx_toeplitz_digest(int method, double tolerance, const int64_t dims[3], double scale,
	const fx_array *k, const fx_array *phi2, char digest[65]);

/**
 * y = (sum_c conj(S_c) T S_c + lambda_abs W^H W) x, x and y {x, y, z}; maps NULL: one coil, S = 1. W is I where
 * `w` (fx_prior_weights) is NULL.
 * `work` holds coil images between calls: pass the address of a NULL pointer, unref it at the end.
 */
FX_EXPORT int fx_normal_apply(fx_math *m, const fx_array *kernel, const fx_array *maps, const fx_array *w,
	double lambda_abs, const fx_array *x, fx_array **work, fx_array *y);
/** lambda times the mean eigenvalue of F^H F: (scale^2 phi2_sum) * mean over the grid of sum_c |S_c|^2 (1 without maps). */
FX_EXPORT int fx_lambda_absolute(fx_math *m, const fx_frame *frame, double *lambda_abs);

/* ---- conjugate gradients -------------------------------------------------------------------- */

typedef struct fx_cg_options {
	int64_t iterations;
	double tolerance;   /**< stop at ||A x - b|| <= tolerance ||b||; 0 runs all iterations */
	/** *value = x^H W^H W x, for the data residual; NULL: x^H x. Called with fx_cg_solve's `arg`. */
	int (*penalty)(void *arg, const fx_array *x, double *value);
	/** What `apply` applies, for backends that iterate by themselves (cg_steps); NULL: through `apply` alone. */
	const fx_normal *normal;
} fx_cg_options;

typedef struct fx_cg_report {
	int64_t iterations;
	int stop;                     /**< enum fx_stop */
	int64_t n_residuals;          /**< iterations + 1 */
	double *residual_normal;      /**< ||A x - b|| / ||b|| before the first and after each iteration */
	double *residual_data;        /**< ||F x - D|| / ||D|| likewise; NaN where data_norm2 is 0 */
} fx_cg_report;

/**
 * Solves A x = b (Hestenes-Stiefel; A Hermitian positive definite through `apply`). x holds the start and
 * receives the solution. data_norm2 is ||D||^2, lambda_abs (times options->penalty) what A contains of the prior: only for
 * the data residual rho^H F^H F rho - 2 Re rho^H F^H D + ||D||^2.
 * Non-finite numbers or curvature <= 0 stop it with FX_EDATA and a sentence. Free the report's arrays with fx_cg_report_free.
 */
FX_EXPORT int fx_cg_solve(fx_math *m, int (*apply)(void *arg, const fx_array *x, fx_array *y), void *arg,
	const fx_array *b, double lambda_abs, double data_norm2, const fx_cg_options *options, fx_array *x,
	fx_cg_report *report);
FX_EXPORT void fx_cg_report_free(fx_cg_report *r);

/* ---- one frame's normal equations -------------------------------------------------------------- */

/** b {x,y,z} (new) = sum_c conj(S_c) (F^H D)_c. */
FX_EXPORT int fx_frame_right_side(fx_math *m, const fx_frame *frame, fx_array **b);
/**
 * fx_cg_solve with the frame's kernel, maps and weights and this absolute lambda. data_norm2 as there; options->penalty is
 * set here. FX_EINVAL where the frame has no kernel, or several coils and no maps.
 */
FX_EXPORT int fx_frame_solve(fx_math *m, const fx_frame *frame, double lambda_abs, double data_norm2, const fx_array *b,
	const fx_cg_options *options, fx_array *x, fx_cg_report *report);

/* ---- the anatomical prior (Haldar, Hernando, Song, Liang, Magn. Reson. Med. 59:810, 2008) -------- */

/**
 * Weights of ||W rho||^2 = sum over neighbour pairs of w_nm |rho_n - rho_m|^2 from a real reference {x,y,z} on the host:
 * w = c / (1 + (|r_n - r_m| / (edge s))^2), small where the reference has an edge (the diffusivity of Perona and Malik,
 * IEEE Trans. Pattern Anal. Mach. Intell. 12:629, 1990, in the place of Haldar's line sites). s is the reference's range
 * without the lowest and the highest 1 % of its voxels (all of it where that is 0): bright specks and the reference's
 * own scale do not matter. c makes the mean diagonal of W^H W 1, as I's is: equal lambda is comparable strength.
 * *weights (new, where the backend works) is f32 {x,y,z,3}, see the backend's difference_normal. *range tells s.
 * A reference that is constant gives a plain Laplacian. FX_EDATA where it is not finite.
 */
FX_EXPORT int fx_prior_weights(fx_math *m, const fx_array *reference, double edge, fx_array **weights, double *range);
/** y += factor W^H W x; factor x where `w` is NULL. */
FX_EXPORT int fx_prior_apply(fx_math *m, const fx_array *w, double factor, const fx_array *x, fx_array *y);

/** Voxel indices of the frame's grid to RAS millimetres; false where the scan header has no usable geometry. */
FX_EXPORT bool fx_frame_affine(const fx_frame *frame, double affine[3][4]);
/**
 * out (new, f32 on the host) on `dims` voxels with `out_affine`: the volume (f32 {x,y,z} on the host, voxel index to RAS
 * mm by `affine`) at each voxel, trilinear; where its voxels are finer it is averaged over the voxel, at evenly spaced points. A
 * linear ramp comes out exactly. Beyond its edge the nearest value is taken; *inside is the share of voxels whose centre lies
 * within. FX_EDATA where an affine cannot be inverted.
 */
FX_EXPORT int fx_resample_affine(fx_math *m, const fx_array *volume, double affine[3][4], const int64_t dims[3],
	double out_affine[3][4], fx_array **out, double *inside);

/* ---- what the linear estimate does: noise and resolution ------------------------------------------ */

/** How the predictions below solve their systems, and what noise they are about. */
typedef struct fx_predict_options {
	double noise_sigma;    /**< standard deviation of the real and of the imaginary part of a sample, white over coils */
	int64_t n_probes;      /**< noise realisations */
	uint64_t seed;
	int64_t iterations;    /**< of each system, at most */
	double tolerance;
} fx_predict_options;

/**
 * Noise realisations as F^H sees them: right[p] (new) = sum_c conj(S_c) F^H n, with the frame's trajectory, voxel function
 * and coil maps. Free with fx_arrays_free.
 */
FX_EXPORT int fx_predict_noise(fx_math *m, const fx_frame *frame, const fx_predict_options *options, fx_array ***right);
FX_EXPORT void fx_arrays_free(fx_array **list, int64_t n);
/**
 * sigma (new, f32 {x,y,z} on the host): the standard deviation of the real part of A^-1 F^H n at each voxel, from `right`:
 * sqrt(diag(A^-1 A0 A^-1)) noise_sigma with A0 = sum_c conj(S_c) F^H F S_c, to about 1/sqrt(2 n_probes) relative at one
 * voxel. (Robson et al., Magn. Reson. Med. 60:895, 2008: pseudo replicas.) For the converged estimate.
 */
FX_EXPORT int fx_predict_sigma(fx_math *m, const fx_frame *frame, double lambda_abs, const fx_predict_options *options,
	fx_array *const *right, fx_array **sigma);
/**
 * width (new, f32 {x,y,z} on the host): how wide the estimate makes a point, in mm (voxels where the field of view is
 * unknown). The response p = A^-1 A0 delta has the energy width E = (sum |p|^2 / |p_0|^2)^(1/d) voxels; given is the FWHM of a
 * Gaussian of that energy width, 2 sqrt(2 ln 2 / pi) E. Points are taken at once, 8 voxels apart, with random signs, and
 * again between them along each axis; a voxel has the value of the nearest point. NaN-free: where p_0 is 0 the width is 0.
 */
FX_EXPORT int fx_predict_resolution(fx_math *m, const fx_frame *frame, double lambda_abs, const fx_predict_options *options,
	fx_array **width);
/** Voxels of a magnitude (real, host) above a fifth of its 98th percentile: u8 {x,y,z} (new). *n tells how many. */
FX_EXPORT int fx_object_mask(fx_math *m, const fx_array *magnitude, fx_array **mask, int64_t *n);
/** Root of the mean over the mask of sigma^2; over everything where mask is NULL. */
FX_EXPORT double fx_mean_sigma(const fx_array *sigma, const fx_array *mask);

/**
 * The smallest lambda (relative, 1e-6 to 1e3) whose predicted noise in the mask is at most `target`, to 2 %: down from
 * 1 by factors of 4 (or up, where 1 is too noisy), then bisection of log lambda, all with the same noise. `step` (may be NULL)
 * hears of each lambda tried and its noise. FX_EDATA where 1e3 does not reach the target.
 */
FX_EXPORT int fx_lambda_for_sigma(fx_math *m, const fx_frame *frame, double target, const fx_array *mask,
	const fx_predict_options *options, void (*step)(void *arg, double lambda, double sigma), void *arg, double *lambda);

/* ---- density compensation ------------------------------------------------------------------- */

/** True where the trajectory's kind has a closed form that fx_density_analytic knows. */
FX_EXPORT bool fx_density_has_analytic(const fx_encoding *encoding, const int64_t dims[3]);
/**
 * Closed-form weights of one readout (f32 {samples}): k-space area or volume of each sample in Cartesian
 * cells, given that `n_readouts` such readouts, uniform in angle, make the frame. Radial (2-D and 3-D; full, half or
 * asymmetric spokes, inwards or outwards, wherever the centre lies between samples) and spiral (2-D, in or out) readouts
 * are recognised by their shape; *out is NULL where this one is neither. Voxels are taken to be isotropic.
 */
FX_EXPORT int fx_density_analytic(fx_math *m, const fx_array *k, const int64_t dims[3], int64_t n_readouts,
	fx_array **out);
/**
 * Pipe & Menon 1999: w <- w a / (w conv kernel), where `a` is the kernel's mass within the covered k-space. Weights
 * (f32 {M}) are k-space area or volume in Cartesian cells: a fully sampled Cartesian grid gives 1 everywhere, and samples
 * that lie far apart do not stand for the void between them. FX_EDATA where k is not finite.
 */
FX_EXPORT int fx_density_iterative(fx_math *m, const fx_array *k, const int64_t dims[3], int64_t n_iterations,
	fx_array **weights);

/* ---- coils ---------------------------------------------------------------------------------- */

/** Walsh maps of coil images {x,y,z,c}, normalised to sum |S|^2 = 1, phase relative to the strongest coil. */
FX_EXPORT int fx_coil_maps_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array **maps);

typedef struct fx_espirit_options {
	int64_t calibration_size; /**< samples an axis of the centre of k-space; fewer where the matrix is smaller */
	int64_t kernel_size;      /**< samples an axis of a kernel; likewise */
	double threshold;         /**< singular values of the calibration matrix above this share of the largest span the signal */
	double crop;              /**< maps are 0 where the eigenvalue, 0..1, is below this; 0 crops nothing */
} fx_espirit_options;

/**
 * ESPIRiT maps (Uecker et al., Magn. Reson. Med. 71:990, 2014) of coil images {x,y,z,c} whose k-space is right at its
 * centre: at each voxel the eigenvector of the largest eigenvalue of the kernels' image-domain matrix. Norm and phase as
 * Walsh's; where there is no signal the eigenvalue is small, and the crop makes maps 0. One coil: 1 everywhere. Images that
 * are 0: 0. Takes 4 n^2 complex numbers for n = (kernel samples) x coils, beyond which FX_EINVAL or FX_ENOMEM say what to do;
 * FX_EDATA where something is not finite or the centre of k-space is 0.
 */
FX_EXPORT int fx_coil_maps_espirit(fx_math *m, const fx_array *coils, const fx_espirit_options *options, fx_array **maps);
/** image {x,y,z} (new) = sum conj(S) I / sum |S|^2; root of the sum of squares where maps is NULL. */
FX_EXPORT int fx_coils_to_image(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array **image);
/**
 * Whitening matrix cf32 {n, n} L^{-1} of a noise covariance cf64 {n, n} (C = L L^H, C_ab = E[x_a conj(x_b)]).
 * FX_EDATA with a sentence where C is not positive definite (a dead or duplicated coil: named).
 */
FX_EXPORT int fx_whitening_matrix(fx_math *m, const fx_array *covariance, fx_array **matrix);
/**
 * Compression matrix cf32 {n_in, n_out} from a Gram matrix cf64 {n, n} of the data: principal components.
 * n_keep > 0 keeps that many; else the fewest that hold `energy` (0..1] of the total. *kept_energy tells what is held.
 */
FX_EXPORT int fx_compression_matrix(fx_math *m, const fx_array *gram, int64_t n_keep, double energy, fx_array **matrix,
	double *kept_energy);
/** gram cf64 {n, n} += X^H X of samples {M, n}: gram[a + n b] += sum_m x_ma conj(x_mb). */
FX_EXPORT int fx_gram_add(fx_math *m, const fx_array *samples, fx_array *gram);

/* ---- gridding, the baselines ---------------------------------------------------------------- */

enum fx_grid_kernel { FX_GRID_CONVOLUTION = 0, FX_GRID_BILINEAR };

/**
 * Gridding and an inverse FFT: convolution (the NUFFT at 1e-3: a kernel about four cells wide, 2x oversampled,
 * deapodised, as Beatty et al. 2005 advise) or the chapter's bilinear interpolation onto the matrix itself, without
 * deapodisation. k-space is periodic. image (new) is {x, y, z, coils}; weights NULL means 1.
 */
FX_EXPORT int fx_grid_image(fx_math *m, int kernel, const int64_t dims[3], double scale, const fx_array *k,
	const fx_array *samples, const fx_array *weights, fx_array **image);

/* ---- units of a trajectory ------------------------------------------------------------------ */

enum fx_unit { FX_UNIT_AUTO = 0, FX_UNIT_CYCLES_PER_VOXEL, FX_UNIT_RAD_PER_VOXEL, FX_UNIT_CYCLES_PER_FOV, FX_UNIT_PER_M };
FX_EXPORT const char *fx_unit_name(int unit);

/**
 * Decides the one unit of a trajectory from the largest |k| of each axis; axes where the matrix is 1 do not count.
 * Candidates are the units in which the best-filled axis reaches 0.3 to 1.2 of its Nyquist frequency (1/m only where
 * the fields of view are known); the one nearest to 1 in ratio is it. FX_EDATA, with every unit's filling listed, where
 * none is a candidate, or where the next one is not further from 1 by a factor of 1.5.
 */
FX_EXPORT int fx_unit_decide(fx_math *m, const double max_abs[3], const int64_t matrix[3], const double fov_mm[3],
	int *unit);
/** Factor that turns a value in `unit` into cycles/voxel along `axis`; NaN where it needs a field of view that is 0. */
FX_EXPORT double fx_unit_factor(int unit, int axis, const int64_t matrix[3], const double fov_mm[3]);

/** Widens max_abs (the file's unit) by one readout's first n_axes columns. FX_EDATA where one is not a finite number. */
FX_EXPORT int fx_trajectory_extent(fx_math *m, const fx_acquisition *a, int n_axes, double max_abs[3]);
/**
 * Sets a->k (cycles/voxel of `matrix`, which has the encoded field of view) and a->matrix from a->traj in `unit`. Axes of
 * one voxel, and columns beyond n_axes, give 0.
 */
FX_EXPORT int fx_trajectory_convert(fx_math *m, fx_acquisition *a, const fx_encoding *encoding, int unit, int n_axes,
	const int64_t matrix[3]);
/**
 * Sets a->k, a->matrix and weights of one cell a sample (FX_DENSITY_CELLS) of a Cartesian line, from center_sample and the
 * step counters. k = 0 is the limits' centre where the encoding is Cartesian; elsewhere the limits count other things, and
 * k = 0 is step floor(N/2). `matrix` as above. FX_EDATA where the line does not fit the encoded matrix.
 */
FX_EXPORT int fx_trajectory_cartesian(fx_math *m, fx_acquisition *a, const fx_encoding *encoding, const int64_t matrix[3]);
/** Drops samples beyond +-1/2 cycles/voxel (a margin of 1e-5 allows for rounding); a->n_outside tells how many. */
FX_EXPORT int fx_trajectory_keep_inside(fx_math *m, fx_acquisition *a);
/** The smallest matrix with the encoded field of view that holds max_abs; grown evenly, so that the centre stays. */
FX_EXPORT void fx_trajectory_grow(const fx_encoding *encoding, int unit, const double max_abs[3], int64_t matrix[3]);

/* ---- frames: which readouts make one image --------------------------------------------------- */

enum fx_partial { FX_PARTIAL_EMIT = 0, FX_PARTIAL_REFUSE };

/**
 * Sorts readouts into frames. Encodings, slices, contrasts, phases, repetitions and sets separate frames; segments and
 * averages accumulate, unless split_averages or split_segments says otherwise. A frame is complete
 * - on a LAST flag: LAST_IN_SLICE ends the readout's own frame (but not at the end of an average that, by the limits, is
 *   not the last one); LAST_IN_PHASE, SET and CONTRAST end it and the frames of the same phase, set or contrast that
 *   have as many readouts; LAST_IN_REPETITION ends the repetition's frames, LAST_IN_MEASUREMENT all;
 * - else at the count of the encoding limits (steps and averages; times the segments where these repeat positions).
 *   Limits are believed while the counters stay inside them and fill each position once, and not at all where they
 *   count 1, the header states an acceleration, or FIRST or LAST flags are in use;
 * - else when the phase or set moves on within its slice and contrast. A repetition that moves on ends a frame always;
 * - else when the input ends.
 * With readouts_per_frame > 0 frames are counted instead, for every slice, contrast, phase and set of its own and on
 * across repetitions, and with 0 < frame_step < readouts_per_frame they overlap (sliding window).
 */
typedef struct fx_framer fx_framer;

typedef struct fx_framer_options {
	int64_t readouts_per_frame; /**< 0: by flags, limits and counters */
	int64_t frame_step;         /**< readouts between the starts of counted frames; 0: readouts_per_frame */
	int64_t max_open;           /**< frames that may be open at once; 0: 256 */
	bool split_averages;        /**< averages make frames of their own too, instead of accumulating */
	bool split_segments;        /**< likewise segments */
} fx_framer_options;

/** What the framer says of one readout. */
typedef struct fx_framed {
	int64_t n_frames;   /**< open frames it belongs to (1, or several in a sliding window) */
	int64_t *frames;    /**< their ids, borrowed until the next call */
	int64_t n_closed;   /**< frames that are complete now, this readout included where it belongs */
	int64_t *closed;    /**< their ids, in order */
	int64_t n_before;   /**< of `closed`, how many the first ended before this readout, by a counter that moved on */
} fx_framed;

FX_EXPORT int fx_framer_new(const fx_header *scan, const fx_framer_options *options, fx_error *err, fx_framer **out);
FX_EXPORT void fx_framer_free(fx_framer *f);
/**
 * True for readouts that are no part of an image: noise, calibration only, navigation, dummy, feedback, phase correction,
 * phase stabilisation, surface coil correction.
 */
FX_EXPORT bool fx_is_auxiliary(const ISMRMRD_AcquisitionHeader *head);
/**
 * A readout's value of the diffusion dimension (enum fx_diffusion_dimension), where that is one by which frames are not
 * told apart anyway and for which MRD's image header has no place: average, segment, user_0 to user_7. Else -1.
 */
FX_EXPORT int64_t fx_diffusion_counter(int dimension, const ISMRMRD_AcquisitionHeader *head);
/** True for readouts that serve coil calibration alone. */
FX_EXPORT bool fx_is_calibration(const ISMRMRD_AcquisitionHeader *head);
/**
 * Places one imaging readout. FX_EDATA where it belongs to a frame that is already complete, too many are open, or the
 * header has no such encoding; the framer is then good for fx_framer_end only.
 */
FX_EXPORT int fx_framer_add(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, fx_error *err, fx_framed *out);
/**
 * End of input: what is still open, in order of opening, and whether each is known to be short of readouts: of its count,
 * of the limits', or of what the last frame had that a flag ended. Open sliding windows are left out where all their
 * readouts lie in a window that is complete or reported. Free *partial with fx_free.
 */
FX_EXPORT int fx_framer_end(fx_framer *f, fx_error *err, fx_framed *out, bool **partial);
/** How many readouts a frame of this encoding is expected to have, by the limits or the option; 0 where unknown. */
FX_EXPORT int64_t fx_framer_expected(const fx_header *scan, int64_t encoding, const fx_framer_options *options);

/* ---- readouts and frames, for gadgets -------------------------------------------------------- */

/**
 * Keeps samples [first, first + count) of a readout in data, traj, k and weights, and makes the header agree
 * (number_of_samples, center_sample; discard_pre and discard_post become 0). Arrays are replaced, never written to.
 */
FX_EXPORT int fx_readout_crop(fx_math *m, fx_acquisition *a, int64_t first, int64_t count);
/** Applies discard_pre and discard_post. FX_EDATA where they leave less than nothing. */
FX_EXPORT int fx_readout_trim(fx_math *m, fx_acquisition *a);

/** FX_EDATA, naming readout, coil and sample, where a sample is not a finite number. */
FX_EXPORT int fx_readout_finite(fx_math *m, const fx_acquisition *a);

/** A frame being collected. `frame` is the payload of `msg`; `user` belongs to whoever collects. */
typedef struct fx_open_frame {
	fx_msg *msg;
	fx_frame *frame;
	void *user;
	int64_t matrix[3];         /**< the encoded matrix: grid before fov_factor, what 1/cell means for weights */
	int density;               /**< enum fx_density, the same for all its readouts */
	int64_t density_iterations;
	int64_t n_samples;
	int64_t n_pieces;          /**< readouts so far; k, weights, phi2 and (when kept) samples of each follow */
	int64_t capacity;
	fx_array **k, **weights, **phi2, **samples;
	int64_t n_parts, parts_capacity;
	uint32_t *parts;           /**< EPI: the segments (and averages) seen, each once */
	bool several_stamps;       /**< its readouts differ in acquisition_time_stamp, or have none */
} fx_open_frame;

/** What a collector calls. `add` and `close` may be NULL; `close` owns open->msg (set to NULL what it takes). */
typedef struct fx_collect_ops {
	int (*begin)(void *arg, fx_open_frame *open, const fx_acquisition *a);
	int (*add)(void *arg, fx_open_frame *open, const fx_acquisition *a, const fx_array *phi2);
	int (*close)(void *arg, fx_open_frame *open);
	void (*discard)(void *arg, fx_open_frame *open); /**< frees `user`; also after close. May be NULL */
} fx_collect_ops;

typedef struct fx_collect_options {
	fx_framer_options framer;
	int partial;               /**< enum fx_partial: what a frame cut short becomes */
	bool keep_samples;         /**< keep every readout's samples, not only where weights are not yet known */
	double fov_factor;         /**< 1..2: grid = ceil(matrix * fov_factor), even growth */
	bool need_k;               /**< refuse readouts that have not been through `trajectory` */
} fx_collect_options;

/**
 * Collects readouts into frames: fx_framer decides which, this keeps the pieces, makes the frame's geometry, grid,
 * trajectory, weights (iterative ones when the frame is whole) and norms.
 */
typedef struct fx_collector fx_collector;
FX_EXPORT int fx_collector_new(fx_math *m, const fx_header *scan, const fx_collect_options *options,
	const fx_collect_ops *ops, void *arg, fx_collector **out);
FX_EXPORT void fx_collector_free(fx_collector *c);
/**
 * One readout (borrowed). Calibration readouts make frames of their own, one a slice, which close before the next
 * imaging readout. Other auxiliary readouts are the caller's business.
 */
FX_EXPORT int fx_collector_add(fx_collector *c, const fx_acquisition *a, const fx_array *phi2, double norm2);
/**
 * End of input: closes what is open. With input_cut all of it was cut short, else what is known to lack readouts. *n_partial
 * tells how many were.
 */
FX_EXPORT int fx_collector_end(fx_collector *c, bool input_cut, int64_t *n_partial);

/**
 * Bytes that a frame takes where this handle computes, from its first sample to its image, given what its running sums take
 * (fx_fourier_bytes).
 */
FX_EXPORT double fx_plan_bytes(fx_math *m, const fx_frame *frame, double sums_bytes);
/** FX_ENOMEM, saying how much is needed and what to change, where that many bytes are not to be had. Allocates nothing. */
FX_EXPORT int fx_plan_check(fx_math *m, const fx_frame *frame, double bytes);

/**
 * An image message (new) of a volume {x,y,z,channels} that lies on `frame`'s grid: cropped about the centre to
 * geometry.matrix, with header and geometry from the frame. Any type.
 */
FX_EXPORT int fx_frame_image(fx_math *m, const fx_frame *frame, const fx_array *volume, fx_msg **out);
/** Makes an image's header agree with its data: version, type, matrix, channels, complex or magnitude. */
FX_EXPORT void fx_image_describe(fx_image *image);
/** Crops or zero-pads the first three axes about the centre voxel floor(N/2). *out is new (or a reference where nothing changes). */
FX_EXPORT int fx_resize_centred(fx_math *m, const fx_array *a, const int64_t dims[3], fx_array **out);
/** Joins pieces along their last axis ({d, samples} or {samples}); NULL pieces are not allowed. */
FX_EXPORT int fx_join(fx_math *m, fx_array *const *pieces, int64_t n, fx_array **out);
/** Joins samples {M_i, coils} into {M, coils}. */
FX_EXPORT int fx_join_samples(fx_math *m, fx_array *const *pieces, int64_t n, fx_array **out);

#ifdef __cplusplus
}
#endif
#endif

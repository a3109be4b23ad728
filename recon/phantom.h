/* SPDX-License-Identifier: MIT */
/*
 * phantom.h - objects whose k-space is known in closed form, seen by coils whose maps keep it closed, sampled
 * anywhere: test scans with a known answer.
 *
 * Conventions of recon.h: x in voxels from the centre of voxel floor(N/2), k in cycles/voxel, forward e^{-i2pi k.x}.
 * A sample is D(k) = scale * integral of object * coil map * e^{-i2pi k.x} over voxel volumes, so scale =
 * 1/sqrt(voxels) makes an orthonormal inverse FFT of a full Cartesian matrix give the object's own amplitude.
 */
#ifndef FORNIX_RECON_PHANTOM_H
#define FORNIX_RECON_PHANTOM_H

#include <fornix/array.h>
#include <fornix/base.h>

/* ---- objects (phantom_shapes.c) --------------------------------------------------------------- */

/** An ellipse (2-D: the third axis is ignored) or ellipsoid as a user writes it, in halves of the field of view. */
typedef struct fxi_ellipsoid {
	double amplitude;
	double centre[3];     /**< -1..1 spans the field of view */
	double half_axes[3];  /**< above 0 */
	double angle_deg[3];  /**< turns about z, then the new x, then the new z (Euler z-x-z); 2-D: the first alone */
} fxi_ellipsoid;

/** The image of the unit ball (disc) under x = centre + sum_a u_a axis[a], in voxels. */
typedef struct fxi_shape {
	double amplitude;
	double centre[3];
	double axis[3][3];
} fxi_shape;

typedef struct fxi_phantom {
	int n_dims;           /**< 2 or 3; a 2-D object is one voxel thick */
	int64_t n_shapes;
	fxi_shape *shapes;    /**< amplitudes add where shapes overlap */
} fxi_phantom;

/** Places a list on a matrix. FX_EINVAL for a half axis not above 0 or a value that is not finite. */
int fxi_phantom_new(int n_dims, const int64_t matrix[3], const fxi_ellipsoid *list, int64_t n, fx_error *err,
	fxi_phantom **out);
/**
 * The high-contrast Shepp-Logan head, amplitudes 0..1. 2-D: the ellipses of Shepp & Logan 1974 with the amplitudes of
 * Toft 1996 (table B.3). 3-D: ten ellipsoids over the same plan, in the manner of Kak & Slaney 1988 (table 3.2).
 */
int fxi_phantom_shepp_logan(int n_dims, const int64_t matrix[3], fx_error *err, fxi_phantom **out);
/** The plane z (voxels) through a 3-D phantom, as a 2-D phantom: cuts of ellipsoids are ellipses. */
int fxi_phantom_slice(const fxi_phantom *whole, double z, fx_error *err, fxi_phantom **out);
void fxi_phantom_free(fxi_phantom *p);

/** The amplitude at a point (boundaries count as inside). */
double fxi_phantom_at(const fxi_phantom *p, const double x[3]);
/**
 * Voxel averages, f32 {x, y, z} over `matrix`: exact along x (chords cut into voxels), midpoint rule with 16 x 16 lines a
 * voxel in y and z (2-D: 64 in y). Voxels that no boundary crosses are exact; on a boundary the error is up to 1e-2 of
 * the step in amplitude and 1e-3 root mean square (2-D: 2e-3 and 5e-4), far below what band limitation costs.
 */
int fxi_phantom_truth(const fxi_phantom *p, const int64_t matrix[3], int n_threads, fx_error *err, fx_array **out);

/* ---- coils (phantom_coils.c) ------------------------------------------------------------------ */

#define FXI_COIL_WAVES 8

/**
 * Coil maps S_c(x) = sum_j U_cj e^{i2pi q_j.x} / sqrt(J) with orthonormal columns of U, so that sum_c |S_c|^2 = 1
 * everywhere and a coil's k-space is a sum of J shifted transforms of the object. Coils sit on a ring (2-D) or a
 * sphere around the field of view, each brightest on its own side, with phases of their own.
 */
typedef struct fxi_coils {
	int64_t n_coils;
	int n_waves;                     /**< J: 1, 2, 4 or 8, at most n_coils */
	double q[FXI_COIL_WAVES][3];     /**< cycles/voxel */
	fx_cf64 *mix;                    /**< U: n_coils rows of n_waves */
} fxi_coils;

/** n_coils from 1 to 1024. One coil is S = 1. */
int fxi_coils_new(int64_t n_coils, int n_dims, const int64_t matrix[3], fx_error *err, fxi_coils **out);
void fxi_coils_free(fxi_coils *c);
/** S_c at x (voxels) for every coil. */
void fxi_coils_at(const fxi_coils *c, const double x[3], fx_cf64 *maps);

/* ---- k-space (phantom_kspace.c) --------------------------------------------------------------- */

/** 2 pi J1(u)/u: the transform of the unit disc at u = 2 pi |k| (pi at 0). */
double fxi_disc_transform(double u);
/** 4 pi (sin u - u cos u)/u^3: the transform of the unit ball at u = 2 pi |k| (4 pi / 3 at 0). */
double fxi_ball_transform(double u);
/** The object's transform at k, seen by one coil S = 1, without scale. */
fx_cf64 fxi_phantom_transform(const fxi_phantom *p, const double k[3]);
/**
 * out[i + n c] = scale * transform of the object times S_c at k + 3 i, for n samples. Every sample is computed
 * alone in double: the same bytes whatever n_threads.
 */
int fxi_phantom_samples(const fxi_phantom *p, const fxi_coils *coils, const double *k, int64_t n, double scale,
	int n_threads, fx_error *err, fx_cf32 *out);
/** Samples on the full Cartesian matrix, centred, one coil, orthonormal scale: cf32 {x, y, z}. */
int fxi_phantom_cartesian(const fxi_phantom *p, const int64_t matrix[3], int n_threads, fx_error *err, fx_array **out);

/* ---- trajectories (phantom_trajectory.c) ------------------------------------------------------ */

enum fxi_sampling_kind {
	FXI_CARTESIAN = 0, FXI_RADIAL, FXI_SPIRAL, FXI_STACK_OF_STARS, FXI_RADIAL3D, FXI_RANDOM
};

/** Zeros take defaults in fxi_sampling_complete. */
typedef struct fxi_sampling {
	int kind;                /**< enum fxi_sampling_kind */
	int64_t matrix[3];       /**< nominal matrix, without readout oversampling */
	int64_t n_readouts;      /**< of one frame; Cartesian: follows from matrix and partial Fourier */
	int64_t n_samples;       /**< of one readout; Cartesian: follows */
	bool golden;             /**< radial kinds, spiral: golden-ratio increments instead of equal ones */
	int64_t acceleration;    /**< spiral: arms this many times farther apart than Nyquist asks; 0: 1 */
	bool full_turn;          /**< radial kinds: equal spokes fill a whole turn; radial3d: the second half opposes the first */
	double shift[3];         /**< samples by which each axis's gradient comes late: of the trajectory that is travelled */
	uint64_t seed;           /**< random */
	double oversampling;     /**< Cartesian readout; default 1 */
	double partial_fourier[2]; /**< Cartesian: share of the lines along y and z that is acquired, from the end; 0.5..1 */
	double echo;             /**< Cartesian: share of the readout that is acquired, from its end; 0.5..1 */
	/* set by fxi_sampling_complete */
	int64_t n_steps[2];      /**< Cartesian lines and partitions; stack of stars: spokes and partitions */
	int64_t skipped[2];      /**< lines and partitions that partial Fourier leaves out at the start */
	int64_t center_sample;   /**< index of k = 0 in a readout */
	int n_k_dims;            /**< axes that the trajectory covers: 2 or 3 */
} fxi_sampling;

const char *fxi_sampling_name(int kind);
/** Turns of one interleaf: arms 1/N apart, as Nyquist asks, or `acceleration` times that. */
double fxi_spiral_turns(const fxi_sampling *s);
/** Fills defaults and what follows from them; FX_EINVAL with the reason where the kind and matrix do not go together. */
int fxi_sampling_complete(fxi_sampling *s, fx_error *err);
/**
 * Readout i (of any frame: golden and random trajectories go on for i >= n_readouts, others repeat), k f64 {3,
 * n_samples} in cycles/voxel of the nominal matrix; step[0], step[1]: its encoding counters. s->shift is applied to it: a copy with shifts of 0 gives the nominal one.
 */
void fxi_sampling_readout(const fxi_sampling *s, int64_t i, double *k, int64_t step[2]);

/* ---- noise (phantom_noise.c) ------------------------------------------------------------------ */

/** xoshiro256** (Blackman & Vigna 2021) and what the polar method holds back. */
typedef struct fxi_random {
	uint64_t state[4];
} fxi_random;

/** Streams of one seed are independent: readouts can be made in any order. */
void fxi_random_start(fxi_random *r, uint64_t seed, uint64_t stream);
/** Uniform in [0, 1), 53 bits. */
double fxi_random_uniform(fxi_random *r);
/**
 * Two standard normal numbers (Marsaglia & Bray 1964). Only correctly rounded operations are used, the logarithm
 * included: the same bytes on every machine.
 */
void fxi_random_normal(fxi_random *r, double pair[2]);

/** Noise between coils: C_ab = 2 s_a s_b r^|a-b| e^{i 0.7 (a-b)}, s_c = sigma (1 + gain_spread ((5 c) mod 8) / 8). */
typedef struct fxi_noise {
	double sigma;        /**< of the real and of the imaginary part, for coil 0 */
	double correlation;  /**< r: 0..1 (1 excluded) between neighbouring coils */
	double gain_spread;  /**< 0: all coils alike */
	uint64_t seed;
} fxi_noise;

/** E[n_a conj(n_b)]. */
fx_cf64 fxi_noise_covariance(const fxi_noise *noise, int64_t a, int64_t b);
/** Adds factor * noise of one stream to data {n, n_coils}. */
void fxi_noise_add(const fxi_noise *noise, uint64_t stream, double factor, int64_t n, int64_t n_coils, fx_cf32 *data);

#endif

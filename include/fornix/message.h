/* SPDX-License-Identifier: MIT */
/*
 * message.h - what travels from gadget to gadget.
 *
 * A message is refcounted and holds one payload of one kind. It may be written to while its count
 * is one; fx_msg_own gives such a message. Arrays inside are shared by reference and follow the
 * same rule through fx_array_own.
 */
#ifndef FORNIX_MESSAGE_H
#define FORNIX_MESSAGE_H

#include <fornix/array.h>
#include <fornix/base.h>
#include <fornix/scan.h>
#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/waveform.h>

#ifdef __cplusplus
/* In C++ the MRD structs live in a namespace; the C names are used throughout. */
using ISMRMRD::ISMRMRD_AcquisitionHeader;
using ISMRMRD::ISMRMRD_ImageHeader;
using ISMRMRD::ISMRMRD_WaveformHeader;
extern "C" {
#endif

/** Bits, so that a gadget can say which it takes and gives. */
enum fx_kind {
	FX_ACQUISITION = 1u << 0,
	FX_WEIGHTED = 1u << 1,
	FX_WAVEFORM = 1u << 2,
	FX_TEXT = 1u << 3,
	FX_FRAME = 1u << 4,
	FX_IMAGE = 1u << 5,
	FX_SERIES = 1u << 6,   /* from here on: the diffusion chain, in its order */
	FX_TENSORS = 1u << 7,
	FX_METRIC = 1u << 8,
	FX_TRACTS = 1u << 9
};

/** "acquisition" and the like; "?" for no single known kind. */
FX_EXPORT const char *fx_kind_name(unsigned kind);

/** How the density weights of a readout are to be had. */
enum fx_density {
	FX_DENSITY_NONE = 0,  /**< no density gadget in the chain */
	FX_DENSITY_GIVEN,     /**< `weights` holds them, as for a frame of this readout alone: a frame of n divides by n */
	FX_DENSITY_CELLS,     /**< `weights` hold what each sample stands for, as they are: Cartesian lines */
	FX_DENSITY_ITERATIVE  /**< Pipe-Menon over the whole frame: whoever closes the frame computes them */
};

/**
 * One readout of all coils.
 *
 * `traj` is as the file has it: f32 {dims, samples}, in the file's own unit. `k` appears behind the
 * gadget `trajectory`: f64 {3, samples}, cycles/voxel of the encoded matrix, axes that the scan does
 * not encode 0. `weights` (f32 {samples}) are density weights: the k-space area or volume a sample
 * stands for, in units of the Cartesian cell, if this readout alone (rotated through all angles) made the frame.
 */
typedef struct fx_acquisition {
	ISMRMRD_AcquisitionHeader head; /**< number_of_samples and active_channels match `data` */
	fx_array *data;                 /**< cf32 {samples, coils} */
	fx_array *traj;                 /**< f32 {dims, samples} or NULL */
	fx_array *k;                    /**< f64 {3, samples} or NULL */
	fx_array *weights;              /**< f32 {samples} or NULL */
	int density;                    /**< enum fx_density */
	int64_t density_iterations;     /**< for FX_DENSITY_ITERATIVE */
	int64_t matrix[3];              /**< the grid that `k` refers to (grown by outside=grow); 0 before `trajectory` */
	double fov_mm[3];               /**< of `matrix`, where a gadget cropped it; 0: the header's encoded field of view */
	int64_t n_outside;              /**< samples dropped or kept beyond the matrix, for the record */
} fx_acquisition;

/**
 * What `mu` gives: a readout whose data are Mu = conj(phi) D (Stone et al. 2008), so that F^H D is a
 * plain adjoint sum of them.
 */
typedef struct fx_weighted {
	fx_acquisition readout;  /**< data hold Mu; k and matrix are set */
	fx_array *phi2;          /**< f32 {samples}: |phi(k)|^2, what Q sums; NULL where it is 1 throughout */
	double data_norm2;       /**< this readout's share of ||D||^2, summed over coils */
	int64_t frame_id;        /**< set by `fhd` on what it passes on to `toeplitz`; -1 before */
	int64_t grid[3];         /**< likewise: the frame's grid, scale, method and tolerance, so that Q can be summed too */
	double scale, tolerance;
	int method;
} fx_weighted;

typedef struct fx_waveform {
	ISMRMRD_WaveformHeader head;
	fx_array *data;          /**< u32 {samples, channels} */
} fx_waveform;

/** Where a volume lies: MRD's convention, LPS millimetres, position = centre of voxel floor(N/2). */
typedef struct fx_geometry {
	int64_t matrix[3];       /**< voxels of the image to be given out */
	double fov_mm[3];        /**< of that matrix; 0 where the header has none */
	float position[3], read_dir[3], phase_dir[3], slice_dir[3];
} fx_geometry;

/** A reason to tell the user why CG stopped. */
enum fx_stop { FX_STOP_NONE = 0, FX_STOP_CONVERGED, FX_STOP_ITERATIONS, FX_STOP_ZERO };

/**
 * What one image needs, growing as it moves down the chain (design: Weights, data not code).
 * Every array that is not yet known is NULL. `grid` is the matrix the estimate lives on: `geometry.matrix`
 * times fov_factor; k stays in cycles/voxel, since the voxel does not change.
 */
typedef struct fx_frame {
	int64_t id;                       /**< counts from 0 within a run */
	ISMRMRD_AcquisitionHeader head;   /**< of the frame's first imaging readout: counters, time stamps, geometry */
	fx_geometry geometry;
	int64_t grid[3];
	int64_t n_coils;
	int64_t n_readouts;
	int64_t n_shots;                  /**< excitations that its readouts came from; 0: not told */
	int64_t diffusion;                /**< fx_diffusion_counter of its readouts; -1: another counter, or none */
	bool calibration;                 /**< of calibration readouts: for coil maps, no image */
	bool partial;                     /**< cut short: input ended, aborted or lost */

	fx_array *k;                      /**< f64 {3, M}: the frame's trajectory, readouts in order of arrival */
	fx_array *first_k;                /**< f64 {3, samples}: of its first readout */
	fx_array *weights;                /**< f32 {M}: density weights, or NULL */
	fx_array *phi2;                   /**< f32 {M}, or NULL where 1 throughout */
	double phi2_sum;                  /**< sum of |phi|^2 (M where phi2 is NULL) */
	double data_norm2;                /**< ||D||^2 over samples and coils */
	double scale;                     /**< F = scale * sum: 1/sqrt(voxels of the nominal matrix) */
	int method;                       /**< enum fx_fourier_method that made fhd: Q is made the same way */
	double tolerance;                 /**< of the NUFFT */

	fx_array *fhd;                    /**< cf32 {x,y,z,coils}: F^H D, unweighted */
	fx_array *direct;                 /**< cf32 {x,y,z,coils}: F^H W D with density weights (eq. 17.1) */
	fx_array *maps;                   /**< cf32 {x,y,z,coils}: coil maps, sum |S|^2 = 1 inside the object */
	fx_array *kernel;                 /**< f32 {2x,2y,2z} (axes of 1 stay 1): spectrum of Q, see fx_toeplitz_kernel */
	double lambda;                    /**< relative to the mean eigenvalue of F^H F */
	fx_array *w;                      /**< f32 {x,y,z,3}: the prior's pair weights, see fx_prior_weights; NULL: W = I */
	bool has_prior;
	fx_array *estimate;               /**< cf32 {x,y,z,sets}: the solution, on `grid` */

	int64_t iterations;
	int stop;                         /**< enum fx_stop */
	double residual_normal;           /**< ||A rho - b|| / ||b|| at the end */
	double residual_data;             /**< ||F rho - D|| / ||D|| at the end */
} fx_frame;

/* ---- the diffusion chain -------------------------------------------------------------------- */

/** A voxel grid and where it lies. Vectors and tensors of the diffusion chain are in RAS axes, lengths in mm. */
typedef struct fx_lattice {
	int64_t dims[3];
	double affine[3][4];     /**< voxel index (centre of the first voxel is 0) to RAS mm; may shear */
	bool has_affine;         /**< false: orientation unknown, affine is diag(voxel sizes) */
} fx_lattice;

/** What a reader of the products has to know; bits that travel with the data. */
enum fx_caveat {
	FX_CAVEAT_SHOT_PHASE = 1u << 0, /**< several shots a volume were combined without a phase reference */
	FX_CAVEAT_PARTIAL = 1u << 1     /**< the input broke off: volumes are missing */
};

#define FX_ORIGIN_TEXT 200

/** What all items of a series share. Counted; never written to once an item was sent. */
typedef struct fx_series_info {
	int refs;                /**< atomic */
	fx_lattice lattice;
	int64_t n_volumes;
	fx_gradient *gradients;  /**< n_volumes, owned */
	unsigned caveats;        /**< enum fx_caveat bits, as known so far */
	char origin[FX_ORIGIN_TEXT]; /**< where the table came from: "MRD header, by repetition", "dwi.bval and dwi.bvec" */
} fx_series_info;

/** A new one (count 1) with n_volumes zeroed gradients; NULL when memory is short. */
FX_EXPORT fx_series_info *fx_series_info_new(int64_t n_volumes);
FX_EXPORT fx_series_info *fx_series_info_ref(fx_series_info *info);
FX_EXPORT void fx_series_info_unref(fx_series_info *info);

/** One volume of a diffusion series, or its end mark. Volumes come in any order, each at most once; then one end mark. */
typedef struct fx_series {
	fx_series_info *info;    /**< a reference */
	bool end;                /**< end mark: data are NULL */
	int64_t volume;          /**< index into the table; -1 in the end mark */
	fx_array *data;          /**< f32 or cf32 {x, y, z} */
	fx_array *mask;          /**< end mark: u8 {x, y, z}, 1 inside the object, from `dwi_mask`; else NULL */
	unsigned caveats;        /**< end mark: all that became known */
} fx_series;

enum fx_fit_method { FX_FIT_GIVEN = 0, FX_FIT_OLS, FX_FIT_WLS };

/** Why a voxel's tensor is to be taken with care: bits of fx_tensors.flags. */
enum fx_tensor_flag {
	FX_TENSOR_OUTSIDE = 1u << 0,   /**< not in the mask: zeros */
	FX_TENSOR_UNFITTED = 1u << 1,  /**< too few usable signals (not finite, or not positive): zeros */
	FX_TENSOR_CLAMPED = 1u << 2,   /**< an eigenvalue was below the floor and raised to it */
	FX_TENSOR_ISOTROPIC = 1u << 3, /**< no diffusion weighting is seen (all signals alike): FA and directions are undefined */
	FX_TENSOR_DROPPED = 1u << 4    /**< fitted without some of its signals */
};

/** A field of diffusion tensors. */
typedef struct fx_tensors {
	fx_lattice lattice;
	fx_array *d;             /**< f32 {6, x, y, z}: xx, xy, yy, xz, yz, zz in RAS axes, um^2/ms (= 1e-3 mm^2/s) */
	fx_array *s0;            /**< f32 {x, y, z}, or NULL */
	fx_array *residual;      /**< f32 {x, y, z}: root mean square of S - S_fit, in units of S; or NULL */
	fx_array *mask;          /**< u8 {x, y, z}: 1 where there is a tensor; NULL: everywhere */
	fx_array *flags;         /**< u8 {x, y, z}: enum fx_tensor_flag bits, or NULL */
	int fit;                 /**< enum fx_fit_method */
	bool provisional;        /**< a first look: the final fit follows as a message of its own */
	unsigned caveats;
	char origin[FX_ORIGIN_TEXT];
} fx_tensors;

enum fx_metric_kind { FX_METRIC_INVERSE = 0, FX_METRIC_ADJUGATE, FX_METRIC_SHARPENED };

/**
 * The Riemannian metric of a tensor field, as the tracker reads it: per voxel 24 floats, g and its three partial derivatives, all in
 * voxel index coordinates. Van Aart et al. (2011) interpolate G = g^-1 instead; where anisotropy is strong (sharpened metrics) the mean of
 * two turned G overstates its smallest eigenvalue, and paths bend inwards, while the large eigenvalues of g, which hold a path, keep their digits.
 */
typedef struct fx_metric {
	fx_lattice lattice;
	int kind;                /**< enum fx_metric_kind */
	double power;            /**< of FX_METRIC_SHARPENED; else 1 */
	fx_array *field;         /**< f32 {24, x, y, z}: g, then dg/di, dg/dj, dg/dk; each xx, xy, yy, xz, yz, zz */
	fx_array *d;             /**< f32 {6, x, y, z}: the diffusion tensors as in fx_tensors (floored), for `streamline` */
	fx_array *fa, *md;       /**< f32 {x, y, z}: FA; MD in um^2/ms */
	fx_array *mask;          /**< u8 {x, y, z}: where fibres may go */
	int64_t n_voxels;        /**< of the mask, as counted when it was made */
	int64_t n_above;         /**< voxels with a mean diffusivity above the csf_md that was asked for, masked or not */
	unsigned caveats;
	char origin[FX_ORIGIN_TEXT];
} fx_metric;

enum fx_track_method { FX_TRACK_GEODESIC = 0, FX_TRACK_STREAMLINE };

/** Why a fibre's end is where it is. */
enum fx_track_stop {
	FX_TRACK_STOP_VOLUME = 0, /**< left the volume */
	FX_TRACK_STOP_STEPS,      /**< max steps or length */
	FX_TRACK_STOP_MASK, FX_TRACK_STOP_FA, FX_TRACK_STOP_ANGLE, FX_TRACK_STOP_CSF,
	FX_TRACK_STOP_UNDEFINED,  /**< the metric is not finite or not positive there */
	FX_TRACK_STOP_TARGET,     /**< cut at a target region, by `connect` */
	FX_N_TRACK_STOPS
};

#define FX_TRACT_VALUES 12
#define FX_TRACT_NAME 20     /**< what .trk has room for, the NUL included */

/** What all items of a tract set share. Counted; never written to once an item was sent. */
typedef struct fx_tracts_info {
	int refs;                /**< atomic */
	fx_lattice lattice;      /**< of the image they were tracked in */
	int method;              /**< enum fx_track_method */
	int metric_kind;         /**< enum fx_metric_kind; meaningful for geodesics */
	double power, step_mm;
	int n_values;            /**< per fibre */
	char names[FX_TRACT_VALUES][FX_TRACT_NAME]; /**< "length_mm", "measure", ... */
	unsigned caveats;
	char origin[FX_ORIGIN_TEXT]; /**< how they were made, in words: method, integrator, metric, step, seeds */
} fx_tracts_info;

FX_EXPORT fx_tracts_info *fx_tracts_info_new(void);
FX_EXPORT fx_tracts_info *fx_tracts_info_ref(fx_tracts_info *info);
FX_EXPORT void fx_tracts_info_unref(fx_tracts_info *info);

/** A bounded batch of fibres, or the end mark of the set (n 0, arrays NULL). */
typedef struct fx_tracts {
	fx_tracts_info *info;    /**< a reference */
	bool end;
	int64_t first;           /**< number of the first fibre, counted over the set; end mark: how many there were */
	int64_t n;
	fx_array *offsets;       /**< u32 {n + 1}: fibre i has points [offsets[i], offsets[i + 1]) */
	fx_array *points;        /**< f32 {3, n_points}: RAS mm */
	fx_array *riemann;       /**< f32 {n_points}: Riemannian length from the fibre's first point; NULL for streamlines */
	fx_array *values;        /**< f32 {n_values, n} */
	fx_array *seeds;         /**< u32 {n}: number of the seed that each came from, or NULL */
} fx_tracts;

/** One entry of an image's meta data. */
typedef struct fx_meta {
	char *name, *value;
} fx_meta;

/**
 * Meta entries of images made from frames: how many excitations; the readouts' diffusion counter, where MRD's image header
 * has no place for it.
 */
#define FX_META_SHOTS "fornix.shots"
#define FX_META_DIFFUSION "fornix.diffusion"

typedef struct fx_image {
	ISMRMRD_ImageHeader head;  /**< matrix_size, channels and data_type match `data` */
	fx_array *data;            /**< {x, y, z, channels}; U16, I16, I32, U32, F32, F64, CF32 or CF64 */
	int64_t n_meta;
	fx_meta *meta;
} fx_image;

typedef struct fx_msg fx_msg;

/**
 * A new message of one kind with a zeroed payload (frame_id, a frame's diffusion and a series item's volume are -1, density NONE). NULL when memory is
 * short or the kind is unknown. Its bytes grow as arrays are put into it; see fx_msg_bytes.
 */
FX_EXPORT fx_msg *fx_msg_new(unsigned kind);
FX_EXPORT unsigned fx_msg_kind(const fx_msg *m);
FX_EXPORT fx_msg *fx_msg_ref(fx_msg *m);
/** Drops a reference; the last frees the payload and unrefs its arrays. NULL is fine. */
FX_EXPORT void fx_drop(fx_msg *m);
/** Makes *m writable: a copy (arrays shared) where others hold it too. On failure *m is dropped and NULL. */
FX_EXPORT int fx_msg_own(fx_msg **m);
/** Bytes that the payload keeps alive: what bounded queues count. */
FX_EXPORT int64_t fx_msg_bytes(const fx_msg *m);

/** The payload; NULL where the message is of another kind. Owned by the message. */
FX_EXPORT fx_acquisition *fx_msg_acquisition(fx_msg *m);
FX_EXPORT fx_weighted *fx_msg_weighted(fx_msg *m);
FX_EXPORT fx_waveform *fx_msg_waveform(fx_msg *m);
FX_EXPORT fx_frame *fx_msg_frame(fx_msg *m);
FX_EXPORT fx_image *fx_msg_image(fx_msg *m);
FX_EXPORT fx_series *fx_msg_series(fx_msg *m);
FX_EXPORT fx_tensors *fx_msg_tensors(fx_msg *m);
FX_EXPORT fx_metric *fx_msg_metric(fx_msg *m);
FX_EXPORT fx_tracts *fx_msg_tracts(fx_msg *m);
/** The text of a FX_TEXT message; NULL for other kinds. */
FX_EXPORT const char *fx_msg_text(const fx_msg *m);
FX_EXPORT fx_msg *fx_msg_new_text(const char *text);
/** Turns an acquisition into a weighted readout in place. FX_EINVAL where others hold m (fx_msg_own) or it is another kind. */
FX_EXPORT int fx_msg_to_weighted(fx_msg *m);

/** Adds or replaces an entry. FX_ENOMEM when short. */
FX_EXPORT int fx_image_set_meta(fx_image *image, const char *name, const char *value);
/** The entry of that name, or NULL. */
FX_EXPORT const char *fx_image_get_meta(const fx_image *image, const char *name);

/** Messages held back, in order. Start it zeroed. */
typedef struct fx_msg_list {
	int64_t n, capacity;
	fx_msg **list;
} fx_msg_list;

/** Adds m at the end (given away; dropped on failure). FX_ENOMEM when short. */
FX_EXPORT int fx_msg_list_push(fx_msg_list *l, fx_msg *m);
/** Drops what is left and frees the list. */
FX_EXPORT void fx_msg_list_clear(fx_msg_list *l);

/** Puts `a` (a reference that is given away) into a slot, dropping what was there. */
FX_EXPORT void fx_slot_take(fx_array **slot, fx_array *a);

/** True where an MRD flag (ISMRMRD_ACQ_*, counted from 1) is set. */
#define FX_FLAG(flags, flag) ((((uint64_t)(flags)) >> ((flag) - 1)) & 1u)

#ifdef __cplusplus
}
#endif
#endif

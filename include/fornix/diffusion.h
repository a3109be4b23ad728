/* SPDX-License-Identifier: MIT */
/*
 * diffusion.h - from a diffusion series to tensors, a metric, geodesic fibres and connections; backend-neutral.
 *
 * Conventions: directions and tensors in RAS axes; b in s/mm^2; D in um^2/ms (1e-3 mm^2/s), six components in the
 * order xx, xy, yy, xz, yz, zz (NIfTI's); positions in RAS mm unless a voxel index is said. Failures are explained
 * in the error slot given (m->err where there is a handle).
 */
#ifndef FORNIX_DIFFUSION_H
#define FORNIX_DIFFUSION_H

#include <fornix/array.h>
#include <fornix/backend.h>
#include <fornix/base.h>
#include <fornix/message.h>
#include <fornix/scan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lattices (diffusion/lattice.c) ----------------------------------------------------------- */

/** inverse of the lattice's affine: RAS mm to voxel index. FX_EDATA where it is singular or not finite. */
FX_EXPORT int fx_lattice_inverse(const fx_lattice *l, double inverse[3][4], fx_error *err);
/** y = A x + t. */
FX_EXPORT void fx_affine_apply(const double affine[3][4], const double x[3], double y[3]);
/** Lengths in mm of one voxel along each index axis. */
FX_EXPORT void fx_lattice_voxel_mm(const fx_lattice *l, double mm[3]);
/**
 * The image axes as an orthogonal matrix in RAS, axes[i][a] the RAS component i of index axis a (it may mirror): the
 * affine's columns without their lengths, and where they shear the orthogonal matrix nearest to them (polar factor),
 * so that angles between directions stay what they are. What is "in image axes" (FSL's vectors, FX_FRAME_IMAGE) is
 * meant in these. False where the affine is singular or not finite.
 */
FX_EXPORT bool fx_lattice_axes(const fx_lattice *l, double axes[3][3]);
/**
 * Read, phase and slice direction of an image header as axes[0..2], LPS, made exactly orthonormal; false where they
 * are not, to within the rounding of headers, orthogonal unit vectors.
 */
FX_EXPORT bool fx_image_axes(const ISMRMRD_ImageHeader *h, double axes[3][3]);
/**
 * The lattice of an MRD volume: LPS position of the centre voxel floor(N/2), directions and field of view into RAS.
 * Where the header has no usable geometry, has_affine is false. A two-dimensional image is the first (0th) of
 * n_slices, each one slice_step_mm (LPS) from the one before; NULL: of one slice as thick as its field of view. Of a
 * three-dimensional one the header says all.
 */
FX_EXPORT void fx_lattice_of_image(const fx_image *first_slice, const double slice_step_mm[3], int64_t n_slices, fx_lattice *out);
/** True where dims agree and affines differ by less than `tolerance_mm` at every corner. */
FX_EXPORT bool fx_lattice_same(const fx_lattice *a, const fx_lattice *b, double tolerance_mm);

/* ---- gradient tables (diffusion/gradients.c) -------------------------------------------------- */

/**
 * FSL's bvals and bvecs: f64, bvals of n numbers in any shape; bvecs as fx_read_table gives them, 3 rows of n ({n,
 * 3}) or n rows of 3 ({3, n}); a 3 x 3 table is taken as rows of x, y, z, FSL's own form. Vectors are in the image's
 * index axes, x negated where the affine's determinant is positive, and are turned to RAS by fx_lattice_axes. Rows
 * that are NaN or zero are b0; others are made unit vectors; b is not scaled by their length (how many were off by
 * more than 1 % is told in *n_scaled). FX_EDATA: lengths disagree (both said), b negative or not finite, b above 50
 * s/mm^2 without a direction. `out` has room for n.
 */
FX_EXPORT int fx_gradients_from_fsl(const fx_array *bvals, const fx_array *bvecs, const fx_lattice *lattice, int64_t n,
	fx_gradient *out, int64_t *n_scaled, fx_error *err);
/**
 * The scan header's own list (n_diffusion of them), as MRD has it: directions are in patient axes already. Checked
 * and made unit vectors as above. FX_EDATA where the header has none.
 */
FX_EXPORT int fx_gradients_from_header(const fx_header *scan, fx_gradient *out, int64_t *n_scaled, fx_error *err);
/**
 * MRtrix's table, f64 {4, n}: gx gy gz b in RAS. b is scaled by |g|^2 as MRtrix does: in all rows, where |ln |g|^2|
 * is above 0.01 in one. Otherwise as above.
 */
FX_EXPORT int fx_gradients_from_mrtrix(const fx_array *table, int64_t n, fx_gradient *out, fx_error *err);

/* ---- tensors (diffusion/tensor.c) ------------------------------------------------------------- */

/**
 * Eigenvalues (descending) and unit eigenvectors (vectors[i] belongs to values[i]; its largest component is positive) of a
 * symmetric matrix, in double. Where d is not finite all values are NaN.
 */
FX_EXPORT void fx_tensor_eigen(const double d[6], double values[3], double vectors[3][3]);
/** FA of three eigenvalues; 0 where all are 0. */
FX_EXPORT double fx_tensor_fa(const double values[3]);
/** Inverse of a symmetric matrix; false where it is singular (to the rounding of its determinant) or not finite. */
FX_EXPORT bool fx_tensor_inverse(const double d[6], double inverse[6]);
/** R d R^T for any 3 x 3 matrix R (rows). */
FX_EXPORT void fx_tensor_turn(const double r[3][3], const double d[6], double out[6]);
/** Raises the eigenvalues of d that are below `floor` to it; true where there were any. Else d stays as it is. */
FX_EXPORT bool fx_tensor_raise(double d[6], double floor);

enum fx_tensor_map {
	FX_MAP_FA = 0, FX_MAP_MD, FX_MAP_AD, FX_MAP_RD, FX_MAP_COLOUR_FA /* u8 {3, x, y, z} */, FX_MAP_EVEC /* f32 {x, y, z, 3} */,
	FX_MAP_EVALS /* f32 {x, y, z, 3} */, FX_N_MAPS
};
/**
 * One map (new): f32 {x, y, z} but where said; diffusivities in um^2/ms; directions in RAS. 0 outside the mask and where there
 * is no tensor; FA and directions are 0 too where the flags say that they are undefined.
 */
FX_EXPORT int fx_tensor_map(fx_math *m, const fx_tensors *t, int map, fx_array **out);

enum fx_tensor_order { FX_ORDER_NIFTI = 0, FX_ORDER_MRTRIX, FX_ORDER_FSL };
/**
 * FX_FRAME_IMAGE: components along the affine's columns made unit vectors (R): D_image = R^T D R. FX_FRAME_FSL: the same, x
 * negated where the affine's determinant is positive: where FSL's bvecs live.
 */
enum fx_tensor_frame { FX_FRAME_RAS = 0, FX_FRAME_IMAGE, FX_FRAME_FSL };
/** f32 {x, y, z, 6} (new) in another program's order and frame, times `factor` (1e-3 for mm^2/s). */
FX_EXPORT int fx_tensors_export(fx_math *m, const fx_tensors *t, int order, int frame, double factor, fx_array **out);
/**
 * A tensors message (new) of an image {x, y, z, 6} (or {x, y, z, 1, 6}) in that order and frame, times `factor` to um^2/ms; factor 0: 1e3 where
 * the median trace of what is not 0 is below 0.1, that is in mm^2/s, 1 where it is between 0.3 and 30, else FX_EDATA. Voxels that
 * are 0 or not finite are outside the mask; negative eigenvalues are raised to 0 and flagged.
 */
FX_EXPORT int fx_tensors_import(fx_math *m, const fx_array *image, const fx_lattice *lattice, int order, int frame, double factor,
	fx_msg **out);

/* ---- series (diffusion/gather.c) -------------------------------------------------------------- */

/** What a series is gathered by. Borrowed throughout, for the gatherer's life. */
typedef struct fx_gather_spec {
	const fx_header *scan;        /**< its diffusion list, diffusion dimension and number of slices */
	const fx_array *bvals, *bvecs;/**< FSL's tables, or NULL */
	const fx_array *grad;         /**< MRtrix's table, or NULL; all NULL: the header's list */
	const char *table;            /**< what to call that table in the series' origin */
	int counter;                  /**< enum fx_diffusion_dimension; NONE: the header's, else the one that fits the table */
	bool drop_missing;            /**< volumes that are missing or lack slices are left out, with FX_CAVEAT_PARTIAL; else refused */
	bool average;                 /**< several images of one slice and volume: mean of their magnitudes; else refused */
	bool allow_shots;             /**< several shots without a phase reference: FX_CAVEAT_SHOT_PHASE; else refused */
} fx_gather_spec;

/** What was found; complete after fx_gather_end. */
typedef struct fx_gather_report {
	char counter[320];            /**< which counter, and why */
	int64_t n_volumes, n_slices;
	int64_t n_scaled;             /**< vectors of the table that were not of unit length */
	int64_t n_averaged;           /**< images that are not the first of their slice and volume */
	int64_t n_dropped;            /**< volumes left out */
	int64_t most_shots;           /**< of an image with b above 50; 0: none told */
	int64_t n_unjudged;           /**< images with b above 50 that do not tell their shots */
	int64_t held_most;            /**< images that were held at once */
} fx_gather_report;

/**
 * Sorts images into the volumes of a diffusion series: by a counter into volumes, by position into slices. Where the
 * counter and the number of slices (the header's encodingLimits, or images of three dimensions) are known beforehand,
 * and neither averages nor gaps are allowed, a volume leaves as soon as its last slice is there; else all leave at the end.
 */
typedef struct fx_gather fx_gather;
FX_EXPORT int fx_gather_new(fx_math *m, const fx_gather_spec *spec, fx_gather **out);
FX_EXPORT void fx_gather_free(fx_gather *g);
/** One image (borrowed, its data shared). Volumes that it makes whole, series items, are added to `ready`. */
FX_EXPORT int fx_gather_add(fx_gather *g, const fx_image *image, fx_msg_list *ready);
/** The rest of the volumes and the end mark. No image at all: nothing. `cut`: the input broke off. FX_EDATA where volumes are missing, listing them. */
FX_EXPORT int fx_gather_end(fx_gather *g, bool cut, fx_msg_list *ready);
FX_EXPORT const fx_gather_report *fx_gather_report_of(const fx_gather *g);

/* ---- object mask (diffusion/mask.c) ----------------------------------------------------------- */

/**
 * u8 {x, y, z} (new) of the object in a mean b0 image f32 {x, y, z} on the host: median filter of radius `median` (0 to
 * 8; 0: none), Otsu's threshold (times `factor`), the largest connected part (6 neighbours), holes filled. Voxels that
 * are not finite are no part of it, unless as holes. FX_EDATA where the image is constant or nothing is above the threshold.
 */
FX_EXPORT int fx_b0_mask(fx_math *m, const fx_array *b0, int median, double factor, fx_array **mask);
/**
 * u8 {x, y, z} (new) on `lattice` of a mask image f32 {x, y, z} that lies on the lattice `of`: 1 where the nearest of its
 * voxels is above 0. FX_EDATA where that is nowhere.
 */
FX_EXPORT int fx_mask_on_lattice(fx_math *m, const fx_array *image, const fx_lattice *of, const fx_lattice *lattice,
	fx_array **mask);

/* ---- tensor fit (diffusion/fit.c) ------------------------------------------------------------- */

/**
 * The weights of a WLS fit before it is reweighted. Both lead to the same fixed point; with a few reweightings the end still
 * depends on the start where data are noisy.
 */
enum fx_fit_start {
	FX_START_SIGNALS = 0, /**< S^2 as measured: what MRtrix's dwi2tensor does, and then reweights twice */
	FX_START_OLS          /**< none: an OLS fit comes first; DIPY's WLS is this with one reweighting */
};

typedef struct fx_fit_spec {
	int method;          /**< FX_FIT_OLS or FX_FIT_WLS */
	int start;           /**< enum fx_fit_start, of WLS */
	int reweightings;    /**< of WLS: weights S_fit^2 of the fit before (Veraart et al. 2013); 2 */
	double b0_max;       /**< volumes up to this b count as b0 and are always fitted, with the b that they have; s/mm^2 */
	double b_min, b_max; /**< weighted volumes outside are not fitted (0: no bound); give way by 5 % or 50 s/mm^2, as shells do */
	double floor;        /**< eigenvalue floor, um^2/ms */
	bool stream;         /**< keep the normal equations as volumes come, so that fx_fit_provisional needs no pass over the series */
} fx_fit_spec;

/** The fit of ln S = ln S0 - b g^T D g as volumes come. */
typedef struct fx_fit fx_fit;
/** FX_EDATA where fewer than 2 b-values are used or the design's rank is below 7, saying which shells there are and are used. */
FX_EXPORT int fx_fit_new(fx_math *m, fx_series_info *info, const fx_fit_spec *spec, fx_fit **out);
FX_EXPORT void fx_fit_free(fx_fit *f);
/**
 * Adds a volume f32 or cf32 {x, y, z} (magnitudes are taken): its share of the normal equations, and keeps it (shared). A volume
 * outside b_min..b_max is let go. FX_EDATA: no such volume, the same again, another size than the lattice's.
 */
FX_EXPORT int fx_fit_add(fx_fit *f, int64_t volume, fx_array *data);
/** OLS tensors of the volumes so far (new message, without residuals): what streams. Mask u8 {x, y, z} or NULL. */
FX_EXPORT int fx_fit_provisional(fx_fit *f, const fx_array *mask, fx_msg **out);
/**
 * The final fit over the kept series (new message). FX_EDATA where the volumes that came do not determine a tensor. The message's
 * mask is 1 where there is a tensor; `caveats` are added to the series' own.
 */
FX_EXPORT int fx_fit_finish(fx_fit *f, const fx_array *mask, unsigned caveats, fx_msg **out);
/** "b 0 (1), 2000 (20)": the shells of a table, those within 5 % or 50 s/mm^2 together. */
FX_EXPORT void fx_shells_text(const fx_series_info *info, double b0_max, char *text, size_t size);
/** The same of the volumes that a fit uses. */
FX_EXPORT void fx_fit_shells_text(const fx_fit *f, char *text, size_t size);

/* ---- metric (diffusion/metric.c) -------------------------------------------------------------- */

enum fx_csf { FX_CSF_KEEP = 0, FX_CSF_MASK };

typedef struct fx_metric_spec {
	int kind;            /**< enum fx_metric_kind: g = D^-1, adj D = det(D) D^-1, (D^power)^-1 */
	double power;        /**< of FX_METRIC_SHARPENED */
	double floor;        /**< eigenvalues of D below are raised to it, um^2/ms: 0.05 keeps g below 20 */
	int csf;             /**< enum fx_csf: FX_CSF_MASK takes voxels with MD above csf_md out of the mask */
	double csf_md;       /**< um^2/ms */
	double smooth_mm;    /**< the tensors are first averaged by a Gaussian of this sigma (fx_tensors_smooth); 0: not */
} fx_metric_spec;

/**
 * D averaged with a Gaussian of sigma_mm over the voxels that have a tensor (new, f32 {6, x, y, z}), along the index axes, cut at 3 sigma;
 * voxels without one stay as they are. Normalised convolution: weights add up to 1 at the mask's border too.
 */
FX_EXPORT int fx_tensors_smooth(fx_math *m, const fx_tensors *t, double sigma_mm, fx_array **out);

/**
 * The metric of a tensor field (new message). Index space: g' = A^T g A (the equation is
 * covariant). Derivatives are central differences of g' where both neighbours are in the mask, second-order one-sided
 * where one is and there is room, else first-order one-sided, 0 for a voxel alone on its axis. Just outside the mask all is continued from the
 * inside (the mean of neighbours), so that interpolation near the border reads no zeros; farther out field and d are NaN, fa and md 0.
 * Tensors that are not finite or have no positive eigenvalue leave the mask; `origin` says how many did, and how many were floored. FX_EDATA where
 * no voxel is left.
 */
FX_EXPORT int fx_metric_build(fx_math *m, const fx_tensors *t, const fx_metric_spec *spec, fx_msg **out);

/* ---- tracking (diffusion/track.c) ------------------------------------------------------------- */

enum fx_integrator { FX_INTEGRATOR_EULER = 0, FX_INTEGRATOR_RK2, FX_INTEGRATOR_RK4,
	FX_INTEGRATOR_FROZEN /* van Aart et al.'s own: the midpoint with the Christoffel symbols of the step's start; order 1 */ };

/**
 * How the field is read between voxels. The host has the first two, which are one there. On a GPU (docs/diffusion.md states each one's error):
 * KERNEL, single precision, interpolated in the kernel; HALF, the same of numbers kept in half precision; TEXTURE and TEXTURE_HALF,
 * by the texture units, whose weights have 8 fractional bits; COMPACT, six numbers a voxel: derivatives are taken in the kernel,
 * by differences of voxels, which near the mask's border are not those of fx_metric_build.
 */
enum fx_track_form { FX_TRACK_FORM_AUTO = 0 /* KERNEL */, FX_TRACK_FORM_KERNEL, FX_TRACK_FORM_HALF, FX_TRACK_FORM_TEXTURE,
	FX_TRACK_FORM_TEXTURE_HALF, FX_TRACK_FORM_COMPACT, FX_N_TRACK_FORMS };

/**
 * A step advances the parameter of the equation by `step` mm with a velocity that is 1 mm long at its start: Euler's chords are exactly a
 * step long, the others' to a relative error of the order of the step. For geodesics the velocity is made 1 mm long again before every step
 * (the equation is homogeneous of degree two, so the path stays the same); the product of the lengths that were divided out is kept, and
 * with it the g(v, v) of the geodesic in its own parameter, which is conserved: its drift says how well the steps follow the equation.
 */
typedef struct fx_track_spec {
	int method;          /**< enum fx_track_method */
	int integrator;      /**< enum fx_integrator */
	int form;            /**< enum fx_track_form */
	double step;         /**< arc length of a step */
	bool step_in_voxels; /**< in units of the smallest voxel edge; else mm */
	int64_t max_steps;   /**< per direction */
	double max_length_mm;/**< per fibre; 0: none. Of both directions the one along +dir comes first, the other gets what is left */
	double min_length_mm;/**< shorter fibres are dropped, and so are fibres of one point: seeds less fibres less n_outside */
	bool both_ways;      /**< from each seed along +dir and -dir, joined into one fibre */
	bool stop_mask;      /**< also stop where the nearest voxel is outside the mask */
	double stop_fa;      /**< stop below this FA (trilinear); 0: never */
	double stop_angle;   /**< degrees that the direction may turn within one voxel's (smallest edge's) length; 0: never */
	double stop_md;      /**< stop above this MD, um^2/ms; 0: never */
} fx_track_spec;

/** Regions of a label image and where they lie (diffusion/regions.c). Never written to once made. */
typedef struct fx_regions fx_regions;
/** Of which targets a fibre is asked to meet. */
enum fx_require { FX_REQUIRE_ANY = 0, FX_REQUIRE_ALL };

typedef struct fx_tracker fx_tracker;
/** Borrows the metric, which must outlive it. FX_ENOTSUP where the backend lacks the form. */
FX_EXPORT int fx_tracker_new(fx_math *m, const fx_metric *metric, const fx_track_spec *spec, fx_tracker **out);
FX_EXPORT void fx_tracker_free(fx_tracker *t);
/**
 * From now on keeps only fibres that a connection can come of: those that touch a target (FX_REQUIRE_ALL: every target) and, where sources are
 * given, a source. What cannot be told for certain is kept, and so are fibres that `connect` finds nothing in for other
 * reasons: what it finds is the same with and without. Regions may lie in another space and are not needed afterwards.
 */
FX_EXPORT int fx_tracker_keep(fx_tracker *t, const fx_regions *sources, const fx_regions *targets, int require);
/** Fibres that fx_tracker_keep's rule has dropped so far. */
FX_EXPORT int64_t fx_tracker_missed(const fx_tracker *t);
/**
 * Tracks n seeds, f64 {6, n}: position RAS mm, direction (any length, RAS; 0, 0, 0: the principal eigenvector there). *out (new) has `info` (shared), offsets, points,
 * riemann and seeds (seed i is first_seed + i) and the values below; `first` is the caller's to set. Fibres come in the order of their seeds whatever the
 * threads. Seeds outside the volume or mask, or where a stop holds already, give no fibre; they are counted in *n_outside. The volume ends half
 * a voxel beyond the outermost centres. Every point of a fibre is inside, defined, and meets the stops that are asked for. Memory: 16 bytes a point while tracking, and
 * 16 in the result. FX_ENOTSUP where a batch has more than 2^32 points.
 */
FX_EXPORT int fx_tracker_run(fx_tracker *t, fx_tracts_info *info, const fx_array *seeds, int64_t first_seed, fx_msg **out, int64_t *n_outside);
/** Fills method, metric, step, lattice, caveats, origin and the names of the values that fx_tracker_run gives. */
FX_EXPORT int fx_tracker_info(const fx_tracker *t, fx_tracts_info *info);

/**
 * Values of each fibre, in this order. Measure is Euclidean over Riemannian length, in the square root of the metric's unit of D. Streamlines: the
 * Riemannian length is that of D^-1 along the principal direction, and the drift is 0.
 */
enum fx_tract_value {
	FX_VALUE_LENGTH = 0,  /**< "length_mm" */
	FX_VALUE_RIEMANN,     /**< "riemann" */
	FX_VALUE_MEASURE,     /**< "measure": m (Astola et al. 2007) */
	FX_VALUE_DRIFT,       /**< "drift": largest relative change of the conserved g(v, v) along it */
	FX_VALUE_STOP_START,  /**< "stop_start": enum fx_track_stop; -1 where the fibre starts at its seed */
	FX_VALUE_STOP_END,    /**< "stop_end" */
	FX_VALUE_SEED,        /**< "seed_point": index of the seed's point within the fibre; 0 unless tracked both ways */
	FX_N_VALUES
};

/* ---- seeds (diffusion/seeds*.c) --------------------------------------------------------------- */

enum fx_directions {
	FX_DIRECTIONS_PRINCIPAL = 0, /**< the principal eigenvector: (0, 0, 0), which the tracker fills in */
	FX_DIRECTIONS_SPHERE,        /**< n_directions of fx_fibonacci_sphere at every place */
	FX_DIRECTIONS_BOTH,          /**< the principal eigenvector, then the sphere */
	FX_DIRECTIONS_GIVEN,         /**< of the list */
	FX_DIRECTIONS_RANDOM         /**< n_directions at every place, uniform on the sphere */
};

/** z_i = 1 - (2 i + 1)/n, azimuth i * golden angle: f64 {3, n} unit vectors (new). FX_EINVAL for n < 1, FX_ENOMEM; neither explained. */
FX_EXPORT int fx_fibonacci_sphere(int64_t n, fx_array **out);
/** xoshiro-based, counter-addressed: number i of stream `stream` of a seed, uniform in [0, 1), the same whatever is asked before. */
FX_EXPORT double fx_random_at(uint64_t seed, uint64_t stream, uint64_t i);

enum fx_seed_source {
	FX_SEEDS_LIST = 0, /**< `list` */
	FX_SEEDS_REGION,   /**< the voxels of `region` */
	FX_SEEDS_BALL,     /**< `count` uniform in the ball */
	FX_SEEDS_GRID      /**< a grid of `spacing_mm` along the index axes of `region`, centred, where the nearest voxel belongs to it */
};

typedef struct fx_seeds_spec {
	int source;                /**< enum fx_seed_source */
	fx_array *list;            /**< f64 {3, n} or {6, n}: places and directions, RAS mm; shared */
	fx_array *region;          /**< u8, f32 or f64 {x, y, z}; shared until fx_seeds_free */
	double label;              /**< voxels of this value; 0: all that are not 0 (nor NaN) */
	const fx_lattice *lattice; /**< of `region`, which need not be the data's */
	int64_t per_voxel;         /**< of a region, where count is 0 */
	int64_t count;             /**< in all: of a ball; of a region: seed i in the voxel a fraction (i + u)/count along it, u random */
	bool centred;              /**< at voxel centres; else uniform inside the voxel */
	double centre[3], radius;  /**< of the ball, mm */
	double spacing_mm;
	int directions;            /**< enum fx_directions */
	int64_t n_directions;
	uint64_t seed;             /**< fixes everything random */
} fx_seeds_spec;

/** Seeds, made as they are asked for: they take no memory but that of their list or region. */
typedef struct fx_seeds fx_seeds;
/**
 * FX_EDATA where there are none (an empty list or region) or more than 2^32 - 1; FX_EINVAL where they would all fall
 * on one place with one direction (centred, several a voxel), or directions are asked for that the list lacks.
 */
FX_EXPORT int fx_seeds_new(fx_math *m, const fx_seeds_spec *spec, fx_seeds **out);
FX_EXPORT void fx_seeds_free(fx_seeds *s);
/** Seeds in all: places times directions. */
FX_EXPORT int64_t fx_seeds_count(const fx_seeds *s);
/**
 * The next seeds, at most `most` of them: f64 {6, n} (new) as fx_tracker_run takes them, numbered from *first; NULL once there are
 * none left. Seed i is the same whatever `most` is: all directions of a place follow each other.
 */
FX_EXPORT int fx_seeds_next(fx_seeds *s, int64_t most, fx_array **out, int64_t *first);
/** Box in RAS mm around the places given out so far. */
FX_EXPORT void fx_seeds_box(const fx_seeds *s, double low[3], double high[3]);

/**
 * "mask" (a region that the caller has), "grid:SPACING" (mm), "sphere:X,Y,Z,R" (RAS mm), or a file: *.nii and *.nii.gz are regions,
 * others lists. Folders in front of the words do not count. Fills source, spacing_mm, centre and radius. FX_EINVAL quotes the text.
 */
FX_EXPORT int fx_seeds_parse(const char *text, fx_seeds_spec *spec, fx_error *err);

/** A region from what fx_read_nifti gave (f32 or f64 of one volume), new {x, y, z}; fills the dims of its lattice. `name` is for messages. */
FX_EXPORT int fx_region_of_file(fx_math *m, const char *name, const fx_array *data, fx_lattice *lattice, fx_array **out);
enum fx_region_space {
	FX_REGION_SAME = 0,   /**< the data's own space, to a hundredth of a voxel */
	FX_REGION_ELSEWHERE,  /**< another: only millimetres are common */
	FX_REGION_BY_VOXEL    /**< one has no affine, but they are of one size */
};
/** How a region lies to the data. FX_EDATA where one has no affine and their sizes differ. */
FX_EXPORT int fx_region_space(fx_math *m, const char *name, const fx_lattice *region, const fx_lattice *data, int *space);
/**
 * A region (mask or labels, {x, y, z}: u8, f32 or f64) of the lattice `from`, on the lattice `to`: the value of the nearest voxel, 0 outside.
 * New, of the same type. *inside: the part of its voxels that are not 0 whose centre lies in `to`.
 */
FX_EXPORT int fx_region_resample(fx_math *m, const fx_array *region, const fx_lattice *from, const fx_lattice *to, fx_array **out,
	double *inside);
/** Box in RAS mm around a lattice, outer faces of the voxels included. */
FX_EXPORT void fx_lattice_box(const fx_lattice *l, double low[3], double high[3]);

/* ---- regions (diffusion/regions.c) ------------------------------------------------------------ */

enum fx_region_use {
	FX_REGIONS_LABELS = 0, /**< whole numbers; those above 0 are regions, others are background */
	FX_REGIONS_ANY         /**< every voxel that is not 0 belongs to one region, 1 */
};

/**
 * Regions of an image {x, y, z} of any real type. `wanted` lists labels ("3, 5 8"; empty or NULL: all there are); `name` is what errors call it.
 * FX_EDATA: values that are not whole (FX_REGIONS_LABELS) or not finite, no region at all, a singular affine; FX_EINVAL: a
 * wanted label that has no voxel (those there are are said), or a list that does not parse.
 */
FX_EXPORT int fx_regions_new(const fx_array *image, const double affine[3][4], bool has_affine, const char *name, const char *wanted,
	int use, fx_error *err, fx_regions **out);
FX_EXPORT void fx_regions_free(fx_regions *r);
/** FX_EDATA where the image is not in the space of `lattice` to 0.1 of its smallest voxel edge at every corner; says how far apart they are. */
FX_EXPORT int fx_regions_same_space(const fx_regions *r, const fx_lattice *lattice, fx_error *err);
/** Label at a point in RAS mm, that of the nearest voxel; 0: background or outside the image. */
FX_EXPORT int64_t fx_regions_at(const fx_regions *r, const double ras[3]);

/* ---- connections (diffusion/connect*.c) ------------------------------------------------------- */

typedef struct fx_connect_spec {
	int require;           /**< enum fx_require */
	int64_t best;          /**< fibres kept a pair, by rank */
	int64_t families;      /**< families kept a pair; each by its best fibre, whatever that one's rank */
	double cluster_mm;     /**< fibres closer (fx_tract_distance) are one family; 0: two edges of the smallest voxel */
	bool jacobi;           /**< Jacobi determinants of the kept geodesics; needs fx_connect_metric */
	double degenerate;     /**< normalised determinants below this (absolute) at arrival are degenerate */
	bool resample;         /**< regions may be in another space: labels are read at the fibre by the region image's own affine */
} fx_connect_spec;

/** Connections between regions, collected as fibres stream by; memory is bounded by best and families a pair. */
typedef struct fx_connect fx_connect;
/** Borrows the regions, which must outlive it; sources and exclude may be NULL. */
FX_EXPORT int fx_connect_new(fx_math *m, const fx_connect_spec *spec, const fx_regions *sources, const fx_regions *targets,
	const fx_regions *exclude, fx_connect **out);
FX_EXPORT void fx_connect_free(fx_connect *c);
/** The metric that the fibres to come were tracked in (a reference is kept), for the Jacobi determinants. */
FX_EXPORT int fx_connect_metric(fx_connect *c, fx_msg *metric);
/**
 * Looks for connections in a batch (end marks do nothing). A connection runs from where the fibre last leaves a source to
 * where it first enters a target, with no other of either in between; without sources, the source is the target region
 * that the seed lies in, or the seed itself (label 0). FX_EDATA: regions in another space, fibres of another method or metric than those before.
 */
FX_EXPORT int fx_connect_add(fx_connect *c, const fx_tracts *t);
/** Ranks, families and determinants; nothing may be added afterwards. `caveats` that became known go into the products. */
FX_EXPORT int fx_connect_finish(fx_connect *c, unsigned caveats);
/** The kept fibres, cut, in rank order pair by pair, as batches and an end mark; then *out is NULL. */
FX_EXPORT int fx_connect_next(fx_connect *c, fx_msg **out);

typedef struct fx_connect_counts {
	int64_t n_fibres, n_connected; /**< looked at; with at least one connection */
	int64_t n_excluded;            /**< with a connection that crosses an exclusion, and no other */
	int64_t n_incomplete;          /**< without all targets (FX_REQUIRE_ALL) */
	int64_t n_unusable;            /**< with a point or Riemannian length that is not finite */
	int64_t n_pairs, n_kept, n_families, n_degenerate;
	int64_t n_undetermined;        /**< kept geodesics without a Jacobi determinant: their path could not be followed again */
} fx_connect_counts;
FX_EXPORT void fx_connect_count(const fx_connect *c, fx_connect_counts *out);

/** Takes a piece of text; a status other than FX_OK ends the writing and is returned. */
typedef int (*fx_text_fn)(void *arg, const char *text);
/** connectivity.json and connectivity.csv, as docs/connectivity.md describes them. After fx_connect_finish. */
FX_EXPORT int fx_connect_json(const fx_connect *c, fx_text_fn write, void *arg);
FX_EXPORT int fx_connect_csv(const fx_connect *c, fx_text_fn write, void *arg);
/** "sqrt(um^2/ms)" and the like: unit of the measure under a metric. */
FX_EXPORT void fx_measure_unit(int metric_kind, double power, char *text, size_t size);

/* ---- tract sets ------------------------------------------------------------------------------- */

/**
 * Mean closest-point distance between two polylines f32 {3, n}, mm: the mean over the points of one of the distance to the other line (its
 * segments, not just its points), and the mean of that both ways. NaN where one has no point.
 */
FX_EXPORT double fx_tract_distance(const float *a, int64_t n_a, const float *b, int64_t n_b);

#ifdef __cplusplus
}
#endif
#endif

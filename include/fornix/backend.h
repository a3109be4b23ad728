/* SPDX-License-Identifier: MIT */
/*
 * backend.h - the coarse operations that every backend gives; recon/ is written against these alone.
 *
 * Every operation takes the caller's fx_math (backend, queue, error slot), works on arrays that live
 * where the backend works, and returns an fx_status after explaining a failure in the error slot.
 * Results do not depend on the number of threads: sums are taken in a fixed order.
 * A backend that cannot do an operation leaves its entry NULL; operators ask fx_math_need for theirs when they are made.
 */
#ifndef FORNIX_BACKEND_H
#define FORNIX_BACKEND_H

#include <fornix/array.h>
#include <fornix/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fx_backend fx_backend;

/** One user's handle on a backend: a queue (stream) of its own and the slot where failures are explained. */
typedef struct fx_math {
	const fx_backend *ops;
	void *queue;   /**< the backend's own */
	int device;
	int n_threads; /**< host threads that one operation may use */
	fx_error *err; /**< never NULL */
	/** True once the work is to be given up: long operations ask, and end with FX_ECANCELED. NULL: never. */
	bool (*stopped)(const void *arg);
	const void *stopped_arg;
} fx_math;

/**
 * The oversampled grid of a NUFFT (axes of 1 stay 1 and are not spread over).
 * The spreading kernel is exp(beta (sqrt(1 - (2x/width)^2) - 1)) on |x| <= width/2 fine-grid cells
 * (Barnett, Magland, af Klinteberg 2019, eq. 1.8).
 */
typedef struct fx_fine_grid {
	int64_t dims[3];   /**< image matrix */
	int64_t fine[3];   /**< oversampled matrix: even, products of 2, 3, 5 (and 7) */
	int width;         /**< fine-grid cells a sample touches along an axis */
	double beta;
	int type;          /**< FX_CF32 or FX_CF64 */
	bool real;         /**< samples and fine grid are real (Q's weights): half the memory and FFT */
} fx_fine_grid;

/**
 * out[i] = the Fourier transform of that kernel at frequency[i] in cycles a fine-grid cell (0.5 is the fine grid's Nyquist),
 * by Gauss-Legendre quadrature in double, good to 1e-15 of its peak for widths up to 16 and frequencies up to 2: what an image
 * is divided by.
 */
FX_EXPORT void fx_fine_kernel_transform(int width, double beta, int64_t n, const double *frequency, double *out);

/** How metric_build makes a metric of tensors; see fx_metric_build for the rules. */
typedef struct fx_metric_plan {
	int kind;              /**< enum fx_metric_kind */
	double power;          /**< of FX_METRIC_SHARPENED */
	double floor;          /**< of the eigenvalues of D, above 0 */
	double csf_md;         /**< voxels whose MD is above leave the mask; INFINITY: none */
	double count_md;       /**< voxels whose MD is above are counted, whether they leave or not */
	unsigned skip_flags;   /**< voxels with any of these bits in `flags` are outside */
	double to_mm[3][3];    /**< A of the affine: in voxel index coordinates g is A^T g A */
} fx_metric_plan;

/** The arrays of a fx_metric (message.h). */
typedef struct fx_metric_arrays {
	fx_array *field, *d, *fa, *md, *mask;
} fx_metric_arrays;

typedef struct fx_metric_counts {
	int64_t n_inside;      /**< voxels of the mask that came out */
	int64_t n_floored;     /**< of these, with an eigenvalue raised to the floor */
	int64_t n_bad;         /**< taken out: not finite, or no positive eigenvalue */
	int64_t n_csf;         /**< taken out as fluid */
	int64_t n_above;       /**< usable voxels with a trace / 3 above count_md */
} fx_metric_counts;

/**
 * How signals follow from a tensor, ln S = X x with x = ln S0, xx, xy, yy, xz, yz, zz (um^2/ms), in the basis of orthonormal
 * columns: X = Q R, x = to_x z. Rows are volumes, in the order of the volumes given with it; q[7 i] is 1/sqrt(n).
 */
typedef struct fx_tensor_design {
	int64_t n;               /**< volumes */
	const double *q;         /**< {7, n} */
	double to_x[7][7];       /**< rows of R^-1, or of its product with what else makes x */
	bool from_signals;       /**< the first weights are S^2, as measured; else the first fit is unweighted */
	int reweightings;        /**< fits after that, with weights S_fit^2 of the one before */
	double floor;            /**< eigenvalues are raised to it, um^2/ms */
} fx_tensor_design;

/** What a fit fills, all of one size. */
typedef struct fx_tensor_arrays {
	fx_array *d;             /**< f32 {6, x, y, z}: xx, xy, yy, xz, yz, zz */
	fx_array *s0;            /**< f32 {x, y, z} */
	fx_array *residual;      /**< f32 {x, y, z}: root mean square of S - S_fit; tensor_solve leaves it */
	fx_array *flags;         /**< u8 {x, y, z}: enum fx_tensor_flag bits */
} fx_tensor_arrays;

/** How track_batch tracks; see fx_track_spec. Lengths in mm. */
typedef struct fx_track_plan {
	int method, integrator; /**< enum fx_track_method, enum fx_integrator */
	int form;               /**< enum fx_track_form */
	int lanes;              /**< threads of a GPU that share a geodesic: 1, 2 or 4; 0: as pays. Changes roundings only */
	bool count_first;       /**< on a GPU: walk twice, as where memory is short, whatever is free */
	double step, voxel;     /**< of a step; over which stop_angle is taken */
	int64_t max_steps;
	double max_length, min_length;
	bool both_ways, stop_mask;
	double stop_fa, stop_angle, stop_md;
	double affine[3][4];    /**< voxel index to RAS mm */
	double to_mm[3][3], to_index[3][3]; /**< its matrix, and the inverse */
} fx_track_plan;

/** The arrays of a fx_tracts (message.h). */
typedef struct fx_track_arrays {
	fx_array *offsets, *points, *riemann, *values, *seeds;
} fx_track_arrays;

/**
 * Which fibres are worth keeping. A fibre sees the bits of every voxel (the nearest of a place) that it comes within FX_TRACK_NEAR of; of a step,
 * those of the box around its two ends. It is kept where it saw a bit of `any` (0: not asked for) and all bits of `all`.
 */
typedef struct fx_track_keep {
	const fx_array *bits;    /**< u32 {x, y, z} where the backend works, of the volume that is tracked in */
	uint32_t any, all;
} fx_track_keep;
/** Voxels: above what positions lose to single precision, so that a fibre that touches a region is never missed. */
#define FX_TRACK_NEAR 2e-3

/** What became of a batch's seeds that gave no fibre (others were too short). */
typedef struct fx_track_counts {
	int64_t n_outside;       /**< outside the volume or the mask, or where a stop holds already */
	int64_t n_missed;        /**< tracked, long enough, and not to be kept */
} fx_track_counts;

/**
 * The samples of a trajectory sorted into Cartesian cells, for density weights. Samples of one small part of a cell are one point; points
 * are in order of their cells, x fastest: `first[cell]` to `first[cell + 1]`. Positions are in cells from the corner of cell 0; a
 * cell's centre is at a whole number and a half. The arrays are on the host.
 */
typedef struct fx_density_cells {
	int64_t n_cells[3], n_points;
	bool encoded[3];       /**< axes that count; the others have one cell */
	int64_t *first;        /**< {cells + 1} */
	float *position[3];    /**< {points}: centroids */
	float *count;          /**< {points}: samples of the point */
	int64_t *point_of;     /**< {M}: a sample's point */
	uint8_t *covered;      /**< {cells}: 1 where the trajectory covers k-space, gaps of up to two cells included */
} fx_density_cells;

/** A device, as its backend knows it. */
typedef struct fx_device_info {
	char name[128];          /**< of the GPU */
	char driver[32];         /**< its driver's version: "580.95.05"; "" where that is not told */
	int major, minor;        /**< compute capability */
	int driver_api, runtime; /**< CUDA that the driver knows and that this build is of: 1000 major + 10 minor */
	int64_t bytes, available;/**< of memory; of it, what no process holds */
} fx_device_info;

/** The normal operator A = sum_c conj(S_c) T S_c + lambda W^H W of images {x,y,z}. */
typedef struct fx_normal {
	const fx_array *kernel;  /**< the f32 spectrum of toeplitz_apply */
	const fx_array *maps;    /**< S {x,y,z,c}; NULL: one coil, 1 everywhere */
	const fx_array *weights; /**< of W, see difference_normal; NULL: W is the identity */
	double lambda;           /**< 0: no such term */
} fx_normal;

/** Sums of one iteration of cg_steps, in double: the curvature p^H A p before, and what x and r are after it. */
typedef struct fx_cg_sums {
	double curvature;
	double rr, xb, xr;       /**< ||r||^2; real parts of x^H b and x^H r */
	double xwx;              /**< x^H W^H W x; 0 where lambda is */
} fx_cg_sums;

/**
 * Kernels of the adjoint direct sum: the steps of Kirk & Hwu's chapter on Stone et al. (2008), in single precision as there, phases too.
 * SCATTER: a thread a sample, sums added to atomically, so that their last bits differ from run to run. GATHER: a thread a voxel. REGISTERS:
 * voxel and sum in registers. CONSTANT: samples in chunks of constant memory, an array a coordinate. AOS: a structure a sample. HARDWARE:
 * sine and cosine of the special function units. TUNED: that, in the form of a fx_direct_plan. AUTO: not of the ladder: the backend's
 * fastest exact sum, direct_adjoint.
 */
enum fx_direct_kernel { FX_DIRECT_AUTO = 0, FX_DIRECT_SCATTER, FX_DIRECT_GATHER, FX_DIRECT_REGISTERS, FX_DIRECT_CONSTANT, FX_DIRECT_AOS,
	FX_DIRECT_HARDWARE, FX_DIRECT_TUNED, FX_DIRECT_KERNELS };

/** A kernel of the ladder, and the form of FX_DIRECT_TUNED; a 0 there is the backend's default. */
typedef struct fx_direct_plan {
	int kernel;            /**< enum fx_direct_kernel */
	int block;             /**< threads of a block: 32 to 512, a multiple of 32 */
	int unroll;            /**< of the loop over samples: 1, 2, 4 or 8 */
	int voxels;            /**< of a thread: 1, 2, 4 or 8 */
	int chunk;             /**< samples in constant or shared memory at once: 32 to 2048 */
	int shared;            /**< 1: shared memory; 2: constant memory */
} fx_direct_plan;

#define FX_FINE_DEGREE 24
/**
 * The spreading kernel as polynomials: its value at the j-th cell that a sample touches is sum_d c[d * columns + j] u^(degree - d), u in
 * [-1, 1) the sample's place between cells: the first cell is (width - 1 - u) / 2 before it. c has room for FX_FINE_DEGREE + 1 rows
 * of `columns` >= width. Returns the degree, the least of 4 and more at which the error is within `wanted` of the peak, or FX_FINE_DEGREE.
 */
FX_EXPORT int fx_fine_kernel_polynomial(int width, double beta, double wanted, int columns, double *c);

struct fx_backend {
	uint32_t abi;
	const char *name;      /**< "host", "cuda" */

	/**
	 * Whether the device of that number works: it is there, this build has code for it, and it has just computed something. FX_ENOTSUP where there
	 * is none that could, FX_EINVAL for a number too high, explained. NULL: this backend has no devices.
	 */
	int (*about)(int device, fx_device_info *out, fx_error *err);

	/* queues and memory */
	int (*open)(int device, int n_threads, void **queue, fx_error *err);
	void (*close)(void *queue);
	int (*sync)(fx_math *m);
	int (*array_new)(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out); /**< zeroed */
	int (*upload)(fx_math *m, const fx_array *host, fx_array **out);
	int (*download)(fx_math *m, const fx_array *device, fx_array **out);
	/**
	 * A host array, not cleared, that `upload` copies from without waiting, beside other work of the queue (page-locked memory: slow to
	 * get, so keep it). Whoever fills it again calls staging_wait first, which returns once it has been copied. Both NULL where upload
	 * copies nothing.
	 */
	int (*staging_new)(fx_math *m, int type, int n_dims, const int64_t *dims, fx_array **out);
	int (*staging_wait)(fx_math *m, const fx_array *staging);

	/**
	 * Bytes that arrays may still take where the backend works, and the most that this process's took at once there (-1: not known).
	 * NULL: the host's memory (fx_math_memory asks either).
	 */
	int (*memory)(fx_math *m, int64_t *available, int64_t *most);

	/** What the work is done by, with all that a choice of kernels may depend on ("NVIDIA H200, driver 13.0, ..."). NULL: nothing to say. */
	int (*describe)(fx_math *m, char *text, size_t size);

	/** Elements [from, from + n) of one array into [to, to + n) of another of the same type; both on this backend, and different. */
	int (*copy)(fx_math *m, const fx_array *source, int64_t from, int64_t n, fx_array *target, int64_t to);

	/**
	 * Centred FFT over the first three axes of a cf32/cf64 array, in place, for every further index:
	 * index floor(N/2) is the origin on both sides; sign -1 forward, +1 inverse; multiplied by `scale`.
	 */
	int (*fft)(fx_math *m, fx_array *a, int sign, double scale);

	/* NUFFT: points are sorted once and spread or interpolated many times. k is f64 {3, M}, cycles/voxel. */
	int (*points_new)(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points);
	void (*points_free)(fx_math *m, void *points);
	/** fine {fx, fy, fz, n}, k = 0 in cell fine/2, += samples {M, n} spread with the kernel. Real grids take and give f32/f64. */
	int (*spread)(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine);
	/** samples {M, n} = fine gathered with the kernel (the transpose of spread). */
	int (*interpolate)(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *fine, fx_array *samples);
	/** image {x, y, z, n} = scale * crop(FFT^+1(fine)) / kernel transform. Pruned; overwrites fine. */
	int (*fine_to_image)(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale, fx_array *image);
	/** fine = FFT^-1(pad(scale * image / kernel transform)). The transpose of fine_to_image; not for real grids. */
	int (*image_to_fine)(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine);

	/**
	 * The chapter's sums, exactly: image {x,y,z,n} += scale * sum_m s_m e^{+i2pi k_m.x}, and its adjoint
	 * samples {M,n} = scale * sum_x image e^{-i2pi k_m.x}. Phases are taken from k as a fixed-point fraction of
	 * a cycle times the integer voxel index, which wraps exactly. The element type of `samples` chooses
	 * single or double arithmetic.
	 */
	int (*direct_adjoint)(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
	int (*direct_forward)(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);
	/**
	 * direct_adjoint by a kernel of the chapter's ladder, cf32: phases in single precision, as they were there, cost up to 1e-5 of
	 * the result at 128 voxels an axis. FX_EINVAL for a plan that is none. NULL: the backend has no such kernels.
	 */
	int (*direct_ladder)(fx_math *m, const fx_direct_plan *plan, const fx_array *k, const fx_array *samples, double scale,
		fx_array *image);
	/**
	 * The same sums as matrix products: on a grid e^{i2pi k.x} is a product of one factor an axis, so that
	 * image[x, (y,z)] = sum_m (s_m Ex[m,x]) (Ey[m,y] Ez[m,z]). Exact too, to a few roundings more; the host needs up to
	 * 5 MB of work memory a thread in single, 9 in double.
	 */
	int (*separable_adjoint)(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image);
	int (*separable_forward)(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples);

	/**
	 * Block-Toeplitz products: y {x,y,z,n} = T x for every coil, where `spectrum` is the real f32 spectrum
	 * {2x,2y,2z} (axes of 1 stay 1) on the doubled grid, in the FFT's own order (index 0 is frequency 0) and
	 * unnormalised: the plain FFT of Q, so its values are eigenvalues of the circulant that T is a part of.
	 * y may be x. No zero-padded volume exists; the host needs 16 x y z bytes besides, and 16 x y a thread. cf32.
	 */
	int (*toeplitz_apply)(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y);
	/**
	 * The spectrum of a centred Hermitian Q {2x,2y,2z} cf32 (index N is lag 0, index 0 is not looked at); overwrites
	 * q. FX_EDATA where Q is not Hermitian or not finite.
	 */
	int (*toeplitz_spectrum)(fx_math *m, fx_array *q, fx_array *spectrum);

	/* vectors, cf32, any shape; sums in double and in a fixed order */
	int (*dot)(fx_math *m, const fx_array *x, const fx_array *y, double *re, double *im); /**< sum conj(x) y */
	int (*axpy)(fx_math *m, double a, const fx_array *x, fx_array *y);                    /**< y += a x */
	int (*xpay)(fx_math *m, const fx_array *x, double a, fx_array *y);                    /**< y = x + a y */
	int (*scale)(fx_math *m, double a, fx_array *x);
	/**
	 * y {x,y,z} += factor * W^H W x: W takes weighted first differences, sqrt(w) (x_n - x_next) along each axis. `weights`
	 * f32 {x,y,z,3} hold w of the pair that a voxel makes with the next one along axis 0, 1, 2; those of an axis's last
	 * plane are not read. cf32; x and y must differ.
	 */
	int (*difference_normal)(fx_math *m, const fx_array *weights, double factor, const fx_array *x, fx_array *y);

	/**
	 * The normal operator and conjugate gradients in one piece each, for backends where that saves passes through memory or waiting;
	 * both NULL elsewhere, and then recon/ does the same by the operations above. x and y of normal_apply differ. They work in
	 * batches of coils: normal_bytes says how many bytes they take beside their arrays.
	 */
	int (*normal_apply)(fx_math *m, const fx_normal *a, const fx_array *x, fx_array *y);
	int64_t (*normal_bytes)(fx_math *m, const int64_t dims[3], int64_t n_coils);
	/**
	 * Up to n iterations of conjugate gradients, q = A p, x += alpha p, r -= alpha q, p = r + beta p, from x, r and p as they are;
	 * rr is ||r||^2; q is scratch. Ends early once ||r||^2 <= goal, and before x changes where p^H A p is not a positive number.
	 * sums[0 .. *n_done) tell of each iteration, one that failed included. The same bits whenever it is run.
	 */
	int (*cg_steps)(fx_math *m, const fx_normal *a, const fx_array *b, double rr, double goal, int64_t n, fx_array *x, fx_array *r,
		fx_array *p, fx_array *q, fx_cg_sums *sums, int64_t *n_done);

	/**
	 * cells {x,y,z,n} += samples {M,n}, each shared out linearly to the nearest two cells along each axis (k = 0 in cell floor(N/2),
	 * periodic); k f64 {3,M}, finite, cycles/voxel. cf32.
	 */
	int (*share_out)(fx_math *m, const fx_array *k, const fx_array *samples, fx_array *cells);
	/**
	 * Iterative density weights (Pipe & Menon 1999) with the quadratic B-spline as kernel, {points}, on the host: from `count`, n times
	 * weights times the kernel's mass in covered cells over the weights' convolution with the kernel; and at last times the covered
	 * volume over the weights, both smoothed by a cubic B-spline in the cells' centres. See recon/density.c.
	 */
	int (*density_iterate)(fx_math *m, const fx_density_cells *cells, int64_t n_iterations, float *weights);

	/* coils: maps {x,y,z,c}, image {x,y,z}, coil images {x,y,z,c}; cf32 */
	int (*coil_expand)(fx_math *m, const fx_array *maps, const fx_array *image, fx_array *coils);
	int (*coil_combine)(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array *image); /**< sum conj(S) I */
	int (*coil_power)(fx_math *m, const fx_array *coils, fx_array *power);                         /**< f32 sum |I|^2 */
	/** image /= power, 0 where that is; without maps image = sqrt(power). NULL: on the host, by recon/coils.c. */
	int (*coil_finish)(fx_math *m, const fx_array *power, bool has_maps, fx_array *image);
	/** out {samples, n_out} = matrix {n_in, n_out} (row of n_in per output coil) times in {samples, n_in}. */
	int (*coil_mix)(fx_math *m, const fx_array *matrix, const fx_array *in, fx_array *out);
	/** Walsh et al. 2000: maps {x,y,z,c} from coil images, blocks of (2 radius + 1) voxels an axis. */
	int (*walsh)(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array *maps);

	/**
	 * u8 marks of any shape: out = (a & bits) ? yes : no, but 0 where `within` (NULL: everywhere) is 0. out may be a, or NULL where only
	 * counts are asked for: counts[k] (NULL: none) of elements of a with bit k, counts[8] of those that out is, or would be, not 0 in.
	 */
	int (*marks)(fx_math *m, const fx_array *a, unsigned bits, int yes, int no, const fx_array *within, fx_array *out,
		int64_t counts[9]);
	/** out f32 = |x| of a cf32 x (NULL: x, which may be f32, is only looked at). *any: some x is positive, or, complex, not 0. */
	int (*magnitude)(fx_math *m, const fx_array *x, fx_array *out, bool *any);

	/* tensor fields and fibres */
	/**
	 * out f32 {6, x, y, z} = tensors averaged with a Gaussian of `sigma` voxels an axis, cut at 3 sigma, over the voxels of `mask` (NULL: all)
	 * without any of `skip_flags` in `flags` (or NULL) and with finite tensors, weights summing to 1; other voxels stay as they are.
	 */
	int (*tensor_smooth)(fx_math *m, const fx_array *tensors, const fx_array *mask, const fx_array *flags, unsigned skip_flags,
		const double sigma[3], fx_array *out);
	/**
	 * Fills the arrays `out` (new, zeroed) from tensors f32 {6, x, y, z} in RAS axes, a mask u8 {x, y, z} (NULL: everywhere) and
	 * flags u8 {x, y, z} (or NULL). Eigenvalues and g are computed in double. Voxels outside that touch the mask take the mean of their
	 * neighbours inside (by a face, else an edge, else a corner); farther out g and D are NaN, FA and MD 0.
	 */
	int (*metric_build)(fx_math *m, const fx_metric_plan *plan, const fx_array *tensors, const fx_array *mask,
		const fx_array *flags, const fx_metric_arrays *out, fx_metric_counts *counts);
	/**
	 * Tensors of volumes f32 {x, y, z} by log-linear least squares, in every voxel of `mask` (u8; NULL: everywhere); others are
	 * not written to. Signals that are not finite or not positive have weight 0 (FX_TENSOR_DROPPED); where the rest does not
	 * determine a tensor it is 0 (FX_TENSOR_UNFITTED). FX_TENSOR_ISOTROPIC: all signals are the same. FX_TENSOR_CLAMPED: see floor.
	 */
	int (*tensor_fit)(fx_math *m, const fx_tensor_design *design, const fx_array *const *volumes, const fx_array *mask,
		const fx_tensor_arrays *out);
	/**
	 * One volume's share of an unweighted fit: sums f32 {x, y, z, 7} += row ln S. seen (u8 {x, y, z}) |= 1 where S is of no use,
	 * and adds nothing, |= 2 where S is not that of `first`, a volume of the same series.
	 */
	int (*tensor_accumulate)(fx_math *m, const double row[7], const fx_array *volume, const fx_array *first, fx_array *sums,
		fx_array *seen);
	/** Tensors of such sums, x = to_x sums, in the voxels of `mask` where all signals were of use: d, s0 and flags. */
	int (*tensor_solve)(fx_math *m, const fx_tensor_design *design, const fx_array *sums, const fx_array *seen,
		const fx_array *mask, const fx_tensor_arrays *out);
	/**
	 * The field in the form that a plan asks for, for many batches: *prepared is NULL where nothing has to be made. The metric's arrays are
	 * borrowed and must outlive it. FX_ENOTSUP for a form that this backend does not have.
	 */
	int (*track_prepare)(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void **prepared);
	void (*track_release)(fx_math *m, void *prepared);
	/**
	 * Fibres from starts f64 {6, n}: position in voxel indices, direction in voxels of any length (0, 0, 0: the principal
	 * eigenvector of D there). The arrays of *out are new; fibres come in the order of their starts, and `seeds` number these from
	 * 0. Only what `keep` (NULL: everything) lets through is put there. Positions are kept to 1e-7 voxel a step, in double or as a cell and a
	 * fraction; all else in single. `prepared` is of the same plan and metric. On failure *out may hold arrays, which the caller drops.
	 */
	int (*track_batch)(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void *prepared, const fx_track_keep *keep,
		const fx_array *starts, fx_track_arrays *out, fx_track_counts *counts);
};

/** The CPU backend, always there. */
FX_EXPORT const fx_backend *fx_backend_host(void);

/** Which backend was chosen, and why. */
typedef struct fx_backend_choice {
	char name[16];           /**< "host" or "cuda:N": what fx_math_new takes */
	char why[480];           /**< a sentence */
	bool on_device;
	fx_device_info device;   /**< where on_device */
} fx_backend_choice;
/**
 * Looks for what was asked for: "host"; "cuda" or "cuda:N", an error where that GPU does not work; "auto": the first GPU that works and has
 * FX_AUTO_BYTES free, else the host, and `why` says what was wrong. A GPU is tried by computing something on it. Nothing falls back later.
 */
FX_EXPORT int fx_backend_choose(const char *asked, fx_backend_choice *out, fx_error *err);
#define FX_AUTO_BYTES (INT64_C(512) << 20)

/**
 * A handle on a backend, as fx_backend_choose finds it. n_threads 0 means every processor this process may use. On failure *err says why
 * and *out is NULL.
 */
FX_EXPORT int fx_math_new(const char *backend, int n_threads, fx_error *err, fx_math **out);
FX_EXPORT void fx_math_free(fx_math *m);
/** FX_ECANCELED, explained, once `stopped` says so; else FX_OK. Loops of long steps ask between them. */
FX_EXPORT int fx_math_check(fx_math *m);
/** FX_ENOTSUP, explained, where the backend lacks what is named ("separable sums"): `there` tells. Else FX_OK. */
FX_EXPORT int fx_math_need(fx_math *m, bool there, const char *what);
/** Bytes that arrays may still take where this handle computes, and the most that were taken at once (-1: not known; may be NULL). */
FX_EXPORT int fx_math_memory(fx_math *m, int64_t *available, int64_t *most);
/** True where this handle computes on the host, so that its arrays' data may be read and written. */
FX_EXPORT bool fx_math_on_host(const fx_math *m);
/** fx_error_set on the handle's error slot. */
FX_EXPORT int fx_math_fail(fx_math *m, int status, const char *fmt, ...) FX_PRINTF(3, 4);

/**
 * Runs body(arg, i) for i in [0, n) on the process's one compute pool and the calling thread; returns
 * when all are done. At most one such region is active in the process at a time, so gadget threads
 * and compute threads never multiply. Which thread runs which i is not fixed: write to places that
 * depend on i alone. Host backends and host-only recon code.
 */
FX_EXPORT void fx_parallel(int n_threads, int64_t n, void (*body)(void *arg, int64_t i), void *arg);
/** Processors this process may use. */
FX_EXPORT int fx_processors(void);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * gadget.h - the plugin interface: one descriptor a shared object, and the services a gadget may use.
 *
 * A gadget is a `const fx_gadget fx_plugin` and a few functions. The engine allocates and zeroes its state, sets
 * the properties, calls `open` once the scan header is known, `process` for each message of a kind it takes,
 * `flush` at the end of input, and `close`, all on one thread of its own.
 */
#ifndef FORNIX_GADGET_H
#define FORNIX_GADGET_H

#include <fornix/array.h>
#include <fornix/backend.h>
#include <fornix/base.h>
#include <fornix/message.h>
#include <fornix/property.h>
#include <fornix/scan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fx_ctx fx_ctx;

typedef struct fx_gadget {
	uint32_t abi;              /**< FX_ABI; checked first */
	const char *name;          /**< the file's name and the XML element */
	const char *summary;       /**< one line */
	const char *description;   /**< what it does, when it holds messages back, sources; plain text, may be NULL */
	const fx_prop *props;      /**< ends with FX_PROP_END; NULL for none */
	size_t state_size;
	unsigned takes, gives;     /**< enum fx_kind bits; what it does not take passes through untouched, in order.
	                                A kind in both is one it passes on or changes, not one that it makes */
	unsigned needs;            /**< kinds of `takes` without which it has no work: the chain is refused when nothing upstream gives them */
	unsigned places;           /**< enum fx_place bits */
	int (*open)(void *self, fx_ctx *ctx);                  /**< optional */
	int (*process)(void *self, fx_ctx *ctx, fx_msg *msg);  /**< owns msg on every path */
	int (*flush)(void *self, fx_ctx *ctx);                 /**< optional; end of input */
	void (*close)(void *self);                             /**< optional; also after a failed open */
} fx_gadget;

#ifndef __cplusplus
/** The only symbol that a plugin exports. */
extern FX_EXPORT const fx_gadget fx_plugin;
#endif

/** Explains a failure (gadget's name is put in front by the engine) and returns status. The first explanation stays. */
FX_EXPORT int fx_fail(fx_ctx *ctx, int status, const char *fmt, ...) FX_PRINTF(3, 4);
/**
 * The slot that fx_fail writes to, for functions that explain themselves. A gadget that goes on after an explained
 * failure resets it (`*fx_err(ctx) = (fx_error){0}`); else the engine does, and shows the explanation as a warning.
 */
FX_EXPORT fx_error *fx_err(fx_ctx *ctx);
/**
 * Hands a message of a kind in `gives` to the next gadget; always consumes it. Blocks while the queue is full.
 * NULL stands for a message there was no memory for: FX_ENOMEM. Once the run is being stopped it drops the message
 * and returns FX_ECANCELED: pass that on. Not from `open`, where nobody behind is ready.
 */
FX_EXPORT int fx_emit(fx_ctx *ctx, fx_msg *msg);
/** True where some gadget downstream takes this kind: what nobody takes need not be made. */
FX_EXPORT bool fx_wanted(fx_ctx *ctx, unsigned kind);
/** True once the run is being stopped; long loops ask, and return FX_ECANCELED. */
FX_EXPORT bool fx_stopped(fx_ctx *ctx);

/** In flush: true where the input did not end but broke off (a lost connection), so that what is open is incomplete. */
FX_EXPORT bool fx_input_cut(fx_ctx *ctx);

/** The scan header. Never NULL in open, process and flush. */
FX_EXPORT const fx_header *fx_scan(fx_ctx *ctx);
/** The gadget's own handle on the run's backend; its error slot is fx_err(ctx). */
FX_EXPORT fx_math *fx_math_of(fx_ctx *ctx);

/* ---- log and record ------------------------------------------------------------------------- */

FX_EXPORT void fx_info(fx_ctx *ctx, const char *fmt, ...) FX_PRINTF(2, 3);
/** Shown to the user and kept in run.json; a sentence that comes often is shown a few times and counted. */
FX_EXPORT void fx_warn(fx_ctx *ctx, const char *fmt, ...) FX_PRINTF(2, 3);
/**
 * Puts a figure into this gadget's part of run.json; the same key again appends: a list comes out (of lists, for
 * fx_record_numbers). NaN becomes null. A key keeps the type it was first used with. Not from `close`, nor from
 * threads of fx_parallel.
 */
FX_EXPORT void fx_record_number(fx_ctx *ctx, const char *key, double value);
FX_EXPORT void fx_record_numbers(fx_ctx *ctx, const char *key, const double *values, int64_t n);
FX_EXPORT void fx_record_text(fx_ctx *ctx, const char *key, const char *value);
/** Adds to a counter in this gadget's part of run.json. */
FX_EXPORT void fx_record_count(fx_ctx *ctx, const char *key, int64_t more);

/* ---- files, through the run's own I/O -------------------------------------------------------- */

enum fx_format {
	FX_FORMAT_MRD = 1, FX_FORMAT_NIFTI, FX_FORMAT_PNG, /* take images; PNG takes tracts too */
	FX_FORMAT_VOLUME,                                  /* one fx_volume as NIfTI */
	FX_FORMAT_TCK, FX_FORMAT_TRK, FX_FORMAT_TRX,       /* take tracts */
	FX_FORMAT_TEXT,                                    /* takes text: JSON, CSV, b-tables */
	FX_FORMAT_MRD_SCAN                                 /* takes readouts and waveforms: a raw scan */
};

typedef struct fx_sink_options {
	int format;         /**< enum fx_format */
	const char *name;   /**< file name inside the output folder, e.g. "image.nii.gz"; no folder part */
	bool complex_values;/**< NIfTI: keep complex64 instead of the magnitude */
	double window_low, window_high; /**< PNG: percentiles of the shown range, 0..100 */
	const char *header_xml; /**< FX_FORMAT_MRD_SCAN: the header to store, as fx_scan has it; borrowed until fx_sink_open returns */
	const fx_tracts_info *tracts; /**< tract formats and PNG of tracts: of the set to come; borrowed until fx_sink_open returns */
} fx_sink_options;

/** A product being written aside. It appears under its name at fx_sink_commit, whole. */
typedef struct fx_sink fx_sink;
FX_EXPORT int fx_sink_open(fx_ctx *ctx, const fx_sink_options *options, fx_sink **out);
/** Adds one image (borrowed). */
FX_EXPORT int fx_sink_add(fx_ctx *ctx, fx_sink *sink, const fx_image *image);
/** A field of voxels as one NIfTI file, with its own affine (sform; qform too where it does not shear). */
typedef struct fx_volume {
	const fx_lattice *lattice;
	const fx_array *data;    /**< {x, y, z} or {x, y, z, n}: f32, f64, u8, i16, i32; u8 {3, x, y, z} where rgb */
	bool rgb;                /**< NIfTI's RGB24 */
	bool symmetric;          /**< n is 6: written as {x, y, z, 1, 6}, intent SYMMATRIX of order 3 */
	bool vector;             /**< n is 3: written as {x, y, z, 1, 3}, intent VECTOR; else {x, y, z, n} */
	const char *description; /**< up to 79 characters, or NULL */
	const char *comment;     /**< a header extension of plain text: how it was made, caveats; or NULL */
} fx_volume;

/** Gives a FX_FORMAT_VOLUME sink its one volume. */
FX_EXPORT int fx_sink_volume(fx_ctx *ctx, fx_sink *sink, const fx_volume *volume);
/** Adds a batch of fibres, or the end mark (does nothing), to a sink of a tract format or a PNG. Streams to disk. */
FX_EXPORT int fx_sink_tracts(fx_ctx *ctx, fx_sink *sink, const fx_tracts *tracts);
/** Adds text to a FX_FORMAT_TEXT sink. */
FX_EXPORT int fx_sink_text(fx_ctx *ctx, fx_sink *sink, const char *text);
/** Adds a readout or a waveform (borrowed) to a FX_FORMAT_MRD_SCAN sink. The file is written without any too. */
FX_EXPORT int fx_sink_scan(fx_ctx *ctx, fx_sink *sink, fx_msg *msg);
/** Opens a FX_FORMAT_VOLUME sink, gives it the volume and commits it. */
FX_EXPORT int fx_write_volume(fx_ctx *ctx, const char *name, const fx_volume *volume);
/** Finishes and renames; ends the sink's life, also on failure. */
FX_EXPORT int fx_sink_commit(fx_ctx *ctx, fx_sink *sink);
/**
 * What a writing gadget does with an image message: opens *sink on the first one, adds it, and passes the message on
 * (always consumed).
 */
FX_EXPORT int fx_sink_write(fx_ctx *ctx, fx_sink **sink, const fx_sink_options *options, fx_msg *msg);
/** And at the end of input: commits *sink, if there was an image, and makes it NULL. */
FX_EXPORT int fx_sink_finish(fx_ctx *ctx, fx_sink **sink);
/** Throws away what was written aside. NULL is fine. */
FX_EXPORT void fx_sink_abandon(fx_sink *sink);

/**
 * Numbers from a file: text of 1 to 65536 columns (between spaces, tabs, commas or semicolons; # starts a comment; "nan" is a
 * number, infinity is not), blocks between blank lines; or the trajectories of an MRD file, a block for each readout that is part of an image. *values
 * (new, f64 {columns, rows}), *lengths (new, i32 {blocks}): rows of each block. FX_EDATA names the line.
 */
FX_EXPORT int fx_read_table(fx_ctx *ctx, const char *path, fx_array **values, fx_array **lengths);
/**
 * A NIfTI-1 or -2 file of any type and byte order, gzip or not: *data (new, on the host) has its dims, at least three, as f32,
 * f64 or cf32. affine takes voxel indices to RAS millimetres; where the file has none (*has_affine false) it is the voxel sizes.
 */
FX_EXPORT int fx_read_nifti(fx_ctx *ctx, const char *path, fx_array **data, double affine[3][4], bool *has_affine);

/* ---- cache across frames and runs ------------------------------------------------------------ */

/** *out is NULL where nothing (or only something damaged) is kept under this key. Keys are digests: [0-9a-f-]. */
FX_EXPORT int fx_cache_get(fx_ctx *ctx, const char *key, fx_array **out);
/** Keeps an array in memory at once, and on disk from the second use of its key on. A cache that cannot be written is a warning. */
FX_EXPORT int fx_cache_put(fx_ctx *ctx, const char *key, fx_array *array);

/* ---- noise of other scans -------------------------------------------------------------------- */

/** A noise covariance as it was measured. */
typedef struct fx_noise {
	fx_array *covariance;   /**< cf64 {coils, coils}: mean of x_a conj(x_b) over samples, not scaled; NULL: none */
	double dwell_us;        /**< of the noise readouts */
	int64_t n_samples;      /**< that it is the mean of */
} fx_noise;

/** Drops the covariance. */
FX_EXPORT void fx_noise_clear(fx_noise *noise);
/** The noise that an earlier scan of that measurement id left. noise->covariance stays NULL where none is kept, or nothing keeps any. */
FX_EXPORT int fx_noise_get(fx_ctx *ctx, const char *measurement_id, fx_noise *noise);
/** Leaves this scan's noise (borrowed, on the host) for later ones. Where nothing keeps any this does nothing. */
FX_EXPORT int fx_noise_put(fx_ctx *ctx, const char *measurement_id, const fx_noise *noise);
/** In flush: true where all readouts of the scan were noise, and a gadget upstream left what they told: no image is due. */
FX_EXPORT bool fx_noise_only(fx_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif

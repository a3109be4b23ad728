/* SPDX-License-Identifier: MIT */
/*
 * services.h - what the engine is given from outside to serve its gadgets: files, cache, log. io/ and apps/
 * implement them; tests put their own in.
 */
#ifndef FORNIX_STREAM_SERVICES_H
#define FORNIX_STREAM_SERVICES_H

#include <fornix/gadget.h>

/*
 * Files, cache and log are used by the threads of several gadgets at once; one product only by one. Where `warn` is
 * NULL when a run begins the engine listens itself: the warning becomes one of the gadget that the calling thread
 * works for.
 */

/** A product being written; what an fx_sink is inside. */
typedef struct fxi_product fxi_product;
struct fxi_product {
	/* What it takes; NULL where its format cannot hold that. */
	int (*add)(fxi_product *self, const fx_image *image, fx_error *err);
	int (*add_volume)(fxi_product *self, const fx_volume *volume, fx_error *err);
	int (*add_tracts)(fxi_product *self, const fx_tracts *tracts, fx_error *err);
	int (*add_text)(fxi_product *self, const char *text, fx_error *err);
	int (*add_scan)(fxi_product *self, fx_msg *readout, fx_error *err); /**< or waveform */
	/** Finishes the file(s), renames them into place, adds their names to the run's list; frees self. */
	int (*commit)(fxi_product *self, fx_error *err);
	void (*abandon)(fxi_product *self); /**< removes what was written aside; frees self */
};

typedef struct fxi_files fxi_files;
struct fxi_files {
	int (*open)(fxi_files *self, const fx_sink_options *options, fx_error *err, fxi_product **out);
	/** Told to the user and the record by a product: geometry unknown, several orientations, ... */
	void (*warn)(void *arg, const char *text);
	void *warn_arg;
	/** A table as fx_read_table gives it; NULL where the run can read none. */
	int (*read_table)(fxi_files *self, const char *path, fx_error *err, fx_array **values, fx_array **lengths);
	/** A NIfTI file as fx_read_nifti gives it; NULL where the run can read none. */
	int (*read_nifti)(fxi_files *self, const char *path, fx_error *err, fx_array **data, double affine[3][4],
		bool *has_affine);
	void (*close)(fxi_files *self);
};

typedef struct fxi_cache fxi_cache;
struct fxi_cache {
	int (*get)(fxi_cache *self, const char *key, fx_array **out, fx_error *err);
	int (*put)(fxi_cache *self, const char *key, fx_array *array, fx_error *err);
	void (*warn)(void *arg, const char *text);
	void *warn_arg;
	void (*close)(fxi_cache *self);
};

/** Noise covariances that outlive a scan, by the measurement id of the scan that measured them. Any thread may call. */
typedef struct fxi_noise_store fxi_noise_store;
struct fxi_noise_store {
	/** *out (the caller's, fx_noise_clear) has no covariance where none is kept under that id. */
	int (*get)(fxi_noise_store *self, const char *measurement_id, fx_noise *out, fx_error *err);
	int (*put)(fxi_noise_store *self, const char *measurement_id, const fx_noise *noise, fx_error *err);
};

enum fxi_level { FXI_DEBUG, FXI_INFO, FXI_WARNING, FXI_ERROR };

/** Where log lines go; `gadget` is NULL for the engine's own. Called from any thread. */
typedef void (*fxi_log_fn)(void *arg, int level, const char *gadget, const char *text);

typedef struct fxi_services {
	fxi_files *files;   /**< NULL: fx_sink_open fails with a clear error */
	fxi_cache *cache;   /**< NULL: nothing is kept */
	fxi_noise_store *noise;   /**< NULL: a scan knows its own noise readouts only */
	fxi_log_fn log;     /**< NULL: silent */
	void *log_arg;
} fxi_services;

#endif

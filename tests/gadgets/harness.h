/* SPDX-License-Identifier: MIT */
/*
 * harness.h - one gadget or a short chain under test: push messages in, collect what comes out. Built on the real
 * engine, so a gadget that fails, hangs or stops early makes the test fail.
 */
#ifndef FORNIX_TESTS_HARNESS_H
#define FORNIX_TESTS_HARNESS_H

#include <fornix/fornix.h>

#include "stream/chain.h"

/* A fx_volume that a product was given; the array is shared, all else copied. */
typedef struct harness_volume {
	fx_lattice lattice;
	fx_array *data;
	bool rgb, symmetric, vector;
	char *description, *comment; /* NULL where it had none */
} harness_volume;

/* A file that a gadget wrote through fx_sink and committed. */
typedef struct harness_product {
	char *name;
	fx_sink_options options;  /* its name is the one above, its tracts and header_xml copies (or NULL) */
	fx_msg **images;          /* copies that share the arrays */
	int64_t n_images;
	harness_volume *volumes;
	int64_t n_volumes;
	fx_msg **tracts;          /* likewise; end marks too */
	int64_t n_tracts;
	fx_msg **scan;            /* readouts and waveforms, in order */
	int64_t n_scan;
	char *text;               /* all that it was given; NULL where nothing came */
} harness_product;

typedef struct harness {
	int status;               /* of the run, or of loading the chain */
	fx_error err;
	fx_msg **out;             /* what left the last gadget, in order */
	int64_t n_out;
	harness_product *products;/* in order of their commits */
	int64_t n_products;
	int64_t n_abandoned;      /* files that were opened and thrown away */
	char **warnings;          /* every line logged as a warning, "gadget: text" */
	int64_t n_warnings;
	struct harness_run *run;  /* the rest of it, for the functions below */
} harness;

typedef struct harness_options {
	int n_threads;                     /* compute threads; 0: two */
	int64_t queue_bytes;               /* bound of each queue; 0: the engine's default */
	fxi_cache *cache;                  /* shared between runs by who passes it; NULL: none */
	fxi_noise_store *noise;            /* likewise */
	const fx_gadget *const *gadgets;   /* more gadgets than the built ones, ends with NULL; may be NULL */
	bool no_files;                     /* run without an output folder; else tables and NIfTI files are read from disk */
} harness_options;

/**
 * Runs `chain` ("gadget property=value property='two words' | gadget ...") on the given messages (owned: consumed) with
 * this MRD XML header (NULL: a Cartesian 64 x 64 one). Always fills *h; release with harness_free. Fails the test after 60 s.
 */
void harness_run(harness *h, const char *chain, const char *header_xml, fx_msg **messages, int64_t n_messages);
void harness_run_with(harness *h, const char *chain, const char *header_xml, fx_msg **messages, int64_t n_messages,
	const harness_options *options);
void harness_free(harness *h);

/* What the stage (counted from 0) recorded under a key; NaN, -1 or NULL where it did not. `item` counts from 0. */
double harness_number(const harness *h, int64_t stage, const char *key, int64_t item);
int64_t harness_count(const harness *h, int64_t stage, const char *key);
const char *harness_text(const harness *h, int64_t stage, const char *key, int64_t item);
/* The engine's whole report of a stage; the chain must have been loaded. */
void harness_stage(const harness *h, int64_t stage, fxi_stage_report *out);
/* True where some warning holds this text. */
bool harness_warned(const harness *h, const char *part);
/* The last product of that name; NULL where none was committed. */
const harness_product *harness_find_product(const harness *h, const char *name);

/** An acquisition of zeros: samples x coils, with an f32 trajectory of `dims` per sample where dims > 0. */
fx_msg *harness_acquisition(int64_t samples, int64_t coils, int64_t dims);
/** A minimal MRD header: matrix, field of view in mm, trajectory word ("spiral"), encodingLimits of step_1 0..n-1 (0: none). Free with free(). */
char *harness_header(const int64_t matrix[3], const double fov_mm[3], const char *trajectory, int64_t n_readouts);

/**
 * What a series shares (count 1): a lattice of these dims with axes along R, A, S and the first voxel's centre at 0, and n
 * gradients, b and a direction each (made a unit vector where it is not 0).
 */
fx_series_info *harness_series_info(const int64_t dims[3], const double voxel_mm[3], int64_t n, const double (*table)[4]);
/**
 * The messages of a series, info->n_volumes + 1 of them, the last its end mark: volume v is a f32 copy of
 * data + v * x * y * z. The info is borrowed.
 */
void harness_series(fx_series_info *info, const float *data, fx_msg **messages);

/** A cache in memory, for harness_options; free it with its close. */
fxi_cache *harness_cache(void);
/** How many of its keys begin like this. */
int harness_cache_keys(fxi_cache *cache, const char *beginning);

#endif

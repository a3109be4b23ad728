/* SPDX-License-Identifier: MIT */
/*
 * tracts.h - files of fibres, written and read as they stream: MRtrix's .tck, TrackVis' .trk, and TRX (.trx). Neither
 * way holds more than a batch, whatever their number.
 *
 * What each can hold beyond the points: .tck nothing; .trk up to 10 values per fibre (single precision) and 10 per point,
 * the lattice; .trx all of it.
 */
#ifndef FORNIX_IO_TRACTS_H
#define FORNIX_IO_TRACTS_H

#include <fornix/message.h>

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct fxi_tract_writer fxi_tract_writer;
struct fxi_tract_writer {
	/** A batch of at least one fibre. Batches of one set agree in which of `riemann` and `seeds` they have. */
	int (*add)(fxi_tract_writer *self, const fx_tracts *t, fx_error *err);
	/** Completes the header and renames the file into place; frees self, also on failure. */
	int (*finish)(fxi_tract_writer *self, fx_error *err);
	void (*abandon)(fxi_tract_writer *self);
};

/** What a writer has to say to the user: values that found no place. */
typedef struct fxi_tract_notes {
	void (*warn)(void *arg, const char *text);
	void *arg;
} fxi_tract_notes;

/** Opens `path`, aside. `info` is copied. FX_EINVAL where the format cannot hold the lattice. */
int fxi_tck_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out);
int fxi_trk_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out);
int fxi_trx_writer(const char *path, const fx_tracts_info *info, const fxi_tract_notes *notes, fx_error *err, fxi_tract_writer **out);

/** FX_EINVAL where a batch contradicts itself in the size of its arrays: it would be read beyond its end. */
int fxi_tracts_check(const char *name, int n_values, const fx_tracts *t, fx_error *err);
/** "geodesic, metric inverse, step 0.5 mm; origin; caveats" on one line of printable characters. */
void fxi_tracts_text(const fx_tracts_info *info, char *text, size_t size);

/* ---- orientation (orientation.c) ------------------------------------------------------------- */

/**
 * The anatomical axis nearest to each index axis, as nibabel chooses them: of the rotation nearest to the affine's axes
 * without their lengths. axis[j] is 0, 1, 2 (R, A, S) and flip[j] true where it runs the other way. False where the affine is
 * singular or not finite.
 */
bool fxi_orientation(double affine[3][4], int axis[3], bool flip[3]);
/** Inverse of the 3 x 4 affine; false where it is singular or not finite. */
bool fxi_affine_inverse(double affine[3][4], double inverse[3][4]);

/* ---- reading --------------------------------------------------------------------------------- */

/** What the header says. */
typedef struct fxi_tract_facts {
	int format;           /**< FX_FORMAT_TCK, TRK or TRX */
	int64_t n_stated;     /**< fibres by the header; -1 where it does not say (a .tck's count is no more than a note) */
	fx_lattice lattice;   /**< dims 0 where there is none (.tck) */
	int n_values;         /**< per fibre, skipped */
	int n_scalars;        /**< per point, skipped */
	int n_groups;         /**< of a .trx, skipped */
} fxi_tract_facts;

typedef struct fxi_tract_reader fxi_tract_reader;
struct fxi_tract_reader {
	char *path;
	fxi_tract_facts facts;
	int64_t n_read;       /**< fibres given so far */
	float *points;        /**< {3, n} of the fibre read last */
	int64_t room;         /**< points that fit */
	int (*next)(fxi_tract_reader *self, fx_error *err, int64_t *n);
	void (*close)(fxi_tract_reader *self); /**< frees what is its own, not self */
};

/**
 * FX_FORMAT_TCK, TRK or TRX by the first bytes (a folder with a header.json is a TRX), else by the name's ending; 0 where
 * neither tells.
 */
int fxi_tracts_format(const char *path);
/** Opens a tract file of any of the formats. FX_EDATA says what is wrong with its header; FX_EIO, FX_ENOMEM. */
int fxi_tracts_open(const char *path, fx_error *err, fxi_tract_reader **out);
/**
 * The next fibre: *points (owned by the reader, valid until the next call) f32 {3, *n} RAS mm, *n may be 0; -1 at the end. FX_EDATA
 * where the file is cut short or damaged: which fibre, and how many bytes were expected.
 */
int fxi_tracts_next(fxi_tract_reader *r, fx_error *err, const float **points, int64_t *n);
/** NULL is fine. */
void fxi_tracts_close(fxi_tract_reader *r);

/** For the formats' own files: room for n points, keeping those there; FX_ENOMEM explained. */
int fxi_tracts_room(fxi_tract_reader *r, int64_t n, fx_error *err);
int fxi_tck_open(const char *path, fx_error *err, fxi_tract_reader **out);
int fxi_trk_open(const char *path, fx_error *err, fxi_tract_reader **out);
int fxi_trx_open(const char *path, fx_error *err, fxi_tract_reader **out);

#endif

/* SPDX-License-Identifier: MIT */
/* framer.h - what the framer's files share: open frames, and the memory of frames that are complete. */
#ifndef FORNIX_RECON_FRAMER_H
#define FORNIX_RECON_FRAMER_H

#include <fornix/recon.h>

/** The counters that separate frames. */
typedef struct fxi_frame_key {
	uint16_t encoding, slice, contrast, phase, repetition, set;
	uint16_t average, segment; /* 0 where these accumulate */
	uint16_t diffusion; /* fx_diffusion_counter; 0 where one of the others is it, or none */
} fxi_frame_key;

/** Why a frame was taken to be complete. */
enum fxi_close {
	FXI_CLOSE_FLAG = 1,   /**< a LAST flag */
	FXI_CLOSE_LIMITS,     /**< the encoding limits' count */
	FXI_CLOSE_REPETITION, /**< a counter that moved on */
	FXI_CLOSE_PHASE,
	FXI_CLOSE_SET,
	FXI_CLOSE_DIFFUSION
};

typedef struct fxi_closed {
	fxi_frame_key key;
	int reason;           /**< enum fxi_close; 0: an empty place */
	int64_t n_readouts;
} fxi_closed;

/** Every frame that is complete, so that a readout which comes too late is noticed: an open-addressing table. */
typedef struct fxi_closed_table {
	int64_t n, size;      /**< entries; places, a power of two or 0 */
	fxi_closed *places;
} fxi_closed_table;

typedef struct fxi_open_frame {
	fxi_frame_key key;
	int64_t id, n;
	int64_t n_positions, n_segments; /* distinct (step_1, step_2, average) and segments seen, where limits are followed */
	uint64_t *positions, *segments;  /* their bitmaps, or NULL */
	int reason;                      /* enum fxi_close once it is complete */
} fxi_open_frame;

typedef struct fxi_framer_encoding {
	fx_limit limits[FX_N_COUNTERS];
	int64_t expected;         /* readouts of a frame by the limits; 0: unknown, or not to be believed */
	int64_t n_segments;       /* by the limits; 1 where they say nothing */
	bool flagged;             /* FIRST or LAST flags are in use: limits are not */
	int64_t flagged_readouts; /* of the last frame that a LAST flag closed; 0: none yet */
} fxi_framer_encoding;

/* A run of readouts that counted frames are cut from: all counters but the repetition. */
typedef struct fxi_stream {
	fxi_frame_key key;
	int64_t n;
} fxi_stream;

struct fx_framer {
	fx_framer_options options;
	int diffusion_dimension;   /* enum fx_diffusion_dimension */
	bool own_average, own_segment; /* these make frames of their own: asked for, or what tells weightings apart */
	int64_t n_encodings;
	fxi_framer_encoding *encodings;
	int64_t n_open, capacity;
	fxi_open_frame *open;      /* in order of opening */
	int64_t *frames, *closed;  /* what fx_framed points to, `capacity` long */
	int64_t n_streams, streams_capacity;
	fxi_stream *streams;
	fxi_closed_table complete;
	int64_t n_readouts, next_id;
};

bool fxi_key_same(const fxi_frame_key *a, const fxi_frame_key *b);
/** The entry of that key, or NULL. */
const fxi_closed *fxi_closed_find(const fxi_closed_table *t, const fxi_frame_key *key);
/** Makes room for `more` entries, so that adding them cannot fail. FX_ENOMEM. */
int fxi_closed_reserve(fxi_closed_table *t, int64_t more);
/** Adds a key that is not in the table; room must have been reserved. */
void fxi_closed_add(fxi_closed_table *t, const fxi_closed *entry);
void fxi_closed_free(fxi_closed_table *t);

/* framer.c */
int64_t fxi_limit_span(const fx_limit *limit);
/** "imaging readout 17 (scan_counter ...)", for messages. */
void fxi_framer_describe(const fx_framer *f, const ISMRMRD_AcquisitionHeader *head, char *text, size_t size);
/** One more open frame, for which there is room in the list. FX_EDATA where max_open is reached. */
int fxi_framer_open(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_frame_key *key, fx_error *err,
	fxi_open_frame **out);
/** Moves the frames that have a reason to be complete from the open ones to `closed`, in order of opening. */
void fxi_framer_collect(fx_framer *f, bool remember, fx_framed *out);

/* framer_counters.c: places a readout by flags, limits and counters */
int fxi_framer_by_counters(fx_framer *f, const ISMRMRD_AcquisitionHeader *head, const fxi_frame_key *key, fx_error *err,
	fx_framed *out);

#endif

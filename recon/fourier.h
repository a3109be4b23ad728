/* SPDX-License-Identifier: MIT */
/* fourier.h - what fourier.c, accumulator.c and fine_grid.c share. */
#ifndef FORNIX_RECON_FOURIER_H
#define FORNIX_RECON_FOURIER_H

#include <fornix/recon.h>

/**
 * Samples that are gathered before they are spread (or summed): what makes the result independent of how they arrive, and
 * what bounds the memory of sorting. Part of the result's bits.
 */
#define FXI_CHUNK 131072

/** Samples being gathered. */
typedef struct fxi_chunk {
	int64_t room;          /* for how many there is memory so far, up to FXI_CHUNK */
	bool staged;           /* the backend's staging arrays: of FXI_CHUNK samples, copied from without waiting */
	fx_array *k;           /* f64 {3, room} */
	fx_array *samples;     /* {room, coils} */
} fxi_chunk;

/** Two accumulators of two chunks each: unweighted and weighted sums of a frame. */
#define FXI_SPARES 4

struct fx_fourier {
	fx_math *m;
	fx_fourier_spec spec;
	fx_fine_grid grid;     /* NUFFT only */
	int64_t n_voxels, n_cells;
	fxi_chunk spares[FXI_SPARES]; /* staged chunks of accumulators that ended, for the next ones */
};

void fxi_chunk_free(fxi_chunk *c);

/**
 * The oversampling, kernel width and beta that meet the spec's tolerance at the least expected time.
 * FX_EINVAL, explained, where none does.
 */
int fxi_fine_grid_choose(fx_math *m, const fx_fourier_spec *spec, fx_fine_grid *g);
/** Relative l2 error of a transform on this grid, estimated from the kernel's aliases and from rounding. */
double fxi_fine_grid_error(const fx_fine_grid *g);
/** FX_ENOMEM with the megabytes needed and available where `bytes` cannot fit. */
int fxi_need_memory(const fx_fourier *f, int64_t n_coils, double bytes);
/** Samples of one coil chunk: complex, or real where the spec says so and the method can make use of it. */
int fxi_sample_type(const fx_fourier *f);

#endif

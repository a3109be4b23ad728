/* SPDX-License-Identifier: MIT */
/* nufft.cuh - what nufft.cu (spreading) and fine.cu (the oversampled grid's FFT) share. */
#ifndef FORNIX_CUDA_NUFFT_CUH
#define FORNIX_CUDA_NUFFT_CUH

#include "cuda.cuh"

/** The widest kernel there is, and the padded length of a row of coefficients. */
#define FXI_WIDTHS 16

/** The fine grid and its tiles, as kernels take it by value. */
typedef struct fxi_cells {
	int fine[3], width[3];       /* axes of 1: 1 and 1 */
	int64_t n;
	int components;              /* 2 complex, 1 real */
	int degree;
	double beta;
	int tile[3], n_tiles[3];
	int rim[3], tile_cells;      /* a tile with the cells that its samples reach beyond it */
} fxi_cells;

template <typename REAL> struct fxi_point {
	int cell[3];                 /* first cell touched; the footprint may wrap around the end */
	uint32_t index;              /* which sample */
	REAL u[3];
};

/** Points of one block: all of one tile. */
typedef struct fxi_share {
	uint32_t first, n, tile;
} fxi_share;

typedef struct fxi_points {
	fxi_cells cells;
	int type;                    /* of the samples */
	int64_t n, n_shares;
	void *sorted;                /* fxi_point<float> or <double> */
	fxi_share *shares;
	void *coefficients;
} fxi_points;

/** Checks that `fine` is this grid's with the type that it should have; *n is how many there are in it. */
int fxi_cuda_need_fine(fx_math *m, const fx_fine_grid *g, const fx_array *fine, int64_t *n);

#endif

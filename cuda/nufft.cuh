/* SPDX-License-Identifier: MIT */
/*
 * nufft.cuh - what the NUFFT's files share: points.cu (sorting samples), nufft_spread.cu and nufft_gather.cu (tiles, single
 * precision), nufft.cu (the operations, and double), fine.cu (the oversampled grid's FFT).
 *
 * Axes of 1 do not change where anything lies in memory, so they are moved behind the others here: a grid of {1, 20, 30} is one
 * of {20, 30, 1}, and kernels know one, two or three axes.
 */
#ifndef FORNIX_CUDA_NUFFT_CUH
#define FORNIX_CUDA_NUFFT_CUH

#include "cuda.cuh"

/** The widest kernel there is, and the padded length of a row of coefficients. */
#define FXI_WIDTHS 16
/** The widest that goes through tiles; single precision asks for no more (fine_grid.c). */
#define FXI_TILED_WIDTH 10
/** The most samples of one block. */
#define FXI_SHARE 512

/** The fine grid and its tiles, as kernels take it by value. */
typedef struct fxi_cells {
	int n_axes, axis[3];         /* which of k's three are encoded, in order; the rest behind them */
	int fine[3], width[3];       /* in that order; axes of 1: 1 and 1 */
	int64_t n;
	int components;              /* 2 complex, 1 real */
	int degree;
	bool tiled;                  /* single precision, by tiles; else a thread a sample */
	int tile[3], n_tiles[3], all_tiles;
	int rim[3];                  /* a tile with the cells that its samples reach beyond it */
	int pitch, plane, tile_cells;/* of rows and planes of a tile, and all of it */
} fxi_cells;

/** A sample where a thread works on it alone. */
template <typename REAL> struct fxi_point {
	int cell[3];                 /* first cell touched; the footprint may wrap around the end */
	uint32_t index;              /* which sample */
	REAL u[3];
};

/** A sample of a tile. */
typedef struct fxi_tile_point {
	uint32_t at;                 /* first cell touched, in the tile with its rim */
	uint32_t index;
	float u[3];
} fxi_tile_point;

/** Points of one block: all of one tile. Large ones come first, so that none is left when others are through. */
typedef struct fxi_share {
	uint32_t first, n, tile;
	uint32_t slot;               /* its number in the order of tiles */
} fxi_share;

typedef struct fxi_points {
	fxi_cells cells;
	int type;                    /* of the samples */
	int64_t n;
	void *sorted;                /* fxi_tile_point, or fxi_point<float> or <double> */
	int64_t most_shares;         /* a bound: how many there are is known to the device alone */
	fxi_share *shares;
	uint32_t *first_share;       /* {tiles + 1}: a tile's shares; the last is how many there are */
	void *coefficients;          /* of the spreading kernel, {degree + 1, FXI_WIDTHS} */
} fxi_points;

#define FXI_NUFFT_KEPT 4

/** What a queue keeps between calls: spreading kernels, and the weights that divide by their transforms. */
typedef struct fxi_cuda_nufft {
	struct {
		int width, type, degree;
		double beta, coefficients[(FX_FINE_DEGREE + 1) * FXI_WIDTHS];
	} kernels[FXI_NUFFT_KEPT];
	struct {
		fx_fine_grid grid;
		double scale;
		void *weights;           /* on the device */
	} divisors[FXI_NUFFT_KEPT];
	int n_kernels, n_divisors;   /* made so far: the next one's place, modulo FXI_NUFFT_KEPT */
	cudaEvent_t placed;          /* behind the check of a trajectory */
} fxi_cuda_nufft;

/** The queue's, made when first asked for; NULL after explaining. */
fxi_cuda_nufft *fxi_nufft_of(fx_math *m);
/** Checks that `fine` is this grid's with the type that it should have; *n is how many there are in it. */
int fxi_cuda_need_fine(fx_math *m, const fx_fine_grid *g, const fx_array *fine, int64_t *n);

/** Tiles, single precision: `samples` {n, coils} onto, or from, `fine`, float or float2 by `components`. */
int fxi_cuda_spread_tiles(fx_math *m, const fxi_points *p, int64_t n_coils, const void *samples, void *fine);
int fxi_cuda_gather_tiles(fx_math *m, const fxi_points *p, int64_t n_coils, const void *fine, void *samples);

/** The kernel's value at the j-th cell that it touches, by Horner's rule; c[d * FXI_WIDTHS + j]. */
template <typename REAL> __device__ static inline REAL fxi_kernel_at(const REAL *c, int degree, int j, REAL u)
{
	REAL v = c[j];

	for (int d = 1; d <= degree; d++)
		v = v * u + c[d * FXI_WIDTHS + j];
	return v;
}

/** Coils that a block takes at once so that its tiles fit `budget` bytes of shared memory; 1 at least. */
static inline int fxi_coils_a_block(const fxi_cells *g, int64_t n_coils, int most, size_t budget)
{
	size_t tile = (size_t)g->tile_cells * (size_t)g->components * sizeof(float);
	int n = n_coils < most ? (int)n_coils : most;

	while (n > 1 && (size_t)n * tile > budget)
		n--;
	/* as even as it goes: 8 coils at 3 a block are 3, 3 and 2 */
	return (int)((n_coils + (n_coils + n - 1) / n - 1) / ((n_coils + n - 1) / n));
}

/** Runs CALL with the constants W (the kernel's width) and AXES (how many are encoded). */
#define FXI_NUFFT_CASE(W_, CALL) case W_: { constexpr int W = W_; \
	if (axes_ == 1) { constexpr int AXES = 1; CALL; } \
	else if (axes_ == 2) { constexpr int AXES = 2; CALL; } \
	else { constexpr int AXES = 3; CALL; } } break;
#define FXI_NUFFT_DISPATCH(width, axes, CALL) do { int axes_ = (axes); switch (width) { \
	FXI_NUFFT_CASE(3, CALL) FXI_NUFFT_CASE(4, CALL) FXI_NUFFT_CASE(5, CALL) FXI_NUFFT_CASE(6, CALL) \
	FXI_NUFFT_CASE(7, CALL) FXI_NUFFT_CASE(8, CALL) FXI_NUFFT_CASE(9, CALL) FXI_NUFFT_CASE(10, CALL) \
	default: break; } } while (0)

__device__ static inline void add(float2 &sum, float k, float2 v)
{
	sum.x += k * v.x;
	sum.y += k * v.y;
}

__device__ static inline void add(float &sum, float k, float v)
{
	sum += k * v;
}

#endif

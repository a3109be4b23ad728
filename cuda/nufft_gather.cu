/* SPDX-License-Identifier: MIT */
/*
 * nufft_gather.cu - the fine grid at samples, through tiles, in single precision.
 *
 * A block has a share of one tile's samples and the tile, with its rim, of several coils in shared memory. A thread has a sample: its
 * kernel values stay in registers while it goes through the coils. Neighbouring threads have neighbouring samples (they are sorted
 * by cell), so where samples crowd they read the same cells at once.
 *
 * sm_75 to sm_90 run the same code; a block takes as many coils as fit its shared memory.
 */
#include "nufft.cuh"

#include <cuda_pipeline.h>

#define THREADS 128
/* Shared memory of a block's tiles: four blocks fit a multiprocessor of 228 kB. */
#define TILE_BUDGET 49152

/*
 * The tile with its rim of several coils; 16 or 32 lanes have a row. All copies are under way before any is waited for (from
 * sm_80 on they need no registers; before, they are loads and stores).
 */
template <typename V>
__device__ static void load_tiles(const fxi_cells &g, uint32_t number, int n_coils, const V *fine, V *tiles)
{
	int origin[3] = {(int)(number % g.n_tiles[0]) * g.tile[0], (int)(number / g.n_tiles[0] % g.n_tiles[1]) * g.tile[1],
		(int)(number / (g.n_tiles[0] * g.n_tiles[1])) * g.tile[2]};
	int rows = g.rim[1] * g.rim[2], lanes = g.rim[0] <= 16 ? 16 : 32;

	for (int row = threadIdx.x / lanes; row < rows; row += THREADS / lanes) {
		int ry = row % g.rim[1], rz = row / g.rim[1], y = origin[1] + ry, z = origin[2] + rz;

		y -= y >= g.fine[1] ? g.fine[1] : 0;
		z -= z >= g.fine[2] ? g.fine[2] : 0;
		const V *from = fine + (int64_t)g.fine[0] * (y + (int64_t)g.fine[1] * z);
		V *to = tiles + g.pitch * ry + g.plane * rz;
		for (int rx = threadIdx.x % lanes; rx < g.rim[0]; rx += lanes) {
			int x = origin[0] + rx;

			x -= x >= g.fine[0] ? g.fine[0] : 0;
			for (int coil = 0; coil < n_coils; coil++)
				__pipeline_memcpy_async(&to[coil * g.tile_cells + rx], &from[coil * g.n + x], sizeof(V));
		}
	}
	__pipeline_commit();
	__pipeline_wait_prior(0);
}

template <int W, int AXES, typename V>
__device__ static V footprint(const fxi_cells &g, const float *c, const float *kx, const float *ky, float uz, const V *tile)
{
	V sum = V{};

#pragma unroll 1
	for (int z = 0; z < (AXES == 3 ? W : 1); z++) {
		V plane = V{};

#pragma unroll
		for (int y = 0; y < (AXES > 1 ? W : 1); y++) {
			V row = V{};

#pragma unroll
			for (int x = 0; x < W; x++)
				add(row, kx[x], tile[g.pitch * y + x]);
			add(plane, AXES > 1 ? ky[y] : 1, row);
		}
		add(sum, AXES == 3 ? fxi_kernel_at(c, g.degree, z, uz) : 1, plane);
		tile += g.plane;
	}
	return sum;
}

/* blockIdx.x is the share, blockIdx.y a group of coils. */
template <int W, int AXES, typename V>
__global__ static void __launch_bounds__(THREADS) gather_tiles(fxi_cells g, const float *c, int n_coils, int a_block, int64_t n_samples,
	const uint32_t *n_shares, const fxi_share *shares, const fxi_tile_point *points, const V *fine, V *samples)
{
	extern __shared__ float2 memory[];
	__shared__ float coefficients[(FX_FINE_DEGREE + 1) * FXI_WIDTHS];
	int first = blockIdx.y * a_block, n = n_coils - first < a_block ? n_coils - first : a_block;
	V *tiles = (V *)memory;

	if (blockIdx.x >= *n_shares)
		return;
	fxi_share share = shares[blockIdx.x];
	for (int i = threadIdx.x; i < (g.degree + 1) * FXI_WIDTHS; i += THREADS)
		coefficients[i] = c[i];
	load_tiles(g, share.tile, n, fine + first * g.n, tiles);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < share.n; i += THREADS) {
		fxi_tile_point p = points[share.first + i];
		float kx[W], ky[W];

#pragma unroll
		for (int j = 0; j < W; j++) {
			kx[j] = fxi_kernel_at(coefficients, g.degree, j, p.u[0]);
			ky[j] = AXES > 1 ? fxi_kernel_at(coefficients, g.degree, j, p.u[1]) : 1;
		}
		for (int coil = 0; coil < n; coil++)
			samples[(first + coil) * n_samples + p.index] = footprint<W, AXES>(g, coefficients, kx, ky, p.u[2],
				tiles + coil * g.tile_cells + p.at);
	}
}

template <int W, int AXES, typename V>
static int launch_gather(fx_math *m, const fxi_points *p, int n_coils, int a_block, const V *fine, V *samples)
{
	const fxi_cells *g = &p->cells;
	size_t bytes = (size_t)a_block * (size_t)g->tile_cells * sizeof(V);
	dim3 grid((unsigned)p->most_shares, (unsigned)((n_coils + a_block - 1) / a_block));
	int status = fxi_cuda_check(m, cudaFuncSetAttribute(gather_tiles<W, AXES, V>, cudaFuncAttributeMaxDynamicSharedMemorySize,
		(int)bytes), "interpolating samples");

	if (status != FX_OK)
		return status;
	gather_tiles<W, AXES, V><<<grid, THREADS, bytes, fxi_stream_of(m)>>>(*g, (const float *)p->coefficients, n_coils, a_block, p->n,
		p->first_share + g->all_tiles, p->shares, (const fxi_tile_point *)p->sorted, fine, samples);
	return fxi_cuda_launched(m, "interpolating samples");
}

template <typename V> static int gather(fx_math *m, const fxi_points *p, int64_t n_coils, const V *fine, V *samples)
{
	int a_block = fxi_coils_a_block(&p->cells, n_coils, 8, TILE_BUDGET), status = FX_OK;

	FXI_NUFFT_DISPATCH(p->cells.width[0], p->cells.n_axes,
		(status = launch_gather<W, AXES, V>(m, p, (int)n_coils, a_block, fine, samples)));
	return status;
}

int fxi_cuda_gather_tiles(fx_math *m, const fxi_points *p, int64_t n_coils, const void *fine, void *samples)
{
	if (p->cells.components == 2)
		return gather<float2>(m, p, n_coils, (const float2 *)fine, (float2 *)samples);
	return gather<float>(m, p, n_coils, (const float *)fine, (float *)samples);
}

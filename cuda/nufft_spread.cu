/* SPDX-License-Identifier: MIT */
/*
 * nufft_spread.cu - samples onto the fine grid through tiles, in single precision and in one order.
 *
 * A block has the samples of one tile (a share of them, where they are many) and a warp for each of several coils, which adds
 * its coil's samples one after the other to a tile of its own in shared memory: lanes are the cells of the footprint, so that
 * nothing is atomic and the order of every sum is the order of the samples. Kernel values are computed once a block and read by
 * all its warps. Samples are sorted by cell, and while the next one has the same footprint its sums stay in registers: where
 * radial lines cross, shared memory is not touched for thousands of samples.
 *
 * Tiles go to memory with their rims; then every cell of the fine grid adds up what the tiles that reach it have for it, in the
 * order of tiles and of their shares.
 *
 * sm_75 to sm_90 run the same code; a block takes as many coils as fit its shared memory.
 */
#include "nufft.cuh"

#define BATCH 32
/* Shared memory of a block's tiles, so that three blocks fit a multiprocessor of 228 kB beside their tables. */
#define TILE_BUDGET 57344
/* The most that the tiles of coils which are spread together may take between the two kernels. */
#define BETWEEN_BYTES 1.5e9

__device__ static inline void add(float2 &sum, float k, float2 v)
{
	sum.x += k * v.x;
	sum.y += k * v.y;
}

__device__ static inline void add(float &sum, float k, float v)
{
	sum += k * v;
}

__device__ static inline float2 times(float k, float2 v)
{
	return make_float2(k * v.x, k * v.y);
}

__device__ static inline float times(float k, float v)
{
	return k * v;
}

__device__ static inline float of_lane(float v, int lane)
{
	return __shfl_sync(0xffffffffu, v, lane);
}

__device__ static inline float2 of_lane(float2 v, int lane)
{
	return make_float2(of_lane(v.x, lane), of_lane(v.y, lane));
}

/* How a warp's lanes lie on a footprint: along x and, as many as fit, on rows of it. */
template <int W, int AXES> struct layout {
	static constexpr int ROWS = AXES == 3 ? W * W : AXES == 2 ? W : 1;
	/* whole planes where they fit, so that offsets are constants */
	static constexpr int FIT = 32 / W, AT_ONCE = FIT > ROWS ? ROWS : FIT >= W && FIT < 2 * W ? W : FIT;
	static constexpr int STEPS = (ROWS + AT_ONCE - 1) / AT_ONCE;
};

/* Kernel values of a batch of samples. */
template <int W, int AXES> struct tables {
	float axis[BATCH][AXES][W];
	float rows[BATCH][layout<W, AXES>::ROWS];
	uint32_t at[BATCH], index[BATCH];
};

template <int W, int AXES>
__device__ static void fill_tables(tables<W, AXES> &t, const float *c, int degree, const fxi_tile_point *points, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		t.at[i] = points[i].at;
		t.index[i] = points[i].index;
	}
	for (int i = threadIdx.x; i < n * AXES * W; i += blockDim.x) {
		int s = i / (AXES * W), d = i % (AXES * W) / W;

		t.axis[s][d][i % W] = fxi_kernel_at(c, degree, i % W, points[s].u[d]);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < n * layout<W, AXES>::ROWS; i += blockDim.x) {
		int s = i / layout<W, AXES>::ROWS, row = i % layout<W, AXES>::ROWS;

		t.rows[s][row] = AXES == 3 ? t.axis[s][AXES > 1][row % W] * t.axis[s][AXES - 1][row / W] :
			AXES == 2 ? t.axis[s][AXES - 1][row] : 1;
	}
	__syncthreads();
}

/* blockIdx.x is the share, blockIdx.y a group of coils. */
template <int W, int AXES, typename V>
__global__ static void spread_tiles(fxi_cells g, const float *c, int n_coils, int64_t n_samples, const uint32_t *n_shares,
	const fxi_share *shares, const fxi_tile_point *points, const V *samples, V *between)
{
	typedef layout<W, AXES> L;
	extern __shared__ float2 memory[];
	__shared__ float coefficients[(FX_FINE_DEGREE + 1) * FXI_WIDTHS];
	__shared__ tables<W, AXES> t;
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
	int coil = blockIdx.y * n_warps + warp, x = lane % W, r0 = lane / W;
	bool active = coil < n_coils && r0 < L::AT_ONCE, last = r0 + (L::STEPS - 1) * L::AT_ONCE < L::ROWS;
	V *tile = (V *)memory + warp * g.tile_cells, sum[L::STEPS], own;
	const V *from = samples + (coil < n_coils ? coil : 0) * n_samples;
	int offset[L::STEPS];
	int64_t before = -1;

	if (blockIdx.x >= *n_shares)
		return;
	fxi_share share = shares[blockIdx.x];
	for (int i = threadIdx.x; i < (g.degree + 1) * FXI_WIDTHS; i += blockDim.x)
		coefficients[i] = c[i];
	for (int i = lane; i < g.tile_cells; i += 32)
		tile[i] = V{};
#pragma unroll
	for (int i = 0; i < L::STEPS; i++) {
		int row = r0 + i * L::AT_ONCE;

		offset[i] = x + g.pitch * (row % W) + g.plane * (row / W);
		sum[i] = V{};
	}
	points += share.first;
	for (uint32_t first = 0; first < share.n; first += BATCH) {
		int n = share.n - first < BATCH ? (int)(share.n - first) : BATCH;

		__syncthreads();
		fill_tables<W, AXES>(t, coefficients, g.degree, points + first, n);
		own = lane < n ? from[t.index[lane]] : V{};
		for (int s = 0; s < n; s++) {
			uint32_t at = t.at[s];
			V v = of_lane(own, s);

			if (at != before) {
				if (active && before >= 0)
#pragma unroll
					for (int i = 0; i < L::STEPS; i++)
						if (i < L::STEPS - 1 || last)
							tile[before + offset[i]] = sum[i];
				__syncwarp();
				if (active)
#pragma unroll
					for (int i = 0; i < L::STEPS; i++)
						if (i < L::STEPS - 1 || last)
							sum[i] = tile[at + offset[i]];
				before = at;
			}
			if (active) {
				v = times(t.axis[s][0][x], v);
#pragma unroll
				for (int i = 0; i < L::STEPS; i++)
					if (i < L::STEPS - 1 || last)
						add(sum[i], t.rows[s][r0 + i * L::AT_ONCE], v);
			}
		}
	}
	if (active && before >= 0)
#pragma unroll
		for (int i = 0; i < L::STEPS; i++)
			if (i < L::STEPS - 1 || last)
				tile[before + offset[i]] = sum[i];
	__syncwarp();
	if (coil >= n_coils)
		return;
	between += (blockIdx.x * (int64_t)n_coils + coil) * g.tile_cells;
	for (int i = lane; i < g.tile_cells; i += 32)
		between[i] = tile[i];
}

/*
 * The tiles that have a place for cell x of an axis, and where in each: the one that it lies in, and back from there around the end
 * as far as rims reach. Three are enough: tiles are of 8 cells and more, or of more than a kernel's width, but for one short one.
 */
#define REACH 3
struct reached {
	int tile[REACH], place[REACH];
	bool there[REACH];
};

__device__ static inline reached tiles_at(const fxi_cells &g, int d, int x)
{
	int t = x / g.tile[d], place = x - t * g.tile[d];
	reached r;

#pragma unroll
	for (int i = 0; i < REACH; i++) {
		r.tile[i] = t;
		r.place[i] = place;
		r.there[i] = place < g.rim[d];
		t = t > 0 ? t - 1 : g.n_tiles[d] - 1;
		place += t == g.n_tiles[d] - 1 ? g.fine[d] - t * g.tile[d] : g.tile[d];
	}
	return r;
}

/* fine += what the tiles have, a thread a cell; blockIdx.z is the plane and the coil. */
template <typename V>
__global__ static void __launch_bounds__(128) merge(fxi_cells g, int n_coils, const uint32_t *first_share, const V *between, V *fine)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	int z = (int)blockIdx.z % g.fine[2], coil = (int)blockIdx.z / g.fine[2];
	bool any = false;
	V sum = V{};

	if (x >= g.fine[0] || y >= g.fine[1])
		return;
	reached tx = tiles_at(g, 0, x), ty = tiles_at(g, 1, y), tz = tiles_at(g, 2, z);
	between += (int64_t)coil * g.tile_cells;
#pragma unroll
	for (int i = 0; i < REACH * REACH * REACH; i++) {
		const int a = i % REACH, b = i / REACH % REACH, c = i / (REACH * REACH);

		if (!tx.there[a] || !ty.there[b] || !tz.there[c])
			continue;
		int tile = tx.tile[a] + g.n_tiles[0] * (ty.tile[b] + g.n_tiles[1] * tz.tile[c]);
		int place = tx.place[a] + g.pitch * ty.place[b] + g.plane * tz.place[c];
		uint32_t end = first_share[tile + 1];
		for (uint32_t s = first_share[tile]; s < end; s++) {
			add(sum, 1, between[s * (int64_t)n_coils * g.tile_cells + place]);
			any = true;
		}
	}
	if (any)
		add(fine[coil * g.n + x + (int64_t)g.fine[0] * (y + (int64_t)g.fine[1] * z)], 1, sum);
}

template <int W, int AXES, typename V>
static int launch_spread(fx_math *m, const fxi_points *p, int n_coils, int a_block, const V *samples, V *between)
{
	const fxi_cells *g = &p->cells;
	size_t bytes = (size_t)a_block * (size_t)g->tile_cells * sizeof(V);
	dim3 grid((unsigned)p->most_shares, (unsigned)((n_coils + a_block - 1) / a_block));
	int status = fxi_cuda_check(m, cudaFuncSetAttribute(spread_tiles<W, AXES, V>, cudaFuncAttributeMaxDynamicSharedMemorySize,
		(int)bytes), "spreading samples");

	if (status != FX_OK)
		return status;
	spread_tiles<W, AXES, V><<<grid, (unsigned)(32 * a_block), bytes, fxi_stream_of(m)>>>(*g, (const float *)p->coefficients, n_coils,
		p->n, p->first_share + g->all_tiles, p->shares, (const fxi_tile_point *)p->sorted, samples, between);
	return fxi_cuda_launched(m, "spreading samples");
}

template <typename V> static int spread(fx_math *m, const fxi_points *p, int64_t n_coils, const V *samples, V *fine)
{
	const fxi_cells *g = &p->cells;
	double each = (double)p->most_shares * (double)g->tile_cells * sizeof(V);
	int64_t together = each * (double)n_coils <= BETWEEN_BYTES ? n_coils : (int64_t)(BETWEEN_BYTES / each);
	int a_block = fxi_coils_a_block(g, n_coils, 8, TILE_BUDGET), status = FX_OK;
	dim3 block(32, 4);

	/* merge has coils and planes in one dimension of its grid */
	together = together > 65535 / g->fine[2] ? 65535 / g->fine[2] : together;
	together = together < 1 ? 1 : together;
	if (together > a_block)
		together -= together % a_block;
	fxi_work between(m, p->most_shares * together * g->tile_cells, sizeof(V));
	status = between.status();
	for (int64_t c = 0; c < n_coils && status == FX_OK; c += together) {
		int n = (int)(n_coils - c < together ? n_coils - c : together), at_once = a_block < n ? a_block : n;
		const V *from = samples + c * p->n;

		FXI_NUFFT_DISPATCH(g->width[0], g->n_axes, (status = launch_spread<W, AXES, V>(m, p, n, at_once, from, (V *)between.get())));
		if (status != FX_OK)
			break;
		dim3 grid((unsigned)((g->fine[0] + 31) / 32), (unsigned)((g->fine[1] + 3) / 4), (unsigned)(g->fine[2] * n));
		merge<V><<<grid, block, 0, fxi_stream_of(m)>>>(*g, n, p->first_share, (const V *)between.get(), fine + c * g->n);
		status = fxi_cuda_launched(m, "adding up tiles");
	}
	return status;
}

int fxi_cuda_spread_tiles(fx_math *m, const fxi_points *p, int64_t n_coils, const void *samples, void *fine)
{
	if (p->cells.components == 2)
		return spread<float2>(m, p, n_coils, (const float2 *)samples, (float2 *)fine);
	return spread<float>(m, p, n_coils, (const float *)samples, (float *)fine);
}

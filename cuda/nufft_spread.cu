/* SPDX-License-Identifier: MIT */
/*
 * nufft_spread.cu - samples onto the fine grid through tiles, in single precision and in one order.
 *
 * A block has the samples of one tile (a share of them, where they are many) and a warp for each of several coils, which adds
 * its coil's samples one after the other to a tile of its own in shared memory: lanes are the cells of the footprint, so that
 * nothing is atomic and the order of every sum is the order of the samples. Samples are sorted by cell, and while the next one has the
 * same footprint its sums stay in registers: where radial lines cross, shared memory is not touched for thousands of samples.
 *
 * Other warps of the block make the kernel values of the next batch of samples meanwhile, once for all coils.
 *
 * Tiles go to memory with their rims; then every cell of the fine grid adds up what the tiles that reach it have for it, in the
 * order of tiles and of their shares.
 *
 * sm_75 to sm_90 run the same code; a block takes as many coils as fit its shared memory.
 */
#include "nufft.cuh"

/* Warps that make kernel values. */
#define MAKERS 4
/* The most coils of a block. */
#define ADDERS 4
/* Shared memory of a block's tiles, so that three blocks fit a multiprocessor of 228 kB beside their tables. */
#define TILE_BUDGET 57344
/* The most that the tiles of coils which are spread together may take between the two kernels. */
#define BETWEEN_BYTES 1.5e9

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

/*
 * How a warp's lanes lie on a footprint: along x and, as many as fit, on rows of it. Row r is at z = r % W and y = r / W: planes are as
 * far apart, modulo the banks of shared memory, as a footprint is wide (choose_tiles), so rows of a y do not meet in a bank.
 */
template <int W, int AXES> struct layout {
	static constexpr int ROWS = AXES == 3 ? W * W : AXES == 2 ? W : 1;
	/* all of a y where they fit */
	static constexpr int FIT = 32 / W, AT_ONCE = FIT > ROWS ? ROWS : FIT >= W && FIT < 2 * W ? W : FIT;
	static constexpr int STEPS = (ROWS + AT_ONCE - 1) / AT_ONCE;
};

/* Kernel values of a batch of samples: a lane's each, or half as many where there are many of them. */
template <int W, int AXES> struct tables {
	static constexpr int BATCH = W >= 8 && AXES == 3 ? 16 : 32;
	float axis[BATCH][AXES][W];
	float rows[BATCH][layout<W, AXES>::ROWS];
	uint32_t at[BATCH];
};

/* One of the makers, each of which has some of the samples: `points` are n, of this batch. */
template <int W, int AXES>
__device__ static void make_tables(tables<W, AXES> &t, const float *c, int degree, const fxi_tile_point *points, int n, int maker)
{
	const int EACH = tables<W, AXES>::BATCH / MAKERS, ROWS = layout<W, AXES>::ROWS, VALUES = AXES * W;
	const int ROUNDS = (EACH * VALUES + 31) / 32;
	int lane = threadIdx.x % 32, first = maker * EACH, own = n - first < EACH ? n - first : EACH;
	float place = 0, u[ROUNDS], v[ROUNDS];

	/* a lane a sample's axis; all values of the warp's samples side by side, so that their latencies overlap */
	if (lane < own * AXES)
		place = points[first + lane / AXES].u[lane % AXES];
	if (lane < own)
		t.at[first + lane] = points[first + lane].at;
#pragma unroll
	for (int r = 0; r < ROUNDS; r++) {
		int i = lane + 32 * r;

		u[r] = __shfl_sync(0xffffffffu, place, i / W < 32 ? i / W : 0);
		v[r] = c[i % W];
	}
	for (int d = 1; d <= degree; d++)
#pragma unroll
		for (int r = 0; r < ROUNDS; r++)
			v[r] = v[r] * u[r] + c[d * FXI_WIDTHS + (lane + 32 * r) % W];
#pragma unroll
	for (int r = 0; r < ROUNDS; r++) {
		int i = lane + 32 * r;

		if (i < own * VALUES)
			t.axis[first + i / VALUES][i % VALUES / W][i % W] = v[r];
	}
	__syncwarp();
	for (int i = lane; i < own * ROWS; i += 32) {
		int s = first + i / ROWS, row = i % ROWS;

		t.rows[s][row] = AXES == 3 ? t.axis[s][AXES > 1][row / W] * t.axis[s][AXES - 1][row % W] :
			AXES == 2 ? t.axis[s][AXES - 1][row] : 1;
	}
}

/*
 * A warp's place on a tile: sums of the footprint that it is at, in registers. They are added to the tile when it moves on, and at
 * the end of a batch: where thousands of samples meet, sums of sums of few keep the roundings few.
 */
template <int W, int AXES, typename V> struct adder {
	typedef layout<W, AXES> L;
	V *tile, sum[L::STEPS];
	int offset[L::STEPS], x, r0;
	int64_t before;
	bool active, last;

	__device__ adder(const fxi_cells &g, V *memory) : tile(memory), before(-1)
	{
		int lane = threadIdx.x % 32;

		x = lane % W;
		r0 = lane / W;
		active = r0 < L::AT_ONCE;
		last = r0 + (L::STEPS - 1) * L::AT_ONCE < L::ROWS;
#pragma unroll
		for (int i = 0; i < L::STEPS; i++) {
			int row = r0 + i * L::AT_ONCE;

			offset[i] = AXES == 3 ? x + g.pitch * (row / W) + g.plane * (row % W) : x + g.pitch * row;
			sum[i] = V{};
		}
	}

	__device__ void leave()
	{
		/* all loads before any store: the compiler cannot know that they are of different cells */
		if (active && before >= 0) {
			V *at = tile + before, there[L::STEPS];

#pragma unroll
			for (int i = 0; i < L::STEPS; i++)
				if (i < L::STEPS - 1 || last)
					there[i] = at[offset[i]];
#pragma unroll
			for (int i = 0; i < L::STEPS; i++) {
				if (i < L::STEPS - 1 || last) {
					add(there[i], 1, sum[i]);
					at[offset[i]] = there[i];
				}
				sum[i] = V{};
			}
		}
		__syncwarp();
	}

	/* n samples of a batch; `own` is the value of the lane's sample */
	__device__ void batch(const tables<W, AXES> &t, int n, V own)
	{
		uint32_t at = t.at[0];

		for (int s = 0; s < n; s++) {
			uint32_t next = t.at[s + 1 < n ? s + 1 : s];
			V v = of_lane(own, s);

			if (at != before) {
				leave();
				before = at;
			}
			if (active) {
				v = times(t.axis[s][0][x], v);
#pragma unroll
				for (int i = 0; i < L::STEPS; i++)
					if (i < L::STEPS - 1 || last)
						add(sum[i], t.rows[s][r0 + i * L::AT_ONCE], v);
			}
			at = next;
		}
		leave();
		before = -1;
	}
};

/* blockIdx.x is the share, blockIdx.y a group of a_block coils; the first a_block warps add, the last MAKERS make kernel values. */
template <int W, int AXES, typename V>
__global__ static void __launch_bounds__(32 * (ADDERS + MAKERS)) spread_tiles(fxi_cells g, const float *c, int n_coils, int a_block,
	int64_t n_samples, const uint32_t *n_shares, const fxi_share *shares, const fxi_tile_point *points, const V *samples, V *between)
{
	const int BATCH = tables<W, AXES>::BATCH;
	extern __shared__ float2 memory[];
	__shared__ float coefficients[(FX_FINE_DEGREE + 1) * FXI_WIDTHS];
	__shared__ tables<W, AXES> t[2];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, coil = (int)blockIdx.y * a_block + warp;
	bool adds = warp < a_block && coil < n_coils;
	int coils = n_coils - (int)blockIdx.y * a_block < a_block ? n_coils - (int)blockIdx.y * a_block : a_block;
	V own = V{}, next = V{};

	if (blockIdx.x >= *n_shares)
		return;
	fxi_share share = shares[blockIdx.x];
	points += share.first;
	samples += (adds ? coil : 0) * n_samples;
	if (adds && lane < BATCH && lane < share.n)
		own = samples[points[lane].index];
	for (int i = threadIdx.x; i < (g.degree + 1) * FXI_WIDTHS; i += blockDim.x)
		coefficients[i] = c[i];
	for (int i = threadIdx.x; i < coils * g.tile_cells; i += blockDim.x)
		((V *)memory)[i] = V{};
	__syncthreads();
	if (warp >= a_block)
		make_tables<W, AXES>(t[0], coefficients, g.degree, points, share.n < BATCH ? share.n : BATCH, warp - a_block);
	__syncthreads();
	adder<W, AXES, V> a(g, (V *)memory + (adds ? warp : 0) * g.tile_cells);
	for (uint32_t first = 0, b = 0; first < share.n; first += BATCH, b ^= 1) {
		int left = (int)(share.n - first), after = left - BATCH;

		if (adds) {
			if (lane < BATCH && lane < after)
				next = samples[points[first + BATCH + lane].index];
			a.batch(t[b], left < BATCH ? left : BATCH, own);
			own = next;
		} else if (warp >= a_block && after > 0) {
			make_tables<W, AXES>(t[b ^ 1], coefficients, g.degree, points + first + BATCH, after < BATCH ? after : BATCH,
				warp - a_block);
		}
		__syncthreads();
	}
	between += (share.slot * (int64_t)n_coils + blockIdx.y * a_block) * g.tile_cells;
	for (int i = threadIdx.x; i < coils * g.tile_cells; i += blockDim.x)
		between[i] = ((V *)memory)[i];
}

/*
 * The tiles that have a place for cell x of an axis, and where in each: the one that it lies in, and back from there around the end
 * as far as rims reach. Two are enough where tiles are of one length and no shorter than rims; three otherwise: tiles are of 8 cells
 * and more, or of more than a kernel's width, but for one short one.
 */
template <int REACH> struct reached {
	int tile[REACH], place[REACH];
	bool there[REACH];

	__device__ reached(const fxi_cells &g, int d, int x)
	{
		int t = x / g.tile[d], at = x - t * g.tile[d];

#pragma unroll
		for (int i = 0; i < REACH; i++) {
			tile[i] = t;
			place[i] = at;
			there[i] = at < g.rim[d];
			t = t > 0 ? t - 1 : g.n_tiles[d] - 1;
			at += t == g.n_tiles[d] - 1 ? g.fine[d] - t * g.tile[d] : g.tile[d];
		}
	}
};

/* fine += what the tiles have, a thread a cell of all coils. */
template <int REACH, typename V>
__global__ static void __launch_bounds__(128) merge(fxi_cells g, int n_coils, const uint32_t *first_share, const V *between, V *fine)
{
	const int MOST = REACH * REACH * REACH;
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
	int64_t at[MOST], step = (int64_t)n_coils * g.tile_cells;
	bool any = false, more = false;

	if (x >= g.fine[0] || y >= g.fine[1])
		return;
	reached<REACH> tx(g, 0, x), ty(g, 1, y), tz(g, 2, z);
#pragma unroll
	for (int i = 0; i < MOST; i++) {
		const int a = i % REACH, b = i / REACH % REACH, c = i / (REACH * REACH);
		int tile = tx.tile[a] + g.n_tiles[0] * (ty.tile[b] + g.n_tiles[1] * tz.tile[c]);
		uint32_t first = 0, end = 0;

		if (tx.there[a] && ty.there[b] && tz.there[c]) {
			first = first_share[tile];
			end = first_share[tile + 1];
		}
		at[i] = end > first ? first * step + tx.place[a] + g.pitch * ty.place[b] + g.plane * tz.place[c] : -1;
		any = any || end > first;
		more = more || end > first + 1;
	}
	if (!any)
		return;
	fine += x + (int64_t)g.fine[0] * (y + (int64_t)g.fine[1] * z);
	if (more) {
		/* of tiles that have several shares, which few cells have: all but the first */
#pragma unroll
		for (int i = 0; i < MOST; i++) {
			const int a = i % REACH, b = i / REACH % REACH, c = i / (REACH * REACH);
			int tile = tx.tile[a] + g.n_tiles[0] * (ty.tile[b] + g.n_tiles[1] * tz.tile[c]);
			uint32_t n = at[i] >= 0 ? first_share[tile + 1] - first_share[tile] : 0;

			for (int coil = 0; coil < n_coils && n > 1; coil++) {
				V sum = V{};

#pragma unroll 4
				for (uint32_t s = 1; s < n; s++)
					add(sum, 1, between[at[i] + s * step + coil * g.tile_cells]);
				add(fine[coil * g.n], 1, sum);
			}
		}
	}
#pragma unroll 2
	for (int coil = 0; coil < n_coils; coil++) {
		V part[MOST], sum = fine[coil * g.n];

#pragma unroll
		for (int i = 0; i < MOST; i++)
			part[i] = at[i] >= 0 ? between[at[i] + coil * g.tile_cells] : V{};
#pragma unroll
		for (int i = 0; i < MOST; i++)
			add(sum, 1, part[i]);
		fine[coil * g.n] = sum;
	}
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
	spread_tiles<W, AXES, V><<<grid, (unsigned)(32 * (a_block + MAKERS)), bytes, fxi_stream_of(m)>>>(*g,
		(const float *)p->coefficients, n_coils, a_block, p->n, p->first_share + g->all_tiles, p->shares,
		(const fxi_tile_point *)p->sorted, samples, between);
	return fxi_cuda_launched(m, "spreading samples");
}

template <typename V> static int add_tiles(fx_math *m, const fxi_points *p, int n_coils, const V *between, V *fine)
{
	const fxi_cells *g = &p->cells;
	dim3 grid((unsigned)((g->fine[0] + 31) / 32), (unsigned)((g->fine[1] + 3) / 4), (unsigned)g->fine[2]);
	bool alike = true;

	for (int d = 0; d < g->n_axes; d++)
		alike = alike && g->fine[d] % g->tile[d] == 0 && g->rim[d] <= 2 * g->tile[d];
	if (alike)
		merge<2, V><<<grid, dim3(32, 4), 0, fxi_stream_of(m)>>>(*g, n_coils, p->first_share, between, fine);
	else
		merge<3, V><<<grid, dim3(32, 4), 0, fxi_stream_of(m)>>>(*g, n_coils, p->first_share, between, fine);
	return fxi_cuda_launched(m, "adding up tiles");
}

template <typename V> static int spread(fx_math *m, const fxi_points *p, int64_t n_coils, const V *samples, V *fine)
{
	const fxi_cells *g = &p->cells;
	double each = (double)p->most_shares * (double)g->tile_cells * sizeof(V);
	int64_t together = each * (double)n_coils <= BETWEEN_BYTES ? n_coils : (int64_t)(BETWEEN_BYTES / each);
	/* beside the tables, of at most 20 kB (choose_tiles) */
	size_t room = fxi_queue(m)->shared_limit - 20480;
	int a_block = fxi_coils_a_block(g, n_coils, ADDERS, room < TILE_BUDGET ? room : TILE_BUDGET), status = FX_OK;

	together = together < 1 ? 1 : together;
	if (together > a_block)
		together -= together % a_block;
	fxi_work between(m, p->most_shares * together * g->tile_cells, sizeof(V));
	status = between.status();
	for (int64_t c = 0; c < n_coils && status == FX_OK; c += together) {
		int n = (int)(n_coils - c < together ? n_coils - c : together), at_once = a_block < n ? a_block : n;
		const V *from = samples + c * p->n;

		FXI_NUFFT_DISPATCH(g->width[0], g->n_axes, (status = launch_spread<W, AXES, V>(m, p, n, at_once, from, (V *)between.get())));
		if (status == FX_OK)
			status = add_tiles<V>(m, p, n, (const V *)between.get(), fine + c * g->n);
	}
	return status;
}

int fxi_cuda_spread_tiles(fx_math *m, const fxi_points *p, int64_t n_coils, const void *samples, void *fine)
{
	if (p->cells.components == 2)
		return spread<float2>(m, p, n_coils, (const float2 *)samples, (float2 *)fine);
	return spread<float>(m, p, n_coils, (const float *)samples, (float *)fine);
}

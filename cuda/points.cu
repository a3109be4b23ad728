/* SPDX-License-Identifier: MIT */
/*
 * points.cu - a trajectory's samples, sorted once by tile of the fine grid and by cell in it, and cut into blocks of at most
 * FXI_SHARE: what spreading and interpolation walk through. All of it happens on the device; the host waits only to hear whether
 * the coordinates are numbers. The sort is stable, so that the order is one whatever the GPU.
 *
 * sm_75 to sm_90 run the same code.
 */
#include "nufft.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <new>
#include <vector>

#define THREADS 256

static bool is_single(const fx_fine_grid *g)
{
	return g->type == FX_CF32;
}

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

/* First cell of the sample's footprint, and where in it the sample is, u in [-1, 1): as on the host, in double. */
__device__ static int cell_of(int fine, int width, double k, double *u)
{
	double at = (k - floor(k + 0.5)) * (double)fine + (double)(fine / 2), first;

	if (!(at >= 0 && at < (double)fine))
		at = 0;
	first = ceil(at - width / 2.0);
	*u = 2 * (first - at) + width - 1;
	return (int)(first < 0 ? first + (double)fine : first);
}

/* Cells and places of sample i, the encoded axes first. */
__device__ static void footprint(const fxi_cells &g, const double *k, int64_t i, int cell[3], double u[3])
{
	for (int d = 0; d < 3; d++) {
		cell[d] = 0;
		u[d] = 0;
		if (d < g.n_axes)
			cell[d] = cell_of(g.fine[d], g.width[d], k[3 * i + g.axis[d]], &u[d]);
	}
}

__global__ static void place(fxi_cells g, int64_t n, const double *k, uint32_t *keys, uint32_t *order, int *bad)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	uint32_t tile = 0, local = 0;
	int cell[3];
	double u[3];

	if (i >= n)
		return;
	for (int d = 0; d < 3; d++)
		if (!isfinite(k[3 * i + d]))
			*bad = 1;
	footprint(g, k, i, cell, u);
	for (int d = 2; d >= 0; d--) {
		tile = tile * (uint32_t)g.n_tiles[d] + (uint32_t)(cell[d] / g.tile[d]);
		local = local * (uint32_t)g.tile[d] + (uint32_t)(cell[d] % g.tile[d]);
	}
	keys[i] = g.tiled ? tile * (uint32_t)(g.tile[0] * g.tile[1] * g.tile[2]) + local : tile;
	order[i] = (uint32_t)i;
}

__global__ static void arrange_tiled(fxi_cells g, int64_t n, const double *k, const uint32_t *order, fxi_tile_point *to)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	fxi_tile_point p;
	int cell[3];
	double u[3];

	if (i >= n)
		return;
	p.index = order[i];
	footprint(g, k, p.index, cell, u);
	for (int d = 0; d < 3; d++)
		p.u[d] = (float)u[d];
	p.at = (uint32_t)(cell[0] % g.tile[0] + g.pitch * (cell[1] % g.tile[1]) + g.plane * (cell[2] % g.tile[2]));
	to[i] = p;
}

template <typename REAL> __global__ static void arrange(fxi_cells g, int64_t n, const double *k, const uint32_t *order,
	fxi_point<REAL> *to)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	fxi_point<REAL> p;
	double u[3];

	if (i >= n)
		return;
	p.index = order[i];
	footprint(g, k, p.index, p.cell, u);
	for (int d = 0; d < 3; d++)
		p.u[d] = (REAL)u[d];
	to[i] = p;
}

/* How many of the sorted keys are below `key`. */
__device__ static uint32_t below(const uint32_t *keys, uint32_t n, uint64_t key)
{
	uint32_t from = 0, to = n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (keys[middle] < key)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Counts of a tile's shares, and of those that are large, in the lower and upper half of a number: one scan sums both. */
#define LARGE (FXI_SHARE / 2)
#define BOTH ((uint64_t)1 << 32 | 1)

/* A thread a tile: where its samples start, and how many blocks they make. */
__global__ static void count_shares(fxi_cells g, uint32_t n, const uint32_t *keys, uint32_t *start, uint64_t *count)
{
	int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	uint64_t cells = (uint64_t)(g.tile[0] * g.tile[1] * g.tile[2]);

	if (t > g.all_tiles)
		return;
	uint32_t first = below(keys, n, (uint64_t)t * cells), end = t < g.all_tiles ? below(keys, n, (uint64_t)(t + 1) * cells) : first;
	start[t] = first;
	count[t] = (end - first + FXI_SHARE - 1) / FXI_SHARE * (end - first >= LARGE ? BOTH : 1);
}

__global__ static void cut(fxi_cells g, const uint32_t *start, const uint64_t *before, uint32_t *first_share, fxi_share *shares)
{
	int64_t t = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (t > g.all_tiles)
		return;
	uint32_t slot = (uint32_t)before[t], large = (uint32_t)(before[t] >> 32);
	first_share[t] = slot;
	if (t == g.all_tiles)
		return;
	uint32_t n = (uint32_t)before[t + 1] - slot, points = start[t + 1] - start[t];
	uint32_t at = points >= LARGE ? large : (uint32_t)(before[g.all_tiles] >> 32) + slot - large;
	for (uint32_t s = 0; s < n; s++) {
		/* alike, to one sample */
		uint32_t from = (uint32_t)((uint64_t)points * s / n), to = (uint32_t)((uint64_t)points * (s + 1) / n);

		shares[at + s] = {start[t] + from, to - from, (uint32_t)t, slot + s};
	}
}

static int sort_keys(fx_math *m, const fxi_cells *g, int64_t n, uint32_t *keys, uint32_t *sorted_keys, uint32_t *order,
	uint32_t *sorted_order)
{
	uint64_t most = (uint64_t)g->all_tiles * (g->tiled ? (uint64_t)(g->tile[0] * g->tile[1] * g->tile[2]) : 1);
	int bits = 1;
	size_t bytes = 0;
	cudaError_t e;

	while (bits < 32 && most >> bits)
		bits++;
	e = cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys, order, sorted_order, (int)n, 0, bits, fxi_stream_of(m));
	if (e != cudaSuccess)
		return fxi_cuda_check(m, e, "sorting samples");
	fxi_work work(m, (int64_t)bytes, 1);
	if (work.status() != FX_OK)
		return work.status();
	e = cub::DeviceRadixSort::SortPairs(work.get(), bytes, keys, sorted_keys, order, sorted_order, (int)n, 0, bits,
		fxi_stream_of(m));
	return fxi_cuda_check(m, e, "sorting samples");
}

static int take(fx_math *m, void **memory, size_t bytes)
{
	return fxi_cuda_check(m, cudaMallocAsync(memory, bytes, fxi_stream_of(m)), "sorting samples");
}

static int make_shares(fx_math *m, fxi_points *p, const uint32_t *keys)
{
	const fxi_cells *g = &p->cells;
	int tiles = g->all_tiles;
	fxi_work start(m, tiles + 1, sizeof(uint32_t)), counts(m, 2 * ((int64_t)tiles + 1), sizeof(uint64_t));
	uint64_t *count = (uint64_t *)counts.get(), *before = count + tiles + 1;
	cudaStream_t s = fxi_stream_of(m);
	size_t bytes = 0;
	int status = start.status() != FX_OK ? start.status() : counts.status();

	p->most_shares = (p->n < tiles ? p->n : tiles) + p->n / FXI_SHARE;
	if (status == FX_OK)
		status = take(m, (void **)&p->shares, (size_t)p->most_shares * sizeof(fxi_share));
	if (status == FX_OK)
		status = take(m, (void **)&p->first_share, (size_t)(tiles + 1) * sizeof(uint32_t));
	if (status == FX_OK)
		status = fxi_cuda_check(m, cub::DeviceScan::ExclusiveSum(nullptr, bytes, count, before, tiles + 1, s), "sorting samples");
	if (status != FX_OK)
		return status;
	fxi_work work(m, (int64_t)bytes, 1);
	if (work.status() != FX_OK)
		return work.status();
	count_shares<<<blocks_for(tiles + 1), THREADS, 0, s>>>(*g, (uint32_t)p->n, keys, (uint32_t *)start.get(), count);
	status = fxi_cuda_check(m, cub::DeviceScan::ExclusiveSum(work.get(), bytes, count, before, tiles + 1, s), "sorting samples");
	cut<<<blocks_for(tiles + 1), THREADS, 0, s>>>(*g, (const uint32_t *)start.get(), before, p->first_share, p->shares);
	return status;
}

static int sort_points(fx_math *m, fxi_points *p, const double *k)
{
	const fxi_cells *g = &p->cells;
	bool single = p->type == FX_F32 || p->type == FX_CF32;
	size_t size = g->tiled ? sizeof(fxi_tile_point) : single ? sizeof(fxi_point<float>) : sizeof(fxi_point<double>);
	fxi_work keys(m, 4 * p->n, sizeof(uint32_t)), flag(m, 1, sizeof(int));
	uint32_t *key = (uint32_t *)keys.get(), *sorted = key + p->n, *order = sorted + p->n, *sorted_order = order + p->n;
	fxi_cuda_nufft *kept = fxi_nufft_of(m);
	int *bad = (int *)fxi_queue(m)->result, status;
	cudaStream_t s = fxi_stream_of(m);

	if (!kept || keys.status() != FX_OK || flag.status() != FX_OK)
		return FX_ENOMEM;
	cudaMemsetAsync(flag.get(), 0, sizeof(int), s);
	place<<<blocks_for(p->n), THREADS, 0, s>>>(*g, p->n, k, key, order, (int *)flag.get());
	cudaMemcpyAsync(bad, flag.get(), sizeof *bad, cudaMemcpyDeviceToHost, s);
	cudaEventRecord(kept->placed, s);
	status = take(m, &p->sorted, (size_t)p->n * size);
	if (status == FX_OK)
		status = sort_keys(m, g, p->n, key, sorted, order, sorted_order);
	if (status != FX_OK)
		return status;
	if (g->tiled) {
		arrange_tiled<<<blocks_for(p->n), THREADS, 0, s>>>(*g, p->n, k, sorted_order, (fxi_tile_point *)p->sorted);
		status = make_shares(m, p, sorted);
	} else if (single) {
		arrange<float><<<blocks_for(p->n), THREADS, 0, s>>>(*g, p->n, k, sorted_order, (fxi_point<float> *)p->sorted);
	} else {
		arrange<double><<<blocks_for(p->n), THREADS, 0, s>>>(*g, p->n, k, sorted_order, (fxi_point<double> *)p->sorted);
	}
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaEventSynchronize(kept->placed), "sorting samples");
	if (status == FX_OK && *bad)
		status = fx_math_fail(m, FX_EDATA, "a sample of the trajectory has a coordinate that is no number");
	return status;
}

/*
 * Tiles such that one with its rim fits a block's shared memory beside the tables of its samples, and is no larger than the grid, so
 * that no cell has two places in it.
 */
static void choose_tiles(fx_math *m, fxi_cells *g)
{
	size_t limit = fxi_queue(m)->shared_limit < 98304 ? fxi_queue(m)->shared_limit : 98304;
	int edge = g->n_axes == 3 ? 8 : g->n_axes == 2 ? 32 : 512;

	do {
		int64_t all = 1;

		for (int d = 0; d < 3; d++) {
			int most = g->fine[d] - g->width[d] + 1;

			g->tile[d] = d < g->n_axes ? (edge < most ? edge : most) : 1;
			g->n_tiles[d] = (g->fine[d] + g->tile[d] - 1) / g->tile[d];
			g->rim[d] = g->tile[d] + g->width[d] - 1;
			all *= g->n_tiles[d];
		}
		/*
		 * Planes, or rows where there are none, as far apart, modulo the banks of shared memory, as a footprint is wide: what
		 * a warp adds to at once (nufft_spread.cu) lies in different ones. Tiles of 32 have that with one column more.
		 */
		g->pitch = g->n_axes == 2 && g->tile[0] % 16 == 0 ? g->rim[0] + 1 : g->rim[0];
		g->plane = g->pitch * g->rim[1];
		while (g->n_axes == 3 && g->plane % 16 != g->width[0] % 16)
			g->plane++;
		g->tile_cells = g->plane * g->rim[2];
		g->all_tiles = all < INT32_MAX ? (int)all : 0;
		edge /= 2;
	} while ((size_t)g->tile_cells * 2 * sizeof(float) > limit - 20480 && edge >= 1);
}

static int make_cells(fx_math *m, const fx_fine_grid *g, fxi_points *p)
{
	fxi_cells *c = &p->cells;
	int at = 0;

	if ((g->type != FX_CF32 && g->type != FX_CF64) || g->width < 2 || g->width > FXI_WIDTHS || !(g->beta > 0))
		return fx_math_fail(m, FX_EINVAL, "a fine grid is cf32 or cf64 with a kernel of 2 to %d cells and beta > 0, not %s, %d, %g",
			FXI_WIDTHS, fx_type_name(g->type), g->width, g->beta);
	for (int d = 0; d < 3; d++) {
		if (g->dims[d] > 1 && (g->fine[d] % 2 || g->fine[d] < g->dims[d] + 2 || g->fine[d] < 2 * g->width || g->fine[d] > 1 << 20))
			return fx_math_fail(m, FX_EINVAL, "a fine axis of %lld for %lld voxels and a kernel of %d: even, 2 more, twice the kernel",
				(long long)g->fine[d], (long long)g->dims[d], g->width);
		if (g->dims[d] < 1 || (g->dims[d] == 1 && g->fine[d] != 1))
			return fx_math_fail(m, FX_EINVAL, "an image axis of %lld on a fine axis of %lld", (long long)g->dims[d],
				(long long)g->fine[d]);
	}
	for (int encoded = 1; encoded >= 0; encoded--)
		for (int d = 0; d < 3; d++)
			if ((g->dims[d] > 1) == (bool)encoded) {
				c->axis[at] = d;
				c->fine[at] = (int)g->fine[d];
				c->width[at++] = encoded ? g->width : 1;
				c->n_axes += encoded;
			}
	c->n = g->fine[0] * g->fine[1] * g->fine[2];
	c->components = g->real ? 1 : 2;
	choose_tiles(m, c);
	/* keys of cells, rounded up to tiles, have 32 bits */
	c->tiled = is_single(g) && c->n_axes > 0 && g->width >= 3 && g->width <= FXI_TILED_WIDTH && c->all_tiles > 0 &&
		(int64_t)c->all_tiles * (c->tile[0] * c->tile[1] * c->tile[2]) < INT32_MAX;
	if (c->all_tiles == 0)
		return fx_math_fail(m, FX_EINVAL, "a fine grid of %lld cells is more than this GPU backend counts", (long long)c->n);
	return FX_OK;
}

/* The kernel's polynomials: fitted once a queue, and on the device with the points. */
static int make_kernel(fx_math *m, const fx_fine_grid *g, fxi_points *p)
{
	fxi_cuda_nufft *kept = fxi_nufft_of(m);
	int n = (FX_FINE_DEGREE + 1) * FXI_WIDTHS, at = 0, status;
	size_t bytes;

	if (!kept)
		return FX_ENOMEM;
	while (at < kept->n_kernels && at < FXI_NUFFT_KEPT && (kept->kernels[at].width != g->width ||
		kept->kernels[at].beta != g->beta || kept->kernels[at].type != g->type))
		at++;
	if (at == kept->n_kernels || at == FXI_NUFFT_KEPT) {
		at = kept->n_kernels++ % FXI_NUFFT_KEPT;
		kept->kernels[at].width = g->width;
		kept->kernels[at].beta = g->beta;
		kept->kernels[at].type = g->type;
		kept->kernels[at].degree = fx_fine_kernel_polynomial(g->width, g->beta, is_single(g) ? 3e-8 : 1e-15, FXI_WIDTHS,
			kept->kernels[at].coefficients);
	}
	p->cells.degree = kept->kernels[at].degree;
	std::vector<float> single(kept->kernels[at].coefficients, kept->kernels[at].coefficients + n);
	bytes = (size_t)n * (is_single(g) ? sizeof(float) : sizeof(double));
	status = take(m, &p->coefficients, bytes);
	/* pageable memory: it is read before this returns */
	return status != FX_OK ? status : fxi_cuda_check(m, cudaMemcpyAsync(p->coefficients, is_single(g) ? (void *)single.data() :
		(void *)kept->kernels[at].coefficients, bytes, cudaMemcpyHostToDevice, fxi_stream_of(m)), "the spreading kernel");
}

int fxi_cuda_points_new(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points)
{
	fxi_points *p;
	int status;

	*points = nullptr;
	cudaSetDevice(m->device);
	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * k->dims[1] || k->dims[1] > INT32_MAX)
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M} with M below 2^31, not %s {%lld, %lld}",
			fx_type_name(k->type), (long long)k->dims[0], (long long)k->dims[1]);
	p = new (std::nothrow) fxi_points();
	if (!p)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the samples' places");
	p->n = k->dims[1];
	p->type = g->real ? (is_single(g) ? FX_F32 : FX_F64) : g->type;
	status = make_cells(m, g, p);
	if (status == FX_OK)
		status = make_kernel(m, g, p);
	if (status == FX_OK && p->n > 0) {
		fxi_use use(m);
		const double *at = (const double *)use.in(k);

		status = use.ready();
		if (status == FX_OK)
			status = sort_points(m, p, at);
		if (status == FX_OK)
			status = use.done("sorting samples");
	}
	if (status == FX_OK)
		*points = p;
	else
		fxi_cuda_points_free(m, p);
	return status;
}

void fxi_cuda_points_free(fx_math *m, void *points)
{
	fxi_points *p = (fxi_points *)points;

	if (!p)
		return;
	cudaSetDevice(m->device);
	/* in stream order, behind what still uses it */
	if (p->sorted)
		cudaFreeAsync(p->sorted, fxi_stream_of(m));
	if (p->shares)
		cudaFreeAsync(p->shares, fxi_stream_of(m));
	if (p->first_share)
		cudaFreeAsync(p->first_share, fxi_stream_of(m));
	if (p->coefficients)
		cudaFreeAsync(p->coefficients, fxi_stream_of(m));
	delete p;
}

/* SPDX-License-Identifier: MIT */
/*
 * points.cu - a trajectory's samples, sorted by tile of the fine grid once and cut into blocks of at most POINTS: what
 * spreading and interpolation (nufft.cu) walk through. The sort is stable, so that the order is one whatever the GPU.
 */
#include "nufft.cuh"

#include <cub/device/device_radix_sort.cuh>

#include <new>
#include <vector>

#define POINTS 1024
#define THREADS 256

static bool is_single(const fx_fine_grid *g)
{
	return g->type == FX_CF32;
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

template <typename REAL> __global__ static void place(fxi_cells g, int64_t n, const double *k, fxi_point<REAL> *points,
	uint32_t *keys, uint32_t *order, int *bad)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	uint32_t tile = 0, step = 1;
	fxi_point<REAL> p;

	if (i >= n)
		return;
	for (int d = 0; d < 3; d++) {
		double u = 0, at = k[3 * i + d];

		if (!isfinite(at))
			*bad = 1;
		p.cell[d] = g.width[d] > 1 ? cell_of(g.fine[d], g.width[d], at, &u) : 0;
		p.u[d] = (REAL)u;
		tile += step * (uint32_t)(p.cell[d] / g.tile[d]);
		step *= (uint32_t)g.n_tiles[d];
	}
	p.index = (uint32_t)i;
	points[i] = p;
	keys[i] = tile;
	order[i] = (uint32_t)i;
}

template <typename REAL> __global__ static void arrange(int64_t n, const fxi_point<REAL> *from, const uint32_t *order,
	fxi_point<REAL> *to)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = from[order[i]];
}

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

static int sort_keys(fx_math *m, int64_t n, uint32_t *keys, uint32_t *sorted_keys, uint32_t *order, uint32_t *sorted_order)
{
	size_t bytes = 0;
	cudaError_t e = cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, sorted_keys, order, sorted_order, (int)n, 0, 32,
		fxi_stream_of(m));

	if (e != cudaSuccess)
		return fxi_cuda_check(m, e, "sorting samples");
	fxi_work work(m, (int64_t)bytes, 1);
	if (work.status() != FX_OK)
		return work.status();
	e = cub::DeviceRadixSort::SortPairs(work.get(), bytes, keys, sorted_keys, order, sorted_order, (int)n, 0, 32,
		fxi_stream_of(m));
	return fxi_cuda_check(m, e, "sorting samples");
}

/* Blocks of points from the sorted tiles: on the host, once a trajectory. */
static int cut(fx_math *m, fxi_points *p, const uint32_t *device_keys)
{
	std::vector<uint32_t> keys((size_t)p->n);
	std::vector<fxi_share> shares;
	int status = fxi_cuda_check(m, cudaMemcpyAsync(keys.data(), device_keys, (size_t)p->n * sizeof(uint32_t),
		cudaMemcpyDeviceToHost, fxi_stream_of(m)), "sorting samples");

	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "sorting samples");
	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < p->n;) {
		int64_t end = i;

		while (end < p->n && end - i < POINTS && keys[(size_t)end] == keys[(size_t)i])
			end++;
		shares.push_back({(uint32_t)i, (uint32_t)(end - i), keys[(size_t)i]});
		i = end;
	}
	p->n_shares = (int64_t)shares.size();
	status = fxi_cuda_check(m, cudaMalloc(&p->shares, shares.size() * sizeof(fxi_share)), "sorting samples");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpy(p->shares, shares.data(), shares.size() * sizeof(fxi_share),
			cudaMemcpyHostToDevice), "sorting samples");
	return status;
}

template <typename REAL> static int sort_points(fx_math *m, fxi_points *p, const double *k)
{
	fxi_work unsorted(m, p->n, sizeof(fxi_point<REAL>)), keys(m, 4 * p->n, sizeof(uint32_t)), flag(m, 1, sizeof(int));
	uint32_t *key = (uint32_t *)keys.get(), *sorted = key + p->n, *order = sorted + p->n, *sorted_order = order + p->n;
	cudaStream_t s = fxi_stream_of(m);
	int bad = 0, status = FX_OK;

	if (unsorted.status() != FX_OK || keys.status() != FX_OK || flag.status() != FX_OK)
		return FX_ENOMEM;
	status = fxi_cuda_check(m, cudaMalloc(&p->sorted, (size_t)p->n * sizeof(fxi_point<REAL>)), "sorting samples");
	if (status != FX_OK)
		return status;
	cudaMemsetAsync(flag.get(), 0, sizeof(int), s);
	place<REAL><<<blocks_for(p->n), THREADS, 0, s>>>(p->cells, p->n, k, (fxi_point<REAL> *)unsorted.get(), key, order,
		(int *)flag.get());
	status = sort_keys(m, p->n, key, sorted, order, sorted_order);
	if (status != FX_OK)
		return status;
	arrange<REAL><<<blocks_for(p->n), THREADS, 0, s>>>(p->n, (const fxi_point<REAL> *)unsorted.get(), sorted_order,
		(fxi_point<REAL> *)p->sorted);
	status = fxi_cuda_check(m, cudaMemcpyAsync(&bad, flag.get(), sizeof bad, cudaMemcpyDeviceToHost, s), "sorting samples");
	if (status == FX_OK)
		status = cut(m, p, sorted);
	if (status == FX_OK && bad)
		status = fx_math_fail(m, FX_EDATA, "a sample of the trajectory has a coordinate that is no number");
	return status;
}

/* Tiles such that one with its rim fits a block's shared memory, both components in 32 bits. */
static void choose_tiles(fx_math *m, fxi_cells *g)
{
	size_t limit = fxi_queue(m)->shared_limit < 98304 ? fxi_queue(m)->shared_limit : 98304, bytes;
	int axes = (g->width[0] > 1) + (g->width[1] > 1) + (g->width[2] > 1), edge = axes == 3 ? 8 : axes == 2 ? 32 : 512;

	do {
		bytes = 2 * sizeof(int32_t);
		for (int d = 0; d < 3; d++) {
			g->tile[d] = g->width[d] > 1 ? (edge < g->fine[d] ? edge : g->fine[d]) : 1;
			g->n_tiles[d] = (g->fine[d] + g->tile[d] - 1) / g->tile[d];
			g->rim[d] = g->tile[d] + g->width[d] - 1;
			bytes *= (size_t)g->rim[d];
		}
		edge /= 2;
	} while (bytes > limit - 16384 && edge >= 1);
	g->tile_cells = g->rim[0] * g->rim[1] * g->rim[2];
}

static int make_cells(fx_math *m, const fx_fine_grid *g, fxi_points *p)
{
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
		p->cells.fine[d] = (int)g->fine[d];
		p->cells.width[d] = g->dims[d] > 1 ? g->width : 1;
	}
	p->cells.n = g->fine[0] * g->fine[1] * g->fine[2];
	p->cells.components = g->real ? 1 : 2;
	p->cells.beta = g->beta;
	choose_tiles(m, &p->cells);
	return FX_OK;
}

static int make_kernel(fx_math *m, const fx_fine_grid *g, fxi_points *p)
{
	std::vector<double> c((FX_FINE_DEGREE + 1) * FXI_WIDTHS);
	std::vector<float> single;
	size_t bytes;
	int status;

	p->cells.degree = fx_fine_kernel_polynomial(g->width, g->beta, is_single(g) ? 3e-8 : 1e-15, FXI_WIDTHS, c.data());
	bytes = (size_t)(p->cells.degree + 1) * FXI_WIDTHS * (is_single(g) ? sizeof(float) : sizeof(double));
	for (double v : c)
		single.push_back((float)v);
	status = fxi_cuda_check(m, cudaMalloc(&p->coefficients, bytes), "the spreading kernel");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpy(p->coefficients, is_single(g) ? (void *)single.data() : (void *)c.data(), bytes,
			cudaMemcpyHostToDevice), "the spreading kernel");
	return status;
}

int fxi_cuda_points_new(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points)
{
	fxi_points *p;
	int status;

	*points = nullptr;
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
			status = is_single(g) ? sort_points<float>(m, p, at) : sort_points<double>(m, p, at);
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
	/* plain cudaFree waits for what still uses it */
	cudaFree(p->sorted);
	cudaFree(p->shares);
	cudaFree(p->coefficients);
	delete p;
}

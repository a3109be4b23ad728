/* SPDX-License-Identifier: MIT */
/*
 * nufft.cu - spreading samples onto the oversampled grid, and interpolating them from it.
 *
 * Sums in floating point depend on their order, and atomics have none. Here they are made in integers, where order does not
 * matter: a block sums what falls onto its tile in 32-bit fixed point in shared memory (2^30 is all its samples'
 * magnitudes together, so that nothing can overflow), and adds the tile to the grid in 64-bit fixed point (2^62 is all
 * samples together). The same bits come out whatever the order; the quantum is 1e-9 of a block's sum of magnitudes, below
 * the rounding of single precision, and 2e-19 of the scan's. Double precision leaves out the first stage.
 */
#include "nufft.cuh"

#define THREADS 256

static bool is_single(const fx_fine_grid *g)
{
	return g->type == FX_CF32;
}

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

int fxi_cuda_need_fine(fx_math *m, const fx_fine_grid *g, const fx_array *fine, int64_t *n)
{
	int64_t cells = g->fine[0] * g->fine[1] * g->fine[2];
	int type = g->real ? (is_single(g) ? FX_F32 : FX_F64) : g->type;

	if (fine->type != type || fine->dims[0] != g->fine[0] || fine->dims[1] != g->fine[1] || fine->dims[2] != g->fine[2])
		return fx_math_fail(m, FX_EINVAL, "a fine grid of %lld x %lld x %lld %s where %lld x %lld x %lld %s belongs",
			(long long)fine->dims[0], (long long)fine->dims[1], (long long)fine->dims[2], fx_type_name(fine->type),
			(long long)g->fine[0], (long long)g->fine[1], (long long)g->fine[2], fx_type_name(type));
	*n = fine->n / cells;
	return FX_OK;
}

static int need_sides(fx_math *m, const fx_fine_grid *g, const fxi_points *p, const fx_array *samples, const fx_array *fine,
	int64_t *n_coils)
{
	int status = fxi_cuda_need_fine(m, g, fine, n_coils);

	if (status != FX_OK)
		return status;
	if (samples->type != p->type || samples->dims[0] != p->n || samples->n != p->n * *n_coils)
		return fx_math_fail(m, FX_EINVAL, "%s samples {%lld, ...}, %lld in all, where %s {%lld, %lld} belong",
			fx_type_name(samples->type), (long long)samples->dims[0], (long long)samples->n, fx_type_name(p->type),
			(long long)p->n, (long long)*n_coils);
	return FX_OK;
}

/* ---- spreading -------------------------------------------------------------------------------- */

/* Kernel values along one axis. */
template <typename REAL> __device__ static void values(const fxi_cells &g, const REAL *c, int axis, REAL u, REAL *out)
{
	if (g.width[axis] == 1) {
		out[0] = 1;
		return;
	}
	for (int j = 0; j < g.width[axis]; j++) {
		REAL v = c[j];

		for (int d = 1; d <= g.degree; d++)
			v = v * u + c[d * FXI_WIDTHS + j];
		out[j] = v;
	}
}

/* Sums of magnitudes of all samples of a coil, in double and in a fixed order: what the fixed point's unit comes from. */
template <typename REAL> __global__ static void magnitudes(int64_t n, const REAL *samples, double *sum)
{
	__shared__ double part[1024];
	double own = 0;

	for (int64_t i = threadIdx.x; i < n; i += 1024)
		own += fabs((double)samples[i]);
	part[threadIdx.x] = own;
	__syncthreads();
	for (int half = 512; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		*sum = part[0];
}

#define GRID_UNIT 4611686018427387904.0 /* 2^62 */

/* A block's tile, in shared memory, and from there to the grid. */
__global__ static void spread_tiles(fxi_cells g, const float *c, const fxi_share *shares, const fxi_point<float> *points,
	const float *samples, const double *total, unsigned long long *grid)
{
	extern __shared__ int tile[];
	__shared__ float coefficients[(FX_FINE_DEGREE + 1) * FXI_WIDTHS];
	__shared__ float bound[THREADS];
	fxi_share share = shares[blockIdx.x];
	float own = 0, unit;
	int comps = g.components;

	for (int i = threadIdx.x; i < (g.degree + 1) * FXI_WIDTHS; i += THREADS)
		coefficients[i] = c[i];
	for (int i = threadIdx.x; i < g.tile_cells * comps; i += THREADS)
		tile[i] = 0;
	for (uint32_t i = threadIdx.x; i < share.n; i += THREADS)
		for (int e = 0; e < comps; e++)
			own += fabsf(samples[(int64_t)points[share.first + i].index * comps + e]);
	bound[threadIdx.x] = own;
	__syncthreads();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			bound[threadIdx.x] += bound[threadIdx.x + half];
		__syncthreads();
	}
	/* kernel values are at most 1 and rounding adds a little: an eighth is left */
	unit = bound[0] > 0 && isfinite(bound[0]) ? 939524096.0f / bound[0] : 0;
	int origin[3] = {(int)(share.tile % g.n_tiles[0]) * g.tile[0], (int)(share.tile / g.n_tiles[0] % g.n_tiles[1]) * g.tile[1],
		(int)(share.tile / (g.n_tiles[0] * g.n_tiles[1])) * g.tile[2]};
	for (uint32_t i = threadIdx.x; i < share.n; i += THREADS) {
		fxi_point<float> p = points[share.first + i];
		float kx[FXI_WIDTHS], ky[FXI_WIDTHS], kz[FXI_WIDTHS];
		float re = unit * samples[(int64_t)p.index * comps], im = comps == 2 ? unit * samples[(int64_t)p.index * 2 + 1] : 0;
		int at = (p.cell[0] - origin[0]) + g.rim[0] * ((p.cell[1] - origin[1]) + g.rim[1] * (p.cell[2] - origin[2]));

		values(g, coefficients, 0, p.u[0], kx);
		values(g, coefficients, 1, p.u[1], ky);
		values(g, coefficients, 2, p.u[2], kz);
		for (int z = 0; z < g.width[2]; z++)
			for (int y = 0; y < g.width[1]; y++) {
				float kyz = ky[y] * kz[z];
				int row = at + g.rim[0] * (y + g.rim[1] * z);

				for (int x = 0; x < g.width[0]; x++) {
					atomicAdd(&tile[(row + x) * comps], __float2int_rn(re * (kx[x] * kyz)));
					if (comps == 2)
						atomicAdd(&tile[(row + x) * 2 + 1], __float2int_rn(im * (kx[x] * kyz)));
				}
			}
	}
	__syncthreads();
	double step = unit > 0 ? GRID_UNIT / *total / unit : 0;
	for (int i = threadIdx.x; i < g.tile_cells; i += THREADS) {
		int x = (origin[0] + i % g.rim[0]) % g.fine[0], y = (origin[1] + i / g.rim[0] % g.rim[1]) % g.fine[1];
		int z = (origin[2] + i / (g.rim[0] * g.rim[1])) % g.fine[2];
		int64_t cell = x + (int64_t)g.fine[0] * (y + (int64_t)g.fine[1] * z);

		for (int e = 0; e < comps; e++)
			if (tile[i * comps + e] != 0)
				atomicAdd(&grid[cell * comps + e], (unsigned long long)__double2ll_rn(tile[i * comps + e] * step));
	}
}

/* In double: a thread a sample, straight to the grid. */
__global__ static void spread_points(fxi_cells g, const double *c, int64_t n, const fxi_point<double> *points,
	const double *samples, const double *total, unsigned long long *grid)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double unit = *total > 0 && isfinite(*total) ? 0.875 * GRID_UNIT / *total : 0;
	double kx[FXI_WIDTHS], ky[FXI_WIDTHS], kz[FXI_WIDTHS];

	if (i >= n)
		return;
	fxi_point<double> p = points[i];
	values(g, c, 0, p.u[0], kx);
	values(g, c, 1, p.u[1], ky);
	values(g, c, 2, p.u[2], kz);
	for (int z = 0; z < g.width[2]; z++)
		for (int y = 0; y < g.width[1]; y++)
			for (int x = 0; x < g.width[0]; x++) {
				int64_t cell = (p.cell[0] + x) % g.fine[0] + (int64_t)g.fine[0] * ((p.cell[1] + y) % g.fine[1] +
					(int64_t)g.fine[1] * ((p.cell[2] + z) % g.fine[2]));

				for (int e = 0; e < g.components; e++)
					atomicAdd(&grid[cell * g.components + e], (unsigned long long)__double2ll_rn(unit *
						samples[(int64_t)p.index * g.components + e] * (kx[x] * ky[y] * kz[z])));
			}
}

/* fine += what was summed; a sum that had no unit (samples that are not finite) becomes NaN. */
template <typename REAL> __global__ static void add_fixed(int64_t n, const long long *grid, const double *total, double share,
	REAL *fine)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= n)
		return;
	if (!isfinite(*total))
		fine[i] = NAN;
	else if (grid[i] != 0)
		fine[i] += (REAL)((double)grid[i] * (*total / (share * GRID_UNIT)));
}

static int spread_coil(fx_math *m, const fxi_points *p, const void *samples, void *fine, double *total, unsigned long long *grid)
{
	const fxi_cells *g = &p->cells;
	int64_t n = g->n * g->components;
	size_t bytes = (size_t)g->tile_cells * g->components * sizeof(int);
	cudaStream_t s = fxi_stream_of(m);

	cudaMemsetAsync(grid, 0, (size_t)n * sizeof *grid, s);
	if (p->type == FX_F32 || p->type == FX_CF32) {
		magnitudes<<<1, 1024, 0, s>>>(p->n * g->components, (const float *)samples, total);
		cudaFuncSetAttribute(spread_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
		spread_tiles<<<(unsigned)p->n_shares, THREADS, bytes, s>>>(*g, (const float *)p->coefficients, p->shares,
			(const fxi_point<float> *)p->sorted, (const float *)samples, total, grid);
		add_fixed<<<blocks_for(n), THREADS, 0, s>>>(n, (const long long *)grid, total, 1.0, (float *)fine);
	} else {
		magnitudes<<<1, 1024, 0, s>>>(p->n * g->components, (const double *)samples, total);
		spread_points<<<blocks_for(p->n), THREADS, 0, s>>>(*g, (const double *)p->coefficients, p->n,
			(const fxi_point<double> *)p->sorted, (const double *)samples, total, grid);
		add_fixed<<<blocks_for(n), THREADS, 0, s>>>(n, (const long long *)grid, total, 0.875, (double *)fine);
	}
	return fxi_cuda_launched(m, "spreading samples");
}

int fxi_cuda_spread(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine)
{
	const fxi_points *p = (const fxi_points *)points;
	int64_t n_coils = 0, each = p->cells.n * p->cells.components;
	size_t size = is_single(g) ? sizeof(float) : sizeof(double);
	int status = need_sides(m, g, p, samples, fine, &n_coils);
	fxi_use use(m);

	if (status != FX_OK || p->n == 0 || n_coils == 0)
		return status;
	fxi_work grid(m, each, sizeof(unsigned long long)), total(m, 1, sizeof(double));
	const char *from = (const char *)use.in(samples);
	char *to = (char *)use.out(fine);
	if (grid.status() != FX_OK || total.status() != FX_OK || use.ready() != FX_OK)
		return use.ready() != FX_OK ? use.ready() : FX_ENOMEM;
	for (int64_t c = 0; c < n_coils && status == FX_OK; c++)
		status = spread_coil(m, p, from + (size_t)(c * p->n * p->cells.components) * size, to + (size_t)(c * each) * size,
			(double *)total.get(), (unsigned long long *)grid.get());
	return status == FX_OK ? use.done("spreading samples") : status;
}

/* ---- interpolation ---------------------------------------------------------------------------- */

template <typename REAL> __global__ static void gather(fxi_cells g, const REAL *c, int64_t n, int64_t n_coils,
	const fxi_point<REAL> *points, const REAL *fine, REAL *samples)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	REAL kx[FXI_WIDTHS], ky[FXI_WIDTHS], kz[FXI_WIDTHS];

	if (i >= n)
		return;
	fxi_point<REAL> p = points[i];
	values(g, c, 0, p.u[0], kx);
	values(g, c, 1, p.u[1], ky);
	values(g, c, 2, p.u[2], kz);
	for (int64_t coil = 0; coil < n_coils; coil++) {
		const REAL *from = fine + coil * g.n * g.components;
		REAL re = 0, im = 0;

		for (int z = 0; z < g.width[2]; z++)
			for (int y = 0; y < g.width[1]; y++) {
				int64_t row = (int64_t)g.fine[0] * ((p.cell[1] + y) % g.fine[1] + (int64_t)g.fine[1] *
					((p.cell[2] + z) % g.fine[2]));
				REAL kyz = ky[y] * kz[z], sr = 0, si = 0;

				for (int x = 0; x < g.width[0]; x++) {
					int64_t cell = (row + (p.cell[0] + x) % g.fine[0]) * g.components;

					sr += kx[x] * from[cell];
					if (g.components == 2)
						si += kx[x] * from[cell + 1];
				}
				re += kyz * sr;
				im += kyz * si;
			}
		REAL *to = samples + (coil * n + p.index) * g.components;
		to[0] = re;
		if (g.components == 2)
			to[1] = im;
	}
}

int fxi_cuda_interpolate(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *fine, fx_array *samples)
{
	const fxi_points *p = (const fxi_points *)points;
	int64_t n_coils = 0;
	int status = need_sides(m, g, p, samples, fine, &n_coils);
	fxi_use use(m);

	if (status != FX_OK || samples->n == 0)
		return status;
	const void *from = use.in(fine);
	void *to = use.out(samples);
	if (use.ready() != FX_OK)
		return use.ready();
	if (is_single(g))
		gather<float><<<blocks_for(p->n), THREADS, 0, fxi_stream_of(m)>>>(p->cells, (const float *)p->coefficients, p->n, n_coils,
			(const fxi_point<float> *)p->sorted, (const float *)from, (float *)to);
	else
		gather<double><<<blocks_for(p->n), THREADS, 0, fxi_stream_of(m)>>>(p->cells, (const double *)p->coefficients, p->n,
			n_coils, (const fxi_point<double> *)p->sorted, (const double *)from, (double *)to);
	return use.done("interpolating samples");
}

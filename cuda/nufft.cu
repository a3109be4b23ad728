/* SPDX-License-Identifier: MIT */
/*
 * nufft.cu - spreading samples onto the oversampled grid, and interpolating them from it.
 *
 * In single precision both go through tiles (nufft_spread.cu, nufft_gather.cu). In double, and for what tiles are not made for (kernels
 * wider than single precision asks for, grids without an axis), a thread has a sample. Sums in floating point depend on their order,
 * and atomics have none; so there they are made in integers, where it does not matter: in 64-bit fixed point (7/8 of 2^62 is all
 * samples' magnitudes together), of which the quantum is 2e-19 of the scan's. The same bits come out whatever the order.
 */
#include "fixed.cuh"
#include "nufft.cuh"

#include <new>

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

fxi_cuda_nufft *fxi_nufft_of(fx_math *m)
{
	fxi_cuda_queue *q = fxi_queue(m);

	if (!q->nufft) {
		q->nufft = new (std::nothrow) fxi_cuda_nufft();
		if (!q->nufft)
			fx_math_fail(m, FX_ENOMEM, "no memory for what a NUFFT keeps");
		else if (fxi_cuda_check(m, cudaEventCreateWithFlags(&q->nufft->placed, cudaEventDisableTiming), "an event") != FX_OK) {
			delete q->nufft;
			q->nufft = nullptr;
		}
	}
	return q->nufft;
}

void fxi_cuda_nufft_free(fxi_cuda_queue *q)
{
	if (!q->nufft)
		return;
	for (int i = 0; i < FXI_NUFFT_KEPT; i++)
		cudaFree(q->nufft->divisors[i].weights);
	cudaEventDestroy(q->nufft->placed);
	delete q->nufft;
}

/* ---- a thread a sample ------------------------------------------------------------------------ */

/* Kernel values along one axis. */
template <typename REAL> __device__ static void values(const fxi_cells &g, const REAL *c, int axis, REAL u, REAL *out)
{
	if (g.width[axis] == 1) {
		out[0] = 1;
		return;
	}
	for (int j = 0; j < g.width[axis]; j++)
		out[j] = fxi_kernel_at(c, g.degree, j, u);
}

template <typename REAL>
__global__ static void spread_points(fxi_cells g, const REAL *c, int64_t n, const fxi_point<REAL> *points, const REAL *samples,
	const double *total, unsigned long long *grid)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double unit = *total > 0 && isfinite(*total) ? FXI_FIXED_UNIT / *total : 0;
	REAL kx[FXI_WIDTHS], ky[FXI_WIDTHS], kz[FXI_WIDTHS];

	if (i >= n)
		return;
	fxi_point<REAL> p = points[i];
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
						samples[(int64_t)p.index * g.components + e] * ((double)kx[x] * ky[y] * kz[z])));
			}
}

template <typename REAL> static int spread(fx_math *m, const fxi_points *p, int64_t n_coils, const REAL *samples, REAL *fine)
{
	const fxi_cells *g = &p->cells;
	int64_t n = g->n * g->components;
	fxi_work grid(m, n, sizeof(unsigned long long)), total(m, 1, sizeof(double));
	cudaStream_t s = fxi_stream_of(m);

	if (grid.status() != FX_OK || total.status() != FX_OK)
		return FX_ENOMEM;
	for (int64_t c = 0; c < n_coils; c++, samples += p->n * g->components, fine += n) {
		cudaMemsetAsync(grid.get(), 0, (size_t)n * sizeof(unsigned long long), s);
		fxi_magnitudes<<<1, 1024, 0, s>>>(p->n * g->components, samples, (double *)total.get());
		spread_points<REAL><<<blocks_for(p->n), THREADS, 0, s>>>(*g, (const REAL *)p->coefficients, p->n,
			(const fxi_point<REAL> *)p->sorted, samples, (const double *)total.get(), (unsigned long long *)grid.get());
		fxi_add_fixed<REAL><<<blocks_for(n), THREADS, 0, s>>>(n, (const long long *)grid.get(), (const double *)total.get(), fine);
	}
	return fxi_cuda_launched(m, "spreading samples");
}

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

/* ---- the operations --------------------------------------------------------------------------- */

int fxi_cuda_spread(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine)
{
	const fxi_points *p = (const fxi_points *)points;
	int64_t n_coils = 0;
	int status = need_sides(m, g, p, samples, fine, &n_coils);
	fxi_use use(m);

	if (status != FX_OK || p->n == 0 || n_coils == 0)
		return status;
	const void *from = use.in(samples);
	void *to = use.out(fine);
	status = use.ready();
	if (status == FX_OK && p->cells.tiled)
		status = fxi_cuda_spread_tiles(m, p, n_coils, from, to);
	else if (status == FX_OK && is_single(g))
		status = spread<float>(m, p, n_coils, (const float *)from, (float *)to);
	else if (status == FX_OK)
		status = spread<double>(m, p, n_coils, (const double *)from, (double *)to);
	return status == FX_OK ? use.done("spreading samples") : status;
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
	status = use.ready();
	if (status == FX_OK && p->cells.tiled)
		status = fxi_cuda_gather_tiles(m, p, n_coils, from, to);
	else if (status == FX_OK && is_single(g))
		gather<float><<<blocks_for(p->n), THREADS, 0, fxi_stream_of(m)>>>(p->cells, (const float *)p->coefficients, p->n, n_coils,
			(const fxi_point<float> *)p->sorted, (const float *)from, (float *)to);
	else if (status == FX_OK)
		gather<double><<<blocks_for(p->n), THREADS, 0, fxi_stream_of(m)>>>(p->cells, (const double *)p->coefficients, p->n,
			n_coils, (const fxi_point<double> *)p->sorted, (const double *)from, (double *)to);
	return status == FX_OK ? use.done("interpolating samples") : status;
}

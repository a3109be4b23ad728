/* SPDX-License-Identifier: MIT */
/*
 * share.cu - the simplest gridding there is (backend.h, share_out): a thread a sample, sums in fixed point (fixed.cuh). sm_75 to sm_90 run
 * the same code.
 */
#include "fixed.cuh"

#define THREADS 256

struct grid {
	int64_t dims[3];
};

/* The lower one of the two cells along an axis, and the upper one's share. */
__device__ static float share(int64_t n, double k, int64_t *cell)
{
	double u, low;

	*cell = 0;
	if (n == 1)
		return 0;
	/* one period of k-space, so that the product with n is exact enough however far out k lies */
	u = (k - floor(k)) * (double)n;
	low = floor(u);
	*cell = ((int64_t)low + n / 2) % n;
	return (float)(u - low);
}

__global__ static void share_out(grid g, int64_t n, const double *k, const float2 *samples, const double *total,
	unsigned long long *cells)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, cell[3][2];
	double unit = *total > 0 && isfinite(*total) ? FXI_FIXED_UNIT / *total : 0;
	float upper[3];

	if (i >= n)
		return;
	float2 s = samples[i];
	for (int axis = 0; axis < 3; axis++) {
		upper[axis] = share(g.dims[axis], k[3 * i + axis], &cell[axis][0]);
		cell[axis][1] = (cell[axis][0] + 1) % g.dims[axis];
	}
	for (int corner = 0; corner < 8; corner++) {
		int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
		float f = (x ? upper[0] : 1 - upper[0]) * (y ? upper[1] : 1 - upper[1]) * (z ? upper[2] : 1 - upper[2]);
		int64_t at = 2 * (cell[0][x] + g.dims[0] * (cell[1][y] + g.dims[1] * cell[2][z]));

		if (f == 0)
			continue;
		atomicAdd(&cells[at], (unsigned long long)__double2ll_rn(unit * ((double)f * s.x)));
		atomicAdd(&cells[at + 1], (unsigned long long)__double2ll_rn(unit * ((double)f * s.y)));
	}
}

int fxi_cuda_share_out(fx_math *m, const fx_array *k, const fx_array *samples, fx_array *cells)
{
	grid g = {{cells->dims[0], cells->dims[1], cells->dims[2]}};
	int64_t n_cells = g.dims[0] * g.dims[1] * g.dims[2], n = k->dims[1];
	fxi_use use(m);

	if (k->type != FX_F64 || k->dims[0] != 3 || samples->type != FX_CF32 || cells->type != FX_CF32 ||
		samples->n != n * samples->dims[1] || cells->n != n_cells * samples->dims[1])
		return fx_math_fail(m, FX_EINVAL, "samples cf32 {%lld, coils} are shared out to cells cf32 {x, y, z, coils}", (long long)n);
	if (samples->n == 0 || n_cells == 0)
		return FX_OK;
	fxi_work sums(m, 2 * n_cells, sizeof(unsigned long long)), total(m, 1, sizeof(double));
	const double *at = (const double *)use.in(k);
	const float2 *from = (const float2 *)use.in(samples);
	float2 *to = (float2 *)use.out(cells);
	cudaStream_t s = fxi_stream_of(m);
	if (sums.status() != FX_OK || total.status() != FX_OK || use.ready() != FX_OK)
		return use.ready() != FX_OK ? use.ready() : FX_ENOMEM;
	for (int64_t c = 0; c < samples->dims[1]; c++, from += n, to += n_cells) {
		cudaMemsetAsync(sums.get(), 0, (size_t)(2 * n_cells) * sizeof(unsigned long long), s);
		fxi_magnitudes<<<1, 1024, 0, s>>>(2 * n, (const float *)from, (double *)total.get());
		share_out<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, s>>>(g, n, at, from, (const double *)total.get(),
			(unsigned long long *)sums.get());
		fxi_add_fixed<float><<<(unsigned)((2 * n_cells + THREADS - 1) / THREADS), THREADS, 0, s>>>(2 * n_cells,
			(const long long *)sums.get(), (const double *)total.get(), (float *)to);
	}
	return use.done("sharing samples out");
}

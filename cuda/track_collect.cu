/* SPDX-License-Identifier: MIT */
/*
 * track_collect.cu - from walked halves to fibres: which are kept, where each one's points go, and both halves joined there. Places come of prefix sums
 * over the seeds, so that the same run gives the same bytes. Passes bound by memory, the same on every architecture.
 */
#include "track.cuh"

#include <cub/device/device_scan.cuh>

static const int THREADS = 128;
static const int FEW = 16384, SHARES = 8; /* fibres below which several warps gather one, and how many */

__global__ static void judge(fxi_track_gather g)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	int64_t n = 0;
	uint32_t seen = 0;
	float length = 0;

	if (i > g.n)
		return;
	if (i < g.n) {
		const fxi_track_half *h = g.halves + i * g.directions;
		bool outside = !g.starts[i].usable || h[0].n == 0;

		for (int k = 0; k < g.directions && !outside; k++) {
			n += h[k].n;
			seen |= h[k].seen;
			length += h[k].length;
		}
		if (outside)
			atomicAdd(&g.counts[0], 1ull);
		if (n < 2 || length < g.min_length)
			n = 0;
		if (n > 0 && g.keep && ((g.any != 0 && !(seen & g.any)) || (seen & g.all) != g.all)) {
			atomicAdd(&g.counts[1], 1ull);
			n = 0;
		}
	}
	g.first[i] = n;
	g.place[i] = n > 0;
}

/* The four totals beside each other: one copy to the host instead of three. */
__global__ static void sum_up(fxi_track_gather g)
{
	g.counts[2] = g.place[g.n];
	g.counts[3] = (unsigned long long)g.first[g.n];
}

int fxi_track_judge(fx_math *m, const fxi_track_gather *g, int64_t totals[4])
{
	cudaStream_t stream = fxi_stream_of(m);
	unsigned long long *counts = (unsigned long long *)fxi_queue(m)->result; /* pinned */
	size_t some = 0, more = 0;
	cudaError_t e = cudaMemsetAsync(g->counts, 0, 2 * sizeof *g->counts, stream);

	if (e == cudaSuccess)
		e = cub::DeviceScan::ExclusiveSum(nullptr, some, g->first, g->first, g->n + 1, stream);
	if (e == cudaSuccess)
		e = cub::DeviceScan::ExclusiveSum(nullptr, more, g->place, g->place, g->n + 1, stream);
	if (e != cudaSuccess)
		return fxi_cuda_check(m, e, "counting the fibres");
	fxi_work room(m, (int64_t)(some > more ? some : more), 1);
	if (room.status() != FX_OK)
		return room.status();
	judge<<<(unsigned)((g->n + THREADS) / THREADS), THREADS, 0, stream>>>(*g);
	e = cub::DeviceScan::ExclusiveSum(room.get(), some, g->first, g->first, g->n + 1, stream);
	if (e == cudaSuccess)
		e = cub::DeviceScan::ExclusiveSum(room.get(), more, g->place, g->place, g->n + 1, stream);
	sum_up<<<1, 1, 0, stream>>>(*g);
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(counts, g->counts, 4 * sizeof *counts, cudaMemcpyDeviceToHost, stream);
	if (e == cudaSuccess)
		e = cudaStreamSynchronize(stream);
	if (e != cudaSuccess)
		return fxi_cuda_check(m, e, "counting the fibres");
	totals[0] = (int64_t)counts[2];
	totals[1] = (int64_t)counts[3];
	totals[2] = (int64_t)counts[0];
	totals[3] = (int64_t)counts[1];
	return FX_OK;
}

__global__ static void place_halves(fxi_track_gather g, int64_t *bases)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= g.n)
		return;
	bool kept = g.place[i + 1] > g.place[i];
	int64_t at = g.first[i];

	for (int k = 0; k < g.directions; k++) {
		bases[i * g.directions + k] = kept ? at : -1;
		at += g.halves[i * g.directions + k].n;
	}
}

int fxi_track_bases(fx_math *m, const fxi_track_gather *g, int64_t *bases)
{
	place_halves<<<(unsigned)((g->n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(*g, bases);
	return fxi_cuda_launched(m, "placing the fibres");
}

struct target {
	uint32_t *offsets, *seeds;
	float *points, *riemann, *values;
};

/* What is one number a fibre, seed by seed. */
__global__ static void describe(fxi_track_gather g, target t)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= g.n)
		return;
	int64_t place = g.place[i];
	const fxi_track_half *h = g.halves + i * g.directions;
	bool two = g.directions == 2;

	if (i == g.n - 1)
		t.offsets[g.place[g.n]] = (uint32_t)g.first[g.n];
	if (g.place[i + 1] == g.place[i])
		return;
	float *v = t.values + FX_N_VALUES * place;
	double length = (double)h[0].length + (two ? (double)h[1].length : 0), riemann = (double)h[0].riemann + (two ? (double)h[1].riemann : 0);

	t.offsets[place] = (uint32_t)g.first[i];
	t.seeds[place] = (uint32_t)i;
	v[FX_VALUE_LENGTH] = (float)length;
	v[FX_VALUE_RIEMANN] = (float)riemann;
	v[FX_VALUE_MEASURE] = (float)(length / riemann);
	v[FX_VALUE_DRIFT] = g.method == FX_TRACK_GEODESIC ? fmaxf(h[0].drift, two ? h[1].drift : 0) : 0;
	v[FX_VALUE_STOP_START] = two ? (float)h[1].stop : -1;
	v[FX_VALUE_STOP_END] = (float)h[0].stop;
	v[FX_VALUE_SEED] = two ? (float)h[1].n : 0;
}

/*
 * A warp, or several where fibres are few, a fibre: the second half backwards, then the first; Riemannian length counts from the first point of all.
 * Four points a thread are on their way at once.
 */
__global__ static void join(fxi_track_gather g, int64_t n_fibres, const float4 *points, int64_t cap, const int64_t *bases, target t)
{
	int64_t place = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32;

	if (place >= n_fibres)
		return;
	int64_t seed = t.seeds[place], half = seed * g.directions, to = g.first[seed];
	int n = (int)(g.first[seed + 1] - to), n_back = g.directions == 2 ? g.halves[half + 1].n : 0, apart = 32 * (int)gridDim.y;
	float before = g.directions == 2 ? g.halves[half + 1].riemann : 0;
	const float4 *ahead = points + (bases ? bases[half] : half * cap);
	const float4 *back = g.directions == 2 ? points + (bases ? bases[half + 1] : (half + 1) * cap) : ahead;

#pragma unroll 4
	for (int i = (int)(threadIdx.x % 32) + 32 * (int)blockIdx.y; i < n; i += apart) {
		float4 q = __ldcs(i < n_back ? back + (n_back - 1 - i) : ahead + (i - n_back));
		float *p = t.points + 3 * (to + i);

		p[0] = q.x;
		p[1] = q.y;
		p[2] = q.z;
		if (t.riemann)
			t.riemann[to + i] = i < n_back ? before - q.w : before + q.w;
	}
}

int fxi_track_collect(fx_math *m, const fxi_track_gather *g, const float4 *points, int64_t cap, const int64_t *bases, fx_track_arrays *out)
{
	cudaStream_t stream = fxi_stream_of(m);
	int64_t n_fibres = out->seeds->n;
	fxi_use use(m);
	target t = {(uint32_t *)use.out(out->offsets), (uint32_t *)use.out(out->seeds), (float *)use.out(out->points),
		out->riemann ? (float *)use.out(out->riemann) : nullptr, (float *)use.out(out->values)};

	if (use.ready() != FX_OK)
		return use.ready();
	if (n_fibres > 0) {
		describe<<<(unsigned)((g->n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(*g, t);
		dim3 grid((unsigned)((32 * n_fibres + THREADS - 1) / THREADS), n_fibres < FEW ? SHARES : 1);

		join<<<grid, THREADS, 0, stream>>>(*g, n_fibres, points, cap, bases, t);
	}
	return use.done("gathering the fibres");
}

/* SPDX-License-Identifier: MIT */
/*
 * track_walk.cuh - the walk that all forms and methods share. A warp holds 32 / LANES fibres, each shared by LANES threads that split its tensors;
 * a fibre that ends is followed by the next of the queue, so that live ones stay together. Which threads walk a seed changes nothing.
 * A path is looked at, accepted or ended, and advanced; every group of threads goes through the same steps in the same order, since
 * they talk by shuffles.
 */
#ifndef FORNIX_CUDA_TRACK_WALK_CUH
#define FORNIX_CUDA_TRACK_WALK_CUH

#include "track_cell.cuh"

namespace track {

static const unsigned FULL = 0xffffffffu;
static const int BLOCK = 128;
static const int STEPS_A_ROUND = 4;
/* Warps of a multiprocessor that is not full: two a scheduler hide each other's waits; texture units would rather have one, of more threads. */
static const int WARPS_EACH = 8, WARPS_OF_TEXTURES = 4;

/* Where a fibre is; hi and row make lane's share of (x, y, z in RAS, Riemannian length) of it. */
template <int LANES> struct state {
	static const int SHARE = 4 / LANES;
	int c[3];
	float f[3], v[3];
	float square;                /* g(v, v); NaN where the field is undefined */
	float hi[SHARE], row[SHARE][3];
	unsigned corners;            /* of the cell: which are in the mask */

	__device__ void orient(const fxi_track_view &g, int lane)
	{
#pragma unroll
		for (int k = 0; k < SHARE; k++)
#pragma unroll
			for (int i = 0; i < 3; i++) {
				int part = lane * SHARE + k;

				row[k][i] = part == 0 ? (float)g.affine[0][i] : part == 1 ? (float)g.affine[1][i] : part == 2 ? (float)g.affine[2][i] : 0;
			}
	}

	/* The cell's corner in RAS, in double and then once rounded: what is added to it is small. */
	__device__ void enter(const fxi_track_view &g, int lane)
	{
#pragma unroll
		for (int k = 0; k < SHARE; k++) {
			int part = lane * SHARE + k;
			const double *a = part == 0 ? g.affine[0] : part == 1 ? g.affine[1] : g.affine[2];

			hi[k] = (float)(a[0] * c[0] + a[1] * c[1] + a[2] * c[2] + a[3]);
		}
		corners = g.corners ? __ldg(g.corners + voxel_of(g, c)) : 0xffu;
	}
};

/*
 * The cell that x lies in becomes the fibre's; x and the fibre's own fraction, both counted from the old one, are counted from it. False where
 * x is outside the volume or not a number.
 */
template <class CELL, class STATE>
__device__ static inline bool settle(const fxi_track_view &g, STATE &s, float x[3], CELL &cell, int lane, int first)
{
	bool inside = true, moved = false;

	if (fabsf(x[0] - g.middle[0]) <= 0.5f && fabsf(x[1] - g.middle[1]) <= 0.5f && fabsf(x[2] - g.middle[2]) <= 0.5f)
		return true;
#pragma unroll
	for (int i = 0; i < 3; i++) {
		int to = min(max(s.c[i] + (int)floorf(x[i]), 0), g.last[i]);
		float shift = (float)(s.c[i] - to);

		moved = moved || to != s.c[i];
		s.c[i] = to;
		x[i] += shift;
		if (x != s.f)
			s.f[i] += shift;
		inside = inside && x[i] >= -0.5f && x[i] < (to == g.last[i] ? g.top[i] : 1.5f);
	}
	if (moved) {
		cell.load(g, s.c, first);
		s.enter(g, lane);
	}
	return inside;
}

/* A running sum that keeps what each addition rounds away. */
struct total {
	float sum, excess;

	__device__ void clear() { sum = excess = 0; }
	__device__ void add(float x)
	{
		float y = x - excess, t = sum + y;

		excess = (t - sum) - y;
		sum = t;
	}
	__device__ double value() const { return (double)sum - (double)excess; }
};

/* What one step came to. */
struct step {
	float length, riemann;       /* mm; Riemannian */
	float divided;               /* out of the velocity */
};

template <class PATH, bool RULES> struct fibre {
	typedef state<PATH::LANES> state_t;
	state_t s;
	PATH path;
	int lane;
	bool active, drained;
	int seed, way;
	float *to;                   /* this lane's share of the next point; NULL: points are only counted */
	int n, steps;
	total length, riemann;
	float here_length, here_riemann; /* at the last point that was kept */
	float scale, inverse_square, drift;
	double length_before;        /* of the other half */
	float towards[3], towards_length, last[3];
	uint32_t seen;

	__device__ explicit fibre(const fxi_walk &w)
	{
		int in_warp = (int)(threadIdx.x % 32) / PATH::LANES;

		lane = PATH::LANES == 1 ? 0 : (int)threadIdx.x % PATH::LANES;
		active = false;
		drained = in_warp >= w.per_warp;
		s.orient(w.view, lane);
		for (int i = 0; i < 3; i++) {
			s.c[i] = 0;
			s.f[i] = 0.5f;
			s.v[i] = 0;
		}
		path.begin(lane);
	}

	/* The next half of the queue, for groups that have none. All threads of the warp come here. */
	__device__ void take(const fxi_walk &w)
	{
		bool want = !active && !drained;
		unsigned long long ticket = 0;

		if (want && lane == 0)
			ticket = atomicAdd(w.ticket, 1ull);
		ticket = __shfl_sync(FULL, ticket, 0, PATH::LANES);
		if (!want)
			return;
		if (ticket >= (unsigned long long)w.n_items) {
			drained = true;
			return;
		}
		int64_t place = (int64_t)(w.phase == 2 ? ticket >> 1 : ticket);
		way = w.phase == 2 ? (int)(ticket & 1) : w.phase;
		seed = w.order ? (int)w.order[place] : (int)place;
		set_out(w);
	}

	__device__ void set_out(const fxi_walk &w)
	{
		const fxi_track_start *from = w.starts + seed;
		int64_t half = (int64_t)seed * w.directions + way;
		bool alone = w.phase == 1 && w.halves[half - 1].n == 0; /* the seed itself was refused */

		n = steps = 0;
		length.clear();
		riemann.clear();
		here_length = here_riemann = drift = 0;
		seen = 0;
		if (!from->usable || alone) {
			if (!w.bases)
				end(w, 0);
			return;
		}
		if (w.bases && w.bases[half] < 0)
			return;
		to = w.points ? (float *)(w.points + (w.bases ? w.bases[half] : half * w.cap)) + lane * state_t::SHARE : nullptr;
		for (int i = 0; i < 3; i++) {
			s.c[i] = from->cell[i];
			s.f[i] = from->part[i];
			s.v[i] = way ? -from->v[i] : from->v[i];
			last[i] = (float)s.c[i] + s.f[i];
		}
		scale = 1;
		length_before = w.phase == 1 ? (double)w.halves[half - 1].length : 0;
		active = true;
		s.enter(w.view, lane);
		path.cell.load(w.view, s.c, path.first);
	}

	__device__ void end(const fxi_walk &w, int stop)
	{
		active = false;
		if (lane == 0) {
			fxi_track_half *h = w.halves + ((int64_t)seed * w.directions + way);

			h->n = n;
			h->stop = stop;
			h->length = here_length;
			h->riemann = here_riemann;
			h->drift = drift;
			h->seen = seen;
		}
	}

	/* The bits of all voxels that the box around the last point and this one, and a little more, meets. */
	__device__ void see(const fxi_track_view &g)
	{
		int low[3], high[3];

#pragma unroll
		for (int i = 0; i < 3; i++) {
			float x = (float)s.c[i] + s.f[i];

			low[i] = max((int)floorf(fminf(last[i], x) + (0.5f - (float)FX_TRACK_NEAR)), 0);
			high[i] = min((int)floorf(fmaxf(last[i], x) + (0.5f + (float)FX_TRACK_NEAR)), g.dims[i] - 1);
			last[i] = x;
		}
		for (int z = low[2]; z <= high[2]; z++)
			for (int y = low[1]; y <= high[1]; y++)
				for (int x = low[0]; x <= high[0]; x++)
					seen |= __ldg(g.bits + ((int64_t)z * g.dims[1] + y) * g.dims[0] + x);
	}

	/* True where the path turned by more than the angle within one voxel's length. */
	__device__ bool turned(const fxi_walk &w)
	{
		float mm[3], cosine = 0, so_far = length.sum;

		path.direction(w.view, s.v, mm);
		for (int i = 0; i < 3; i++)
			cosine += towards[i] * mm[i];
		if (steps > 0 && cosine < w.cos_angle)
			return true;
		if (steps == 0 || so_far - towards_length >= w.voxel) {
			for (int i = 0; i < 3; i++)
				towards[i] = mm[i];
			towards_length = so_far;
		}
		return false;
	}

	__device__ int refusal(const fxi_walk &w)
	{
		if (!(s.square > 0))
			return FX_TRACK_STOP_UNDEFINED;
		if (w.stop_mask) {
			int nearest = (s.f[0] >= 0.5f) | (s.f[1] >= 0.5f) << 1 | (s.f[2] >= 0.5f) << 2;

			if (!(s.corners >> nearest & 1))
				return FX_TRACK_STOP_MASK;
		}
		if (RULES) {
			if (w.stop_fa > 0 && sample(w.view, w.view.fa, s.c, s.f) < w.stop_fa)
				return FX_TRACK_STOP_FA;
			if (w.stop_md > 0 && sample(w.view, w.view.md, s.c, s.f) > w.stop_md)
				return FX_TRACK_STOP_CSF;
			if (w.cos_angle > -2 && turned(w))
				return FX_TRACK_STOP_ANGLE;
		}
		return -1;
	}

	__device__ void put_point()
	{
		float value[state_t::SHARE];

#pragma unroll
		for (int k = 0; k < state_t::SHARE; k++) {
			value[k] = s.hi[k] + (s.row[k][0] * s.f[0] + s.row[k][1] * s.f[1] + s.row[k][2] * s.f[2]);
			if (lane * state_t::SHARE + k == 3)
				value[k] = riemann.sum;
		}
		if (state_t::SHARE == 4)
			*(float4 *)to = make_float4(value[0], value[1 % state_t::SHARE], value[2 % state_t::SHARE], value[3 % state_t::SHARE]);
		else if (state_t::SHARE == 2)
			*(float2 *)to = make_float2(value[0], value[1 % state_t::SHARE]);
		else
			*to = value[0];
		to += 4;
	}

	__device__ void accept(const fxi_walk &w)
	{
		int stop = refusal(w);

		if (stop >= 0) {
			end(w, stop);
			return;
		}
		if (steps == 0)
			inverse_square = inverse(s.square);
		if (steps > 0 || way == 0) {
			if (to)
				put_point();
			if (RULES && w.view.bits)
				see(w.view);
			n++;
		}
		here_length = length.sum;
		here_riemann = riemann.sum;
		drift = fmaxf(drift, fabsf(scale * scale * s.square * inverse_square - 1));
		/* A step more than the length allows is not begun; the billionth is for lengths that are a whole number of steps. */
		if (steps == w.max_steps ||
			(RULES && w.max_length > 0 && length_before + length.value() + w.step_mm > w.max_length * (1 + 1e-9))) {
			end(w, FX_TRACK_STOP_STEPS);
			return;
		}
		steps++;
	}

	__device__ void advance(const fxi_walk &w)
	{
		step made;

		path.advance(w, s, active, &made);
		if (!active)
			return;
		bool inside = settle(w.view, s, s.f, path.cell, lane, path.first);
		length.add(made.length);
		riemann.add(made.riemann);
		scale *= made.divided;
		if (!inside)
			end(w, isnan(s.f[0] + s.f[1] + s.f[2]) ? FX_TRACK_STOP_UNDEFINED : FX_TRACK_STOP_VOLUME);
	}
};

template <class PATH, bool RULES> __global__ static void __launch_bounds__(BLOCK) walk(const fxi_walk w)
{
	fibre<PATH, RULES> f(w);

	for (;;) {
		if (__any_sync(FULL, !f.active && !f.drained))
			f.take(w);
		if (!__any_sync(FULL, f.active || !f.drained))
			return;
		/* A fibre that ends waits a step or two for the next: asking at every step costs more. */
#pragma unroll 1
		for (int i = 0; i < STEPS_A_ROUND; i++) {
			f.path.look(w.view, f.s);
			if (f.active)
				f.accept(w);
			__syncwarp();
			f.advance(w);
		}
	}
}

/* As many blocks as the GPU holds, or as few as there is work for, spread over all multiprocessors. */
template <class PATH, bool RULES> static int launch(fx_math *m, fxi_walk w)
{
	const int most = 32 / PATH::LANES, warps = BLOCK / 32;
	int held = 0, processors = fxi_queue(m)->n_processors;
	int status = fxi_cuda_check(m, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, walk<PATH, RULES>, BLOCK, 0), "tracking");

	if (status != FX_OK)
		return status;
	int64_t spread = (int64_t)processors * (w.view.textures[0] ? WARPS_OF_TEXTURES : WARPS_EACH), thin = (w.n_items + spread - 1) / spread;
	w.per_warp = (int)(thin < 1 ? 1 : thin < most ? thin : most);
	int64_t blocks = (w.n_items + (int64_t)w.per_warp * warps - 1) / ((int64_t)w.per_warp * warps);
	if (blocks > (int64_t)held * processors)
		blocks = (int64_t)held * processors;
	status = fxi_cuda_check(m, cudaMemsetAsync(w.ticket, 0, sizeof *w.ticket, fxi_stream_of(m)), "tracking");
	if (status == FX_OK)
		walk<PATH, RULES><<<(unsigned)blocks, BLOCK, 0, fxi_stream_of(m)>>>(w);
	return status == FX_OK ? fxi_cuda_launched(m, "tracking") : status;
}

} // namespace track

#endif

/* SPDX-License-Identifier: MIT */
/*
 * separable_double.cu - the separable sums in double precision on FP64 tensor cores (mma m8n8k4 from sm_80, m16n8k4 from sm_90 on; they
 * round as FMA does).
 * The form is separable.cuh's, the order of work that of the half-precision files: the adjoint makes T in registers, the forward sum holds
 * a warp's cosines and sines there. What all warps share comes through the L1 cache in the tensor cores' order.
 *
 * sm_75 has no such cores: separable.cu sends double to the direct sums there.
 */
#include "separable.cuh"

#define THREADS 128
#define WARPS (THREADS / 32)
#define TILE 32      /* pairs: 64 cosines and sines, 8 products wide, 16 products deep */
#define WIDE 8
#define DEEP 16
#define SLICE 8192   /* samples between passes over the image */
#define STAGE 32     /* samples, a lane each for the waves at the warp's first column */
#define STEPS (STAGE / 4)
#define COLUMNS 16   /* of a warp of the adjoint: two products of 8 */
#define GROUPS 8     /* of 4 columns each: a stage of the forward sum */
#define MOST_BYTES (512 << 20)

/* d[i] += a_i b, 8 x 4 times 4 x 8 twice with the same b. */
__device__ static inline void mma(double d[2][2], double a0, double a1, double b)
{
#if __CUDA_ARCH__ >= 900
	asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+d"(d[0][0]), "+d"(d[0][1]), "+d"(d[1][0]), "+d"(d[1][1]) : "d"(a0), "d"(a1), "d"(b));
#elif __CUDA_ARCH__ >= 800
	asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[0][0]), "+d"(d[0][1]) : "d"(a0), "d"(b));
	asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[1][0]), "+d"(d[1][1]) : "d"(a1), "d"(b));
#else
	(void)a0;
	(void)a1;
	(void)b;
	d[0][0] = d[0][1] = d[1][0] = d[1][1] = nan(""); /* never run: see has_double in separable.cu */
#endif
}

__device__ static inline uint64_t phase_of(const fxi_separable &s, const double *k, int64_t m, int a)
{
	uint64_t p = 0;

	if (s.n[a] > 1)
		fxi_fixed(k[3 * m + s.axis[a]], &p);
	return p;
}

/* ---- adjoint --------------------------------------------------------------------------------- */

/* {steps, tiles * WIDE, lane}: cosines and sines of 4 samples, 8 of them; {steps, 2, lane}: waves along columns. */
__global__ static void make_pairs(fxi_separable s, int64_t n, const double *k, double *pair, double2 *wave)
{
	int wide = blockIdx.y, lane = threadIdx.x % 32, column = lane / 4;
	int64_t step = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32, m = step * 4 + lane % 4;
	double2 w = {0, 0};

	if (step >= (n + STAGE - 1) / STAGE * STEPS)
		return;
	if (m < n)
		w = fxi_cis(fxi_half_step(k[3 * m + s.axis[0]]) * fxi_pair_position(s, wide * 4 + column / 2));
	pair[(step * s.n_tiles * WIDE + wide) * 32 + lane] = column % 2 ? w.y : w.x;
	if (wide > 0)
		return;
	wave[step * 64 + lane] = m < n ? fxi_cis(phase_of(s, k, m, 1) * (uint64_t)column) : w;
	wave[step * 64 + 32 + lane] = m < n ? fxi_cis(phase_of(s, k, m, 1) * 8) : w;
}

__device__ static double2 shuffle(double2 v, int lane)
{
	return make_double2(__shfl_sync(~0u, v.x, lane), __shfl_sync(~0u, v.y, lane));
}

/* 4 samples times the warp's columns and a tile of pairs. */
__device__ static void add_step(double2 base, const double2 *wave, const double *pair, double sum[2][WIDE][2][2])
{
	int lane = threadIdx.x % 32;
	double2 t0 = fxi_times(base, wave[lane]), t1 = fxi_times(t0, wave[32 + lane]);

#pragma unroll
	for (int i = 0; i < WIDE; i++) {
		double p = pair[i * 32 + lane];

		mma(sum[0][i], t0.x, t0.y, p);
		mma(sum[1][i], t1.x, t1.y, p);
	}
}

__device__ static void put_pair(const fxi_separable &s, int coil, int y, int z, int pair, const double re[2], const double im[2], double scale,
	bool add, double2 *image)
{
	for (int minus = 0; minus < (pair == 0 && !s.even ? 1 : 2); minus++) {
		double2 *at = image + coil * s.n_voxels + fxi_pair_index(s, pair, minus) * s.stride[0] + y * s.stride[1] + z * s.stride[2];
		double x = minus ? re[0] + im[1] : re[0] - im[1], v = minus ? im[0] - re[1] : im[0] + re[1];

		*at = add ? make_double2(at->x + scale * x, at->y + scale * v) : make_double2(x, v);
	}
}

/* blockIdx: WARPS lots of columns, tile of pairs, part of the samples. */
__global__ __launch_bounds__(THREADS) static void adjoint(fxi_separable s, int64_t n, const double *k, const double *pair, const double2 *wave,
	int64_t coil_step, const double2 *samples, int64_t each, double scale, double2 *image)
{
	int lane = threadIdx.x % 32, lines = (s.n[1] + COLUMNS - 1) / COLUMNS;
	int64_t lot = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32, stages = (n + STAGE - 1) / STAGE;
	int64_t first = blockIdx.z * each, end = first + each < stages ? first + each : stages;
	int y0 = (int)(lot % lines) * COLUMNS, z = (int)(lot / lines % s.n[2]), coil = (int)(lot / lines / s.n[2]);
	double sum[2][WIDE][2][2] = {};

	if (coil >= s.coils)
		return;
	for (int64_t stage = first; stage < end; stage++) {
		int64_t m = stage * STAGE + lane;
		double2 base = {0, 0};

		if (m < n) {
			uint64_t p = phase_of(s, k, m, 1) * (uint64_t)(int64_t)(y0 - s.n[1] / 2) + phase_of(s, k, m, 2) * (uint64_t)(int64_t)(z - s.n[2] / 2);

			base = fxi_times(samples[coil * coil_step + m], fxi_cis(p - (s.even ? fxi_half_step(k[3 * m + s.axis[0]]) : 0)));
		}
		for (int i = 0; i < STEPS; i++) {
			int64_t step = stage * STEPS + i;

			add_step(shuffle(base, 4 * i + lane % 4), wave + step * 64, pair + (step * s.n_tiles + blockIdx.y) * WIDE * 32, sum);
		}
	}
	if (gridDim.z > 1)
		image += blockIdx.z * s.coils * s.n_voxels;
#pragma unroll
	for (int r = 0; r < 2; r++)
#pragma unroll
		for (int i = 0; i < WIDE; i++) {
			int y = y0 + 8 * r + lane / 4, p = blockIdx.y * TILE + 4 * i + lane % 4;

			if (y < s.n[1] && p < s.pairs)
				put_pair(s, coil, y, z, p, sum[r][i][0], sum[r][i][1], scale, gridDim.z == 1, image);
		}
}

static int add_slice(fx_math *m, const fxi_separable &s, int64_t n, int parts, const double *k, int64_t coil_step, const double2 *samples,
	double scale, double *pair, double2 *part, double2 *image)
{
	int64_t stages = (n + STAGE - 1) / STAGE, steps = stages * STEPS, each = (stages + parts - 1) / parts;
	int64_t lots = (int64_t)((s.n[1] + COLUMNS - 1) / COLUMNS) * s.n[2] * s.coils;
	double2 *wave = (double2 *)(pair + steps * s.n_tiles * WIDE * 32);
	cudaStream_t stream = fxi_stream_of(m);
	int status;

	parts = (int)((stages + each - 1) / each); /* none is empty */
	make_pairs<<<dim3((unsigned)((steps + WARPS - 1) / WARPS), (unsigned)s.n_tiles * WIDE), THREADS, 0, stream>>>(s, n, k, pair, wave);
	adjoint<<<dim3((unsigned)((lots + WARPS - 1) / WARPS), (unsigned)s.n_tiles, (unsigned)parts), THREADS, 0, stream>>>(s, n, k, pair, wave,
		coil_step, samples, each, scale, parts == 1 ? image : part);
	status = fxi_cuda_launched(m, "the separable sums");
	if (status == FX_OK && parts > 1)
		status = fxi_separable_gather(m, s.coils * s.n_voxels, parts, part, scale, true, image);
	return status;
}

int fxi_separable_double_adjoint(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const double2 *samples, double scale,
	double2 *image)
{
	int64_t most = n_samples < SLICE ? (n_samples + STAGE - 1) / STAGE * STAGE : SLICE;
	int64_t lots = (int64_t)((s.n[1] + COLUMNS - 1) / COLUMNS) * s.n[2] * s.coils;
	int parts, status;

	s.tile = TILE;
	s.n_tiles = (s.pairs + TILE - 1) / TILE;
	parts = fxi_separable_parts(m, (lots + 2 * WARPS - 1) / (2 * WARPS) * s.n_tiles, most / STAGE,
		s.coils * s.n_voxels * (int64_t)sizeof(double2));
	fxi_work pair(m, most / 4 * (s.n_tiles * WIDE * 32 + 128), sizeof(double));
	fxi_work part(m, parts > 1 ? parts * s.coils * s.n_voxels : 0, sizeof(double2));
	status = pair.status() != FX_OK ? pair.status() : part.status();
	for (int64_t from = 0; from < n_samples && status == FX_OK; from += SLICE)
		status = add_slice(m, s, n_samples - from < SLICE ? n_samples - from : SLICE, parts, k + 3 * from, n_samples, samples + from, scale,
			(double *)pair.get(), (double2 *)part.get(), image);
	return status;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* {coils, tiles, planes, stages * GROUPS, DEEP, lane}: sums and differences of a pair's voxels, as separable_half_forward.cu's. */
__global__ static void make_image(fxi_separable s, int groups, const double2 *image, int64_t n, double *out)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, rest = i / (32 * DEEP);
	int lane = (int)(i % 32), column = lane / 4, imaginary = column % 2, sine = lane % 2;
	int y = (int)(rest % groups) * 4 + column / 2, z = (int)(rest / groups % s.n[2]), tile = (int)(rest / groups / s.n[2] % s.n_tiles);
	int coil = (int)(rest / groups / s.n[2] / s.n_tiles), pair = tile * TILE + (int)(i / 32 % DEEP) * 2 + lane % 4 / 2;
	double2 a = {0, 0}, b = {0, 0};

	if (i >= n)
		return;
	if (y < s.n[1] && pair < s.pairs) {
		const double2 *line = image + coil * s.n_voxels + y * s.stride[1] + z * s.stride[2];

		a = line[fxi_pair_index(s, pair, false) * s.stride[0]];
		b = pair > 0 || s.even ? line[fxi_pair_index(s, pair, true) * s.stride[0]] : sine ? a : b;
	}
	if (sine)
		out[i] = imaginary ? b.x - a.x : a.y - b.y;
	else
		out[i] = imaginary ? a.y + b.y : a.x + b.x;
}

/* A thread's samples: row g of its warp's two slabs of 8. */
struct own {
	uint64_t ky[2], kz[2], half[2];
	double2 step[2], sum[2];
	double wave[2][DEEP];
};

__device__ static void take_own(const fxi_separable &s, int64_t n, const double *k, int64_t first, own *o)
{
	for (int r = 0; r < 2; r++) {
		int64_t m = first + 8 * r + threadIdx.x % 32 / 4;
		bool there = m < n;

		o->ky[r] = there ? phase_of(s, k, m, 1) : 0;
		o->kz[r] = there ? phase_of(s, k, m, 2) : 0;
		o->half[r] = there && s.even ? fxi_half_step(k[3 * m + s.axis[0]]) : 0;
		o->step[r] = fxi_cis(0 - 4 * o->ky[r]);
		o->sum[r] = make_double2(0, 0);
	}
}

__device__ static void take_waves(const fxi_separable &s, int64_t n, const double *k, int64_t first, int tile, own *o)
{
	int t = threadIdx.x % 4;

#pragma unroll
	for (int r = 0; r < 2; r++) {
		int64_t m = first + 8 * r + threadIdx.x % 32 / 4;
		uint64_t h = m < n ? fxi_half_step(k[3 * m + s.axis[0]]) : 0;

#pragma unroll
		for (int i = 0; i < DEEP; i++) {
			double2 w = fxi_cis(h * fxi_pair_position(s, tile * TILE + 2 * i + t / 2));

			o->wave[r][i] = t % 2 ? w.y : w.x;
		}
	}
}

__device__ static void add_stage(const fxi_separable &s, const double *image, int y, int z, own *o)
{
	int lane = threadIdx.x % 32;
	double2 wave[2];

	for (int r = 0; r < 2; r++)
		wave[r] = fxi_cis(o->half[r] - o->ky[r] * (uint64_t)(int64_t)(y + lane % 4 - s.n[1] / 2) -
			o->kz[r] * (uint64_t)(int64_t)(z - s.n[2] / 2));
	for (int group = 0; group < GROUPS; group++) {
		double d[2][2] = {};

#pragma unroll
		for (int i = 0; i < DEEP; i++) {
			mma(d, o->wave[0][i], o->wave[1][i], image[(group * DEEP + i) * 32 + lane]);
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			o->sum[r].x += d[r][0] * wave[r].x - d[r][1] * wave[r].y;
			o->sum[r].y += d[r][0] * wave[r].y + d[r][1] * wave[r].x;
			wave[r] = fxi_times(wave[r], o->step[r]);
		}
	}
}

/* blockIdx: WARPS lots of 16 samples, coil, part of the image. */
__global__ __launch_bounds__(THREADS, 3) static void forward(fxi_separable s, int stages, int64_t n_stages, int64_t n, const double *k,
	const double *image, int64_t each, double scale, double2 *part, double2 *samples)
{
	int64_t first = (blockIdx.x * (int64_t)WARPS + threadIdx.x / 32) * 16, at = blockIdx.z * each;
	int64_t end = at + each < n_stages ? at + each : n_stages, per_tile = (int64_t)stages * s.n[2], coil = blockIdx.y;
	own o;

	take_own(s, n, k, first, &o);
	image += coil * n_stages * GROUPS * DEEP * 32;
	for (int64_t i = at; i < end; i++) {
		if (i == at || i % per_tile == 0)
			take_waves(s, n, k, first, (int)(i / per_tile), &o);
		add_stage(s, image + i * GROUPS * DEEP * 32, (int)(i % stages) * 4 * GROUPS, (int)(i / stages % s.n[2]), &o);
	}
	for (int r = 0; r < 2; r++) {
		int64_t m = first + 8 * r + threadIdx.x % 32 / 4;

		for (int d = 1; d < 4; d *= 2) {
			o.sum[r].x += __shfl_xor_sync(~0u, o.sum[r].x, d);
			o.sum[r].y += __shfl_xor_sync(~0u, o.sum[r].y, d);
		}
		if (threadIdx.x % 4 > 0 || m >= n)
			continue;
		if (gridDim.z == 1)
			samples[coil * n + m] = make_double2(scale * o.sum[r].x, scale * o.sum[r].y);
		else
			part[(blockIdx.z * (int64_t)gridDim.y + coil) * n + m] = o.sum[r];
	}
}

static int take_coils(fx_math *m, const fxi_separable &s, int stages, int64_t n, const double *k, const double2 *image, double scale,
	double *split, double2 *samples)
{
	int64_t n_stages = (int64_t)stages * s.n[2] * s.n_tiles, count = s.coils * n_stages * GROUPS * DEEP * 32, each;
	int64_t blocks = (n + 16 * WARPS - 1) / (16 * WARPS);
	int parts = fxi_separable_parts(m, (blocks + 1) / 2 * s.coils, n_stages, s.coils * n * (int64_t)sizeof(double2)), status;
	cudaStream_t stream = fxi_stream_of(m);

	each = (n_stages + parts - 1) / parts;
	parts = (int)((n_stages + each - 1) / each);
	fxi_work part(m, parts > 1 ? parts * s.coils * n : 0, sizeof(double2));
	if (part.status() != FX_OK)
		return part.status();
	make_image<<<(unsigned)((count + 255) / 256), 256, 0, stream>>>(s, stages * GROUPS, image, count, split);
	forward<<<dim3((unsigned)blocks, (unsigned)s.coils, (unsigned)parts), THREADS, 0, stream>>>(s, stages, n_stages, n, k, split, each,
		scale, (double2 *)part.get(), samples);
	status = fxi_cuda_launched(m, "the separable sums");
	if (status == FX_OK && parts > 1)
		status = fxi_separable_gather(m, s.coils * n, parts, (const double2 *)part.get(), scale, false, samples);
	return status;
}

int fxi_separable_double_forward(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const double2 *image, double scale,
	double2 *samples)
{
	int64_t coils = s.coils, coil_bytes, batch;
	int stages = ((s.n[1] + 3) / 4 + GROUPS - 1) / GROUPS, status;

	s.tile = TILE;
	s.n_tiles = (s.pairs + TILE - 1) / TILE;
	coil_bytes = (int64_t)stages * s.n[2] * s.n_tiles * GROUPS * DEEP * 32 * (int64_t)sizeof(double);
	batch = MOST_BYTES / coil_bytes < 1 ? 1 : MOST_BYTES / coil_bytes < coils ? MOST_BYTES / coil_bytes : coils;
	fxi_work work(m, batch, (size_t)coil_bytes);
	status = work.status();
	for (int64_t c = 0; c < coils && status == FX_OK; c += batch) {
		s.coils = coils - c < batch ? coils - c : batch;
		status = take_coils(m, s, stages, n_samples, k, image + c * s.n_voxels, scale, (double *)work.get(), samples + c * n_samples);
	}
	return status;
}

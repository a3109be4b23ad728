/* SPDX-License-Identifier: MIT */
/*
 * separable_half_adjoint.cu - image = sum_m cos/sin(2pi k_m t) T[m, c] on half-precision tensor cores, good to single precision; see
 * separable.cuh for the form and separable_half.cuh for the arithmetic.
 *
 * A warp owns 16 columns c (32 rows, real and imaginary parts apart) times a tile of up to 64 pairs (128 cosines and sines). T is made in
 * registers, as the tensor cores read it, and exists nowhere else: a wave at the warp's first column, exact, times one of eight along the
 * columns, times e^{i2pi 8ky} for the second eight. Cosines and sines are the same for all columns: a kernel of their own makes them
 * for a slice of samples, in the order in which the tensor cores read them, and they stream through shared memory.
 *
 * Tensor cores cut sums off where they should round, so that sums shrink by up to 2^-24 an addition. Every FLUSH samples (48 additions) they
 * are therefore added, rounded, to sums in shared memory. Samples are scaled by a power of two for each such chunk and coil, so
 * that none is lost among subnormal halves, however many decades k-space spans.
 *
 * sm_75 to sm_90: the same path with mma.sync; copies are asynchronous from sm_80 on; how many warps a block has, and how wide
 * a tile is, follows from the shared memory that a block may have (64 kB on sm_75).
 */
#include "separable_half.cuh"

#define SLICE 16384  /* samples between passes over the image: their factors stay in the L2 cache */
#define STAGE 64     /* samples in shared memory at once, twice */
#define STEPS (STAGE / 16)
#define FLUSH 256
#define MOST_WARPS 8
#define COLUMNS 16   /* of a warp */
#define WAVES 144    /* along columns, of 16 samples: eight of each, and the step of eight */

/* What the kernel reads, for a slice of samples. */
struct factors {
	int n_samples, n_chunks; /* of FLUSH */
	const uint4 *pair;       /* {steps, tiles, lane}: two terms of cosines and sines */
	const float2 *wave;      /* {steps, WAVES} */
	const uint32_t *phase;   /* {3, padded}: of half a voxel of the longest axis, of a voxel of the others */
	const int *exponent;     /* {chunks, coils} */
	const float2 *samples;   /* of the first coil */
	int64_t coil_step;       /* samples of all slices */
};

/* A warp's columns: 16 of one line of one coil. */
struct columns {
	int y, z, coil;
	bool there;
};

__device__ static columns columns_of(const fxi_separable &s, int64_t i)
{
	int lines = (s.n[1] + COLUMNS - 1) / COLUMNS;
	columns c;

	c.y = (int)(i % lines) * COLUMNS;
	c.z = (int)(i / lines % s.n[2]);
	c.there = i / lines / s.n[2] < s.coils;
	c.coil = c.there ? (int)(i / lines / s.n[2]) : 0;
	return c;
}

/* Phases, waves along columns, cosines and sines. A thread makes one lane's share of one 8-wide tile of one step. */
__global__ static void make_factors(fxi_separable s, int n, int tiles, const double *k, uint4 *pair, float2 *wave, uint32_t *phase)
{
	int tile = blockIdx.y, lane = threadIdx.x % 32, step = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
	int column = lane / 4, p = tile * 4 + column / 2;
	float v[4];
	uint4 out;

	if (step >= (n + STAGE - 1) / STAGE * STEPS)
		return;
	for (int i = 0; i < 4; i++) {
		int m = step * 16 + lane % 4 * 2 + (i & 1) + (i & 2) * 4;
		float2 w = m < n ? fxi_cis((uint32_t)(fxi_half_step(k[3 * m + s.axis[0]]) * fxi_pair_position(s, p) >> 32)) : float2();

		v[i] = column % 2 ? w.y : w.x;
	}
	fxi_split(v[0], v[1], &out.x, &out.z);
	fxi_split(v[2], v[3], &out.y, &out.w);
	pair[((int64_t)step * tiles + tile) * 32 + lane] = out;
	if (tile > 0)
		return;
	for (int i = lane; i < WAVES; i += 32) {
		int m = step * 16 + (i < 128 ? i % 8 + i / 64 * 8 : i - 128);
		uint32_t ky = 0;

		if (m < n && s.n[1] > 1)
			fxi_fixed(k[3 * m + s.axis[1]], &ky);
		wave[(int64_t)step * WAVES + i] = fxi_cis(ky * (uint32_t)(i < 128 ? i / 8 % 8 : 8));
	}
	if (lane < 16) {
		int m = step * 16 + lane, padded = (n + STAGE - 1) / STAGE * STAGE;
		uint32_t at[3] = {0, 0, 0};

		if (m < n) {
			at[0] = s.even ? (uint32_t)(fxi_half_step(k[3 * m + s.axis[0]]) >> 32) : 0;
			for (int a = 1; a < 3; a++)
				if (s.n[a] > 1)
					fxi_fixed(k[3 * m + s.axis[a]], &at[a]);
		}
		for (int a = 0; a < 3; a++)
			phase[a * padded + m] = at[a];
	}
}

/* The exponent of each chunk of FLUSH samples of each coil: a warp each. */
__global__ static void find_exponents(int n, int n_chunks, int64_t coil_step, const float2 *samples, int *exponent)
{
	int chunk = blockIdx.x, coil = blockIdx.y, end = min(n, (chunk + 1) * FLUSH);
	float most = 0;

	for (int m = chunk * FLUSH + threadIdx.x; m < end; m += 32) {
		float2 v = samples[coil * coil_step + m];

		most = fmaxf(most, fmaxf(fabsf(v.x), fabsf(v.y)));
	}
	for (int d = 16; d > 0; d /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	if (threadIdx.x == 0)
		exponent[coil * n_chunks + chunk] = fxi_half_exponent(most);
}

/* Shared memory of a stage. */
template <int NT> struct stage {
	uint4 pair[STEPS][NT * 32];
	float2 wave[STEPS][WAVES];
	float2 base[MOST_WARPS][STAGE]; /* a warp's own: samples times waves at its first column */
};

template <int NT> __device__ static void fetch(const factors &f, int tiles, int tile, int at, stage<NT> *to)
{
	const uint4 *wave = (const uint4 *)(f.wave + (int64_t)at * STEPS * WAVES);

	for (int i = threadIdx.x; i < STEPS * NT * 32; i += blockDim.x)
		fxi_fetch16(&to->pair[i / (NT * 32)][i % (NT * 32)],
			f.pair + ((int64_t)(at * STEPS + i / (NT * 32)) * tiles + tile * NT) * 32 + i % (NT * 32));
	for (int i = threadIdx.x; i < STEPS * WAVES / 2; i += blockDim.x)
		fxi_fetch16((uint4 *)to->wave + i, wave + i);
	fxi_fetch_commit();
}

/* Samples of a stage times e^{i2pi(ky y + kz z - kx/2)} at the warp's first column. */
__device__ static void make_base(const fxi_separable &s, const factors &f, const columns &c, int at, float2 *base)
{
	int padded = (f.n_samples + STAGE - 1) / STAGE * STAGE;
	float scale = fxi_power_of_two(f.exponent[c.coil * f.n_chunks + at * STAGE / FLUSH]);

	for (int i = threadIdx.x % 32; i < STAGE; i += 32) {
		int m = at * STAGE + i;
		uint32_t p = f.phase[padded + m] * (uint32_t)(c.y - s.n[1] / 2) + f.phase[2 * padded + m] * (uint32_t)(c.z - s.n[2] / 2) -
			f.phase[m];
		float2 v = m < f.n_samples ? f.samples[c.coil * f.coil_step + m] : float2();

		base[i] = fxi_times(fxi_cis(p), make_float2(v.x * scale, v.y * scale));
	}
}

/* T of 16 samples and the warp's 16 columns as two terms, in the tensor cores' order. */
__device__ static void make_t(const float2 *base, const float2 *wave, uint32_t hi[2][4], uint32_t lo[2][4])
{
	int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

	for (int i = 0; i < 2; i++) {
		float4 b = *(const float4 *)(base + 8 * i + 2 * t), w = *(const float4 *)(wave + (i * 8 + g) * 8 + 2 * t);
		float4 q = *(const float4 *)(wave + 128 + 8 * i + 2 * t);
		float2 r0 = fxi_times(make_float2(b.x, b.y), make_float2(w.x, w.y)), r1 = fxi_times(make_float2(b.z, b.w), make_float2(w.z, w.w));

		fxi_split(r0.x, r1.x, &hi[0][2 * i], &lo[0][2 * i]);
		fxi_split(r0.y, r1.y, &hi[0][2 * i + 1], &lo[0][2 * i + 1]);
		r0 = fxi_times(r0, make_float2(q.x, q.y));
		r1 = fxi_times(r1, make_float2(q.z, q.w));
		fxi_split(r0.x, r1.x, &hi[1][2 * i], &lo[1][2 * i]);
		fxi_split(r0.y, r1.y, &hi[1][2 * i + 1], &lo[1][2 * i + 1]);
	}
}

/* 16 samples: four independent sums at a time, since one product waits for the one before. */
template <int NT> __device__ static void add_step(const float2 *base, const float2 *wave, const uint4 *pair, float sum[2][NT][4])
{
	uint32_t hi[2][4], lo[2][4];

	make_t(base, wave, hi, lo);
#pragma unroll
	for (int n = 0; n < NT; n += 2) {
		uint4 p0 = pair[n * 32 + threadIdx.x % 32], p1 = pair[(n + 1) * 32 + threadIdx.x % 32];

#pragma unroll
		for (int r = 0; r < 2; r++) {
			fxi_mma(sum[r][n], hi[r], p0.z, p0.w);
			fxi_mma(sum[r][n + 1], hi[r], p1.z, p1.w);
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			fxi_mma(sum[r][n], lo[r], p0.x, p0.y);
			fxi_mma(sum[r][n + 1], lo[r], p1.x, p1.y);
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			fxi_mma(sum[r][n], hi[r], p0.x, p0.y);
			fxi_mma(sum[r][n + 1], hi[r], p1.x, p1.y);
		}
	}
}

template <int NT> __device__ static void flush(float sum[2][NT][4], float4 *total, float scale, bool first)
{
#pragma unroll
	for (int r = 0; r < 2; r++)
#pragma unroll
		for (int n = 0; n < NT; n++) {
			float4 *at = total + (r * NT + n) * 32 + threadIdx.x % 32, old = first ? float4() : *at;
			float *v = sum[r][n];

			*at = make_float4(old.x + scale * v[0], old.y + scale * v[1], old.z + scale * v[2], old.w + scale * v[3]);
			v[0] = v[1] = v[2] = v[3] = 0;
		}
}

/* C +- iS of the warp's columns to the image, or to one part of it. */
template <int NT> __device__ static void put(const fxi_separable &s, const columns &c, int tile, const float4 *total, double scale,
	bool add, float2 *image)
{
	int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

	for (int r = 0; r < 2; r++)
		for (int n = 0; n < NT; n++) {
			float4 v = total[(r * NT + n) * 32 + threadIdx.x % 32]; /* Re C, Re S, Im C, Im S */
			int y = c.y + 8 * r + g, pair = tile * s.tile + 4 * n + t;

			if (y >= s.n[1] || pair >= s.pairs)
				continue;
			for (int minus = 0; minus < (pair == 0 && !s.even ? 1 : 2); minus++) {
				float2 *at = image + c.coil * s.n_voxels + fxi_pair_index(s, pair, minus) * s.stride[0] + y * s.stride[1] +
					c.z * s.stride[2];
				float re = minus ? v.x + v.w : v.x - v.w, im = minus ? v.z - v.y : v.z + v.y;

				*at = add ? make_float2((float)(at->x + scale * re), (float)(at->y + scale * im)) : make_float2(re, im);
			}
		}
}

/* blockIdx: a block's columns, tile of pairs, part of the samples. */
template <int NT> __global__ __launch_bounds__(32 * MOST_WARPS, 1) static void adjoint(fxi_separable s, factors f, int chunks_each,
	double scale, float2 *image)
{
	extern __shared__ uint4 memory[];
	stage<NT> *stages = (stage<NT> *)memory;
	int warp = threadIdx.x / 32, tiles = s.n_tiles * NT, first = blockIdx.z * chunks_each * (FLUSH / STAGE);
	int end = min(first + chunks_each * (FLUSH / STAGE), (f.n_samples + STAGE - 1) / STAGE);
	float4 *total = (float4 *)(stages + 2) + warp * 2 * NT * 32;
	columns c = columns_of(s, blockIdx.x * (int64_t)(blockDim.x / 32) + warp);
	float sum[2][NT][4] = {};

	if (first < end)
		fetch<NT>(f, tiles, blockIdx.y, first, stages);
	for (int at = first; at < end; at++) {
		stage<NT> *now = stages + (at - first) % 2, *next = stages + (at - first + 1) % 2;

		if (at + 1 < end)
			fetch<NT>(f, tiles, blockIdx.y, at + 1, next);
		else
			fxi_fetch_commit();
		make_base(s, f, c, at, now->base[warp]);
		fxi_fetch_wait<1>();
		__syncthreads();
		for (int step = 0; step < STEPS; step++)
			add_step<NT>(now->base[warp] + 16 * step, now->wave[step], now->pair[step], sum);
		if ((at + 1) % (FLUSH / STAGE) == 0 || at + 1 == end)
			flush<NT>(sum, total, fxi_power_of_two(-f.exponent[c.coil * f.n_chunks + at * STAGE / FLUSH]), at - first < FLUSH / STAGE);
		__syncthreads();
	}
	if (c.there && first < end)
		put<NT>(s, c, blockIdx.y, total, scale, gridDim.z == 1, image + (gridDim.z == 1 ? 0 : blockIdx.z * s.coils * s.n_voxels));
}

/* What one call works with. */
struct job {
	fxi_separable s;
	int64_t n_samples, columns;
	const double *k;
	const float2 *samples;
	double scale;
	float2 *image;
	int warps, parts;
	size_t shared;
};

template <int NT> static size_t shared_bytes(int warps)
{
	return 2 * sizeof(stage<NT>) + (size_t)warps * 2 * NT * 32 * sizeof(float4);
}

static unsigned blocks_of(const job &j)
{
	return (unsigned)((j.columns + j.warps - 1) / j.warps);
}

/* One slice of samples: its factors, and the product. */
template <int NT> static int add_slice(fx_math *m, const job &j, int64_t from, char *work, float2 *part)
{
	int n = (int)(j.n_samples - from < SLICE ? j.n_samples - from : SLICE), tiles = j.s.n_tiles * NT;
	int steps = (n + STAGE - 1) / STAGE * STEPS, chunks = (n + FLUSH - 1) / FLUSH, parts = j.parts < chunks ? j.parts : chunks;
	uint4 *pair = (uint4 *)work;
	float2 *wave = (float2 *)(pair + (int64_t)steps * tiles * 32);
	uint32_t *phase = (uint32_t *)(wave + (int64_t)steps * WAVES);
	int *exponent = (int *)(phase + 3 * steps * 16), each = (chunks + parts - 1) / parts;
	factors f = {n, chunks, pair, wave, phase, exponent, j.samples + from, j.n_samples};
	cudaStream_t stream = fxi_stream_of(m);
	int status;

	parts = (chunks + each - 1) / each; /* none is empty */
	make_factors<<<dim3((unsigned)(steps + 3) / 4, (unsigned)tiles), 128, 0, stream>>>(j.s, n, tiles, j.k + 3 * from, pair, wave, phase);
	find_exponents<<<dim3((unsigned)chunks, (unsigned)j.s.coils), 32, 0, stream>>>(n, chunks, j.n_samples, f.samples, exponent);
	adjoint<NT><<<dim3(blocks_of(j), (unsigned)j.s.n_tiles, (unsigned)parts), 32 * j.warps, j.shared, stream>>>(j.s, f, each, j.scale,
		parts == 1 ? j.image : part);
	status = fxi_cuda_launched(m, "the separable sums");
	if (status == FX_OK && parts > 1)
		status = fxi_separable_gather(m, j.s.coils * j.s.n_voxels, parts, part, j.scale, true, j.image);
	return status;
}

template <int NT> static int add_all(fx_math *m, job &j)
{
	int64_t n = j.n_samples < SLICE ? (j.n_samples + STAGE - 1) / STAGE * STAGE : SLICE;
	int64_t bytes = n / 16 * (j.s.n_tiles * NT * 512 + WAVES * 8 + 16 * 12) + (n / FLUSH + 1) * j.s.coils * (int64_t)sizeof(int);
	int status;

	j.warps = MOST_WARPS;
	while (j.warps > 1 && shared_bytes<NT>(j.warps) > fxi_queue(m)->shared_limit)
		j.warps /= 2;
	j.shared = shared_bytes<NT>(j.warps);
	status = fxi_cuda_check(m, cudaFuncSetAttribute(adjoint<NT>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)j.shared),
		"the separable sums");
	if (status != FX_OK)
		return status;
	j.parts = fxi_separable_parts(m, (int64_t)blocks_of(j) * j.s.n_tiles, (n + FLUSH - 1) / FLUSH,
		j.s.coils * j.s.n_voxels * (int64_t)sizeof(float2));
	fxi_work work(m, bytes, 1), part(m, j.parts > 1 ? j.parts * j.s.coils * j.s.n_voxels : 0, sizeof(float2));
	status = work.status() != FX_OK ? work.status() : part.status();
	for (int64_t from = 0; from < j.n_samples && status == FX_OK; from += SLICE)
		status = add_slice<NT>(m, j, from, (char *)work.get(), (float2 *)part.get());
	return status;
}

int fxi_separable_half_adjoint(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const float2 *samples, double scale,
	float2 *image)
{
	job j = {s, n_samples, 0, k, samples, scale, image, 0, 0, 0};
	int widest = shared_bytes<16>(4) <= fxi_queue(m)->shared_limit ? 16 : 8, nt;

	j.columns = (int64_t)((s.n[1] + COLUMNS - 1) / COLUMNS) * s.n[2] * s.coils;
	j.s.n_tiles = (s.pairs + 4 * widest - 1) / (4 * widest);
	nt = ((s.pairs + j.s.n_tiles - 1) / j.s.n_tiles + 15) / 16 * 4;
	j.s.tile = 4 * nt;
	switch (nt) {
	case 4:
		return add_all<4>(m, j);
	case 8:
		return add_all<8>(m, j);
	case 12:
		return add_all<12>(m, j);
	default:
		return add_all<16>(m, j);
	}
}

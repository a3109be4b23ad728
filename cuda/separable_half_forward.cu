/* SPDX-License-Identifier: MIT */
/*
 * separable_half_forward.cu - samples = sum_c conj(T[m, c]) sum_t (cos P[t, c] - i sin Q[t, c]) on half-precision tensor cores, good to
 * single precision: the adjoint's form (separable.cuh) the other way round, with P and Q the sums and differences of voxels either side
 * of the middle.
 *
 * A warp owns 32 samples and holds their cosines and sines for a tile of up to 64 pairs in registers. The image, split into two terms and
 * scaled by a power of two for each plane, streams through shared memory, the same for all warps; each sum along the longest axis
 * (at most 8 times 2 additions on the tensor cores, which cut off where they should round) is multiplied by the wave of its column,
 * taken exactly for every STAGE columns and turned from there, and added up in single, sums of a stage in double.
 *
 * sm_75 to sm_90: the same path with mma.sync; copies are asynchronous from sm_80 on.
 */
#include "separable_half.cuh"

#define WARPS 8
#define OWN 32       /* samples of a warp */
#define GROUP 4      /* columns of a product: real and imaginary parts are 8 */
#define GROUPS 8     /* of a stage: in shared memory at once, twice */
#define MOST_BYTES (512 << 20) /* of the split image: more coils go one after the other */

/* How the image is cut: blocks of GROUPS groups along a line of columns, lines, tiles of pairs. */
struct plan {
	int groups, stages;      /* of a line */
	int64_t n_stages;        /* of all lines and tiles */
};

/* The exponent of every plane of every coil. */
__global__ static void find_exponents(fxi_separable s, const float2 *image, int *exponent)
{
	__shared__ float warp_most[32];
	const float2 *from = image + blockIdx.y * s.n_voxels + blockIdx.x * s.stride[2];
	float most = 0;

	for (int64_t i = threadIdx.x; i < (int64_t)s.n[0] * s.n[1]; i += blockDim.x) {
		float2 v = from[i % s.n[0] * s.stride[0] + i / s.n[0] * s.stride[1]];

		most = fmaxf(most, fmaxf(fabsf(v.x), fabsf(v.y)));
	}
	for (int d = 16; d > 0; d /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	if (threadIdx.x % 32 == 0)
		warp_most[threadIdx.x / 32] = most;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (unsigned i = 1; i < blockDim.x / 32; i++)
		most = fmaxf(most, warp_most[i]);
	/* sums and differences are up to twice as large */
	exponent[blockIdx.y * s.n[2] + blockIdx.x] = fxi_half_exponent(2 * most);
}

/* Sum or difference of a pair's voxels as the right factor: rows cos and sin, columns real and imaginary part. */
__device__ static float element(const fxi_separable &s, const float2 *line, int pair, int sine, int imaginary)
{
	float2 a = {0, 0}, b = {0, 0};

	if (pair >= s.pairs)
		return 0;
	a = line[fxi_pair_index(s, pair, false) * s.stride[0]];
	if (pair > 0 || s.even)
		b = line[fxi_pair_index(s, pair, true) * s.stride[0]];
	else if (sine)
		return 0;
	if (sine)
		return imaginary ? b.x - a.x : a.y - b.y; /* of -iQ */
	return imaginary ? a.y + b.y : a.x + b.x;
}

/* {coils, tiles, planes, stages * GROUPS, steps, lane}: a thread makes one lane's share of one step. */
template <int KS> __global__ static void make_factors(fxi_separable s, plan p, const float2 *image, const int *exponent, int64_t n, uint4 *out)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, rest = i / (32 * KS);
	int lane = (int)(i % 32), step = (int)(i / 32 % KS), column = lane / 4, t = lane % 4, groups = p.stages * GROUPS;
	int y = (int)(rest % groups) * GROUP + column / 2, z = (int)(rest / groups % s.n[2]);
	int tile = (int)(rest / groups / s.n[2] % s.n_tiles), coil = (int)(rest / groups / s.n[2] / s.n_tiles);
	float v[4] = {0, 0, 0, 0}, scale;
	uint4 made;

	if (i >= n)
		return;
	scale = fxi_power_of_two(exponent[coil * s.n[2] + z]);
	if (y < s.n[1])
		for (int j = 0; j < 4; j++)
			v[j] = scale * element(s, image + coil * s.n_voxels + y * s.stride[1] + z * s.stride[2],
				tile * s.tile + 8 * step + t + j / 2 * 4, j % 2, column % 2);
	fxi_split(v[0], v[1], &made.x, &made.z);
	fxi_split(v[2], v[3], &made.y, &made.w);
	out[i] = made;
}

/* A thread's four samples: rows g and g + 8 of its warp's two slabs. */
struct own {
	uint32_t ky[4], kz[4], half[4];
	float2 step[4];
	double re[4], im[4];
};

__device__ static void take_own(const fxi_separable &s, int64_t n_samples, const double *k, int64_t first, own *o)
{
	for (int r = 0; r < 4; r++) {
		int64_t m = first + threadIdx.x % 32 / 4 + 8 * r;

		o->ky[r] = o->kz[r] = o->half[r] = 0;
		o->re[r] = o->im[r] = 0;
		if (m < n_samples) {
			if (s.n[1] > 1)
				fxi_fixed(k[3 * m + s.axis[1]], &o->ky[r]);
			if (s.n[2] > 1)
				fxi_fixed(k[3 * m + s.axis[2]], &o->kz[r]);
			if (s.even)
				o->half[r] = (uint32_t)(fxi_half_step(k[3 * m + s.axis[0]]) >> 32);
		}
		o->step[r] = fxi_cis(0u - (uint32_t)GROUP * o->ky[r]);
	}
}

/* Cosines and sines of the warp's samples in a tile of pairs, as two terms each. */
template <int KS> __device__ static void take_waves(const fxi_separable &s, int64_t n_samples, const double *k, int64_t first, int tile,
	uint32_t hi[2][KS][4], uint32_t lo[2][KS][4])
{
#pragma unroll
	for (int r = 0; r < 4; r++) {
		int64_t m = first + threadIdx.x % 32 / 4 + 8 * r;
		uint64_t h = m < n_samples ? fxi_half_step(k[3 * m + s.axis[0]]) : 0;

#pragma unroll
		for (int step = 0; step < KS; step++)
#pragma unroll
			for (int i = 0; i < 2; i++) {
				float2 w = fxi_cis((uint32_t)(h * fxi_pair_position(s, tile * s.tile + 8 * step + 4 * i + threadIdx.x % 4) >> 32));

				fxi_split(w.x, w.y, &hi[r / 2][step][2 * i + r % 2], &lo[r / 2][step][2 * i + r % 2]);
			}
	}
}

template <int KS> __device__ static void fetch(const uint4 *from, uint4 *to)
{
	for (int i = threadIdx.x; i < GROUPS * KS * 32; i += WARPS * 32)
		fxi_fetch16(to + i, from + i);
	fxi_fetch_commit();
}

/* A stage: products along the longest axis, times the waves of their columns. */
template <int KS> __device__ static void add_stage(const fxi_separable &s, const uint4 *image, int y, int z, float scale,
	const uint32_t hi[2][KS][4], const uint32_t lo[2][KS][4], own *o)
{
	float2 wave[4], sum[4] = {};

	for (int r = 0; r < 4; r++)
		wave[r] = fxi_cis(o->half[r] - o->ky[r] * (uint32_t)(y + (int)(threadIdx.x % 4) - s.n[1] / 2) -
			o->kz[r] * (uint32_t)(z - s.n[2] / 2));
	for (int group = 0; group < GROUPS; group++) {
		float large[2][4] = {}, small[2][4] = {};

#pragma unroll
		for (int step = 0; step < KS; step++) {
			uint4 p = image[(group * KS + step) * 32 + threadIdx.x % 32];

			fxi_mma(large[0], hi[0][step], p.x, p.y);
			fxi_mma(large[1], hi[1][step], p.x, p.y);
			fxi_mma(small[0], hi[0][step], p.z, p.w);
			fxi_mma(small[1], hi[1][step], p.z, p.w);
			fxi_mma(small[0], lo[0][step], p.x, p.y);
			fxi_mma(small[1], lo[1][step], p.x, p.y);
		}
#pragma unroll
		for (int r = 0; r < 4; r++) {
			float2 v = make_float2(large[r / 2][r % 2 * 2] + small[r / 2][r % 2 * 2],
				large[r / 2][r % 2 * 2 + 1] + small[r / 2][r % 2 * 2 + 1]);

			sum[r].x += v.x * wave[r].x - v.y * wave[r].y;
			sum[r].y += v.x * wave[r].y + v.y * wave[r].x;
			wave[r] = fxi_times(wave[r], o->step[r]);
		}
	}
	for (int r = 0; r < 4; r++) {
		o->re[r] += (double)(scale * sum[r].x);
		o->im[r] += (double)(scale * sum[r].y);
	}
}

/* The four lanes of a row have every fourth column each. */
__device__ static void put(const own &o, int64_t first, int64_t n_samples, double scale, bool whole, double2 *part, float2 *samples)
{
	for (int r = 0; r < 4; r++) {
		int64_t m = first + threadIdx.x % 32 / 4 + 8 * r;
		double re = o.re[r], im = o.im[r];

		for (int d = 1; d < 4; d *= 2) {
			re += __shfl_xor_sync(~0u, re, d);
			im += __shfl_xor_sync(~0u, im, d);
		}
		if (threadIdx.x % 4 > 0 || m >= n_samples)
			continue;
		if (whole)
			samples[m] = make_float2((float)(scale * re), (float)(scale * im));
		else
			part[m] = make_double2(re, im);
	}
}

/* blockIdx: WARPS * OWN samples, coil, part of the image. */
template <int KS> __global__ __launch_bounds__(32 * WARPS, 1) static void forward(fxi_separable s, plan p, int64_t n_samples, const double *k,
	const uint4 *image, const int *exponent, int64_t each, double scale, double2 *part, float2 *samples)
{
	extern __shared__ uint4 memory[];
	const int size = GROUPS * KS * 32;
	int64_t first = (blockIdx.x * (int64_t)WARPS + threadIdx.x / 32) * OWN, coil = blockIdx.y;
	int64_t at = blockIdx.z * each, end = at + each < p.n_stages ? at + each : p.n_stages, per_tile = (int64_t)p.stages * s.n[2];
	uint32_t hi[2][KS][4], lo[2][KS][4];
	const uint4 *from = image + coil * p.n_stages * size;
	own o;

	take_own(s, n_samples, k, first, &o);
	fetch<KS>(from + at * size, memory);
	for (int64_t i = at; i < end; i++) {
		int z = (int)(i / p.stages % s.n[2]), y = (int)(i % p.stages) * GROUP * GROUPS;

		if (i + 1 < end)
			fetch<KS>(from + (i + 1) * size, memory + (i + 1 - at) % 2 * size);
		else
			fxi_fetch_commit();
		if (i == at || i % per_tile == 0)
			take_waves<KS>(s, n_samples, k, first, (int)(i / per_tile), hi, lo);
		fxi_fetch_wait<1>();
		__syncthreads();
		add_stage<KS>(s, memory + (i - at) % 2 * size, y, z, fxi_power_of_two(-exponent[coil * s.n[2] + z]), hi, lo, &o);
		__syncthreads();
	}
	part += (blockIdx.z * (int64_t)gridDim.y + coil) * n_samples;
	put(o, first, n_samples, scale, gridDim.z == 1, part, samples + coil * n_samples);
}

/* Coils [0, s.coils) of the pointers given. */
template <int KS> static int take_coils(fx_math *m, const fxi_separable &s, const plan &p, int64_t n_samples, const double *k, const float2 *image,
	double scale, void *work, float2 *samples)
{
	int64_t n = s.coils * p.n_stages * GROUPS * KS * 32, blocks = (n_samples + WARPS * OWN - 1) / (WARPS * OWN), each;
	int parts = fxi_separable_parts(m, blocks * s.coils, p.n_stages, s.coils * n_samples * (int64_t)sizeof(double2)), status;
	uint4 *split = (uint4 *)work;
	int *exponent = (int *)(split + n);
	size_t shared = 2 * GROUPS * KS * 32 * sizeof(uint4);
	cudaStream_t stream = fxi_stream_of(m);

	each = (p.n_stages + parts - 1) / parts;
	parts = (int)((p.n_stages + each - 1) / each);
	fxi_work part(m, parts > 1 ? parts * s.coils * n_samples : 0, sizeof(double2));
	if (part.status() != FX_OK)
		return part.status();
	status = fxi_cuda_check(m, cudaFuncSetAttribute(forward<KS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
		"the separable sums");
	if (status != FX_OK)
		return status;
	find_exponents<<<dim3((unsigned)s.n[2], (unsigned)s.coils), 256, 0, stream>>>(s, image, exponent);
	make_factors<KS><<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(s, p, image, exponent, n, split);
	forward<KS><<<dim3((unsigned)blocks, (unsigned)s.coils, (unsigned)parts), 32 * WARPS, shared, stream>>>(s, p, n_samples, k, split,
		exponent, each, scale, (double2 *)part.get(), samples);
	status = fxi_cuda_launched(m, "the separable sums");
	if (status == FX_OK && parts > 1)
		status = fxi_separable_gather(m, s.coils * n_samples, parts, (const double2 *)part.get(), scale, false, samples);
	return status;
}

template <int KS> static int take_all(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const float2 *image, double scale,
	float2 *samples)
{
	plan p;
	int64_t coils = s.coils, coil_bytes, batch;
	int status = FX_OK;

	p.groups = (s.n[1] + GROUP - 1) / GROUP;
	p.stages = (p.groups + GROUPS - 1) / GROUPS;
	p.n_stages = (int64_t)p.stages * s.n[2] * s.n_tiles;
	coil_bytes = p.n_stages * GROUPS * KS * 512 + s.n[2] * (int64_t)sizeof(int);
	batch = MOST_BYTES / coil_bytes < 1 ? 1 : MOST_BYTES / coil_bytes < coils ? MOST_BYTES / coil_bytes : coils;
	fxi_work work(m, batch, (size_t)coil_bytes);
	status = work.status();
	for (int64_t c = 0; c < coils && status == FX_OK; c += batch) {
		s.coils = coils - c < batch ? coils - c : batch;
		status = take_coils<KS>(m, s, p, n_samples, k, image + c * s.n_voxels, scale, work.get(), samples + c * n_samples);
	}
	return status;
}

int fxi_separable_half_forward(fx_math *m, fxi_separable s, int64_t n_samples, const double *k, const float2 *image, double scale,
	float2 *samples)
{
	/* two stages of 64 pairs take 64 kB of shared memory, of 48 pairs 48 kB */
	int widest = fxi_queue(m)->shared_limit >= 2 * GROUPS * 8 * 512 ? 8 : 6, ks;

	s.n_tiles = (s.pairs + 8 * widest - 1) / (8 * widest);
	ks = ((s.pairs + s.n_tiles - 1) / s.n_tiles + 15) / 16 * 2;
	s.tile = 8 * ks;
	switch (ks) {
	case 2:
		return take_all<2>(m, s, n_samples, k, image, scale, samples);
	case 4:
		return take_all<4>(m, s, n_samples, k, image, scale, samples);
	case 6:
		return take_all<6>(m, s, n_samples, k, image, scale, samples);
	default:
		return take_all<8>(m, s, n_samples, k, image, scale, samples);
	}
}

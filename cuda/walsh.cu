/* SPDX-License-Identifier: MIT */
/*
 * walsh.cu - coil maps as dominant eigenvectors of local covariances (Walsh, Gmitro, Marcellin 2000).
 *
 * A power iteration needs R v and not R: R v = sum over the block of I (I^H v), so no c x c matrix exists. A warp has a
 * voxel; its lanes hold the coils, in turns of 32, and each step walks through the block once. Sums have a fixed order.
 */
#include "cuda.cuh"

#include <cmath>

#define WARPS 8
#define TURNS 4 /* up to 128 coils */

struct volume {
	int64_t dims[3], n;
	int n_coils, radius, n_iterations, reference;
	float scale;
};

__device__ static float2 sum_warp(float2 v)
{
	for (int offset = 16; offset > 0; offset /= 2) {
		v.x += __shfl_xor_sync(0xffffffffu, v.x, offset);
		v.y += __shfl_xor_sync(0xffffffffu, v.y, offset);
	}
	return v;
}

/* out = sum over the block around `at` of I (I^H v); also the diagonal of R where wanted. */
__device__ static void multiply(const volume &w, const float2 *coils, const int64_t at[3], const float2 *v, float2 *out,
	float *diagonal)
{
	int lane = threadIdx.x % 32;

	for (int t = 0; t < TURNS; t++)
		out[t] = make_float2(0, 0);
	for (int64_t z = max(at[2] - w.radius, (int64_t)0); z <= min(at[2] + w.radius, w.dims[2] - 1); z++)
		for (int64_t y = max(at[1] - w.radius, (int64_t)0); y <= min(at[1] + w.radius, w.dims[1] - 1); y++)
			for (int64_t x = max(at[0] - w.radius, (int64_t)0); x <= min(at[0] + w.radius, w.dims[0] - 1); x++) {
				const float2 *from = coils + (z * w.dims[1] + y) * w.dims[0] + x;
				float2 own[TURNS], product = {0, 0};

				for (int t = 0; t < TURNS; t++) {
					int c = lane + 32 * t;

					own[t] = c < w.n_coils ? from[c * w.n] : make_float2(0, 0);
					own[t].x *= w.scale;
					own[t].y *= w.scale;
					if (diagonal)
						diagonal[t] += own[t].x * own[t].x + own[t].y * own[t].y;
					else {
						product.x += own[t].x * v[t].x + own[t].y * v[t].y;
						product.y += own[t].x * v[t].y - own[t].y * v[t].x;
					}
				}
				if (diagonal)
					continue;
				product = sum_warp(product);
				for (int t = 0; t < TURNS; t++) {
					out[t].x += own[t].x * product.x - own[t].y * product.y;
					out[t].y += own[t].x * product.y + own[t].y * product.x;
				}
			}
}

/* Norm 1; a vector of 0 stays 0. */
__device__ static void normalise(float2 *v)
{
	float2 norm = {0, 0};
	float factor;

	for (int t = 0; t < TURNS; t++)
		norm.x += v[t].x * v[t].x + v[t].y * v[t].y;
	norm = sum_warp(norm);
	factor = norm.x > 0 ? rsqrtf(norm.x) : 0;
	for (int t = 0; t < TURNS; t++) {
		v[t].x *= factor;
		v[t].y *= factor;
	}
}

/* The coil with the largest power in the block, the first of several: where the iteration starts from, as on the host. */
__device__ static int strongest(const float *diagonal, float *power)
{
	int lane = threadIdx.x % 32, best = lane;

	*power = diagonal[0];
	for (int t = 1; t < TURNS; t++)
		if (diagonal[t] > *power) {
			*power = diagonal[t];
			best = lane + 32 * t;
		}
	for (int offset = 16; offset > 0; offset /= 2) {
		float other = __shfl_xor_sync(0xffffffffu, *power, offset);
		int coil = __shfl_xor_sync(0xffffffffu, best, offset);

		if (other > *power || (other == *power && coil < best)) {
			*power = other;
			best = coil;
		}
	}
	return best;
}

__global__ static void solve(volume w, const float2 *coils, float2 *maps)
{
	int64_t i = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32;
	int lane = threadIdx.x % 32, best;
	float2 v[TURNS], next[TURNS], reference;
	float diagonal[TURNS] = {0}, power;

	if (i >= w.n)
		return;
	int64_t at[3] = {i % w.dims[0], i / w.dims[0] % w.dims[1], i / (w.dims[0] * w.dims[1])};
	multiply(w, coils, at, nullptr, next, diagonal);
	best = strongest(diagonal, &power);
	/* the column of that coil, over its diagonal element */
	for (int t = 0; t < TURNS; t++)
		v[t] = make_float2(lane + 32 * t == best && power > 0 ? 1 / power : 0, 0);
	multiply(w, coils, at, v, next, nullptr);
	for (int t = 0; t < TURNS; t++)
		v[t] = next[t];
	normalise(v);
	for (int step = 0; step < w.n_iterations; step++) {
		multiply(w, coils, at, v, next, nullptr);
		for (int t = 0; t < TURNS; t++)
			v[t] = next[t];
		normalise(v);
	}
	/* turned so that the reference coil is real and not negative */
	reference = v[0];
	for (int t = 1; t < TURNS; t++)
		if (w.reference / 32 == t)
			reference = v[t];
	reference.x = __shfl_sync(0xffffffffu, reference.x, w.reference % 32);
	reference.y = __shfl_sync(0xffffffffu, reference.y, w.reference % 32);
	float magnitude = hypotf(reference.x, reference.y);
	float2 turn = magnitude > 0 ? make_float2(reference.x / magnitude, reference.y / magnitude) : make_float2(1, 0);
	for (int t = 0; t < TURNS; t++) {
		int c = lane + 32 * t;

		if (c < w.n_coils)
			maps[c * w.n + i] = make_float2(v[t].x * turn.x + v[t].y * turn.y,
				c == w.reference ? 0 : v[t].y * turn.x - v[t].x * turn.y);
	}
}

#define ENERGY_THREADS 256

/* A block a coil: its sum of squares, in double and in a fixed order. */
__global__ static void energies(int64_t n, const float2 *coils, double *out)
{
	__shared__ double part[ENERGY_THREADS];
	const float2 *own = coils + blockIdx.x * n;
	double sum = 0;

	for (int64_t i = threadIdx.x; i < n; i += ENERGY_THREADS)
		sum += (double)own[i].x * own[i].x + (double)own[i].y * own[i].y;
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int half = ENERGY_THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		out[blockIdx.x] = part[0];
}

/* The coil with most signal, whose phase is the maps' reference, and the scale that makes its mean square 1. */
static int find_reference(fx_math *m, const double *energy, volume *w)
{
	double best = 0;

	for (int c = 0; c < w->n_coils; c++) {
		if (!std::isfinite(energy[c]))
			return fx_math_fail(m, FX_EDATA, "the image of coil %d, which coil maps are made from, holds numbers that "
				"are not finite; look at the raw samples of that coil", c);
		if (energy[c] > best) {
			best = energy[c];
			w->reference = c;
		}
	}
	w->scale = best > 0 ? (float)(1 / sqrt(best / (double)w->n)) : 0;
	return FX_OK;
}

int fxi_cuda_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array *maps)
{
	volume w = {{coils->dims[0], coils->dims[1], coils->dims[2]}, coils->dims[0] * coils->dims[1] * coils->dims[2],
		(int)coils->dims[3], radius, n_iterations, 0, 0};
	double energy[32 * TURNS];
	fxi_use use(m);
	int status;

	if (coils->type != FX_CF32 || !fx_array_same_shape(coils, maps) || radius < 0 || n_iterations < 0)
		return fx_math_fail(m, FX_EINVAL, "coil maps need cf32 coil images, maps of the same shape, and a radius and "
			"iterations that are not negative");
	if (coils->dims[3] > 32 * TURNS)
		return fx_math_fail(m, FX_ENOTSUP, "coil maps of %lld coils: on the GPU up to %d; put <coil_compress/> in front",
			(long long)coils->dims[3], 32 * TURNS);
	if (coils->n == 0)
		return FX_OK;
	fxi_work sums(m, w.n_coils, sizeof(double));
	const float2 *from = (const float2 *)use.in(coils);
	float2 *to = (float2 *)use.out(maps);
	status = sums.status() == FX_OK ? use.ready() : sums.status();
	if (status != FX_OK)
		return status;
	energies<<<w.n_coils, ENERGY_THREADS, 0, fxi_stream_of(m)>>>(w.n, from, (double *)sums.get());
	status = fxi_cuda_check(m, cudaMemcpyAsync(energy, sums.get(), w.n_coils * sizeof(double), cudaMemcpyDeviceToHost,
		fxi_stream_of(m)), "coil maps");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "coil maps");
	if (status == FX_OK)
		status = find_reference(m, energy, &w);
	if (status != FX_OK)
		return status;
	solve<<<(unsigned)((w.n + WARPS - 1) / WARPS), 32 * WARPS, 0, fxi_stream_of(m)>>>(w, from, to);
	return use.done("coil maps");
}

/* SPDX-License-Identifier: MIT */
/*
 * density.cu - the iterations of density weights (backend.h, density_iterate), as on the host: every point sums over its neighbours,
 * in the order of cells, so that the bits do not depend on the GPU. What the host scatters to cells' centres is gathered by them here.
 * A thread a point or a cell; sm_75 to sm_90 run the same code.
 */
#include "cuda.cuh"

#define THREADS 128
/* Iterations between looks at whether the work is to be given up: they are queued faster than they run. */
#define AT_ONCE 8

/* fx_density_cells on the device, and what is computed. */
struct job {
	int64_t n_cells[3], n_points, total;
	bool encoded[3];
	float others;                /* makes the kernel count 1 along axes that are not encoded, where all lie in one place */
	const int64_t *first;
	const float *position[3];
	const uint8_t *covered;
	float *aims;                 /* {points}: what the convolved weights should be */
};

/* Quadratic B-spline: half-width 1.5. */
__device__ static inline float spline2(float x)
{
	float a = fabsf(x), outer = fmaxf(1.5f - a, 0.0f), inner = fmaxf(0.5f - a, 0.0f);

	return 0.5f * outer * outer - 1.5f * inner * inner;
}

/* Cubic B-spline: half-width 2. */
__device__ static inline float spline3(float x)
{
	float a = fabsf(x), s = fmaxf(2 - a, 0.0f);

	return a < 1 ? (4 - 6 * a * a + 3 * a * a * a) / 6 : s * s * s / 6;
}

/* The cells that a kernel of that half-width around x reaches along an axis. */
__device__ static inline void reach(const job &j, int axis, float x, float half_width, int64_t *from, int64_t *to)
{
	*from = j.encoded[axis] ? (int64_t)(x - half_width) : 0;
	*to = j.encoded[axis] ? (int64_t)(x + half_width) : 0;
}

/* Where point p is, and the cells that its kernel reaches. */
__device__ static void around(const job &j, int64_t p, float u[3], int64_t from[3], int64_t to[3])
{
	for (int axis = 0; axis < 3; axis++) {
		u[axis] = j.position[axis][p];
		reach(j, axis, u[axis], 1.5f, &from[axis], &to[axis]);
	}
}

/* next = weights * aims / (weights convolved with the kernel). */
__global__ static void iterate(job j, const float *weights, float *next)
{
	int64_t p = blockIdx.x * (int64_t)THREADS + threadIdx.x, from[3], to[3];
	float u[3], sum = 0;

	if (p >= j.n_points)
		return;
	around(j, p, u, from, to);
	for (int64_t z = from[2]; z <= to[2]; z++)
		for (int64_t y = from[1]; y <= to[1]; y++) {
			int64_t row = (z * j.n_cells[1] + y) * j.n_cells[0], end = j.first[row + to[0] + 1];

			for (int64_t q = j.first[row + from[0]]; q < end; q++)
				sum += weights[q] * spline2(j.position[0][q] - u[0]) * spline2(j.position[1][q] - u[1]) *
					spline2(j.position[2][q] - u[2]);
		}
	/* a point's own weight is in its sum, so the sum is not 0 */
	next[p] = weights[p] * (j.aims[p] / (sum * j.others));
}

/* The kernel's mass within the covered cells, each a point in its centre. */
__global__ static void aim(job j)
{
	int64_t p = blockIdx.x * (int64_t)THREADS + threadIdx.x, from[3], to[3];
	float u[3], sum = 0;

	if (p >= j.n_points)
		return;
	around(j, p, u, from, to);
	for (int64_t z = from[2]; z <= to[2]; z++)
		for (int64_t y = from[1]; y <= to[1]; y++) {
			float outer = spline2((float)y + 0.5f - u[1]) * spline2((float)z + 0.5f - u[2]);

			for (int64_t x = from[0]; x <= to[0]; x++)
				if (j.covered[(z * j.n_cells[1] + y) * j.n_cells[0] + x])
					sum += outer * spline2((float)x + 0.5f - u[0]);
		}
	j.aims[p] = sum * j.others;
}

/* ---- the last match, on a grid ---------------------------------------------------------------- */

__device__ static inline float cubic(const job &j, int axis, float x)
{
	return j.encoded[axis] ? spline3(x) : 1;
}

/* The weights' cubic B-spline sums in the cells' centres. */
__global__ static void gather_nodes(job j, const float *weights, float *nodes)
{
	int64_t cell = blockIdx.x * (int64_t)THREADS + threadIdx.x, at[3], from[3], to[3];
	float centre[3], sum = 0;

	if (cell >= j.total)
		return;
	at[0] = cell % j.n_cells[0];
	at[1] = cell / j.n_cells[0] % j.n_cells[1];
	at[2] = cell / (j.n_cells[0] * j.n_cells[1]);
	for (int axis = 0; axis < 3; axis++) {
		int64_t last = j.n_cells[axis] - 1;

		centre[axis] = (float)at[axis] + 0.5f;
		from[axis] = j.encoded[axis] && at[axis] > 2 ? at[axis] - 2 : 0;
		to[axis] = !j.encoded[axis] ? 0 : at[axis] + 2 < last ? at[axis] + 2 : last;
	}
	for (int64_t z = from[2]; z <= to[2]; z++)
		for (int64_t y = from[1]; y <= to[1]; y++) {
			int64_t row = (z * j.n_cells[1] + y) * j.n_cells[0], end = j.first[row + to[0] + 1];

			for (int64_t q = j.first[row + from[0]]; q < end; q++)
				sum += weights[q] * cubic(j, 0, j.position[0][q] - centre[0]) * cubic(j, 1, j.position[1][q] - centre[1]) *
					cubic(j, 2, j.position[2][q] - centre[2]);
		}
	nodes[cell] = sum;
}

__global__ static void as_numbers(int64_t n, const uint8_t *covered, float *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i < n)
		out[i] = covered[i];
}

/* The cubic B-spline's values at -1, 0 and 1 along an axis; beyond its ends there is nothing. */
__global__ static void smooth(int64_t total, int64_t stride, int64_t n, const float *in, float *out)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (i >= total)
		return;
	int64_t at = i / stride % n;
	float before = at > 0 ? in[i - stride] : 0, after = at + 1 < n ? in[i + stride] : 0;
	out[i] = (before + 4 * in[i] + after) / 6;
}

/* weights *= covered volume / weights, both where the point is. */
__global__ static void match(job j, const float *nodes, const float *covered, float *weights)
{
	int64_t p = blockIdx.x * (int64_t)THREADS + threadIdx.x, first[3];
	float v[3][4], volume = 0, weight = 0;
	int n[3];

	if (p >= j.n_points)
		return;
	for (int axis = 0; axis < 3; axis++) {
		float u = j.position[axis][p];

		n[axis] = j.encoded[axis] ? 4 : 1;
		first[axis] = j.encoded[axis] ? (int64_t)(u - 0.5f) - 1 : 0;
		for (int i = 0; i < 4; i++)
			v[axis][i] = cubic(j, axis, (float)(first[axis] + i) + 0.5f - u);
	}
	for (int z = 0; z < n[2]; z++)
		for (int y = 0; y < n[1]; y++)
			for (int x = 0; x < n[0]; x++) {
				float f = v[2][z] * v[1][y] * v[0][x];
				int64_t at = ((first[2] + z) * j.n_cells[1] + first[1] + y) * j.n_cells[0] + first[0] + x;

				volume += f * covered[at];
				weight += f * nodes[at];
			}
	weights[p] *= volume / weight;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

/* The covered volume smoothed along every encoded axis: in `a` at the end, `b` is scratch. */
static void smooth_covered(const job *j, float *a, float *b, cudaStream_t s)
{
	int64_t stride = 1;
	float *from = a, *to = b;

	as_numbers<<<blocks_for(j->total), THREADS, 0, s>>>(j->total, j->covered, a);
	for (int axis = 0; axis < 3; stride *= j->n_cells[axis++])
		if (j->encoded[axis]) {
			float *swap = from;

			smooth<<<blocks_for(j->total), THREADS, 0, s>>>(j->total, stride, j->n_cells[axis], from, to);
			from = to;
			to = swap;
		}
	if (from != a)
		cudaMemcpyAsync(a, from, (size_t)j->total * sizeof(float), cudaMemcpyDeviceToDevice, s);
}

static int iterations(fx_math *m, const job *j, int64_t n, float **weights, float **next)
{
	int status = FX_OK;

	for (int64_t i = 0; i < n && status == FX_OK; i++) {
		float *swap = *weights;

		iterate<<<blocks_for(j->n_points), THREADS, 0, fxi_stream_of(m)>>>(*j, *weights, *next);
		*weights = *next;
		*next = swap;
		if (i % AT_ONCE == AT_ONCE - 1) {
			status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "density weights");
			status = status == FX_OK ? fx_math_check(m) : status;
		}
	}
	return status;
}

int fxi_cuda_density_iterate(fx_math *m, const fx_density_cells *c, int64_t n_iterations, float *weights)
{
	int64_t n = c->n_points, total = c->n_cells[0] * c->n_cells[1] * c->n_cells[2];
	fxi_work first(m, total + 1, sizeof(int64_t)), points(m, 6 * n, sizeof(float)), cells(m, 3 * total, sizeof(float)),
		covered(m, total, 1);
	float *at = (float *)points.get(), *w = at + 3 * n, *next = at + 4 * n, *nodes = (float *)cells.get();
	cudaStream_t s = fxi_stream_of(m);
	job j = {{c->n_cells[0], c->n_cells[1], c->n_cells[2]}, n, total, {c->encoded[0], c->encoded[1], c->encoded[2]}, 1,
		(const int64_t *)first.get(), {at, at + n, at + 2 * n}, (const uint8_t *)covered.get(), at + 5 * n};
	int status = FX_OK;

	if (first.status() != FX_OK || points.status() != FX_OK || cells.status() != FX_OK || covered.status() != FX_OK)
		return FX_ENOMEM;
	cudaMemcpyAsync(first.get(), c->first, (size_t)(total + 1) * sizeof(int64_t), cudaMemcpyHostToDevice, s);
	cudaMemcpyAsync(covered.get(), c->covered, (size_t)total, cudaMemcpyHostToDevice, s);
	for (int axis = 0; axis < 3; axis++) {
		cudaMemcpyAsync(at + axis * n, c->position[axis], (size_t)n * sizeof(float), cudaMemcpyHostToDevice, s);
		j.others *= c->encoded[axis] ? 1 : 1 / 0.75f; /* spline2(0) */
	}
	cudaMemcpyAsync(w, c->count, (size_t)n * sizeof(float), cudaMemcpyHostToDevice, s);
	aim<<<blocks_for(n), THREADS, 0, s>>>(j);
	status = iterations(m, &j, n_iterations, &w, &next);
	if (status != FX_OK)
		return status;
	gather_nodes<<<blocks_for(total), THREADS, 0, s>>>(j, w, nodes);
	smooth_covered(&j, nodes + total, nodes + 2 * total, s);
	match<<<blocks_for(n), THREADS, 0, s>>>(j, nodes, nodes + total, w);
	status = fxi_cuda_launched(m, "density weights");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpyAsync(weights, w, (size_t)n * sizeof(float), cudaMemcpyDeviceToHost, s), "density weights");
	return status == FX_OK ? fxi_cuda_check(m, cudaStreamSynchronize(s), "density weights") : status;
}

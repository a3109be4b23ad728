/* SPDX-License-Identifier: MIT */
/*
 * metric.cu - metric_build in three passes, as host/metric.c has them: each voxel alone, in double; differences of g; continuation
 * beyond the mask. A voxel's g is kept as six planes, so that neighbours are read in whole lines, and the 24 numbers of a voxel
 * are written through shared memory, in whole lines too. One path for every architecture: 0.2 kB of traffic and some 900 operations
 * in double a voxel, which below sm_80 and on chips with few double units is the larger part.
 */
#include "cuda.cuh"
#include "symmetric.cuh"

#include <fornix/diffusion.h>

#define THREADS 128
#define FIELD 24
#define ROW (FIELD + 1) /* of shared memory: an odd stride, so that lanes fall on different banks */

struct job {
	int64_t dims[3], n;           /* n: voxels */
	int kind;
	unsigned skip;
	double power, floor, csf_md, count_md, to_g[3][3];
	const float *tensors;
	const uint8_t *given, *flags; /* or NULL */
	float *g;                     /* {n, 6} */
	float *field, *d, *fa, *md;
	uint8_t *mask;
	unsigned long long *counts;   /* inside, floored, bad, fluid, above count_md */
};

/* ---- each voxel alone --------------------------------------------------------------------------- */

/* The eigenvalues of D as those of g^-1's inverse. */
__device__ static __forceinline__ void values_of_metric(const job &j, const double v[3], double co[3])
{
	double det = v[0] * v[1] * v[2];

#pragma unroll
	for (int i = 0; i < 3; i++)
		co[i] = 1 / (j.kind == FX_METRIC_ADJUGATE ? v[i] / det : j.kind == FX_METRIC_SHARPENED ? pow(v[i], j.power) : v[i]);
}

/* r d r^T */
__device__ static __forceinline__ void turn(const double r[3][3], const double d[6], double out[6])
{
	const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	double rd[3][3];

#pragma unroll
	for (int i = 0; i < 3; i++) {
		rd[i][0] = r[i][0] * d[0] + r[i][1] * d[1] + r[i][2] * d[3];
		rd[i][1] = r[i][0] * d[1] + r[i][1] * d[2] + r[i][2] * d[4];
		rd[i][2] = r[i][0] * d[3] + r[i][1] * d[4] + r[i][2] * d[5];
	}
#pragma unroll
	for (int c = 0; c < 6; c++)
		out[c] = rd[row[c]][0] * r[column[c]][0] + rd[row[c]][1] * r[column[c]][1] + rd[row[c]][2] * r[column[c]][2];
}

enum { INSIDE = 1, FLOORED = 2, BAD = 4, FLUID = 8, ABOVE = 16, N_COUNTS = 5 };

/* Everything of one voxel but its derivatives; which counts it belongs to. */
__device__ static unsigned one_voxel(const job &j, int64_t i)
{
	const float *from = j.tensors + 6 * i;
	double d[6], v[3], co[3], g[6], fa = 0, md, square = 0;
	unsigned what = 0;
	bool finite = true;
	fxi_eigen e;

	if ((j.given && !j.given[i]) || (j.flags && (j.flags[i] & j.skip)))
		return 0;
#pragma unroll
	for (int c = 0; c < 6; c++) {
		finite = finite && fabsf(from[c]) < 1e12f; /* more has no meaning in um^2/ms, and its square would overflow */
		d[c] = (double)from[c];
	}
	if (!finite)
		return BAD;
	if ((d[0] + d[2] + d[5]) / 3 > j.count_md)
		what = ABOVE;
	fxi_eigen_solve(e, d);
	v[0] = e.xx, v[1] = e.yy, v[2] = e.zz;
	if (!(fmax(v[0], fmax(v[1], v[2])) > 0))
		return what | BAD;
	if ((v[0] + v[1] + v[2]) / 3 > j.csf_md)
		return what | FLUID;
#pragma unroll
	for (int k = 0; k < 3; k++) {
		if (!(v[k] >= j.floor)) {
			v[k] = j.floor;
			what |= FLOORED;
		}
	}
	md = (v[0] + v[1] + v[2]) / 3;
#pragma unroll
	for (int k = 0; k < 3; k++) {
		fa += (v[k] - md) * (v[k] - md);
		square += v[k] * v[k];
	}
	j.fa[i] = (float)sqrt(1.5 * fa / square);
	j.md[i] = (float)md;
	if (what & FLOORED)
		fxi_compose(v, e.v, d);
#pragma unroll
	for (int c = 0; c < 6; c++)
		j.d[6 * i + c] = (float)d[c]; /* as it came, to the bit, where nothing was raised */
	values_of_metric(j, v, co);
	fxi_compose(co, e.v, d);
	turn(j.to_g, d, g);
#pragma unroll
	for (int c = 0; c < 6; c++)
		j.g[c * j.n + i] = (float)g[c];
	return what | INSIDE;
}

__global__ static void __launch_bounds__(THREADS) each_voxel(const __grid_constant__ job j)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	unsigned what = i < j.n ? one_voxel(j, i) : 0;

	if (i < j.n)
		j.mask[i] = (what & INSIDE) != 0;
	/* Whole numbers: the same sums in whatever order. */
#pragma unroll
	for (int k = 0; k < N_COUNTS; k++) {
		unsigned lanes = __ballot_sync(~0u, what >> k & 1);

		if (lanes && threadIdx.x % 32 == 0)
			atomicAdd(&j.counts[k], (unsigned long long)__popc(lanes));
	}
}

/* ---- differences -------------------------------------------------------------------------------- */

/* True where the voxel `by` steps along the axis is in the volume and the mask. */
__device__ static __forceinline__ bool has(const job &j, int64_t i, int64_t index, int axis, int64_t stride, int by)
{
	return index + by >= 0 && index + by < j.dims[axis] && j.mask[i + by * stride];
}

/* The derivative of g along one axis, second order where there is room. */
__device__ static void difference(const job &j, int64_t i, int64_t index, int axis, int64_t stride, float *out)
{
	bool up = has(j, i, index, axis, stride, 1), down = has(j, i, index, axis, stride, -1);
	int way = up ? 1 : -1;
	bool two = up != down && has(j, i, index, axis, stride, 2 * way);

	for (int c = 0; c < 6; c++) {
		const float *g = j.g + c * j.n + i;
		float sign = (float)way;

		if (up && down)
			out[c] = 0.5f * (g[stride] - g[-stride]);
		else if (two)
			out[c] = sign * (2 * (g[way * stride] - g[0]) - 0.5f * (g[2 * way * stride] - g[0]));
		else
			out[c] = up || down ? sign * (g[way * stride] - g[0]) : 0;
	}
}

__global__ static void __launch_bounds__(THREADS) differences(const __grid_constant__ job j)
{
	__shared__ float field[THREADS * ROW];
	__shared__ uint8_t inside[THREADS];
	int64_t first = blockIdx.x * (int64_t)THREADS, i = first + threadIdx.x;
	float *own = field + threadIdx.x * ROW;

	inside[threadIdx.x] = i < j.n && j.mask[i];
	if (inside[threadIdx.x]) {
		for (int c = 0; c < 6; c++)
			own[c] = j.g[c * j.n + i];
		difference(j, i, i % j.dims[0], 0, 1, own + 6);
		difference(j, i, i / j.dims[0] % j.dims[1], 1, j.dims[0], own + 12);
		difference(j, i, i / (j.dims[0] * j.dims[1]), 2, j.dims[0] * j.dims[1], own + 18);
	}
	__syncthreads();
	for (int k = threadIdx.x; k < THREADS * FIELD; k += THREADS)
		if (inside[k / FIELD])
			j.field[FIELD * first + k] = field[k / FIELD * ROW + k % FIELD];
}

/* ---- beyond the mask ---------------------------------------------------------------------------- */

/*
 * Which neighbours inside the mask a voxel outside takes the mean of, bit (dz + 1) 9 + (dy + 1) 3 + dx + 1 each: those that share a face,
 * else an edge, else a corner. 0: none.
 */
__device__ static unsigned neighbours(const job &j, int64_t i)
{
	int64_t x = i % j.dims[0], y = i / j.dims[0] % j.dims[1], z = i / (j.dims[0] * j.dims[1]);
	unsigned faces = 0, edges = 0, corners = 0;

	for (int b = 0; b < 27; b++) {
		int dx = b % 3 - 1, dy = b / 3 % 3 - 1, dz = b / 9 - 1, away = (dx != 0) + (dy != 0) + (dz != 0);

		if (x + dx < 0 || x + dx >= j.dims[0] || y + dy < 0 || y + dy >= j.dims[1] || z + dz < 0 || z + dz >= j.dims[2] ||
			!j.mask[i + (dz * j.dims[1] + dy) * j.dims[0] + dx])
			continue;
		if (away == 1)
			faces |= 1u << b;
		else if (away == 2)
			edges |= 1u << b;
		else
			corners |= 1u << b;
	}
	return faces ? faces : edges ? edges : corners;
}

/* Where channel 0..31 of a voxel is: the field's 24, D's 6, FA, MD. */
__device__ static __forceinline__ float *channel(const job &j, int64_t i, int c)
{
	return c < FIELD ? j.field + FIELD * i + c : c < 30 ? j.d + 6 * i + c - FIELD : c == 30 ? j.fa + i : j.md + i;
}

/* A warp looks at 32 voxels; those outside are then done one by one, a lane for each of a voxel's 32 numbers. */
__global__ static void __launch_bounds__(THREADS) beyond(const __grid_constant__ job j)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	bool outside = i < j.n && !j.mask[i];
	unsigned own = outside ? neighbours(j, i) : 0, todo = __ballot_sync(~0u, outside);
	int lane = threadIdx.x % 32;

	while (todo) {
		int which = __ffs(todo) - 1;
		int64_t at = i - lane + which;
		unsigned set = __shfl_sync(~0u, own, which);
		float v = lane < 30 ? NAN : 0; /* no fibre can use it */

		if (set) {
			double sum = 0;

			for (unsigned rest = set; rest; rest &= rest - 1) {
				int b = __ffs(rest) - 1;

				sum += (double)*channel(j, at + ((b / 9 - 1) * j.dims[1] + b / 3 % 3 - 1) * j.dims[0] + b % 3 - 1, lane);
			}
			v = (float)(sum / __popc(set));
		}
		*channel(j, at, lane) = v;
		todo &= todo - 1;
	}
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static bool fit_together(const fx_array *tensors, const fx_array *mask, const fx_array *flags, const fx_metric_arrays *out)
{
	int64_t n = tensors->n / 6;

	return tensors->type == FX_F32 && tensors->n_dims == 4 && tensors->dims[0] == 6 && out->field->n == FIELD * n && out->d->n == 6 * n &&
		out->fa->n == n && out->md->n == n && out->mask->n == n && out->mask->type == FX_U8 && (!mask || mask->n == n) &&
		(!flags || flags->n == n);
}

static job job_of(const fx_metric_plan *plan, const fx_array *tensors)
{
	job j = {};

	j.n = tensors->n / 6;
	j.kind = plan->kind;
	j.skip = plan->skip_flags;
	j.power = plan->power;
	j.floor = plan->floor;
	j.csf_md = plan->csf_md;
	j.count_md = plan->count_md;
	for (int i = 0; i < 3; i++) {
		j.dims[i] = tensors->dims[i + 1];
		for (int k = 0; k < 3; k++)
			j.to_g[i][k] = plan->to_mm[k][i];
	}
	return j;
}

int fxi_cuda_metric_build(fx_math *m, const fx_metric_plan *plan, const fx_array *tensors, const fx_array *mask,
	const fx_array *flags, const fx_metric_arrays *out, fx_metric_counts *counts)
{
	job j = job_of(plan, tensors);
	unsigned blocks = (unsigned)((j.n + THREADS - 1) / THREADS);
	cudaStream_t stream = fxi_stream_of(m);
	fxi_counts count(m, N_COUNTS);
	fxi_work g(m, j.n, 6 * sizeof(float));
	int64_t n[N_COUNTS] = {0};
	fxi_use use(m);
	int status = count.status() != FX_OK ? count.status() : g.status();

	*counts = fx_metric_counts{};
	if (!fit_together(tensors, mask, flags, out))
		return fx_math_fail(m, FX_EINVAL, "metric_build takes f32 tensors {6,x,y,z} and u8 marks of as many voxels, and fills arrays of as many");
	if (j.n == 0)
		return FX_OK;
	j.tensors = (const float *)use.in(tensors);
	j.given = mask ? (const uint8_t *)use.in(mask) : nullptr;
	j.flags = flags ? (const uint8_t *)use.in(flags) : nullptr;
	j.field = (float *)use.out(out->field);
	j.d = (float *)use.out(out->d);
	j.fa = (float *)use.out(out->fa);
	j.md = (float *)use.out(out->md);
	j.mask = (uint8_t *)use.out(out->mask);
	j.g = (float *)g.get();
	j.counts = count.device();
	if (status == FX_OK)
		status = use.ready();
	if (status != FX_OK)
		return status;
	each_voxel<<<blocks, THREADS, 0, stream>>>(j);
	differences<<<blocks, THREADS, 0, stream>>>(j);
	beyond<<<blocks, THREADS, 0, stream>>>(j);
	status = use.done("the metric");
	if (status == FX_OK)
		status = count.get(n);
	*counts = fx_metric_counts{n[0], n[1], n[2], n[3], n[4]};
	return status == FX_OK ? fx_math_check(m) : status;
}

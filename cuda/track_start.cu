/* SPDX-License-Identifier: MIT */
/*
 * track_start.cu - where fibres start: cell and fraction, direction in double as the host computes it, and the order in which they are taken: along a
 * Morton curve through the cells, so that fibres side by side read the same lines. Small passes, the same on every architecture.
 */
#include "track.cuh"

#include <cub/device/device_radix_sort.cuh>

#include "track_eigen.cuh"

static const int THREADS = 128;

struct seeds {
	int64_t n;
	const double *starts;        /* {6, n} */
	const float *d;
	bool along;
	double to_mm[3][3], to_index[3][3];
};

/* Trilinear D in double, held within the outermost centres. */
__device__ static void sample(const fxi_track_view &g, const float *map, const int c[3], const double part[3], double out[6])
{
	int64_t at = ((int64_t)c[2] * g.dims[1] + c[1]) * g.dims[0] + c[0];

	for (int k = 0; k < 6; k++)
		out[k] = 0;
	for (int corner = 0; corner < 8; corner++) {
		double weight = 1;
		int64_t there = at;

		for (int a = 0; a < 3; a++) {
			double f = g.dims[a] < 2 ? 0 : fmin(1.0, fmax(0.0, part[a]));

			weight *= corner >> a & 1 ? f : 1 - f;
			there += corner >> a & 1 ? g.stride[a] : 0;
		}
		for (int k = 0; k < 6; k++)
			out[k] += weight * (double)map[6 * there + k];
	}
}

__device__ static void turn3(const double a[3][3], const double x[3], double y[3])
{
	for (int i = 0; i < 3; i++)
		y[i] = a[i][0] * x[0] + a[i][1] * x[1] + a[i][2] * x[2];
}

/* The eigenvector's largest component is positive, as fx_tensor_eigen has it. */
__device__ static bool own_direction(const double d[6], double mm[3])
{
	double value = track::principal(d, mm), most = mm[0];

	for (int i = 1; i < 3; i++)
		most = fabs(mm[i]) > fabs(most) ? mm[i] : most;
	for (int i = 0; i < 3; i++)
		mm[i] = most < 0 ? -mm[i] : mm[i];
	return value > 0;
}

__global__ static void begin(seeds s, fxi_track_view g, fxi_track_start *out)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	fxi_track_start start = {};
	double part[3], mm[3], v[3], length;
	bool usable = true;
	int64_t nearest = 0;

	if (i >= s.n)
		return;
	const double *x = s.starts + 6 * i;
	for (int a = 2; a >= 0; a--) {
		usable = usable && x[a] >= -0.5 && x[a] < g.dims[a] - 0.5;
		if (usable) {
			start.cell[a] = min(max((int)floor(x[a]), 0), g.last[a]);
			part[a] = x[a] - start.cell[a];
			start.part[a] = (float)part[a];
			nearest = nearest * g.dims[a] + (int64_t)(x[a] + 0.5);
		}
	}
	usable = usable && (!g.mask || g.mask[nearest]);
	if (usable) {
		turn3(s.to_mm, x + 3, mm);
		if (x[3] == 0 && x[4] == 0 && x[5] == 0) {
			double d[6];

			sample(g, s.d, start.cell, part, d);
			usable = own_direction(d, mm);
		}
		length = sqrt(mm[0] * mm[0] + mm[1] * mm[1] + mm[2] * mm[2]);
		usable = usable && isfinite(length) && length > 0;
		for (int a = 0; a < 3; a++)
			mm[a] /= length;
		turn3(s.to_index, mm, v);
		for (int a = 0; a < 3; a++)
			start.v[a] = (float)(s.along ? mm[a] : v[a]);
	}
	start.usable = usable;
	out[i] = start;
}

int fxi_track_begin(fx_math *m, const fx_track_plan *plan, const fxi_track_view *view, const float *d, const double *starts, int64_t n,
	fxi_track_start *out)
{
	seeds s = {n, starts, d, plan->method == FX_TRACK_STREAMLINE, {}, {}};

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			s.to_mm[i][k] = plan->to_mm[i][k];
			s.to_index[i][k] = plan->to_index[i][k];
		}
	begin<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(s, *view, out);
	return fxi_cuda_launched(m, "the fibres' starts");
}

/* ten bits spread to every third */
__device__ static inline uint32_t spread(uint32_t x)
{
	x = (x | x << 16) & 0x030000ffu;
	x = (x | x << 8) & 0x0300f00fu;
	x = (x | x << 4) & 0x030c30c3u;
	return (x | x << 2) & 0x09249249u;
}

__global__ static void number(int64_t n, const fxi_track_start *starts, int shift, uint32_t *keys, uint32_t *order)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	const int *c = starts[i].cell;
	keys[i] = starts[i].usable ? spread((uint32_t)c[0] >> shift) | spread((uint32_t)c[1] >> shift) << 1 | spread((uint32_t)c[2] >> shift) << 2
		: 0x3fffffffu;
	order[i] = (uint32_t)i;
}

int fxi_track_sort(fx_math *m, const fxi_track_view *view, const fxi_track_start *starts, int64_t n, uint32_t *order)
{
	cudaStream_t stream = fxi_stream_of(m);
	fxi_work keys(m, 3 * n, sizeof(uint32_t));
	uint32_t *key = (uint32_t *)keys.get(), *sorted = key + n, *before = key + 2 * n;
	int shift = 0, most = view->dims[0];
	size_t bytes = 0;

	if (keys.status() != FX_OK)
		return keys.status();
	for (int a = 1; a < 3; a++)
		most = view->dims[a] > most ? view->dims[a] : most;
	while (most - 1 >> shift > 1023)
		shift++;
	number<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(n, starts, shift, key, before);
	cudaError_t e = cub::DeviceRadixSort::SortPairs(nullptr, bytes, key, sorted, before, order, n, 0, 30, stream);
	if (e != cudaSuccess)
		return fxi_cuda_check(m, e, "sorting the seeds");
	fxi_work room(m, (int64_t)bytes, 1);
	if (room.status() != FX_OK)
		return room.status();
	return fxi_cuda_check(m, cub::DeviceRadixSort::SortPairs(room.get(), bytes, key, sorted, before, order, n, 0, 30, stream),
		"sorting the seeds");
}

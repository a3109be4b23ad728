/* SPDX-License-Identifier: MIT */
/*
 * direct.cu - the non-Cartesian Fourier sums as they are written, on the plain arithmetic units, in gather form (Stone et al. 2008): a
 * thread owns outputs, a block walks through the inputs in chunks that it keeps in shared memory.
 *
 * A phase is an integer, as on the host: k's fraction of a cycle in fixed point times whole numbers of voxels, which wraps exactly. A
 * sine and a cosine for each pair would be all the work there is, so a thread of the adjoint owns a row of voxels, or two, and takes one
 * wave w at a row's middle; at t either side of it, w e^{+-i2pi kt} is cos w +- i sin w with a cosine and a sine that all threads share:
 * 2 FMA a pair for the sums of cos w and sin w. The forward sum does the same the other way round. Every sine and cosine is of an exact phase.
 * Sums are rounded to the image's type after FLUSH samples (forward: to double after a chunk), so errors do not grow with their number.
 *
 * sm_75 to sm_90: the same path.
 */
#include "separable.cuh"

#define THREADS 128
#define CHUNK 64     /* samples in shared memory */
#define FLUSH 1024
#define TILES 32     /* rows of voxels in shared memory, of the forward sum */
#define OWN 2        /* samples of a thread of the forward sum */

int fxi_cuda_direct_need(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *image)
{
	int64_t n_samples = k->dims[1], coils = n_samples > 0 ? samples->n / n_samples : 0;
	int64_t n_voxels = image->dims[0] * image->dims[1] * image->dims[2];

	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * n_samples)
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)n_samples);
	if ((samples->type != FX_CF32 && samples->type != FX_CF64) || image->type != samples->type || samples->n != n_samples * coils ||
		(n_samples > 0 && image->n != n_voxels * coils) || coils > 65535)
		return fx_math_fail(m, FX_EINVAL, "samples {%lld, ...} of %s, %lld in all, and an image of %s, %lld in all, do not belong "
			"together", (long long)samples->dims[0], fx_type_name(samples->type), (long long)samples->n,
			fx_type_name(image->type), (long long)image->n);
	return FX_OK;
}

/* A sample as the kernels read it: phases of half a voxel along rows and of a voxel across them, and its value. */
template <typename INT, typename REAL2> struct sample {
	INT k[3];
	REAL2 v;
};

__device__ static void half_phase(double k, uint32_t *out)
{
	*out = (uint32_t)(fxi_half_step(k) >> 32);
}

__device__ static void half_phase(double k, uint64_t *out)
{
	*out = fxi_half_step(k);
}

template <typename INT> __device__ static void phases_of(const fxi_separable &s, const double *k, int64_t m, INT out[3])
{
	half_phase(k[3 * m + s.axis[0]], &out[0]);
	if (s.n[0] == 1)
		out[0] = 0;
	for (int a = 1; a < 3; a++)
		if (s.n[a] > 1)
			fxi_fixed(k[3 * m + s.axis[a]], &out[a]);
		else
			out[a] = 0;
}

/* Twice the middle of a row of V voxels, from the image's middle; its line; phases there. */
struct row {
	int64_t place;   /* of its first voxel */
	int first, twice, y, z;
	bool there;
};

/* The i-th row, where lines are taken `lines` at a time. */
template <int V> __device__ static row row_of(const fxi_separable &s, int64_t i, int lines)
{
	int rows = (s.n[0] + V - 1) / V, across = (s.n[1] + lines - 1) / lines;
	row r;

	r.there = i < (int64_t)rows * across * s.n[2];
	r.first = (int)(i % rows) * V;
	r.y = (int)(i / rows % across) * lines;
	r.z = r.there ? (int)(i / rows / across) : 0;
	r.place = r.first * s.stride[0] + r.y * s.stride[1] + r.z * s.stride[2];
	r.twice = 2 * (r.first - s.n[0] / 2) + V - 1;
	r.y -= s.n[1] / 2;
	r.z -= s.n[2] / 2;
	return r;
}

template <typename INT> __device__ static INT phase_at(const row &r, const INT k[3])
{
	return k[0] * (INT)(int64_t)r.twice + k[1] * (INT)(int64_t)r.y + k[2] * (INT)(int64_t)r.z;
}

/* image += scale * C +- iS: j voxels and a half either side of the row's middle. */
template <typename REAL2, int V> __device__ static void flush(const fxi_separable &s, const row &r, REAL2 c[V / 2], REAL2 d[V / 2],
	double scale, REAL2 *image, bool there)
{
	image += r.place;
	asm volatile("" : "+l"(image)); /* or the compiler keeps V addresses in registers all along */
#pragma unroll
	for (int j = 0; j < V / 2; j++) {
		int plus = V / 2 + j, minus = V / 2 - 1 - j;

		if (there && r.first + plus < s.n[0]) {
			REAL2 *at = image + plus * s.stride[0];

			*at = {(decltype(at->x))(at->x + scale * (c[j].x - d[j].y)), (decltype(at->x))(at->y + scale * (c[j].y + d[j].x))};
		}
		if (there && r.first + minus < s.n[0]) {
			REAL2 *at = image + minus * s.stride[0];

			*at = {(decltype(at->x))(at->x + scale * (c[j].x + d[j].y)), (decltype(at->x))(at->y + scale * (c[j].y - d[j].x))};
		}
		c[j] = d[j] = {0, 0};
	}
}

/* Two waves by one load, where they are single. */
__device__ static void load_two(const float2 *from, float2 to[2])
{
	float4 v = *(const float4 *)from;

	to[0] = make_float2(v.x, v.y);
	to[1] = make_float2(v.z, v.w);
}

__device__ static void load_two(const double2 *from, double2 to[2])
{
	to[0] = from[0];
	to[1] = from[1];
}

/* w times the cosines and sines of one sample. */
template <typename REAL2, int V, int LINES> __device__ static void add_sample(const REAL2 w[LINES], const REAL2 *table, REAL2 c[LINES][V / 2],
	REAL2 d[LINES][V / 2])
{
#pragma unroll
	for (int j = 0; j < V / 2; j += 2) {
		REAL2 t[2];

		load_two(table + j, t);
#pragma unroll
		for (int i = 0; i < 2 * LINES; i++) {
			int l = i / 2, at = j + i % 2;

			c[l][at].x += t[i % 2].x * w[l].x;
			c[l][at].y += t[i % 2].x * w[l].y;
			d[l][at].x += t[i % 2].y * w[l].x;
			d[l][at].y += t[i % 2].y * w[l].y;
		}
	}
}

/* A thread a row of V voxels in each of `lines` neighbouring lines, which share what is read; blockIdx.y is the coil. */
template <typename INT, typename REAL2, int V, int LINES> __global__ __launch_bounds__(THREADS, 2) static void adjoint(fxi_separable s, int64_t n_samples,
	const double *k, const REAL2 *samples, double scale, REAL2 *image)
{
	__shared__ sample<INT, REAL2> chunk[CHUNK];
	__shared__ __align__(16) REAL2 table[CHUNK][V / 2]; /* of cosine and sine, two of which are one load */
	row r = row_of<V>(s, blockIdx.x * (int64_t)THREADS + threadIdx.x, LINES);
	REAL2 c[LINES][V / 2] = {}, d[LINES][V / 2] = {};

	samples += blockIdx.y * n_samples;
	image += blockIdx.y * s.n_voxels;
	for (int64_t first = 0; first < n_samples; first += CHUNK) {
		int left = (int)(n_samples - first < CHUNK ? n_samples - first : CHUNK);

		__syncthreads();
		if (threadIdx.x < left) {
			phases_of(s, k, first + threadIdx.x, chunk[threadIdx.x].k);
			chunk[threadIdx.x].v = samples[first + threadIdx.x];
		}
		__syncthreads();
		for (int i = threadIdx.x; i < left * (V / 2); i += THREADS)
			table[i / (V / 2)][i % (V / 2)] = fxi_cis(chunk[i / (V / 2)].k[0] * (INT)(2 * (i % (V / 2)) + 1));
		__syncthreads();
		for (int m = 0; m < left; m++) {
			REAL2 w[LINES];

#pragma unroll
			for (int l = 0; l < LINES; l++)
				w[l] = fxi_times(chunk[m].v, fxi_cis(phase_at(r, chunk[m].k) + (INT)l * chunk[m].k[1]));
			add_sample<REAL2, V, LINES>(w, table[m], c, d);
		}
		if ((first + CHUNK) % FLUSH == 0 || first + CHUNK >= n_samples)
#pragma unroll
			for (int l = 0; l < LINES; l++) {
				flush<REAL2, V>(s, r, c[l], d[l], scale, image + l * s.stride[1],
					r.there && r.y + l + s.n[1] / 2 < s.n[1]);
			}
	}
}

/* A row's voxels either side of its middle: sums, and differences times -i. */
template <typename REAL2> struct __align__(16) fold {
	REAL2 sum, difference;
};

template <typename REAL2, int V> __device__ static void take_rows(const fxi_separable &s, int64_t first, const REAL2 *image,
	fold<REAL2> to[TILES][V / 2], row rows[TILES])
{
	for (int i = threadIdx.x; i < TILES * (V / 2); i += THREADS) {
		row r = row_of<V>(s, first + i / (V / 2), 1);
		int plus = V / 2 + i % (V / 2), minus = V / 2 - 1 - i % (V / 2);
		REAL2 a = {0, 0}, b = {0, 0};

		if (r.there && r.first + plus < s.n[0])
			a = image[r.place + plus * s.stride[0]];
		if (r.there && r.first + minus < s.n[0])
			b = image[r.place + minus * s.stride[0]];
		to[i / (V / 2)][i % (V / 2)] = {{a.x + b.x, a.y + b.y}, {a.y - b.y, b.x - a.x}};
		if (i % (V / 2) == 0)
			rows[i / (V / 2)] = r;
	}
}

/* A thread OWN samples; blockIdx.y is the coil, blockIdx.z a part of the rows. */
template <typename INT, typename REAL2, int V> __global__ __launch_bounds__(THREADS) static void forward(fxi_separable s, int64_t n_samples,
	const double *k, const REAL2 *image, int64_t n_rows, int64_t each, double scale, double2 *part, REAL2 *samples)
{
	__shared__ fold<REAL2> folds[TILES][V / 2];
	__shared__ row rows[TILES];
	int64_t at = blockIdx.z * each, end = at + each < n_rows ? at + each : n_rows;
	INT own[OWN][3] = {};
	REAL2 wave[OWN][V / 2];
	double2 total[OWN] = {};

	image += blockIdx.y * s.n_voxels;
#pragma unroll
	for (int i = 0; i < OWN; i++) {
		int64_t m = (blockIdx.x * (int64_t)OWN + i) * THREADS + threadIdx.x;

		if (m < n_samples)
			phases_of(s, k, m, own[i]);
#pragma unroll
		for (int j = 0; j < V / 2; j++)
			wave[i][j] = fxi_cis(own[i][0] * (INT)(2 * j + 1));
	}
	for (; at < end; at += TILES) {
		REAL2 sum[OWN] = {};

		__syncthreads();
		take_rows<REAL2, V>(s, at, image, folds, rows);
		__syncthreads();
		for (int t = 0; t < TILES && at + t < end; t++) {
			REAL2 line[OWN] = {};

#pragma unroll
			for (int j = 0; j < V / 2; j++) {
				fold<REAL2> f = folds[t][j];

#pragma unroll
				for (int i = 0; i < OWN; i++) {
					line[i].x += wave[i][j].x * f.sum.x + wave[i][j].y * f.difference.x;
					line[i].y += wave[i][j].x * f.sum.y + wave[i][j].y * f.difference.y;
				}
			}
#pragma unroll
			for (int i = 0; i < OWN; i++) {
				REAL2 w = fxi_times(line[i], fxi_cis(0 - phase_at(rows[t], own[i])));

				sum[i].x += w.x;
				sum[i].y += w.y;
			}
		}
#pragma unroll
		for (int i = 0; i < OWN; i++) {
			total[i].x += sum[i].x;
			total[i].y += sum[i].y;
		}
	}
	for (int i = 0; i < OWN; i++) {
		int64_t m = (blockIdx.x * (int64_t)OWN + i) * THREADS + threadIdx.x;

		if (m < n_samples && gridDim.z == 1)
			samples[blockIdx.y * n_samples + m] = {(decltype(samples->x))(scale * total[i].x), (decltype(samples->x))(scale * total[i].y)};
		else if (m < n_samples)
			part[(blockIdx.z * (int64_t)gridDim.y + blockIdx.y) * n_samples + m] = total[i];
	}
}

static int64_t rows_of(const fxi_separable &s, int v, int lines)
{
	return (int64_t)((s.n[0] + v - 1) / v) * ((s.n[1] + lines - 1) / lines) * s.n[2];
}

/* Long rows where they make threads enough for the chip, and lines that fill them. */
static bool is_long(fx_math *m, const fxi_separable &s)
{
	return s.n[0] > 16 && rows_of(s, 32, 2) * s.coils >= 192 * (int64_t)fxi_queue(m)->n_processors;
}

template <typename INT, typename REAL2, int V, int LINES> static int launch_adjoint(fx_math *m, const fxi_separable &s, int64_t n, const double *k,
	const void *samples, double scale, void *image)
{
	dim3 grid((unsigned)((rows_of(s, V, LINES) + THREADS - 1) / THREADS), (unsigned)s.coils);

	adjoint<INT, REAL2, V, LINES><<<grid, THREADS, 0, fxi_stream_of(m)>>>(s, n, k, (const REAL2 *)samples, scale, (REAL2 *)image);
	return fxi_cuda_launched(m, "the direct sums");
}

template <typename INT, typename REAL2, int V> static int launch_forward(fx_math *m, const fxi_separable &s, int64_t n, const double *k,
	const void *image, double scale, void *samples)
{
	int64_t n_rows = rows_of(s, V, 1), blocks = (n + OWN * THREADS - 1) / (OWN * THREADS), tiles = (n_rows + TILES - 1) / TILES, each;
	/* three blocks share a multiprocessor */
	int parts = fxi_separable_parts(m, (blocks * s.coils + 2) / 3, tiles, s.coils * n * (int64_t)sizeof(double2)), status;

	each = (tiles + parts - 1) / parts * TILES;
	parts = (int)((n_rows + each - 1) / each);
	fxi_work part(m, parts > 1 ? parts * s.coils * n : 0, sizeof(double2));
	if (part.status() != FX_OK)
		return part.status();
	forward<INT, REAL2, V><<<dim3((unsigned)blocks, (unsigned)s.coils, (unsigned)parts), THREADS, 0, fxi_stream_of(m)>>>(s, n, k,
		(const REAL2 *)image, n_rows, each, scale, (double2 *)part.get(), (REAL2 *)samples);
	status = fxi_cuda_launched(m, "the direct sums");
	if (status == FX_OK && parts > 1)
		status = fxi_separable_gather(m, s.coils * n, parts, (const double2 *)part.get(), scale, false, (REAL2 *)samples);
	return status;
}

int fxi_cuda_direct_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	int64_t n = k->dims[1];
	int status = fxi_cuda_direct_need(m, k, samples, image);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0 || samples->n == 0)
		return status;
	fxi_separable s = fxi_separable_shape(image, samples->n / n);
	const double *kd = (const double *)use.in(k);
	const void *from = use.in(samples);
	void *to = use.out(image);
	if (use.ready() != FX_OK)
		return use.ready();
	if (samples->type == FX_CF32 && is_long(m, s))
		status = launch_adjoint<uint32_t, float2, 32, 2>(m, s, n, kd, from, scale, to);
	else if (samples->type == FX_CF32)
		status = launch_adjoint<uint32_t, float2, 8, 1>(m, s, n, kd, from, scale, to);
	else if (is_long(m, s))
		status = launch_adjoint<uint64_t, double2, 16, 1>(m, s, n, kd, from, scale, to);
	else
		status = launch_adjoint<uint64_t, double2, 8, 1>(m, s, n, kd, from, scale, to);
	return status == FX_OK ? use.done("the direct sums") : status;
}

int fxi_cuda_direct_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	int64_t n = k->dims[1];
	int status = fxi_cuda_direct_need(m, k, samples, image);
	fxi_use use(m);

	if (status != FX_OK || samples->n == 0)
		return status;
	fxi_separable s = fxi_separable_shape(image, samples->n / n);
	const double *kd = (const double *)use.in(k);
	const void *from = use.in(image);
	void *to = use.out(samples);
	if (use.ready() != FX_OK)
		return use.ready();
	if (samples->type == FX_CF32 && s.n[0] > 16)
		status = launch_forward<uint32_t, float2, 32>(m, s, n, kd, from, scale, to);
	else if (samples->type == FX_CF32)
		status = launch_forward<uint32_t, float2, 8>(m, s, n, kd, from, scale, to);
	else if (s.n[0] > 16)
		status = launch_forward<uint64_t, double2, 16>(m, s, n, kd, from, scale, to);
	else
		status = launch_forward<uint64_t, double2, 8>(m, s, n, kd, from, scale, to);
	return status == FX_OK ? use.done("the direct sums") : status;
}

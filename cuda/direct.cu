/* SPDX-License-Identifier: MIT */
/*
 * direct.cu - the non-Cartesian Fourier sums exactly as they are written, in gather form: a thread owns outputs, a block
 * walks through the inputs in chunks that it keeps in shared memory (Stone et al. 2008, with shared instead of constant memory,
 * so that no launch a chunk is needed).
 *
 * A phase is an integer, as on the host: k's fraction of a cycle in 32-bit fixed point (64-bit for double) times the voxel's integer index,
 * which wraps exactly. Sums of a chunk are single (for cf32), sums of chunks double, so the error does not grow with the
 * number of samples.
 */
#include "cuda.cuh"

#define CHUNK 256
#define THREADS 256

struct volume {
	int64_t dims[3], n;
};

/* k of a sample as fractions of a cycle in fixed point, its value beside it. */
template <typename INT, typename REAL2> struct input {
	INT k[3];
	REAL2 v;
};

__device__ static void fixed(double k, uint32_t *out)
{
	*out = (uint32_t)(int64_t)llrint((k - rint(k)) * 4294967296.0);
}

__device__ static void fixed(double k, uint64_t *out)
{
	/* 2^63 would not fit where the fraction is exactly one half: it wraps to the same phase */
	double f = k - rint(k);

	*out = (uint64_t)(int64_t)llrint(f * 9223372036854775808.0) << 1;
}

__device__ static void cis(uint32_t phase, float *c, float *s)
{
	sincospif((float)(int32_t)phase * 4.656612873077393e-10f, s, c); /* 2^-31: half cycles */
}

__device__ static void cis(uint64_t phase, double *c, double *s)
{
	sincospi((double)(int64_t)phase * 1.0842021724855044e-19, s, c); /* 2^-63 */
}

template <typename INT> __device__ static INT phase_of(const INT k[3], const INT x[3])
{
	return k[0] * x[0] + k[1] * x[1] + k[2] * x[2];
}

template <typename INT> __device__ static void place_of(const volume &v, int64_t i, INT x[3])
{
	for (int d = 0; d < 3; d++) {
		x[d] = (INT)(i % v.dims[d] - v.dims[d] / 2);
		i /= v.dims[d];
	}
}

/* image[voxel] += scale * sum_m s_m e^{+i2pi k.x}; blockIdx.y is the coil. */
template <typename INT, typename REAL, typename REAL2>
__global__ static void adjoint(volume vol, int64_t n_samples, const double *k, const REAL2 *samples, double scale, REAL2 *image)
{
	__shared__ input<INT, REAL2> chunk[CHUNK];
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double re = 0, im = 0;
	INT x[3];

	samples += blockIdx.y * n_samples;
	image += blockIdx.y * vol.n;
	place_of(vol, i, x);
	for (int64_t first = 0; first < n_samples; first += CHUNK) {
		int64_t left = n_samples - first < CHUNK ? n_samples - first : CHUNK;
		REAL sr = 0, si = 0;

		__syncthreads();
		if (threadIdx.x < left) {
			for (int d = 0; d < 3; d++)
				if (vol.dims[d] > 1)
					fixed(k[3 * (first + threadIdx.x) + d], &chunk[threadIdx.x].k[d]);
				else
					chunk[threadIdx.x].k[d] = 0;
			chunk[threadIdx.x].v = samples[first + threadIdx.x];
		}
		__syncthreads();
		for (int64_t j = 0; j < left; j++) {
			REAL c, s, a = chunk[j].v.x, b = chunk[j].v.y;

			cis(phase_of(chunk[j].k, x), &c, &s);
			sr += a * c - b * s;
			si += a * s + b * c;
		}
		re += sr;
		im += si;
	}
	if (i < vol.n) {
		image[i].x += (REAL)(scale * re);
		image[i].y += (REAL)(scale * im);
	}
}

/* samples[m] = scale * sum_x image e^{-i2pi k.x}; a thread a sample, voxels in chunks. */
template <typename INT, typename REAL, typename REAL2>
__global__ static void forward(volume vol, int64_t n_samples, const double *k, const REAL2 *image, double scale, REAL2 *samples)
{
	__shared__ input<INT, REAL2> chunk[CHUNK];
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double re = 0, im = 0;
	INT own[3] = {0, 0, 0};

	samples += blockIdx.y * n_samples;
	image += blockIdx.y * vol.n;
	for (int d = 0; d < 3 && i < n_samples; d++)
		if (vol.dims[d] > 1)
			fixed(k[3 * i + d], &own[d]);
	for (int64_t first = 0; first < vol.n; first += CHUNK) {
		int64_t left = vol.n - first < CHUNK ? vol.n - first : CHUNK;
		REAL sr = 0, si = 0;

		__syncthreads();
		if (threadIdx.x < left) {
			place_of(vol, first + threadIdx.x, chunk[threadIdx.x].k);
			chunk[threadIdx.x].v = image[first + threadIdx.x];
		}
		__syncthreads();
		for (int64_t j = 0; j < left; j++) {
			REAL c, s, a = chunk[j].v.x, b = chunk[j].v.y;

			cis(phase_of(chunk[j].k, own), &c, &s);
			sr += a * c + b * s;
			si += b * c - a * s;
		}
		re += sr;
		im += si;
	}
	if (i < n_samples) {
		samples[i].x = (REAL)(scale * re);
		samples[i].y = (REAL)(scale * im);
	}
}

static int check(fx_math *m, const fx_array *k, const fx_array *samples, const fx_array *image, volume *vol, int64_t *coils)
{
	int64_t n_samples = k->dims[1];

	*vol = {{image->dims[0], image->dims[1], image->dims[2]}, image->dims[0] * image->dims[1] * image->dims[2]};
	*coils = n_samples > 0 ? samples->n / n_samples : 0;
	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * n_samples)
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)n_samples);
	if ((samples->type != FX_CF32 && samples->type != FX_CF64) || image->type != samples->type ||
		samples->n != n_samples * *coils || (n_samples > 0 && image->n != vol->n * *coils) || *coils > 65535)
		return fx_math_fail(m, FX_EINVAL, "samples {%lld, ...} of %s, %lld in all, and an image of %s, %lld in all, do not belong "
			"together", (long long)samples->dims[0], fx_type_name(samples->type), (long long)samples->n,
			fx_type_name(image->type), (long long)image->n);
	return FX_OK;
}

int fxi_cuda_direct_adjoint(fx_math *m, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	volume vol;
	int64_t coils, n = k->dims[1];
	int status = check(m, k, samples, image, &vol, &coils);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0 || samples->n == 0)
		return status;
	const double *kd = (const double *)use.in(k);
	const void *s = use.in(samples);
	void *to = use.out(image);
	if (use.ready() != FX_OK)
		return use.ready();
	dim3 grid((unsigned)((vol.n + THREADS - 1) / THREADS), (unsigned)coils);
	if (samples->type == FX_CF32)
		adjoint<uint32_t, float, float2><<<grid, THREADS, 0, fxi_stream_of(m)>>>(vol, n, kd, (const float2 *)s, scale, (float2 *)to);
	else
		adjoint<uint64_t, double, double2><<<grid, THREADS, 0, fxi_stream_of(m)>>>(vol, n, kd, (const double2 *)s, scale,
			(double2 *)to);
	return use.done("the direct sums");
}

int fxi_cuda_direct_forward(fx_math *m, const fx_array *k, const fx_array *image, double scale, fx_array *samples)
{
	volume vol;
	int64_t coils, n = k->dims[1];
	int status = check(m, k, samples, image, &vol, &coils);
	fxi_use use(m);

	if (status != FX_OK || samples->n == 0)
		return status;
	const double *kd = (const double *)use.in(k);
	const void *from = use.in(image);
	void *to = use.out(samples);
	if (use.ready() != FX_OK)
		return use.ready();
	dim3 grid((unsigned)((n + THREADS - 1) / THREADS), (unsigned)coils);
	if (samples->type == FX_CF32)
		forward<uint32_t, float, float2><<<grid, THREADS, 0, fxi_stream_of(m)>>>(vol, n, kd, (const float2 *)from, scale,
			(float2 *)to);
	else
		forward<uint64_t, double, double2><<<grid, THREADS, 0, fxi_stream_of(m)>>>(vol, n, kd, (const double2 *)from, scale,
			(double2 *)to);
	return use.done("the direct sums");
}

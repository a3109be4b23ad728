/* SPDX-License-Identifier: MIT */
/*
 * ladder.cu - F^H D by the steps of Kirk & Hwu's chapter on Stone et al. (2008), each a kernel as it stands there: to be compared, with
 * each other and with what a GPU of today does better (direct.cu, separable_*.cu). Phases are single precision, 2 pi (kx x + ky y + kz z), so
 * each is off by up to 2^-24 of its own size: some 1e-5 of the result at 128 voxels an axis.
 *
 * Constant memory belongs to the device, not to a stream: whoever uses it holds a lock until its kernels are through.
 *
 * sm_75 to sm_90: the same path.
 */
#include "ladder.cuh"

#include <mutex>

#define THREADS 256

static std::mutex constant_lock;
static __constant__ float k_c[5][FXI_LADDER_CHUNK];
static __constant__ fxi_ladder_sample all_c[FXI_LADDER_CHUNK / 2]; /* 64 kB hold no more beside the other */

__device__ static float phase_of(float kx, float ky, float kz, float x, float y, float z)
{
	return FXI_LADDER_TWO_PI * (kx * x + ky * y + kz * z);
}

/* A thread a sample, which adds to all voxels. */
__global__ static void scatter(fxi_ladder l)
{
	int m = blockIdx.x * THREADS + threadIdx.x;

	if (m >= l.n_samples)
		return;
	for (int64_t n = 0; n < l.n_voxels; n++) {
		float phase = phase_of(l.kx[m], l.ky[m], l.kz[m], l.x[n], l.y[n], l.z[n]);
		float c = cosf(phase), s = sinf(phase);

		atomicAdd(&l.r_out[n], l.r_mu[m] * c - l.i_mu[m] * s);
		atomicAdd(&l.i_out[n], l.i_mu[m] * c + l.r_mu[m] * s);
	}
}

/* A thread a voxel; voxel and sums stay in memory, as the compiler must leave them there. */
__global__ static void gather(fxi_ladder l)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	for (int m = 0; m < l.n_samples; m++) {
		float phase = phase_of(l.kx[m], l.ky[m], l.kz[m], l.x[n], l.y[n], l.z[n]);
		float c = cosf(phase), s = sinf(phase);

		*(volatile float *)&l.r_out[n] = l.r_out[n] + l.r_mu[m] * c - l.i_mu[m] * s;
		*(volatile float *)&l.i_out[n] = l.i_out[n] + l.i_mu[m] * c + l.r_mu[m] * s;
	}
}

/* Voxel and sums in registers. */
__global__ static void registers(fxi_ladder l)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	float x = l.x[n], y = l.y[n], z = l.z[n], r = l.r_out[n], i = l.i_out[n];
	for (int m = 0; m < l.n_samples; m++) {
		float phase = phase_of(l.kx[m], l.ky[m], l.kz[m], x, y, z), c = cosf(phase), s = sinf(phase);

		r += l.r_mu[m] * c - l.i_mu[m] * s;
		i += l.i_mu[m] * c + l.r_mu[m] * s;
	}
	l.r_out[n] = r;
	l.i_out[n] = i;
}

/* A chunk of samples in constant memory, an array each. */
__global__ static void constant(fxi_ladder l, int chunk)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	float x = l.x[n], y = l.y[n], z = l.z[n], r = l.r_out[n], i = l.i_out[n];
	for (int m = 0; m < chunk; m++) {
		float phase = phase_of(k_c[0][m], k_c[1][m], k_c[2][m], x, y, z), c = cosf(phase), s = sinf(phase);

		r += k_c[3][m] * c - k_c[4][m] * s;
		i += k_c[4][m] * c + k_c[3][m] * s;
	}
	l.r_out[n] = r;
	l.i_out[n] = i;
}

/* The same as structures; with the special function units' sine and cosine where `hardware`. */
template <bool hardware> __global__ static void structures(fxi_ladder l, int chunk)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	float x = l.x[n], y = l.y[n], z = l.z[n], r = l.r_out[n], i = l.i_out[n];
	for (int m = 0; m < chunk; m++) {
		float phase = phase_of(all_c[m].kx, all_c[m].ky, all_c[m].kz, x, y, z);
		float c = hardware ? __cosf(phase) : cosf(phase), s = hardware ? __sinf(phase) : sinf(phase);

		r += all_c[m].r_mu * c - all_c[m].i_mu * s;
		i += all_c[m].i_mu * c + all_c[m].r_mu * s;
	}
	l.r_out[n] = r;
	l.i_out[n] = i;
}

/* ---- into the chapter's arrays and back ------------------------------------------------------ */

__global__ static void take_samples(fxi_ladder l, const double *k, const float2 *samples, bool flat_x, bool flat_y, bool flat_z)
{
	int m = blockIdx.x * THREADS + threadIdx.x;

	if (m >= l.n_samples)
		return;
	/* an axis of one voxel is not transformed */
	fxi_ladder_sample s = {flat_x ? 0 : (float)k[3 * m], flat_y ? 0 : (float)k[3 * m + 1], flat_z ? 0 : (float)k[3 * m + 2],
		samples[m].x, samples[m].y};
	l.kx[m] = s.kx;
	l.ky[m] = s.ky;
	l.kz[m] = s.kz;
	l.r_mu[m] = s.r_mu;
	l.i_mu[m] = s.i_mu;
	l.all[m] = s;
}

__global__ static void take_voxels(fxi_ladder l, int nx, int ny, int nz)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	l.x[n] = (float)(n % nx - nx / 2);
	l.y[n] = (float)(n / nx % ny - ny / 2);
	l.z[n] = (float)(n / nx / ny - nz / 2);
	l.r_out[n] = l.i_out[n] = 0;
}

__global__ static void put(fxi_ladder l, double scale, float2 *image)
{
	int64_t n = blockIdx.x * (int64_t)THREADS + threadIdx.x;

	if (n >= l.n_voxels)
		return;
	image[n].x += (float)(scale * l.r_out[n]);
	image[n].y += (float)(scale * l.i_out[n]);
}

static unsigned blocks_for(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

static int by_chunks(fx_math *m, int kernel, const fxi_ladder *l)
{
	const float *arrays[] = {l->kx, l->ky, l->kz, l->r_mu, l->i_mu};
	int most = kernel == FX_DIRECT_CONSTANT ? FXI_LADDER_CHUNK : FXI_LADDER_CHUNK / 2;
	cudaStream_t stream = fxi_stream_of(m);
	cudaError_t e = cudaSuccess;

	for (int first = 0; first < l->n_samples && e == cudaSuccess; first += most) {
		int n = l->n_samples - first < most ? l->n_samples - first : most;

		if (kernel == FX_DIRECT_CONSTANT) {
			for (int a = 0; a < 5 && e == cudaSuccess; a++)
				e = cudaMemcpyToSymbolAsync(k_c, arrays[a] + first, (size_t)n * sizeof(float), (size_t)a * sizeof k_c[0],
					cudaMemcpyDeviceToDevice, stream);
			constant<<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l, n);
			continue;
		}
		e = cudaMemcpyToSymbolAsync(all_c, l->all + first, (size_t)n * sizeof(fxi_ladder_sample), 0, cudaMemcpyDeviceToDevice, stream);
		if (kernel == FX_DIRECT_AOS)
			structures<false><<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l, n);
		else
			structures<true><<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l, n);
	}
	return e == cudaSuccess ? fxi_cuda_launched(m, "the chapter's sums") : fxi_cuda_check(m, e, "filling constant memory");
}

static int climb(fx_math *m, const fx_direct_plan *plan, const fxi_ladder *l)
{
	cudaStream_t stream = fxi_stream_of(m);
	int status;

	switch (plan->kernel) {
	case FX_DIRECT_SCATTER:
		scatter<<<blocks_for(l->n_samples), THREADS, 0, stream>>>(*l);
		return fxi_cuda_launched(m, "the chapter's sums");
	case FX_DIRECT_GATHER:
		gather<<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l);
		return fxi_cuda_launched(m, "the chapter's sums");
	case FX_DIRECT_REGISTERS:
		registers<<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l);
		return fxi_cuda_launched(m, "the chapter's sums");
	default:
		break;
	}
	std::lock_guard<std::mutex> hold(constant_lock);
	status = plan->kernel == FX_DIRECT_TUNED ? fxi_ladder_tuned(m, plan, l) : by_chunks(m, plan->kernel, l);
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(stream), "the chapter's sums");
	return status;
}

static int one_coil(fx_math *m, const fx_direct_plan *plan, const fx_array *image, const double *k, const float2 *samples, double scale,
	const fxi_ladder *l, float2 *to)
{
	cudaStream_t stream = fxi_stream_of(m);
	const int64_t *d = image->dims;
	int status;

	take_samples<<<blocks_for(l->n_samples), THREADS, 0, stream>>>(*l, k, samples, d[0] == 1, d[1] == 1, d[2] == 1);
	take_voxels<<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l, (int)d[0], (int)d[1], (int)d[2]);
	status = climb(m, plan, l);
	if (status == FX_OK)
		put<<<blocks_for(l->n_voxels), THREADS, 0, stream>>>(*l, scale, to);
	return status;
}

int fxi_cuda_direct_ladder(fx_math *m, const fx_direct_plan *plan, const fx_array *k, const fx_array *samples, double scale, fx_array *image)
{
	int64_t n = k->dims[1], voxels = image->dims[0] * image->dims[1] * image->dims[2];
	fx_direct_plan p = *plan;
	int status = fxi_cuda_direct_need(m, k, samples, image);
	fxi_use use(m);
	fxi_ladder l = {};

	if (status == FX_OK)
		status = fxi_ladder_plan(m, &p);
	if (status == FX_OK && (samples->type != FX_CF32 || n > INT32_MAX / 8))
		status = fx_math_fail(m, FX_EINVAL, "the chapter's kernels are of single precision and up to 2^28 samples");
	if (status != FX_OK || image->n == 0 || samples->n == 0)
		return status;
	const double *kd = (const double *)use.in(k);
	const float2 *from = (const float2 *)use.in(samples);
	float2 *to = (float2 *)use.out(image);
	fxi_work work(m, 10 * n + 5 * voxels, sizeof(float));
	status = use.ready() != FX_OK ? use.ready() : work.status();
	if (status != FX_OK)
		return status;
	l.n_samples = (int)n;
	l.n_voxels = voxels;
	float *at = (float *)work.get(), **of_samples[] = {&l.kx, &l.ky, &l.kz, &l.r_mu, &l.i_mu};
	float **of_voxels[] = {&l.x, &l.y, &l.z, &l.r_out, &l.i_out};
	for (float **a : of_samples)
		*a = at, at += n;
	l.all = (fxi_ladder_sample *)at;
	at += 5 * n;
	for (float **a : of_voxels)
		*a = at, at += voxels;
	for (int64_t c = 0; c < samples->n / n && status == FX_OK; c++)
		status = one_coil(m, &p, image, kd, from + c * n, scale, &l, to + c * voxels);
	return status == FX_OK ? use.done("the chapter's sums") : status;
}

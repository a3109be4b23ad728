/* SPDX-License-Identifier: MIT */
/* toeplitz_spectrum.cu - the real spectrum of a Hermitian Q, in the FFT's own order, and the check that it is real. */
#include "cuda.cuh"

#include <cmath>

struct box {
	int64_t n[3], f[3];
};

static unsigned blocks(int64_t n)
{
	return (unsigned)((n + 255) / 256);
}

/* Lag -n of an axis (index 0) is never used, and without a lag +n beside it the spectrum would not be real. */
__global__ static void clear_unused(box b, float2 *q)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, rest = i;

	if (i >= b.f[0] * b.f[1] * b.f[2])
		return;
	for (int d = 0; d < 3; d++) {
		if (b.f[d] > 1 && rest % b.f[d] == 0)
			q[i] = make_float2(0, 0);
		rest /= b.f[d];
	}
}

/* The centred transform into the FFT's order: real parts to `out`, the part that has to be 0 to `q` in place. */
__global__ static void gather_real(box b, const float2 *q, float *out, double *sums)
{
	__shared__ double re2[256], im2[256];
	int64_t n = b.f[0] * b.f[1] * b.f[2];
	double re = 0, im = 0;

	for (int64_t i = blockIdx.x * (int64_t)256 + threadIdx.x; i < n; i += gridDim.x * (int64_t)256) {
		int64_t rest = i, from = 0, step = 1;

		for (int d = 0; d < 3; d++) {
			from += step * ((rest % b.f[d] + b.f[d] / 2) % b.f[d]);
			rest /= b.f[d];
			step *= b.f[d];
		}
		float2 v = q[from];
		out[i] = v.x;
		re += (double)v.x * v.x;
		im += (double)v.y * v.y;
	}
	re2[threadIdx.x] = re;
	im2[threadIdx.x] = im;
	__syncthreads();
	for (int half = 128; half > 0; half /= 2) {
		if (threadIdx.x < half) {
			re2[threadIdx.x] += re2[threadIdx.x + half];
			im2[threadIdx.x] += im2[threadIdx.x + half];
		}
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		sums[2 * blockIdx.x] = re2[0];
		sums[2 * blockIdx.x + 1] = im2[0];
	}
}

#define SUM_BLOCKS 256

static int check_sums(fx_math *m, const double *sums)
{
	double re2 = 0, im2 = 0;

	for (int i = 0; i < SUM_BLOCKS; i++) {
		re2 += sums[2 * i];
		im2 += sums[2 * i + 1];
	}
	if (!std::isfinite(re2) || !std::isfinite(im2))
		return fx_math_fail(m, FX_EDATA, "Q holds numbers that are not finite; look for them in the trajectory "
						 "and the voxel function");
	/* Rounding leaves 1e-6 at most, the NUFFT's widest tolerance 1e-2; a Q of something else is off by about 1. */
	if (im2 > 0.03 * 0.03 * re2)
		return fx_math_fail(m, FX_EDATA,
			"Q is not Hermitian: its spectrum's imaginary part is %.2g of the real one, so it is not that of F^H F",
			sqrt(im2 / re2));
	return FX_OK;
}

int fxi_cuda_toeplitz_spectrum(fx_math *m, fx_array *q, fx_array *spectrum)
{
	box b;
	double sums[2 * SUM_BLOCKS];
	int status;

	if (q->type != FX_CF32 || spectrum->type != FX_F32 || q->n != q->dims[0] * q->dims[1] * q->dims[2])
		return fx_math_fail(m, FX_EINVAL, "toeplitz_spectrum takes one cf32 Q and gives an f32 spectrum");
	for (int d = 0; d < 3; d++) {
		if (spectrum->dims[d] != q->dims[d] || (q->dims[d] > 1 && q->dims[d] % 2))
			return fx_math_fail(m, FX_EINVAL,
				"toeplitz_spectrum: axis %d of Q has %lld and of the spectrum %lld points; both are twice "
				"the image's, or 1",
				d, (long long)q->dims[d], (long long)spectrum->dims[d]);
		b.f[d] = q->dims[d];
		b.n[d] = q->dims[d] > 1 ? q->dims[d] / 2 : 1;
	}
	if (q->n == 0)
		return FX_OK;
	{
		fxi_use use(m);
		float2 *at = (float2 *)use.out(q);

		if (use.ready() != FX_OK)
			return use.ready();
		clear_unused<<<blocks(q->n), 256, 0, fxi_stream_of(m)>>>(b, at);
		status = use.done("clearing unused lags of Q");
	}
	if (status == FX_OK)
		status = fxi_cuda_fft(m, q, -1, 1);
	if (status != FX_OK)
		return status;
	fxi_use use(m);
	fxi_work partial(m, 2 * SUM_BLOCKS, sizeof(double));
	const float2 *at = (const float2 *)use.in(q);
	float *out = (float *)use.out(spectrum);
	status = partial.status() == FX_OK ? use.ready() : partial.status();
	if (status != FX_OK)
		return status;
	gather_real<<<SUM_BLOCKS, 256, 0, fxi_stream_of(m)>>>(b, at, out, (double *)partial.get());
	status = use.done("the spectrum of Q");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpyAsync(sums, partial.get(), sizeof sums, cudaMemcpyDeviceToHost, fxi_stream_of(m)),
			"the spectrum of Q");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "the spectrum of Q");
	return status == FX_OK ? check_sums(m, sums) : status;
}

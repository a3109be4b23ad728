/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.cu - block-Toeplitz products: a convolution on the doubled grid, by pruned FFT passes.
 *
 * Where every axis is 1 or a power of two from 16 to 256: own kernels (toeplitz_pass.cuh), an axis a pass. x and y grow from n to
 * 2 n as they are transformed and z, the last, is transformed, multiplied by the spectrum and transformed back where it is,
 * in registers and shared memory; then y and x shrink again. Zeros are neither stored nor read, so that 128^3 moves
 * 503 MB, and no padded volume exists.
 *
 * Other sizes: planes padded in x and y go through cuFFT, and z in slabs of columns, so that a padded volume does not
 * exist there either.
 */
#include "cuda.cuh"
#include "toeplitz_pass.cuh"

#include <cmath>

struct box {
	int64_t n[3], f[3];
};

/* ---- own passes ------------------------------------------------------------------------------- */

static bool own_length(int64_t n)
{
	return n == 16 || n == 32 || n == 64 || n == 128 || n == 256;
}

/* Calls a pass with its doubled length as a constant. */
#define WITH_LENGTH(n, CALL) \
	switch (2 * (n)) { \
	case 32: CALL(32); break; \
	case 64: CALL(64); break; \
	case 128: CALL(128); break; \
	case 256: CALL(256); break; \
	default: CALL(512); break; \
	}

static int own_passes(fx_math *m, const box *b, int64_t n_coils, const float *spectrum, const float2 *x, float2 *y)
{
	int64_t *n = (int64_t *)b->n, *f = (int64_t *)b->f;
	float norm = (float)(1 / ((double)f[0] * (double)f[1] * (double)f[2]));
	fxi_work wide(m, f[0] * n[1] * n[2] * n_coils, sizeof(float2));
	fxi_work plane(m, n[2] > 1 ? f[0] * f[1] * n[2] * n_coils : 0, sizeof(float2));
	cudaStream_t s = fxi_stream_of(m);
	float2 *a = (float2 *)wide.get(), *c = (float2 *)plane.get();

	if (wide.status() != FX_OK || plane.status() != FX_OK)
		return wide.status() != FX_OK ? wide.status() : plane.status();
#define GROW_X(L) fxi_grow_rows<L>(s, n[1] * n[2] * n_coils, x, a)
#define SHRINK_X(L) fxi_shrink_rows<L>(s, n[1] * n[2] * n_coils, a, y)
	/* lines along y lie f[0] apart, and along z f[0] f[1] */
#define GROW_Y(L) fxi_grow_columns<L>(s, f[0], n[2] * n_coils, a, c)
#define SHRINK_Y(L) fxi_shrink_columns<L>(s, f[0], n[2] * n_coils, c, a)
#define TURN_Y(L) fxi_turn_columns<L>(s, f[0], n_coils, norm, spectrum, a)
#define TURN_Z(L) fxi_turn_columns<L>(s, f[0] * f[1], n_coils, norm, spectrum, c)
	WITH_LENGTH(n[0], GROW_X)
	if (n[2] > 1) {
		WITH_LENGTH(n[1], GROW_Y)
		WITH_LENGTH(n[2], TURN_Z)
		WITH_LENGTH(n[1], SHRINK_Y)
	} else {
		WITH_LENGTH(n[1], TURN_Y)
	}
	WITH_LENGTH(n[0], SHRINK_X)
	return FX_OK;
}

/* ---- any size, through cuFFT ------------------------------------------------------------------ */

/* planes {f0, f1, n2} of one coil from its image, zeros beside it */
__global__ static void pad_planes(box b, const float2 *x, float2 *planes)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, ix = i % b.f[0], iy = i / b.f[0] % b.f[1], iz = i / (b.f[0] * b.f[1]);

	if (iz < b.n[2])
		planes[i] = ix < b.n[0] && iy < b.n[1] ? x[ix + b.n[0] * (iy + b.n[1] * iz)] : make_float2(0, 0);
}

__global__ static void crop_planes(box b, const float2 *planes, float2 *y)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, ix = i % b.n[0], iy = i / b.n[0] % b.n[1], iz = i / (b.n[0] * b.n[1]);

	if (iz < b.n[2])
		y[i] = planes[ix + b.f[0] * (iy + b.f[1] * iz)];
}

/* columns [first, first + count) of the planes as lines along z, padded */
__global__ static void columns_out(box b, int64_t first, int64_t count, const float2 *planes, float2 *lines)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, column = i % count, z = i / count;

	if (z < b.f[2])
		lines[column * b.f[2] + z] = z < b.n[2] ? planes[first + column + b.f[0] * b.f[1] * z] : make_float2(0, 0);
}

__global__ static void columns_in(box b, int64_t first, int64_t count, const float2 *lines, float2 *planes)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, column = i % count, z = i / count;

	if (z < b.n[2])
		planes[first + column + b.f[0] * b.f[1] * z] = lines[column * b.f[2] + z];
}

__global__ static void times_spectrum(box b, int64_t first, int64_t count, float norm, const float *spectrum, float2 *lines)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, column = i % count, z = i / count;

	if (z >= b.f[2])
		return;
	float factor = norm * spectrum[first + column + b.f[0] * b.f[1] * z];
	float2 v = lines[column * b.f[2] + z];
	lines[column * b.f[2] + z] = make_float2(factor * v.x, factor * v.y);
}

static unsigned blocks(int64_t n)
{
	return (unsigned)((n + 255) / 256);
}

/* A transform over dims in place; axes of 1 everywhere are nothing to do. */
static int transform(fx_math *m, const int64_t dims[3], int64_t batch, int direction, float2 *a)
{
	cufftHandle plan;
	int status;

	if (dims[0] * dims[1] * dims[2] == 1)
		return FX_OK;
	status = fxi_cuda_plan_of(m, FX_CF32, dims, batch, &plan);
	return status == FX_OK ? fxi_cufft_check(m, cufftExecC2C(plan, a, a, direction), "a Toeplitz pass") : status;
}

static int slab_pass(fx_math *m, const box *b, int64_t first, int64_t count, float norm, const float *spectrum, float2 *planes,
	float2 *lines)
{
	const int64_t line[3] = {b->f[2], 1, 1};
	cudaStream_t s = fxi_stream_of(m);
	int status;

	columns_out<<<blocks(count * b->f[2]), 256, 0, s>>>(*b, first, count, planes, lines);
	status = transform(m, line, count, CUFFT_FORWARD, lines);
	if (status != FX_OK)
		return status;
	times_spectrum<<<blocks(count * b->f[2]), 256, 0, s>>>(*b, first, count, norm, spectrum, lines);
	status = transform(m, line, count, CUFFT_INVERSE, lines);
	if (status == FX_OK)
		columns_in<<<blocks(count * b->n[2]), 256, 0, s>>>(*b, first, count, lines, planes);
	return status;
}

static int any_size(fx_math *m, const box *b, int64_t n_coils, const float *spectrum, const float2 *x, float2 *y)
{
	int64_t columns = b->f[0] * b->f[1], slab = (columns + 7) / 8, image = b->n[0] * b->n[1] * b->n[2];
	const int64_t plane[3] = {b->f[0], b->f[1], 1};
	float norm = (float)(1 / ((double)columns * (double)b->f[2]));
	fxi_work planes(m, columns * b->n[2], sizeof(float2)), lines(m, slab * b->f[2], sizeof(float2));
	float2 *p = (float2 *)planes.get(), *l = (float2 *)lines.get();
	int status = planes.status() != FX_OK ? planes.status() : lines.status();

	for (int64_t c = 0; status == FX_OK && c < n_coils; c++) {
		pad_planes<<<blocks(columns * b->n[2]), 256, 0, fxi_stream_of(m)>>>(*b, x + c * image, p);
		status = transform(m, plane, b->n[2], CUFFT_FORWARD, p);
		for (int64_t first = 0; status == FX_OK && first < columns; first += slab)
			status = slab_pass(m, b, first, columns - first < slab ? columns - first : slab, norm, spectrum, p, l);
		if (status == FX_OK)
			status = transform(m, plane, b->n[2], CUFFT_INVERSE, p);
		if (status == FX_OK)
			crop_planes<<<blocks(image), 256, 0, fxi_stream_of(m)>>>(*b, p, y + c * image);
	}
	return status;
}

/* True where a grid of doubled sizes belongs to these images. */
static bool doubled(const fx_array *image, const fx_array *grid)
{
	for (int d = 0; d < 3; d++)
		if (grid->dims[d] != (image->dims[d] > 1 ? 2 * image->dims[d] : 1))
			return false;
	return grid->n == grid->dims[0] * grid->dims[1] * grid->dims[2];
}

int fxi_cuda_toeplitz_apply(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y)
{
	box b;
	fxi_use use(m);
	int64_t n_coils;
	int status;

	if (spectrum->type != FX_F32 || x->type != FX_CF32 || !fx_array_same_shape(x, y) || !doubled(x, spectrum))
		return fx_math_fail(m, FX_EINVAL,
			"toeplitz_apply: a spectrum of %lld x %lld x %lld does not belong to images of %lld x %lld x %lld",
			(long long)spectrum->dims[0], (long long)spectrum->dims[1], (long long)spectrum->dims[2],
			(long long)x->dims[0], (long long)x->dims[1], (long long)x->dims[2]);
	if (x->n == 0)
		return FX_OK;
	for (int d = 0; d < 3; d++) {
		b.n[d] = x->dims[d];
		b.f[d] = spectrum->dims[d];
	}
	n_coils = x->n / (b.n[0] * b.n[1] * b.n[2]);
	const float *s = (const float *)use.in(spectrum);
	const float2 *from = (const float2 *)use.in(x);
	float2 *to = (float2 *)use.out(y);
	if (use.ready() != FX_OK)
		return use.ready();
	if (own_length(b.n[0]) && own_length(b.n[1]) && (b.n[2] == 1 || own_length(b.n[2])))
		status = own_passes(m, &b, n_coils, s, from, to);
	else
		status = any_size(m, &b, n_coils, s, from, to);
	return status == FX_OK ? use.done("the Toeplitz product") : status;
}

/* ---- the spectrum of Q ------------------------------------------------------------------------ */

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

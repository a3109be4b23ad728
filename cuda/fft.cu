/* SPDX-License-Identifier: MIT */
/*
 * fft.cu - the centred FFT over the first three axes. cuFFT has its origin at index 0; with c = floor(N/2),
 * (i - c)(j - c) = ij - ci - cj + c^2, so that a phase before and one after move both origins, for even and odd N alike.
 * The phases' angles are integers modulo N, taken in double.
 */
#include "cuda.cuh"

#include <cmath>

void fxi_cuda_plans_free(fxi_cuda_queue *q)
{
	for (int i = 0; i < q->n_plans; i++)
		cufftDestroy(q->plans[i].handle);
	q->n_plans = 0;
	if (q->plan_work)
		cudaFreeAsync(q->plan_work, q->stream->stream);
	q->plan_work = nullptr;
	q->plan_work_bytes = 0;
}

static int make_plan(fx_math *m, int type, const int64_t dims[3], int64_t batch, cufftHandle *plan, size_t *work)
{
	bool real = type == FX_F32 || type == FX_F64;
	int n[3], rank = 0;
	int64_t each = 1, half = dims[0] / 2 + 1;
	cufftType kind = type == FX_F32 ? CUFFT_R2C : type == FX_F64 ? CUFFT_D2Z : type == FX_CF32 ? CUFFT_C2C : CUFFT_Z2Z;
	cufftResult e;

	/* cuFFT lists the slowest axis first; a real transform halves the fastest, which must be there */
	for (int d = 2; d >= 0; d--)
		if (dims[d] > 1 || (real && d == 0))
			n[rank++] = (int)dims[d];
	for (int i = 0; i < rank; i++)
		each *= n[i];
	e = cufftCreate(plan);
	if (e != CUFFT_SUCCESS)
		return fxi_cufft_check(m, e, "planning");
	e = cufftSetAutoAllocation(*plan, 0);
	if (e == CUFFT_SUCCESS)
		e = cufftMakePlanMany(*plan, rank, n, nullptr, 1, (int)each, nullptr, 1, (int)(real ? each / dims[0] * half : each), kind,
			(int)batch, work);
	if (e != CUFFT_SUCCESS)
		cufftDestroy(*plan);
	return fxi_cufft_check(m, e, "planning");
}

/* All plans of a queue run behind each other, so the largest one's work memory is enough for all. */
static int use_plan(fx_math *m, fxi_cuda_plan *p, cufftHandle *plan)
{
	fxi_cuda_queue *q = fxi_queue(m);
	cufftResult e;
	int status;

	if (p->work > q->plan_work_bytes) {
		if (q->plan_work)
			cudaFreeAsync(q->plan_work, q->stream->stream);
		q->plan_work = nullptr;
		q->plan_work_bytes = 0;
		status = fxi_cuda_check(m, cudaMallocAsync(&q->plan_work, p->work, q->stream->stream), "work memory of a Fourier transform");
		if (status != FX_OK)
			return status;
		q->plan_work_bytes = p->work;
	}
	p->used = ++q->clock;
	*plan = p->handle;
	e = cufftSetStream(p->handle, q->stream->stream);
	if (e == CUFFT_SUCCESS && p->work > 0)
		e = cufftSetWorkArea(p->handle, q->plan_work);
	return fxi_cufft_check(m, e, "planning");
}

int fxi_cuda_plan_of(fx_math *m, int type, const int64_t dims[3], int64_t batch, cufftHandle *plan)
{
	fxi_cuda_queue *q = fxi_queue(m);
	fxi_cuda_plan made = {{dims[0], dims[1], dims[2]}, batch, type, 0, 0, 0};
	int at = 0, status;

	for (int i = 0; i < q->n_plans; i++) {
		fxi_cuda_plan *p = &q->plans[i];

		if (p->type == type && p->batch == batch && p->dims[0] == dims[0] && p->dims[1] == dims[1] && p->dims[2] == dims[2])
			return use_plan(m, p, plan);
		if (p->used < q->plans[at].used)
			at = i;
	}
	if (q->n_plans == FXI_CUDA_PLANS) {
		cufftDestroy(q->plans[at].handle);
		q->plans[at] = q->plans[--q->n_plans];
	}
	status = make_plan(m, type, dims, batch, &made.handle, &made.work);
	if (status != FX_OK)
		return status;
	q->plans[q->n_plans] = made;
	return use_plan(m, &q->plans[q->n_plans++], plan);
}

struct shape {
	int64_t dims[3], n;
};

/* e^{-sign 2 pi i c x / N} of the place x of an axis. */
__device__ static double2 turn(int64_t n, int64_t x, int sign)
{
	double s, c;

	if (n == 1)
		return make_double2(1, 0);
	sincospi(-2.0 * sign * (double)(n / 2 * x % n) / (double)n, &s, &c);
	return make_double2(c, s);
}

template <typename REAL2> __global__ static void phases(shape l, int sign, double2 factor, REAL2 *a)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	double2 p = factor;

	if (i >= l.n)
		return;
	int64_t rest = i;
	for (int d = 0; d < 3; d++) {
		double2 t = turn(l.dims[d], rest % l.dims[d], sign);

		p = make_double2(p.x * t.x - p.y * t.y, p.x * t.y + p.y * t.x);
		rest /= l.dims[d];
	}
	REAL2 v = a[i];
	double x = p.x * v.x - p.y * v.y, y = p.x * v.y + p.y * v.x;
	v.x = x;
	v.y = y;
	a[i] = v;
}

template <typename REAL2> static void multiply(fx_math *m, const shape *l, int sign, double2 factor, void *a)
{
	phases<REAL2><<<(unsigned)((l->n + 255) / 256), 256, 0, fxi_stream_of(m)>>>(*l, sign, factor, (REAL2 *)a);
}

int fxi_cuda_fft(fx_math *m, fx_array *a, int sign, double scale)
{
	shape l = {{a->dims[0], a->dims[1], a->dims[2]}, a->n};
	int64_t each = l.dims[0] * l.dims[1] * l.dims[2];
	double angle = 0;
	cufftHandle plan;
	fxi_use use(m);
	int status = FX_OK;

	if (a->type != FX_CF32 && a->type != FX_CF64)
		return fx_math_fail(m, FX_EINVAL, "a Fourier transform takes cf32 or cf64, not %s", fx_type_name(a->type));
	if (a->n == 0)
		return FX_OK;
	void *data = use.out(a);
	if (use.ready() != FX_OK)
		return use.ready();
	for (int d = 0; d < 3; d++) {
		int64_t c = l.dims[d] / 2;

		angle += l.dims[d] > 1 ? (double)(c * c % l.dims[d]) / (double)l.dims[d] : 0;
	}
	double2 after = make_double2(scale * cos(2 * M_PI * sign * angle), scale * sin(2 * M_PI * sign * angle));
	if (each == 1)
		after = make_double2(scale, 0);
	if (a->type == FX_CF32)
		multiply<float2>(m, &l, sign, make_double2(1, 0), data);
	else
		multiply<double2>(m, &l, sign, make_double2(1, 0), data);
	if (each > 1) {
		status = fxi_cuda_plan_of(m, a->type, l.dims, a->n / each, &plan);
		if (status == FX_OK && a->type == FX_CF32)
			status = fxi_cufft_check(m, cufftExecC2C(plan, (cufftComplex *)data, (cufftComplex *)data,
				sign < 0 ? CUFFT_FORWARD : CUFFT_INVERSE), "a Fourier transform");
		else if (status == FX_OK)
			status = fxi_cufft_check(m, cufftExecZ2Z(plan, (cufftDoubleComplex *)data, (cufftDoubleComplex *)data,
				sign < 0 ? CUFFT_FORWARD : CUFFT_INVERSE), "a Fourier transform");
	}
	if (status != FX_OK)
		return status;
	if (a->type == FX_CF32)
		multiply<float2>(m, &l, sign, after, data);
	else
		multiply<double2>(m, &l, sign, after, data);
	return use.done("a Fourier transform");
}

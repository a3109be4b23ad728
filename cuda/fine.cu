/* SPDX-License-Identifier: MIT */
/*
 * fine.cu - between the oversampled grid and the image. Both are centred, and the fine grid is even: with j = x - floor(N/2) the
 * transform is a plain one at frequency j modulo F, times (-1)^j, which goes into the weights that divide by the
 * kernel's transform.
 */
#include "nufft.cuh"

#include <vector>

struct shape {
	int64_t dims[3], fine[3], image, cells;
};

/* weights of all three axes, one after the other: scale / kernel transform, times (-1)^j */
template <typename REAL> static int weights_new(fx_math *m, const fx_fine_grid *g, double scale, fxi_work *out)
{
	std::vector<double> at, value;
	std::vector<REAL> w;
	int status;

	for (int d = 0; d < 3; d++) {
		at.assign((size_t)g->dims[d], 0);
		value.assign((size_t)g->dims[d], 1);
		for (int64_t i = 0; i < g->dims[d]; i++)
			at[(size_t)i] = (double)(i - g->dims[d] / 2) / (double)g->fine[d];
		if (g->dims[d] > 1)
			fx_fine_kernel_transform(g->width, g->beta, g->dims[d], at.data(), value.data());
		for (int64_t i = 0; i < g->dims[d]; i++)
			w.push_back((REAL)((d == 0 ? scale : 1) * ((i - g->dims[d] / 2) % 2 ? -1 : 1) / value[(size_t)i]));
	}
	/* pageable memory: it is read before this returns */
	status = fxi_cuda_check(m, cudaMemcpyAsync(out->get(), w.data(), w.size() * sizeof(REAL), cudaMemcpyHostToDevice,
		fxi_stream_of(m)), "the kernel's transform");
	return status;
}

__device__ static int64_t index_in_fine(const shape &s, int64_t i, int64_t place[3])
{
	int64_t at = 0, step = 1;

	for (int d = 0; d < 3; d++) {
		int64_t j;

		place[d] = i % s.dims[d];
		i /= s.dims[d];
		j = place[d] - s.dims[d] / 2;
		at += step * (j < 0 ? j + s.fine[d] : j);
		step *= s.fine[d];
	}
	return at;
}

template <typename REAL, typename REAL2> __global__ static void crop(shape s, const REAL *w, const REAL2 *fine, REAL2 *image)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, place[3];

	if (i >= s.image)
		return;
	REAL2 v = fine[blockIdx.y * s.cells + index_in_fine(s, i, place)];
	REAL f = w[place[0]] * w[s.dims[0] + place[1]] * w[s.dims[0] + s.dims[1] + place[2]];
	v.x *= f;
	v.y *= f;
	image[blockIdx.y * s.image + i] = v;
}

/* From half of a real grid's spectrum with exponent -1, {F0/2 + 1, F1, F2}: frequency j of exponent +1 is its conjugate. */
template <typename REAL, typename REAL2> __global__ static void crop_half(shape s, const REAL *w, const REAL2 *half, REAL2 *image)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, row = s.fine[0] / 2 + 1, j[3], rest = i;
	REAL f = 1;
	int64_t offset = 0;

	if (i >= s.image)
		return;
	for (int d = 0; d < 3; d++) {
		int64_t place = rest % s.dims[d];

		rest /= s.dims[d];
		j[d] = place - s.dims[d] / 2;
		f *= w[offset + place];
		offset += s.dims[d];
	}
	bool mirrored = j[0] < 0;
	for (int d = 0; d < 3; d++) {
		if (mirrored)
			j[d] = -j[d];
		j[d] = j[d] < 0 ? j[d] + s.fine[d] : j[d] % s.fine[d];
	}
	REAL2 v = half[blockIdx.y * (row * s.fine[1] * s.fine[2]) + j[0] + row * (j[1] + s.fine[1] * j[2])];
	v.x *= f;
	v.y *= mirrored ? f : -f;
	image[blockIdx.y * s.image + i] = v;
}

template <typename REAL, typename REAL2> __global__ static void pad(shape s, const REAL *w, const REAL2 *image, REAL2 *fine)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, place[3];

	if (i >= s.image)
		return;
	REAL2 v = image[blockIdx.y * s.image + i];
	REAL f = w[place[0] = i % s.dims[0]] * w[s.dims[0] + i / s.dims[0] % s.dims[1]] *
		w[s.dims[0] + s.dims[1] + i / (s.dims[0] * s.dims[1])];
	v.x *= f;
	v.y *= f;
	fine[blockIdx.y * s.cells + index_in_fine(s, i, place)] = v;
}

static int prepare(fx_math *m, const fx_fine_grid *g, const fx_array *fine, const fx_array *image, shape *s, int64_t *n)
{
	int status = fxi_cuda_need_fine(m, g, fine, n);

	if (status != FX_OK)
		return status;
	for (int d = 0; d < 3; d++) {
		s->dims[d] = g->dims[d];
		s->fine[d] = g->fine[d];
	}
	s->image = g->dims[0] * g->dims[1] * g->dims[2];
	s->cells = g->fine[0] * g->fine[1] * g->fine[2];
	if (image->type != g->type || image->dims[0] != g->dims[0] || image->dims[1] != g->dims[1] || image->dims[2] != g->dims[2] ||
		image->n != s->image * *n || *n > 65535)
		return fx_math_fail(m, FX_EINVAL, "an image of %lld x %lld x %lld %s, %lld in all, where %lld of %lld x %lld x %lld %s belong",
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2], fx_type_name(image->type),
			(long long)image->n, (long long)*n, (long long)g->dims[0], (long long)g->dims[1], (long long)g->dims[2],
			fx_type_name(g->type));
	return FX_OK;
}

static int transform(fx_math *m, const fx_fine_grid *g, int64_t n, int direction, void *fine)
{
	cufftHandle plan;
	int status;

	if (g->fine[0] * g->fine[1] * g->fine[2] == 1)
		return FX_OK;
	status = fxi_cuda_plan_of(m, g->type, g->fine, n, &plan);
	if (status != FX_OK)
		return status;
	if (g->type == FX_CF32)
		return fxi_cufft_check(m, cufftExecC2C(plan, (cufftComplex *)fine, (cufftComplex *)fine, direction), "the fine grid");
	return fxi_cufft_check(m, cufftExecZ2Z(plan, (cufftDoubleComplex *)fine, (cufftDoubleComplex *)fine, direction),
		"the fine grid");
}

static dim3 blocks_for(const shape *s, int64_t n)
{
	return dim3((unsigned)((s->image + 255) / 256), (unsigned)n);
}

/* A real grid, transform by transform: half a spectrum in work memory. */
template <typename REAL, typename REAL2> static int real_to_image(fx_math *m, const fx_fine_grid *g, const shape *s, int64_t n,
	REAL *fine, const REAL *w, REAL2 *image)
{
	fxi_work half(m, (s->fine[0] / 2 + 1) * s->fine[1] * s->fine[2], sizeof(REAL2));
	cufftHandle plan;
	int axes[3], rank = 0, status = half.status();
	cufftResult e;

	for (int d = 2; d >= 0; d--)
		if (g->fine[d] > 1 || d == 0)
			axes[rank++] = (int)g->fine[d];
	if (status != FX_OK)
		return status;
	e = cufftPlanMany(&plan, rank, axes, nullptr, 1, 0, nullptr, 1, 0, g->type == FX_CF32 ? CUFFT_R2C : CUFFT_D2Z, 1);
	if (e == CUFFT_SUCCESS)
		e = cufftSetStream(plan, fxi_stream_of(m));
	for (int64_t i = 0; e == CUFFT_SUCCESS && i < n; i++) {
		if (g->type == FX_CF32)
			e = cufftExecR2C(plan, (cufftReal *)(fine + i * s->cells), (cufftComplex *)half.get());
		else
			e = cufftExecD2Z(plan, (cufftDoubleReal *)(fine + i * s->cells), (cufftDoubleComplex *)half.get());
		crop_half<REAL, REAL2><<<blocks_for(s, 1), 256, 0, fxi_stream_of(m)>>>(*s, w, (const REAL2 *)half.get(),
			image + i * s->image);
	}
	status = fxi_cufft_check(m, e, "a real fine grid");
	/* the work is queued; cuFFT keeps its own until that is through */
	cudaStreamSynchronize(fxi_stream_of(m));
	cufftDestroy(plan);
	return status;
}

template <typename REAL, typename REAL2> static int to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale,
	fx_array *image)
{
	shape s;
	int64_t n = 0;
	int status = prepare(m, g, fine, image, &s, &n);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0)
		return status;
	fxi_work w(m, s.dims[0] + s.dims[1] + s.dims[2], sizeof(REAL));
	void *from = use.out(fine), *to = use.out(image);
	status = w.status() != FX_OK ? w.status() : use.ready();
	if (status == FX_OK)
		status = weights_new<REAL>(m, g, scale, &w);
	if (status == FX_OK && g->real)
		status = real_to_image<REAL, REAL2>(m, g, &s, n, (REAL *)from, (const REAL *)w.get(), (REAL2 *)to);
	else if (status == FX_OK) {
		status = transform(m, g, n, CUFFT_INVERSE, from);
		if (status == FX_OK)
			crop<REAL, REAL2><<<blocks_for(&s, n), 256, 0, fxi_stream_of(m)>>>(s, (const REAL *)w.get(), (const REAL2 *)from,
				(REAL2 *)to);
	}
	return status == FX_OK ? use.done("from the fine grid to the image") : status;
}

int fxi_cuda_fine_to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale, fx_array *image)
{
	return g->type == FX_CF32 ? to_image<float, float2>(m, g, fine, scale, image) :
		to_image<double, double2>(m, g, fine, scale, image);
}

template <typename REAL, typename REAL2> static int to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale,
	fx_array *fine)
{
	shape s;
	int64_t n = 0;
	int status = prepare(m, g, fine, image, &s, &n);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0)
		return status;
	fxi_work w(m, s.dims[0] + s.dims[1] + s.dims[2], sizeof(REAL));
	const void *from = use.in(image);
	void *to = use.out(fine);
	status = w.status() != FX_OK ? w.status() : use.ready();
	if (status == FX_OK)
		status = weights_new<REAL>(m, g, scale, &w);
	if (status != FX_OK)
		return status;
	cudaMemsetAsync(to, 0, (size_t)fine->bytes, fxi_stream_of(m));
	pad<REAL, REAL2><<<blocks_for(&s, n), 256, 0, fxi_stream_of(m)>>>(s, (const REAL *)w.get(), (const REAL2 *)from, (REAL2 *)to);
	status = transform(m, g, n, CUFFT_FORWARD, to);
	return status == FX_OK ? use.done("from the image to the fine grid") : status;
}

int fxi_cuda_image_to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine)
{
	if (g->real)
		return fx_math_fail(m, FX_EINVAL, "image_to_fine is not for real grids");
	return g->type == FX_CF32 ? to_fine<float, float2>(m, g, image, scale, fine) : to_fine<double, double2>(m, g, image, scale, fine);
}

/* SPDX-License-Identifier: MIT */
/*
 * fine.cu - between the oversampled grid and the image. Both are centred, and the fine grid is even: with j = x - floor(N/2) the
 * transform is a plain one at frequency j modulo F, times (-1)^j, which goes into the weights that divide by the
 * kernel's transform.
 *
 * sm_75 to sm_90 run the same code; the transforms are cuFFT's.
 */
#include "nufft.cuh"

#include <vector>

/* Axes of 1 behind the others (nufft.cuh). */
struct shape {
	int64_t dims[3], fine[3], image, cells;
	int n;                       /* images */
};

static bool same_grid(const fx_fine_grid *a, const fx_fine_grid *b)
{
	for (int d = 0; d < 3; d++)
		if (a->dims[d] != b->dims[d] || a->fine[d] != b->fine[d])
			return false;
	return a->width == b->width && a->beta == b->beta && a->type == b->type;
}

/* Weights of all three axes, one after the other: scale / kernel transform, times (-1)^j. The queue keeps them. */
template <typename REAL> static int divisors_of(fx_math *m, const fx_fine_grid *g, const shape *s, double scale, const REAL **out)
{
	fxi_cuda_nufft *kept = fxi_nufft_of(m);
	std::vector<double> at, value;
	std::vector<REAL> w;
	void *memory = nullptr;
	int i = 0, status;

	if (!kept)
		return FX_ENOMEM;
	while (i < kept->n_divisors && i < FXI_NUFFT_KEPT && (kept->divisors[i].scale != scale ||
		!same_grid(&kept->divisors[i].grid, g)))
		i++;
	if (i < kept->n_divisors && i < FXI_NUFFT_KEPT) {
		*out = (const REAL *)kept->divisors[i].weights;
		return FX_OK;
	}
	for (int d = 0; d < 3; d++) {
		at.assign((size_t)s->dims[d], 0);
		value.assign((size_t)s->dims[d], 1);
		for (int64_t x = 0; x < s->dims[d]; x++)
			at[(size_t)x] = (double)(x - s->dims[d] / 2) / (double)s->fine[d];
		if (s->dims[d] > 1)
			fx_fine_kernel_transform(g->width, g->beta, s->dims[d], at.data(), value.data());
		for (int64_t x = 0; x < s->dims[d]; x++)
			w.push_back((REAL)((d == 0 ? scale : 1) * ((x - s->dims[d] / 2) % 2 ? -1 : 1) / value[(size_t)x]));
	}
	status = fxi_cuda_check(m, cudaMalloc(&memory, w.size() * sizeof(REAL)), "the kernel's transform");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemcpy(memory, w.data(), w.size() * sizeof(REAL), cudaMemcpyHostToDevice),
			"the kernel's transform");
	if (status != FX_OK) {
		cudaFree(memory);
		return status;
	}
	i = kept->n_divisors++ % FXI_NUFFT_KEPT;
	cudaFree(kept->divisors[i].weights); /* waits for whoever reads them; NULL is fine */
	kept->divisors[i] = {*g, scale, memory};
	*out = (const REAL *)memory;
	return FX_OK;
}

/* A thread a voxel of an image: x, y and z of it, and its weight. */
struct voxel {
	int64_t x, y, z;
	bool there;
};

__device__ static inline voxel voxel_of(const shape &s)
{
	voxel v = {blockIdx.x * (int64_t)blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z, false};

	v.there = v.x < s.dims[0];
	return v;
}

template <typename REAL> __device__ static inline REAL weight_at(const shape &s, const REAL *w, const voxel &v)
{
	return w[v.x] * w[s.dims[0] + v.y] * w[s.dims[0] + s.dims[1] + v.z];
}

__device__ static inline int64_t wrapped(int64_t place, int64_t n, int64_t fine)
{
	int64_t j = place - n / 2;

	return j < 0 ? j + fine : j;
}

template <typename REAL, typename REAL2> __global__ static void crop(shape s, const REAL *w, const REAL2 *fine, REAL2 *image)
{
	voxel v = voxel_of(s);

	if (!v.there)
		return;
	REAL f = weight_at(s, w, v);
	fine += wrapped(v.x, s.dims[0], s.fine[0]) + s.fine[0] * (wrapped(v.y, s.dims[1], s.fine[1]) +
		s.fine[1] * wrapped(v.z, s.dims[2], s.fine[2]));
	image += v.x + s.dims[0] * (v.y + s.dims[1] * v.z);
	for (int i = 0; i < s.n; i++) {
		REAL2 a = fine[i * s.cells];

		a.x *= f;
		a.y *= f;
		image[i * s.image] = a;
	}
}

/* From half of a real grid's spectrum with exponent -1, {F0/2 + 1, F1, F2}: frequency j of exponent +1 is its conjugate. */
template <typename REAL, typename REAL2> __global__ static void crop_half(shape s, const REAL *w, const REAL2 *half, REAL2 *image)
{
	voxel v = voxel_of(s);
	int64_t place[3] = {v.x, v.y, v.z}, j[3];

	if (!v.there)
		return;
	bool mirrored = v.x < s.dims[0] / 2;
	for (int d = 0; d < 3; d++) {
		j[d] = place[d] - s.dims[d] / 2;
		j[d] = mirrored ? -j[d] : j[d];
		j[d] = j[d] < 0 ? j[d] + s.fine[d] : j[d];
	}
	REAL f = weight_at(s, w, v);
	REAL2 a = half[j[0] + (s.fine[0] / 2 + 1) * (j[1] + s.fine[1] * j[2])];
	a.x *= f;
	a.y *= mirrored ? f : -f;
	image[v.x + s.dims[0] * (v.y + s.dims[1] * v.z)] = a;
}

/* A thread a cell of the fine grid: its voxel's value where it has one, else 0. */
template <typename REAL, typename REAL2> __global__ static void pad(shape s, const REAL *w, const REAL2 *image, REAL2 *fine)
{
	int64_t at[3] = {blockIdx.x * (int64_t)blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z}, place[3];
	bool there = true;

	if (at[0] >= s.fine[0])
		return;
	for (int d = 0; d < 3; d++) {
		int64_t c = s.dims[d] / 2;

		place[d] = at[d] < s.dims[d] - c ? at[d] + c : at[d] - s.fine[d] + c;
		there = there && place[d] >= 0;
	}
	voxel v = {place[0], place[1], place[2], there};
	REAL f = there ? weight_at(s, w, v) : 0;
	fine += at[0] + s.fine[0] * (at[1] + s.fine[1] * at[2]);
	image += v.x + s.dims[0] * (v.y + s.dims[1] * v.z);
	for (int i = 0; i < s.n; i++) {
		REAL2 a = {};

		if (there) {
			a = image[i * s.image];
			a.x *= f;
			a.y *= f;
		}
		fine[i * s.cells] = a;
	}
}

static int prepare(fx_math *m, const fx_fine_grid *g, const fx_array *fine, const fx_array *image, shape *s)
{
	int64_t n = 0;
	int status = fxi_cuda_need_fine(m, g, fine, &n), at = 0;

	if (status != FX_OK)
		return status;
	for (int encoded = 1; encoded >= 0; encoded--)
		for (int d = 0; d < 3; d++)
			if ((g->dims[d] > 1) == (bool)encoded) {
				s->dims[at] = g->dims[d];
				s->fine[at++] = g->fine[d];
			}
	s->image = g->dims[0] * g->dims[1] * g->dims[2];
	s->cells = g->fine[0] * g->fine[1] * g->fine[2];
	if (image->type != g->type || image->dims[0] != g->dims[0] || image->dims[1] != g->dims[1] || image->dims[2] != g->dims[2] ||
		image->n != s->image * n || s->fine[1] > 65535 || s->fine[2] > 65535)
		return fx_math_fail(m, FX_EINVAL, "an image of %lld x %lld x %lld %s, %lld in all, where %lld of %lld x %lld x %lld %s belong",
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2], fx_type_name(image->type),
			(long long)image->n, (long long)n, (long long)g->dims[0], (long long)g->dims[1], (long long)g->dims[2],
			fx_type_name(g->type));
	s->n = (int)n;
	return FX_OK;
}

static int transform(fx_math *m, const fx_fine_grid *g, const shape *s, int direction, void *fine)
{
	cufftHandle plan;
	int status;

	if (s->cells == 1)
		return FX_OK;
	status = fxi_cuda_plan_of(m, g->type, s->fine, s->n, &plan);
	if (status != FX_OK)
		return status;
	if (g->type == FX_CF32)
		return fxi_cufft_check(m, cufftExecC2C(plan, (cufftComplex *)fine, (cufftComplex *)fine, direction), "the fine grid");
	return fxi_cufft_check(m, cufftExecZ2Z(plan, (cufftDoubleComplex *)fine, (cufftDoubleComplex *)fine, direction),
		"the fine grid");
}

static dim3 blocks_for(const int64_t dims[3])
{
	return dim3((unsigned)((dims[0] + 127) / 128), (unsigned)dims[1], (unsigned)dims[2]);
}

/* A real grid, transform by transform: half a spectrum in work memory. */
template <typename REAL, typename REAL2> static int real_to_image(fx_math *m, const fx_fine_grid *g, const shape *s, REAL *fine,
	const REAL *w, REAL2 *image)
{
	fxi_work half(m, (s->fine[0] / 2 + 1) * s->fine[1] * s->fine[2], sizeof(REAL2));
	int status = half.status();
	cufftHandle plan;

	if (status == FX_OK)
		status = fxi_cuda_plan_of(m, g->type == FX_CF32 ? FX_F32 : FX_F64, s->fine, 1, &plan);
	for (int i = 0; status == FX_OK && i < s->n; i++) {
		if (g->type == FX_CF32)
			status = fxi_cufft_check(m, cufftExecR2C(plan, (cufftReal *)(fine + i * s->cells), (cufftComplex *)half.get()),
				"a real fine grid");
		else
			status = fxi_cufft_check(m, cufftExecD2Z(plan, (cufftDoubleReal *)(fine + i * s->cells),
				(cufftDoubleComplex *)half.get()), "a real fine grid");
		crop_half<REAL, REAL2><<<blocks_for(s->dims), 128, 0, fxi_stream_of(m)>>>(*s, w, (const REAL2 *)half.get(),
			image + i * s->image);
	}
	return status;
}

template <typename REAL, typename REAL2> static int to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale,
	fx_array *image)
{
	const REAL *w = nullptr;
	shape s;
	int status = prepare(m, g, fine, image, &s);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0)
		return status;
	void *from = use.out(fine), *to = use.out(image);
	status = use.ready();
	if (status == FX_OK)
		status = divisors_of<REAL>(m, g, &s, scale, &w);
	if (status == FX_OK && g->real)
		status = real_to_image<REAL, REAL2>(m, g, &s, (REAL *)from, w, (REAL2 *)to);
	else if (status == FX_OK) {
		status = transform(m, g, &s, CUFFT_INVERSE, from);
		if (status == FX_OK)
			crop<REAL, REAL2><<<blocks_for(s.dims), 128, 0, fxi_stream_of(m)>>>(s, w, (const REAL2 *)from, (REAL2 *)to);
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
	const REAL *w = nullptr;
	shape s;
	int status = prepare(m, g, fine, image, &s);
	fxi_use use(m);

	if (status != FX_OK || image->n == 0)
		return status;
	const void *from = use.in(image);
	void *to = use.out(fine);
	status = use.ready();
	if (status == FX_OK)
		status = divisors_of<REAL>(m, g, &s, scale, &w);
	if (status != FX_OK)
		return status;
	pad<REAL, REAL2><<<blocks_for(s.fine), 128, 0, fxi_stream_of(m)>>>(s, w, (const REAL2 *)from, (REAL2 *)to);
	status = transform(m, g, &s, CUFFT_FORWARD, to);
	return status == FX_OK ? use.done("from the image to the fine grid") : status;
}

int fxi_cuda_image_to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine)
{
	if (g->real)
		return fx_math_fail(m, FX_EINVAL, "image_to_fine is not for real grids");
	return g->type == FX_CF32 ? to_fine<float, float2>(m, g, image, scale, fine) : to_fine<double, double2>(m, g, image, scale, fine);
}

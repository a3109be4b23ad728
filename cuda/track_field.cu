/* SPDX-License-Identifier: MIT */
/*
 * track_field.cu - the field in the form that a plan asks for: as it is, halves, textures, or g alone; and which corners of each cell are in the
 * mask. Every kernel is a pass over the voxels, bound by memory on every architecture.
 */
#include "track.cuh"

#include <cuda_fp16.h>

#include <new>

static const int THREADS = 256;

/* A finite number that half precision has no room for. */
__device__ static inline bool too_large(float x)
{
	return isfinite(x) && fabsf(x) > 65504.0f;
}

/* n tensors of six numbers into eight halves each. */
__global__ static void to_halves(int64_t n, const float *field, uint4 *out, int *too_many)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	const float2 *p = (const float2 *)(field + 6 * i);
	__half2 a = __float22half2_rn(p[0]), b = __float22half2_rn(p[1]), c = __float22half2_rn(p[2]);
	uint4 q = {*(unsigned *)&a, *(unsigned *)&b, *(unsigned *)&c, 0};

	for (int k = 0; k < 6; k++)
		if (too_large(field[6 * i + k]))
			*too_many = 1;
	out[i] = q;
}

__global__ static void to_compact(int64_t n, const float *field, float2 *out)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i < 3 * n)
		out[i] = *(const float2 *)(field + 24 * (i / 3) + 2 * (i % 3));
}

/* Numbers 4 k.. of a voxel (beyond the last: 0) into texture k. */
template <bool HALF> __global__ static void to_surface(fxi_track_view g, int stride, int k, cudaSurfaceObject_t out, int *too_many)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= g.voxels)
		return;
	const float *p = g.field + stride * i + 4 * k;
	float4 q = {p[0], p[1], 4 * k + 2 < stride ? p[2] : 0, 4 * k + 3 < stride ? p[3] : 0};
	int x = (int)(i % g.dims[0]), y = (int)(i / g.dims[0] % g.dims[1]), z = (int)(i / ((int64_t)g.dims[0] * g.dims[1]));

	if (HALF) {
		__half2 a = __floats2half2_rn(q.x, q.y), b = __floats2half2_rn(q.z, q.w);

		if (too_large(q.x) || too_large(q.y) || too_large(q.z) || too_large(q.w))
			*too_many = 1;
		surf3Dwrite(make_uint2(*(unsigned *)&a, *(unsigned *)&b), out, x * 8, y, z);
	} else {
		surf3Dwrite(q, out, x * 16, y, z);
	}
}

__global__ static void mark_corners(fxi_track_view g, uint8_t *out)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
	int64_t at[3] = {i % g.dims[0], i / g.dims[0] % g.dims[1], i / ((int64_t)g.dims[0] * g.dims[1])};
	unsigned bits = 0;

	if (i >= g.voxels)
		return;
	for (int c = 0; c < 8; c++) {
		int64_t there = i;

		for (int a = 0; a < 3; a++)
			there += (c >> a & 1) && at[a] + 1 < g.dims[a] ? g.stride[a] : 0;
		bits |= (unsigned)(g.mask[there] != 0) << c;
	}
	out[i] = (uint8_t)bits;
}

static unsigned blocks_of(int64_t n)
{
	return (unsigned)((n + THREADS - 1) / THREADS);
}

static int make_texture(fx_math *m, fxi_track_prepared *p, int stride, int k, bool half, int *too_many)
{
	cudaStream_t stream = fxi_stream_of(m);
	const int bits = half ? 16 : 32;
	cudaChannelFormatDesc format = cudaCreateChannelDesc(bits, bits, bits, bits, cudaChannelFormatKindFloat);
	cudaExtent size = make_cudaExtent((size_t)p->view.dims[0], (size_t)p->view.dims[1], (size_t)p->view.dims[2]);
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaSurfaceObject_t surface = 0;
	cudaError_t e = cudaMalloc3DArray(&p->arrays[k], &format, size, cudaArraySurfaceLoadStore);

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = p->arrays[k];
	how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
	how.filterMode = cudaFilterModeLinear;
	how.readMode = cudaReadModeElementType;
	if (e == cudaSuccess)
		e = cudaCreateTextureObject(&p->view.textures[k], &resource, &how, nullptr);
	if (e == cudaSuccess)
		e = cudaCreateSurfaceObject(&surface, &resource);
	if (e == cudaSuccess) {
		if (half)
			to_surface<true><<<blocks_of(p->view.voxels), THREADS, 0, stream>>>(p->view, stride, k, surface, too_many);
		else
			to_surface<false><<<blocks_of(p->view.voxels), THREADS, 0, stream>>>(p->view, stride, k, surface, too_many);
		e = cudaGetLastError();
		if (e == cudaSuccess)
			e = cudaStreamSynchronize(stream);
		cudaDestroySurfaceObject(surface);
	}
	return fxi_cuda_check(m, e, "a texture of the field");
}

static int fill(fx_math *m, fxi_track_prepared *p, int parts, int *too_many)
{
	cudaStream_t stream = fxi_stream_of(m);
	int64_t n = p->view.voxels, tensors = parts / 6;
	int status = FX_OK;

	if (p->form == FX_TRACK_FORM_HALF) {
		status = fxi_cuda_check(m, cudaMallocAsync(&p->packed, (size_t)(n * tensors) * sizeof(uint4), stream), "the field in halves");
		if (status == FX_OK)
			to_halves<<<blocks_of(n * tensors), THREADS, 0, stream>>>(n * tensors, p->view.field, (uint4 *)p->packed,
				too_many);
	} else if (p->form == FX_TRACK_FORM_COMPACT && parts == 24) {
		status = fxi_cuda_check(m, cudaMallocAsync(&p->packed, (size_t)n * 6 * sizeof(float), stream), "the compact field");
		if (status == FX_OK)
			to_compact<<<blocks_of(3 * n), THREADS, 0, stream>>>(n, p->view.field, (float2 *)p->packed);
	} else if (p->form == FX_TRACK_FORM_TEXTURE || p->form == FX_TRACK_FORM_TEXTURE_HALF) {
		for (int k = 0; k < (parts + 3) / 4 && status == FX_OK; k++)
			status = make_texture(m, p, parts, k, p->form == FX_TRACK_FORM_TEXTURE_HALF, too_many);
	}
	if (status == FX_OK && p->view.mask) {
		status = fxi_cuda_check(m, cudaMallocAsync(&p->corners, (size_t)n, stream), "the mask's corners");
		if (status == FX_OK)
			mark_corners<<<blocks_of(n), THREADS, 0, stream>>>(p->view, (uint8_t *)p->corners);
	}
	p->view.packed = p->packed;
	p->view.corners = (const uint8_t *)p->corners;
	return status == FX_OK ? fxi_cuda_launched(m, "the field's form") : status;
}

/* The form, refused where halves have no room for the field's numbers. */
static int make_form(fx_math *m, fxi_track_prepared *p, int parts)
{
	fxi_work flag(m, 1, sizeof(int));
	int *too_many = (int *)flag.get(), found = 0, status = flag.status();

	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaMemsetAsync(too_many, 0, sizeof(int), fxi_stream_of(m)), "the field's form");
	if (status == FX_OK)
		status = fill(m, p, parts, too_many);
	if (status != FX_OK || (p->form != FX_TRACK_FORM_HALF && p->form != FX_TRACK_FORM_TEXTURE_HALF))
		return status;
	status = fxi_cuda_check(m, cudaMemcpyAsync(&found, too_many, sizeof found, cudaMemcpyDeviceToHost, fxi_stream_of(m)), "the field's form");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaStreamSynchronize(fxi_stream_of(m)), "the field's form");
	if (status == FX_OK && found)
		return fx_math_fail(m, FX_EDATA, "the field has numbers above 65504, which half precision has no room for: take form kernel, or a lower "
			"metric.power");
	return status;
}

static void set_view(fxi_track_view *v, const fx_track_plan *plan, const fx_array *field)
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};
	uint32_t step = 1;

	v->voxels = 1;
	for (int i = 0; i < 3; i++) {
		int64_t n = field->dims[i + 1];

		v->dims[i] = (int)n;
		v->last[i] = n > 1 ? (int)n - 2 : 0;
		v->stride[i] = n > 1 ? step : 0;
		v->middle[i] = n > 1 ? 0.5f : 0;
		v->top[i] = n > 1 ? 1.5f : 0.5f;
		v->voxels *= n;
		step *= (uint32_t)n;
		for (int k = 0; k < 3; k++)
			v->to_index[i][k] = (float)plan->to_index[i][k];
		for (int k = 0; k < 4; k++)
			v->affine[i][k] = plan->affine[i][k];
	}
	for (int c = 0; c < 6; c++) {
		double sum = 0;

		for (int i = 0; i < 3; i++)
			sum += plan->to_mm[i][row[c]] * plan->to_mm[i][column[c]];
		v->square[c] = (float)sum;
	}
	v->step = (float)plan->step;
}

int fxi_cuda_track_prepare(fx_math *m, const fx_track_plan *plan, const fx_metric_arrays *metric, void **prepared)
{
	bool along = plan->method == FX_TRACK_STREAMLINE;
	fx_array *field = along ? metric->d : metric->field;
	fxi_track_prepared *p = new (std::nothrow) fxi_track_prepared();
	fxi_use use(m);
	int status;

	*prepared = p;
	if (!p)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a field's form");
	if (field->n / (along ? 6 : 24) > UINT32_MAX / 12) {
		fxi_cuda_track_release(m, p);
		*prepared = nullptr;
		return fx_math_fail(m, FX_ENOTSUP, "a field of %lld voxels is more than a GPU's tracking numbers (%u): crop it",
			(long long)(field->n / (along ? 6 : 24)), UINT32_MAX / 12);
	}
	p->form = plan->form == FX_TRACK_FORM_AUTO ? FX_TRACK_FORM_KERNEL : plan->form;
	set_view(&p->view, plan, field);
	p->view.field = (const float *)use.in(field);
	if (metric->mask)
		p->view.mask = (const uint8_t *)use.in(metric->mask);
	status = use.ready();
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaEventCreateWithFlags(&p->made, cudaEventDisableTiming), "an event");
	if (status == FX_OK)
		status = make_form(m, p, along ? 6 : 24);
	if (status == FX_OK)
		status = use.done("the field's form");
	if (status == FX_OK)
		status = fxi_cuda_check(m, cudaEventRecord(p->made, fxi_stream_of(m)), "the field's form");
	if (status != FX_OK) {
		fxi_cuda_track_release(m, p);
		*prepared = nullptr;
	}
	return status;
}

void fxi_cuda_track_release(fx_math *m, void *prepared)
{
	fxi_track_prepared *p = (fxi_track_prepared *)prepared;

	if (!p)
		return;
	cudaSetDevice(m->device);
	for (int k = 0; k < 6; k++) {
		if (p->view.textures[k])
			cudaDestroyTextureObject(p->view.textures[k]);
		if (p->arrays[k])
			cudaFreeArray(p->arrays[k]);
	}
	if (p->packed)
		cudaFreeAsync(p->packed, fxi_stream_of(m));
	if (p->corners)
		cudaFreeAsync(p->corners, fxi_stream_of(m));
	if (p->made)
		cudaEventDestroy(p->made);
	delete p;
}

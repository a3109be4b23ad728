/* SPDX-License-Identifier: MIT */
/*
 * ladder_tuned.cu - the chapter's last kernel (structures, hardware sine and cosine) in the forms that `fornix tune` chooses from: samples in
 * constant or in shared memory, how many of them at once, how far the loop is unrolled, voxels of a thread, threads of a block.
 */
#include "ladder.cuh"

static __constant__ fxi_ladder_sample chunk_c[FXI_LADDER_CHUNK];

/* A thread's voxels lie a block apart, so that neighbours read neighbours. */
template <int VOXELS> struct voxels {
	float x[VOXELS], y[VOXELS], z[VOXELS], r[VOXELS], i[VOXELS];
};

template <int VOXELS> __device__ static void take(const fxi_ladder &l, voxels<VOXELS> *v)
{
#pragma unroll
	for (int j = 0; j < VOXELS; j++) {
		int64_t n = (blockIdx.x * (int64_t)VOXELS + j) * blockDim.x + threadIdx.x;
		bool there = n < l.n_voxels;

		v->x[j] = there ? l.x[n] : 0;
		v->y[j] = there ? l.y[n] : 0;
		v->z[j] = there ? l.z[n] : 0;
		v->r[j] = there ? l.r_out[n] : 0;
		v->i[j] = there ? l.i_out[n] : 0;
	}
}

template <int VOXELS> __device__ static void put(const fxi_ladder &l, const voxels<VOXELS> *v)
{
#pragma unroll
	for (int j = 0; j < VOXELS; j++) {
		int64_t n = (blockIdx.x * (int64_t)VOXELS + j) * blockDim.x + threadIdx.x;

		if (n >= l.n_voxels)
			continue;
		l.r_out[n] = v->r[j];
		l.i_out[n] = v->i[j];
	}
}

template <int VOXELS, int UNROLL> __device__ static void add(const fxi_ladder_sample *samples, int n, voxels<VOXELS> *v)
{
#pragma unroll UNROLL
	for (int m = 0; m < n; m++) {
		fxi_ladder_sample s = samples[m];

#pragma unroll
		for (int j = 0; j < VOXELS; j++) {
			float phase = FXI_LADDER_TWO_PI * (s.kx * v->x[j] + s.ky * v->y[j] + s.kz * v->z[j]);
			float c = __cosf(phase), i = __sinf(phase);

			v->r[j] += s.r_mu * c - s.i_mu * i;
			v->i[j] += s.i_mu * c + s.r_mu * i;
		}
	}
}

template <int VOXELS, int UNROLL> __global__ static void in_constant(fxi_ladder l, int n)
{
	voxels<VOXELS> v;

	take(l, &v);
	add<VOXELS, UNROLL>(chunk_c, n, &v);
	put(l, &v);
}

template <int VOXELS, int UNROLL> __global__ static void in_shared(fxi_ladder l, int chunk)
{
	extern __shared__ fxi_ladder_sample chunk_s[];
	voxels<VOXELS> v;

	take(l, &v);
	for (int first = 0; first < l.n_samples; first += chunk) {
		int n = min(chunk, l.n_samples - first);

		__syncthreads();
		for (int i = threadIdx.x; i < 5 * n; i += blockDim.x)
			((float *)chunk_s)[i] = ((const float *)(l.all + first))[i];
		__syncthreads();
		add<VOXELS, UNROLL>(chunk_s, n, &v);
	}
	put(l, &v);
}

template <int VOXELS, int UNROLL> static int launch(fx_math *m, const fx_direct_plan *p, const fxi_ladder *l)
{
	int64_t each = (int64_t)VOXELS * p->block;
	unsigned blocks = (unsigned)((l->n_voxels + each - 1) / each);
	cudaStream_t stream = fxi_stream_of(m);
	cudaError_t e = cudaSuccess;

	if (p->shared == 1) {
		/* 16 bytes are loaded where the last sample has 4 left, so there are some behind it */
		in_shared<VOXELS, UNROLL><<<blocks, p->block, (size_t)p->chunk * sizeof(fxi_ladder_sample) + 16, stream>>>(*l, p->chunk);
		return fxi_cuda_launched(m, "the tuned sums");
	}
	for (int first = 0; first < l->n_samples && e == cudaSuccess; first += p->chunk) {
		int n = l->n_samples - first < p->chunk ? l->n_samples - first : p->chunk;

		e = cudaMemcpyToSymbolAsync(chunk_c, l->all + first, (size_t)n * sizeof(fxi_ladder_sample), 0, cudaMemcpyDeviceToDevice, stream);
		in_constant<VOXELS, UNROLL><<<blocks, p->block, 0, stream>>>(*l, n);
	}
	return e == cudaSuccess ? fxi_cuda_launched(m, "the tuned sums") : fxi_cuda_check(m, e, "filling constant memory");
}

template <int VOXELS> static int with_voxels(fx_math *m, const fx_direct_plan *p, const fxi_ladder *l)
{
	switch (p->unroll) {
	case 1:
		return launch<VOXELS, 1>(m, p, l);
	case 2:
		return launch<VOXELS, 2>(m, p, l);
	case 4:
		return launch<VOXELS, 4>(m, p, l);
	default:
		return launch<VOXELS, 8>(m, p, l);
	}
}

int fxi_ladder_tuned(fx_math *m, const fx_direct_plan *p, const fxi_ladder *l)
{
	switch (p->voxels) {
	case 1:
		return with_voxels<1>(m, p, l);
	case 2:
		return with_voxels<2>(m, p, l);
	case 4:
		return with_voxels<4>(m, p, l);
	default:
		return with_voxels<8>(m, p, l);
	}
}

static bool is_one_of_four(int n)
{
	return n == 1 || n == 2 || n == 4 || n == 8;
}

int fxi_ladder_plan(fx_math *m, fx_direct_plan *p)
{
	if (p->kernel <= FX_DIRECT_AUTO || p->kernel >= FX_DIRECT_KERNELS)
		return fx_math_fail(m, FX_EINVAL, "the ladder has no kernel %d", p->kernel);
	if (p->kernel != FX_DIRECT_TUNED)
		return FX_OK;
	p->block = p->block ? p->block : 256;
	p->unroll = p->unroll ? p->unroll : 4;
	p->voxels = p->voxels ? p->voxels : 4;
	p->chunk = p->chunk ? p->chunk : 256;
	p->shared = p->shared ? p->shared : 1;
	if (p->block < 32 || p->block > 512 || p->block % 32 || !is_one_of_four(p->unroll) || !is_one_of_four(p->voxels) || p->chunk < 32 ||
		p->chunk > FXI_LADDER_CHUNK || p->shared < 1 || p->shared > 2)
		return fx_math_fail(m, FX_EINVAL, "blocks are of 32 to 512 threads, a multiple of 32, unroll and voxels 1, 2, 4 or 8, a chunk 32 to %d, "
			"not %d, %d, %d, %d", FXI_LADDER_CHUNK, p->block, p->unroll, p->voxels, p->chunk);
	return FX_OK;
}

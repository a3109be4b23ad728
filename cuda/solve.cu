/* SPDX-License-Identifier: MIT */
/*
 * solve.cu - conjugate gradients that stay on the device. alpha, beta and the sums are in device memory; an iteration is one CUDA graph
 * that is captured, uploaded once and replayed. The host looks at the sums of a round of iterations while the next round runs; once an
 * iteration says stop, those behind it leave x, r and p as they are.
 *
 * Every sum has a fixed number of blocks with fixed shares. The last block to finish adds the others' in their order, so that no launch of
 * its own is needed and the bits do not depend on which one it was.
 */
#include "normal.cuh"

#include <cmath>

#define BLOCKS 1024
#define THREADS 256
#define ROUND 16 /* iterations that are launched without looking, at most; two rounds are under way */

struct progress {
	double rr, goal, alpha, beta;
	int64_t i;          /* iterations behind it */
	unsigned ticket;
	int stop, fresh;    /* fresh: an iteration's sums wait for x^H W^H W x */
};

/* What every kernel of an iteration gets. */
struct step {
	int64_t n, dims[3];
	float lambda;
	const float *weights;
	const float2 *b;
	float2 *x, *r, *p, *q;
	progress *at;
	double *partial;
	fx_cg_sums *sums;
};

template <int N> __device__ static void sum_block(double (&v)[N])
{
	__shared__ double part[N][THREADS];

	for (int k = 0; k < N; k++)
		part[k][threadIdx.x] = v[k];
	__syncthreads();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			for (int k = 0; k < N; k++)
				part[k][threadIdx.x] += part[k][threadIdx.x + half];
		__syncthreads();
	}
	for (int k = 0; k < N; k++)
		v[k] = part[k][0];
}

/* True for one thread of the grid, which then holds the sums over all blocks. */
template <int N> __device__ static bool sum_grid(const step &s, double (&v)[N])
{
	__shared__ bool last;

	sum_block(v);
	if (threadIdx.x == 0) {
		for (int k = 0; k < N; k++)
			s.partial[k * BLOCKS + blockIdx.x] = v[k];
		__threadfence();
		last = atomicInc(&s.at->ticket, BLOCKS - 1) == BLOCKS - 1;
	}
	__syncthreads();
	if (!last)
		return false;
	__threadfence();
	for (int k = 0; k < N; k++) {
		v[k] = 0;
		for (int i = threadIdx.x; i < BLOCKS; i += THREADS)
			v[k] += __ldcg(&s.partial[k * BLOCKS + i]);
	}
	__syncthreads();
	sum_block(v);
	return threadIdx.x == 0;
}

#define EACH(i, n) (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < (n); i += (int64_t)BLOCKS * THREADS)

/* W^H W v at voxel i: as difference.cu has it. With PAIRS, real sum of w |difference|^2 over the pairs that i begins instead. */
template <bool PAIRS> __device__ static float2 differences(const step &s, const float2 *v, int64_t i)
{
	int64_t at[3] = {i % s.dims[0], i / s.dims[0] % s.dims[1], i / (s.dims[0] * s.dims[1])}, stride = 1;
	float2 own = v[i], sum = {0, 0};

	for (int d = 0; d < 3; d++) {
		if (at[d] + 1 < s.dims[d]) {
			float w = s.weights[d * s.n + i], x = own.x - v[i + stride].x, y = own.y - v[i + stride].y;

			sum.x += w * (PAIRS ? x * x + y * y : x);
			sum.y += PAIRS ? 0 : w * y;
		}
		if (!PAIRS && at[d] > 0) {
			float w = s.weights[d * s.n + i - stride];

			sum.x += w * (own.x - v[i - stride].x);
			sum.y += w * (own.y - v[i - stride].y);
		}
		stride *= s.dims[d];
	}
	return sum;
}

/* q = sum_c S^H T S p has been made: the prior's share, p^H q, and alpha. */
__global__ static void curvature(step s)
{
	double sum[1] = {0};

	if (s.at->stop)
		return;
	for EACH(i, s.n) {
		float2 p = s.p[i], q = s.q[i];

		if (s.lambda != 0) {
			float2 w = s.weights ? differences<false>(s, s.p, i) : p;

			q = make_float2(q.x + s.lambda * w.x, q.y + s.lambda * w.y);
			s.q[i] = q;
		}
		sum[0] += (double)p.x * q.x + (double)p.y * q.y;
	}
	if (!sum_grid(s, sum))
		return;
	s.sums[s.at->i % FXI_CUDA_SUMS].curvature = sum[0];
	s.at->alpha = s.at->rr / sum[0];
	if (!(sum[0] > 0) || !isfinite(sum[0]))
		s.at->stop = 1;
}

/* x += alpha p, r -= alpha q; what is told of them, and beta. */
__global__ static void update(step s)
{
	double sum[4] = {0, 0, 0, 0};
	float alpha = (float)s.at->alpha;

	if (s.at->stop)
		return;
	for EACH(i, s.n) {
		float2 p = s.p[i], q = s.q[i], x = s.x[i], r = s.r[i], b = s.b[i];

		x = make_float2(x.x + alpha * p.x, x.y + alpha * p.y);
		r = make_float2(r.x - alpha * q.x, r.y - alpha * q.y);
		s.x[i] = x;
		s.r[i] = r;
		sum[0] += (double)r.x * r.x + (double)r.y * r.y;
		sum[1] += (double)x.x * b.x + (double)x.y * b.y;
		sum[2] += (double)x.x * r.x + (double)x.y * r.y;
		sum[3] += (double)x.x * x.x + (double)x.y * x.y;
	}
	if (!sum_grid(s, sum))
		return;
	fx_cg_sums *told = &s.sums[s.at->i % FXI_CUDA_SUMS];
	told->rr = sum[0];
	told->xb = sum[1];
	told->xr = sum[2];
	told->xwx = s.lambda != 0 ? sum[3] : 0;
	s.at->beta = sum[0] / s.at->rr;
	s.at->rr = sum[0];
	s.at->i++;
	s.at->fresh = 1;
	if (!(sum[0] > s.at->goal) || !isfinite(sum[0]))
		s.at->stop = 1;
}

/* x^H W^H W x, also of the iteration that said stop. */
__global__ static void penalty(step s)
{
	double sum[1] = {0};

	if (!s.at->fresh)
		return;
	for EACH(i, s.n)
		sum[0] += (double)differences<true>(s, s.x, i).x;
	if (!sum_grid(s, sum))
		return;
	s.sums[(s.at->i - 1) % FXI_CUDA_SUMS].xwx = sum[0];
	s.at->fresh = 0;
}

__global__ static void direction(step s)
{
	float beta = (float)s.at->beta;

	if (s.at->stop)
		return;
	for EACH(i, s.n) {
		float2 p = s.p[i], r = s.r[i];

		s.p[i] = make_float2(r.x + beta * p.x, r.y + beta * p.y);
	}
}

/* One iteration as a graph. It is captured on a stream of its own: on the queue's, memory may be given back by other threads meanwhile. */
static int capture(fx_math *m, const fxi_product *p, const step *s, cudaGraphExec_t *exec)
{
	cudaStream_t stream = nullptr;
	cudaGraph_t graph = nullptr;
	cudaError_t e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	int status = FX_OK;

	if (e == cudaSuccess)
		e = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	if (e == cudaSuccess) {
		status = fxi_product_run(m, stream, p);
		curvature<<<BLOCKS, THREADS, 0, stream>>>(*s);
		update<<<BLOCKS, THREADS, 0, stream>>>(*s);
		if (s->weights && s->lambda != 0)
			penalty<<<BLOCKS, THREADS, 0, stream>>>(*s);
		direction<<<BLOCKS, THREADS, 0, stream>>>(*s);
		e = cudaStreamEndCapture(stream, &graph);
	}
	if (e == cudaSuccess && status == FX_OK)
		e = cudaGraphInstantiate(exec, graph, 0);
	if (e == cudaSuccess && status == FX_OK)
		e = cudaGraphUpload(*exec, fxi_stream_of(m));
	if (graph)
		cudaGraphDestroy(graph);
	if (stream)
		cudaStreamDestroy(stream);
	return status != FX_OK ? status : fxi_cuda_check(m, e, "preparing an iteration");
}

static bool over(const fx_cg_sums *s, double goal)
{
	return !(s->curvature > 0) || !std::isfinite(s->curvature) || !std::isfinite(s->rr) || s->rr <= goal;
}

/* Two rounds are under way at any time: one whose sums are awaited, and the next. */
static int replay(fx_math *m, cudaGraphExec_t exec, int64_t round, double goal, int64_t n, fx_cg_sums *sums, int64_t *n_done)
{
	fxi_cuda_queue *q = fxi_queue(m);
	cudaEvent_t behind[2] = {nullptr, nullptr};
	int64_t launched = 0, ends[2] = {0, 0};
	cudaError_t e = cudaEventCreateWithFlags(&behind[0], cudaEventDisableTiming);
	bool stop = false;
	int status = FX_OK;

	if (e == cudaSuccess)
		e = cudaEventCreateWithFlags(&behind[1], cudaEventDisableTiming);
	for (int64_t i = 0; e == cudaSuccess && status == FX_OK && !stop && *n_done < n; i++) {
		for (int64_t end = launched + round; e == cudaSuccess && launched < n && launched < end; launched++)
			e = cudaGraphLaunch(exec, q->stream->stream);
		ends[i % 2] = launched;
		if (e == cudaSuccess)
			e = cudaEventRecord(behind[i % 2], q->stream->stream);
		if (i == 0 && launched < n)
			continue;
		int64_t old = launched < n || ends[(i + 1) % 2] > *n_done ? (i + 1) % 2 : i % 2;
		if (e == cudaSuccess)
			e = cudaEventSynchronize(behind[old]);
		for (; e == cudaSuccess && !stop && *n_done < ends[old]; (*n_done)++) {
			sums[*n_done] = q->sums[*n_done % FXI_CUDA_SUMS];
			stop = over(&sums[*n_done], goal);
		}
		status = fx_math_check(m);
	}
	cudaStreamSynchronize(q->stream->stream);
	for (int i = 0; i < 2; i++)
		if (behind[i])
			cudaEventDestroy(behind[i]);
	return status != FX_OK ? status : fxi_cuda_check(m, e, "conjugate gradients");
}

/* Iterations a round: where they are long, waiting for each costs nothing, and none is made in vain but one. */
static int64_t round_of(int64_t voxels, int64_t n_coils)
{
	int64_t n = ((int64_t)1 << 24) / (voxels * n_coils);

	return n < 1 ? 1 : n > ROUND ? ROUND : n;
}

int fxi_cuda_cg_steps(fx_math *m, const fx_normal *a, const fx_array *b, double rr, double goal, int64_t n, fx_array *x, fx_array *r,
	fx_array *p, fx_array *q, fx_cg_sums *sums, int64_t *n_done)
{
	progress start = {rr, goal, 0, 0, 0, 0, 0, 0};
	step s = {};
	fxi_product product = {};
	fxi_use use(m);
	cudaGraphExec_t exec = nullptr;
	int status = fxi_normal_of(m, a, x, &product);

	*n_done = 0;
	if (status == FX_OK && (x->n == 0 || !fx_array_same_shape(x, b) || !fx_array_same_shape(x, r) || !fx_array_same_shape(x, p) ||
		!fx_array_same_shape(x, q)))
		return fx_math_fail(m, FX_EINVAL, "cg_steps: the vectors differ in shape, or have no voxels");
	if (status == FX_OK)
		status = fxi_product_prepare(m, &product.box);
	if (status != FX_OK || n <= 0)
		return status;
	fxi_work work(m, fxi_product_bytes(&product.box, product.batch), 1), partial(m, 4 * BLOCKS, sizeof(double));
	fxi_work state(m, 1, sizeof(progress));
	s.n = x->n;
	for (int d = 0; d < 3; d++)
		s.dims[d] = x->dims[d];
	s.lambda = (float)a->lambda;
	product.work = (float2 *)work.get();
	product.spectrum = (const float *)use.in(a->kernel);
	product.maps = a->maps ? (const float2 *)use.in(a->maps) : nullptr;
	s.weights = a->weights ? (const float *)use.in(a->weights) : nullptr;
	s.b = (const float2 *)use.in(b);
	s.x = (float2 *)use.out(x);
	s.r = (float2 *)use.out(r);
	s.p = (float2 *)use.out(p);
	s.q = (float2 *)use.out(q);
	product.x = s.p;
	product.y = s.q;
	s.at = (progress *)state.get();
	s.partial = (double *)partial.get();
	s.sums = fxi_queue(m)->sums;
	if (work.status() != FX_OK || partial.status() != FX_OK || state.status() != FX_OK || use.ready() != FX_OK)
		return use.ready() != FX_OK ? use.ready() : FX_ENOMEM;
	status = fxi_cuda_check(m, cudaMemcpyAsync(s.at, &start, sizeof start, cudaMemcpyHostToDevice, fxi_stream_of(m)),
		"conjugate gradients");
	if (status == FX_OK)
		status = capture(m, &product, &s, &exec);
	if (status == FX_OK)
		status = replay(m, exec, round_of(x->n, product.n_coils), goal, n, sums, n_done);
	if (exec)
		cudaGraphExecDestroy(exec);
	return status == FX_OK ? use.done("conjugate gradients") : status;
}

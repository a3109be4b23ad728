/* SPDX-License-Identifier: MIT */
/*
 * tensor.cu - tensor fits, a thread a voxel. As on the host, all in single precision by corrections in the basis of the design's
 * orthonormal columns, and what a small pivot shows to be badly determined again in double (tensor_voxel.cu). Signals are read from
 * memory in every pass, a warp 32 neighbouring voxels; rows of the design come from shared memory, one address for all lanes. One path
 * for every architecture: some 60 fused multiply-adds, one exponential and one logarithm a voxel, volume and pass; limited by arithmetic.
 */
#include "tensor.cuh"

#define X FXI_TENSOR_X
#define THREADS 128
#define PART 256 /* rows of the design in shared memory at a time */

/* Below it single precision is not trusted with the rest: see host/tensor.c. */
#define SMALL_PIVOT 2e-2f

enum weighting { BY_USE, BY_SIGNAL, BY_FIT };

/* What is known of a voxel as the passes go on. */
struct voxel {
	float z[X], pivot;
	int used;
	bool differs;
};

__device__ static __forceinline__ float fitted(const float *q, const float z[X])
{
	float f = q[0] * z[0];

#pragma unroll
	for (int k = 1; k < X; k++)
		f += q[k] * z[k];
	return f;
}

/*
 * Rows [first, first + PART) of the design to shared memory, eight floats each; all threads of the block take part, also those whose
 * voxel is outside. Returns how many there are.
 */
__device__ static int load_rows(const fxi_fit_job &j, int first, float (*rows)[8])
{
	int n = j.n_volumes - first < PART ? j.n_volumes - first : PART;

	__syncthreads();
	for (int k = threadIdx.x; k < n * X; k += THREADS)
		rows[k / X][k % X] = j.q[first * X + k];
	__syncthreads();
	return n;
}

/* z += (Q^T W Q)^-1 g, A = L D L^T in place; where it is not positive definite anything comes out, and the pivot says so. */
__device__ static __forceinline__ void correct(voxel &v, float a[28], float g[X])
{
	float inverse[X];

#pragma unroll
	for (int k = 0; k < X; k++) {
		float *row = a + k * (k + 1) / 2, diagonal = row[k], relative;

#pragma unroll
		for (int l = 0; l < k; l++)
#pragma unroll
			for (int i = 0; i < l; i++)
				row[l] -= row[i] * a[l * (l + 1) / 2 + i];
#pragma unroll
		for (int l = 0; l < k; l++) { /* row[l] is L_kl D_l up to here */
			float scaled = row[l] * inverse[l];

			row[k] -= scaled * row[l];
			g[k] -= scaled * g[l];
			row[l] = scaled;
		}
		inverse[k] = 1 / row[k];
		relative = row[k] / diagonal;
		v.pivot = relative < v.pivot || relative != relative ? relative : v.pivot;
	}
#pragma unroll
	for (int k = X - 1; k >= 0; k--) {
		g[k] *= inverse[k];
#pragma unroll
		for (int l = k + 1; l < X; l++)
			g[k] -= a[l * (l + 1) / 2 + k] * g[l];
		v.z[k] += g[k];
	}
}

/* One weighted fit: z moves to the minimum of sum w (y - Q z)^2. */
template <weighting by>
__device__ static void solve(const fxi_fit_job &j, int64_t i, bool wanted, float (*rows)[8], voxel &v)
{
	float a[28] = {0}, g[X] = {0}, mean = 0, unit = 0;

	for (int first = 0; first < j.n_volumes; first += PART) {
		int n = load_rows(j, first, rows);

		if (first == 0) {
			mean = rows[0][0] * v.z[0];
			unit = expf(-mean);
		}
		for (int r = 0; wanted && r < n; r++) {
			float s = j.volumes[first + r][i], q[X], f, w, wr;
			bool use = fxi_usable(s);

#pragma unroll
			for (int k = 0; k < X; k++)
				q[k] = rows[r][k];
			f = fitted(q, v.z);
			w = !use ? 0 : by == BY_USE ? 1 : by == BY_SIGNAL ? (s * unit) * (s * unit) : expf(2 * (f - mean));
			wr = use ? w * (logf(s) - f) : 0;
#pragma unroll
			for (int k = 0; k < X; k++) {
				float wq = w * q[k];

				g[k] += wr * q[k];
#pragma unroll
				for (int l = 0; l <= k; l++)
					a[k * (k + 1) / 2 + l] += wq * q[l];
			}
		}
	}
	if (wanted)
		correct(v, a, g);
}

/* Without weights Q^T (y - Q z) is the whole correction; from z = 0 a second one takes off the rounding of large y. */
__device__ static void solve_unweighted(const fxi_fit_job &j, int64_t i, bool wanted, float (*rows)[8], voxel &v)
{
	for (int pass = 0; pass < 2; pass++) {
		float g[X] = {0}, seen = 0;

		for (int first = 0; first < j.n_volumes; first += PART) {
			int n = load_rows(j, first, rows);

			for (int r = 0; wanted && r < n; r++) {
				float s = j.volumes[first + r][i], y;
				bool use = fxi_usable(s);

				y = (use ? logf(s) : 0) - fitted(rows[r], v.z);
#pragma unroll
				for (int k = 0; k < X; k++)
					g[k] += rows[r][k] * y;
				if (pass == 0 && use) {
					seen = seen > 0 ? seen : s;
					v.differs = v.differs || s != seen;
					v.used++;
				}
			}
		}
#pragma unroll
		for (int k = 0; k < X; k++)
			v.z[k] += g[k];
	}
}

/* In units of e^mean, whose square neither over- nor underflows. */
__device__ static float residual(const fxi_fit_job &j, int64_t i, bool wanted, float (*rows)[8], const voxel &v)
{
	float mean = 0, unit = 0, squares = 0;

	for (int first = 0; first < j.n_volumes; first += PART) {
		int n = load_rows(j, first, rows);

		if (first == 0) {
			mean = rows[0][0] * v.z[0];
			unit = expf(-mean);
		}
		for (int r = 0; wanted && r < n; r++) {
			float s = j.volumes[first + r][i], d = s * unit - expf(fitted(rows[r], v.z) - mean);

			if (fxi_usable(s))
				squares += d * d;
		}
	}
	return sqrtf(squares / (float)v.used) * expf(mean);
}

__global__ static void __launch_bounds__(THREADS) fit_each(const __grid_constant__ fxi_fit_job j, uint8_t *again)
{
	__shared__ float rows[PART][8];
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	bool wanted = i < j.n && (!j.mask || j.mask[i]), good;
	voxel v = {{0}, 1, 0, false};
	float rms;

	if (i < j.n)
		again[i] = 0;
	if (!__syncthreads_or(wanted))
		return;
	solve_unweighted(j, i, wanted, rows, v);
	if (__syncthreads_or(wanted && v.used < j.n_volumes))
		solve<BY_USE>(j, i, wanted && v.used < j.n_volumes, rows, v);
	if (j.design.from_signals)
		solve<BY_SIGNAL>(j, i, wanted, rows, v);
	for (int k = 0; k < j.design.reweightings; k++)
		solve<BY_FIT>(j, i, wanted, rows, v);
	rms = residual(j, i, wanted, rows, v);
	if (!wanted)
		return;
	good = v.used >= X;
	if (good && !(v.pivot > SMALL_PIVOT && isfinite(rms))) {
		again[i] = FXI_FIT_AGAIN | (v.used < j.n_volumes ? FXI_FIT_DROPPED : 0) | (v.differs ? FXI_FIT_DIFFERS : 0);
		return;
	}
	double z[X];

	for (int k = 0; k < X; k++)
		z[k] = good ? (double)v.z[k] : (double)NAN; /* which fxi_put_tensor tells of */
	fxi_put_tensor(j, z, i, (v.used < j.n_volumes ? FX_TENSOR_DROPPED : 0u) | (good && !v.differs ? FX_TENSOR_ISOTROPIC : 0u));
	j.residual[i] = good ? rms : 0;
}

/* ---- arguments ---------------------------------------------------------------------------------- */

static bool is_field(const fx_array *a, int type, int64_t each, int64_t n)
{
	return a && a->type == type && a->n == each * n;
}

/* The arrays of a fit into the job, which is then ready but for the design and the signals. */
static int use_arrays(fx_math *m, fxi_use &use, const fx_array *mask, const fx_tensor_arrays *out, bool with_residual, fxi_fit_job &j)
{
	if (!is_field(out->d, FX_F32, 6, j.n) || !is_field(out->s0, FX_F32, 1, j.n) || !is_field(out->flags, FX_U8, 1, j.n) ||
		(with_residual && !is_field(out->residual, FX_F32, 1, j.n)) || (mask && !is_field(mask, FX_U8, 1, j.n)))
		return fx_math_fail(m, FX_EINVAL, "a tensor fit of %lld voxels takes a u8 mask and gives f32 tensors, S0 and residuals and "
			"u8 flags of that size", (long long)j.n);
	j.mask = mask ? (const uint8_t *)use.in(mask) : nullptr;
	j.d = (float *)use.out(out->d);
	j.s0 = (float *)use.out(out->s0);
	j.residual = with_residual ? (float *)use.out(out->residual) : nullptr;
	j.flags = (uint8_t *)use.out(out->flags);
	return use.ready();
}

static void describe(const fx_tensor_design *design, fxi_fit_job &j)
{
	j.design.from_signals = design->from_signals;
	j.design.reweightings = design->reweightings;
	j.design.floor = design->floor;
	for (int k = 0; k < X; k++)
		for (int l = 0; l < X; l++)
			j.design.to_x[k][l] = design->to_x[k][l];
}

/* Rows in single and in double and the volumes' addresses, side by side in one piece of device memory. */
class design_memory {
public:
	design_memory(fx_math *m, int64_t n) : math(m), count(n), work(m, n, sizeof(double) * X + sizeof(float) * X + sizeof(float *)) {}
	int fill(const fx_tensor_design *design, const float *const *volumes, fxi_fit_job &j);

private:
	fx_math *math;
	int64_t count;
	fxi_work work;
};

int design_memory::fill(const fx_tensor_design *design, const float *const *volumes, fxi_fit_job &j)
{
	size_t rows = (size_t)count * X, bytes = rows * (sizeof(double) + sizeof(float)) + (size_t)count * sizeof(float *);
	char *staged = (char *)fx_alloc(1, bytes), *there = (char *)work.get();
	int status = work.status();

	if (status == FX_OK && !staged)
		status = fx_math_fail(math, FX_ENOMEM, "no memory for the design of %lld volumes", (long long)count);
	if (status == FX_OK) {
		double *q = (double *)staged;
		const float **address = (const float **)(q + rows);
		float *single = (float *)(address + count);

		for (size_t i = 0; i < rows; i++) {
			q[i] = design->q[i];
			single[i] = (float)design->q[i];
		}
		for (int64_t i = 0; i < count; i++)
			address[i] = volumes[i];
		j.q_double = (const double *)there;
		j.volumes = (const float *const *)(there + rows * sizeof(double));
		j.q = (const float *)(there + rows * sizeof(double) + (size_t)count * sizeof(float *));
		/* From pageable memory: it has been read when this returns. */
		status = fxi_cuda_check(math, cudaMemcpyAsync(there, staged, bytes, cudaMemcpyHostToDevice, fxi_stream_of(math)), "a fit's design");
	}
	fx_free(staged);
	return status;
}

/* ---- the operations ----------------------------------------------------------------------------- */

/* Addresses of the volumes (new), this queue ordered behind whoever wrote them; afterwards `use_volumes` marks them as read. */
static int take_volumes(fx_math *m, int64_t n, const fx_array *const *volumes, const float ***out)
{
	const float **list = (const float **)fx_alloc(n, sizeof *list);
	int status = list ? FX_OK : fx_math_fail(m, FX_ENOMEM, "no memory for a list of %lld volumes", (long long)n);

	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		fxi_use one(m);

		if (!is_field(volumes[i], FX_F32, 1, volumes[0]->n))
			status = fx_math_fail(m, FX_EINVAL, "tensor_fit takes f32 volumes of one size");
		else
			list[i] = (const float *)one.in(volumes[i]);
		if (status == FX_OK)
			status = one.ready();
	}
	*out = list;
	return status;
}

static int volumes_done(fx_math *m, int64_t n, const fx_array *const *volumes)
{
	int status = FX_OK;

	for (int64_t i = 0; status == FX_OK && i < n; i++) {
		fxi_use one(m);

		one.in(volumes[i]);
		status = one.ready() != FX_OK ? one.ready() : one.done("a tensor fit");
	}
	return status;
}

int fxi_cuda_tensor_fit(fx_math *m, const fx_tensor_design *design, const fx_array *const *volumes, const fx_array *mask,
	const fx_tensor_arrays *out)
{
	fxi_fit_job j = {};
	const float **list = nullptr;
	int status;
	fxi_use use(m);

	if (design->n < X || design->n > (1 << 24))
		return fx_math_fail(m, FX_EINVAL, "%lld volumes: a fit of a tensor and S0 takes 7 to 16777216", (long long)design->n);
	j.n = volumes[0]->n;
	j.n_volumes = (int)design->n;
	describe(design, j);
	status = use_arrays(m, use, mask, out, true, j);
	if (status != FX_OK || j.n == 0)
		return status;
	status = take_volumes(m, design->n, volumes, &list);
	if (status == FX_OK) {
		design_memory memory(m, design->n);
		fxi_work again(m, j.n, 1);

		status = again.status() != FX_OK ? again.status() : memory.fill(design, list, j);
		if (status == FX_OK) {
			fit_each<<<(unsigned)((j.n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(j, (uint8_t *)again.get());
			fxi_fit_again(m, j, (const uint8_t *)again.get());
			status = use.done("a tensor fit");
		}
		if (status == FX_OK)
			status = volumes_done(m, design->n, volumes);
	}
	fx_free(list);
	return status == FX_OK ? fx_math_check(m) : status;
}

struct share {
	int64_t n;
	float row[X];
	const float *volume, *first;
	float *sums;
	uint8_t *seen;
};

__global__ static void add_share(const __grid_constant__ share a)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	float s, y;

	if (i >= a.n)
		return;
	s = a.volume[i];
	a.seen[i] |= (fxi_usable(s) ? 0 : 1) | (s == a.first[i] ? 0 : 2);
	if (!fxi_usable(s))
		return;
	y = logf(s);
#pragma unroll
	for (int k = 0; k < X; k++)
		a.sums[k * a.n + i] += a.row[k] * y;
}

int fxi_cuda_tensor_accumulate(fx_math *m, const double row[7], const fx_array *volume, const fx_array *first, fx_array *sums,
	fx_array *seen)
{
	share a = {};
	fxi_use use(m);

	a.n = volume->n;
	if (!is_field(volume, FX_F32, 1, a.n) || !is_field(first, FX_F32, 1, a.n) || !is_field(sums, FX_F32, X, a.n) ||
		!is_field(seen, FX_U8, 1, a.n))
		return fx_math_fail(m, FX_EINVAL, "tensor_accumulate takes f32 volumes and sums and u8 marks of one size");
	if (a.n == 0)
		return FX_OK;
	for (int k = 0; k < X; k++)
		a.row[k] = (float)row[k];
	a.volume = (const float *)use.in(volume);
	a.first = (const float *)use.in(first);
	a.sums = (float *)use.out(sums);
	a.seen = (uint8_t *)use.out(seen);
	if (use.ready() != FX_OK)
		return use.ready();
	add_share<<<(unsigned)((a.n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(a);
	return use.done("a volume's share of a tensor fit");
}

__global__ static void __launch_bounds__(THREADS) solve_each(const __grid_constant__ fxi_fit_job j, const float *sums,
	const uint8_t *seen)
{
	int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
	double z[X];

	if (i >= j.n || (j.mask && !j.mask[i]) || (seen[i] & 1))
		return;
	for (int k = 0; k < X; k++)
		z[k] = (double)sums[k * j.n + i];
	fxi_put_tensor(j, z, i, seen[i] & 2 ? 0u : (unsigned)FX_TENSOR_ISOTROPIC);
}

int fxi_cuda_tensor_solve(fx_math *m, const fx_tensor_design *design, const fx_array *sums, const fx_array *seen,
	const fx_array *mask, const fx_tensor_arrays *out)
{
	fxi_fit_job j = {};
	fxi_use use(m);
	int status;

	j.n = seen->n;
	describe(design, j);
	if (!is_field(sums, FX_F32, X, j.n) || !is_field(seen, FX_U8, 1, j.n))
		return fx_math_fail(m, FX_EINVAL, "tensor_solve takes f32 sums and u8 marks of one size");
	const float *from = (const float *)use.in(sums);
	const uint8_t *marks = (const uint8_t *)use.in(seen);

	status = use_arrays(m, use, mask, out, false, j);
	if (status != FX_OK || j.n == 0)
		return status;
	solve_each<<<(unsigned)((j.n + THREADS - 1) / THREADS), THREADS, 0, fxi_stream_of(m)>>>(j, from, marks);
	return use.done("tensors of sums");
}

/* SPDX-License-Identifier: MIT */
/*
 * toeplitz_pass.cuh - FFT passes of a constant length L over many lines, half of whose input or output is zero or unwanted.
 *
 * L = A B. A line is done by THREADS threads: B transforms of length A over elements B apart, twiddles, an exchange through
 * shared memory, A transforms of length B. Outputs come out in the order k = kA + A kB, natural order in memory. Transforms
 * of length A and B are straight code in registers.
 */
#ifndef FORNIX_CUDA_TOEPLITZ_PASS_CUH
#define FORNIX_CUDA_TOEPLITZ_PASS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/** A and B of L = A B, A >= B. */
template <int L> struct fxi_split;
template <> struct fxi_split<32> { static const int A = 8, B = 4; };
template <> struct fxi_split<64> { static const int A = 8, B = 8; };
template <> struct fxi_split<128> { static const int A = 16, B = 8; };
template <> struct fxi_split<256> { static const int A = 16, B = 16; };
template <> struct fxi_split<512> { static const int A = 32, B = 16; };

__device__ static inline float2 fxi_add(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ static inline float2 fxi_sub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ static inline float2 fxi_mul(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

/* e^{SIGN 2 pi i k / n} for constants: folded by the compiler once loops are unrolled. */
template <int SIGN> __device__ static inline float2 fxi_root(int k, int n)
{
	/* eighths of a turn exactly; the others as constants to single precision */
	const float table[9] = {1.0f, 0.98078528040323043f, 0.92387953251128674f, 0.83146961230254524f, 0.70710678118654757f,
		0.55557023301960218f, 0.38268343236508977f, 0.19509032201612825f, 0.0f};
	int at = k * (32 / n) % 32, quarter = at / 8, rest = at % 8;
	float c = table[rest], s = table[8 - rest];
	float2 r = quarter == 0 ? make_float2(c, s) : quarter == 1 ? make_float2(-s, c) : quarter == 2 ? make_float2(-c, -s) :
		make_float2(s, -c);

	return make_float2(r.x, SIGN * r.y);
}

/* Decimation in frequency over registers: v[k] ends in bit-reversed order, which the caller's indices undo. */
template <int N, int SIGN> struct fxi_fft {
	__device__ static inline void run(float2 *v)
	{
#pragma unroll
		for (int i = 0; i < N / 2; i++) {
			float2 a = v[i], b = v[i + N / 2];

			v[i] = fxi_add(a, b);
			v[i + N / 2] = fxi_mul(fxi_sub(a, b), fxi_root<SIGN>(i, N));
		}
		fxi_fft<N / 2, SIGN>::run(v);
		fxi_fft<N / 2, SIGN>::run(v + N / 2);
	}
};
template <int SIGN> struct fxi_fft<1, SIGN> {
	__device__ static inline void run(float2 *) {}
};

/* Where frequency k of a transform of length n (a power of two) stands after fxi_fft. */
__host__ __device__ constexpr int fxi_reversed(int k, int n)
{
	return n == 1 ? 0 : (k % 2) * (n / 2) + fxi_reversed(k / 2, n / 2);
}

/*
 * One line in shared memory, padded against bank conflicts. `get(slot, i)` gives input element i, `put(slot, k, v)` takes output k; the
 * slot, below A, is a constant where the caller's loop is unrolled, so that arrays indexed by it are registers. IN and OUT: elements from there on are zero, or not wanted.
 */
template <int L, int SIGN, int IN, int OUT, typename GET, typename PUT>
__device__ static inline void fxi_line(int thread, float2 *shared, GET get, PUT put)
{
	constexpr int A = fxi_split<L>::A, B = fxi_split<L>::B, T = B, PITCH = A + 1;
	float2 v[A];
	float s, c;

	/* thread b has elements b, b + B, ...: one transform of length A */
#pragma unroll
	for (int i = 0; i < A; i++)
		v[i] = i * B < IN ? get(i, thread + i * B) : make_float2(0, 0);
	fxi_fft<A, SIGN>::run(v);
	sincospif(SIGN * 2.0f * (float)thread / (float)L, &s, &c);
	float2 step = make_float2(c, s), twiddle = make_float2(1, 0);
#pragma unroll
	for (int k = 0; k < A; k++) {
		shared[thread * PITCH + k] = fxi_mul(v[fxi_reversed(k, A)], twiddle);
		if (k % 4 == 3) {
			/* afresh now and then, so that rounding does not pile up */
			sincospif(SIGN * 2.0f * (float)(thread * (k + 1)) / (float)L, &s, &c);
			twiddle = make_float2(c, s);
		} else {
			twiddle = fxi_mul(twiddle, step);
		}
	}
	__syncwarp();
	/* the A transforms of length B, A / B a thread */
#pragma unroll
	for (int j = 0; j < A / B; j++) {
		int ka = thread + j * T;
		float2 w[B];

#pragma unroll
		for (int b = 0; b < B; b++)
			w[b] = shared[b * PITCH + ka];
		fxi_fft<B, SIGN>::run(w);
#pragma unroll
		for (int kb = 0; kb < B; kb++)
			if (kb * A < OUT)
				put(j * B + kb, ka + A * kb, w[fxi_reversed(kb, B)]);
	}
	__syncwarp();
}

template <int L> struct fxi_pass {
	static const int T = fxi_split<L>::B;                   /* threads a line */
	static const int PITCH = (fxi_split<L>::A + 1) * fxi_split<L>::B; /* float2 of a line's shared memory */
	static const int LINES = 128 / T;                       /* lines a block, along contiguous memory: whole segments */
};

/* ---- x: lines are contiguous ------------------------------------------------------------------ */

/* `image_lines` lines an image: with maps {.., c} there is one image, which every coil's lines start from as map times image. */
template <int L, bool MAPS> __global__ static void fxi_grow_rows_kernel(int64_t image_lines, int64_t n_lines, const float2 *maps,
	const float2 *in, float2 *out)
{
	__shared__ float2 memory[fxi_pass<L>::LINES * fxi_pass<L>::PITCH];
	int64_t line = blockIdx.x * (int64_t)fxi_pass<L>::LINES + threadIdx.y;
	bool there = line < n_lines;
	const float2 *from = in + (MAPS ? line % image_lines : line) * (L / 2), *map = maps + line * (L / 2);
	float2 *to = out + line * L;

	fxi_line<L, -1, L / 2, L>(threadIdx.x, memory + threadIdx.y * fxi_pass<L>::PITCH,
		[&](int, int i) {
			if (!there)
				return make_float2(0, 0);
			return MAPS ? fxi_mul(map[i], from[i]) : from[i];
		},
		[&](int, int k, float2 v) {
			if (there)
				to[k] = v;
		});
}

template <int L> __global__ static void fxi_shrink_rows_kernel(int64_t n_lines, const float2 *in, float2 *out)
{
	__shared__ float2 memory[fxi_pass<L>::LINES * fxi_pass<L>::PITCH];
	int64_t line = blockIdx.x * (int64_t)fxi_pass<L>::LINES + threadIdx.y;
	bool there = line < n_lines;
	const float2 *from = in + line * L;
	float2 *to = out + line * (L / 2);

	fxi_line<L, 1, L, L / 2>(threadIdx.x, memory + threadIdx.y * fxi_pass<L>::PITCH,
		[&](int, int i) { return there ? from[i] : make_float2(0, 0); },
		[&](int, int k, float2 v) {
			if (there)
				to[k] = v;
		});
}

/* out {n/2, lines} of one image (+)= the sum over coils of conj(map) times what comes back, in the coils' order. */
template <int L> __global__ static void fxi_shrink_combine_kernel(int64_t n_lines, int64_t n_coils, bool add, const float2 *maps,
	const float2 *in, float2 *out)
{
	constexpr int A = fxi_split<L>::A, B = fxi_split<L>::B;
	__shared__ float2 memory[fxi_pass<L>::LINES * fxi_pass<L>::PITCH];
	int64_t line = blockIdx.x * (int64_t)fxi_pass<L>::LINES + threadIdx.y;
	bool there = line < n_lines;
	float2 sum[A], s[A];
	float2 *to = out + line * (L / 2);

#pragma unroll
	for (int j = 0; j < A / B; j++)
#pragma unroll
		for (int kb = 0; kb < B / 2; kb++)
			sum[j * B + kb] = add && there ? to[threadIdx.x + j * B + A * kb] : make_float2(0, 0);
	for (int64_t c = 0; c < n_coils; c++) {
		const float2 *from = in + (c * n_lines + line) * L, *map = maps + (c * n_lines + line) * (L / 2);

#pragma unroll
		for (int j = 0; j < A / B; j++)
#pragma unroll
			for (int kb = 0; kb < B / 2; kb++)
				s[j * B + kb] = there ? map[threadIdx.x + j * B + A * kb] : make_float2(0, 0);
		fxi_line<L, 1, L, L / 2>(threadIdx.x, memory + threadIdx.y * fxi_pass<L>::PITCH,
			[&](int, int i) { return there ? from[i] : make_float2(0, 0); },
			[&](int slot, int, float2 v) {
				sum[slot] = fxi_add(sum[slot], fxi_mul(make_float2(s[slot].x, -s[slot].y), v));
			});
	}
#pragma unroll
	for (int j = 0; j < A / B; j++)
#pragma unroll
		for (int kb = 0; kb < B / 2; kb++)
			if (there)
				to[threadIdx.x + j * B + A * kb] = sum[j * B + kb];
}

template <int L> static void fxi_grow_rows(cudaStream_t s, int64_t image_lines, int64_t n_images, const float2 *maps,
	const float2 *in, float2 *out)
{
	int64_t n_lines = image_lines * n_images;
	unsigned blocks = (unsigned)((n_lines + fxi_pass<L>::LINES - 1) / fxi_pass<L>::LINES);
	dim3 threads(fxi_pass<L>::T, fxi_pass<L>::LINES);

	if (maps)
		fxi_grow_rows_kernel<L, true><<<blocks, threads, 0, s>>>(image_lines, n_lines, maps, in, out);
	else
		fxi_grow_rows_kernel<L, false><<<blocks, threads, 0, s>>>(image_lines, n_lines, maps, in, out);
}

template <int L> static void fxi_shrink_combine(cudaStream_t s, int64_t n_lines, int64_t n_coils, bool add, const float2 *maps,
	const float2 *in, float2 *out)
{
	fxi_shrink_combine_kernel<L><<<(unsigned)((n_lines + fxi_pass<L>::LINES - 1) / fxi_pass<L>::LINES),
		dim3(fxi_pass<L>::T, fxi_pass<L>::LINES), 0, s>>>(n_lines, n_coils, add, maps, in, out);
}

template <int L> static void fxi_shrink_rows(cudaStream_t s, int64_t n_lines, const float2 *in, float2 *out)
{
	fxi_shrink_rows_kernel<L><<<(unsigned)((n_lines + fxi_pass<L>::LINES - 1) / fxi_pass<L>::LINES),
		dim3(fxi_pass<L>::T, fxi_pass<L>::LINES), 0, s>>>(n_lines, in, out);
}

/* ---- y and z: element i of a line is `width` apart; neighbouring lines are neighbours in memory -- */

/*
 * A block has COLUMNS neighbouring lines; threads run along them fastest, so that a warp's accesses are whole segments. A
 * line's threads are then not in one warp, and the exchange takes the block's barrier.
 */
template <int L> struct fxi_columns {
	static const int T = fxi_split<L>::B, COLUMNS = 16;
};

/* e^{SIGN 2 pi i k / L}: from a table of e^{-2 pi i k / L} where there is one, which costs a third of computing it. */
template <int L, int SIGN> __device__ static inline float2 fxi_turn(int k, const float2 *roots)
{
	float2 w;

	if (roots) {
		w = roots[k];
		w.y *= -SIGN;
	} else {
		sincospif(SIGN * 2.0f * (float)k / (float)L, &w.y, &w.x);
	}
	return w;
}

template <int L, int SIGN, int IN, int OUT, typename GET, typename PUT>
__device__ static inline void fxi_column(int column, int thread, float2 *shared, const float2 *roots, GET get, PUT put)
{
	constexpr int A = fxi_split<L>::A, B = fxi_split<L>::B, C = fxi_columns<L>::COLUMNS;
	float2 v[A];

#pragma unroll
	for (int i = 0; i < A; i++)
		v[i] = i * B < IN ? get(i, thread + i * B) : make_float2(0, 0);
	fxi_fft<A, SIGN>::run(v);
	float2 step = fxi_turn<L, SIGN>(thread, roots), twiddle = make_float2(1, 0);
#pragma unroll
	for (int k = 0; k < A; k++) {
		shared[(thread * A + k) * C + column] = fxi_mul(v[fxi_reversed(k, A)], twiddle);
		if (k % 4 == 3 && k < A - 1)
			twiddle = fxi_turn<L, SIGN>(thread * (k + 1), roots);
		else
			twiddle = fxi_mul(twiddle, step);
	}
	__syncthreads();
#pragma unroll
	for (int j = 0; j < A / B; j++) {
		int ka = thread + j * B;
		float2 w[B];

#pragma unroll
		for (int b = 0; b < B; b++)
			w[b] = shared[(b * A + ka) * C + column];
		fxi_fft<B, SIGN>::run(w);
#pragma unroll
		for (int kb = 0; kb < B; kb++)
			if (kb * A < OUT)
				put(j * B + kb, ka + A * kb, w[fxi_reversed(kb, B)]);
	}
}

/* {width, L/2, n} to {width, L, n} */
template <int L> __global__ static void fxi_grow_columns_kernel(int64_t width, const float2 *in, float2 *out)
{
	extern __shared__ float2 memory[];
	int64_t column = blockIdx.x * (int64_t)fxi_columns<L>::COLUMNS + threadIdx.x;
	bool there = column < width;
	const float2 *from = in + blockIdx.y * (width * (L / 2)) + column;
	float2 *to = out + blockIdx.y * (width * L) + column;

	fxi_column<L, -1, L / 2, L>(threadIdx.x, threadIdx.y, memory, nullptr,
		[&](int, int i) { return there ? from[i * width] : make_float2(0, 0); },
		[&](int, int k, float2 v) {
			if (there)
				to[k * width] = v;
		});
}

template <int L> __global__ static void fxi_shrink_columns_kernel(int64_t width, const float2 *in, float2 *out)
{
	extern __shared__ float2 memory[];
	int64_t column = blockIdx.x * (int64_t)fxi_columns<L>::COLUMNS + threadIdx.x;
	bool there = column < width;
	const float2 *from = in + blockIdx.y * (width * L) + column;
	float2 *to = out + blockIdx.y * (width * (L / 2)) + column;

	fxi_column<L, 1, L, L / 2>(threadIdx.x, threadIdx.y, memory, nullptr,
		[&](int, int i) { return there ? from[i * width] : make_float2(0, 0); },
		[&](int, int k, float2 v) {
			if (there)
				to[k * width] = v;
		});
}

/*
 * {width, L/2} in place: forward to L, times norm * spectrum {width, L}, back, half kept; the spectrum is read once for all coils. Several
 * blocks have to fit a multiprocessor, or nobody computes while one of them waits: 8 coils at 128^3 took 1.39 ms a product with one on an H200,
 * 1.17 with two and 1.11 with three.
 */
template <int L> __global__ static void __launch_bounds__(fxi_columns<L>::T * fxi_columns<L>::COLUMNS, L > 256 ? 2 : 3)
fxi_turn_columns_kernel(int64_t width, int64_t n_coils, float norm, const float *spectrum, float2 *a)
{
	constexpr int A = fxi_split<L>::A, B = fxi_split<L>::B, C = fxi_columns<L>::COLUMNS;
	extern __shared__ float2 memory[];
	int64_t column = blockIdx.x * (int64_t)C + threadIdx.x;
	bool there = column < width;
	float factor[A];

#if __CUDA_ARCH__ >= 800
	constexpr bool TABLE = true;
#else
	constexpr bool TABLE = L <= 256; /* a block has 64 KB, and lines of 512 take them all */
#endif
	float2 *roots = nullptr;
	if constexpr (TABLE) {
		__shared__ float2 table[L];
		roots = table;
		for (int k = threadIdx.y * C + threadIdx.x; k < L; k += B * C)
			roots[k] = fxi_turn<L, -1>(k, nullptr);
	}
	/* output k = ka + A kb of thread ka, in the order that fxi_column puts them */
#pragma unroll
	for (int j = 0; j < A / B; j++)
#pragma unroll
		for (int kb = 0; kb < B; kb++)
			factor[j * B + kb] = there ? norm * spectrum[column + width * (threadIdx.y + j * B + A * kb)] : 0;
	__syncthreads();
	for (int64_t c = 0; c < n_coils; c++) {
		float2 *at = a + c * (width * (L / 2)) + column;
		float2 kept[A];

		fxi_column<L, -1, L / 2, L>(threadIdx.x, threadIdx.y, memory, roots,
			[&](int, int i) { return there ? at[i * width] : make_float2(0, 0); },
			[&](int slot, int, float2 v) { kept[slot] = make_float2(factor[slot] * v.x, factor[slot] * v.y); });
		__syncthreads();
		/* A thread's outputs t + B (j + A/B kb) are the very inputs t + B i that it needs on the way back: they stay in registers. */
		fxi_column<L, 1, L, L / 2>(threadIdx.x, threadIdx.y, memory, roots,
			[&](int i, int) { return kept[i % (A / B) * B + i / (A / B)]; },
			[&](int, int k, float2 w) {
				if (there)
					at[k * width] = w;
			});
		__syncthreads();
	}
}

template <int L> static unsigned fxi_column_bytes()
{
	return (unsigned)(L * fxi_columns<L>::COLUMNS * sizeof(float2));
}

template <int L> static void fxi_grow_columns(cudaStream_t s, int64_t width, int64_t n, const float2 *in, float2 *out)
{
	unsigned bytes = fxi_column_bytes<L>();

	cudaFuncSetAttribute(fxi_grow_columns_kernel<L>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
	fxi_grow_columns_kernel<L><<<dim3((unsigned)((width + fxi_columns<L>::COLUMNS - 1) / fxi_columns<L>::COLUMNS), (unsigned)n),
		dim3(fxi_columns<L>::COLUMNS, fxi_columns<L>::T), bytes, s>>>(width, in, out);
}

template <int L> static void fxi_shrink_columns(cudaStream_t s, int64_t width, int64_t n, const float2 *in, float2 *out)
{
	unsigned bytes = fxi_column_bytes<L>();

	cudaFuncSetAttribute(fxi_shrink_columns_kernel<L>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
	fxi_shrink_columns_kernel<L><<<dim3((unsigned)((width + fxi_columns<L>::COLUMNS - 1) / fxi_columns<L>::COLUMNS), (unsigned)n),
		dim3(fxi_columns<L>::COLUMNS, fxi_columns<L>::T), bytes, s>>>(width, in, out);
}

template <int L> static void fxi_turn_columns(cudaStream_t s, int64_t width, int64_t n_coils, float norm, const float *spectrum,
	float2 *a)
{
	unsigned bytes = fxi_column_bytes<L>();

	cudaFuncSetAttribute(fxi_turn_columns_kernel<L>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
	fxi_turn_columns_kernel<L><<<(unsigned)((width + fxi_columns<L>::COLUMNS - 1) / fxi_columns<L>::COLUMNS),
		dim3(fxi_columns<L>::COLUMNS, fxi_columns<L>::T), bytes, s>>>(width, n_coils, norm, spectrum, a);
}

#endif

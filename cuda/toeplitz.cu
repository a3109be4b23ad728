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
#include "toeplitz.cuh"
#include "toeplitz_pass.cuh"

#define BATCH 8  /* coils */
#define SLABS 8  /* of the columns, where z goes through cuFFT */

typedef fxi_box box;

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

static bool own_lengths(const box *b)
{
	return own_length(b->n[0]) && own_length(b->n[1]) && (b->n[2] == 1 || own_length(b->n[2]));
}

/* Coils first .. first + count. With maps the image is multiplied by them as it is read, and summed over coils as it is written. */
static void own_passes(cudaStream_t s, const fxi_product *p, int64_t first, int64_t count)
{
	const int64_t *n = p->box.n, *f = p->box.f;
	int64_t lines = n[1] * n[2], image = n[0] * lines;
	float norm = (float)(1 / ((double)f[0] * (double)f[1] * (double)f[2]));
	const float2 *maps = p->maps ? p->maps + first * image : nullptr, *x = p->maps ? p->x : p->x + first * image;
	float2 *a = p->work, *c = a + f[0] * lines * count, *y = p->maps ? p->y : p->y + first * image;

#define GROW_X(L) fxi_grow_rows<L>(s, lines, count, maps, x, a)
#define SHRINK_X(L) if (maps) fxi_shrink_combine<L>(s, lines, count, first > 0, maps, a, y); \
	else fxi_shrink_rows<L>(s, lines * count, a, y)
	/* lines along y lie f[0] apart, and along z f[0] f[1] */
#define GROW_Y(L) fxi_grow_columns<L>(s, f[0], n[2] * count, a, c)
#define SHRINK_Y(L) fxi_shrink_columns<L>(s, f[0], n[2] * count, c, a)
#define TURN_Y(L) fxi_turn_columns<L>(s, f[0], count, norm, p->spectrum, a)
#define TURN_Z(L) fxi_turn_columns<L>(s, f[0] * f[1], count, norm, p->spectrum, c)
	WITH_LENGTH(n[0], GROW_X)
	if (n[2] > 1) {
		WITH_LENGTH(n[1], GROW_Y)
		WITH_LENGTH(n[2], TURN_Z)
		WITH_LENGTH(n[1], SHRINK_Y)
	} else {
		WITH_LENGTH(n[1], TURN_Y)
	}
	WITH_LENGTH(n[0], SHRINK_X)
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
static int transform(fx_math *m, cudaStream_t s, const int64_t dims[3], int64_t batch, int direction, float2 *a)
{
	cufftHandle plan;
	int status;

	if (dims[0] * dims[1] * dims[2] == 1 || batch == 0)
		return FX_OK;
	status = fxi_cuda_plan_of(m, FX_CF32, dims, batch, &plan);
	if (status == FX_OK)
		status = fxi_cufft_check(m, cufftSetStream(plan, s), "a Toeplitz pass");
	return status == FX_OK ? fxi_cufft_check(m, a ? cufftExecC2C(plan, a, a, direction) : CUFFT_SUCCESS, "a Toeplitz pass") : status;
}

static int64_t slab_of(const box *b)
{
	return (b->f[0] * b->f[1] + SLABS - 1) / SLABS;
}

static int slab_pass(fx_math *m, cudaStream_t s, const fxi_product *p, int64_t first, int64_t count, float2 *planes, float2 *lines)
{
	const box *b = &p->box;
	const int64_t line[3] = {b->f[2], 1, 1};
	float norm = (float)(1 / ((double)b->f[0] * (double)b->f[1] * (double)b->f[2]));
	int status;

	columns_out<<<blocks(count * b->f[2]), 256, 0, s>>>(*b, first, count, planes, lines);
	status = transform(m, s, line, count, CUFFT_FORWARD, lines);
	if (status != FX_OK)
		return status;
	times_spectrum<<<blocks(count * b->f[2]), 256, 0, s>>>(*b, first, count, norm, p->spectrum, lines);
	status = transform(m, s, line, count, CUFFT_INVERSE, lines);
	if (status == FX_OK)
		columns_in<<<blocks(count * b->n[2]), 256, 0, s>>>(*b, first, count, lines, planes);
	return status;
}

__global__ static void times_map(int64_t n, const float2 *map, const float2 *x, float2 *y)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = fxi_mul(map[i], x[i]);
}

__global__ static void add_conjugate(int64_t n, bool add, const float2 *map, const float2 *x, float2 *y)
{
	int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	float2 s = map[i], v = fxi_mul(make_float2(s.x, -s.y), x[i]);
	y[i] = add ? fxi_add(y[i], v) : v;
}

/* One coil: from `x` to `y`, which may be the same. */
static int any_size(fx_math *m, cudaStream_t s, const fxi_product *p, const float2 *x, float2 *y, float2 *planes)
{
	const box *b = &p->box;
	int64_t columns = b->f[0] * b->f[1], slab = slab_of(b), image = b->n[0] * b->n[1] * b->n[2];
	const int64_t plane[3] = {b->f[0], b->f[1], 1};
	float2 *lines = planes + columns * b->n[2];
	int status;

	pad_planes<<<blocks(columns * b->n[2]), 256, 0, s>>>(*b, x, planes);
	status = transform(m, s, plane, b->n[2], CUFFT_FORWARD, planes);
	for (int64_t first = 0; status == FX_OK && first < columns; first += slab)
		status = slab_pass(m, s, p, first, columns - first < slab ? columns - first : slab, planes, lines);
	if (status == FX_OK)
		status = transform(m, s, plane, b->n[2], CUFFT_INVERSE, planes);
	if (status == FX_OK)
		crop_planes<<<blocks(image), 256, 0, s>>>(*b, planes, y);
	return status;
}

/* A coil at a time, whose image lies in front of the planes where there are maps. */
static int any_coils(fx_math *m, cudaStream_t s, const fxi_product *p)
{
	int64_t image = p->box.n[0] * p->box.n[1] * p->box.n[2];
	int status = FX_OK;

	for (int64_t c = 0; status == FX_OK && c < p->n_coils; c++) {
		if (!p->maps) {
			status = any_size(m, s, p, p->x + c * image, p->y + c * image, p->work);
			continue;
		}
		times_map<<<blocks(image), 256, 0, s>>>(image, p->maps + c * image, p->x, p->work);
		status = any_size(m, s, p, p->work, p->work, p->work + image);
		if (status == FX_OK)
			add_conjugate<<<blocks(image), 256, 0, s>>>(image, c > 0, p->maps + c * image, p->work, p->y);
	}
	return status;
}

/* ---- products ---------------------------------------------------------------------------------- */

bool fxi_product_box(const int64_t dims[3], const fx_array *spectrum, box *b)
{
	for (int d = 0; d < 3; d++) {
		b->n[d] = dims[d];
		b->f[d] = dims[d] > 1 ? 2 * dims[d] : 1;
		if (spectrum && spectrum->dims[d] != b->f[d])
			return false;
	}
	return !spectrum || (spectrum->type == FX_F32 && spectrum->n == b->f[0] * b->f[1] * b->f[2]);
}

int64_t fxi_product_bytes(const box *b, int64_t batch)
{
	int64_t cells;

	if (own_lengths(b))
		cells = batch * b->f[0] * b->n[2] * (b->n[1] + (b->n[2] > 1 ? b->f[1] : 0));
	else
		cells = b->n[0] * b->n[1] * b->n[2] + b->f[0] * b->f[1] * b->n[2] + slab_of(b) * b->f[2];
	return cells * (int64_t)sizeof(float2);
}

int64_t fxi_product_batch(fx_math *m, const box *b, int64_t n_coils)
{
	int64_t batch = n_coils < BATCH ? n_coils : BATCH;

	while (batch > 1 && fxi_product_bytes(b, batch) > fxi_queue(m)->memory / 8)
		batch--;
	return batch;
}

int fxi_product_prepare(fx_math *m, const box *b)
{
	const int64_t plane[3] = {b->f[0], b->f[1], 1}, line[3] = {b->f[2], 1, 1};
	int64_t columns = b->f[0] * b->f[1], slab = slab_of(b);
	cudaStream_t s = fxi_stream_of(m);
	int status;

	if (own_lengths(b))
		return FX_OK;
	status = transform(m, s, plane, b->n[2], CUFFT_FORWARD, nullptr);
	if (status == FX_OK)
		status = transform(m, s, line, slab, CUFFT_FORWARD, nullptr);
	return status == FX_OK ? transform(m, s, line, columns % slab, CUFFT_FORWARD, nullptr) : status;
}

int fxi_product_run(fx_math *m, cudaStream_t s, const fxi_product *p)
{
	if (!own_lengths(&p->box))
		return any_coils(m, s, p);
	for (int64_t c = 0; c < p->n_coils; c += p->batch)
		own_passes(s, p, c, p->n_coils - c < p->batch ? p->n_coils - c : p->batch);
	return FX_OK;
}

int fxi_cuda_toeplitz_apply(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y)
{
	fxi_product p = {};
	fxi_use use(m);
	int status;

	if (x->type != FX_CF32 || !fx_array_same_shape(x, y) || !fxi_product_box(x->dims, spectrum, &p.box))
		return fx_math_fail(m, FX_EINVAL,
			"toeplitz_apply: a spectrum of %lld x %lld x %lld does not belong to images of %lld x %lld x %lld",
			(long long)spectrum->dims[0], (long long)spectrum->dims[1], (long long)spectrum->dims[2],
			(long long)x->dims[0], (long long)x->dims[1], (long long)x->dims[2]);
	if (x->n == 0)
		return FX_OK;
	p.n_coils = x->n / (x->dims[0] * x->dims[1] * x->dims[2]);
	p.batch = fxi_product_batch(m, &p.box, p.n_coils);
	fxi_work work(m, fxi_product_bytes(&p.box, p.batch), 1);
	p.work = (float2 *)work.get();
	p.spectrum = (const float *)use.in(spectrum);
	p.x = (const float2 *)use.in(x);
	p.y = (float2 *)use.out(y);
	status = work.status() != FX_OK ? work.status() : use.ready();
	if (status == FX_OK)
		status = fxi_product_run(m, fxi_stream_of(m), &p);
	return status == FX_OK ? use.done("the Toeplitz product") : status;
}

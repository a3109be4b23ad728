/* SPDX-License-Identifier: MIT */
/* separable_template.h - included by separable.c with REAL, PHASE, PICK, FN and GEMM set for one precision. */

struct FN(inputs) {
	const struct shape *shape;
	int64_t n_samples;
	const double *k;
	const REAL *values;      /* adjoint: samples, complex {M, coils} */
	const REAL *image;       /* forward: complex {x, y, z, coils} */
	REAL *out;               /* adjoint: the image; forward: samples */
	double scale;
	fx_math *math;           /* tasks that are left when the work is given up do nothing */
	fxi_scratch *scratch;
};

/* What a thread works in. */
struct FN(work) {
	PHASE *step;             /* of a chunk, one axis */
	REAL *wave[3];           /* {row, CHUNK}: e^{i2pi k.x} along each axis of a block */
	REAL *weights;           /* adjoint: {batch, CHUNK}, the samples with the coils first */
	REAL *left;              /* adjoint: {voxels of the longest axis, batch, CHUNK}; forward: {columns, voxels} of the image */
	REAL *right;             /* {columns, CHUNK} */
	REAL *part;              /* adjoint: {voxels of the longest axis, batch, columns}; forward: {columns, CHUNK} */
	double *sum;             /* adjoint: as part; forward: {CHUNK, coils} */
};

/* Lays the work buffers out, or with memory NULL only says how many bytes they take. */
static int64_t FN(layout)(const struct shape *s, bool forward, void *memory, struct FN(work) *w)
{
	const int64_t pair = 2 * sizeof(REAL), columns = s->block[1] * s->block[2], rows = s->block[0] * s->batch;
	int64_t bytes = 0;

	w->step = part_of(memory, &bytes, CHUNK * (int64_t)sizeof(PHASE));
	for (int a = 0; a < 3; a++)
		w->wave[a] = part_of(memory, &bytes, CHUNK * s->row[a] * pair);
	w->weights = part_of(memory, &bytes, CHUNK * s->batch * pair);
	w->left = part_of(memory, &bytes, (forward ? columns * s->block[0] : CHUNK * rows) * pair);
	w->right = part_of(memory, &bytes, CHUNK * columns * pair);
	w->part = part_of(memory, &bytes, (forward ? CHUNK : rows) * columns * pair);
	w->sum = part_of(memory, &bytes, (forward ? CHUNK * s->n_coils : rows * columns) * 2 * (int64_t)sizeof(double));
	return bytes;
}

/* e^{+-i2pi k.x} of n samples along one axis of a block. */
static void FN(waves)(const struct FN(inputs) *in, const struct block *b, int a, int64_t m, int64_t n, bool negative,
	struct FN(work) *w)
{
	const double *k = in->k + 3 * m + in->shape->axis[a];

	for (int64_t i = 0; i < n; i++) {
		PHASE step = FN(fxi_phase)(k[3 * i]);

		w->step[i] = negative ? (PHASE)(0 - step) : step;
	}
	PICK(fxi_separable_waves)(n, w->step, b->first[a], b->n[a], in->shape->row[a], w->wave[a]);
}

/* The right factor: waves across the longest axis. */
static void FN(across)(const struct FN(inputs) *in, const struct block *b, int64_t m, int64_t n, bool negative,
	struct FN(work) *w)
{
	const int64_t *row = in->shape->row;

	FN(waves)(in, b, 1, m, n, negative, w);
	FN(waves)(in, b, 2, m, n, negative, w);
	PICK(fxi_separable_products)(n, b->n[2], w->wave[2], row[2], b->n[1], w->wave[1], row[1], w->right);
}

/* The left factor: waves along the longest axis, times the samples of each coil. */
static void FN(along)(const struct FN(inputs) *in, const struct block *b, int64_t coil, int64_t batch, int64_t m, int64_t n,
	struct FN(work) *w)
{
	for (int64_t c = 0; c < batch; c++) {
		const REAL *from = in->values + 2 * ((coil + c) * in->n_samples + m);

		for (int64_t i = 0; i < n; i++) {
			w->weights[2 * (i * batch + c)] = from[2 * i];
			w->weights[2 * (i * batch + c) + 1] = from[2 * i + 1];
		}
	}
	FN(waves)(in, b, 0, m, n, false, w);
	PICK(fxi_separable_products)(n, batch, w->weights, batch, b->n[0], w->wave[0], in->shape->row[0], w->left);
}

static void FN(add_block)(const struct FN(inputs) *in, const struct block *b, int64_t coil, int64_t batch, const double *sum)
{
	const struct shape *s = in->shape;

	for (int64_t z = 0; z < b->n[2]; z++)
		for (int64_t y = 0; y < b->n[1]; y++)
			for (int64_t c = 0; c < batch; c++)
				for (int64_t x = 0; x < b->n[0]; x++, sum += 2) {
					REAL *to = in->out + 2 * (b->place + x * s->stride[0] + y * s->stride[1] + z * s->stride[2] +
						(coil + c) * s->n_voxels);

					to[0] += (REAL)(in->scale * sum[0]);
					to[1] += (REAL)(in->scale * sum[1]);
				}
}

/* One block of voxels, all coils. */
static void FN(adjoint_task)(void *arg, int64_t i)
{
	static const REAL one[2] = {1, 0}, none[2] = {0, 0};
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	struct block b = block_of(s, i);
	void *memory = fxi_scratch_take(in->scratch);
	struct FN(work) w;

	FN(layout)(s, false, memory, &w);
	for (int64_t coil = 0; coil < s->n_coils; coil += s->batch) {
		int64_t batch = s->n_coils - coil < s->batch ? s->n_coils - coil : s->batch, rows = batch * b.n[0];

		memset(w.sum, 0, (size_t)(rows * b.columns) * 2 * sizeof *w.sum);
		for (int64_t m = 0; m < in->n_samples; m += CHUNK) {
			int64_t n = in->n_samples - m < CHUNK ? in->n_samples - m : CHUNK;

			if (fxi_given_up(in->math))
				goto out;
			FN(along)(in, &b, coil, batch, m, n, &w);
			FN(across)(in, &b, m, n, false, &w);
			GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)b.columns, (int)rows, (int)n, one, w.right, (int)b.columns,
				w.left, (int)rows, none, w.part, (int)rows);
			PICK(fxi_separable_add)(2 * rows * b.columns, w.part, w.sum);
		}
		FN(add_block)(in, &b, coil, batch, w.sum);
	}
out:
	fxi_scratch_give(in->scratch, memory);
}

/* A block of one coil's image, its longest axis first. */
static void FN(take_block)(const struct FN(inputs) *in, const struct block *b, int64_t coil, REAL *to)
{
	const struct shape *s = in->shape;

	for (int64_t x = 0; x < b->n[0]; x++)
		for (int64_t z = 0; z < b->n[2]; z++)
			for (int64_t y = 0; y < b->n[1]; y++, to += 2)
				memcpy(to, in->image + 2 * (b->place + x * s->stride[0] + y * s->stride[1] + z * s->stride[2] +
					coil * s->n_voxels), 2 * sizeof *to);
}

/* One chunk of samples against the whole image, all coils. */
static void FN(forward_task)(void *arg, int64_t i)
{
	static const REAL one[2] = {1, 0}, none[2] = {0, 0};
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	int64_t m = i * CHUNK, n = in->n_samples - m < CHUNK ? in->n_samples - m : CHUNK;
	void *memory = fxi_scratch_take(in->scratch);
	struct FN(work) w;

	FN(layout)(s, true, memory, &w);
	memset(w.sum, 0, (size_t)(CHUNK * s->n_coils) * 2 * sizeof *w.sum);
	for (int64_t at = 0; at < n_blocks_of(s); at++) {
		struct block b = block_of(s, at);

		if (fxi_given_up(in->math))
			goto out;
		FN(waves)(in, &b, 0, m, n, true, &w);
		FN(across)(in, &b, m, n, true, &w);
		for (int64_t c = 0; c < s->n_coils; c++) {
			FN(take_block)(in, &b, c, w.left);
			GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)b.columns, (int)b.n[0], one, w.wave[0],
				(int)s->row[0], w.left, (int)b.columns, none, w.part, (int)b.columns);
			PICK(fxi_separable_dots)(n, b.columns, w.part, w.right, w.sum + 2 * c * CHUNK);
		}
	}
	for (int64_t c = 0; c < s->n_coils; c++)
		for (int64_t j = 0; j < 2 * n; j++)
			in->out[2 * (c * in->n_samples + m) + j] = (REAL)(in->scale * w.sum[2 * c * CHUNK + j]);
out:
	fxi_scratch_give(in->scratch, memory);
}

static int FN(sums)(fx_math *m, const struct shape *s, const fx_array *k, bool forward, double scale,
	const fx_array *samples, const fx_array *image)
{
	fxi_scratch scratch;
	struct FN(inputs) in = {.shape = s, .n_samples = k->dims[1], .k = k->data, .values = samples->data, .image = image->data,
		.out = forward ? samples->data : image->data, .scale = scale, .math = m, .scratch = &scratch};
	struct FN(work) none;
	int status = fxi_scratch_new(m, FN(layout)(s, forward, NULL, &none), &scratch);

	if (status != FX_OK)
		return status;
	if (forward)
		fx_parallel(m->n_threads, (in.n_samples + CHUNK - 1) / CHUNK, FN(forward_task), &in);
	else
		fx_parallel(m->n_threads, n_blocks_of(s), FN(adjoint_task), &in);
	fxi_scratch_free(&scratch);
	return fx_math_check(m);
}

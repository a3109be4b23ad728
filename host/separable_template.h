/* SPDX-License-Identifier: MIT */
/* separable_template.h - included by separable.c with REAL, PHASE, PICK and FN set for one precision. */

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

/* What a thread works in; {row, 2, n} and the left factor's bands as in kernels/separable.h. */
struct FN(work) {
	PHASE *step;             /* of a chunk, one axis */
	REAL *wave[3];           /* {row, 2, CHUNK}: e^{i2pi k.x} along each axis of a block */
	REAL *left;              /* adjoint: the samples times waves, a coil after the other; forward: the image */
	REAL *right;             /* {columns, 2, CHUNK}: waves across */
	REAL *part;              /* adjoint: {rows, 2, columns}; forward: {columns, 2, CHUNK} */
	double *sum;             /* adjoint: as part; forward: complex pairs {CHUNK, coils} */
};

/* Lays the work buffers out, or with memory NULL only says how many bytes they take. */
static int64_t FN(layout)(const struct shape *s, bool forward, void *memory, struct FN(work) *w)
{
	const int64_t pair = 2 * sizeof(REAL), rows = s->row[0] * s->batch;
	int64_t bytes = 0;

	w->step = part_of(memory, &bytes, CHUNK * (int64_t)sizeof(PHASE));
	for (int a = 0; a < 3; a++)
		w->wave[a] = part_of(memory, &bytes, CHUNK * s->row[a] * pair);
	w->left = part_of(memory, &bytes, CHUNK * (forward ? s->across : rows) * pair);
	w->right = part_of(memory, &bytes, CHUNK * s->across * pair);
	w->part = part_of(memory, &bytes, (forward ? CHUNK : rows) * s->across * pair);
	w->sum = part_of(memory, &bytes, (forward ? CHUNK * s->n_coils : rows * s->across) * 2 * (int64_t)sizeof(double));
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
	PICK(fxi_separable_right)(n, b->n[1], row[1], w->wave[1], b->n[2], row[2], w->wave[2], in->shape->across, w->right);
}

static void FN(add_block)(const struct FN(inputs) *in, const struct block *b, int64_t coil, int64_t batch, const double *sum)
{
	const struct shape *s = in->shape;

	for (int64_t z = 0; z < b->n[2]; z++)
		for (int64_t y = 0; y < b->n[1]; y++, sum += 2 * batch * s->row[0])
			for (int64_t c = 0; c < batch; c++)
				for (int64_t x = 0; x < b->n[0]; x++) {
					REAL *to = in->out + 2 * (b->place + x * s->stride[0] + y * s->stride[1] + z * s->stride[2] +
						(coil + c) * s->n_voxels);

					to[0] += (REAL)(in->scale * sum[c * s->row[0] + x]);
					to[1] += (REAL)(in->scale * sum[(batch + c) * s->row[0] + x]);
				}
}

/* One block of voxels, all coils. */
static void FN(adjoint_task)(void *arg, int64_t i)
{
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	const fxi_separable_steps at = {.term = 2 * s->across, .column = 1, .im = s->across};
	struct block b = block_of(s, i);
	void *memory = fxi_scratch_take(in->scratch);
	struct FN(work) w;

	FN(layout)(s, false, memory, &w);
	for (int64_t coil = 0; coil < s->n_coils; coil += s->batch) {
		int64_t batch = s->n_coils - coil < s->batch ? s->n_coils - coil : s->batch, rows = batch * s->row[0];

		memset(w.sum, 0, (size_t)(rows * b.columns) * 2 * sizeof *w.sum);
		for (int64_t m = 0; m < in->n_samples; m += CHUNK) {
			int64_t n = in->n_samples - m < CHUNK ? in->n_samples - m : CHUNK;

			if (fxi_given_up(in->math))
				goto out;
			FN(waves)(in, &b, 0, m, n, false, &w);
			for (int64_t c = 0; c < batch; c++)
				PICK(fxi_separable_left)(n, in->values + 2 * ((coil + c) * in->n_samples + m), s->row[0], w.wave[0],
					w.left + 2 * CHUNK * c * s->row[0]);
			FN(across)(in, &b, m, n, false, &w);
			PICK(fxi_separable_product)(n, rows, b.columns, w.left, w.right, &at, w.part);
			PICK(fxi_separable_add)(2 * rows * b.columns, w.part, w.sum);
		}
		FN(add_block)(in, &b, coil, batch, w.sum);
	}
out:
	fxi_scratch_give(in->scratch, memory);
}

/* A block of one coil's image as a left factor: a term for each voxel of the longest axis, columns in bands. */
static void FN(take_block)(const struct FN(inputs) *in, const struct block *b, int64_t coil, REAL *left)
{
	enum { BAND = FXI_SEPARABLE_BYTES / sizeof(REAL) };
	const struct shape *s = in->shape;

	for (int64_t column = 0; column < b->columns; column++) {
		int64_t y = column % b->n[1], z = column / b->n[1];
		const REAL *from = in->image + 2 * (b->place + y * s->stride[1] + z * s->stride[2] + coil * s->n_voxels);
		REAL *to = left + column / BAND * (2 * BAND * CHUNK) + column % BAND;

		for (int64_t x = 0; x < b->n[0]; x++) {
			to[2 * BAND * x] = from[2 * x * s->stride[0]];
			to[2 * BAND * x + BAND] = from[2 * x * s->stride[0] + 1];
		}
	}
}

/* One chunk of samples against the whole image, all coils. */
static void FN(forward_task)(void *arg, int64_t i)
{
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	const fxi_separable_steps at = {.term = 1, .column = 2 * s->row[0], .im = s->row[0]};
	int64_t m = i * CHUNK, n = in->n_samples - m < CHUNK ? in->n_samples - m : CHUNK;
	void *memory = fxi_scratch_take(in->scratch);
	struct FN(work) w;

	FN(layout)(s, true, memory, &w);
	memset(w.sum, 0, (size_t)(CHUNK * s->n_coils) * 2 * sizeof *w.sum);
	for (int64_t block = 0; block < n_blocks_of(s); block++) {
		struct block b = block_of(s, block);

		if (fxi_given_up(in->math))
			goto out;
		FN(waves)(in, &b, 0, m, n, true, &w);
		FN(across)(in, &b, m, n, true, &w);
		for (int64_t c = 0; c < s->n_coils; c++) {
			FN(take_block)(in, &b, c, w.left);
			PICK(fxi_separable_product)(b.n[0], s->across, n, w.left, w.wave[0], &at, w.part);
			PICK(fxi_separable_dots)(n, b.columns, s->across, w.part, w.right, w.sum + 2 * c * CHUNK);
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

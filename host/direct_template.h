/* SPDX-License-Identifier: MIT */
/* direct_template.h - included by direct.c with REAL, PHASE, PICK and FN set for one precision. */

#define LANES (FXI_DIRECT_BYTES / (int)sizeof(REAL))
#define WIDEST (FXI_DIRECT_VECTORS * LANES)

struct FN(inputs) {
	const struct shape *shape;
	int64_t n_samples;
	const PHASE *phase[3];   /* fraction of a cycle a voxel, per axis: line, and the two others */
	const REAL *values;      /* adjoint: samples {M, 2, coils}, re and im apart */
	const REAL *image;       /* forward: complex {x, y, z, coils} */
	REAL *out;               /* adjoint: the image; forward: samples, complex {M, coils} */
	double scale;
	const fx_math *math;     /* tasks that are left when the work is given up do nothing */
};

static int FN(phases_new)(fx_math *m, const struct shape *s, const fx_array *k, PHASE **out)
{
	int64_t n = k->dims[1], padded = (n + WIDEST - 1) / WIDEST * WIDEST;
	PHASE *p = fx_alloc(3 * padded, sizeof *p);

	*out = p;
	if (!p)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the phases of %lld samples", (long long)n);
	for (int a = 0; a < 3; a++)
		for (int64_t i = 0; i < n; i++)
			p[a * padded + i] = s->n[a] > 1 ? FN(fxi_phase)(FX_F64_OF(k)[3 * i + s->axis[a]]) : 0;
	return FX_OK;
}

/* One block of voxels of one line, all coils. */
static void FN(adjoint_task)(void *arg, int64_t i)
{
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	int64_t block = i % s->n_blocks, l1 = i / s->n_blocks % s->n[1], l2 = i / s->n_blocks / s->n[1];
	int64_t first = block * s->block, count = s->n[0] - first < s->block ? s->n[0] - first : s->block;
	const int64_t x[3] = {first - s->n[0] / 2, l1 - s->n[1] / 2, l2 - s->n[2] / 2};
	int64_t place = first * s->stride[0] + l1 * s->stride[1] + l2 * s->stride[2];
	int vectors = vectors_for(count, LANES, s->block / LANES);
	PHASE base[CHUNK];
	REAL part[2 * FXI_DIRECT_COILS][WIDEST];
	double total[2 * FXI_DIRECT_COILS][WIDEST];

	if (fxi_given_up(in->math))
		return;
	for (int64_t c = 0; c < s->n_coils;) {
		int batch = coil_batch(s->n_coils - c);
		REAL *sum[2 * FXI_DIRECT_COILS];
		const REAL *values[2 * FXI_DIRECT_COILS];

		for (int r = 0; r < 2 * batch; r++)
			sum[r] = part[r];
		memset(total, 0, sizeof total);
		for (int64_t m = 0; m < in->n_samples; m += CHUNK) {
			int64_t n = in->n_samples - m < CHUNK ? in->n_samples - m : CHUNK;
			const PHASE *p[3] = {in->phase[0] + m, in->phase[1] + m, in->phase[2] + m};

			for (int r = 0; r < 2 * batch; r++)
				values[r] = in->values + (2 * c + r) * in->n_samples + m;
			PICK(fxi_direct_base)(n, p, x, base);
			PICK(fxi_direct_voxels)(batch, vectors, n, base, p[0], values, sum);
			for (int r = 0; r < 2 * batch; r++)
				for (int64_t v = 0; v < count; v++)
					total[r][v] += (double)part[r][v];
		}
		for (int b = 0; b < batch; b++)
			for (int64_t v = 0; v < count; v++) {
				REAL *to = in->out + 2 * (place + v * s->stride[0] + (c + b) * s->n_voxels);

				to[0] += (REAL)(in->scale * total[2 * b][v]);
				to[1] += (REAL)(in->scale * total[2 * b + 1][v]);
			}
		c += batch;
	}
}

static int FN(adjoint)(fx_math *m, const struct shape *s, const fx_array *k, const fx_array *samples, double scale,
	fx_array *image)
{
	int64_t n = k->dims[1], padded = (n + WIDEST - 1) / WIDEST * WIDEST;
	struct FN(inputs) in = {.shape = s, .n_samples = n, .out = image->data, .scale = scale,
		.math = m};
	const REAL *from = samples->data;
	PHASE *phases;
	REAL *values = NULL;
	int status = FN(phases_new)(m, s, k, &phases);

	if (status == FX_OK && !(values = fx_alloc(2 * samples->n, sizeof *values)))
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a copy of %lld samples", (long long)samples->n);
	if (status == FX_OK) {
		for (int64_t c = 0; c < s->n_coils; c++)
			for (int64_t i = 0; i < n; i++)
				for (int r = 0; r < 2; r++)
					values[(2 * c + r) * n + i] = from[2 * (c * n + i) + r];
		for (int a = 0; a < 3; a++)
			in.phase[a] = phases + a * padded;
		in.values = values;
		fx_parallel(m->n_threads, s->n_blocks * s->n[1] * s->n[2], FN(adjoint_task), &in);
		status = fx_math_check(m);
	}
	fx_free(phases);
	fx_free(values);
	return status;
}

/* One block of samples against the whole image, all coils. */
static void FN(forward_task)(void *arg, int64_t i)
{
	const struct FN(inputs) *in = arg;
	const struct shape *s = in->shape;
	int64_t first = i * s->block, count = in->n_samples - first < s->block ? in->n_samples - first : s->block;
	const PHASE *p[3] = {in->phase[0] + first, in->phase[1] + first, in->phase[2] + first};
	int vectors = (int)(s->block / LANES);
	PHASE base[WIDEST];
	REAL part[2 * FXI_DIRECT_COILS][WIDEST];
	double total[2 * FXI_DIRECT_COILS][WIDEST];

	if (fxi_given_up(in->math))
		return;
	for (int64_t c = 0; c < s->n_coils;) {
		int batch = coil_batch(s->n_coils - c);
		REAL *sum[2 * FXI_DIRECT_COILS];
		const REAL *values[FXI_DIRECT_COILS];

		for (int r = 0; r < 2 * batch; r++)
			sum[r] = part[r];
		memset(total, 0, sizeof total);
		for (int64_t piece = 0; piece < s->n[1] * s->n[2] * s->n_pieces; piece++) {
			int64_t at = piece % s->n_pieces * CHUNK, line = piece / s->n_pieces;
			int64_t n = s->n[0] - at < CHUNK ? s->n[0] - at : CHUNK, l1 = line % s->n[1], l2 = line / s->n[1];
			const int64_t x[3] = {at - s->n[0] / 2, l1 - s->n[1] / 2, l2 - s->n[2] / 2};
			int64_t place = at * s->stride[0] + l1 * s->stride[1] + l2 * s->stride[2];

			for (int b = 0; b < batch; b++)
				values[b] = in->image + 2 * (place + (c + b) * s->n_voxels);
			PICK(fxi_direct_base)(s->block, p, x, base);
			PICK(fxi_direct_samples)(batch, vectors, n, base, p[0], values, s->stride[0], sum);
			for (int r = 0; r < 2 * batch; r++)
				for (int64_t v = 0; v < s->block; v++)
					total[r][v] += (double)part[r][v];
		}
		for (int b = 0; b < batch; b++)
			for (int64_t v = 0; v < count; v++)
				for (int r = 0; r < 2; r++)
					in->out[2 * ((c + b) * in->n_samples + first + v) + r] = (REAL)(in->scale * total[2 * b + r][v]);
		c += batch;
	}
}

static int FN(forward)(fx_math *m, const struct shape *s, const fx_array *k, const fx_array *image, double scale,
	fx_array *samples)
{
	int64_t n = k->dims[1], padded = (n + WIDEST - 1) / WIDEST * WIDEST;
	struct FN(inputs) in = {.shape = s, .n_samples = n, .image = image->data, .out = samples->data, .scale = scale,
		.math = m};
	PHASE *phases;
	int status = FN(phases_new)(m, s, k, &phases);

	if (status == FX_OK) {
		for (int a = 0; a < 3; a++)
			in.phase[a] = phases + a * padded;
		fx_parallel(m->n_threads, (n + s->block - 1) / s->block, FN(forward_task), &in);
		status = fx_math_check(m);
	}
	fx_free(phases);
	return status;
}

#undef LANES
#undef WIDEST

/* SPDX-License-Identifier: MIT */
/*
 * accumulator.c - the adjoint while samples arrive. Pieces fill a chunk of a fixed number of samples; a full chunk is added to the
 * fine grid (NUFFT) or to the image (the exact sums). What is left for the end is the rest of a chunk and, once, the FFT.
 *
 * Where the backend is a GPU, chunks are filled in page-locked memory, two in turn: one is copied and gridded while the other fills,
 * and nobody waits but for a chunk that is still being copied when it is to be filled again.
 */
#include "fourier.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* Up to so many samples are kept in memory of the ordinary kind: page-locking it takes longer than copying them. */
#define UNSTAGED 16384
/* From so many numbers on a piece is copied by several threads. */
#define PARALLEL_FILL 65536

struct fx_accumulator {
	fx_fourier *f;
	int64_t n_coils;
	int64_t filled;       /* samples in the chunk */
	int now;              /* which chunk is being filled */
	fxi_chunk chunks[2];
	fx_array *sum;        /* the fine grid, or the image */
};

static fxi_chunk *chunk_of(fx_accumulator *a)
{
	return &a->chunks[a->now];
}

void fx_accumulator_free(fx_accumulator *a)
{
	if (!a)
		return;
	for (int i = 0; i < 2; i++) {
		fxi_chunk *spare = a->f->spares;

		while (spare < a->f->spares + FXI_SPARES && spare->k)
			spare++;
		if (a->chunks[i].staged && spare < a->f->spares + FXI_SPARES)
			*spare = a->chunks[i];
		else
			fxi_chunk_free(&a->chunks[i]);
	}
	fx_array_unref(a->sum);
	fx_free(a);
}

int fx_accumulator_new(fx_fourier *f, int64_t n_coils, fx_accumulator **out)
{
	fx_accumulator *a;
	const int64_t *n = f->spec.method == FX_FOURIER_NUFFT ? f->grid.fine : f->spec.dims;
	int status;

	*out = NULL;
	if (n_coils < 1)
		return fx_math_fail(f->m, FX_EINVAL, "%lld coils to accumulate", (long long)n_coils);
	status = fxi_need_memory(f, n_coils, (double)fx_fourier_bytes(f, n_coils));
	if (status != FX_OK)
		return status;
	a = fx_alloc(1, sizeof *a);
	if (!a)
		return fx_math_fail(f->m, FX_ENOMEM, "no memory for an accumulator");
	a->f = f;
	a->n_coils = n_coils;
	status = f->m->ops->array_new(f->m, f->spec.method == FX_FOURIER_NUFFT ? fxi_sample_type(f) : f->spec.type, 4,
		(int64_t[]){n[0], n[1], n[2], n_coils}, &a->sum);
	if (status != FX_OK) {
		fx_accumulator_free(a);
		return status;
	}
	*out = a;
	return FX_OK;
}

void fxi_chunk_free(fxi_chunk *c)
{
	fx_array_unref(c->k);
	fx_array_unref(c->samples);
	*c = (fxi_chunk){0};
}

/* A whole chunk that the backend copies from while the next one fills: one of an accumulator before, or a new one. */
static int stage(fx_accumulator *a, fxi_chunk *c)
{
	fx_fourier *f = a->f;
	int type = fxi_sample_type(f), status;

	for (int i = 0; i < FXI_SPARES; i++)
		if (f->spares[i].k && f->spares[i].samples->dims[1] == a->n_coils) {
			*c = f->spares[i];
			f->spares[i] = (fxi_chunk){0};
			return f->m->ops->staging_wait(f->m, c->samples);
		}
	*c = (fxi_chunk){.room = FXI_CHUNK, .staged = true};
	status = f->m->ops->staging_new(f->m, FX_F64, 2, (int64_t[]){3, FXI_CHUNK}, &c->k);
	if (status == FX_OK)
		status = f->m->ops->staging_new(f->m, type, 2, (int64_t[]){FXI_CHUNK, a->n_coils}, &c->samples);
	if (status != FX_OK)
		fxi_chunk_free(c);
	return status;
}

/* Makes room for n samples. A frame of one short readout, of thousands in a series, must not clear a whole chunk's memory. */
static int reserve(fx_accumulator *a, int64_t n)
{
	fxi_chunk *old = chunk_of(a), c = {.room = old->room ? old->room : 2048};
	size_t size = fx_type_size(fxi_sample_type(a->f));
	int status = FX_OK;

	if (n <= old->room)
		return FX_OK;
	while (c.room < n)
		c.room *= 2;
	if (n > UNSTAGED && a->f->m->ops->staging_new) {
		status = stage(a, &c);
	} else if (fx_array_new2(FX_F64, 3, c.room, &c.k) != FX_OK ||
		fx_array_new2(fxi_sample_type(a->f), c.room, a->n_coils, &c.samples) != FX_OK) {
		status = fx_math_fail(a->f->m, FX_ENOMEM, "no memory for a chunk of %lld samples of %lld coils", (long long)c.room,
			(long long)a->n_coils);
		fxi_chunk_free(&c);
	}
	if (status != FX_OK)
		return status;
	if (a->filled > 0) {
		memcpy(c.k->data, old->k->data, (size_t)(3 * a->filled) * sizeof(double));
		for (int64_t i = 0; i < a->n_coils; i++)
			memcpy((char *)c.samples->data + (size_t)(i * c.room) * size,
				(const char *)old->samples->data + (size_t)(i * old->room) * size, (size_t)a->filled * size);
	}
	fxi_chunk_free(old);
	*old = c;
	return FX_OK;
}

/* The chunk's filled part as arrays of their own size: the last chunk is seldom full. */
static int cut_chunk(fx_accumulator *a, fx_array **k, fx_array **samples)
{
	const fxi_chunk *c = chunk_of(a);
	fx_math *m = a->f->m;
	size_t size = fx_type_size(c->samples->type);

	*k = *samples = NULL;
	if (a->filled == c->room) {
		*k = fx_array_ref(c->k);
		*samples = fx_array_ref(c->samples);
		return FX_OK;
	}
	if (fx_array_new2(FX_F64, 3, a->filled, k) != FX_OK ||
		fx_array_new2(c->samples->type, a->filled, a->n_coils, samples) != FX_OK)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the last %lld samples", (long long)a->filled);
	memcpy((*k)->data, c->k->data, (size_t)(*k)->bytes);
	for (int64_t i = 0; i < a->n_coils; i++)
		memcpy((char *)(*samples)->data + (size_t)(i * a->filled) * size,
			(const char *)c->samples->data + (size_t)(i * c->room) * size, (size_t)a->filled * size);
	return FX_OK;
}

/* Replaces *there, {of a whole chunk, n}, by its first `filled` elements of each of n columns, where it lives. */
static int cut_there(fx_accumulator *a, int n_dims, const int64_t dims[2], int64_t column, int64_t columns, fx_array **there)
{
	fx_math *m = a->f->m;
	fx_array *part;
	int64_t each = (*there)->n / columns;
	int status = m->ops->array_new(m, (*there)->type, n_dims, dims, &part);

	for (int64_t i = 0; i < columns && status == FX_OK; i++)
		status = m->ops->copy(m, *there, i * each, column, part, i * column);
	if (status == FX_OK)
		fx_slot_take(there, part);
	else
		fx_array_unref(part);
	return status;
}

static int add_chunk(fx_accumulator *a, const fx_array *k, const fx_array *samples)
{
	fx_fourier *f = a->f;
	fx_math *m = f->m;
	void *points = NULL;
	int status;

	if (f->spec.direct.kernel != FX_DIRECT_AUTO)
		return m->ops->direct_ladder(m, &f->spec.direct, k, samples, f->spec.scale, a->sum);
	if (f->spec.method == FX_FOURIER_DIRECT)
		return m->ops->direct_adjoint(m, k, samples, f->spec.scale, a->sum);
	if (f->spec.method == FX_FOURIER_SEPARABLE)
		return m->ops->separable_adjoint(m, k, samples, f->spec.scale, a->sum);
	status = m->ops->points_new(m, &f->grid, k, &points);
	if (status == FX_OK)
		status = m->ops->spread(m, &f->grid, points, samples, a->sum);
	m->ops->points_free(m, points);
	return status;
}

/* Copies the chunk to where the backend works, cut to what is filled. */
static int send(fx_accumulator *a, fx_array **k, fx_array **samples)
{
	fxi_chunk *c = chunk_of(a);
	fx_math *m = a->f->m;
	fx_array *k_here = NULL, *samples_here = NULL;
	int status = FX_OK;

	if (c->staged) {
		k_here = fx_array_ref(c->k);
		samples_here = fx_array_ref(c->samples);
	} else {
		status = cut_chunk(a, &k_here, &samples_here);
	}
	if (status == FX_OK)
		status = m->ops->upload(m, k_here, k);
	if (status == FX_OK)
		status = m->ops->upload(m, samples_here, samples);
	if (status == FX_OK && c->staged && a->filled < c->room) {
		status = cut_there(a, 2, (int64_t[]){3, a->filled}, 3 * a->filled, 1, k);
		if (status == FX_OK)
			status = cut_there(a, 2, (int64_t[]){a->filled, a->n_coils}, a->filled, a->n_coils, samples);
	}
	fx_array_unref(k_here);
	fx_array_unref(samples_here);
	return status;
}

static int flush(fx_accumulator *a)
{
	fx_math *m = a->f->m;
	fx_array *k = NULL, *samples = NULL;
	int status;

	if (a->filled == 0)
		return FX_OK;
	status = fx_math_check(m);
	if (status == FX_OK)
		status = send(a, &k, &samples);
	if (status == FX_OK)
		status = add_chunk(a, k, samples);
	if (status == FX_OK && !chunk_of(a)->staged)
		status = m->ops->sync(m); /* the chunk is filled again now */
	fx_array_unref(k);
	fx_array_unref(samples);
	a->filled = 0;
	if (chunk_of(a)->staged)
		a->now = !a->now;
	if (status == FX_OK && chunk_of(a)->staged)
		status = m->ops->staging_wait(m, chunk_of(a)->samples);
	return status;
}

static double _Complex sample_at(const fx_array *a, int64_t i)
{
	switch (a->type) {
	case FX_F32:
		return FX_F32_OF(a)[i];
	case FX_F64:
		return FX_F64_OF(a)[i];
	case FX_CF32:
		return FX_CF32_OF(a)[i];
	default:
		return FX_CF64_OF(a)[i];
	}
}

static double weight_at(const fx_array *weights, int64_t i)
{
	return !weights ? 1 : weights->type == FX_F32 ? (double)FX_F32_OF(weights)[i] : FX_F64_OF(weights)[i];
}

/* n samples of one coil into the chunk, weighted and converted. */
static void fill(fx_array *chunk, int64_t to, const fx_array *samples, int64_t from, const fx_array *weights, int64_t first,
	int64_t n)
{
	size_t size = fx_type_size(chunk->type);

	if (!weights && samples->type == chunk->type) {
		memcpy((char *)chunk->data + (size_t)to * size, (const char *)samples->data + (size_t)from * size, (size_t)n * size);
		return;
	}
	if (weights && weights->type == FX_F32 && samples->type == FX_CF32 && chunk->type == FX_CF32) {
		for (int64_t i = 0; i < n; i++)
			FX_CF32_OF(chunk)[to + i] = FX_F32_OF(weights)[first + i] * FX_CF32_OF(samples)[from + i];
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		double _Complex v = weight_at(weights, first + i) * sample_at(samples, from + i);

		if (chunk->type == FX_F32)
			FX_F32_OF(chunk)[to + i] = (float)creal(v);
		else if (chunk->type == FX_F64)
			FX_F64_OF(chunk)[to + i] = creal(v);
		else if (chunk->type == FX_CF32)
			FX_CF32_OF(chunk)[to + i] = (fx_cf32)v;
		else
			FX_CF64_OF(chunk)[to + i] = v;
	}
}

/* By their exponents, without a branch, so that the compiler takes several at once: every number of every trajectory goes by here. */
static bool all_finite(const fx_array *k)
{
	const uint64_t exponent = 0x7ff0000000000000u;
	const char *at = k->data;
	uint64_t bad = 0;

	for (int64_t i = 0; i < k->n; i++) {
		uint64_t bits;

		memcpy(&bits, at + 8 * i, sizeof bits);
		bad |= (bits & exponent) == exponent;
	}
	return !bad;
}

static int need_piece(const fx_accumulator *a, const fx_array *k, const fx_array *samples, const fx_array *weights)
{
	fx_math *m = a->f->m;
	bool real = samples->type == FX_F32 || samples->type == FX_F64;

	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * k->dims[1])
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M}, not %s {%lld, %lld}", fx_type_name(k->type),
			(long long)k->dims[0], (long long)k->dims[1]);
	if (samples->dims[0] != k->dims[1] || samples->n != k->dims[1] * a->n_coils)
		return fx_math_fail(m, FX_EDATA, "samples {%lld, ...}, %lld in all, where {%lld, %lld} belong", (long long)samples->dims[0],
			(long long)samples->n, (long long)k->dims[1], (long long)a->n_coils);
	if (!real && ((samples->type != FX_CF32 && samples->type != FX_CF64) || a->f->spec.real_samples))
		return fx_math_fail(m, FX_EINVAL, "%s samples for a Fourier operator of %s ones", fx_type_name(samples->type),
			a->f->spec.real_samples ? "real" : "complex");
	if (weights && ((weights->type != FX_F32 && weights->type != FX_F64) || weights->n != k->dims[1]))
		return fx_math_fail(m, FX_EINVAL, "%lld %s weights for %lld samples", (long long)weights->n, fx_type_name(weights->type),
			(long long)k->dims[1]);
	if (all_finite(k))
		return FX_OK;
	for (int64_t i = 0; i < k->n; i++)
		if (!isfinite(FX_F64_OF(k)[i]))
			return fx_math_fail(m, FX_EDATA, "the trajectory's sample %lld has a coordinate that is not finite", (long long)(i / 3));
	return FX_OK;
}

/* A piece, or the part of one that still goes into a chunk. */
struct piece {
	const fx_array *k, *samples, *weights;
	fx_array *chunk_k, *chunk;
	int64_t n_coils, first, n, to, room;
};

/* A coil's samples; the trajectory after the last one. */
static void fill_coil(void *arg, int64_t coil)
{
	const struct piece *p = arg;

	if (coil == p->n_coils) {
		memcpy(FX_F64_OF(p->chunk_k) + 3 * p->to, FX_F64_OF(p->k) + 3 * p->first, (size_t)(3 * p->n) * sizeof(double));
		return;
	}
	fill(p->chunk, coil * p->room + p->to, p->samples, coil * p->samples->dims[0] + p->first, p->weights, p->first, p->n);
}

int fx_accumulator_add(fx_accumulator *a, const fx_array *k, const fx_array *samples, const fx_array *weights)
{
	int64_t n = k->dims[1], done = 0;
	int status = need_piece(a, k, samples, weights);

	while (status == FX_OK && done < n) {
		int64_t left = FXI_CHUNK - a->filled, part = n - done < left ? n - done : left;
		fxi_chunk *c = chunk_of(a);
		struct piece p = {k, samples, weights, NULL, NULL, a->n_coils, done, part, a->filled, 0};

		status = reserve(a, a->filled + part);
		if (status != FX_OK)
			break;
		p.chunk_k = c->k;
		p.chunk = c->samples;
		p.room = c->room;
		fx_parallel(part * a->n_coils < PARALLEL_FILL ? 1 : a->f->m->n_threads, a->n_coils + 1, fill_coil, &p);
		a->filled += part;
		done += part;
		if (a->filled == FXI_CHUNK)
			status = flush(a);
	}
	return status;
}

int fx_accumulator_finish(fx_accumulator *a, fx_array **image)
{
	fx_fourier *f = a->f;
	const int64_t *n = f->spec.dims;
	fx_array *result = NULL;
	int status = flush(a);

	*image = NULL;
	if (status == FX_OK && f->spec.method != FX_FOURIER_NUFFT) {
		result = fx_array_ref(a->sum);
	} else if (status == FX_OK) {
		status = f->m->ops->array_new(f->m, f->spec.type, 4, (int64_t[]){n[0], n[1], n[2], a->n_coils}, &result);
		if (status == FX_OK)
			status = f->m->ops->fine_to_image(f->m, &f->grid, a->sum, f->spec.scale, result);
	}
	fx_accumulator_free(a);
	if (status == FX_OK)
		*image = result;
	else
		fx_array_unref(result);
	return status;
}

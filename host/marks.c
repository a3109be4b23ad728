/* SPDX-License-Identifier: MIT */
/* marks.c - marks a voxel (masks, flags) and magnitudes on the CPU. */
#include "host.h"

#include <complex.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define BLOCK 16384

struct job {
	int64_t n;
	/* marks */
	const uint8_t *a, *within;
	uint8_t *out;
	unsigned bits;
	int yes, no;
	_Atomic int64_t counts[9];
	/* magnitudes */
	const fx_array *x;
	float *size;
	atomic_bool any;
};

static int64_t n_blocks(const struct job *j)
{
	return (j->n + BLOCK - 1) / BLOCK;
}

static void marks_of_block(void *arg, int64_t block)
{
	struct job *j = arg;
	int64_t end = (block + 1) * BLOCK < j->n ? (block + 1) * BLOCK : j->n, n[9] = {0};

	for (int64_t i = block * BLOCK; i < end; i++) {
		unsigned a = j->a[i];
		uint8_t v = (uint8_t)(j->within && !j->within[i] ? 0 : a & j->bits ? j->yes : j->no);

		for (int k = 0; k < 8; k++)
			n[k] += a >> k & 1;
		n[8] += v != 0;
		if (j->out)
			j->out[i] = v;
	}
	for (int k = 0; k < 9; k++)
		atomic_fetch_add(&j->counts[k], n[k]);
}

int fxi_host_marks(fx_math *m, const fx_array *a, unsigned bits, int yes, int no, const fx_array *within, fx_array *out,
	int64_t counts[9])
{
	struct job j = {.n = a->n, .a = a->data, .within = within ? within->data : NULL, .out = out ? out->data : NULL, .bits = bits,
		.yes = yes, .no = no};

	if (a->type != FX_U8 || (within && (within->type != FX_U8 || within->n != a->n)) ||
		(out && (out->type != FX_U8 || out->n != a->n)))
		return fx_math_fail(m, FX_EINVAL, "marks are u8 arrays of one size");
	fx_parallel(m->n_threads, n_blocks(&j), marks_of_block, &j);
	for (int k = 0; counts && k < 9; k++)
		counts[k] = j.counts[k];
	return FX_OK;
}

static void magnitudes_of_block(void *arg, int64_t block)
{
	struct job *j = arg;
	int64_t end = (block + 1) * BLOCK < j->n ? (block + 1) * BLOCK : j->n;
	bool any = false;

	for (int64_t i = block * BLOCK; i < end; i++) {
		double re, im;

		if (j->x->type == FX_F32) {
			any = any || FX_F32_OF(j->x)[i] > 0;
			continue;
		}
		re = (double)crealf(FX_CF32_OF(j->x)[i]);
		im = (double)cimagf(FX_CF32_OF(j->x)[i]);
		any = any || re != 0 || im != 0;
		if (j->size)
			j->size[i] = (float)sqrt(re * re + im * im);
	}
	if (any)
		atomic_store_explicit(&j->any, true, memory_order_relaxed);
}

int fxi_host_magnitude(fx_math *m, const fx_array *x, fx_array *out, bool *any)
{
	struct job j = {.n = x->n, .x = x, .size = out ? out->data : NULL};

	if ((x->type != FX_CF32 && (x->type != FX_F32 || out)) || (out && (out->type != FX_F32 || out->n != x->n)))
		return fx_math_fail(m, FX_EINVAL, "a magnitude is f32, of a cf32 array of its size");
	fx_parallel(m->n_threads, n_blocks(&j), magnitudes_of_block, &j);
	*any = j.any;
	return FX_OK;
}

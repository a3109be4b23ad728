/* SPDX-License-Identifier: MIT */
/*
 * coils.c - coil maps and channel mixing on the CPU, shared over blocks of voxels (or samples).
 *
 * A block walks through all coils before the next one starts, so that its sums stay in the first-level cache and
 * every array is read or written once. Block borders depend on the sizes alone and coils are summed in their
 * order: the result is the same for any number of threads.
 */
#include "host.h"
#include "kernels/coils.h"

#include <string.h>

#define BLOCK 2048 /* 16 kB of complex numbers */

struct job {
	int64_t n;                /* voxels or samples */
	int64_t n_in, n_out;      /* channels */
	const float *a, *b;       /* maps or matrix; image or coils */
	float *out;
};

static int64_t block_length(const struct job *j, int64_t block)
{
	int64_t left = j->n - block * BLOCK;

	return left < BLOCK ? left : BLOCK;
}

static void share(fx_math *m, struct job *j, void (*body)(void *, int64_t))
{
	fx_parallel(m->n_threads, (j->n + BLOCK - 1) / BLOCK, body, j);
}

/* Coils in `coils` over the voxels of `image`, both of the given types; -1 where they do not fit together. */
static int64_t coils_of(const fx_array *image, int image_type, const fx_array *coils)
{
	if (image->type != image_type || coils->type != FX_CF32)
		return -1;
	for (int d = 0; d < 3; d++)
		if (image->dims[d] != coils->dims[d])
			return -1;
	if (image->n != image->dims[0] * image->dims[1] * image->dims[2])
		return -1;
	return image->n ? coils->n / image->n : 0;
}

static void expand_block(void *arg, int64_t block)
{
	const struct job *j = arg;
	int64_t first = 2 * block * BLOCK, length = block_length(j, block);

	for (int64_t c = 0; c < j->n_in; c++) {
		int64_t at = 2 * c * j->n + first;

		FXI_PICK(fxi_coil_multiply)(length, j->a + at, j->b + first, j->out + at);
	}
}

int fxi_host_coil_expand(fx_math *m, const fx_array *maps, const fx_array *image, fx_array *coils)
{
	struct job j = {.n = image->n, .n_in = coils_of(image, FX_CF32, maps)};

	if (j.n_in < 0 || !fx_array_same_shape(maps, coils))
		return fx_math_fail(m, FX_EINVAL, "coil_expand: maps, image and coil images differ in shape or type");
	j.a = maps->data;
	j.b = image->data;
	j.out = coils->data;
	share(m, &j, expand_block);
	return FX_OK;
}

static void combine_block(void *arg, int64_t block)
{
	const struct job *j = arg;
	int64_t first = 2 * block * BLOCK, length = block_length(j, block);

	memset(j->out + first, 0, (size_t)length * sizeof(fx_cf32));
	for (int64_t c = 0; c < j->n_in; c++) {
		int64_t at = 2 * c * j->n + first;

		FXI_PICK(fxi_coil_add_conjugate)(length, j->a + at, j->b + at, j->out + first);
	}
}

int fxi_host_coil_combine(fx_math *m, const fx_array *maps, const fx_array *coils, fx_array *image)
{
	struct job j = {.n = image->n, .n_in = coils_of(image, FX_CF32, maps)};

	if (j.n_in < 0 || !fx_array_same_shape(maps, coils))
		return fx_math_fail(m, FX_EINVAL, "coil_combine: maps, coil images and image differ in shape or type");
	j.a = maps->data;
	j.b = coils->data;
	j.out = image->data;
	share(m, &j, combine_block);
	return FX_OK;
}

static void power_block(void *arg, int64_t block)
{
	const struct job *j = arg;
	int64_t first = block * BLOCK, length = block_length(j, block);

	memset(j->out + first, 0, (size_t)length * sizeof(float));
	for (int64_t c = 0; c < j->n_in; c++)
		FXI_PICK(fxi_coil_add_power)(length, j->a + 2 * (c * j->n + first), j->out + first);
}

int fxi_host_coil_power(fx_math *m, const fx_array *coils, fx_array *power)
{
	struct job j = {.n = power->n, .n_in = coils_of(power, FX_F32, coils)};

	if (j.n_in < 0)
		return fx_math_fail(m, FX_EINVAL, "coil_power: coil images and power differ in shape or type");
	j.a = coils->data;
	j.out = power->data;
	share(m, &j, power_block);
	return FX_OK;
}

static void mix_block(void *arg, int64_t block)
{
	const struct job *j = arg;
	int64_t first = 2 * block * BLOCK, length = block_length(j, block);

	for (int64_t o = 0; o < j->n_out; o++) {
		const float *row = j->a + 2 * o * j->n_in;
		float *out = j->out + 2 * o * j->n + first;

		memset(out, 0, (size_t)length * sizeof(fx_cf32));
		for (int64_t i = 0; i < j->n_in; i++)
			FXI_PICK(fxi_coil_add_scaled)(length, row[2 * i], row[2 * i + 1],
				j->b + 2 * i * j->n + first, out);
	}
}

int fxi_host_coil_mix(fx_math *m, const fx_array *matrix, const fx_array *in, fx_array *out)
{
	struct job j = {.n = in->dims[0], .n_in = matrix->dims[0], .n_out = matrix->dims[1]};

	if (matrix->type != FX_CF32 || in->type != FX_CF32 || out->type != FX_CF32 || matrix->n_dims != 2 ||
		in->n != j.n * j.n_in || out->dims[0] != j.n || out->n != j.n * j.n_out || in->data == out->data)
		return fx_math_fail(m, FX_EINVAL,
			"coil_mix: a {%lld, %lld} matrix does not take {%lld, %lld} to {%lld, %lld} (cf32, not in place)",
			(long long)matrix->dims[0], (long long)matrix->dims[1], (long long)in->dims[0],
			(long long)in->dims[1], (long long)out->dims[0], (long long)out->dims[1]);
	j.a = matrix->data;
	j.b = in->data;
	j.out = out->data;
	share(m, &j, mix_block);
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * vector.c - dot products and updates of cf32 vectors. Work is cut into blocks of a fixed number of elements; block
 * sums are added in block order, so the result does not depend on how many threads there are.
 */
#include "host.h"
#include "kernels/vector.h"

#define BLOCK 16384

struct job {
	int64_t n;
	const float *x;
	float *y;
	float a, b;
	double (*sums)[2];
};

static int64_t n_blocks(int64_t n)
{
	return (n + BLOCK - 1) / BLOCK;
}

static int64_t block_size(const struct job *j, int64_t block)
{
	int64_t left = j->n - block * BLOCK;

	return left < BLOCK ? left : BLOCK;
}

static int need_cf32(fx_math *m, const char *op, const fx_array *x, const fx_array *y)
{
	if (x->type != FX_CF32 || y->type != FX_CF32 || x->n != y->n)
		return fx_math_fail(m, FX_EINVAL, "%s takes two cf32 arrays of one size, not %s of %lld and %s of %lld", op,
			fx_type_name(x->type), (long long)x->n, fx_type_name(y->type), (long long)y->n);
	return FX_OK;
}

static void dot_block(void *arg, int64_t i)
{
	struct job *j = arg;

	FXI_PICK(fxi_vector_dot)(block_size(j, i), j->x + 2 * i * BLOCK, j->y + 2 * i * BLOCK, j->sums[i]);
}

int fxi_host_dot(fx_math *m, const fx_array *x, const fx_array *y, double *re, double *im)
{
	int64_t blocks = n_blocks(x->n);
	struct job j = {.n = x->n, .x = x->data, .y = y->data};
	int status = need_cf32(m, "dot", x, y);

	if (status != FX_OK)
		return status;
	j.sums = fx_alloc(blocks, sizeof *j.sums);
	if (!j.sums)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the partial sums of a dot product");
	fx_parallel(m->n_threads, blocks, dot_block, &j);
	*re = *im = 0;
	for (int64_t i = 0; i < blocks; i++) {
		*re += j.sums[i][0];
		*im += j.sums[i][1];
	}
	fx_free(j.sums);
	return FX_OK;
}

static void axpby_block(void *arg, int64_t i)
{
	struct job *j = arg;

	FXI_PICK(fxi_vector_axpby)(block_size(j, i), j->a, j->x + 2 * i * BLOCK, j->b, j->y + 2 * i * BLOCK);
}

static int axpby(fx_math *m, const char *op, double a, const fx_array *x, double b, fx_array *y)
{
	struct job j = {.n = y->n, .x = x->data, .y = y->data, .a = (float)a, .b = (float)b};
	int status = need_cf32(m, op, x, y);

	if (status == FX_OK)
		fx_parallel(m->n_threads, n_blocks(j.n), axpby_block, &j);
	return status;
}

int fxi_host_axpy(fx_math *m, double a, const fx_array *x, fx_array *y)
{
	return axpby(m, "axpy", a, x, 1, y);
}

int fxi_host_xpay(fx_math *m, const fx_array *x, double a, fx_array *y)
{
	return axpby(m, "xpay", 1, x, a, y);
}

static void scale_block(void *arg, int64_t i)
{
	struct job *j = arg;

	FXI_PICK(fxi_vector_scale)(block_size(j, i), j->a, j->y + 2 * i * BLOCK);
}

int fxi_host_scale(fx_math *m, double a, fx_array *x)
{
	struct job j = {.n = x->n, .y = x->data, .a = (float)a};
	int status = need_cf32(m, "scale", x, x);

	if (status == FX_OK)
		fx_parallel(m->n_threads, n_blocks(j.n), scale_block, &j);
	return status;
}

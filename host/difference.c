/* SPDX-License-Identifier: MIT */
/*
 * difference.c - W^H W of weighted first differences. Each row of voxels gathers from its own and its four neighbour
 * rows, so every voxel is written once, in a fixed order of sums. The loops have no branch and are bound by memory: the
 * compiler's own vectors do, without a copy per instruction set.
 */
#include "host.h"

struct job {
	const int64_t *dims;
	int64_t voxels;
	float factor;
	const float *w, *x;
	float *y;
};

/* y += factor w (x - neighbour) along one row; w, a real number a voxel, holds the row's own or the neighbour's pairs. */
static void add_pairs(int64_t n, float factor, const float *w, const float *x, const float *neighbour, float *y)
{
	for (int64_t i = 0; i < n; i++) {
		float a = factor * w[i];

		y[2 * i] += a * (x[2 * i] - neighbour[2 * i]);
		y[2 * i + 1] += a * (x[2 * i + 1] - neighbour[2 * i + 1]);
	}
}

static void row(void *arg, int64_t r)
{
	const struct job *j = arg;
	int64_t nx = j->dims[0], at = r * nx, steps[3] = {1, nx, nx * j->dims[1]};
	int64_t index[3] = {0, r % j->dims[1], r / j->dims[1]};

	if (nx > 1) {
		add_pairs(nx - 1, j->factor, j->w + at, j->x + 2 * at, j->x + 2 * (at + 1), j->y + 2 * at);
		add_pairs(nx - 1, j->factor, j->w + at, j->x + 2 * (at + 1), j->x + 2 * at, j->y + 2 * (at + 1));
	}
	for (int d = 1; d < 3; d++) {
		const float *w = j->w + d * j->voxels;
		int64_t before = at - steps[d], after = at + steps[d];

		if (index[d] + 1 < j->dims[d])
			add_pairs(nx, j->factor, w + at, j->x + 2 * at, j->x + 2 * after, j->y + 2 * at);
		if (index[d] > 0)
			add_pairs(nx, j->factor, w + before, j->x + 2 * at, j->x + 2 * before, j->y + 2 * at);
	}
}

int fxi_host_difference_normal(fx_math *m, const fx_array *weights, double factor, const fx_array *x, fx_array *y)
{
	struct job j = {.dims = x->dims, .voxels = x->n, .factor = (float)factor, .w = weights->data, .x = x->data,
		.y = y->data};
	bool fits = x->type == FX_CF32 && fx_array_same_shape(x, y) && weights->type == FX_F32 && weights->dims[3] == 3 &&
		weights->n == 3 * x->n;

	for (int d = 0; d < 3; d++)
		fits = fits && weights->dims[d] == x->dims[d];
	if (!fits || (x->n > 0 && x->data == y->data))
		return fx_math_fail(m, FX_EINVAL,
			"difference_normal takes two different cf32 images {x,y,z} and f32 weights {x,y,z,3}");
	fx_parallel(m->n_threads, x->n > 0 ? x->n / x->dims[0] : 0, row, &j);
	return FX_OK;
}

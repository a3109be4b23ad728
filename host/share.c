/* SPDX-License-Identifier: MIT */
/*
 * share.c - the simplest gridding there is (backend.h, share_out): each sample shared out to the nearest two cells along each axis. A
 * thread has a coil and takes samples in their order: the same sums on any number of threads.
 */
#include "host.h"

#include <complex.h>
#include <math.h>

struct job {
	const double *k;
	const fx_cf32 *samples;
	fx_cf32 *cells;
	int64_t dims[3], n_samples, n_cells;
};

/* The two cells along an axis and the upper one's share. */
static float share(const struct job *j, int axis, double k, int64_t cell[2])
{
	int64_t n = j->dims[axis];
	double u, low;

	if (n == 1) {
		cell[0] = cell[1] = 0;
		return 0;
	}
	/* One period of k-space, so that the product with n is exact enough however far out k lies. */
	u = (k - floor(k)) * (double)n;
	low = floor(u);
	cell[0] = ((int64_t)low + n / 2) % n;
	cell[1] = (cell[0] + 1) % n;
	return (float)(u - low);
}

static void grid_coil(void *arg, int64_t coil)
{
	const struct job *j = arg;
	const fx_cf32 *samples = j->samples + coil * j->n_samples;
	fx_cf32 *cells = j->cells + coil * j->n_cells;

	for (int64_t m = 0; m < j->n_samples; m++) {
		fx_cf32 s = samples[m];
		float upper[3];
		int64_t cell[3][2];

		for (int axis = 0; axis < 3; axis++)
			upper[axis] = share(j, axis, j->k[3 * m + axis], cell[axis]);
		for (int corner = 0; corner < 8; corner++) {
			int x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
			float f = (x ? upper[0] : 1 - upper[0]) * (y ? upper[1] : 1 - upper[1]) * (z ? upper[2] : 1 - upper[2]);

			if (f != 0)
				cells[(cell[2][z] * j->dims[1] + cell[1][y]) * j->dims[0] + cell[0][x]] += f * s;
		}
	}
}

int fxi_host_share_out(fx_math *m, const fx_array *k, const fx_array *samples, fx_array *cells)
{
	int64_t n_cells = cells->dims[0] * cells->dims[1] * cells->dims[2];
	struct job j = {k->data, samples->data, cells->data, {cells->dims[0], cells->dims[1], cells->dims[2]}, k->dims[1], n_cells};

	if (k->type != FX_F64 || k->dims[0] != 3 || samples->type != FX_CF32 || cells->type != FX_CF32 ||
		samples->n != k->dims[1] * samples->dims[1] || cells->n != n_cells * samples->dims[1])
		return fx_math_fail(m, FX_EINVAL, "samples cf32 {%lld, coils} are shared out to cells cf32 {x, y, z, coils}",
			(long long)k->dims[1]);
	fx_parallel(m->n_threads, samples->dims[1], grid_coil, &j);
	return FX_OK;
}

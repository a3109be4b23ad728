/* SPDX-License-Identifier: MIT */
/*
 * metrics_ssim.c - structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004, IEEE TIP 13:600).
 *
 * The Gaussian window is a product, so local means are three passes of 11 taps. Lines are shared over the pool; each
 * voxel's sum has a fixed order.
 */
#include "recon/metrics.h"

#include <fornix/backend.h>

#include <math.h>
#include <string.h>

#define RADIUS 5
#define SIGMA 1.5

struct blur_job {
	const double *in;
	double *out;
	int64_t n, stride, run; /* along the axis; of the axis; contiguous block of n * stride */
	double tap[RADIUS + 1];
};

/* One block of n * stride values along an axis: every voxel gathers its neighbours inside. */
static void blur_block(void *arg, int64_t block)
{
	const struct blur_job *job = arg;
	const double *in = job->in + block * job->run;
	double *out = job->out + block * job->run;

	memset(out, 0, (size_t)job->run * sizeof *out);
	for (int64_t i = 0; i < job->n; i++) {
		double total = 0;

		for (int64_t j = i - RADIUS; j <= i + RADIUS; j++) {
			double tap = job->tap[j > i ? j - i : i - j];

			if (j < 0 || j >= job->n)
				continue;
			total += tap;
			for (int64_t k = 0; k < job->stride; k++)
				out[i * job->stride + k] += tap * in[j * job->stride + k];
		}
		for (int64_t k = 0; k < job->stride; k++)
			out[i * job->stride + k] /= total;
	}
}

/* *a becomes its local mean; *scratch is as large, and the two may change places. */
static void blur(double **a, double **scratch, const int64_t dims[3], int n_threads)
{
	struct blur_job job = {.stride = 1};
	int64_t n = dims[0] * dims[1] * dims[2];

	for (int i = 0; i <= RADIUS; i++)
		job.tap[i] = exp(-i * i / (2 * SIGMA * SIGMA));
	for (int axis = 0; axis < 3; axis++) {
		job.n = dims[axis];
		job.run = job.n * job.stride;
		if (job.n > 1) {
			double *done = *scratch;

			job.in = *a;
			job.out = done;
			fx_parallel(n_threads, n / job.run, blur_block, &job);
			*scratch = *a;
			*a = done;
		}
		job.stride = job.run;
	}
}

int fxi_ssim(const fx_array *a, const fx_array *b, double range, int n_threads, fx_error *err, fx_array **map)
{
	enum { A, B, AA, BB, AB, SCRATCH, N };
	const double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
	double *mean[N] = {NULL};
	int status = fx_array_new(FX_F64, 3, b->dims, map);

	for (int i = 0; i < N && status == FX_OK && b->n > 0; i++) {
		mean[i] = fx_alloc(b->n, sizeof **mean);
		status = mean[i] ? FX_OK : FX_ENOMEM;
	}
	if (status != FX_OK) {
		fx_error_set(err, status, "no memory for the SSIM of %lld voxels (%lld MiB)", (long long)b->n,
			(long long)(b->n / (1 << 17) * (N + 1)));
		fx_array_unref(*map);
		*map = NULL;
		goto done;
	}
	for (int64_t i = 0; i < b->n; i++) {
		double x = FX_F64_OF(a)[i], y = FX_F64_OF(b)[i];

		mean[A][i] = x;
		mean[B][i] = y;
		mean[AA][i] = x * x;
		mean[BB][i] = y * y;
		mean[AB][i] = x * y;
	}
	for (int i = 0; i < SCRATCH; i++)
		blur(&mean[i], &mean[SCRATCH], b->dims, n_threads);
	for (int64_t i = 0; i < b->n; i++) {
		double x = mean[A][i], y = mean[B][i], cov = mean[AB][i] - x * y;
		double var_x = mean[AA][i] - x * x, var_y = mean[BB][i] - y * y;

		FX_F64_OF(*map)[i] = (2 * x * y + c1) * (2 * cov + c2) / ((x * x + y * y + c1) * (var_x + var_y + c2));
	}
done:
	for (int i = 0; i < N; i++)
		fx_free(mean[i]);
	return status;
}

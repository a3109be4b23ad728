/* SPDX-License-Identifier: MIT */
/*
 * phantom_kspace.c - exact k-space of ellipses and ellipsoids through exact coils.
 *
 * With A the shape's axes, its transform is amplitude * det(A) * f(2 pi |A^T k|) * e^{-i2pi k.centre} (Van de Walle et
 * al. 2000 for ellipses, Koay et al. 2007 for ellipsoids). A wave e^{i2pi q.x} of a coil map moves k to k - q: the
 * part of the phase that depends on q alone is made once, so a sample costs one sine and cosine more per wave.
 */
#include "recon/phantom.h"

#include <fornix/backend.h>

#include <complex.h>
#include <math.h>

#define PI 3.14159265358979323846
#define BLOCK 256

double fxi_disc_transform(double u)
{
	/* J1(u) = u/2 - u^3/16 + ...: below 1e-4 the next term is under 1e-18 of the first */
	if (u < 1e-4)
		return PI * (1 - u * u / 8);
	return 2 * PI * j1(u) / u;
}

double fxi_ball_transform(double u)
{
	double v = u * u;

	/* sum_n (-1)^n 2(n+1)/(2n+3)! u^2n: sin u - u cos u cancels below 1, where n = 8 adds under 2e-16 */
	if (u < 1)
		return 4 * PI * (1 / 3.0 + v * (-1 / 30.0 + v * (1 / 840.0 + v * (-1 / 45360.0 + v * (1 / 3991680.0 +
			v * (-1 / 518918400.0 + v * (1 / 93405312000.0 - v / 22230464256000.0)))))));
	return 4 * PI * (sin(u) - u * cos(u)) / (u * v);
}

/* What is the same for every sample: a shape, and how each wave sees it. */
struct seen {
	double amplitude;                  /* times det(A) and scale */
	double centre[3], axis[3][3];      /* axis in units of 1/(2 pi) */
	double shift[FXI_COIL_WAVES][3];   /* 2 pi A^T q */
	fx_cf64 phase[FXI_COIL_WAVES];     /* e^{i2pi q.centre} */
};

struct job {
	const fxi_coils *coils;
	const struct seen *seen;
	const double *k;
	fx_cf32 *out;
	int64_t n_shapes, n;
	int n_dims, n_waves;
};

static double determinant(const double a[3][3], int n_dims)
{
	if (n_dims == 2)
		return a[0][0] * a[1][1] - a[0][1] * a[1][0];
	return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
		a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

static void see(const fxi_shape *s, int n_dims, const fxi_coils *coils, double scale, struct seen *out)
{
	int n_waves = coils ? coils->n_waves : 1;

	*out = (struct seen){.amplitude = s->amplitude * fabs(determinant(s->axis, n_dims)) * scale};
	for (int d = 0; d < n_dims; d++) {
		out->centre[d] = s->centre[d];
		for (int a = 0; a < n_dims; a++)
			out->axis[a][d] = 2 * PI * s->axis[a][d];
	}
	for (int j = 0; j < n_waves; j++) {
		double turn = 0;

		for (int d = 0; coils && d < n_dims; d++) {
			turn += coils->q[j][d] * s->centre[d];
			for (int a = 0; a < n_dims; a++)
				out->shift[j][a] += out->axis[a][d] * coils->q[j][d];
		}
		out->phase[j] = cos(2 * PI * turn) + I * sin(2 * PI * turn);
	}
}

/* Adds one shape's transform at k - q_j to sum[j] for every wave. */
static void add_shape(const struct seen *s, int n_dims, int n_waves, const double *k, fx_cf64 *sum)
{
	double turn = 0, ak[3] = {0};

	for (int d = 0; d < n_dims; d++)
		turn += k[d] * s->centre[d];
	for (int a = 0; a < n_dims; a++)
		for (int d = 0; d < n_dims; d++)
			ak[a] += s->axis[a][d] * k[d];
	fx_cf64 phase = s->amplitude * (cos(2 * PI * turn) - I * sin(2 * PI * turn));

	for (int j = 0; j < n_waves; j++) {
		double x = ak[0] - s->shift[j][0], y = ak[1] - s->shift[j][1], z = ak[2] - s->shift[j][2];
		double u = sqrt(x * x + y * y + z * z);

		sum[j] += (n_dims == 2 ? fxi_disc_transform(u) : fxi_ball_transform(u)) * (phase * s->phase[j]);
	}
}

fx_cf64 fxi_phantom_transform(const fxi_phantom *p, const double k[3])
{
	fx_cf64 sum = 0;

	for (int64_t i = 0; i < p->n_shapes; i++) {
		struct seen s;

		see(&p->shapes[i], p->n_dims, NULL, 1, &s);
		add_shape(&s, p->n_dims, 1, k, &sum);
	}
	return sum;
}

static void sample_block(void *arg, int64_t block)
{
	const struct job *job = arg;
	int64_t end = (block + 1) * BLOCK < job->n ? (block + 1) * BLOCK : job->n;
	const fxi_coils *coils = job->coils;

	for (int64_t i = block * BLOCK; i < end; i++) {
		fx_cf64 sum[FXI_COIL_WAVES] = {0};

		for (int64_t s = 0; s < job->n_shapes; s++)
			add_shape(&job->seen[s], job->n_dims, job->n_waves, job->k + 3 * i, sum);
		for (int64_t c = 0; c < coils->n_coils; c++) {
			fx_cf64 value = 0;

			for (int j = 0; j < job->n_waves; j++)
				value += coils->mix[c * job->n_waves + j] * sum[j];
			job->out[i + job->n * c] = (fx_cf32)value;
		}
	}
}

int fxi_phantom_samples(const fxi_phantom *p, const fxi_coils *coils, const double *k, int64_t n, double scale,
	int n_threads, fx_error *err, fx_cf32 *out)
{
	struct job job = {.coils = coils, .k = k, .out = out, .n_shapes = p->n_shapes, .n = n, .n_dims = p->n_dims,
		.n_waves = coils->n_waves};
	struct seen *seen = fx_alloc(p->n_shapes ? p->n_shapes : 1, sizeof *seen);

	if (!seen)
		return fx_error_set(err, FX_ENOMEM, "no memory for a phantom's k-space");
	for (int64_t s = 0; s < p->n_shapes; s++)
		see(&p->shapes[s], p->n_dims, coils, scale / sqrt(coils->n_waves), &seen[s]);
	job.seen = seen;
	fx_parallel(n_threads, (n + BLOCK - 1) / BLOCK, sample_block, &job);
	fx_free(seen);
	return FX_OK;
}

int fxi_phantom_cartesian(const fxi_phantom *p, const int64_t matrix[3], int n_threads, fx_error *err, fx_array **out)
{
	int64_t n_lines = matrix[1] * matrix[2];
	fxi_coils *one = NULL;
	fx_array *k = NULL;
	int status = fx_array_new(FX_CF32, 3, matrix, out);

	if (status == FX_OK)
		status = fx_array_new2(FX_F64, 3, matrix[0] * matrix[1], &k);
	if (status != FX_OK)
		status = fx_error_set(err, status, "no memory for the k-space of %lld x %lld x %lld voxels",
			(long long)matrix[0], (long long)matrix[1], (long long)matrix[2]);
	if (status == FX_OK)
		status = fxi_coils_new(1, p->n_dims, matrix, err, &one);
	for (int64_t z = 0; status == FX_OK && z < matrix[2]; z++) {
		double *at = FX_F64_OF(k);

		for (int64_t y = 0; y < matrix[1]; y++)
			for (int64_t x = 0; x < matrix[0]; x++, at += 3) {
				at[0] = (double)(x - matrix[0] / 2) / (double)matrix[0];
				at[1] = (double)(y - matrix[1] / 2) / (double)matrix[1];
				at[2] = (double)(z - matrix[2] / 2) / (double)matrix[2];
			}
		status = fxi_phantom_samples(p, one, FX_F64_OF(k), matrix[0] * matrix[1],
			1 / sqrt((double)matrix[0] * (double)n_lines), n_threads, err,
			FX_CF32_OF(*out) + z * matrix[0] * matrix[1]);
	}
	fxi_coils_free(one);
	fx_array_unref(k);
	if (status != FX_OK) {
		fx_array_unref(*out);
		*out = NULL;
	}
	return status;
}

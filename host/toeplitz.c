/* SPDX-License-Identifier: MIT */
/*
 * toeplitz.c - block-Toeplitz products on the CPU: a convolution on the doubled grid, by pruned FFT passes.
 *
 * Padding with zeros and throwing half away, along z, x, y in turn, never happens in memory:
 *   1. z: each row y of the image is transformed along z (n to 2 n) and stored as planes, one for each z frequency;
 *   2. every plane, by itself and in one thread's cache: x (n to 2 n), y (n to 2 n), times the spectrum, and back;
 *   3. z: the planes' rows back into the image.
 * Passes over the zeros are left out, which leaves 7/12 of the work of a padded transform. Lines are transformed one
 * a vector lane (kernels/vfft.h); along x that takes a transposition in registers.
 *
 * A convolution does not care where the origin of x is, so nothing is centred: lag 0 of Q is where the spectrum's
 * phase says it is.
 *
 * Memory: 16 nx ny nz bytes for the planes (8 nx ny of an image with nz = 1) per coil in work, rows rounded up to
 * whole vectors; one coil at a time unless a coil's planes are too few to occupy the threads. Each thread has
 * 16 nx ny bytes and a few lines.
 */
#include "host.h"
#include "kernels/toeplitz.h"
#include "scratch.h"
#include "vfft.h"

#include <math.h>

struct job {
	fxi_toeplitz t;
	const float *x;
	float *y;
	float *planes;
	int64_t image, volume; /* floats of a coil in x and in planes */
	int64_t batch;         /* coils in work */
	fxi_scratch scratch;
};

/* True where a grid of doubled sizes belongs to these images. */
static bool doubled(const fx_array *image, const fx_array *grid)
{
	for (int d = 0; d < 3; d++)
		if (grid->dims[d] != (image->dims[d] > 1 ? 2 * image->dims[d] : 1))
			return false;
	return grid->n == grid->dims[0] * grid->dims[1] * grid->dims[2];
}

static void z_forward(void *arg, int64_t i)
{
	struct job *j = arg;
	int64_t coil = i / j->t.n[1];
	float *scratch = fxi_scratch_take(&j->scratch);

	FXI_PICK(fxi_toeplitz_z_forward)(&j->t, i % j->t.n[1], j->x + coil * j->image, j->planes + coil * j->volume,
		scratch);
	fxi_scratch_give(&j->scratch, scratch);
}

static void z_inverse(void *arg, int64_t i)
{
	struct job *j = arg;
	int64_t coil = i / j->t.n[1];
	float *scratch = fxi_scratch_take(&j->scratch);

	FXI_PICK(fxi_toeplitz_z_inverse)(&j->t, i % j->t.n[1], j->planes + coil * j->volume, j->y + coil * j->image,
		scratch);
	fxi_scratch_give(&j->scratch, scratch);
}

/* Coils follow each other within a plane, so that its part of the spectrum is still in the cache. */
static void plane(void *arg, int64_t i)
{
	struct job *j = arg;
	int64_t fz = i / j->batch, coil = i % j->batch;
	float *scratch = fxi_scratch_take(&j->scratch);

	FXI_PICK(fxi_toeplitz_plane)(&j->t, fz, j->planes + coil * j->volume + fz * (j->volume / j->t.f[2]), scratch);
	fxi_scratch_give(&j->scratch, scratch);
}

static int make_plans(fx_math *m, fxi_toeplitz *t)
{
	for (int d = 0; d < 3; d++) {
		int status = fxi_vfft_new(t->n[d], &t->plan[d]);

		if (status != FX_OK)
			return fx_math_fail(m, status, "toeplitz_apply: no FFT tables for %lld voxels along an axis",
				(long long)t->n[d]);
	}
	return FX_OK;
}

/* Sizes, plans, planes and scratch; what it made is freed by `finish` also on failure. */
static int prepare(fx_math *m, const fx_array *spectrum, const fx_array *x, struct job *j)
{
	fxi_toeplitz *t = &j->t;
	int64_t lanes = FXI_PICK(fxi_vfft_lanes)(), longest = 1, n_coils;
	int64_t threads = m->n_threads > 1 ? m->n_threads : 1;
	int status;

	for (int d = 0; d < 3; d++) {
		t->n[d] = x->dims[d];
		t->f[d] = spectrum->dims[d];
		longest = t->n[d] > longest ? t->n[d] : longest;
	}
	status = make_plans(m, t);
	if (status != FX_OK)
		return status;
	t->blocks_x = (t->n[0] + lanes - 1) / lanes;
	t->blocks_f = (t->f[0] + lanes - 1) / lanes;
	t->norm = (float)(1 / ((double)t->f[0] * (double)t->f[1] * (double)t->f[2]));
	t->spectrum = spectrum->data;
	/* odd number of cache lines more, so that buffers do not share their sets */
	t->buffer = 2 * lanes * longest + 3 * 2 * lanes;
	j->image = 2 * t->n[0] * t->n[1] * t->n[2];
	j->volume = 2 * lanes * t->blocks_x * t->n[1] * t->f[2];
	n_coils = 2 * x->n / j->image;
	j->batch = (4 * threads + t->f[2] - 1) / t->f[2];
	j->batch = j->batch < n_coils ? j->batch : n_coils;
	j->planes = fx_alloc(j->batch, (size_t)j->volume * sizeof(float));
	if (!j->planes)
		return fx_math_fail(m, FX_ENOMEM, "toeplitz_apply: no memory for %.1f MB of planes",
			(double)j->batch * (double)j->volume * sizeof(float) / 1e6);
	return fxi_scratch_new(m,
		((FXI_TOEPLITZ_BUFFERS + 1) * t->buffer + 2 * lanes * t->blocks_f * t->n[1]) * (int64_t)sizeof(float),
		&j->scratch);
}

static void finish(struct job *j)
{
	for (int d = 0; d < 3; d++)
		fxi_vfft_free(&j->t.plan[d]);
	fx_free(j->planes);
	fxi_scratch_free(&j->scratch);
}

int fxi_host_toeplitz_apply(fx_math *m, const fx_array *spectrum, const fx_array *x, fx_array *y)
{
	struct job j = {0};
	int64_t left;
	int status;

	if (spectrum->type != FX_F32 || x->type != FX_CF32 || !fx_array_same_shape(x, y) || !doubled(x, spectrum))
		return fx_math_fail(m, FX_EINVAL,
			"toeplitz_apply: a spectrum of %lld x %lld x %lld does not belong to images of %lld x %lld x %lld",
			(long long)spectrum->dims[0], (long long)spectrum->dims[1], (long long)spectrum->dims[2],
			(long long)x->dims[0], (long long)x->dims[1], (long long)x->dims[2]);
	if (x->n == 0)
		return FX_OK;
	status = prepare(m, spectrum, x, &j);
	if (status == FX_OK) {
		j.x = x->data;
		j.y = y->data;
		for (left = 2 * x->n / j.image; left > 0; left -= j.batch) {
			j.batch = j.batch < left ? j.batch : left;
			fx_parallel(m->n_threads, j.batch * j.t.n[1], z_forward, &j);
			fx_parallel(m->n_threads, j.batch * j.t.f[2], plane, &j);
			fx_parallel(m->n_threads, j.batch * j.t.n[1], z_inverse, &j);
			j.x += j.batch * j.image;
			j.y += j.batch * j.image;
		}
	}
	finish(&j);
	return status;
}

/* Lag -n of an axis (index 0) is never used, and without a lag +n beside it the spectrum would not be real. */
static void clear_unused(const fx_array *q)
{
	const int64_t *d = q->dims;
	fx_cf32 *at = q->data;

	for (int64_t z = 0; z < d[2]; z++)
		for (int64_t y = 0; y < d[1]; y++) {
			fx_cf32 *row = at + (z * d[1] + y) * d[0];

			if ((d[2] > 1 && z == 0) || (d[1] > 1 && y == 0))
				for (int64_t x = 0; x < d[0]; x++)
					row[x] = 0;
			else if (d[0] > 1)
				row[0] = 0;
		}
}

struct gather {
	const fx_array *q;
	float *out;
	double (*sums)[2]; /* of each plane: squares of the real and the imaginary parts */
};

/* One plane of the centred transform of a centred Q into the FFT's order, real parts only. */
static void gather_plane(void *arg, int64_t z)
{
	const struct gather *g = arg;
	const int64_t *d = g->q->dims;
	const float *in = g->q->data;
	double re2 = 0, im2 = 0;

	for (int64_t y = 0; y < d[1]; y++) {
		const float *from = in + 2 * (((z + d[2] / 2) % d[2]) * d[1] + (y + d[1] / 2) % d[1]) * d[0];
		float *to = g->out + (z * d[1] + y) * d[0];

		for (int64_t x = 0; x < d[0]; x++) {
			const float *v = from + 2 * ((x + d[0] / 2) % d[0]);

			to[x] = v[0];
			re2 += (double)v[0] * (double)v[0];
			im2 += (double)v[1] * (double)v[1];
		}
	}
	g->sums[z][0] = re2;
	g->sums[z][1] = im2;
}

int fxi_host_toeplitz_spectrum(fx_math *m, fx_array *q, fx_array *spectrum)
{
	struct gather g = {.q = q, .out = spectrum->data};
	double re2 = 0, im2 = 0;
	int status;

	if (q->type != FX_CF32 || spectrum->type != FX_F32 || q->n != q->dims[0] * q->dims[1] * q->dims[2])
		return fx_math_fail(m, FX_EINVAL, "toeplitz_spectrum takes one cf32 Q and gives an f32 spectrum");
	for (int d = 0; d < 3; d++)
		if (spectrum->dims[d] != q->dims[d] || (q->dims[d] > 1 && q->dims[d] % 2))
			return fx_math_fail(m, FX_EINVAL,
				"toeplitz_spectrum: axis %d of Q has %lld and of the spectrum %lld points; both are twice "
				"the image's, or 1",
				d, (long long)q->dims[d], (long long)spectrum->dims[d]);
	if (q->n == 0)
		return FX_OK;
	clear_unused(q);
	status = fxi_host_fft(m, q, -1, 1);
	if (status != FX_OK)
		return status;
	g.sums = fx_alloc(q->dims[2], sizeof *g.sums);
	if (!g.sums)
		return fx_math_fail(m, FX_ENOMEM, "toeplitz_spectrum: no memory for the sums of the planes");
	fx_parallel(m->n_threads, q->dims[2], gather_plane, &g);
	for (int64_t z = 0; z < q->dims[2]; z++) {
		re2 += g.sums[z][0];
		im2 += g.sums[z][1];
	}
	fx_free(g.sums);
	if (!isfinite(re2) || !isfinite(im2))
		return fx_math_fail(m, FX_EDATA, "Q holds numbers that are not finite; look for them in the trajectory "
						 "and the voxel function");
	/* Rounding leaves 1e-6 at most, the NUFFT's widest tolerance 1e-2; a Q of something else is off by about 1. */
	if (im2 > 0.03 * 0.03 * re2)
		return fx_math_fail(m, FX_EDATA,
			"Q is not Hermitian: its spectrum's imaginary part is %.2g of the real one, so it is not that of "
			"F^H F",
			sqrt(im2 / re2));
	return FX_OK;
}

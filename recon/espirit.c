/* SPDX-License-Identifier: MIT */
/*
 * espirit.c - coil maps as the eigenvectors that the calibration data's own linear dependence singles out (Uecker et al.,
 * Magn. Reson. Med. 71:990, 2014).
 *
 * Kernels are short, so their image-domain matrices are sums of a few terms an axis: they are taken axis after axis, down
 * to one voxel. No zero-padded volume of kernels is ever made; a thread holds the matrices of one line of voxels at most.
 */
#include "espirit.h"

#include <complex.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define PI 3.14159265358979323846
#define LINES 16           /* of one piece of work */
#define MOST_ITERATIONS 200
/* Squared change of a unit vector that ends the power iteration: twice single precision's rounding, squared, for 16 coils. */
#define CONVERGED 1e-12f

struct job {
	const fx_math *m;
	const fxi_espirit_kernels *kernels;
	int64_t dims[3], taps[3], n_coils, n_voxels, chunks;
	int64_t reference;
	float crop;
	float *phase[3];       /* {2 (re, im), taps, voxels}: e^{-i2pi m x/N} of an axis */
	fx_cf32 *maps;
	_Atomic bool no_memory;
};

/* Sums of one piece of work: kernels at one z, at one y, and the packed matrix of one voxel. */
struct work {
	float *z_re, *z_im, *y_re, *y_im, *m_re, *m_im;
	float *full_re, *full_im;   /* {c, c}, column after column */
	float *v_re, *v_im, *u_re, *u_im;
};

/* ---- one voxel --------------------------------------------------------------------------------- */

static void unpack(int64_t n, const struct work *w)
{
	for (int64_t b = 0, p = 0; b < n; b++)
		for (int64_t a = 0; a <= b; a++, p++) {
			w->full_re[a * n + b] = w->full_re[b * n + a] = w->m_re[p];
			w->full_im[a * n + b] = a == b ? 0 : w->m_im[p];
			w->full_im[b * n + a] = a == b ? 0 : -w->m_im[p];
		}
}

/* u = M v. */
static void multiply(int64_t n, const struct work *w)
{
	float *u_re = w->u_re, *u_im = w->u_im;

	for (int64_t r = 0; r < n; r++)
		u_re[r] = u_im[r] = 0;
	for (int64_t c = 0; c < n; c++) {
		const float *re = w->full_re + c * n, *im = w->full_im + c * n;
		float x = w->v_re[c], y = w->v_im[c];

#pragma omp simd
		for (int64_t r = 0; r < n; r++) {
			u_re[r] += re[r] * x - im[r] * y;
			u_im[r] += re[r] * y + im[r] * x;
		}
	}
}

/* v = u / |u|; returns |u|, and in *change the squared distance that v moved. */
static float normalise(int64_t n, const struct work *w, float *change)
{
	float norm = 0, moved = 0;

	for (int64_t i = 0; i < n; i++)
		norm += w->u_re[i] * w->u_re[i] + w->u_im[i] * w->u_im[i];
	norm = sqrtf(norm);
	for (int64_t i = 0; i < n; i++) {
		float re = norm > 0 ? w->u_re[i] / norm : 0, im = norm > 0 ? w->u_im[i] / norm : 0;

		moved += (re - w->v_re[i]) * (re - w->v_re[i]) + (im - w->v_im[i]) * (im - w->v_im[i]);
		w->v_re[i] = re;
		w->v_im[i] = im;
	}
	*change = moved;
	return norm;
}

/* The dominant eigenvector into v; returns its eigenvalue. M is positive semidefinite, so its largest column is no bad start. */
static float dominant(int64_t n, const struct work *w)
{
	int64_t largest = 0;
	float value, change = 1;

	for (int64_t i = 1; i < n; i++)
		if (w->full_re[i * n + i] > w->full_re[largest * n + largest])
			largest = i;
	memcpy(w->u_re, w->full_re + largest * n, (size_t)n * sizeof(float));
	memcpy(w->u_im, w->full_im + largest * n, (size_t)n * sizeof(float));
	value = normalise(n, w, &change);
	change = 1;
	for (int i = 0; i < MOST_ITERATIONS && change > CONVERGED && value > 0; i++) {
		multiply(n, w);
		value = normalise(n, w, &change);
	}
	return value;
}

static void voxel(const struct job *j, const struct work *w, int64_t at)
{
	int64_t n = j->n_coils, ref = j->reference;
	float turn_re = 1, turn_im = 0, size;

	unpack(n, w);
	if (!(dominant(n, w) >= j->crop))
		return; /* maps are 0 */
	size = hypotf(w->v_re[ref], w->v_im[ref]);
	if (size > 0) {
		turn_re = w->v_re[ref] / size;
		turn_im = -w->v_im[ref] / size;
	}
	for (int64_t c = 0; c < n; c++)
		j->maps[c * j->n_voxels + at] = FX_CF32(w->v_re[c] * turn_re - w->v_im[c] * turn_im,
			w->v_re[c] * turn_im + w->v_im[c] * turn_re);
}

/* ---- kernels to matrices, an axis at a time ------------------------------------------------------ */

/* to {n} = sum over taps of an axis of e^{-i2pi m x/N} from {n, taps}. */
static void sum_axis(const struct job *j, int axis, int64_t x, int64_t n, const float *re, const float *im, float *to_re,
	float *to_im)
{
	const float *phase = j->phase[axis] + 2 * x * j->taps[axis];

	for (int64_t i = 0; i < n; i++)
		to_re[i] = to_im[i] = 0;
	for (int64_t t = 0; t < j->taps[axis]; t++, re += n, im += n) {
		float e_re = phase[2 * t], e_im = phase[2 * t + 1];

#pragma omp simd
		for (int64_t i = 0; i < n; i++) {
			to_re[i] += e_re * re[i] - e_im * im[i];
			to_im[i] += e_re * im[i] + e_im * re[i];
		}
	}
}

/* One allocation; NULL in z_re where there is none. */
static struct work new_work(const struct job *j)
{
	int64_t pairs = j->kernels->n_pairs, n = j->n_coils, y = pairs * j->taps[0], z = y * j->taps[1];
	float *p = fx_alloc(2 * (z + y + pairs + n * n + 2 * n), sizeof *p);
	struct work w = {.z_re = p};

	if (!p)
		return w;
	w.z_im = w.z_re + z;
	w.y_re = w.z_im + z;
	w.y_im = w.y_re + y;
	w.m_re = w.y_im + y;
	w.m_im = w.m_re + pairs;
	w.full_re = w.m_im + pairs;
	w.full_im = w.full_re + n * n;
	w.v_re = w.full_im + n * n;
	w.v_im = w.v_re + n;
	w.u_re = w.v_im + n;
	w.u_im = w.u_re + n;
	return w;
}

static void some_lines(void *arg, int64_t i)
{
	struct job *j = arg;
	int64_t z = i / j->chunks, first = i % j->chunks * LINES, pairs = j->kernels->n_pairs, line = pairs * j->taps[0];
	struct work w;

	if (j->m->stopped && j->m->stopped(j->m->stopped_arg))
		return;
	w = new_work(j);
	if (!w.z_re) {
		atomic_store(&j->no_memory, true);
		return;
	}
	sum_axis(j, 2, z, line * j->taps[1], j->kernels->re, j->kernels->im, w.z_re, w.z_im);
	for (int64_t y = first; y < first + LINES && y < j->dims[1]; y++) {
		sum_axis(j, 1, y, line, w.z_re, w.z_im, w.y_re, w.y_im);
		for (int64_t x = 0; x < j->dims[0]; x++) {
			sum_axis(j, 0, x, pairs, w.y_re, w.y_im, w.m_re, w.m_im);
			voxel(j, &w, (z * j->dims[1] + y) * j->dims[0] + x);
		}
	}
	fx_free(w.z_re);
}

/* Phases of an axis, from whole fractions of a cycle. */
static int fill_phases(fx_math *m, struct job *j, int axis)
{
	int64_t n = j->dims[axis], half = j->kernels->half[axis];
	float *p = j->phase[axis] = fx_alloc(2 * n * j->taps[axis], sizeof *p);

	if (!p)
		return fx_math_fail(m, FX_ENOMEM, "no memory for coil maps");
	for (int64_t x = 0; x < n; x++)
		for (int64_t t = -half; t <= half; t++, p += 2) {
			double angle = -2 * PI * (double)(t * (x - n / 2) % n) / (double)n;

			p[0] = (float)cos(angle);
			p[1] = (float)sin(angle);
		}
	return FX_OK;
}

static int make_maps(fx_math *m, struct job *j)
{
	int status = FX_OK;

	j->chunks = (j->dims[1] + LINES - 1) / LINES;
	for (int d = 0; d < 3 && status == FX_OK; d++) {
		j->taps[d] = 2 * j->kernels->half[d] + 1;
		status = fill_phases(m, j, d);
	}
	if (status == FX_OK)
		fx_parallel(m->n_threads, j->chunks * j->dims[2], some_lines, j);
	if (j->no_memory)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for the maps of %lld coils", (long long)j->n_coils);
	for (int d = 0; d < 3; d++)
		fx_free(j->phase[d]);
	return status == FX_OK ? fx_math_check(m) : status;
}

/* ---- calibration data ---------------------------------------------------------------------------- */

/* The coil with most energy; -1 where all are 0. FX_EDATA where one is not finite. */
static int strongest(fx_math *m, const fx_array *coils, int64_t *reference)
{
	int64_t n = coils->n / coils->dims[3];
	double best = 0;

	*reference = -1;
	for (int64_t c = 0; c < coils->dims[3]; c++) {
		const float *v = (const float *)coils->data + 2 * n * c;
		double sum = 0;

		for (int64_t i = 0; i < 2 * n; i++)
			sum += (double)v[i] * (double)v[i];
		if (!isfinite(sum))
			return fx_math_fail(m, FX_EDATA, "the image of coil %lld, which coil maps are made from, holds numbers that "
				"are not finite; look at the raw samples of that coil", (long long)c);
		if (sum > best) {
			best = sum;
			*reference = c;
		}
	}
	return FX_OK;
}

/* The centre of one coil's k-space into its place in the block. */
static int add_coil(fx_math *m, const fx_array *coils, int64_t c, fx_array *block)
{
	fx_array *image = NULL, *work = NULL, *k = NULL, *centre = NULL;
	int status = fx_array_new(FX_CF32, 3, coils->dims, &image);

	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for the k-space of a coil");
	memcpy(image->data, (const char *)coils->data + c * image->bytes, (size_t)image->bytes);
	status = m->ops->upload(m, image, &work);
	if (status == FX_OK) {
		fx_array_unref(image); /* on the host `work` is the same array: now it alone holds it */
		image = NULL;
		status = m->ops->fft(m, work, -1, 1);
	}
	if (status == FX_OK)
		status = m->ops->download(m, work, &k);
	if (status == FX_OK)
		status = fx_resize_centred(m, k, block->dims, &centre);
	if (status == FX_OK)
		memcpy((char *)block->data + c * centre->bytes, centre->data, (size_t)centre->bytes);
	fx_array_unref(image);
	fx_array_unref(work);
	fx_array_unref(k);
	fx_array_unref(centre);
	return status;
}

/* The centre of k-space of every coil, scaled to a mean square of 1: single precision holds its squares. */
static int calibration_block(fx_math *m, const fx_array *coils, int64_t size, fx_array **block)
{
	int64_t dims[4] = {0, 0, 0, coils->dims[3]};
	double sum = 0;
	float *v;
	int status;

	for (int d = 0; d < 3; d++)
		dims[d] = size < coils->dims[d] ? size : coils->dims[d];
	status = fx_array_new(FX_CF32, 4, dims, block);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for calibration data");
	for (int64_t c = 0; c < dims[3] && status == FX_OK; c++)
		status = add_coil(m, coils, c, *block);
	if (status != FX_OK)
		return status;
	v = (*block)->data;
	for (int64_t i = 0; i < 2 * (*block)->n; i++)
		sum += (double)v[i] * (double)v[i];
	if (!(sum > 0))
		return fx_math_fail(m, FX_EDATA, "the centre of k-space, which coil maps are made from, holds nothing");
	for (int64_t i = 0; i < 2 * (*block)->n; i++)
		v[i] = (float)((double)v[i] / sqrt(sum / (double)(*block)->n));
	return FX_OK;
}

/* Maps on the host into `out`, which is zeroed. */
static int espirit(fx_math *m, const fx_array *coils, int64_t reference, const fx_espirit_options *o, fx_array *out)
{
	fxi_espirit_kernels kernels = {0};
	fx_array *block = NULL;
	int status = calibration_block(m, coils, o->calibration_size, &block);

	if (status == FX_OK)
		status = fxi_espirit_kernels_new(m, block, o->kernel_size, o->threshold, &kernels);
	fx_array_unref(block);
	if (status == FX_OK) {
		struct job j = {.m = m, .kernels = &kernels, .dims = {coils->dims[0], coils->dims[1], coils->dims[2]},
			.n_coils = coils->dims[3], .n_voxels = coils->n / coils->dims[3], .reference = reference,
			.crop = (float)o->crop, .maps = out->data};

		status = make_maps(m, &j);
	}
	fxi_espirit_kernels_clear(&kernels);
	return status;
}

int fx_coil_maps_espirit(fx_math *m, const fx_array *coils, const fx_espirit_options *options, fx_array **maps)
{
	fx_array *host = NULL, *out = NULL;
	int64_t reference = -1;
	int status;

	*maps = NULL;
	if (coils->type != FX_CF32 || coils->n_dims != 4)
		return fx_math_fail(m, FX_EINVAL, "coil maps are made from cf32 coil images {x, y, z, coils}");
	if (options->calibration_size < 1 || options->kernel_size < 1 || !(options->threshold >= 0 && options->threshold <= 1))
		return fx_math_fail(m, FX_EINVAL, "ESPIRiT needs a calibration size and a kernel size of 1 or more, and a threshold "
			"from 0 to 1");
	status = m->ops->download(m, coils, &host);
	if (status == FX_OK && fx_array_new(FX_CF32, 4, coils->dims, &out) != FX_OK)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for coil maps of %.1f MB", (double)coils->bytes / 1e6);
	if (status == FX_OK && host->n > 0)
		status = strongest(m, host, &reference);
	if (status == FX_OK && reference >= 0 && coils->dims[3] == 1)
		for (int64_t i = 0; i < out->n; i++)
			FX_CF32_OF(out)[i] = 1;
	else if (status == FX_OK && reference >= 0)
		status = espirit(m, host, reference, options, out);
	if (status == FX_OK)
		status = m->ops->upload(m, out, maps);
	fx_array_unref(host);
	fx_array_unref(out);
	return status;
}

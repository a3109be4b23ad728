/* SPDX-License-Identifier: MIT */
/*
 * mask.c - where the object is in a mean b = 0 image: median filter, Otsu's threshold, the largest connected part, holes
 * filled. Done once a run, on the host; the filter, its only slow part, runs by rows on all threads.
 */
#include <fornix/diffusion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEDIAN_MOST 8

/* ---- median filter ------------------------------------------------------------------------------ */

struct median {
	const float *in;
	float *out;
	int64_t dims[3];
	int radius;
};

/* The k-th smallest (Hoare 1961); leaves v in another order. */
static float select_kth(float *v, int64_t n, int64_t k)
{
	int64_t low = 0, high = n - 1;

	while (low < high) {
		float pivot = v[low + (high - low) / 2];
		int64_t i = low - 1, j = high + 1;

		for (;;) {
			do
				i++;
			while (v[i] < pivot);
			do
				j--;
			while (v[j] > pivot);
			if (i >= j)
				break;
			float swap = v[i];

			v[i] = v[j];
			v[j] = swap;
		}
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
	return v[k];
}

/* One row along x: each voxel the (lower) median of the finite values within the radius along every axis; NaN where none is. */
static void median_row(void *arg, int64_t row)
{
	const struct median *f = arg;
	float values[(2 * MEDIAN_MOST + 1) * (2 * MEDIAN_MOST + 1) * (2 * MEDIAN_MOST + 1)];
	int64_t r = f->radius, y = row % f->dims[1], z = row / f->dims[1];

	for (int64_t x = 0; x < f->dims[0]; x++) {
		int64_t n = 0;

		for (int64_t k = z > r ? z - r : 0; k <= z + r && k < f->dims[2]; k++)
			for (int64_t j = y > r ? y - r : 0; j <= y + r && j < f->dims[1]; j++)
				for (int64_t i = x > r ? x - r : 0; i <= x + r && i < f->dims[0]; i++) {
					float v = f->in[i + f->dims[0] * (j + f->dims[1] * k)];

					if (isfinite(v))
						values[n++] = v;
				}
		f->out[x + f->dims[0] * row] = n > 0 ? select_kth(values, n, (n - 1) / 2) : NAN;
	}
}

/* ---- threshold ---------------------------------------------------------------------------------- */

static int by_value(const void *pa, const void *pb)
{
	float a = *(const float *)pa, b = *(const float *)pb;

	return (a > b) - (a < b);
}

/*
 * The threshold that maximises the variance between the classes below and above it (Otsu, IEEE Trans. SMC 9:62, 1979),
 * over all values themselves: no histogram, whose bins a few bright voxels would spoil. Sorts `v`. False where constant.
 */
static bool otsu(float *v, int64_t n, double *threshold)
{
	double total = 0, below = 0, best = -1;

	qsort(v, (size_t)n, sizeof *v, by_value);
	for (int64_t i = 0; i < n; i++)
		total += (double)v[i];
	if (n < 2 || !(v[0] < v[n - 1]))
		return false;
	for (int64_t i = 0; i + 1 < n; i++) {
		double n0 = (double)(i + 1), n1 = (double)(n - i - 1), apart;

		below += (double)v[i];
		if (v[i] == v[i + 1])
			continue;
		apart = (total - below) / n1 - below / n0;
		if (n0 * n1 * apart * apart > best) {
			best = n0 * n1 * apart * apart;
			*threshold = 0.5 * ((double)v[i] + (double)v[i + 1]);
		}
	}
	return true;
}

/* ---- parts -------------------------------------------------------------------------------------- */

/* Turns the 6-connected part of value `from` that `start` is in to value `to`; returns its size. `stack` has room for all voxels. */
static int64_t flood(uint8_t *v, const int64_t dims[3], int64_t start, uint8_t from, uint8_t to, int64_t *stack)
{
	const int64_t step[3] = {1, dims[0], dims[0] * dims[1]};
	int64_t n = 0, size = 0;

	v[start] = to;
	stack[n++] = start;
	while (n > 0) {
		int64_t at = stack[--n], rest = at;

		size++;
		for (int a = 0; a < 3; a++) {
			int64_t i = rest % dims[a];

			rest /= dims[a];
			if (i > 0 && v[at - step[a]] == from) {
				v[at - step[a]] = to;
				stack[n++] = at - step[a];
			}
			if (i < dims[a] - 1 && v[at + step[a]] == from) {
				v[at + step[a]] = to;
				stack[n++] = at + step[a];
			}
		}
	}
	return size;
}

enum { OUT, IN, PART, LARGEST, OUTSIDE };

/* Leaves the largest part of what is IN, as LARGEST; all else becomes OUT. The first one of those that are as large. */
static void keep_largest(uint8_t *v, const int64_t dims[3], int64_t n, int64_t *stack)
{
	int64_t largest = 0, at = -1;

	for (int64_t i = 0; i < n; i++) {
		int64_t size = v[i] == IN ? flood(v, dims, i, IN, PART, stack) : 0;

		if (size > largest) {
			largest = size;
			at = i;
		}
	}
	if (at >= 0)
		flood(v, dims, at, PART, LARGEST, stack);
	for (int64_t i = 0; i < n; i++)
		v[i] = v[i] == LARGEST ? LARGEST : OUT;
}

/* What is not the object and does not reach the border is inside it. Axes of one voxel have no border. */
static void fill_holes(uint8_t *v, const int64_t dims[3], int64_t n, int64_t *stack)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t x[3] = {i % dims[0], i / dims[0] % dims[1], i / (dims[0] * dims[1])};
		bool border = false;

		for (int a = 0; a < 3; a++)
			border = border || (dims[a] > 1 && (x[a] == 0 || x[a] == dims[a] - 1));
		if (border && v[i] == OUT)
			flood(v, dims, i, OUT, OUTSIDE, stack);
	}
	for (int64_t i = 0; i < n; i++)
		v[i] = v[i] != OUTSIDE;
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static int check(fx_math *m, const fx_array *b0, int median, double factor)
{
	if (b0->type != FX_F32 || b0->place != FX_HOST || b0->n_dims > 3 || b0->n == 0)
		return fx_math_fail(m, FX_EINVAL, "a mean b = 0 image is f32 {x, y, z} on the host, with voxels");
	if (median < 0 || median > MEDIAN_MOST || !(factor > 0))
		return fx_math_fail(m, FX_EINVAL, "a median filter of radius %d (0 to %d) and a threshold times %g (above 0)", median,
			MEDIAN_MOST, factor);
	return FX_OK;
}

int fx_b0_mask(fx_math *m, const fx_array *b0, int median, double factor, fx_array **mask)
{
	int64_t n = b0->n, finite = 0, *stack = NULL, inside = 0;
	float *smooth = NULL, *sorted = NULL;
	double threshold = 0;
	uint8_t *v;
	int status;

	*mask = NULL;
	status = check(m, b0, median, factor);
	if (status != FX_OK)
		return status;
	smooth = fx_alloc(n, sizeof *smooth);
	sorted = fx_alloc(n, sizeof *sorted);
	stack = fx_alloc(n, sizeof *stack);
	if (!smooth || !sorted || !stack || fx_array_new(FX_U8, 3, b0->dims, mask) != FX_OK) {
		status = fx_math_fail(m, FX_ENOMEM, "no memory for the object mask of %lld voxels", (long long)n);
		goto done;
	}
	fx_parallel(m->n_threads, b0->dims[1] * b0->dims[2], median_row,
		&(struct median){FX_F32_OF(b0), smooth, {b0->dims[0], b0->dims[1], b0->dims[2]}, median});
	status = fx_math_check(m);
	if (status != FX_OK)
		goto done;
	for (int64_t i = 0; i < n; i++)
		if (isfinite(smooth[i]))
			sorted[finite++] = smooth[i];
	if (!otsu(sorted, finite, &threshold)) {
		status = fx_math_fail(m, FX_EDATA, "the mean b = 0 image is constant: no object can be told from its background; give a "
			"mask with image=");
		goto done;
	}
	v = (*mask)->data;
	for (int64_t i = 0; i < n; i++)
		inside += v[i] = (double)smooth[i] > factor * threshold && isfinite(FX_F32_OF(b0)[i]) ? IN : OUT;
	if (inside == 0) {
		status = fx_math_fail(m, FX_EDATA, "no voxel of the mean b = 0 image is above %g (%g times Otsu's threshold); lower factor=",
			factor * threshold, factor);
		goto done;
	}
	keep_largest(v, b0->dims, n, stack);
	fill_holes(v, b0->dims, n, stack);
done:
	fx_free(smooth);
	fx_free(sorted);
	fx_free(stack);
	if (status != FX_OK) {
		fx_array_unref(*mask);
		*mask = NULL;
	}
	return status;
}

/* ---- a mask of another grid ---------------------------------------------------------------------- */

int fx_mask_on_lattice(fx_math *m, const fx_array *image, const fx_lattice *of, const fx_lattice *lattice, fx_array **mask)
{
	double back[3][4];
	int64_t n = 0;
	uint8_t *out;
	int status;

	*mask = NULL;
	if (image->type != FX_F32 || image->place != FX_HOST || image->n != of->dims[0] * of->dims[1] * of->dims[2])
		return fx_math_fail(m, FX_EINVAL, "a mask image is f32 {x, y, z} on the host");
	status = fx_lattice_inverse(of, back, m->err);
	if (status == FX_OK && fx_array_new(FX_U8, 3, lattice->dims, mask) != FX_OK)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for a mask");
	if (status != FX_OK)
		return status;
	out = (*mask)->data;
	for (int64_t i = 0; i < (*mask)->n; i++) {
		int64_t at = 0, stride = 1;
		double x[3] = {(double)(i % lattice->dims[0]), (double)(i / lattice->dims[0] % lattice->dims[1]),
			(double)(i / (lattice->dims[0] * lattice->dims[1]))};

		fx_affine_apply(lattice->affine, x, x);
		fx_affine_apply((const double (*)[4])back, x, x);
		for (int a = 0; a < 3; a++) {
			double nearest = floor(x[a] + 0.5);

			if (!(nearest >= 0 && nearest < (double)of->dims[a]))
				at = -1;
			if (at >= 0)
				at += stride * (int64_t)nearest;
			stride *= of->dims[a];
		}
		out[i] = at >= 0 && FX_F32_OF(image)[at] > 0;
		n += out[i];
	}
	if (n > 0)
		return FX_OK;
	fx_array_unref(*mask);
	*mask = NULL;
	return fx_math_fail(m, FX_EDATA, "the mask has no voxel above 0 where the series lies: does it belong to another subject?");
}

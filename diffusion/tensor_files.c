/* SPDX-License-Identifier: MIT */
/*
 * tensor_files.c - tensor images in the orders, frames and units of other programs. Order and frame go by different rules
 * in each of them, and no file says which it has: a mix-up turns fibres and leaves FA as it was.
 */
#include "tensor.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 4096

/* orders[order][i] = which of xx, xy, yy, xz, yz, zz the program's component i is. */
static const int orders[3][6] = {
	[FX_ORDER_NIFTI] = {0, 1, 2, 3, 4, 5}, [FX_ORDER_MRTRIX] = {0, 2, 5, 1, 3, 4}, [FX_ORDER_FSL] = {0, 1, 3, 2, 4, 5}
};

struct job {
	int64_t n;               /* voxels */
	const int *order;
	double turn[3][3], factor;
	const float *image;      /* {n, 6} of another program */
	float *out;              /* likewise */
	const float *d;          /* {6, n} of ours */
	float *d_out;
	const uint8_t *mask;
	uint8_t *mask_out, *flags;
};

static double determinant(double a[3][3])
{
	return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
		a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

static void invert(double a[3][3], double out[3][3])
{
	double det = determinant(a);

	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;

			out[j][i] = (a[i1][j1] * a[i2][j2] - a[i1][j2] * a[i2][j1]) / det;
		}
}

/* columns[k] of *out are the frame's axes in RAS. */
static int frame_axes(fx_math *m, const fx_lattice *l, int frame, double out[3][3])
{
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			out[i][k] = i == k;
	if (frame == FX_FRAME_RAS)
		return FX_OK;
	for (int k = 0; k < 3; k++) {
		double length = sqrt(l->affine[0][k] * l->affine[0][k] + l->affine[1][k] * l->affine[1][k] +
			l->affine[2][k] * l->affine[2][k]);

		for (int i = 0; i < 3; i++)
			out[i][k] = l->affine[i][k] / length;
	}
	if (!(fabs(determinant(out)) > 1e-6)) /* of unit columns: flat, or not finite */
		return fx_math_fail(m, FX_EDATA, "the image's affine is singular, so its axes cannot be told");
	if (frame == FX_FRAME_FSL && determinant(out) > 0)
		for (int i = 0; i < 3; i++)
			out[i][0] = -out[i][0];
	return FX_OK;
}

static int check_convention(fx_math *m, int order, int frame, double factor)
{
	if (order < 0 || order > FX_ORDER_FSL || frame < 0 || frame > FX_FRAME_FSL || !isfinite(factor))
		return fx_math_fail(m, FX_EINVAL, "tensor order %d, frame %d, factor %g: one of them is none", order, frame, factor);
	return FX_OK;
}

static void share(fx_math *m, struct job *j, void (*body)(void *, int64_t))
{
	fx_parallel(m->n_threads, (j->n + BLOCK - 1) / BLOCK, body, j);
}

static int64_t block_end(const struct job *j, int64_t i)
{
	return (i + 1) * BLOCK < j->n ? (i + 1) * BLOCK : j->n;
}

static void export_block(void *arg, int64_t i)
{
	const struct job *j = arg;

	for (int64_t v = i * BLOCK; v < block_end(j, i); v++) {
		double d[6], turned[6];

		if (j->mask && !j->mask[v])
			continue;
		for (int e = 0; e < 6; e++)
			d[e] = j->d[6 * v + e];
		fx_tensor_turn((const double (*)[3])j->turn, d, turned);
		for (int e = 0; e < 6; e++)
			j->out[e * j->n + v] = (float)(j->factor * turned[j->order[e]]);
	}
}

int fx_tensors_export(fx_math *m, const fx_tensors *t, int order, int frame, double factor, fx_array **out)
{
	const int64_t *dims = t->lattice.dims;
	struct job j = {.n = dims[0] * dims[1] * dims[2], .factor = factor};
	double axes[3][3];
	int status = fxi_tensors_check(m, t);

	*out = NULL;
	if (status == FX_OK)
		status = check_convention(m, order, frame, factor);
	if (status == FX_OK)
		status = frame_axes(m, &t->lattice, frame, axes);
	if (status != FX_OK)
		return status;
	status = fx_array_new4(FX_F32, dims[0], dims[1], dims[2], 6, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a tensor image of %lld voxels", (long long)j.n);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			j.turn[i][k] = axes[k][i];
	j.order = orders[order];
	j.d = t->d->data;
	j.mask = t->mask ? t->mask->data : NULL;
	j.out = (*out)->data;
	share(m, &j, export_block);
	return FX_OK;
}

/* False where the voxel holds no tensor. */
static bool load(const struct job *j, int64_t v, double d[6])
{
	double most = 0;

	for (int e = 0; e < 6; e++) {
		double x = j->image[e * j->n + v];

		if (!isfinite(x))
			return false;
		most = fmax(most, fabs(x));
		d[j->order[e]] = x;
	}
	return most > 0;
}

static void import_block(void *arg, int64_t i)
{
	const struct job *j = arg;

	for (int64_t v = i * BLOCK; v < block_end(j, i); v++) {
		double d[6], turned[6];

		if (!load(j, v, d)) {
			j->flags[v] = FX_TENSOR_OUTSIDE;
			continue;
		}
		for (int e = 0; e < 6; e++)
			d[e] *= j->factor;
		fx_tensor_turn((const double (*)[3])j->turn, d, turned);
		j->mask_out[v] = 1;
		j->flags[v] = fx_tensor_raise(turned, 0) ? FX_TENSOR_CLAMPED : 0;
		for (int e = 0; e < 6; e++)
			j->d_out[6 * v + e] = (float)turned[e];
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int find_factor(fx_math *m, struct job *j)
{
	double *traces = fx_alloc(j->n, sizeof *traces), median;
	int64_t n = 0;

	if (!traces && j->n > 0)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the traces of %lld tensors", (long long)j->n);
	for (int64_t v = 0; v < j->n; v++) {
		double d[6];

		if (load(j, v, d))
			traces[n++] = d[0] + d[2] + d[5];
	}
	if (n == 0) {
		fx_free(traces);
		return fx_math_fail(m, FX_EDATA, "the tensor image holds nothing but zeros or numbers that are not finite");
	}
	qsort(traces, (size_t)n, sizeof *traces, compare);
	median = traces[n / 2];
	fx_free(traces);
	if (median > 0 && median < 0.1)
		j->factor = 1e3;
	else if (median >= 0.3 && median <= 30)
		j->factor = 1;
	else
		return fx_math_fail(m, FX_EDATA, "the median trace of the tensors is %g, which is not that of tissue in mm^2/s nor in "
			"um^2/ms; check the order of the components, or say the factor that makes them um^2/ms", median);
	return FX_OK;
}

static int new_tensors(fx_math *m, const fx_lattice *l, fx_msg **out)
{
	fx_tensors *t;
	int status = FX_ENOMEM;

	*out = fx_msg_new(FX_TENSORS);
	if (*out) {
		t = fx_msg_tensors(*out);
		t->lattice = *l;
		t->fit = FX_FIT_GIVEN;
		status = fx_array_new4(FX_F32, 6, l->dims[0], l->dims[1], l->dims[2], &t->d);
		if (status == FX_OK)
			status = fx_array_new(FX_U8, 3, l->dims, &t->mask);
		if (status == FX_OK)
			status = fx_array_new(FX_U8, 3, l->dims, &t->flags);
	}
	if (status == FX_OK)
		return FX_OK;
	fx_drop(*out);
	*out = NULL;
	return fx_math_fail(m, status, "no memory for a field of %lld x %lld x %lld tensors", (long long)l->dims[0],
		(long long)l->dims[1], (long long)l->dims[2]);
}

static int check_image(fx_math *m, const fx_array *image, const fx_lattice *l)
{
	bool five = image->n_dims == 5 && image->dims[3] == 1 && image->dims[4] == 6;

	if (image->n_dims < 3 || !(five || (image->n_dims == 4 && image->dims[3] == 6)))
		return fx_math_fail(m, FX_EDATA, "a tensor image is x, y, z, 6 or x, y, z, 1, 6; this one has %d dimensions, "
			"%lld x %lld x %lld x %lld x %lld", image->n_dims, (long long)image->dims[0], (long long)image->dims[1],
			(long long)image->dims[2], (long long)image->dims[3], (long long)image->dims[4]);
	for (int k = 0; k < 3; k++)
		if (image->dims[k] != l->dims[k])
			return fx_math_fail(m, FX_EINVAL, "tensor image and lattice differ in size along axis %d", k);
	return FX_OK;
}

int fx_tensors_import(fx_math *m, const fx_array *image, const fx_lattice *lattice, int order, int frame, double factor,
	fx_msg **out)
{
	struct job j = {.n = lattice->dims[0] * lattice->dims[1] * lattice->dims[2], .factor = factor};
	fx_array *single = NULL;
	double axes[3][3];
	int status = check_image(m, image, lattice);

	*out = NULL;
	if (status == FX_OK)
		status = check_convention(m, order, frame, factor);
	if (status == FX_OK)
		status = frame_axes(m, lattice, frame, axes);
	if (status != FX_OK)
		return status;
	status = fx_array_convert(image, FX_F32, &single);
	if (status != FX_OK)
		return fx_math_fail(m, status, "cannot take a tensor image of %s as f32", fx_type_name(image->type));
	j.order = orders[order];
	j.image = single->data;
	/* D_image = R^T D R, so D = R^-T D_image R^-1, whether or not the affine shears */
	double inverse[3][3];
	invert(axes, inverse);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			j.turn[i][k] = inverse[k][i];
	if (factor == 0)
		status = find_factor(m, &j);
	if (status == FX_OK)
		status = new_tensors(m, lattice, out);
	if (status == FX_OK) {
		fx_tensors *t = fx_msg_tensors(*out);

		j.d_out = t->d->data;
		j.mask_out = t->mask->data;
		j.flags = t->flags->data;
		share(m, &j, import_block);
	}
	fx_array_unref(single);
	return status;
}

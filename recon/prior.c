/* SPDX-License-Identifier: MIT */
/*
 * prior.c - the quasi-Bayesian prior of Haldar, Hernando, Song and Liang (Magn. Reson. Med. 59:810, 2008): neighbours
 * are asked to be alike, except across the edges of a reference. The weights are data; the operator is the backend's.
 */
#include <fornix/recon.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

int fx_prior_apply(fx_math *m, const fx_array *w, double factor, const fx_array *x, fx_array *y)
{
	if (!w)
		return m->ops->axpy(m, factor, x, y);
	if (!m->ops->difference_normal)
		return fx_math_fail(m, FX_ENOTSUP, "backend '%s' has no weighted differences; run the prior with backend=host, or "
			"without a reference", m->ops->name);
	return m->ops->difference_normal(m, w, factor, x, y);
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static int range_of(fx_math *m, const fx_array *r, double *range)
{
	float *sorted = fx_alloc(r->n, sizeof *sorted);
	int64_t cut = r->n / 100;

	if (!sorted)
		return fx_math_fail(m, FX_ENOMEM, "no memory to sort a reference of %lld voxels", (long long)r->n);
	memcpy(sorted, r->data, (size_t)r->n * sizeof *sorted);
	qsort(sorted, (size_t)r->n, sizeof *sorted, by_value);
	*range = (double)sorted[r->n - 1 - cut] - (double)sorted[cut];
	if (*range <= 0)
		*range = (double)sorted[r->n - 1] - (double)sorted[0];
	fx_free(sorted);
	return FX_OK;
}

static int check_reference(fx_math *m, const fx_array *r, double edge)
{
	if (r->type != FX_F32 || r->n == 0 || r->n != r->dims[0] * r->dims[1] * r->dims[2] || r->place != FX_HOST)
		return fx_math_fail(m, FX_EINVAL, "a reference is an f32 volume {x,y,z} on the host, with voxels");
	if (!(edge > 0) || !isfinite(edge))
		return fx_math_fail(m, FX_EINVAL, "edge %g is not a positive number", edge);
	for (int64_t i = 0; i < r->n; i++)
		if (!isfinite(FX_F32_OF(r)[i]))
			return fx_math_fail(m, FX_EDATA, "voxel %lld of the reference is not a finite number", (long long)i);
	return FX_OK;
}

/* Fills one axis's weights and returns their sum. `unit` is edge times range; 0 where there are no edges at all. */
static double fill_axis(const fx_array *r, int axis, double unit, float *w)
{
	int64_t step = axis == 0 ? 1 : axis == 1 ? r->dims[0] : r->dims[0] * r->dims[1];
	const float *v = FX_F32_OF(r);
	double sum = 0;

	for (int64_t i = 0; i < r->n; i++) {
		double d;

		if (i / step % r->dims[axis] == r->dims[axis] - 1)
			continue;
		d = unit > 0 ? ((double)v[i] - (double)v[i + step]) / unit : 0;
		w[i] = (float)(1 / (1 + d * d));
		sum += (double)w[i];
	}
	return sum;
}

int fx_prior_weights(fx_math *m, const fx_array *reference, double edge, fx_array **weights, double *range)
{
	const int64_t *d = reference->dims;
	fx_array *w = NULL;
	double sum = 0;
	int status = check_reference(m, reference, edge);

	*weights = NULL;
	if (status == FX_OK)
		status = range_of(m, reference, range);
	if (status == FX_OK && fx_array_new4(FX_F32, d[0], d[1], d[2], 3, &w) != FX_OK)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for the prior's weights of %lld voxels", (long long)reference->n);
	if (status != FX_OK)
		return status;
	for (int axis = 0; axis < 3; axis++)
		sum += fill_axis(reference, axis, edge * *range, FX_F32_OF(w) + axis * reference->n);
	/* each pair adds its weight to two diagonal elements */
	for (int64_t i = 0; i < w->n && sum > 0; i++)
		FX_F32_OF(w)[i] *= (float)((double)reference->n / (2 * sum));
	status = m->ops->upload(m, w, weights);
	fx_array_unref(w);
	return status;
}

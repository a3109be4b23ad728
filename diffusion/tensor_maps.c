/* SPDX-License-Identifier: MIT */
/* tensor_maps.c - images of a tensor field's invariants and directions. Voxels are shared over the threads in blocks. */
#include "tensor.h"

#include <math.h>

#define BLOCK 2048

struct job {
	int map;
	int64_t n;               /* voxels */
	const float *d;
	const uint8_t *mask, *flags;
	float *out;
	uint8_t *rgb;
};

static void directions(const struct job *j, int64_t voxel, double fa, const double e1[3])
{
	for (int k = 0; k < 3; k++)
		if (j->map == FX_MAP_EVEC)
			j->out[k * j->n + voxel] = (float)e1[k];
		else
			j->rgb[3 * voxel + k] = (uint8_t)lrint(255 * fmin(1, fa) * fabs(e1[k]));
}

static void one_voxel(const struct job *j, int64_t voxel)
{
	unsigned flags = j->flags ? j->flags[voxel] : 0;
	double d[6], l[3], e[3][3], fa;

	if ((j->mask && !j->mask[voxel]) || (flags & (FX_TENSOR_OUTSIDE | FX_TENSOR_UNFITTED)))
		return;
	for (int k = 0; k < 6; k++)
		d[k] = j->d[6 * voxel + k];
	if (j->map == FX_MAP_MD) {
		j->out[voxel] = (float)((d[0] + d[2] + d[5]) / 3);
		return;
	}
	fx_tensor_eigen(d, l, e);
	fa = fx_tensor_fa(l);
	if (j->map == FX_MAP_EVALS) {
		for (int k = 0; k < 3; k++)
			j->out[k * j->n + voxel] = (float)l[k];
	} else if (j->map == FX_MAP_AD) {
		j->out[voxel] = (float)l[0];
	} else if (j->map == FX_MAP_RD) {
		j->out[voxel] = (float)((l[1] + l[2]) / 2);
	} else if (!(flags & FX_TENSOR_ISOTROPIC) && fa > 0) { /* false where it is not finite, too */
		if (j->map == FX_MAP_FA)
			j->out[voxel] = (float)fa;
		else
			directions(j, voxel, fa, e[0]);
	}
}

static void block(void *arg, int64_t i)
{
	const struct job *j = arg;
	int64_t end = (i + 1) * BLOCK < j->n ? (i + 1) * BLOCK : j->n;

	for (int64_t voxel = i * BLOCK; voxel < end; voxel++)
		one_voxel(j, voxel);
}

static bool is_volume(const fx_array *a, int type, const int64_t dims[3])
{
	return !a || (a->type == type && a->n_dims == 3 && a->dims[0] == dims[0] && a->dims[1] == dims[1] && a->dims[2] == dims[2]);
}

int fxi_tensors_check(fx_math *m, const fx_tensors *t)
{
	const int64_t *dims = t->lattice.dims;

	if (!t->d || t->d->type != FX_F32 || t->d->n_dims != 4 || t->d->dims[0] != 6 || t->d->dims[1] != dims[0] ||
		t->d->dims[2] != dims[1] || t->d->dims[3] != dims[2])
		return fx_math_fail(m, FX_EINVAL, "tensors are to be f32 {6, %lld, %lld, %lld}, as their lattice is",
			(long long)dims[0], (long long)dims[1], (long long)dims[2]);
	if (!is_volume(t->mask, FX_U8, dims) || !is_volume(t->flags, FX_U8, dims))
		return fx_math_fail(m, FX_EINVAL, "mask and flags of tensors are to be u8 {%lld, %lld, %lld}, as their lattice is",
			(long long)dims[0], (long long)dims[1], (long long)dims[2]);
	return FX_OK;
}

int fx_tensor_map(fx_math *m, const fx_tensors *t, int map, fx_array **out)
{
	const int64_t *dims = t->lattice.dims;
	struct job j = {.map = map, .n = dims[0] * dims[1] * dims[2]};
	int status = fxi_tensors_check(m, t);

	*out = NULL;
	if (status == FX_OK && (map < 0 || map >= FX_N_MAPS))
		status = fx_math_fail(m, FX_EINVAL, "there is no tensor map %d", map);
	if (status != FX_OK)
		return status;
	if (map == FX_MAP_COLOUR_FA)
		status = fx_array_new4(FX_U8, 3, dims[0], dims[1], dims[2], out);
	else if (map == FX_MAP_EVEC || map == FX_MAP_EVALS)
		status = fx_array_new4(FX_F32, dims[0], dims[1], dims[2], 3, out);
	else
		status = fx_array_new(FX_F32, 3, dims, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a map of %lld x %lld x %lld voxels", (long long)dims[0],
			(long long)dims[1], (long long)dims[2]);
	j.d = t->d->data;
	j.mask = t->mask ? t->mask->data : NULL;
	j.flags = t->flags ? t->flags->data : NULL;
	j.out = (*out)->data;
	j.rgb = (*out)->data;
	fx_parallel(m->n_threads, (j.n + BLOCK - 1) / BLOCK, block, &j);
	return FX_OK;
}

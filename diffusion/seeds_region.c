/* SPDX-License-Identifier: MIT */
/*
 * seeds_region.c - regions of another space: what a voxel of the data finds at its own place in millimetres. Labels are not
 * mixed: the nearest voxel counts.
 */
#include <fornix/diffusion.h>

#include <math.h>
#include <string.h>

struct map {
	double a[3][4];
};

struct work {
	const uint8_t *from;
	uint8_t *to;
	size_t size;
	int64_t from_dims[3], to_dims[3];
	struct map map;         /* index of `to` into index of `from` */
};

/* Indices of `from` into indices of `to`, by way of millimetres. */
static int map_between(const fx_lattice *from, const fx_lattice *to, struct map *map, fx_error *err)
{
	double mm[3][4];
	int status = fx_lattice_inverse(to, mm, err);

	for (int i = 0; i < 3 && status == FX_OK; i++)
		for (int j = 0; j < 4; j++)
			map->a[i][j] = mm[i][0] * from->affine[0][j] + mm[i][1] * from->affine[1][j] + mm[i][2] * from->affine[2][j] +
				(j == 3 ? mm[i][3] : 0);
	return status;
}

/* Linear index of the voxel nearest to x, or -1. */
static int64_t nearest(const int64_t dims[3], const double x[3])
{
	int64_t v[3];

	for (int d = 0; d < 3; d++) {
		double at = floor(x[d] + 0.5);

		if (!(at >= 0 && at < (double)dims[d]))
			return -1;
		v[d] = (int64_t)at;
	}
	return v[0] + dims[0] * (v[1] + dims[1] * v[2]);
}

static void resample_row(void *arg, int64_t row)
{
	const struct work *w = arg;
	int64_t y = row % w->to_dims[1], z = row / w->to_dims[1];

	for (int64_t x = 0; x < w->to_dims[0]; x++) {
		double at[3];
		int64_t i;

		fx_affine_apply(w->map.a, (double[]){(double)x, (double)y, (double)z}, at);
		i = nearest(w->from_dims, at);
		if (i >= 0)
			memcpy(w->to + (size_t)(row * w->to_dims[0] + x) * w->size, w->from + (size_t)i * w->size, w->size);
	}
}

static double part_inside(const fx_array *region, const int64_t dims[3], const struct map *map)
{
	const int64_t *own = region->dims;
	int64_t n = 0, in = 0;

	for (int64_t i = 0; i < region->n; i++) {
		double value = region->type == FX_U8 ? ((const uint8_t *)region->data)[i]
			: region->type == FX_F32 ? (double)FX_F32_OF(region)[i] : FX_F64_OF(region)[i];
		double at[3];

		if (value == 0 || isnan(value))
			continue;
		fx_affine_apply(map->a, (double[]){(double)(i % own[0]), (double)(i / own[0] % own[1]), (double)(i / own[0] / own[1])}, at);
		n++;
		in += nearest(dims, at) >= 0;
	}
	return n ? (double)in / (double)n : 0;
}

int fx_region_resample(fx_math *m, const fx_array *region, const fx_lattice *from, const fx_lattice *to, fx_array **out, double *inside)
{
	struct work w = {.from = region->data, .size = fx_type_size(region->type)};
	struct map back;
	int status = map_between(to, from, &w.map, m->err);

	if (status == FX_OK)
		status = map_between(from, to, &back, m->err);
	if (status != FX_OK)
		return status;
	if (region->type != FX_U8 && region->type != FX_F32 && region->type != FX_F64)
		return fx_math_fail(m, FX_EINVAL, "a region is u8, f32 or f64, not %s", fx_type_name(region->type));
	if (fx_array_new(region->type, 3, to->dims, out) != FX_OK)
		return fx_math_fail(m, FX_ENOMEM, "no memory for a region of %lld x %lld x %lld voxels", (long long)to->dims[0],
			(long long)to->dims[1], (long long)to->dims[2]);
	memcpy(w.from_dims, region->dims, sizeof w.from_dims);
	memcpy(w.to_dims, to->dims, sizeof w.to_dims);
	w.to = (*out)->data;
	fx_parallel(m->n_threads, (*out)->n ? to->dims[1] * to->dims[2] : 0, resample_row, &w);
	*inside = part_inside(region, to->dims, &back);
	return FX_OK;
}

void fx_lattice_box(const fx_lattice *l, double low[3], double high[3])
{
	for (int corner = 0; corner < 8; corner++) {
		double index[3], x[3];

		for (int d = 0; d < 3; d++)
			index[d] = corner >> d & 1 ? (double)l->dims[d] - 0.5 : -0.5;
		fx_affine_apply(l->affine, index, x);
		for (int d = 0; d < 3; d++) {
			low[d] = corner ? fmin(low[d], x[d]) : x[d];
			high[d] = corner ? fmax(high[d], x[d]) : x[d];
		}
	}
}

/* ---- regions of files ------------------------------------------------------------------------- */

int fx_region_of_file(fx_math *m, const char *name, const fx_array *data, fx_lattice *lattice, fx_array **out)
{
	for (int d = 3; d < data->n_dims; d++)
		if (data->dims[d] > 1)
			return fx_math_fail(m, FX_EDATA, "%s has more than one volume; give a region of three dimensions", name);
	if (data->type != FX_F32 && data->type != FX_F64)
		return fx_math_fail(m, FX_EDATA, "%s holds %s values; a region is of real numbers", name, fx_type_name(data->type));
	if (fx_array_new(data->type, 3, data->dims, out) != FX_OK)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the %lld voxels of %s", (long long)data->n, name);
	if (data->n)
		memcpy((*out)->data, data->data, (size_t)data->bytes);
	memcpy(lattice->dims, data->dims, sizeof lattice->dims);
	return FX_OK;
}

int fx_region_space(fx_math *m, const char *name, const fx_lattice *region, const fx_lattice *data, int *space)
{
	const int64_t *is = region->dims, *want = data->dims;
	double mm[3];

	if (!region->has_affine || !data->has_affine) {
		*space = FX_REGION_BY_VOXEL;
		if (is[0] == want[0] && is[1] == want[1] && is[2] == want[2])
			return FX_OK;
		return fx_math_fail(m, FX_EDATA, "%s has %lld x %lld x %lld voxels, the data %lld x %lld x %lld, and %s without an affine: it "
			"could only be taken voxel by voxel; give a file with sform or qform, or one of the data's size", name,
			(long long)is[0], (long long)is[1], (long long)is[2], (long long)want[0], (long long)want[1], (long long)want[2],
			region->has_affine ? "the data are" : "it is");
	}
	fx_lattice_voxel_mm(data, mm);
	*space = fx_lattice_same(region, data, 0.01 * fmin(mm[0], fmin(mm[1], mm[2]))) ? FX_REGION_SAME : FX_REGION_ELSEWHERE;
	return FX_OK;
}

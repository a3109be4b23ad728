/* SPDX-License-Identifier: MIT */
/*
 * walsh.c - coil maps as dominant eigenvectors of local covariances (Walsh, Gmitro, Marcellin 2000).
 *
 * The covariance of every voxel is a sum over a block around it. Sums are taken axis after axis over small tiles with a
 * rim, so no volume of c^2 products ever exists; a voxel's sum has one order whatever tile or thread makes it.
 */
#include "host.h"
#include "kernels/walsh.h"

#include <complex.h>
#include <math.h>
#include <stdatomic.h>

#define LANES FXI_WALSH_LANES
#define TILE_X (2 * LANES)

struct job {
	const fx_cf32 *coils;
	fx_cf32 *maps;
	int64_t dims[3], n_coils, n_voxels;
	int64_t tile_y, tile_z, tiles_y;
	int64_t radius, reference;
	int n_iterations;
	float scale;
	_Atomic bool no_memory;
};

/* Buffers of one tile; rows are `stride` floats long: TILE_X voxels and the rim on both sides. */
struct tile {
	int64_t x0, y0, z0, stride;
	float *re, *im;    /* {stride, coils}: one line of every coil */
	float *line;       /* {stride, c^2}: its products */
	float *over_z;     /* {stride, tile_y + 2 radius, tile_z, c^2} */
	float *over_y;     /* {stride} */
	float *matrix;     /* {TILE_X, c^2} */
	float *vectors;    /* {lanes, 2 c}, then work {lanes, 2 c}, then lanes of the matrix {lanes, c^2} */
};

static bool new_tile(const struct job *j, struct tile *t)
{
	int64_t c2 = j->n_coils * j->n_coils, rim_y = j->tile_y + 2 * j->radius;

	*t = (struct tile){.stride = TILE_X + 2 * j->radius};
	t->re = fx_alloc(j->n_coils * t->stride, sizeof(float));
	t->im = fx_alloc(j->n_coils * t->stride, sizeof(float));
	t->line = fx_alloc(c2 * t->stride, sizeof(float));
	t->over_z = fx_alloc(c2 * t->stride * rim_y * j->tile_z, sizeof(float));
	t->over_y = fx_alloc(t->stride, sizeof(float));
	t->matrix = fx_alloc(c2 * TILE_X, sizeof(float));
	t->vectors = fx_alloc((4 * j->n_coils + c2) * LANES, sizeof(float));
	return t->re && t->im && t->line && t->over_z && t->over_y && t->matrix && t->vectors;
}

static void free_tile(struct tile *t)
{
	fx_free(t->re);
	fx_free(t->im);
	fx_free(t->line);
	fx_free(t->over_z);
	fx_free(t->over_y);
	fx_free(t->matrix);
	fx_free(t->vectors);
}

static float *over_z_row(const struct job *j, const struct tile *t, int64_t element, int64_t z, int64_t y)
{
	return t->over_z + ((element * j->tile_z + z) * (j->tile_y + 2 * j->radius) + y) * t->stride;
}

/* Splits a line of every coil into parts; 0 beyond the image. */
static void load_line(const struct job *j, struct tile *t, int64_t y, int64_t z)
{
	for (int64_t c = 0; c < j->n_coils; c++) {
		const fx_cf32 *from = j->coils + c * j->n_voxels + (z * j->dims[1] + y) * j->dims[0];

		for (int64_t i = 0; i < t->stride; i++) {
			int64_t x = t->x0 - j->radius + i;
			bool inside = x >= 0 && x < j->dims[0];

			t->re[c * t->stride + i] = inside ? j->scale * crealf(from[x]) : 0;
			t->im[c * t->stride + i] = inside ? j->scale * cimagf(from[x]) : 0;
		}
	}
}

/* over_z[z][y] = products of I I^H summed over the block's extent along z. */
static void sum_over_z(const struct job *j, struct tile *t)
{
	int64_t c2 = j->n_coils * j->n_coils, rim_y = j->tile_y + 2 * j->radius;

	for (int64_t i = 0; i < c2 * j->tile_z * rim_y * t->stride; i++)
		t->over_z[i] = 0;
	for (int64_t iy = 0; iy < rim_y; iy++) {
		int64_t y = t->y0 - j->radius + iy;

		if (y < 0 || y >= j->dims[1])
			continue;
		for (int64_t iz = 0; iz < j->tile_z + 2 * j->radius; iz++) {
			int64_t z = t->z0 - j->radius + iz;

			if (z < 0 || z >= j->dims[2])
				continue;
			load_line(j, t, y, z);
			FXI_PICK(fxi_walsh_products)(j->n_coils, t->stride, t->stride, t->re, t->im, t->line);
			/* this line is within the block of tile planes iz - 2 radius .. iz */
			for (int64_t k = iz - 2 * j->radius; k <= iz; k++)
				for (int64_t e = 0; k >= 0 && k < j->tile_z && e < c2; e++)
					FXI_PICK(fxi_walsh_add)(t->stride, t->line + e * t->stride, over_z_row(j, t, e, k, iy));
		}
	}
}

/* matrix = the covariances of one line of the tile: what sum_over_z left, summed along y and x. */
static void sum_over_y_and_x(const struct job *j, struct tile *t, int64_t iy, int64_t iz)
{
	int64_t c2 = j->n_coils * j->n_coils, block = 2 * j->radius + 1;

	for (int64_t e = 0; e < c2; e++) {
		float *out = t->matrix + e * TILE_X;

		for (int64_t i = 0; i < t->stride; i++)
			t->over_y[i] = 0;
		for (int64_t k = 0; k < block; k++)
			FXI_PICK(fxi_walsh_add)(t->stride, over_z_row(j, t, e, iz, iy + k), t->over_y);
		for (int64_t i = 0; i < TILE_X; i++)
			out[i] = 0;
		for (int64_t k = 0; k < block; k++)
			FXI_PICK(fxi_walsh_add)(TILE_X, t->over_y + k, out);
	}
}

static void solve_line(const struct job *j, struct tile *t, int64_t y, int64_t z)
{
	int64_t n_coils = j->n_coils, c2 = n_coils * n_coils;
	float *re = t->vectors, *im = re + n_coils * LANES, *work = im + n_coils * LANES, *lanes = work + 2 * n_coils * LANES;

	for (int64_t first = 0; first < TILE_X && t->x0 + first < j->dims[0]; first += LANES) {
		for (int64_t e = 0; e < c2; e++)
			for (int64_t i = 0; i < LANES; i++)
				lanes[e * LANES + i] = t->matrix[e * TILE_X + first + i];
		FXI_PICK(fxi_walsh_solve)(n_coils, j->n_iterations, j->reference, lanes, re, im, work);
		for (int64_t c = 0; c < n_coils; c++) {
			fx_cf32 *to = j->maps + c * j->n_voxels + (z * j->dims[1] + y) * j->dims[0];

			for (int64_t i = 0; i < LANES && t->x0 + first + i < j->dims[0]; i++)
				to[t->x0 + first + i] = FX_CF32(re[c * LANES + i], im[c * LANES + i]);
		}
	}
}

/* One row of tiles along x. */
static void row_of_tiles(void *arg, int64_t i)
{
	struct job *j = arg;
	struct tile t;

	if (!new_tile(j, &t)) {
		atomic_store(&j->no_memory, true);
		free_tile(&t);
		return;
	}
	t.y0 = i % j->tiles_y * j->tile_y;
	t.z0 = i / j->tiles_y * j->tile_z;
	for (t.x0 = 0; t.x0 < j->dims[0]; t.x0 += TILE_X) {
		sum_over_z(j, &t);
		for (int64_t iz = 0; iz < j->tile_z && t.z0 + iz < j->dims[2]; iz++)
			for (int64_t iy = 0; iy < j->tile_y && t.y0 + iy < j->dims[1]; iy++) {
				sum_over_y_and_x(j, &t, iy, iz);
				solve_line(j, &t, t.y0 + iy, t.z0 + iz);
			}
	}
	free_tile(&t);
}

struct energy {
	const fx_cf32 *coils;
	int64_t n_voxels;
	double *sum;
};

static void coil_energy(void *arg, int64_t c)
{
	const struct energy *e = arg;
	double sum = 0;

	for (int64_t i = 0; i < e->n_voxels; i++) {
		double re = crealf(e->coils[c * e->n_voxels + i]), im = cimagf(e->coils[c * e->n_voxels + i]);

		sum += re * re + im * im;
	}
	e->sum[c] = sum;
}

/* The coil with most signal, whose phase is the maps' reference, and the scale that makes its mean square 1. */
static int find_reference(fx_math *m, struct job *j)
{
	struct energy e = {.coils = j->coils, .n_voxels = j->n_voxels, .sum = fx_alloc(j->n_coils, sizeof(double))};
	double best = 0;

	if (!e.sum)
		return fx_math_fail(m, FX_ENOMEM, "no memory for coil maps");
	fx_parallel(m->n_threads, j->n_coils, coil_energy, &e);
	for (int64_t c = 0; c < j->n_coils; c++) {
		if (!isfinite(e.sum[c])) {
			fx_free(e.sum);
			return fx_math_fail(m, FX_EDATA, "the image of coil %lld, which coil maps are made from, holds numbers that "
				"are not finite; look at the raw samples of that coil", (long long)c);
		}
		if (e.sum[c] > best) {
			best = e.sum[c];
			j->reference = c;
		}
	}
	fx_free(e.sum);
	j->scale = best > 0 ? (float)(1 / sqrt(best / (double)j->n_voxels)) : 0;
	return FX_OK;
}

int fxi_host_walsh(fx_math *m, const fx_array *coils, int radius, int n_iterations, fx_array *maps)
{
	struct job j = {
		.coils = coils->data, .maps = maps->data, .dims = {coils->dims[0], coils->dims[1], coils->dims[2]},
		.n_coils = coils->dims[3], .n_voxels = coils->dims[0] * coils->dims[1] * coils->dims[2],
		.radius = radius, .n_iterations = n_iterations,
	};
	int status;

	if (coils->type != FX_CF32 || !fx_array_same_shape(coils, maps) || radius < 0 || n_iterations < 0)
		return fx_math_fail(m, FX_EINVAL, "coil maps need cf32 coil images, maps of the same shape, and a radius and "
			"iterations that are not negative");
	if (coils->n == 0)
		return FX_OK;
	status = find_reference(m, &j);
	if (status != FX_OK)
		return status;
	/* Thin tiles waste work on their rims, thick ones fall out of the cache. */
	j.tile_y = j.dims[2] == 1 ? 16 : 4;
	j.tile_z = j.dims[2] == 1 ? 1 : 4;
	j.tiles_y = (j.dims[1] + j.tile_y - 1) / j.tile_y;
	fx_parallel(m->n_threads, j.tiles_y * ((j.dims[2] + j.tile_z - 1) / j.tile_z), row_of_tiles, &j);
	if (j.no_memory)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the covariances of %lld coils", (long long)j.n_coils);
	return FX_OK;
}

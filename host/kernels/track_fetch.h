/* SPDX-License-Identifier: MIT */
/*
 * track_fetch.h - trilinear interpolation of the numbers of one voxel grid at a position a lane. A voxel's numbers lie together, so
 * each lane's are vectors that eight corners are summed into; the result is then transposed to one number a row.
 */
#ifndef FORNIX_HOST_KERNELS_TRACK_FETCH_H
#define FORNIX_HOST_KERNELS_TRACK_FETCH_H

#include "track.h"

#define W FXI_TRACK_LANES

/* Eight floats at any float's address: a part of a voxel's 24. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

struct cells {
	int64_t at[W];        /* floats from the field's start to the cell's first corner */
	float part[3][W];     /* 0..1 within the cell */
};

/* The cell of x along one axis of n voxels; x is held within the first and last centres. An axis of 1 has cell 0, part 0. */
static inline __attribute__((always_inline)) int32_t cell_of(double x, double top, int32_t last, float *part)
{
	double held = x > 0 ? x : 0; /* NaN too */
	int32_t cell;

	held = held < top ? held : top;
	cell = (int32_t)held;
	cell = cell < last ? cell : last;
	*part = (float)(held - (double)cell);
	return cell;
}

static inline __attribute__((always_inline)) void find_cells(const fxi_track_field *f, int n_parts, double x[3][W],
	struct cells *c)
{
	int64_t nx = f->dims[0], ny = f->dims[1];
	double top[3];
	int32_t last[3];

	for (int a = 0; a < 3; a++) {
		top[a] = (double)(f->dims[a] - 1);
		last[a] = f->dims[a] > 1 ? (int32_t)(f->dims[a] - 2) : 0;
	}
#pragma omp simd
	for (int l = 0; l < W; l++) {
		int64_t i = cell_of(x[0][l], top[0], last[0], &c->part[0][l]);
		int64_t j = cell_of(x[1][l], top[1], last[1], &c->part[1][l]);
		int64_t k = cell_of(x[2][l], top[2], last[2], &c->part[2][l]);

		c->at[l] = ((k * ny + j) * nx + i) * n_parts;
	}
}

/* parts[c][l] = number c at x of lane l. */
static inline __attribute__((always_inline)) void fetch24(const fxi_track_field *f, double x[3][W], float parts[24][W])
{
	int64_t sx = f->dims[0] > 1 ? 24 : 0, sy = f->dims[1] > 1 ? 24 * f->dims[0] : 0;
	int64_t sz = f->dims[2] > 1 ? 24 * f->dims[0] * f->dims[1] : 0;
	float rows[W][24] __attribute__((aligned(64)));
	struct cells c;

	find_cells(f, 24, x, &c);
	for (int l = 0; l < W; l++) {
		const float *p = f->field + c.at[l];
		float i = c.part[0][l], j = c.part[1][l], k = c.part[2][l];
		float w[4] = {(1 - j) * (1 - k), j * (1 - k), (1 - j) * k, j * k};
		const int64_t at[4] = {0, sy, sz, sy + sz};
		eight sum[3] = {{0}, {0}, {0}};

		for (int pair = 0; pair < 4; pair++) {
			const float *q = p + at[pair];
			float low = w[pair] * (1 - i), high = w[pair] * i;

			for (int part = 0; part < 3; part++) {
				sum[part] += low * *(const eight *)(q + 8 * part);
				sum[part] += high * *(const eight *)(q + sx + 8 * part);
			}
		}
		for (int part = 0; part < 3; part++)
			*(eight *)(rows[l] + 8 * part) = sum[part];
	}
	for (int part = 0; part < 24; part++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			parts[part][l] = rows[l][part];
}

/* The same of six numbers a voxel; a load of eight would read past the last voxel, so these go lane by lane in scalars. */
static inline __attribute__((always_inline)) void fetch6(const fxi_track_field *f, double x[3][W], float parts[24][W])
{
	int64_t sx = f->dims[0] > 1 ? 6 : 0, sy = f->dims[1] > 1 ? 6 * f->dims[0] : 0;
	int64_t sz = f->dims[2] > 1 ? 6 * f->dims[0] * f->dims[1] : 0;
	struct cells c;

	find_cells(f, 6, x, &c);
	for (int l = 0; l < W; l++) {
		const float *p = f->field + c.at[l];
		float i = c.part[0][l], j = c.part[1][l], k = c.part[2][l];

		for (int part = 0; part < 6; part++, p++) {
			float near = (1 - j) * ((1 - i) * p[0] + i * p[sx]) + j * ((1 - i) * p[sy] + i * p[sy + sx]);
			float far = (1 - j) * ((1 - i) * p[sz] + i * p[sz + sx]) + j * ((1 - i) * p[sz + sy] + i * p[sz + sy + sx]);

			parts[part][l] = (1 - k) * near + k * far;
		}
	}
}

#endif

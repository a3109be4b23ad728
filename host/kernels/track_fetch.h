/* SPDX-License-Identifier: MIT */
/*
 * track_fetch.h - trilinear interpolation of the numbers of one voxel grid at a position a lane. A voxel's numbers lie together, so
 * each lane's are vectors that eight corners are summed into; the result is then transposed to one number a row.
 */
#ifndef FORNIX_HOST_KERNELS_TRACK_FETCH_H
#define FORNIX_HOST_KERNELS_TRACK_FETCH_H

#include "track.h"

#include <string.h>

#define W FXI_TRACK_LANES

/* Eight floats at any float's address: a part of a voxel's 24. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

struct cells {
	int64_t at[W];        /* floats from the field's start to the cell's first corner */
	float part[3][W];     /* 0..1 within the cell */
};

/* Along one axis; x is held within the first and last centres (NaN: the first). An axis of one voxel has cell 0, part 0. */
static inline __attribute__((always_inline)) void find_cells_along(int64_t n, int64_t stride, double x[W], int64_t at[W],
	float part[W])
{
	double top = (double)(n - 1);
	int32_t last = n > 1 ? (int32_t)(n - 2) : 0;

#pragma omp simd
	for (int l = 0; l < W; l++) {
		double held = x[l] > 0 ? x[l] : 0;
		int32_t cell;

		held = held < top ? held : top;
		cell = (int32_t)held;
		cell = cell < last ? cell : last;
		part[l] = (float)(held - (double)cell);
		at[l] += cell * stride;
	}
}

static inline __attribute__((always_inline)) void find_cells(const fxi_track_field *f, int n_parts, double x[3][W],
	struct cells *c)
{
	int64_t stride = n_parts;

	for (int l = 0; l < W; l++)
		c->at[l] = 0;
	for (int a = 0; a < 3; a++) {
		find_cells_along(f->dims[a], stride, x[a], c->at, c->part[a]);
		stride *= f->dims[a];
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
	/* Fibres that come into a new cell wait for memory: all lanes' lines are asked for before the first is summed. */
	for (int l = 0; l < W; l++)
		for (int pair = 0; pair < 4; pair++) {
			const float *p = f->field + c.at[l] + (pair & 1 ? sy : 0) + (pair & 2 ? sz : 0);

			__builtin_prefetch(p);
			__builtin_prefetch(p + 16);
			__builtin_prefetch(p + 32);
			__builtin_prefetch(p + sx + 23);
		}
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

/* The same of six numbers a voxel. Vectors of eight read two numbers beyond, which the field's last voxel does not have. */
static inline __attribute__((always_inline)) void fetch6(const fxi_track_field *f, double x[3][W], float parts[24][W])
{
	int64_t sx = f->dims[0] > 1 ? 6 : 0, sy = f->dims[1] > 1 ? 6 * f->dims[0] : 0;
	int64_t sz = f->dims[2] > 1 ? 6 * f->dims[0] * f->dims[1] : 0, end = 6 * f->dims[0] * f->dims[1] * f->dims[2] - 8;
	float rows[W][8] __attribute__((aligned(64)));
	struct cells c;

	find_cells(f, 6, x, &c);
	for (int l = 0; l < W; l++) {
		float i = c.part[0][l], j = c.part[1][l], k = c.part[2][l];
		float w[4] = {(1 - j) * (1 - k), j * (1 - k), (1 - j) * k, j * k};
		const int64_t at[4] = {c.at[l], c.at[l] + sy, c.at[l] + sz, c.at[l] + sy + sz};
		eight sum = {0};

		for (int pair = 0; pair < 4; pair++) {
			float low = w[pair] * (1 - i), high = w[pair] * i, copy[2][8] = {{0}};
			const float *p = f->field + at[pair], *q = p + sx;

			if (at[pair] + sx > end) { /* each product and sum as below, so that no bit depends on the place */
				memcpy(copy[0], p, 6 * sizeof *p);
				memcpy(copy[1], q, 6 * sizeof *q);
				p = copy[0];
				q = copy[1];
			}
			sum += low * *(const eight *)p;
			sum += high * *(const eight *)q;
		}
		*(eight *)rows[l] = sum;
	}
	for (int part = 0; part < 6; part++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			parts[part][l] = rows[l][part];
}

#endif

/* SPDX-License-Identifier: MIT */
/* metric.c - tensors taken apart, put together and turned, a voxel a lane; double, since g is differenced afterwards. */
#include "metric.h"

#define JACOBI_REAL double
#define JACOBI_SQRT sqrt
#define JACOBI_ABS fabs
#include "jacobi.h"

#define W FXI_METRIC_LANES

void FXI_NAME(fxi_metric_eigen)(double d[6][W], double values[3][W], double vectors[9][W])
{
#pragma omp simd
	for (int l = 0; l < W; l++) {
		jacobi j = {.a = {d[0][l], d[1][l], d[2][l], d[3][l], d[4][l], d[5][l]},
			.v = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};

		jacobi_solve(&j);
		values[0][l] = j.a[0];
		values[1][l] = j.a[2];
		values[2][l] = j.a[5];
		vectors[0][l] = j.v[0][0];
		vectors[1][l] = j.v[0][1];
		vectors[2][l] = j.v[0][2];
		vectors[3][l] = j.v[1][0];
		vectors[4][l] = j.v[1][1];
		vectors[5][l] = j.v[1][2];
		vectors[6][l] = j.v[2][0];
		vectors[7][l] = j.v[2][1];
		vectors[8][l] = j.v[2][2];
	}
}

void FXI_NAME(fxi_metric_compose)(double values[3][W], double vectors[9][W], double d[6][W])
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};

	for (int c = 0; c < 6; c++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			d[c][l] = values[0][l] * vectors[row[c]][l] * vectors[column[c]][l] +
				values[1][l] * vectors[3 + row[c]][l] * vectors[3 + column[c]][l] +
				values[2][l] * vectors[6 + row[c]][l] * vectors[6 + column[c]][l];
}

void FXI_NAME(fxi_metric_turn)(const double *r, double d[6][W], double out[6][W])
{
	static const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};

#pragma omp simd
	for (int l = 0; l < W; l++) {
		double rd[3][3];

		for (int i = 0; i < 3; i++) {
			rd[i][0] = r[3 * i + 0] * d[0][l] + r[3 * i + 1] * d[1][l] + r[3 * i + 2] * d[3][l];
			rd[i][1] = r[3 * i + 0] * d[1][l] + r[3 * i + 1] * d[2][l] + r[3 * i + 2] * d[4][l];
			rd[i][2] = r[3 * i + 0] * d[3][l] + r[3 * i + 1] * d[4][l] + r[3 * i + 2] * d[5][l];
		}
		for (int c = 0; c < 6; c++)
			out[c][l] = rd[row[c]][0] * r[3 * column[c] + 0] + rd[row[c]][1] * r[3 * column[c] + 1] +
				rd[row[c]][2] * r[3 * column[c] + 2];
	}
}

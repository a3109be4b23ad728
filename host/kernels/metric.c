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
		JACOBI_DECLARE;

		axx = d[0][l];
		axy = d[1][l];
		ayy = d[2][l];
		axz = d[3][l];
		ayz = d[4][l];
		azz = d[5][l];
		JACOBI_SOLVE;
		values[0][l] = axx;
		values[1][l] = ayy;
		values[2][l] = azz;
		vectors[0][l] = v00;
		vectors[1][l] = v01;
		vectors[2][l] = v02;
		vectors[3][l] = v10;
		vectors[4][l] = v11;
		vectors[5][l] = v12;
		vectors[6][l] = v20;
		vectors[7][l] = v21;
		vectors[8][l] = v22;
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
	double rd[9][W];

	for (int i = 0; i < 3; i++)
#pragma omp simd
		for (int l = 0; l < W; l++) {
			rd[3 * i][l] = r[3 * i] * d[0][l] + r[3 * i + 1] * d[1][l] + r[3 * i + 2] * d[3][l];
			rd[3 * i + 1][l] = r[3 * i] * d[1][l] + r[3 * i + 1] * d[2][l] + r[3 * i + 2] * d[4][l];
			rd[3 * i + 2][l] = r[3 * i] * d[3][l] + r[3 * i + 1] * d[4][l] + r[3 * i + 2] * d[5][l];
		}
	for (int c = 0; c < 6; c++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			out[c][l] = rd[3 * row[c]][l] * r[3 * column[c]] + rd[3 * row[c] + 1][l] * r[3 * column[c] + 1] +
				rd[3 * row[c] + 2][l] * r[3 * column[c] + 2];
}

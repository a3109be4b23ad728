/* SPDX-License-Identifier: MIT */
/*
 * symmetric.cuh - symmetric 3 x 3 matrices in double, one a thread: xx, xy, yy, xz, yz, zz. Eigenvalues by Jacobi's rotations, which stay
 * orthogonal where eigenvalues meet; all is unrolled, so that it stays in registers.
 */
#ifndef FORNIX_CUDA_SYMMETRIC_CUH
#define FORNIX_CUDA_SYMMETRIC_CUH

/** The matrix being diagonalised, and v[i], which becomes the unit eigenvector of the i-th value. */
struct fxi_eigen {
	double xx, xy, yy, xz, yz, zz;
	double v[3][3];
};

/* Makes pq 0; rp and rq are the elements that the third axis shares with p and q. The smallest normal float keeps 0/0 out. */
__device__ static __forceinline__ void fxi_turn(double &pp, double &qq, double &pq, double &rp, double &rq, double p[3], double q[3])
{
	double gap = qq - pp, twice = 2 * pq;
	double t = (gap < 0 ? -twice : twice) / (fabs(gap) + sqrt(gap * gap + twice * twice) + 1.2e-38);
	double c = 1 / sqrt(1 + t * t), s = t * c, old;

	pp -= t * pq;
	qq += t * pq;
	pq = 0;
	old = rp;
	rp = c * old - s * rq;
	rq = s * old + c * rq;
#pragma unroll
	for (int k = 0; k < 3; k++) {
		old = p[k];
		p[k] = c * old - s * q[k];
		q[k] = s * old + c * q[k];
	}
}

/** Four sweeps, as the host's vector code takes: they converge quadratically. Values (in no order) are xx, yy and zz. */
__device__ static __forceinline__ void fxi_eigen_solve(fxi_eigen &e, const double d[6])
{
	e.xx = d[0], e.xy = d[1], e.yy = d[2], e.xz = d[3], e.yz = d[4], e.zz = d[5];
#pragma unroll
	for (int i = 0; i < 3; i++)
#pragma unroll
		for (int k = 0; k < 3; k++)
			e.v[i][k] = i == k;
#pragma unroll 1
	for (int sweep = 0; sweep < 4; sweep++) {
		fxi_turn(e.xx, e.yy, e.xy, e.xz, e.yz, e.v[0], e.v[1]);
		fxi_turn(e.xx, e.zz, e.xz, e.xy, e.yz, e.v[0], e.v[2]);
		fxi_turn(e.yy, e.zz, e.yz, e.xy, e.xz, e.v[1], e.v[2]);
	}
}

/** d = sum values v v^T */
__device__ static __forceinline__ void fxi_compose(const double values[3], const double v[3][3], double d[6])
{
	const int row[6] = {0, 0, 1, 0, 1, 2}, column[6] = {0, 1, 1, 2, 2, 2};

#pragma unroll
	for (int c = 0; c < 6; c++)
		d[c] = values[0] * v[0][row[c]] * v[0][column[c]] + values[1] * v[1][row[c]] * v[1][column[c]] +
			values[2] * v[2][row[c]] * v[2][column[c]];
}

#endif

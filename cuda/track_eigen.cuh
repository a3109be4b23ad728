/* SPDX-License-Identifier: MIT */
/*
 * track_eigen.cuh - the principal eigenvector of a symmetric 3 x 3 matrix by four Jacobi sweeps, as host/kernels/jacobi.h does it: without a
 * branch, orthogonal where eigenvalues meet.
 */
#ifndef FORNIX_CUDA_TRACK_EIGEN_CUH
#define FORNIX_CUDA_TRACK_EIGEN_CUH

namespace track {

/* Makes a[p][q] 0; r is the third axis; rows p and q of v turn along. */
template <class REAL> __device__ static inline void turn(REAL &pp, REAL &qq, REAL &pq, REAL &rp, REAL &rq, REAL p[3], REAL q[3])
{
	REAL gap = qq - pp, twice = 2 * pq;
	REAL tangent = (gap < 0 ? -twice : twice) / (fabs(gap) + sqrt(gap * gap + twice * twice) + (REAL)1.2e-38);
	REAL c = 1 / sqrt(1 + tangent * tangent), s = tangent * c, old = rp;

	pp -= tangent * pq;
	qq += tangent * pq;
	pq = 0;
	rp = c * old - s * rq;
	rq = s * old + c * rq;
#pragma unroll
	for (int i = 0; i < 3; i++) {
		old = p[i];
		p[i] = c * old - s * q[i];
		q[i] = s * old + c * q[i];
	}
}

/* Unit vector of the largest eigenvalue of d (xx, xy, yy, xz, yz, zz), and that. */
template <class REAL> __device__ static inline REAL principal(const REAL d[6], REAL e[3])
{
	REAL xx = d[0], xy = d[1], yy = d[2], xz = d[3], yz = d[4], zz = d[5], most;
	REAL v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

	for (int sweep = 0; sweep < 4; sweep++) {
		turn(xx, yy, xy, xz, yz, v[0], v[1]);
		turn(xx, zz, xz, xy, yz, v[0], v[2]);
		turn(yy, zz, yz, xy, xz, v[1], v[2]);
	}
	most = xx;
#pragma unroll
	for (int i = 0; i < 3; i++)
		e[i] = v[0][i];
	if (yy > most) {
		most = yy;
#pragma unroll
		for (int i = 0; i < 3; i++)
			e[i] = v[1][i];
	}
	if (zz > most) {
		most = zz;
#pragma unroll
		for (int i = 0; i < 3; i++)
			e[i] = v[2][i];
	}
	return most;
}

} // namespace track

#endif

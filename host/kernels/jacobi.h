/* SPDX-License-Identifier: MIT */
/*
 * jacobi.h - eigenvalues and eigenvectors of symmetric 3 x 3 matrices without a branch, for loops over lanes. JACOBI_REAL
 * is float or double, set before this file is included.
 *
 * Four Jacobi sweeps, whatever the matrix: they converge quadratically, stay orthogonal where eigenvalues meet, and do the same
 * operations whatever the matrix, so that a lane's result does not depend on its neighbours.
 */
#include <math.h>

/*
 * Macros, since a local whose address is taken, or an array, is kept in memory by gcc for each lane, and the loop is not vectorised.
 * Elements are named axx .. azz; eigenvector k of the diagonal element k is vk0, vk1, vk2.
 */

/* The declarations; v starts as the unit matrix. */
#define JACOBI_DECLARE \
	JACOBI_REAL axx, axy, ayy, axz, ayz, azz, tan_, cos_, sin_, twice_, gap_, old_; \
	JACOBI_REAL v00 = 1, v01 = 0, v02 = 0, v10 = 0, v11 = 1, v12 = 0, v20 = 0, v21 = 0, v22 = 1

/* (p, q) <- (c p - s q, s p + c q) */
#define JACOBI_MIX(p, q) \
	old_ = p; \
	p = cos_ * old_ - sin_ * q; \
	q = sin_ * old_ + cos_ * q

/* Makes pq 0; rp and rq are the elements that the third axis shares with p and q. The smallest normal float keeps 0/0 out. */
#define JACOBI_TURN(pp, qq, pq, rp, rq, p0, p1, p2, q0, q1, q2) \
	gap_ = qq - pp; \
	twice_ = 2 * pq; \
	tan_ = (gap_ < 0 ? -twice_ : twice_) / \
		(JACOBI_ABS(gap_) + JACOBI_SQRT(gap_ * gap_ + twice_ * twice_) + (JACOBI_REAL)1.2e-38); \
	cos_ = 1 / JACOBI_SQRT(1 + tan_ * tan_); \
	sin_ = tan_ * cos_; \
	pp -= tan_ * pq; \
	qq += tan_ * pq; \
	pq = 0; \
	JACOBI_MIX(rp, rq); \
	JACOBI_MIX(p0, q0); \
	JACOBI_MIX(p1, q1); \
	JACOBI_MIX(p2, q2)

#define JACOBI_SWEEP \
	JACOBI_TURN(axx, ayy, axy, axz, ayz, v00, v01, v02, v10, v11, v12); \
	JACOBI_TURN(axx, azz, axz, axy, ayz, v00, v01, v02, v20, v21, v22); \
	JACOBI_TURN(ayy, azz, ayz, axy, axz, v10, v11, v12, v20, v21, v22)

#define JACOBI_SOLVE \
	JACOBI_SWEEP; \
	JACOBI_SWEEP; \
	JACOBI_SWEEP; \
	JACOBI_SWEEP

/* SPDX-License-Identifier: MIT */
/*
 * jacobi.h - eigenvalues and eigenvectors of symmetric 3 x 3 matrices without a branch, for loops over lanes. JACOBI_REAL
 * is float or double, set before this file is included.
 *
 * Four Jacobi sweeps, whatever the matrix: they converge quadratically, stay orthogonal where eigenvalues meet, and do the same
 * operations whatever the matrix, so that a lane's result does not depend on its neighbours.
 */
#include <math.h>

typedef struct jacobi {
	JACOBI_REAL a[6];    /* xx, xy, yy, xz, yz, zz; becomes diagonal */
	JACOBI_REAL v[3][3]; /* v[k] is the eigenvector of the k-th diagonal element */
} jacobi;

/* (p, q) <- (c p - s q, s p + c q) */
static inline __attribute__((always_inline)) void jacobi_mix(JACOBI_REAL c, JACOBI_REAL s, JACOBI_REAL *p, JACOBI_REAL *q)
{
	JACOBI_REAL old = *p;

	*p = c * old - s * *q;
	*q = s * old + c * *q;
}

/* Makes *pq 0; rp and rq are the elements that the third axis shares with p and q. The smallest normal float keeps 0/0 out. */
static inline __attribute__((always_inline)) void jacobi_turn(JACOBI_REAL *pp, JACOBI_REAL *qq, JACOBI_REAL *pq,
	JACOBI_REAL *rp, JACOBI_REAL *rq, JACOBI_REAL p[3], JACOBI_REAL q[3])
{
	JACOBI_REAL d = *qq - *pp, twice = 2 * *pq, root = JACOBI_SQRT(d * d + twice * twice);
	JACOBI_REAL t = (d < 0 ? -twice : twice) / (JACOBI_ABS(d) + root + (JACOBI_REAL)1.2e-38);
	JACOBI_REAL c = 1 / JACOBI_SQRT(1 + t * t), s = t * c;

	*pp -= t * *pq;
	*qq += t * *pq;
	*pq = 0;
	jacobi_mix(c, s, rp, rq);
	jacobi_mix(c, s, &p[0], &q[0]);
	jacobi_mix(c, s, &p[1], &q[1]);
	jacobi_mix(c, s, &p[2], &q[2]);
}

static inline __attribute__((always_inline)) void jacobi_sweep(jacobi *j)
{
	jacobi_turn(&j->a[0], &j->a[2], &j->a[1], &j->a[3], &j->a[4], j->v[0], j->v[1]);
	jacobi_turn(&j->a[0], &j->a[5], &j->a[3], &j->a[1], &j->a[4], j->v[0], j->v[2]);
	jacobi_turn(&j->a[2], &j->a[5], &j->a[4], &j->a[1], &j->a[3], j->v[1], j->v[2]);
}

/* v starts as the unit matrix. No loop: compilers vectorise the lanes' loop only where it has none inside. */
static inline __attribute__((always_inline)) void jacobi_solve(jacobi *j)
{
	jacobi_sweep(j);
	jacobi_sweep(j);
	jacobi_sweep(j);
	jacobi_sweep(j);
}

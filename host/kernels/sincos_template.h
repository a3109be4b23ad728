/* SPDX-License-Identifier: MIT */
/*
 * sincos_template.h - included by other templates: vectors of one precision, and their sine and cosine. Takes REAL, PHASE, SIGNED,
 * FN and the coefficients; defines LANES, VREAL, VPHASE and VSIGNED, which the includer undefines.
 */
#define LANES (VECTOR_BYTES / (int)sizeof(REAL))
#define VREAL FN(vreal)
#define VPHASE FN(vphase)
#define VSIGNED FN(vsigned)

typedef REAL VREAL __attribute__((vector_size(VECTOR_BYTES)));
typedef PHASE VPHASE __attribute__((vector_size(VECTOR_BYTES)));
typedef SIGNED VSIGNED __attribute__((vector_size(VECTOR_BYTES)));

/* e^{i phase}. The nearest half cycle is taken off, which flips both signs where it is odd: no quadrants to sort out. */
static inline __attribute__((always_inline)) void FN(sincos)(const VPHASE *at, VREAL *s, VREAL *c)
{
	static const REAL cs[] = {SIN_COEFFICIENTS}, cc[] = {COS_COEFFICIENTS};
	enum { N_SIN = sizeof cs / sizeof *cs, N_COS = sizeof cc / sizeof *cc };
	const int bits = 8 * (int)sizeof(PHASE);
	VPHASE phase = *at, flip = (phase + ((PHASE)1 << (bits - 2))) & ((PHASE)1 << (bits - 1));
	VREAL u = __builtin_convertvector((VSIGNED)(phase + flip), VREAL) * ((REAL)1 / (REAL)((PHASE)1 << (bits - 2)));
	VREAL z = u * u, p = cs[N_SIN - 1] + 0 * z, q = cc[N_COS - 1] + 0 * z;

#pragma GCC unroll 16
	for (int i = N_SIN - 2; i >= 0; i--)
		p = p * z + cs[i];
#pragma GCC unroll 16
	for (int i = N_COS - 2; i >= 0; i--)
		q = q * z + cc[i];
	*s = (VREAL)((VPHASE)(u * p) ^ flip);
	*c = (VREAL)((VPHASE)q ^ flip);
}

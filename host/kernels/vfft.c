/* SPDX-License-Identifier: MIT */
/*
 * vfft.c - Stockham's autosorting FFT (Van Loan 1992, section 1.7, generalised to mixed radices) over columns.
 *
 * In a stage of radix r with n points left and stride s (the product of the radices before), group p of m = n / r
 * takes x[q + s (p + m k)], k < r, to y[q + s (r p + k)] = w^{pk} sum_j x_j e^{-i2pi jk/r}, w = e^{-i2pi/n}.
 * The inverse is the same with real and imaginary parts exchanged.
 */
#include "vfft.h"
#include "lanes.h"

#define INLINE static inline __attribute__((always_inline))

/* Where a stage works: columns, and the offsets of the parts in them. */
struct pass {
	const float *in;
	float *out;
	int64_t re, im;     /* 0 and LANES, or exchanged */
	int64_t s, m;
};

INLINE column get(const struct pass *t, int64_t i)
{
	const float *at = t->in + 2 * LANES * i;

	return (column){CONST_AT(at + t->re), CONST_AT(at + t->im)};
}

INLINE void put(const struct pass *t, int64_t i, column v)
{
	float *at = t->out + 2 * LANES * i;

	AT(at + t->re) = v.re;
	AT(at + t->im) = v.im;
}

/* Writes output k of a group, times its twiddle factor (w == NULL: 1). */
INLINE void put_turned(const struct pass *t, int64_t i, column v, const float *w, int k)
{
	put(t, i, w ? times(v, w[2 * (k - 1)], w[2 * (k - 1) + 1]) : v);
}

INLINE void butterfly2(const struct pass *t, int64_t p, int64_t q, const float *w)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 2 * p;
	column a = get(t, i), b = get(t, i + step);

	put(t, o, plus(a, b));
	put_turned(t, o + t->s, minus(a, b), w, 1);
}

INLINE void butterfly3(const struct pass *t, int64_t p, int64_t q, const float *w)
{
	const float s3 = 0.866025403784438647f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 3 * p;
	column a = get(t, i), b = get(t, i + step), c = get(t, i + 2 * step);
	column sum = plus(b, c), d = turned(minus(b, c));
	column mid = {a.re - 0.5f * sum.re, a.im - 0.5f * sum.im};
	column side = {s3 * d.re, s3 * d.im};

	put(t, o, plus(a, sum));
	put_turned(t, o + t->s, plus(mid, side), w, 1);
	put_turned(t, o + 2 * t->s, minus(mid, side), w, 2);
}

INLINE void butterfly4(const struct pass *t, int64_t p, int64_t q, const float *w)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 4 * p;
	column a = get(t, i), b = get(t, i + step), c = get(t, i + 2 * step), d = get(t, i + 3 * step);
	column ac = plus(a, c), bd = plus(b, d), a_c = minus(a, c), b_d = turned(minus(b, d));

	put(t, o, plus(ac, bd));
	put_turned(t, o + t->s, plus(a_c, b_d), w, 1);
	put_turned(t, o + 2 * t->s, minus(ac, bd), w, 2);
	put_turned(t, o + 3 * t->s, minus(a_c, b_d), w, 3);
}

INLINE void butterfly5(const struct pass *t, int64_t p, int64_t q, const float *w)
{
	const float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
	const float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 5 * p;
	column a = get(t, i), b = get(t, i + step), c = get(t, i + 2 * step), d = get(t, i + 3 * step),
	       e = get(t, i + 4 * step);
	column be = plus(b, e), cd = plus(c, d), b_e = turned(minus(b, e)), c_d = turned(minus(c, d));
	column m1 = {a.re + c1 * be.re + c2 * cd.re, a.im + c1 * be.im + c2 * cd.im};
	column m2 = {a.re + c2 * be.re + c1 * cd.re, a.im + c2 * be.im + c1 * cd.im};
	column d1 = {s1 * b_e.re + s2 * c_d.re, s1 * b_e.im + s2 * c_d.im};
	column d2 = {s2 * b_e.re - s1 * c_d.re, s2 * b_e.im - s1 * c_d.im};

	put(t, o, plus(a, plus(be, cd)));
	put_turned(t, o + t->s, plus(m1, d1), w, 1);
	put_turned(t, o + 2 * t->s, plus(m2, d2), w, 2);
	put_turned(t, o + 3 * t->s, minus(m2, d2), w, 3);
	put_turned(t, o + 4 * t->s, minus(m1, d1), w, 4);
}

INLINE void butterfly8(const struct pass *t, int64_t p, int64_t q, const float *w)
{
	const float h = 0.707106781186547524f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 8 * p;
	column x0 = get(t, i), x4 = get(t, i + 4 * step), x2 = get(t, i + 2 * step), x6 = get(t, i + 6 * step);
	column e0 = plus(x0, x4), e1 = minus(x0, x4), e2 = plus(x2, x6), e3 = turned(minus(x2, x6));
	column f0 = plus(e0, e2), f2 = minus(e0, e2), f1 = plus(e1, e3), f3 = minus(e1, e3);
	column x1 = get(t, i + step), x5 = get(t, i + 5 * step), x3 = get(t, i + 3 * step), x7 = get(t, i + 7 * step);
	column g0 = plus(x1, x5), g1 = minus(x1, x5), g2 = plus(x3, x7), g3 = turned(minus(x3, x7));
	column h0 = plus(g0, g2), h2 = turned(minus(g0, g2)), k1 = plus(g1, g3), k3 = minus(g1, g3);
	/* times e^{-i pi/4} and e^{-i 3 pi/4} */
	column h1 = {h * (k1.re + k1.im), h * (k1.im - k1.re)}, h3 = {h * (k3.im - k3.re), -h * (k3.re + k3.im)};

	put(t, o, plus(f0, h0));
	put_turned(t, o + t->s, plus(f1, h1), w, 1);
	put_turned(t, o + 2 * t->s, plus(f2, h2), w, 2);
	put_turned(t, o + 3 * t->s, plus(f3, h3), w, 3);
	put_turned(t, o + 4 * t->s, minus(f0, h0), w, 4);
	put_turned(t, o + 5 * t->s, minus(f1, h1), w, 5);
	put_turned(t, o + 6 * t->s, minus(f2, h2), w, 6);
	put_turned(t, o + 7 * t->s, minus(f3, h3), w, 7);
}

/*
 * Any odd radix r. Inputs j and r - j meet in their sum and difference, outputs k and r - k share a cosine and a
 * sine sum: r^2 real multiplications and additions of a column instead of 4 r^2.
 */
static void butterfly_odd(const struct pass *t, int r, const float *roots, int64_t p, int64_t q, const float *w,
	float *work)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * r * p;
	int half = (r - 1) / 2;
	column first = get(t, i), total = first;
	column *sums = (column *)(void *)work, *differences = sums + half;

	for (int j = 1; j <= half; j++) {
		column a = get(t, i + j * step), b = get(t, i + (r - j) * step);

		sums[j - 1] = plus(a, b);
		differences[j - 1] = turned(minus(a, b));
		total = plus(total, sums[j - 1]);
	}
	put(t, o, total);
	for (int k = 1; k <= half; k++) {
		column even = first, odd = {0};

		for (int j = 1, jk = k; j <= half; j++, jk = jk + k < r ? jk + k : jk + k - r) {
			float c = roots[2 * jk], s = roots[2 * jk + 1];

			even.re += c * sums[j - 1].re;
			even.im += c * sums[j - 1].im;
			odd.re += s * differences[j - 1].re;
			odd.im += s * differences[j - 1].im;
		}
		put_turned(t, o + k * t->s, plus(even, odd), w, k);
		put_turned(t, o + (r - k) * t->s, minus(even, odd), w, r - k);
	}
}

#define STAGE(r)                                                     \
	do {                                                         \
		for (int64_t q = 0; q < t.s; q++)                    \
			butterfly##r(&t, 0, q, NULL);                \
		for (int64_t p = 1; p < t.m; p++, w += 2 * (r - 1))  \
			for (int64_t q = 0; q < t.s; q++)            \
				butterfly##r(&t, p, q, w);           \
	} while (0)

static void stage(struct pass t, int radix, const float *w, const float *roots, float *work)
{
	switch (radix) {
	case 2:
		STAGE(2);
		break;
	case 3:
		STAGE(3);
		break;
	case 4:
		STAGE(4);
		break;
	case 5:
		STAGE(5);
		break;
	case 8:
		STAGE(8);
		break;
	default:
		for (int64_t p = 0; p < t.m; p++)
			for (int64_t q = 0; q < t.s; q++)
				butterfly_odd(&t, radix, roots, p, q,
					p ? w + 2 * (radix - 1) * (p - 1) : NULL, work);
	}
}

int64_t FXI_NAME(fxi_vfft_lanes)(void)
{
	return LANES;
}

float *FXI_NAME(fxi_vfft_run)(const fxi_vfft *plan, int inverse, float *in, float *a, float *b, float *work)
{
	struct pass t = {.in = in, .re = inverse ? LANES : 0, .im = inverse ? 0 : LANES, .s = 1, .m = plan->n};
	float *from = in, *to = a;

	for (int i = 0; i < plan->n_stages; i++) {
		t.in = from;
		t.out = to;
		t.m /= plan->stage[i].radix;
		stage(t, plan->stage[i].radix, plan->stage[i].twiddles, plan->stage[i].roots, work);
		t.s *= plan->stage[i].radix;
		from = to;
		to = to == a ? b : a;
	}
	return from;
}

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

/* What the first stage does to its input and the last one to its output; constants where they are used. */
enum { PLAIN, STEPPED, TWISTED, WEIGHTED, JOINED };

/* Where a stage works: columns, and the offsets of the parts in them. */
struct pass {
	const float *in;
	float *out;
	int64_t in_step, out_step; /* floats between columns; other than COLUMN only where a stage is STEPPED */
	int64_t re, im;            /* 0 and LANES, or exchanged */
	int64_t s, m;
	const float *half;         /* TWISTED, JOINED */
	const float *weights;      /* WEIGHTED: `weight_step` floats from one element to the next */
	int64_t weight_step;
	float norm;
	const float *add;          /* JOINED */
};

INLINE column get(const struct pass *t, int before, int64_t i)
{
	const float *at = t->in + (before == PLAIN ? COLUMN : t->in_step) * i;
	column v = {CONST_AT(at + t->re), CONST_AT(at + t->im)};

	return before == TWISTED ? times(v, t->half[2 * i], t->half[2 * i + 1]) : v;
}

/* Writes output k of a group, times its twiddle factor (w == NULL: 1), to element i. */
INLINE void put(const struct pass *t, int after, int64_t i, column v, const float *w, int k)
{
	float *at = t->out + (after == PLAIN ? COLUMN : t->out_step) * i;

	if (w && k > 0)
		v = times(v, w[2 * (k - 1)], w[2 * (k - 1) + 1]);
	if (after == WEIGHTED) {
		lanes weight = *(const lanes_at *)(t->weights + t->weight_step * i) * t->norm;

		v.re *= weight;
		v.im *= weight;
	} else if (after == JOINED) {
		const float *other = t->add + COLUMN * i;

		v = times(v, t->half[2 * i], t->half[2 * i + 1]);
		v.re += CONST_AT(other + t->re);
		v.im += CONST_AT(other + t->im);
	}
	AT(at + t->re) = v.re;
	AT(at + t->im) = v.im;
}

INLINE void butterfly2(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 2 * p;
	column a = get(t, before, i), b = get(t, before, i + step);

	put(t, after, o, plus(a, b), w, 0);
	put(t, after, o + t->s, minus(a, b), w, 1);
}

INLINE void butterfly3(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	const float s3 = 0.866025403784438647f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 3 * p;
	column a = get(t, before, i), b = get(t, before, i + step), c = get(t, before, i + 2 * step);
	column sum = plus(b, c), d = turned(minus(b, c));
	column mid = {a.re - 0.5f * sum.re, a.im - 0.5f * sum.im};
	column side = {s3 * d.re, s3 * d.im};

	put(t, after, o, plus(a, sum), w, 0);
	put(t, after, o + t->s, plus(mid, side), w, 1);
	put(t, after, o + 2 * t->s, minus(mid, side), w, 2);
}

INLINE void butterfly4(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 4 * p;
	column a = get(t, before, i), b = get(t, before, i + step), c = get(t, before, i + 2 * step), d = get(t, before, i + 3 * step);
	column ac = plus(a, c), bd = plus(b, d), a_c = minus(a, c), b_d = turned(minus(b, d));

	put(t, after, o, plus(ac, bd), w, 0);
	put(t, after, o + t->s, plus(a_c, b_d), w, 1);
	put(t, after, o + 2 * t->s, minus(ac, bd), w, 2);
	put(t, after, o + 3 * t->s, minus(a_c, b_d), w, 3);
}

INLINE void butterfly5(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	const float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
	const float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 5 * p;
	column a = get(t, before, i), b = get(t, before, i + step), c = get(t, before, i + 2 * step), d = get(t, before, i + 3 * step),
	       e = get(t, before, i + 4 * step);
	column be = plus(b, e), cd = plus(c, d), b_e = turned(minus(b, e)), c_d = turned(minus(c, d));
	column m1 = {a.re + c1 * be.re + c2 * cd.re, a.im + c1 * be.im + c2 * cd.im};
	column m2 = {a.re + c2 * be.re + c1 * cd.re, a.im + c2 * be.im + c1 * cd.im};
	column d1 = {s1 * b_e.re + s2 * c_d.re, s1 * b_e.im + s2 * c_d.im};
	column d2 = {s2 * b_e.re - s1 * c_d.re, s2 * b_e.im - s1 * c_d.im};

	put(t, after, o, plus(a, plus(be, cd)), w, 0);
	put(t, after, o + t->s, plus(m1, d1), w, 1);
	put(t, after, o + 2 * t->s, plus(m2, d2), w, 2);
	put(t, after, o + 3 * t->s, minus(m2, d2), w, 3);
	put(t, after, o + 4 * t->s, minus(m1, d1), w, 4);
}

INLINE void butterfly8(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	const float h = 0.707106781186547524f;
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 8 * p;
	column x0 = get(t, before, i), x4 = get(t, before, i + 4 * step), x2 = get(t, before, i + 2 * step), x6 = get(t, before, i + 6 * step);
	column e0 = plus(x0, x4), e1 = minus(x0, x4), e2 = plus(x2, x6), e3 = turned(minus(x2, x6));
	column f0 = plus(e0, e2), f2 = minus(e0, e2), f1 = plus(e1, e3), f3 = minus(e1, e3);
	column x1 = get(t, before, i + step), x5 = get(t, before, i + 5 * step), x3 = get(t, before, i + 3 * step), x7 = get(t, before, i + 7 * step);
	column g0 = plus(x1, x5), g1 = minus(x1, x5), g2 = plus(x3, x7), g3 = turned(minus(x3, x7));
	column h0 = plus(g0, g2), h2 = turned(minus(g0, g2)), k1 = plus(g1, g3), k3 = minus(g1, g3);
	/* times e^{-i pi/4} and e^{-i 3 pi/4} */
	column h1 = {h * (k1.re + k1.im), h * (k1.im - k1.re)}, h3 = {h * (k3.im - k3.re), -h * (k3.re + k3.im)};

	put(t, after, o, plus(f0, h0), w, 0);
	put(t, after, o + t->s, plus(f1, h1), w, 1);
	put(t, after, o + 2 * t->s, plus(f2, h2), w, 2);
	put(t, after, o + 3 * t->s, plus(f3, h3), w, 3);
	put(t, after, o + 4 * t->s, minus(f0, h0), w, 4);
	put(t, after, o + 5 * t->s, minus(f1, h1), w, 5);
	put(t, after, o + 6 * t->s, minus(f2, h2), w, 6);
	put(t, after, o + 7 * t->s, minus(f3, h3), w, 7);
}

/* a times e^{-i2pi turn/16} */
INLINE column times_root16(column a, int turn)
{
	const float c = 0.923879532511286756f, s = 0.382683432365089772f, h = 0.707106781186547524f;

	switch (turn) {
	case 1:
		return times(a, c, -s);
	case 2:
		return (column){h * (a.re + a.im), h * (a.im - a.re)};
	case 3:
		return times(a, s, -c);
	case 4:
		return turned(a);
	case 6:
		return (column){h * (a.im - a.re), -h * (a.re + a.im)};
	case 9:
		return times(a, -c, s);
	default:
		return a;
	}
}

INLINE void four_points(column x[4])
{
	column ac = plus(x[0], x[2]), bd = plus(x[1], x[3]), a_c = minus(x[0], x[2]), b_d = turned(minus(x[1], x[3]));

	x[0] = plus(ac, bd);
	x[1] = plus(a_c, b_d);
	x[2] = minus(ac, bd);
	x[3] = minus(a_c, b_d);
}

INLINE void butterfly16(const struct pass *t, int before, int after, int64_t p, int64_t q, const float *w)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * 16 * p;
	column x[4][4], y[4];

#pragma GCC unroll 4
	for (int b = 0; b < 4; b++) {
#pragma GCC unroll 4
		for (int a = 0; a < 4; a++)
			x[b][a] = get(t, before, i + (4 * a + b) * step);
		four_points(x[b]);
	}
#pragma GCC unroll 4
	for (int c = 0; c < 4; c++) {
#pragma GCC unroll 4
		for (int b = 0; b < 4; b++)
			y[b] = times_root16(x[b][c], b * c);
		four_points(y);
#pragma GCC unroll 4
		for (int d = 0; d < 4; d++)
			put(t, after, o + (c + 4 * d) * t->s, y[d], w, c + 4 * d);
	}
}

/*
 * Any odd radix r. Inputs j and r - j meet in their sum and difference, outputs k and r - k share a cosine and a
 * sine sum: r^2 real multiplications and additions of a column instead of 4 r^2.
 */
INLINE void butterfly_odd(const struct pass *t, int before, int after, int r, const float *roots, int64_t p, int64_t q,
	const float *w, float *work)
{
	int64_t i = q + t->s * p, step = t->s * t->m, o = q + t->s * r * p;
	int half = (r - 1) / 2;
	column first = get(t, before, i), total = first;
	column *sums = (column *)(void *)work, *differences = sums + half;

	for (int j = 1; j <= half; j++) {
		column a = get(t, before, i + j * step), b = get(t, before, i + (r - j) * step);

		sums[j - 1] = plus(a, b);
		differences[j - 1] = turned(minus(a, b));
		total = plus(total, sums[j - 1]);
	}
	put(t, after, o, total, w, 0);
	for (int k = 1; k <= half; k++) {
		column even = first, odd = {0};

		for (int j = 1, jk = k; j <= half; j++, jk = jk + k < r ? jk + k : jk + k - r) {
			float c = roots[2 * jk], s = roots[2 * jk + 1];

			even.re += c * sums[j - 1].re;
			even.im += c * sums[j - 1].im;
			odd.re += s * differences[j - 1].re;
			odd.im += s * differences[j - 1].im;
		}
		put(t, after, o + k * t->s, plus(even, odd), w, k);
		put(t, after, o + (r - k) * t->s, minus(even, odd), w, r - k);
	}
}

#define STAGE(r)                                                                    \
	do {                                                                        \
		for (int64_t q = 0; q < t->s; q++)                                  \
			butterfly##r(t, before, after, 0, q, NULL);                 \
		for (int64_t p = 1; p < t->m; p++, w += 2 * (r - 1))                \
			for (int64_t q = 0; q < t->s; q++)                          \
				butterfly##r(t, before, after, p, q, w);            \
	} while (0)

INLINE void stage_as(const struct pass *t, int before, int after, int radix, const float *w, const float *roots,
	float *work)
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
	case 16:
		STAGE(16);
		break;
	default:
		for (int64_t p = 0; p < t->m; p++)
			for (int64_t q = 0; q < t->s; q++)
				butterfly_odd(t, before, after, radix, roots, p, q,
					p ? w + 2 * (radix - 1) * (p - 1) : NULL, work);
	}
}

/* One compiled loop for each pair of `before` and `after` that occurs: a stage is never both first and last here. */
static void stage(const struct pass *t, int before, int after, int radix, const float *w, const float *roots,
	float *work)
{
	if (before == STEPPED)
		stage_as(t, STEPPED, PLAIN, radix, w, roots, work);
	else if (before == TWISTED)
		stage_as(t, TWISTED, PLAIN, radix, w, roots, work);
	else if (after == STEPPED)
		stage_as(t, PLAIN, STEPPED, radix, w, roots, work);
	else if (after == WEIGHTED)
		stage_as(t, PLAIN, WEIGHTED, radix, w, roots, work);
	else if (after == JOINED)
		stage_as(t, PLAIN, JOINED, radix, w, roots, work);
	else
		stage_as(t, PLAIN, PLAIN, radix, w, roots, work);
}

int64_t FXI_NAME(fxi_vfft_lanes)(void)
{
	return LANES;
}

/* What the first stage would do to its input, done by itself. */
static void bring_in(const struct pass *t, int before, int64_t n, float *out)
{
	for (int64_t i = 0; i < n; i++) {
		column v = before == TWISTED ? get(t, TWISTED, i) : get(t, STEPPED, i);

		AT(out + COLUMN * i + t->re) = v.re;
		AT(out + COLUMN * i + t->im) = v.im;
	}
}

float *FXI_NAME(fxi_vfft_run)(const fxi_vfft *plan, int inverse, const fxi_vfft_ends *ends, const float *in, float *a,
	float *b, float *work)
{
	struct pass t = {.in = in, .in_step = ends->in_step ? ends->in_step : COLUMN, .re = inverse ? LANES : 0,
		.im = inverse ? 0 : LANES, .s = 1, .m = plan->n, .half = plan->half, .weights = ends->weights,
		.weight_step = ends->weight_step, .norm = ends->norm, .add = ends->add};
	int before = ends->twist ? TWISTED : ends->in_step ? STEPPED : PLAIN;
	int after = ends->weights ? WEIGHTED : ends->add ? JOINED : ends->out ? STEPPED : PLAIN;
	float *to = a;

	if (plan->n_stages == 1 && before != PLAIN) {
		bring_in(&t, before, plan->n, b);
		t.in = b;
		before = PLAIN;
	}
	for (int i = 0; i < plan->n_stages; i++) {
		bool last = i == plan->n_stages - 1;

		t.out = last && ends->out ? ends->out : to;
		t.out_step = last && ends->out_step ? ends->out_step : COLUMN;
		t.m /= plan->stage[i].radix;
		stage(&t, i == 0 ? before : PLAIN, last ? after : PLAIN, plan->stage[i].radix,
			plan->stage[i].twiddles, plan->stage[i].roots, work);
		t.s *= plan->stage[i].radix;
		t.in = t.out;
		to = to == a ? b : a;
	}
	return t.out;
}

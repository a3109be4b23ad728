/* SPDX-License-Identifier: MIT */
/* tract_distance.c - how far two fibres run from each other. */
#include <fornix/diffusion.h>

#include <math.h>

/* Square of the distance from p to the segment from a to a + along. */
static double to_segment(const double p[3], const float *a, const float *b)
{
	double along[3], from[3], length2 = 0, dot = 0, away = 0, t;

	for (int c = 0; c < 3; c++) {
		along[c] = (double)b[c] - (double)a[c];
		from[c] = p[c] - (double)a[c];
		length2 += along[c] * along[c];
		dot += along[c] * from[c];
	}
	t = length2 > 0 ? fmax(0, fmin(dot / length2, 1)) : 0;
	for (int c = 0; c < 3; c++)
		away += (from[c] - t * along[c]) * (from[c] - t * along[c]);
	return away;
}

/* Mean over the points of a of the distance to the line b. */
static double one_way(const float *a, int64_t n_a, const float *b, int64_t n_b)
{
	double sum = 0;

	for (int64_t i = 0; i < n_a; i++) {
		double p[3] = {(double)a[3 * i], (double)a[3 * i + 1], (double)a[3 * i + 2]};
		double least = to_segment(p, b, b);

		for (int64_t j = 0; j + 1 < n_b; j++)
			least = fmin(least, to_segment(p, b + 3 * j, b + 3 * j + 3));
		sum += sqrt(least);
	}
	return sum / (double)n_a;
}

double fx_tract_distance(const float *a, int64_t n_a, const float *b, int64_t n_b)
{
	if (n_a < 1 || n_b < 1)
		return NAN;
	return (one_way(a, n_a, b, n_b) + one_way(b, n_b, a, n_a)) / 2;
}

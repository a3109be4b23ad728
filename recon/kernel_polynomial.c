/* SPDX-License-Identifier: MIT */
/*
 * kernel_polynomial.c - the spreading kernel as a polynomial for each cell that a sample touches, through the Chebyshev
 * points: what backends evaluate instead of an exponential and a root.
 */
#include <fornix/backend.h>

#include <math.h>
#include <string.h>

static double kernel_at(int width, double beta, int j, double u)
{
	/* u in [-1, 1] is the first cell's distance from the sample, -w/2 .. -w/2 + 1, on a scale of its own. */
	double x = (2 * j + 1 + u) / width - 1, inside = 1 - x * x;

	return inside > 0 ? exp(beta * (sqrt(inside) - 1)) : inside == 0 ? exp(-beta) : 0;
}

/* Power coefficients c[0..degree] of the interpolant of cell j through the Chebyshev points. */
static void fit_cell(int width, double beta, int j, int degree, double *c)
{
	int n = degree + 1;
	double cheb[FX_FINE_DEGREE + 1], value[FX_FINE_DEGREE + 1], previous[FX_FINE_DEGREE + 1] = {1}, current[FX_FINE_DEGREE + 1] = {0, 1};

	for (int q = 0; q < n; q++)
		value[q] = kernel_at(width, beta, j, cos(acos(-1) * (q + 0.5) / n));
	for (int i = 0; i < n; i++) {
		cheb[i] = 0;
		for (int q = 0; q < n; q++) {
			double angle = acos(-1) * (q + 0.5) / n;

			cheb[i] += (i ? 2.0 : 1.0) / n * value[q] * cos(i * angle);
		}
	}
	for (int i = 0; i < n; i++)
		c[i] = 0;
	/* T_0 and T_1, then T_i+1 = 2 u T_i - T_i-1. */
	for (int i = 0; i < n; i++) {
		double next[FX_FINE_DEGREE + 1];

		for (int d = 0; d < n; d++)
			c[d] += cheb[i] * previous[d];
		for (int d = 0; d < n; d++)
			next[d] = (d ? 2 * current[d - 1] : 0) - previous[d];
		memcpy(previous, current, sizeof previous);
		memcpy(current, next, sizeof next);
	}
}

/* All cells at one degree; returns the largest error found. Gives up at one above `enough`: a higher degree is tried then. */
static double fit(int width, double beta, int degree, double enough, int columns, double *coefficients)
{
	double worst = 0;

	for (int j = 0; j < width && worst <= enough; j++) {
		double c[FX_FINE_DEGREE + 1];

		fit_cell(width, beta, j, degree, c);
		for (int d = 0; d <= degree; d++)
			coefficients[(degree - d) * columns + j] = c[d];
		for (int i = 0; i <= 64 && worst <= enough; i++) {
			double u = -1 + i / 32.0, value = c[degree];

			for (int d = degree - 1; d >= 0; d--)
				value = value * u + c[d];
			worst = fmax(worst, fabs(value - kernel_at(width, beta, j, u)));
		}
	}
	return worst;
}

int fx_fine_kernel_polynomial(int width, double beta, double wanted, int columns, double *c)
{
	int degree = 4;

	while (fit(width, beta, degree, degree < FX_FINE_DEGREE ? wanted : INFINITY, columns, c) > wanted && degree < FX_FINE_DEGREE)
		degree++;
	return degree;
}

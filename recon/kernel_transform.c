/* SPDX-License-Identifier: MIT */
/*
 * kernel_transform.c - the Fourier transform of the spreading kernel, which has no closed form. The integrand is smooth but
 * for square-root ends, where the kernel itself is e^-beta; the substitution x = sin(t) takes those away too.
 */
#include <fornix/backend.h>

#include <math.h>
#include <pthread.h>

#define NODES 100

/* Gauss-Legendre nodes on (0, pi/2), made once: Newton on the Legendre recurrence (Abramowitz & Stegun 25.4.29). */
static double place[NODES], weight[NODES];

static void make_nodes(void)
{
	const double pi = acos(-1);

	for (int i = 0; i < NODES; i++) {
		double x = cos(pi * (i + 0.75) / (NODES + 0.5)), slope = 1;

		for (int step = 0; step < 100; step++) {
			double p = 1, before = 0, move;

			for (int k = 1; k <= NODES; k++) {
				double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;

				before = p;
				p = next;
			}
			slope = NODES * (x * p - before) / (x * x - 1);
			move = p / slope;
			x -= move;
			if (fabs(move) < 1e-16)
				break;
		}
		place[i] = pi / 4 * (1 + x);
		weight[i] = pi / 4 * 2 / ((1 - x * x) * slope * slope);
	}
}

void fx_fine_kernel_transform(int width, double beta, int64_t n, const double *frequency, double *out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	double value[NODES], turn[NODES];

	pthread_once(&once, make_nodes);
	/* Integral over |x| <= width/2 of the kernel times cos(2 pi f x), with x = width/2 sin(t). */
	for (int q = 0; q < NODES; q++) {
		value[q] = width * weight[q] * cos(place[q]) * exp(beta * (cos(place[q]) - 1));
		turn[q] = acos(-1) * width * sin(place[q]);
	}
	for (int64_t i = 0; i < n; i++) {
		out[i] = 0;
		for (int q = 0; q < NODES; q++)
			out[i] += value[q] * cos(turn[q] * frequency[i]);
	}
}

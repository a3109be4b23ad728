/* SPDX-License-Identifier: MIT */
/* cluster.c - groups around leaders, and the coarser lines that fibres are compared by. */
#include "diffusion/cluster.h"

#include <math.h>

void fxi_cluster_leaders(int64_t n, fxi_distance_fn between, const void *arg, double threshold, int64_t *leader, double *distance)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t nearest = i;
		double least = 0;

		for (int64_t j = 0; j < i; j++) {
			double d;

			if (leader[j] != j)
				continue;
			d = between(arg, i, j);
			if (d <= threshold && (nearest == i || d < least)) {
				nearest = j;
				least = d;
			}
		}
		leader[i] = nearest;
		if (distance)
			distance[i] = least;
	}
}

static double step_length(const float *p)
{
	double x = (double)p[3] - p[0], y = (double)p[4] - p[1], z = (double)p[5] - p[2];

	return sqrt(x * x + y * y + z * z);
}

int64_t fxi_line_resample(const float *points, int64_t n, double spacing, int64_t most, float *out)
{
	double length = 0, before = 0, here = 0;
	int64_t wanted, step = 0;

	for (int64_t i = 0; i + 1 < n; i++)
		length += step_length(points + 3 * i);
	if (n < 1 || most < 2)
		return 0;
	wanted = 1 + (int64_t)fmin(ceil(length / spacing), (double)(most - 1));
	if (n == 1 || !(length > 0)) {
		for (int c = 0; c < 3; c++)
			out[c] = points[c];
		return 1;
	}
	here = step_length(points);
	for (int64_t k = 0; k < wanted; k++) {
		double at = length * (double)k / (double)(wanted - 1), part;

		while (before + here < at && step + 2 < n) {
			before += here;
			step++;
			here = step_length(points + 3 * step);
		}
		part = here > 0 ? fmin((at - before) / here, 1) : 0;
		for (int c = 0; c < 3; c++)
			out[3 * k + c] = (float)(points[3 * step + c] + part * ((double)points[3 * step + 3 + c] - points[3 * step + c]));
	}
	return wanted;
}

/* SPDX-License-Identifier: MIT */
/*
 * fine_grid.c - from a tolerance to an oversampled grid and a spreading kernel.
 *
 * The kernel's error is known: position n of the image receives, beside its own kernel transform, those of the aliases n + m f.
 * Their ratio is integrated over the image, so what is promised does not rest on a rule of thumb. Many pairs of oversampling and
 * width meet a tolerance; a small cost model picks one. With MRI's few samples a voxel the FFT and the memory of the fine
 * grid dominate in 3-D, so little oversampling with a wider kernel usually wins.
 */
#include "fourier.h"

#include <float.h>
#include <math.h>

#define MIN_WIDTH 3
#define MAX_WIDTH 16
/** Image positions, from the centre to the edge, that the error is taken at. */
#define POSITIONS 24

/* beta as a fraction of pi w (1 - 1/(2 sigma)): the least error by a scan over widths 3..16 and sigma 1.25..2. */
static double best_beta(int width, double sigma)
{
	return (1 - 1.2 / (width * width)) * acos(-1) * width * (1 - 0.5 / sigma);
}

/*
 * Mean square of the aliases along one axis, and how much rounding on the fine grid is amplified by the division. Aliases
 * beyond the nearest two add a few per cent.
 */
static double axis_error2(int width, double beta, int64_t n, int64_t fine, double *amplification)
{
	/* The sum over positions as an integral: a position is one wide, and even lengths have one at -n/2. */
	double edge = (double)(n - n % 2 + 1) / (2 * (double)fine), error = 0, power = 0, inverse = 0;
	double at[3 * POSITIONS], value[3 * POSITIONS];

	for (int i = 0; i < POSITIONS; i++)
		for (int alias = -1; alias <= 1; alias++)
			at[3 * i + alias + 1] = (1 - pow(1 - (i + 0.5) / POSITIONS, 2)) * edge + alias;
	fx_fine_kernel_transform(width, beta, 3 * POSITIONS, at, value);
	for (int i = 0; i < POSITIONS; i++) {
		/* Positions crowd at the edge, where the ratio is steepest: d(1 - (1 - s)^2) = 2 (1 - s) ds. */
		double own = value[3 * i + 1] * value[3 * i + 1], w = 2 * (1 - (i + 0.5) / POSITIONS) / POSITIONS;

		error += w * (value[3 * i] * value[3 * i] + value[3 * i + 2] * value[3 * i + 2]) / own;
		power += w * own;
		inverse += w / own;
	}
	*amplification = sqrt(power * inverse);
	return error;
}

double fxi_fine_grid_error(const fx_fine_grid *g)
{
	double error = 0, amplification = 1, rounding = g->type == FX_CF32 ? FLT_EPSILON : DBL_EPSILON;
	double axis[3] = {0}, factor[3] = {1, 1, 1};

	for (int a = 0; a < 3; a++) {
		int same = 0;

		while (same < a && (g->dims[same] != g->dims[a] || g->fine[same] != g->fine[a]))
			same++;
		if (same < a) {
			axis[a] = axis[same];
			factor[a] = factor[same];
		} else if (g->dims[a] > 1) {
			axis[a] = axis_error2(g->width, g->beta, g->dims[a], g->fine[a], &factor[a]);
		}
		error += axis[a];
		amplification *= factor[a];
	}
	return sqrt(error + pow(rounding * amplification, 2));
}

/*
 * Nanoseconds an element of a transform of length n, in memory and out of it, 0 where n is odd or has a prime factor above 7
 * (measured on one core of a Xeon of 2023).
 */
static double line_cost(int64_t n)
{
	int64_t rest = n;

	if (n % 2)
		return 0;
	for (int p = 2; p <= 7; p++)
		while (rest % p == 0)
			rest /= p;
	if (rest != 1)
		return 0;
	return n % 16 == 0 ? 2.5 : n % 8 == 0 ? 2.7 : 2.9;
}

/* The cheapest good length from `least` on; the next power of two is one, so the search ends. */
static int64_t good_length(int64_t least)
{
	int64_t best = 0;
	double cost = INFINITY;

	for (int64_t n = least; best == 0 || n <= least + least / 8; n++) {
		double c = line_cost(n) * (double)n;

		if (line_cost(n) > 0 && c < cost) {
			cost = c;
			best = n;
		}
	}
	return best;
}

/* Expected nanoseconds of one transform of one coil: fine grid cleared, FFT passes, spreading. */
static double grid_cost(const fx_fine_grid *g)
{
	double cells = 1, voxels = 1, rows = 1, cost, samples;
	int n_axes = 0;

	for (int a = 0; a < 3; a++) {
		cells *= (double)g->fine[a];
		voxels *= (double)g->dims[a];
		n_axes += g->dims[a] > 1;
		if (g->dims[a] > 1 && n_axes > 1)
			rows *= g->width;
	}
	/* Near Nyquist in 2-D, undersampled in 3-D; Q's grid has twice the matrix for the same samples. */
	samples = voxels * (n_axes == 3 ? 0.25 : 1) / (g->real ? pow(2, n_axes) : 1);
	/* Clearing takes 1.4 ns a cell; the rest is the price of the memory. */
	cost = 3 * cells;
	for (int a = 0; a < 3; a++)
		if (g->dims[a] > 1) {
			cost += cells * line_cost(g->fine[a]);
			cells *= (double)g->dims[a] / (double)g->fine[a];
		}
	/* A row of a footprint takes 3 ns, mostly the cache's; a sample without its rows 120. */
	return cost * (g->real ? 0.5 : 1) + samples * (120 + 3.2 * rows);
}

/* The narrowest kernel for this oversampling, or false. Fills fine, width and beta. */
static bool narrowest(fx_fine_grid *g, double sigma, double tolerance)
{
	/* No kernel of w cells does better than about exp(-pi w sqrt(1 - 1/sigma)): narrower ones need not be tried. */
	int first = (int)(log(1 / tolerance) / (acos(-1) * sqrt(1 - 1 / fmin(2 * sigma, 4)))) - 1;

	for (g->width = first > MIN_WIDTH ? first : MIN_WIDTH; g->width <= MAX_WIDTH; g->width++) {
		double least = INFINITY;

		for (int a = 0; a < 3; a++) {
			int64_t n = (int64_t)ceil(sigma * (double)g->dims[a]);

			g->fine[a] = 1;
			if (g->dims[a] == 1)
				continue;
			n = n > g->dims[a] + 2 ? n : g->dims[a] + 2;
			g->fine[a] = good_length(n > 2 * g->width ? n : 2 * g->width);
			least = fmin(least, (double)g->fine[a] / (double)g->dims[a]);
		}
		g->beta = best_beta(g->width, least < 4 ? least : 4);
		if (fxi_fine_grid_error(g) <= tolerance)
			return true;
	}
	return false;
}

int fxi_fine_grid_choose(fx_math *m, const fx_fourier_spec *spec, fx_fine_grid *g)
{
	static const double sigmas[] = {1.25, 1.375, 1.5, 1.625, 1.75, 2};
	/* The estimate is a mean over all data; this leaves room for few samples, or samples that agree in phase. */
	const double margin = 0.6;
	double cost = INFINITY;

	for (size_t i = 0; i < sizeof sigmas / sizeof sigmas[0]; i++) {
		fx_fine_grid candidate = {.type = spec->type, .real = spec->real_samples};

		for (int a = 0; a < 3; a++)
			candidate.dims[a] = spec->dims[a];
		if (narrowest(&candidate, sigmas[i], margin * spec->tolerance) && grid_cost(&candidate) < cost) {
			cost = grid_cost(&candidate);
			*g = candidate;
		}
	}
	if (!(cost < INFINITY))
		return fx_math_fail(m, FX_EINVAL, "no NUFFT of %s reaches a tolerance of %g; single precision goes to 1e-5, double to 1e-9, "
			"and method=direct is exact", fx_type_name(spec->type), spec->tolerance);
	return FX_OK;
}

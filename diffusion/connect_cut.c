/* SPDX-License-Identifier: MIT */
/* connect_cut.c - a fibre cut to a connection: ends between its points, lengths of what is left. */
#include "diffusion/cluster.h"
#include "diffusion/connect.h"

#include <math.h>

#define LINE_POINTS 64 /* most points of the coarser line: families differ by millimetres, over centimetres */

void fxi_connection_free(struct fxi_connection *k)
{
	if (!k)
		return;
	fx_free(k->points);
	fx_free(k->lengths);
	fx_free(k->line);
	fx_free(k);
}

bool fxi_connection_before(const struct fxi_connection *a, const struct fxi_connection *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	return a->seed != b->seed ? a->seed < b->seed : a->fibre < b->fibre;
}

/* Component c of {width, n} at a position. */
static float at_position(const float *values, int64_t width, int64_t c, int64_t n, double position)
{
	int64_t low = (int64_t)fmin(floor(position), (double)(n - 1));
	double part = position - (double)low;

	if (part <= 0 || low + 1 >= n)
		return values[width * low + c];
	return (float)((1 - part) * (double)values[width * low + c] + part * (double)values[width * (low + 1) + c]);
}

/* Fills points and lengths of the span in fibre order, then turned round where it is reversed. */
static void copy_span(const struct fxi_fibre *f, const struct fxi_span *span, struct fxi_connection *k)
{
	int64_t first = (int64_t)floor(span->from) + 1; /* vertices strictly inside lie at first, first + 1, ... */
	double start = f->riemann ? (double)at_position(f->riemann, 1, 0, f->n, span->from) : 0;
	double end = f->riemann ? (double)at_position(f->riemann, 1, 0, f->n, span->to) : 0;

	for (int64_t i = 0; i < k->n_points; i++) {
		double position = i == 0 ? span->from : i == k->n_points - 1 ? span->to : (double)(first + i - 1);
		int64_t to = span->reversed ? k->n_points - 1 - i : i;

		for (int c = 0; c < 3; c++)
			k->points[3 * to + c] = at_position(f->points, 3, c, f->n, position);
		if (k->lengths) {
			double r = (double)at_position(f->riemann, 1, 0, f->n, position);

			k->lengths[to] = (float)(span->reversed ? end - r : r - start);
		}
	}
}

static double polyline_length(const float *p, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i + 1 < n; i++) {
		double x = (double)p[3 * i + 3] - p[3 * i], y = (double)p[3 * i + 4] - p[3 * i + 1];
		double z = (double)p[3 * i + 5] - p[3 * i + 2];

		sum += sqrt(x * x + y * y + z * z);
	}
	return sum;
}

static int make_line(const struct fx_connect *c, struct fxi_connection *k)
{
	k->line = fx_alloc(LINE_POINTS, 3 * sizeof *k->line);
	if (!k->line)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for the coarser line of a fibre");
	/* a quarter of what tells families apart: closest points then lie at most an eighth of it off */
	k->n_line = fxi_line_resample(k->points, k->n_points, c->cluster_mm / 4, LINE_POINTS, k->line);
	return FX_OK;
}

int fxi_connection_cut(const struct fx_connect *c, const struct fxi_fibre *f, const struct fxi_span *span,
	struct fxi_connection **out)
{
	struct fxi_connection *k = fx_alloc(1, sizeof *k);
	int64_t inside = (int64_t)ceil(span->to) - (int64_t)floor(span->from) - 1;
	int status = FX_OK;

	*out = NULL;
	if (!k)
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for a connection");
	k->n_points = inside + 2;
	k->points = fx_alloc(k->n_points, 3 * sizeof *k->points);
	k->lengths = f->riemann ? fx_alloc(k->n_points, sizeof *k->lengths) : NULL;
	if (!k->points || (f->riemann && !k->lengths)) {
		fxi_connection_free(k);
		return fx_error_set(c->m->err, FX_ENOMEM, "no memory for a connection of %lld points", (long long)inside + 2);
	}
	copy_span(f, span, k);
	k->fibre = f->number;
	k->seed = f->seed;
	k->family = -1;
	k->jacobi = k->riemann = k->measure = NAN;
	k->others_worst = INFINITY;
	for (int i = 0; i < f->n_values; i++)
		k->values[i] = f->values[i];
	k->length_mm = polyline_length(k->points, k->n_points);
	k->score = -k->length_mm;
	if (k->lengths) {
		k->riemann = (double)k->lengths[k->n_points - 1];
		k->score = k->measure = k->length_mm / k->riemann;
	}
	if (k->length_mm > 0 && isfinite(k->score))
		status = make_line(c, k);
	if (status != FX_OK || !(k->length_mm > 0) || !isfinite(k->score))
		fxi_connection_free(k);
	else
		*out = k;
	return status;
}

/* SPDX-License-Identifier: MIT */
/*
 * tract_distance.c - the mean closest-point distance of two polylines: from each vertex of one to the nearest point of the other
 * line, not only its vertices, so that it does not depend on how densely the other was sampled; the mean of both ways.
 *
 * The nearest fibre of a set is found by trying a likely one first and giving up every other as soon as its sum so far cannot win.
 * A fibre's mean point has a distance to the other's bounding box that bounds the distance from below, since distance to a
 * convex body is a convex function; most candidates fall there.
 */
#include "tract_distance.h"

#include <fornix/backend.h>
#include <fornix/diffusion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 5 /* points that a first guess is made by */

/* Squared distance from a point to a polyline of at least one vertex. */
static double to_line2(const float *p, const float *line, int64_t n)
{
	double best = (double)INFINITY;
	const double x = (double)p[0], y = (double)p[1], z = (double)p[2];

	if (n == 1) {
		double dx = x - (double)line[0], dy = y - (double)line[1], dz = z - (double)line[2];

		return dx * dx + dy * dy + dz * dz;
	}
	for (int64_t i = 0; i + 1 < n; i++) {
		const float *a = line + 3 * i;
		double ux = (double)a[3] - (double)a[0], uy = (double)a[4] - (double)a[1], uz = (double)a[5] - (double)a[2];
		double dx = x - (double)a[0], dy = y - (double)a[1], dz = z - (double)a[2];
		double along = ux * dx + uy * dy + uz * dz, length2 = ux * ux + uy * uy + uz * uz, t, d2;

		t = along <= 0 ? 0 : along >= length2 ? 1 : along / length2;
		dx -= t * ux;
		dy -= t * uy;
		dz -= t * uz;
		d2 = dx * dx + dy * dy + dz * dz;
		best = d2 < best ? d2 : best;
	}
	/* The last segment's end: t * u rounds, and a line must have distance 0 from itself. */
	{
		const float *e = line + 3 * (n - 1);
		double dx = x - (double)e[0], dy = y - (double)e[1], dz = z - (double)e[2], d2 = dx * dx + dy * dy + dz * dz;

		return d2 < best ? d2 : best;
	}
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	return b ? common_divisor(b, a % b) : a;
}

/* A stride that visits all of n, and any few of them spread over the line. */
static int64_t stride_of(int64_t n)
{
	int64_t stride = (int64_t)(0.6180339887 * (double)n);

	for (stride = stride < 1 ? 1 : stride; common_divisor(stride, n) != 1; stride++)
		;
	return stride;
}

/* Adds the mean of one way to *sum; false as soon as that is sure to pass the limit. */
static bool one_way(const float *a, int64_t n_a, const float *b, int64_t n_b, double limit, double *sum)
{
	double before = *sum, total = 0;
	int64_t stride = stride_of(n_a), at = 0;

	for (int64_t i = 0; i < n_a; i++, at = (at + stride) % n_a) {
		total += sqrt(to_line2(a + 3 * at, b, n_b));
		if (before + total / (double)n_a > limit)
			return false;
	}
	*sum = before + total / (double)n_a;
	return true;
}

/* The distance, or infinity where it is beyond the limit. */
static double distance_within(const float *a, int64_t n_a, const float *b, int64_t n_b, double limit)
{
	double sum = 0;

	if (!one_way(a, n_a, b, n_b, 2 * limit, &sum) || !one_way(b, n_b, a, n_a, 2 * limit, &sum))
		return (double)INFINITY;
	return sum / 2;
}

double fx_tract_distance(const float *a, int64_t n_a, const float *b, int64_t n_b)
{
	return n_a > 0 && n_b > 0 ? distance_within(a, n_a, b, n_b, (double)INFINITY) : (double)NAN;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static bool grow(void **memory, int64_t *room, int64_t used, int64_t needed, size_t size)
{
	int64_t more = *room > 0 ? *room : 1024;
	void *grown;

	if (needed <= *room)
		return true;
	while (more < needed)
		more *= 2;
	grown = fx_alloc(more, size);
	if (!grown)
		return false;
	if (*memory)
		memcpy(grown, *memory, (size_t)used * size);
	fx_free(*memory);
	*memory = grown;
	*room = more;
	return true;
}

int fxi_tract_set_add(fxi_tract_set *s, const float *points, int64_t n, fx_error *err)
{
	void *offsets = s->offsets, *kept = s->points;
	bool ok = grow(&offsets, &s->room, s->offsets ? s->n + 1 : 0, s->n + 2, sizeof *s->offsets);

	s->offsets = offsets;
	ok = ok && grow(&kept, &s->room_points, s->n_points, s->n_points + n, 3 * sizeof *s->points);
	s->points = kept;
	if (!ok)
		return fx_error_set(err, FX_ENOMEM, "no memory for %lld fibres of %lld points", (long long)s->n + 1, (long long)(s->n_points + n));
	if (n > 0)
		memcpy(s->points + 3 * s->n_points, points, (size_t)n * 3 * sizeof *points);
	s->n_points += n;
	s->n++;
	s->offsets[s->n] = s->n_points;
	return FX_OK;
}

void fxi_tract_set_clear(fxi_tract_set *s)
{
	s->n = s->n_points = 0;
}

void fxi_tract_set_free(fxi_tract_set *s)
{
	fx_free(s->offsets);
	fx_free(s->points);
	*s = (fxi_tract_set){0};
}

struct shape {
	double low[3], high[3], mean[3];
	float keys[KEYS][3];
	int64_t n;
};

struct search {
	const fxi_tract_set *a, *b;
	struct shape *shapes_a, *shapes_b;
	double *nearest;
};

static void find_shapes(const fxi_tract_set *s, struct shape *shapes)
{
	for (int64_t i = 0; i < s->n; i++) {
		const float *p = s->points + 3 * s->offsets[i];
		struct shape *shape = &shapes[i];

		shape->n = s->offsets[i + 1] - s->offsets[i];
		for (int a = 0; a < 3 && shape->n > 0; a++) {
			double sum = 0;

			shape->low[a] = shape->high[a] = (double)p[a];
			for (int64_t k = 0; k < shape->n; k++) {
				sum += (double)p[3 * k + a];
				shape->low[a] = fmin(shape->low[a], (double)p[3 * k + a]);
				shape->high[a] = fmax(shape->high[a], (double)p[3 * k + a]);
			}
			shape->mean[a] = sum / (double)shape->n;
			for (int k = 0; k < KEYS; k++)
				shape->keys[k][a] = p[3 * (k * (shape->n - 1) / (KEYS - 1)) + a];
		}
	}
}

static double to_box(const double p[3], const struct shape *box)
{
	double d2 = 0;

	for (int a = 0; a < 3; a++) {
		double d = fmax(0, fmax(box->low[a] - p[a], p[a] - box->high[a]));

		d2 += d * d;
	}
	return sqrt(d2);
}

/* How unlike two fibres are at a glance, whichever end comes first. */
static float unlike(const struct shape *a, const struct shape *b)
{
	float same = 0, other = 0;

	for (int k = 0; k < KEYS; k++)
		for (int i = 0; i < 3; i++) {
			float d = a->keys[k][i] - b->keys[k][i], e = a->keys[k][i] - b->keys[KEYS - 1 - k][i];

			same += d * d;
			other += e * e;
		}
	return same < other ? same : other;
}

static void try_one(const struct search *s, int64_t i, int64_t j)
{
	double d = distance_within(s->a->points + 3 * s->a->offsets[i], s->shapes_a[i].n, s->b->points + 3 * s->b->offsets[j],
		s->shapes_b[j].n, s->nearest[i]);

	s->nearest[i] = d < s->nearest[i] ? d : s->nearest[i];
}

static void search_one(void *arg, int64_t i)
{
	const struct search *s = arg;
	const struct shape *mine = &s->shapes_a[i];
	float least = INFINITY;
	int64_t likely = -1;

	if (mine->n == 0)
		return;
	for (int64_t j = 0; j < s->b->n; j++) {
		float u = s->shapes_b[j].n > 0 ? unlike(mine, &s->shapes_b[j]) : INFINITY;

		if (u < least) {
			least = u;
			likely = j;
		}
	}
	if (likely >= 0)
		try_one(s, i, likely);
	for (int64_t j = 0; j < s->b->n; j++) {
		const struct shape *theirs = &s->shapes_b[j];

		if (theirs->n > 0 && j != likely && (to_box(mine->mean, theirs) + to_box(theirs->mean, mine)) / 2 < s->nearest[i])
			try_one(s, i, j);
	}
}

int fxi_tract_nearest(const fxi_tract_set *a, const fxi_tract_set *b, int n_threads, double *nearest, fx_error *err)
{
	struct search s = {.a = a, .b = b, .nearest = nearest};
	int status = FX_OK;

	s.shapes_a = fx_alloc(a->n + 1, sizeof *s.shapes_a);
	s.shapes_b = fx_alloc(b->n + 1, sizeof *s.shapes_b);
	if (s.shapes_a && s.shapes_b) {
		find_shapes(a, s.shapes_a);
		find_shapes(b, s.shapes_b);
		fx_parallel(n_threads, a->n, search_one, &s);
	} else {
		status = fx_error_set(err, FX_ENOMEM, "no memory to compare %lld fibres with %lld", (long long)a->n, (long long)b->n);
	}
	fx_free(s.shapes_a);
	fx_free(s.shapes_b);
	return status;
}

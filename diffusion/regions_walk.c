/* SPDX-License-Identifier: MIT */
/* regions_walk.c - a fibre through a label image, voxel face by voxel face (Amanatides and Woo, Eurographics 1987). */
#include "diffusion/regions.h"

#include <math.h>
#include <string.h>

/* No image reaches this many voxels from its origin: what is beyond is as good as there, and no step takes for ever. */
#define FAR 1e6

int fxi_visits_push(struct fxi_visits *v, double from, double to, int32_t region, fx_error *err)
{
	if (v->n == v->capacity) {
		int64_t more = v->capacity > 0 ? 2 * v->capacity : 16;
		struct fxi_visit *list = fx_alloc(more, sizeof *list);

		if (!list)
			return fx_error_set(err, FX_ENOMEM, "no memory for a fibre's %lld visits to regions", (long long)more);
		if (v->n > 0)
			memcpy(list, v->list, (size_t)v->n * sizeof *list);
		fx_free(v->list);
		v->list = list;
		v->capacity = more;
	}
	v->list[v->n++] = (struct fxi_visit){from, to, region};
	return FX_OK;
}

void fxi_visits_free(struct fxi_visits *v)
{
	fx_free(v->list);
	*v = (struct fxi_visits){0};
}

static int32_t region_of(const fx_regions *r, const int64_t cell[3])
{
	for (int i = 0; i < 3; i++)
		if (cell[i] < 0 || cell[i] >= r->lattice.dims[i])
			return 0;
	return r->region[cell[0] + r->lattice.dims[0] * (cell[1] + r->lattice.dims[1] * cell[2])];
}

/* Index coordinates and nearest voxel of a point. */
static void locate(const fx_regions *r, const float *point, double x[3], int64_t cell[3])
{
	fx_affine_apply(r->to_index, (const double[]){point[0], point[1], point[2]}, x);
	for (int i = 0; i < 3; i++) {
		x[i] = fmax(-FAR, fmin(x[i], FAR));
		cell[i] = (int64_t)floor(x[i] + 0.5);
	}
}

struct walk {
	const fx_regions *r;
	struct fxi_visits *out;
	fx_error *err;
	int32_t now;             /* region that the walk is in */
	double since;            /* position at which it came there */
};

static int change(struct walk *w, double position, int32_t region)
{
	int status = FX_OK;

	if (region == w->now)
		return FX_OK;
	if (w->now > 0 && position > w->since)
		status = fxi_visits_push(w->out, w->since, position, w->now, w->err);
	w->now = region;
	w->since = position;
	return status;
}

/* Where the segment p q meets the face that it leaves `cell` by along an axis, as a fraction. */
static double face(const double p[3], const double q[3], const int64_t cell[3], const int64_t last[3], int axis)
{
	double t;

	if (cell[axis] == last[axis])
		return INFINITY;
	t = ((double)cell[axis] + (last[axis] > cell[axis] ? 0.5 : -0.5) - p[axis]) / (q[axis] - p[axis]);
	return fmax(0, fmin(t, 1));
}

static int follow(struct walk *w, int64_t i, const double p[3], const double q[3], int64_t cell[3], const int64_t last[3])
{
	int status = FX_OK;

	while (status == FX_OK) {
		int axis = -1;
		double t = INFINITY;

		for (int k = 0; k < 3; k++) {
			double there = face(p, q, cell, last, k);

			if (there < t) {
				t = there;
				axis = k;
			}
		}
		if (axis < 0)
			return FX_OK;
		cell[axis] += last[axis] > cell[axis] ? 1 : -1;
		status = change(w, (double)i + t, region_of(w->r, cell));
	}
	return status;
}

/* True where no voxel between the two cells is inside the image: nothing to follow, and steps may be huge. */
static bool beyond(const fx_regions *r, const int64_t a[3], const int64_t b[3])
{
	for (int k = 0; k < 3; k++)
		if ((a[k] < 0 && b[k] < 0) || (a[k] >= r->lattice.dims[k] && b[k] >= r->lattice.dims[k]))
			return true;
	return false;
}

int fxi_regions_visits(const fx_regions *r, const float *points, int64_t n, struct fxi_visits *out, fx_error *err)
{
	struct walk w = {.r = r, .out = out, .err = err};
	double p[3], q[3];
	int64_t cell[3], next[3];
	int status = FX_OK;

	out->n = 0;
	if (n <= 0)
		return FX_OK;
	locate(r, points, p, cell);
	w.now = region_of(r, cell);
	for (int64_t i = 1; i < n && status == FX_OK; i++) {
		locate(r, points + 3 * i, q, next);
		if (memcmp(cell, next, sizeof cell) != 0) {
			if (!beyond(r, cell, next))
				status = follow(&w, i - 1, p, q, cell, next);
			memcpy(cell, next, sizeof cell);
		}
		memcpy(p, q, sizeof p);
	}
	if (status == FX_OK && w.now > 0) /* the last one may be of no length: the fibre ends on the face */
		status = fxi_visits_push(out, w.since, (double)(n - 1), w.now, err);
	return status;
}

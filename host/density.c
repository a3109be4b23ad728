/* SPDX-License-Identifier: MIT */
/*
 * density.c - the iterations of density weights (backend.h, density_iterate). Sums are taken over neighbours, not over a grid: the
 * kernel is exact, and no two threads write to one place.
 */
#include "host.h"

#include <math.h>

#define POINTS_A_PIECE 1024
#define LANES 8
/* 5 x 5 x 5 cells of 27 points, and a last vector; fewer along fewer axes. */
#define MAX_AROUND (125 * 27 + LANES)

struct job {
	const fx_density_cells *c;
	float *weights;        /* {points}: of all samples of the point together */
	float *sums;           /* {points}: weights convolved with the kernel */
	float *aims;           /* {points}: what they should be */
	float *nodes;          /* {cells}: the weights' cubic B-spline sums in the cells' centres */
	float *covered;        /* {cells}: the same of covered volume */
};

static inline float above_0(float x)
{
	return x > 0 ? x : 0;
}

/* Quadratic B-spline: half-width 1.5; (3/2 - |x|)^2 / 2 - 3 (1/2 - |x|)^2 / 2, where the brackets are above 0. */
static inline float spline2(float x)
{
	float a = fabsf(x), outer = above_0(1.5f - a), inner = above_0(0.5f - a);

	return 0.5f * outer * outer - 1.5f * inner * inner;
}

/* The cells that a kernel of that half-width around x reaches along an axis. */
static void reach(const fx_density_cells *c, int axis, float x, float half_width, int64_t *from, int64_t *to)
{
	*from = c->encoded[axis] ? (int64_t)(x - half_width) : 0;
	*to = c->encoded[axis] ? (int64_t)(x + half_width) : 0;
}

/* Along an axis that is not encoded all lie in one place, where the kernel must count 1. */
static float not_encoded(const fx_density_cells *c)
{
	float factor = 1;

	for (int axis = 0; axis < 3; axis++)
		factor /= c->encoded[axis] ? 1 : spline2(0);
	return factor;
}

/* Points around a cell, side by side, filled up with weights of 0 to whole vectors. */
struct around {
	int64_t n;
	_Alignas(64) float x[MAX_AROUND], y[MAX_AROUND], z[MAX_AROUND], w[MAX_AROUND];
};

/* All points that the kernel reaches from any point of a cell; false where the cell is empty. */
static bool gather(const struct job *j, int64_t cell, struct around *a)
{
	const fx_density_cells *c = j->c;
	int64_t from[3], to[3];

	a->n = 0;
	if (c->first[cell] == c->first[cell + 1])
		return false;
	for (int axis = 0; axis < 3; axis++) {
		float low = INFINITY, high = 0;

		for (int64_t p = c->first[cell]; p < c->first[cell + 1]; p++) {
			low = fminf(low, c->position[axis][p]);
			high = fmaxf(high, c->position[axis][p]);
		}
		from[axis] = c->encoded[axis] ? (int64_t)(low - 1.5f) : 0;
		to[axis] = c->encoded[axis] ? (int64_t)(high + 1.5f) : 0;
	}
	for (int64_t z = from[2]; z <= to[2]; z++)
		for (int64_t y = from[1]; y <= to[1]; y++) {
			int64_t row = (z * c->n_cells[1] + y) * c->n_cells[0];

			for (int64_t p = c->first[row + from[0]]; p < c->first[row + to[0] + 1]; p++, a->n++) {
				a->x[a->n] = c->position[0][p];
				a->y[a->n] = c->position[1][p];
				a->z[a->n] = c->position[2][p];
				a->w[a->n] = j->weights[p];
			}
		}
	for (; a->n % LANES != 0; a->n++)
		a->x[a->n] = a->y[a->n] = a->z[a->n] = a->w[a->n] = 0;
	return true;
}

/* One line of cells along x. */
static void convolve(void *arg, int64_t line)
{
	struct job *j = arg;
	const fx_density_cells *c = j->c;
	float others = not_encoded(c);
	struct around a;

	for (int64_t cell = line * c->n_cells[0]; cell < (line + 1) * c->n_cells[0]; cell++) {
		if (!gather(j, cell, &a))
			continue;
		for (int64_t p = c->first[cell]; p < c->first[cell + 1]; p++) {
			float x = c->position[0][p], y = c->position[1][p], z = c->position[2][p], sum[LANES] = {0}, all = 0;

			for (int64_t i = 0; i < a.n; i += LANES)
#pragma omp simd
				for (int64_t l = 0; l < LANES; l++)
					sum[l] += a.w[i + l] * spline2(a.x[i + l] - x) * spline2(a.y[i + l] - y) * spline2(a.z[i + l] - z);
			for (int l = 0; l < LANES; l++)
				all += sum[l];
			j->sums[p] = all * others;
		}
	}
}

/* Calls body for every point of the piece. */
static void each_point(const struct job *j, int64_t piece, void (*body)(const struct job *, int64_t point, const float u[3]))
{
	int64_t end = (piece + 1) * POINTS_A_PIECE < j->c->n_points ? (piece + 1) * POINTS_A_PIECE : j->c->n_points;

	for (int64_t p = piece * POINTS_A_PIECE; p < end; p++)
		body(j, p, (float[]){j->c->position[0][p], j->c->position[1][p], j->c->position[2][p]});
}

/* The kernel's mass within the covered cells, each a point in its centre: what a Cartesian grid there would sum to. */
static void aim_at_point(const struct job *j, int64_t p, const float u[3])
{
	const fx_density_cells *c = j->c;
	int64_t from[3], to[3];
	float sum = 0;

	for (int axis = 0; axis < 3; axis++)
		reach(c, axis, u[axis], 1.5f, &from[axis], &to[axis]);
	for (int64_t z = from[2]; z <= to[2]; z++)
		for (int64_t y = from[1]; y <= to[1]; y++) {
			float outer = spline2((float)y + 0.5f - u[1]) * spline2((float)z + 0.5f - u[2]);

			for (int64_t x = from[0]; x <= to[0]; x++)
				if (c->covered[(z * c->n_cells[1] + y) * c->n_cells[0] + x])
					sum += outer * spline2((float)x + 0.5f - u[0]);
		}
	j->aims[p] = sum * not_encoded(c);
}

static void aim(void *arg, int64_t piece)
{
	each_point(arg, piece, aim_at_point);
}

/* ---- the last match, on a grid ---------------------------------------------------------------- */

/* The four centres around u and their cubic B-spline values; one of 1 where the axis is not encoded. */
static int stencil(const fx_density_cells *c, int axis, float u, int64_t *first, float value[4])
{
	float t, s;

	if (!c->encoded[axis]) {
		*first = 0;
		value[0] = 1;
		return 1;
	}
	*first = (int64_t)(u - 0.5f) - 1;
	t = u - 0.5f - (float)(*first + 1);
	s = 1 - t;
	value[0] = s * s * s / 6;
	value[1] = (4 - 6 * t * t + 3 * t * t * t) / 6;
	value[2] = (4 - 6 * s * s + 3 * s * s * s) / 6;
	value[3] = t * t * t / 6;
	return 4;
}

static void spread(const struct job *j)
{
	const fx_density_cells *c = j->c;

	for (int64_t p = 0; p < c->n_points; p++) {
		int64_t first[3];
		float v[3][4];
		int n[3];

		for (int axis = 0; axis < 3; axis++)
			n[axis] = stencil(c, axis, c->position[axis][p], &first[axis], v[axis]);
		for (int z = 0; z < n[2]; z++)
			for (int y = 0; y < n[1]; y++) {
				float *row = j->nodes + ((first[2] + z) * c->n_cells[1] + first[1] + y) * c->n_cells[0] + first[0];
				float outer = j->weights[p] * v[2][z] * v[1][y];

				for (int x = 0; x < n[0]; x++)
					row[x] += outer * v[0][x];
			}
	}
}

/* The covered volume's sums in the centres: the spline's values at -1, 0 and 1 along each axis. */
static void smooth_covered(const struct job *j)
{
	const fx_density_cells *c = j->c;
	int64_t total = c->n_cells[0] * c->n_cells[1] * c->n_cells[2], stride = 1;

	for (int64_t i = 0; i < total; i++)
		j->covered[i] = c->covered[i];
	for (int axis = 0; axis < 3; stride *= c->n_cells[axis++]) {
		int64_t n = c->n_cells[axis];

		for (int64_t start = 0; start < total; start++) {
			float *line = j->covered + start, before = 0;

			if (!c->encoded[axis] || start / stride % n != 0)
				continue;
			for (int64_t i = 0; i < n; i++) {
				float here = line[i * stride], after = i + 1 < n ? line[(i + 1) * stride] : 0;

				line[i * stride] = (before + 4 * here + after) / 6;
				before = here;
			}
		}
	}
}

static void match_point(const struct job *j, int64_t p, const float u[3])
{
	const fx_density_cells *c = j->c;
	float covered = 0, weight = 0, v[3][4];
	int64_t first[3];
	int n[3];

	for (int axis = 0; axis < 3; axis++)
		n[axis] = stencil(c, axis, u[axis], &first[axis], v[axis]);
	for (int z = 0; z < n[2]; z++)
		for (int y = 0; y < n[1]; y++) {
			int64_t row = ((first[2] + z) * c->n_cells[1] + first[1] + y) * c->n_cells[0] + first[0];

			for (int x = 0; x < n[0]; x++) {
				float f = v[2][z] * v[1][y] * v[0][x];

				covered += f * j->covered[row + x];
				weight += f * j->nodes[row + x];
			}
		}
	j->weights[p] *= covered / weight;
}

static void match(void *arg, int64_t piece)
{
	each_point(arg, piece, match_point);
}

/* ---- all of it -------------------------------------------------------------------------------- */

int fxi_host_density_iterate(fx_math *m, const fx_density_cells *c, int64_t n_iterations, float *weights)
{
	int64_t n_pieces = (c->n_points + POINTS_A_PIECE - 1) / POINTS_A_PIECE;
	int64_t total = c->n_cells[0] * c->n_cells[1] * c->n_cells[2];
	struct job j = {
		.c = c, .weights = weights,
		.sums = fx_alloc(c->n_points, sizeof(float)), .aims = fx_alloc(c->n_points, sizeof(float)),
		.nodes = fx_alloc(total, sizeof(float)), .covered = fx_alloc(total, sizeof(float)),
	};
	int status = FX_OK;

	if (!j.sums || !j.aims || !j.nodes || !j.covered)
		status = fx_math_fail(m, FX_ENOMEM, "no memory for the density weights of %lld points", (long long)c->n_points);
	if (status == FX_OK) {
		fx_parallel(m->n_threads, n_pieces, aim, &j);
		for (int64_t p = 0; p < c->n_points; p++)
			weights[p] = c->count[p];
		for (int64_t i = 0; i < n_iterations && status == FX_OK; i++) {
			fx_parallel(m->n_threads, c->n_cells[1] * c->n_cells[2], convolve, &j);
			/* a point's own weight is in its sum, so the sum is not 0 */
			for (int64_t p = 0; p < c->n_points; p++)
				weights[p] *= j.aims[p] / j.sums[p];
			status = fx_math_check(m);
		}
		smooth_covered(&j);
		spread(&j);
		fx_parallel(m->n_threads, n_pieces, match, &j);
	}
	fx_free(j.sums);
	fx_free(j.aims);
	fx_free(j.nodes);
	fx_free(j.covered);
	return status;
}


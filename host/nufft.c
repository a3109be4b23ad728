/* SPDX-License-Identifier: MIT */
/*
 * nufft.c - spreading samples onto the oversampled grid, and interpolating them from it.
 *
 * Points are sorted into tiles once. Tiles are coloured like a chessboard, 2 colours an axis: a sample touches cells of its
 * own tile and of the next along each axis only, so tiles of one colour never write to the same cell and run in parallel, without
 * atomics and without private copies of the grid. Colours follow each other, samples of a tile keep their order: every cell
 * sums in one order whatever the threads. Crowded tiles (the centre of k-space) are shared out by rows, which keeps that order.
 */
#include "nufft.h"
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Points of one interpolation task, and below which a tile is not worth sharing out. */
#define GATHER_POINTS 1024
#define CROWDED 1024
/** A crowded tile becomes at most so many tasks. */
#define MAX_PARTS 8

struct task {
	int64_t first;         /* of the sorted points */
	fxi_nufft_part part;
};

struct points {
	fxi_squeezed shape;
	fxi_nufft_grid grid;
	int type;              /* of the samples: real or complex, single or double */
	int64_t n, cells;
	void *sorted;          /* fxi_point_f32 or _f64 */
	void *coefficients;
	int64_t n_tiles[3];
	int32_t *tile[3];      /* tile of each cell along an axis */
	int64_t n_tasks;
	struct task *tasks;    /* by colour */
	int64_t colour_end[8];
};

/* First cell of the sample's footprint, and u. k is folded in double; this is where positions are exact to 1e-16. */
static int32_t cell_of(int64_t fine, int width, double k, double *u)
{
	double at = (k - floor(k + 0.5)) * (double)fine + (double)(fine / 2), first;

	if (!(at >= 0 && at < (double)fine)) /* by rounding at the very edge; NaN as well, which points_new refuses before */
		at = 0;
	first = ceil(at - width / 2.0);
	*u = 2 * (first - at) + width - 1;
	return (int32_t)(first < 0 ? first + (double)fine : first);
}

static int64_t tile_of(const struct points *p, const int32_t *cell)
{
	return p->tile[0][cell[0]] + p->n_tiles[0] * (p->tile[1][cell[1]] + p->n_tiles[1] * p->tile[2][cell[2]]);
}

#define REAL float
#define POINT fxi_point_f32
#define PICK(fn) FXI_PICK(fn##_f32)
#define FN(name) FXI_JOIN(name, f32)
#include "nufft_template.h"
#undef REAL
#undef POINT
#undef PICK
#undef FN

#define REAL double
#define POINT fxi_point_f64
#define PICK(fn) FXI_PICK(fn##_f64)
#define FN(name) FXI_JOIN(name, f64)
#include "nufft_template.h"

#include "nufft_crowded.h"

static int sample_type(const fx_fine_grid *g)
{
	if (g->real)
		return g->type == FX_CF32 ? FX_F32 : FX_F64;
	return g->type;
}

int fxi_squeeze(fx_math *m, const fx_fine_grid *g, fxi_squeezed *s)
{
	int n = 0;

	*s = (fxi_squeezed){.dims = {1, 1, 1}, .fine = {1, 1, 1}};
	if ((g->type != FX_CF32 && g->type != FX_CF64) || g->width < 2 || g->width > FXI_WIDTHS || !(g->beta > 0))
		return fx_math_fail(m, FX_EINVAL, "a fine grid is cf32 or cf64 with a kernel of 2 to %d cells and beta > 0, not %s, %d, %g",
			FXI_WIDTHS, fx_type_name(g->type), g->width, g->beta);
	for (int a = 0; a < 3; a++) {
		/* Twice the width: a footprint does not meet itself, and tiles can be coloured. */
		if (g->dims[a] > 1 && (g->fine[a] % 2 || g->fine[a] < g->dims[a] + 2 || g->fine[a] < 2 * g->width || g->fine[a] > INT32_MAX))
			return fx_math_fail(m, FX_EINVAL, "a fine axis of %lld for %lld voxels and a kernel of %d: even, 2 more, twice the kernel",
				(long long)g->fine[a], (long long)g->dims[a], g->width);
		if (g->dims[a] < 1 || (g->dims[a] == 1 && g->fine[a] != 1))
			return fx_math_fail(m, FX_EINVAL, "an image axis of %lld on a fine axis of %lld", (long long)g->dims[a],
				(long long)g->fine[a]);
		if (g->dims[a] > 1)
			s->order[n++] = a;
	}
	s->n_axes = n;
	for (int a = 0; a < n; a++) {
		s->dims[a] = g->dims[s->order[a]];
		s->fine[a] = g->fine[s->order[a]];
	}
	return FX_OK;
}

int fxi_need_fine(fx_math *m, const fx_fine_grid *g, const fx_array *fine, int64_t *n)
{
	int64_t cells = g->fine[0] * g->fine[1] * g->fine[2];

	if (fine->type != sample_type(g) || fine->dims[0] != g->fine[0] || fine->dims[1] != g->fine[1] ||
		fine->dims[2] != g->fine[2])
		return fx_math_fail(m, FX_EINVAL, "a fine grid of %lld x %lld x %lld %s where %lld x %lld x %lld %s belongs",
			(long long)fine->dims[0], (long long)fine->dims[1], (long long)fine->dims[2], fx_type_name(fine->type),
			(long long)g->fine[0], (long long)g->fine[1], (long long)g->fine[2], fx_type_name(sample_type(g)));
	*n = fine->n / cells;
	return FX_OK;
}

/*
 * Tiles of one axis: an even number, or one. Each has at least width - 1 cells, so that a footprint reaches no further than
 * into the next; the border is shared out evenly, since a short last tile would let the one before reach around the end.
 */
static int tiles_new(fx_math *m, struct points *p, int axis)
{
	/* Cells of a tile's edge: what keeps a tile of a coil in the second-level cache and leaves enough tiles to share out. */
	static const int64_t edge[] = {512, 512, 32, 16};
	int64_t fine = p->shape.fine[axis], least = p->grid.width[axis] > 1 ? p->grid.width[axis] - 1 : 1;
	int64_t size = edge[p->shape.n_axes] > least ? edge[p->shape.n_axes] : least, n = fine / size / 2 * 2;

	if (n < 2)
		n = fine >= 2 * least && p->grid.width[axis] > 1 ? 2 : 1;
	p->n_tiles[axis] = n;
	p->tile[axis] = fx_alloc(fine, sizeof *p->tile[axis]);
	if (!p->tile[axis])
		return fx_math_fail(m, FX_ENOMEM, "no memory for the tiles of an axis of %lld", (long long)fine);
	for (int64_t t = 0; t < n; t++)
		for (int64_t i = t * fine / n; i < (t + 1) * fine / n; i++)
			p->tile[axis][i] = (int32_t)t;
	return FX_OK;
}

static int coefficients_new(fx_math *m, const fx_fine_grid *g, struct points *p)
{
	bool single = g->type == FX_CF32;
	int64_t n = (FX_FINE_DEGREE + 1) * FXI_WIDTHS;
	double c[(FX_FINE_DEGREE + 1) * FXI_WIDTHS] = {0};

	p->coefficients = fx_alloc(n, single ? sizeof(float) : sizeof(double));
	if (!p->coefficients)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the kernel's coefficients");
	p->grid.coefficients = p->coefficients;
	/* The polynomial's error against the kernel's peak of 1: what rounding would make anyway. */
	p->grid.degree = fx_fine_kernel_polynomial(g->width, g->beta, single ? 3e-8 : 1e-15, FXI_WIDTHS, c);
	for (int64_t i = 0; i < n; i++)
		if (single)
			((float *)p->coefficients)[i] = (float)c[i];
		else
			((double *)p->coefficients)[i] = c[i];
	return FX_OK;
}

static int by_size(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	if (x->part.n != y->part.n)
		return x->part.n < y->part.n ? 1 : -1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->part.low < y->part.low ? -1 : x->part.low > y->part.low;
}

/* The tasks of one tile: one, or several that own some rows each along the slowest axis there is. */
static void add_tasks(struct points *p, const int64_t at[3], int64_t first, int64_t n)
{
	int axis = p->shape.n_axes - 1;
	int64_t tiles = p->n_tiles[axis > 0 ? axis : 0], fine = p->shape.fine[axis > 0 ? axis : 0];
	int64_t parts = axis > 0 ? n / CROWDED + 1 : 1, rows, origin;

	if (axis <= 0 || parts == 1) {
		p->tasks[p->n_tasks++] = (struct task){.first = first, .part = {.n = n}};
		return;
	}
	origin = at[axis] * fine / tiles;
	rows = (at[axis] + 1) * fine / tiles - origin + p->grid.width[axis] - 1;
	if (parts > MAX_PARTS)
		parts = MAX_PARTS;
	for (int64_t i = 0; i < parts; i++)
		p->tasks[p->n_tasks++] = (struct task){.first = first,
			.part = {.n = n, .axis = axis, .origin = origin, .low = i * rows / parts, .high = (i + 1) * rows / parts}};
}

/* Tasks by colour, the largest first so that none is left over when the others are done. */
static int tasks_new(fx_math *m, struct points *p, const int64_t *start, const int64_t *end)
{
	const int64_t *t = p->n_tiles;
	int64_t n_tiles = t[0] * t[1] * t[2], room = 0;

	for (int64_t i = 0; i < n_tiles; i++)
		room += end[i] > start[i] ? (end[i] - start[i] > CROWDED ? MAX_PARTS : 1) : 0;
	p->tasks = fx_alloc(room, sizeof *p->tasks);
	if (!p->tasks)
		return fx_math_fail(m, FX_ENOMEM, "no memory for %lld tiles of samples", (long long)room);
	for (int colour = 0; colour < 8; colour++) {
		int64_t before = p->n_tasks;

		for (int64_t z = colour / 4; z < t[2]; z += 2)
			for (int64_t y = colour / 2 % 2; y < t[1]; y += 2)
				for (int64_t x = colour % 2; x < t[0]; x += 2) {
					int64_t i = x + t[0] * (y + t[1] * z);

					if (end[i] > start[i])
						add_tasks(p, (int64_t[]){x, y, z}, start[i], end[i] - start[i]);
				}
		if (p->n_tasks > before)
			qsort(p->tasks + before, (size_t)(p->n_tasks - before), sizeof *p->tasks, by_size);
		p->colour_end[colour] = p->n_tasks;
	}
	return FX_OK;
}

static int sort_points(fx_math *m, struct points *p, const double *k)
{
	int64_t n_tiles = p->n_tiles[0] * p->n_tiles[1] * p->n_tiles[2];
	int64_t *start = fx_alloc(2 * n_tiles, sizeof *start), *end = start + n_tiles, total = 0;
	bool single = p->type == FX_F32 || p->type == FX_CF32;
	int status;

	p->sorted = fx_alloc(p->n, single ? sizeof(fxi_point_f32) : sizeof(fxi_point_f64));
	if (!start || !p->sorted) {
		fx_free(start);
		return fx_math_fail(m, FX_ENOMEM, "no memory to sort %lld samples", (long long)p->n);
	}
	for (int64_t i = 0; i < p->n; i++) {
		int32_t cell[3] = {0};
		double u;

		for (int a = 0; a < p->shape.n_axes; a++)
			cell[a] = cell_of(p->shape.fine[a], p->grid.width[a], k[3 * i + p->shape.order[a]], &u);
		start[tile_of(p, cell)]++;
	}
	for (int64_t t = 0; t < n_tiles; t++) {
		int64_t count = start[t];

		start[t] = end[t] = total;
		total += count;
	}
	if (single)
		sort_f32(p, k, end);
	else
		sort_f64(p, k, end);
	status = tasks_new(m, p, start, end);
	fx_free(start);
	return status;
}

int fxi_host_points_new(fx_math *m, const fx_fine_grid *g, const fx_array *k, void **points)
{
	struct points *p;
	int status;

	*points = NULL;
	if (k->type != FX_F64 || k->dims[0] != 3 || k->n != 3 * k->dims[1] || k->dims[1] > UINT32_MAX)
		return fx_math_fail(m, FX_EINVAL, "a trajectory is f64 {3, M} with M below 2^32, not %s {%lld, %lld}",
			fx_type_name(k->type), (long long)k->dims[0], (long long)k->dims[1]);
	for (int64_t i = 0; i < k->n; i++)
		if (!isfinite(FX_F64_OF(k)[i]))
			return fx_math_fail(m, FX_EDATA, "sample %lld of the trajectory has a coordinate that is no number",
				(long long)(i / 3));
	p = fx_alloc(1, sizeof *p);
	if (!p)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the samples' places");
	p->type = sample_type(g);
	p->n = k->dims[1];
	status = fxi_squeeze(m, g, &p->shape);
	p->cells = p->shape.fine[0] * p->shape.fine[1] * p->shape.fine[2];
	p->grid.components = g->real ? 1 : 2;
	for (int a = 0; a < 3; a++) {
		p->grid.fine[a] = p->shape.fine[a];
		p->grid.width[a] = a < p->shape.n_axes ? g->width : 1;
	}
	for (int a = 0; a < 3 && status == FX_OK; a++)
		status = tiles_new(m, p, a);
	if (status == FX_OK)
		status = coefficients_new(m, g, p);
	if (status == FX_OK)
		status = sort_points(m, p, FX_F64_OF(k));
	if (status == FX_OK)
		*points = p;
	else
		fxi_host_points_free(m, p);
	return status;
}

void fxi_host_points_free(fx_math *m, void *points)
{
	struct points *p = points;

	(void)m;
	if (!p)
		return;
	for (int a = 0; a < 3; a++)
		fx_free(p->tile[a]);
	fx_free(p->sorted);
	fx_free(p->coefficients);
	fx_free(p->tasks);
	fx_free(p);
}

/* Both sides have the same number of coils, and samples are those of the points. */
static int need_sides(fx_math *m, const fx_fine_grid *g, const struct points *p, const fx_array *samples,
	const fx_array *fine, int64_t *n_coils)
{
	int status = fxi_need_fine(m, g, fine, n_coils);

	if (status != FX_OK)
		return status;
	if (samples->type != p->type || samples->dims[0] != p->n || samples->n != p->n * *n_coils)
		return fx_math_fail(m, FX_EINVAL, "%s samples {%lld, ...}, %lld in all, where %s {%lld, %lld} belong",
			fx_type_name(samples->type), (long long)samples->dims[0], (long long)samples->n, fx_type_name(p->type),
			(long long)p->n, (long long)*n_coils);
	return FX_OK;
}

int fxi_host_spread(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *samples, fx_array *fine)
{
	const struct points *p = points;
	int64_t n_coils, batches, first = 0;
	struct crowd crowd = {0};
	bool crowds;
	int status = need_sides(m, g, p, samples, fine, &n_coils);

	if (status != FX_OK)
		return status;
	batches = (n_coils + FXI_NUFFT_COILS - 1) / FXI_NUFFT_COILS;
	crowds = g->type == FX_CF32 && has_crowds(p);
	if (crowds)
		status = fxi_scratch_new(m, patch_bytes(p, n_coils), &crowd.scratch);
	for (int colour = 0; colour < 8 && status == FX_OK; colour++) {
		int64_t n = (p->colour_end[colour] - first) * batches;
		struct job_f32 f = {p, p->tasks + first, batches, n_coils, p->n, samples->data, fine->data};
		struct job_f64 d = {p, p->tasks + first, batches, n_coils, p->n, samples->data, fine->data};

		crowd.job = f;
		if (crowds)
			fx_parallel(m->n_threads, n, spread_crowded, &crowd);
		else if (g->type == FX_CF32)
			fx_parallel(m->n_threads, n, spread_task_f32, &f);
		else
			fx_parallel(m->n_threads, n, spread_task_f64, &d);
		first = p->colour_end[colour];
	}
	if (crowds)
		fxi_scratch_free(&crowd.scratch);
	return status;
}

int fxi_host_interpolate(fx_math *m, const fx_fine_grid *g, void *points, const fx_array *fine, fx_array *samples)
{
	const struct points *p = points;
	int64_t n_coils, batches, n;
	int status = need_sides(m, g, p, samples, fine, &n_coils);

	if (status != FX_OK)
		return status;
	batches = (n_coils + FXI_NUFFT_COILS - 1) / FXI_NUFFT_COILS;
	n = (p->n + GATHER_POINTS - 1) / GATHER_POINTS * batches;
	if (g->type == FX_CF32) {
		struct job_f32 j = {p, NULL, batches, n_coils, p->n, fine->data, samples->data};

		fx_parallel(m->n_threads, n, gather_task_f32, &j);
	} else {
		struct job_f64 j = {p, NULL, batches, n_coils, p->n, fine->data, samples->data};

		fx_parallel(m->n_threads, n, gather_task_f64, &j);
	}
	return FX_OK;
}

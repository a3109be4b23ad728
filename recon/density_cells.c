/* SPDX-License-Identifier: MIT */
/*
 * density_cells.c - sorts samples into Cartesian cells, and into small bins within them. Where a trajectory is denser
 * than one sample a bin (the centre of a radial scan), its bins bound the work; elsewhere a bin is a sample.
 */
#include "density.h"

#include <math.h>
#include <string.h>

struct frame {
	double origin[3];  /* where the corner of cell 0 lies, in cells from the centre of k-space */
	int per_axis[3];   /* bins along an axis of a cell */
};

static void place(const fx_density_cells *c, const struct frame *f, const double u[3], int64_t *cell, int *bin)
{
	int64_t index = 0;
	int b = 0;

	for (int axis = 2; axis >= 0; axis--) {
		double x = u[axis] - f->origin[axis];
		int64_t i = (int64_t)x;

		index = index * c->n_cells[axis] + i;
		b = b * f->per_axis[axis] + (int)((x - (double)i) * f->per_axis[axis]);
	}
	*cell = index;
	*bin = b;
}

static void position_of(const fx_array *k, const int64_t dims[3], int64_t i, double u[3])
{
	for (int axis = 0; axis < 3; axis++)
		u[axis] = dims[axis] > 1 ? FX_F64_OF(k)[3 * i + axis] * (double)dims[axis] : 0;
}

/* Extent of the trajectory, a rim of one cell around it, and the bins of a cell. */
static int frame_cells(fx_math *m, const fx_array *k, const int64_t dims[3], fx_density_cells *c, struct frame *f)
{
	static const int per_axis[] = {1, 63, 7, 3}; /* odd: a centre is in the middle of a bin */
	int n_axes = (dims[0] > 1) + (dims[1] > 1) + (dims[2] > 1);
	double low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, n_cells = 1, bytes;

	for (int64_t i = 0; i < k->dims[1]; i++) {
		double u[3];

		position_of(k, dims, i, u);
		for (int axis = 0; axis < 3; axis++) {
			if (!isfinite(u[axis]))
				return fx_math_fail(m, FX_EDATA, "sample %lld of the trajectory is not a finite number", (long long)i);
			if (fabs(u[axis]) > 1e9)
				return fx_math_fail(m, FX_EDATA, "sample %lld of the trajectory lies %g Cartesian cells from the centre; "
					"check the trajectory's unit", (long long)i, u[axis]);
			low[axis] = fmin(low[axis], u[axis]);
			high[axis] = fmax(high[axis], u[axis]);
		}
	}
	for (int axis = 0; axis < 3; axis++) {
		double rim = dims[axis] > 1 ? FXI_RIM : 0;

		c->encoded[axis] = dims[axis] > 1;
		f->origin[axis] = low[axis] - 0.5 - rim;
		f->per_axis[axis] = dims[axis] > 1 ? per_axis[n_axes] : 1;
		c->n_cells[axis] = (int64_t)(high[axis] - f->origin[axis] + 1 + rim);
		n_cells *= (double)c->n_cells[axis];
	}
	bytes = n_cells * (sizeof *c->first + 2 * sizeof(float) + 2);
	if (bytes > (double)fx_memory_available_bytes())
		return fx_math_fail(m, FX_ENOMEM, "density weights of a trajectory that spans %.0f Cartesian cells take %.1f GB, more "
			"than the %.1f GB there are", n_cells, bytes * 1e-9, (double)fx_memory_available_bytes() * 1e-9);
	return FX_OK;
}

/* order[] = samples sorted by cell, in order of arrival within each; first[] in samples. */
static int64_t *sort_by_cell(const fx_density_cells *c, const int64_t *cell_of, int64_t n, int64_t total)
{
	int64_t *order = fx_alloc(n, sizeof *order);

	if (!order)
		return NULL;
	for (int64_t i = 0; i < n; i++)
		c->first[cell_of[i] + 1]++;
	for (int64_t i = 0; i < total; i++)
		c->first[i + 1] += c->first[i];
	for (int64_t i = 0; i < n; i++)
		order[c->first[cell_of[i]]++] = i;
	/* filling moved every start to its end */
	memmove(c->first + 1, c->first, (size_t)total * sizeof *c->first);
	c->first[0] = 0;
	return order;
}

/* out[i] = `any` ? in any of i - 1, i, i + 1 : in all of them, along one axis; beyond the cells there is nothing. */
static void widen_or_narrow(const fx_density_cells *c, int axis, bool any)
{
	int64_t stride = 1, n = c->n_cells[axis], total = c->n_cells[0] * c->n_cells[1] * c->n_cells[2];

	for (int i = 0; i < axis; i++)
		stride *= c->n_cells[i];
	for (int64_t start = 0; start < total; start++) {
		uint8_t *line = c->covered + start, before = 0;

		if (start / stride % n != 0)
			continue;
		for (int64_t i = 0; i < n; i++) {
			uint8_t here = line[i * stride], after = i + 1 < n ? line[(i + 1) * stride] : 0;

			line[i * stride] = any ? before | here | after : before & here & after;
			before = here;
		}
	}
}

/* Covered are cells with samples, and gaps between them of up to two cells: a morphological closing. */
static void find_covered(const fx_density_cells *c)
{
	int64_t total = c->n_cells[0] * c->n_cells[1] * c->n_cells[2];

	for (int64_t cell = 0; cell < total; cell++)
		c->covered[cell] = c->first[cell + 1] > c->first[cell];
	for (int any = 1; any >= 0; any--)
		for (int axis = 0; axis < 3; axis++)
			if (c->encoded[axis])
				widen_or_narrow(c, axis, any);
}

/* Turns the samples order[from..to) of one cell into points. */
static void make_points(fx_density_cells *c, const struct frame *f, const fx_array *k, const int64_t dims[3], const int64_t *order,
	const uint8_t *bin_of, int64_t from, int64_t to)
{
	double sum[FXI_BINS][3] = {{0}};
	int64_t count[FXI_BINS] = {0}, point[FXI_BINS];

	for (int64_t i = from; i < to; i++) {
		double u[3];

		position_of(k, dims, order[i], u);
		for (int axis = 0; axis < 3; axis++)
			sum[bin_of[order[i]]][axis] += u[axis] - f->origin[axis];
		count[bin_of[order[i]]]++;
	}
	for (int b = 0; b < FXI_BINS; b++) {
		if (count[b] == 0)
			continue;
		for (int axis = 0; axis < 3; axis++)
			c->position[axis][c->n_points] = (float)(sum[b][axis] / (double)count[b]);
		c->count[c->n_points] = (float)count[b];
		point[b] = c->n_points++;
	}
	for (int64_t i = from; i < to; i++)
		c->point_of[order[i]] = point[bin_of[order[i]]];
}

int fxi_cells_new(fx_math *m, const fx_array *k, const int64_t dims[3], fx_density_cells *out)
{
	int64_t n = k->dims[1], total;
	int64_t *cell_of = fx_alloc(n, sizeof *cell_of), *order = NULL;
	uint8_t *bin_of = fx_alloc(n, 1);
	struct frame f;
	int status;

	*out = (fx_density_cells){0};
	status = frame_cells(m, k, dims, out, &f);
	if (status != FX_OK)
		goto done;
	status = FX_ENOMEM;
	total = out->n_cells[0] * out->n_cells[1] * out->n_cells[2];
	out->first = fx_alloc(total + 1, sizeof *out->first);
	out->point_of = fx_alloc(n, sizeof *out->point_of);
	out->count = fx_alloc(n, sizeof *out->count);
	out->covered = fx_alloc(total, 1);
	for (int axis = 0; axis < 3; axis++)
		out->position[axis] = fx_alloc(n, sizeof *out->position[axis]);
	if (!cell_of || !bin_of || !out->first || !out->point_of || !out->count || !out->covered || !out->position[0] || !out->position[1] ||
	    !out->position[2])
		goto done;
	for (int64_t i = 0; i < n; i++) {
		double u[3];
		int bin;

		position_of(k, dims, i, u);
		place(out, &f, u, &cell_of[i], &bin);
		bin_of[i] = (uint8_t)bin;
	}
	order = sort_by_cell(out, cell_of, n, total);
	if (!order)
		goto done;
	for (int64_t cell = 0; cell < total; cell++) {
		int64_t from = out->first[cell], to = out->first[cell + 1];

		out->first[cell] = out->n_points; /* from samples to points; the next cell's start is still in samples */
		if (to > from)
			make_points(out, &f, k, dims, order, bin_of, from, to);
	}
	out->first[total] = out->n_points;
	find_covered(out);
	status = FX_OK;
done:
	fx_free(cell_of);
	fx_free(bin_of);
	fx_free(order);
	if (status == FX_OK)
		return FX_OK;
	fxi_cells_free(out);
	return fx_math_fail(m, status, "no memory for the density weights of %lld samples", (long long)n);
}

void fxi_cells_free(fx_density_cells *c)
{
	fx_free(c->first);
	fx_free(c->point_of);
	fx_free(c->count);
	fx_free(c->covered);
	for (int axis = 0; axis < 3; axis++)
		fx_free(c->position[axis]);
	*c = (fx_density_cells){0};
}

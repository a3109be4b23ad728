/* SPDX-License-Identifier: MIT */
/*
 * files_png_tracts.c - the product PNG of fibres: all of them projected along the body's axes, as seen from below (axial), from
 * the front (coronal) and from the left (sagittal), side by side; for a first look.
 *
 * Views are turned as a radiologist expects them: the patient's left on the right of axial and coronal ones, front up in axial
 * ones, head up in the others, front on the left in the sagittal one. A colour is the direction: red left-right, green
 * front-back, blue head-foot.
 *
 * Every pixel sums the length of fibre that lies before it and that length times its colour, so memory does not depend on
 * the number of fibres and nothing saturates on the way. At the end hue is the mean direction, and brightness the logarithm of
 * the length, 1 at its 99th percentile: single fibres still show beside a bundle of thousands.
 */
#include "picture.h"
#include "tracts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1024.0          /* of the three views together, pixels */
#define MOST_HEIGHT 2048.0
#define GAP 4                 /* pixels between views */
#define BRIGHT 0.99

/* One projection. across and down are anatomical axes (0 R, 1 A, 2 S), both shown from their high end to their low end. */
struct view {
	int across, down;
	int64_t left, top, columns, rows;
	double *sums;             /* {4, columns, rows}: length in pixels, and that times |direction| */
};

struct picture {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	double low[3], high[3];   /* of the lattice, RAS mm */
	double scale;             /* pixels per mm */
	int64_t width, height;
	struct view views[3];
};

static void free_product(fxi_product *self)
{
	struct picture *p = (struct picture *)self;

	for (int i = 0; i < 3; i++)
		fx_free(p->views[i].sums);
	free(p->name);
	free(p);
}

/* A share of length at a point between pixel centres goes to the four around it. */
static void splat(const struct view *v, double x, double y, double length, const double colour[3])
{
	double fx = floor(x - 0.5), fy = floor(y - 0.5), wx = x - 0.5 - fx, wy = y - 0.5 - fy;

	if (!(fx >= -1 && fy >= -1 && fx < (double)v->columns && fy < (double)v->rows))
		return;
	for (int k = 0; k < 4; k++) {
		int64_t column = (int64_t)fx + k % 2, row = (int64_t)fy + k / 2;
		double share = length * (k % 2 ? wx : 1 - wx) * (k / 2 ? wy : 1 - wy), *at;

		if (column < 0 || row < 0 || column >= v->columns || row >= v->rows)
			continue;
		at = v->sums + 4 * (column + v->columns * row);
		at[0] += share;
		for (int i = 0; i < 3; i++)
			at[1 + i] += share * colour[i];
	}
}

static void draw_segment(const struct picture *p, const float *a, const float *b)
{
	double d[3], colour[3], length = 0;

	for (int i = 0; i < 3; i++) {
		d[i] = ((double)b[i] - (double)a[i]) * p->scale;
		length += d[i] * d[i];
	}
	length = sqrt(length);
	/* Neither a repeated point nor one that is no number has a direction; beyond the picture's own size there is nothing to see. */
	if (!(length > 0) || length > 1e6)
		return;
	for (int i = 0; i < 3; i++)
		colour[i] = fabs(d[i]) / length;
	for (int i = 0; i < 3; i++) {
		const struct view *v = &p->views[i];
		double x = (p->high[v->across] - (double)a[v->across]) * p->scale, y = (p->high[v->down] - (double)a[v->down]) * p->scale;
		double steps = ceil(2 * fmax(fabs(d[v->across]), fabs(d[v->down])));

		steps = steps < 1 ? 1 : steps;
		for (double k = 0.5; k < steps; k++)
			splat(v, x - d[v->across] * k / steps, y - d[v->down] * k / steps, length / steps, colour);
	}
}

static int add_tracts(fxi_product *self, const fx_tracts *t, fx_error *err)
{
	const struct picture *p = (struct picture *)self;
	const uint32_t *offsets;
	const float *points;
	int status;

	if (t->end || t->n == 0)
		return FX_OK;
	status = fxi_tracts_check(p->name, 0, t, err);
	if (status != FX_OK)
		return status;
	offsets = t->offsets->data;
	points = t->points->data;
	for (int64_t i = 0; i < t->n; i++)
		for (int64_t j = (int64_t)offsets[i] + 1; j < offsets[i + 1]; j++)
			draw_segment(p, points + 3 * (j - 1), points + 3 * j);
	return FX_OK;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The length at the 99th percentile of the pixels that hold any; 1 where there is none. False where memory is short. */
static bool bright_length(const struct picture *p, double *bright)
{
	int64_t total = 0, n = 0;
	double *lengths;

	for (int i = 0; i < 3; i++)
		total += p->views[i].columns * p->views[i].rows;
	lengths = fx_alloc(total, sizeof *lengths);
	if (!lengths)
		return false;
	for (int i = 0; i < 3; i++)
		for (int64_t k = 0; k < p->views[i].columns * p->views[i].rows; k++)
			if (p->views[i].sums[4 * k] > 0)
				lengths[n++] = p->views[i].sums[4 * k];
	qsort(lengths, (size_t)n, sizeof *lengths, ascending);
	*bright = n > 0 ? lengths[(int64_t)(BRIGHT * (double)(n - 1))] : 1;
	fx_free(lengths);
	return true;
}

static uint32_t colour_of(const double *sums, double bright)
{
	double level = log1p(sums[0]) / log1p(bright), peak = fmax(sums[1], fmax(sums[2], sums[3]));
	uint32_t pixel = 0;

	if (!(peak > 0))
		return 0;
	level = 255 * fmin(level, 1);
	/* The mean direction at full brightness, so that a bundle of crossing fibres is not darker than a straight one. */
	for (int i = 0; i < 3; i++)
		pixel = pixel << 8 | (uint32_t)(level * sums[1 + i] / peak + 0.5);
	return pixel;
}

/* NULL where memory is short. */
static cairo_surface_t *draw(const struct picture *p)
{
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->width, (int)p->height);
	unsigned char *pixels = cairo_image_surface_get_data(surface);
	double bright;

	if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS || !bright_length(p, &bright)) {
		cairo_surface_destroy(surface);
		return NULL;
	}
	for (int i = 0; i < 3; i++) {
		const struct view *v = &p->views[i];

		for (int64_t row = 0; row < v->rows; row++) {
			uint32_t *line = (uint32_t *)(void *)(pixels + (v->top + row) * cairo_image_surface_get_stride(surface));

			for (int64_t column = 0; column < v->columns; column++)
				line[v->left + column] = colour_of(v->sums + 4 * (column + v->columns * row), bright);
		}
	}
	cairo_surface_mark_dirty(surface);
	return surface;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct picture *p = (struct picture *)self;
	cairo_surface_t *surface = draw(p);
	int status = fxi_picture_write(p->folder, p->name, surface, err);

	if (surface)
		cairo_surface_destroy(surface);
	free_product(self);
	return status;
}

/* The box, along the anatomical axes, around the lattice's voxels from edge to edge. False where it has none. */
static bool find_box(const fx_lattice *l, struct picture *p)
{
	for (int i = 0; i < 3; i++) {
		p->low[i] = (double)INFINITY;
		p->high[i] = -(double)INFINITY;
	}
	for (int corner = 0; corner < 8; corner++)
		for (int i = 0; i < 3; i++) {
			double x = l->affine[i][3];

			for (int j = 0; j < 3; j++)
				x += l->affine[i][j] * (corner >> j & 1 ? (double)l->dims[j] - 0.5 : -0.5);
			p->low[i] = fmin(p->low[i], x);
			p->high[i] = fmax(p->high[i], x);
		}
	for (int i = 0; i < 3; i++)
		if (l->dims[i] < 1 || !isfinite(p->low[i]) || !isfinite(p->high[i]) || !(p->high[i] > p->low[i]))
			return false;
	return true;
}

static bool lay_out(struct picture *p)
{
	static const int axes[3][2] = {{0, 1}, {0, 2}, {1, 2}}; /* axial, coronal, sagittal */
	double mm[3];

	for (int i = 0; i < 3; i++)
		mm[i] = p->high[i] - p->low[i];
	p->scale = fmin(WIDTH / (2 * mm[0] + mm[1]), MOST_HEIGHT / fmax(mm[1], mm[2]));
	for (int i = 0; i < 3; i++) {
		struct view *v = &p->views[i];

		v->across = axes[i][0];
		v->down = axes[i][1];
		v->columns = (int64_t)fmax(1, ceil(mm[v->across] * p->scale - 1e-6));
		v->rows = (int64_t)fmax(1, ceil(mm[v->down] * p->scale - 1e-6));
		v->left = p->width;
		p->width += v->columns + (i < 2 ? GAP : 0);
		p->height = v->rows > p->height ? v->rows : p->height;
		v->sums = fx_alloc(4 * v->columns * v->rows, sizeof *v->sums);
		if (!v->sums)
			return false;
	}
	for (int i = 0; i < 3; i++)
		p->views[i].top = (p->height - p->views[i].rows) / 2;
	return true;
}

int fxi_product_png_tracts(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct picture *p = calloc(1, sizeof *p);

	if (!p || !(p->name = strdup(options->name))) {
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add_tracts = add_tracts, .commit = commit, .abandon = free_product};
	p->folder = folder;
	if (!find_box(&options->tracts->lattice, p)) {
		free_product(&p->base);
		return fx_error_set(err, FX_EINVAL, "%s: the image that the fibres were tracked in has no extent in space", options->name);
	}
	if (!lay_out(p)) {
		free_product(&p->base);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	*out = &p->base;
	return FX_OK;
}

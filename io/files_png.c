/* SPDX-License-Identifier: MIT */
/*
 * files_png.c - the product PNG: a mosaic of up to 36 slices, evenly chosen from all of them (every volume and channel), in
 * the order of their positions, for a first look.
 *
 * Slices are turned as a radiologist expects them: the patient's left on the right of axial and coronal ones, front up in
 * axial ones, head up in the others, front on the left in sagittal ones. Images without a place in space are shown as
 * they are stored, x to the right and y down. Voxels keep their shape. Grey runs from the window_low to the window_high
 * percentile of the shown values.
 */
#include "picture.h"
#include "stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TILES 36
#define GOOD_PIXELS 1024.0   /* small mosaics are enlarged up to this width */
#define MOST_PIXELS 4096.0   /* large ones are shrunk to it */

struct png {
	fxi_product base;
	fxi_folder *folder;
	char *name;
	double low, high;
	fxi_held_list images;
};

/* How a stored plane is turned: picture column i, row j is voxel x, y by these. */
struct view {
	bool swap;            /* columns run along y */
	bool flip_x, flip_y;  /* of the stored axes */
};

struct tile {
	const fxi_stack *stack;
	int64_t volume, slice, channel;
	struct view view;
	int64_t columns, rows;     /* voxels, after turning */
	double width, height;      /* relative size, after turning */
};

static void free_product(fxi_product *self)
{
	struct png *p = (struct png *)self;

	fxi_held_clear(&p->images);
	free(p->name);
	free(p);
}

static int add(fxi_product *self, const fx_image *image, fx_error *err)
{
	return fxi_held_add(&((struct png *)self)->images, image, err);
}

static struct view view_of(const fxi_stack *s)
{
	/* By the axis that the normal is nearest to: where the picture's right and down point, in LPS. */
	static const double right[3][3] = {{0, 1, 0}, {1, 0, 0}, {1, 0, 0}};
	static const double down[3][3] = {{0, 0, -1}, {0, 0, -1}, {0, 1, 0}};
	struct view v = {false, false, false};
	double x_right = 0, y_right = 0, x_down = 0, y_down = 0;
	int normal = 0;

	if (!s->has_geometry)
		return v;
	for (int i = 1; i < 3; i++)
		if (fabs(s->axes[2][i]) > fabs(s->axes[2][normal]))
			normal = i;
	for (int i = 0; i < 3; i++) {
		x_right += s->axes[0][i] * right[normal][i];
		y_right += s->axes[1][i] * right[normal][i];
		x_down += s->axes[0][i] * down[normal][i];
		y_down += s->axes[1][i] * down[normal][i];
	}
	v.swap = fabs(y_right) + fabs(x_down) > fabs(x_right) + fabs(y_down);
	v.flip_x = (v.swap ? x_down : x_right) < 0;
	v.flip_y = (v.swap ? y_right : y_down) < 0;
	return v;
}

static struct tile tile_of(const fxi_stack *s, int64_t number)
{
	struct tile t = {.stack = s, .view = view_of(s)};
	double width = (double)s->matrix[0] * s->voxel_mm[0], height = (double)s->matrix[1] * s->voxel_mm[1];
	double voxel = fmin(s->voxel_mm[0], s->voxel_mm[1]);

	t.slice = number % s->matrix[2];
	t.volume = number / s->matrix[2] % s->n_volumes;
	t.channel = number / s->matrix[2] / s->n_volumes;
	t.columns = s->matrix[t.view.swap ? 1 : 0];
	t.rows = s->matrix[t.view.swap ? 0 : 1];
	t.width = (t.view.swap ? height : width) / voxel;
	t.height = (t.view.swap ? width : height) / voxel;
	return t;
}

static int64_t planes_of(const fxi_stack *s)
{
	return s->matrix[2] * s->n_volumes * s->n_channels;
}

static int64_t choose_tiles(const fxi_stack *stacks, int64_t n_stacks, struct tile *tiles)
{
	int64_t total = 0, n, stack = 0, before = 0;

	for (int64_t i = 0; i < n_stacks; i++)
		total += planes_of(&stacks[i]);
	n = total < MAX_TILES ? total : MAX_TILES;
	for (int64_t i = 0; i < n; i++) {
		int64_t plane = (2 * i + 1) * total / (2 * n);   /* the middle of the i-th of n equal parts */

		while (plane - before >= planes_of(&stacks[stack]))
			before += planes_of(&stacks[stack++]);
		tiles[i] = tile_of(&stacks[stack], plane - before);
	}
	return n;
}

/* A float's bits as an integer that sorts as the float does. */
static uint32_t sortable(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The value of that rank among the n finite ones, by its upper and then its lower 16 bits: exact, in linear time. */
static float value_of_rank(const float *values, int64_t n, int64_t rank, int64_t *counts)
{
	uint32_t found = 0, bits;
	float value;

	for (int half = 0; half < 2; half++) {
		int shift = half == 0 ? 16 : 0;
		uint32_t bin = 0;

		memset(counts, 0, 65536 * sizeof *counts);
		for (int64_t i = 0; i < n; i++) {
			uint32_t s = sortable(values[i]);

			if (isfinite(values[i]) && (half == 0 || s >> 16 == found >> 16))
				counts[s >> shift & 0xffffu]++;
		}
		while (bin < 65535 && rank >= counts[bin])
			rank -= counts[bin++];
		found |= bin << shift;
	}
	bits = found & 0x80000000u ? found & 0x7fffffffu : ~found;
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* The two percentiles of the finite values; both 0 where there are none. False where memory is short. */
static bool window_of(const float *values, int64_t n, double low, double high, float *from, float *to)
{
	int64_t *counts = fx_alloc(65536, sizeof *counts), finite = 0;
	bool ok = counts != NULL;

	*from = *to = 0;
	for (int64_t i = 0; i < n; i++)
		finite += isfinite(values[i]) ? 1 : 0;
	if (ok && finite > 0) {
		*from = value_of_rank(values, n, (int64_t)floor(low / 100 * (double)(finite - 1)), counts);
		*to = value_of_rank(values, n, (int64_t)ceil(high / 100 * (double)(finite - 1)), counts);
	}
	fx_free(counts);
	return ok;
}

static uint32_t grey(float value, float from, float to)
{
	float share = to > from ? (value - from) / (to - from) : value > from;
	uint32_t level = !(share > 0) ? 0 : share >= 1 ? 255 : (uint32_t)(share * 255 + 0.5f);

	return level << 16 | level << 8 | level;
}

static cairo_surface_t *tile_surface(const struct tile *t, const float *plane, float from, float to)
{
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)t->columns, (int)t->rows);
	unsigned char *pixels = cairo_image_surface_get_data(surface);
	int stride = cairo_image_surface_get_stride(surface);
	const int64_t *matrix = t->stack->matrix;

	if (cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS)
		return surface;
	for (int64_t row = 0; row < t->rows; row++) {
		uint32_t *line = (uint32_t *)(void *)(pixels + row * stride);

		for (int64_t column = 0; column < t->columns; column++) {
			int64_t x = t->view.swap ? row : column, y = t->view.swap ? column : row;

			if (t->view.flip_x)
				x = matrix[0] - 1 - x;
			if (t->view.flip_y)
				y = matrix[1] - 1 - y;
			line[column] = grey(plane[x + matrix[0] * y], from, to);
		}
	}
	cairo_surface_mark_dirty(surface);
	return surface;
}

struct layout {
	int64_t columns, rows;
	double width, height, scale;  /* of a tile, and pixels for its unit */
};

static struct layout layout_of(const struct tile *tiles, int64_t n)
{
	struct layout l = {0};
	double side;

	for (int64_t i = 0; i < n; i++) {
		l.width = fmax(l.width, tiles[i].width);
		l.height = fmax(l.height, tiles[i].height);
	}
	l.columns = (int64_t)ceil(sqrt((double)n * l.height / l.width) - 1e-9);
	l.columns = l.columns < 1 ? 1 : l.columns > n ? n : l.columns;
	l.rows = (n + l.columns - 1) / l.columns;
	side = fmax(l.width * (double)l.columns, l.height * (double)l.rows);
	/* Whole factors keep voxels the same size on the screen. */
	l.scale = side > MOST_PIXELS ? MOST_PIXELS / side : fmax(1, floor(GOOD_PIXELS / side));
	return l;
}

static void draw_tile(cairo_t *c, const struct layout *l, const struct tile *t, int64_t i, cairo_surface_t *surface)
{
	double x = (double)(i % l->columns) * l->width, y = (double)(i / l->columns) * l->height;

	cairo_save(c);
	cairo_scale(c, l->scale, l->scale);
	cairo_translate(c, x + (l->width - t->width) / 2, y + (l->height - t->height) / 2);
	cairo_rectangle(c, 0, 0, t->width, t->height);
	cairo_clip(c);
	cairo_scale(c, t->width / (double)t->columns, t->height / (double)t->rows);
	cairo_set_source_surface(c, surface, 0, 0);
	cairo_pattern_set_filter(cairo_get_source(c), l->scale < 1 ? CAIRO_FILTER_GOOD : CAIRO_FILTER_NEAREST);
	cairo_pattern_set_extend(cairo_get_source(c), CAIRO_EXTEND_PAD);
	cairo_paint(c);
	cairo_restore(c);
}

/* The shown planes one after the other. */
static float *shown_values(const struct png *p, const struct tile *tiles, int64_t n, int64_t *total)
{
	int64_t at = 0;
	float *values;

	*total = 0;
	for (int64_t i = 0; i < n; i++)
		*total += tiles[i].columns * tiles[i].rows;
	values = fx_alloc(*total, sizeof *values);
	for (int64_t i = 0; values && i < n; i++) {
		fxi_stack_plane(&p->images, tiles[i].stack, tiles[i].volume, tiles[i].slice, tiles[i].channel, values + at);
		at += tiles[i].columns * tiles[i].rows;
	}
	return values;
}

/* NULL where memory is short. */
static cairo_surface_t *draw_mosaic(const struct png *p, const struct tile *tiles, int64_t n)
{
	struct layout l = layout_of(tiles, n);
	int64_t total, at = 0;
	float *values = shown_values(p, tiles, n, &total), from, to;
	cairo_surface_t *mosaic = NULL;
	cairo_t *c;

	if (values && window_of(values, total, p->low, p->high, &from, &to)) {
		mosaic = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(l.width * l.scale * (double)l.columns),
			(int)ceil(l.height * l.scale * (double)l.rows));
		c = cairo_create(mosaic);
		for (int64_t i = 0; i < n; i++) {
			cairo_surface_t *tile = tile_surface(&tiles[i], values + at, from, to);

			draw_tile(c, &l, &tiles[i], i, tile);
			cairo_surface_destroy(tile);
			at += tiles[i].columns * tiles[i].rows;
		}
		if (cairo_status(c) != CAIRO_STATUS_SUCCESS) {
			cairo_surface_destroy(mosaic);
			mosaic = NULL;
		}
		cairo_destroy(c);
	}
	fx_free(values);
	return mosaic;
}

static int commit(fxi_product *self, fx_error *err)
{
	struct png *p = (struct png *)self;
	struct tile tiles[MAX_TILES];
	fxi_stack *stacks = NULL;
	cairo_surface_t *mosaic = NULL;
	int64_t n_stacks = 0;
	int status;

	if (p->images.n == 0) {
		char text[256];

		snprintf(text, sizeof text, "%s: not written, no image came", p->name);
		fxi_folder_warn(p->folder, text);
		free_product(self);
		return FX_OK;
	}
	/* The NIfTI product says what there is to say of the geometry. */
	status = fxi_stacks_build(&p->images, p->name, NULL, NULL, err, &stacks, &n_stacks);
	if (status == FX_OK) {
		mosaic = draw_mosaic(p, tiles, choose_tiles(stacks, n_stacks, tiles));
		status = fxi_picture_write(p->folder, p->name, mosaic, err);
	}
	if (mosaic)
		cairo_surface_destroy(mosaic);
	fxi_stacks_free(stacks, n_stacks);
	free_product(self);
	return status;
}

int fxi_product_png(fxi_folder *folder, const fx_sink_options *options, fx_error *err, fxi_product **out)
{
	struct png *p;

	if (!(options->window_low >= 0 && options->window_low < options->window_high && options->window_high <= 100))
		return fx_error_set(err, FX_EINVAL, "%s: the window goes from the percentile %g to %g; 0 <= low < high <= 100 is "
			"needed", options->name, options->window_low, options->window_high);
	p = calloc(1, sizeof *p);
	if (!p || !(p->name = strdup(options->name))) {
		free(p);
		return fx_error_set(err, FX_ENOMEM, "out of memory while opening %s", options->name);
	}
	p->base = (fxi_product){.add = add, .commit = commit, .abandon = free_product};
	p->folder = folder;
	p->low = options->window_low;
	p->high = options->window_high;
	*out = &p->base;
	return FX_OK;
}

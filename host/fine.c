/* SPDX-License-Identifier: MIT */
/*
 * fine.c - between the oversampled grid and the image: pruned FFT passes that crop (or pad), divide by the kernel's
 * transform and scale as they move their lines, so that nothing is touched twice and no second grid exists.
 *
 * The two inner axes are done slab by slab, while a slab is in the cache; the outer one then has only the cropped columns
 * left. Lines that would be all zero, or of which nothing is kept, are never transformed.
 */
#include "kernels/columns.h"
#include "lines.h"
#include "nufft.h"

#include <fftw3.h>
#include <string.h>

struct real_pass {
	const fxi_squeezed *shape;
	void *fine;
	const void *weight;
	const fxi_vfft *lanes;  /* single precision */
	const void *plan;       /* double: FFTW's, and the distance of its lines */
	int64_t ld;
	const fxi_lines *y;     /* the pass that follows in the same slab, or NULL */
	fxi_scratch scratch;
};

struct unfold {
	const fxi_squeezed *shape;
	const void *fine;
	void *image;
};

#define REAL float
#define COMPLEX fx_cf32
#define FN(name) FXI_JOIN(name, f32)
#include "fine_template.h"
#undef REAL
#undef COMPLEX
#undef FN

#define REAL double
#define COMPLEX fx_cf64
#define FN(name) FXI_JOIN(name, f64)
#include "fine_template.h"

/* x lines of one slab of a real grid in double: rotated, transformed, the half that is wanted put back in place. */
static void real_rows_f64(const struct real_pass *r, int64_t i, void *scratch)
{
	const fxi_squeezed *s = r->shape;
	double *plane = (double *)r->fine + i * s->fine[0] * s->fine[1];
	fx_cf64 *block = scratch;
	const double *weight = r->weight;
	int64_t n = s->fine[0], half = s->dims[0] / 2 + 1;

	for (int64_t y = 0; y < s->fine[1]; y += FXI_LINES) {
		int64_t lines = s->fine[1] - y < FXI_LINES ? s->fine[1] - y : FXI_LINES;

		for (int64_t l = 0; l < lines; l++) {
			const double *row = plane + (y + l) * n;
			double *line = (double *)(block + l * r->ld);

			memcpy(line, row + n / 2, (size_t)(n / 2) * sizeof *line);
			memcpy(line + n / 2, row, (size_t)(n / 2) * sizeof *line);
		}
		fftw_execute_dft_r2c((fftw_plan)(uintptr_t)r->plan, (double *)block, (fftw_complex *)block);
		for (int64_t l = 0; l < lines; l++) {
			double *row = plane + (y + l) * n;
			const double *line = (const double *)(block + l * r->ld);

			/* FFTW's exponent is -1 here: the conjugate is the other one's, since the input is real. */
			for (int64_t x = 0; x < half; x++) {
				row[2 * x] = weight[x] * line[2 * x];
				row[2 * x + 1] = -weight[x] * line[2 * x + 1];
			}
		}
	}
}

static void real_plane(void *arg, int64_t i)
{
	struct real_pass *r = arg;
	const int64_t *fine = r->shape->fine;
	void *scratch = fxi_scratch_take(&r->scratch);

	if (r->lanes)
		FXI_PICK(fxi_columns_real)(r->lanes, fine[1], fine[0], r->shape->dims[0] / 2 + 1, r->weight,
			(float *)r->fine + i * fine[0] * fine[1], scratch);
	else
		real_rows_f64(r, i, scratch);
	for (int64_t b = 0; r->y && b * FXI_LINES < r->y->n_lines; b++)
		fxi_lines_block(r->y, i, b, scratch);
	fxi_scratch_give(&r->scratch, scratch);
}

/*
 * scale / kernel transform at the image's positions first - centre, ..., count of them, in the grid's precision. NULL, explained,
 * without memory.
 */
static void *deapodise_new(fx_math *m, const fx_fine_grid *g, int64_t fine, int64_t count, int64_t centre, double scale)
{
	void *weight = fx_alloc(count, g->type == FX_CF32 ? sizeof(float) : sizeof(double));
	double *at = fx_alloc(2 * count, sizeof *at), *value = at + count;

	if (!weight || !at) {
		fx_free(weight);
		fx_free(at);
		fx_math_fail(m, FX_ENOMEM, "no memory for the kernel's transform");
		return NULL;
	}
	for (int64_t i = 0; i < count; i++)
		at[i] = (double)(i - centre) / (double)fine;
	fx_fine_kernel_transform(g->width, g->beta, count, at, value);
	for (int64_t i = 0; i < count; i++)
		if (g->type == FX_CF32)
			((float *)weight)[i] = (float)(scale / value[i]);
		else
			((double *)weight)[i] = scale / value[i];
	fx_free(at);
	return weight;
}

/* Two passes over every slab, one slab a task. */
struct slabs {
	const fxi_lines *first, *second;
	fxi_scratch scratch;
};

static void slab_task(void *arg, int64_t i)
{
	struct slabs *s = arg;
	void *scratch = fxi_scratch_take(&s->scratch);
	const fxi_lines *passes[2] = {s->first, s->second};

	for (int p = 0; p < 2; p++)
		for (int64_t b = 0; b * FXI_LINES < passes[p]->n_lines; b++)
			fxi_lines_block(passes[p], i, b, scratch);
	fxi_scratch_give(&s->scratch, scratch);
}

static int run_slabs(fx_math *m, fxi_lines *first, fxi_lines *second)
{
	struct slabs s = {.first = first, .second = second};
	int status = fxi_lines_plan(m, first);
	int64_t a, b;

	if (status == FX_OK)
		status = fxi_lines_plan(m, second);
	if (status != FX_OK)
		return status;
	a = fxi_lines_scratch(first);
	b = fxi_lines_scratch(second);
	status = fxi_scratch_new(m, a > b ? a : b, &s.scratch);
	if (status != FX_OK)
		return status;
	fx_parallel(m->n_threads, first->n_groups, slab_task, &s);
	fxi_scratch_free(&s.scratch);
	return FX_OK;
}

/* The fine grid as it looks to the passes: of complex numbers, `pitch` a row, of which `rows` are looked at. */
struct view {
	const fxi_squeezed *shape;
	int type;
	int sign;
	int64_t n_coils;
	void *fine, *image;
	int64_t pitch;      /* complex numbers of a row of the fine grid */
	int64_t lines;      /* x positions that passes along y and z work on */
	int64_t count[3];   /* cropped lengths */
	const void *weight[3];
};

/* One axis's pass in place on the fine grid, cropping (sign +1) or padding (sign -1). */
static fxi_lines pass_of(const struct view *v, int axis)
{
	const int64_t *fine = v->shape->fine;
	int64_t element = axis == 0 ? 1 : axis == 1 ? v->pitch : v->pitch * fine[1];
	fxi_line_side full = {.data = v->fine, .line = 1, .element = element, .count = fine[axis], .centre = fine[axis] / 2};
	fxi_lines p = {.type = v->type, .sign = v->sign, .n = fine[axis], .n_lines = v->lines, .n_groups = fine[2] * v->n_coils};
	fxi_line_side cropped;

	full.group = v->pitch * fine[1];
	if (axis == 0) {
		full.line = v->pitch;
		p.n_lines = v->shape->n_axes > 1 ? fine[1] : v->n_coils;
		p.n_groups = v->shape->n_axes > 1 ? p.n_groups : 1;
	} else if (axis == 2) {
		full.group = v->pitch; /* of one coil: a group is a row */
		p.n_groups = v->count[1];
	}
	cropped = full;
	cropped.count = v->count[axis];
	cropped.centre = v->count[axis] / 2;
	cropped.weight = v->weight[axis];
	p.from = v->sign > 0 ? full : cropped;
	p.to = v->sign > 0 ? cropped : full;
	return p;
}

/* Points the cropped side of the last axis's pass at the image. */
static void aim_at_image(const struct view *v, fxi_lines *p, int axis)
{
	fxi_line_side *side = v->sign > 0 ? &p->to : &p->from;
	const int64_t *n = v->shape->dims;

	side->data = v->image;
	side->element = axis == 0 ? 1 : axis == 1 ? n[0] : n[0] * n[1];
	side->line = axis == 0 ? n[0] : 1;
	side->group = axis == 2 ? n[0] : n[0] * n[1];
}

static int run_outer(fx_math *m, const struct view *v, bool to_image)
{
	fxi_lines p = pass_of(v, 2);
	int64_t grid = v->pitch * v->shape->fine[1] * v->shape->fine[2];
	int64_t voxels = v->shape->dims[0] * v->shape->dims[1] * v->shape->dims[2];
	int64_t size = (int64_t)fx_type_size(v->type);
	int status = FX_OK;

	if (to_image)
		aim_at_image(v, &p, 2);
	for (int64_t c = 0; c < v->n_coils && status == FX_OK; c++) {
		fxi_line_side *fine = v->sign > 0 ? &p.from : &p.to, *other = v->sign > 0 ? &p.to : &p.from;

		fine->data = (char *)v->fine + c * grid * size;
		other->data = to_image ? (char *)v->image + c * voxels * size : fine->data;
		status = fxi_lines_run(m, &p);
	}
	return status;
}

/* All passes of a complex grid, in the order that touches least: towards the image x, y, z, towards the grid z, y, x. */
static int run_passes(fx_math *m, const struct view *v)
{
	int n = v->shape->n_axes, status = FX_OK;
	fxi_lines x = pass_of(v, 0), y = pass_of(v, 1);

	if (n == 3) {
		if (v->sign < 0)
			status = run_outer(m, v, true);
		if (status == FX_OK)
			status = v->sign > 0 ? run_slabs(m, &x, &y) : run_slabs(m, &y, &x);
		if (status == FX_OK && v->sign > 0)
			status = run_outer(m, v, true);
		return status;
	}
	aim_at_image(v, n == 2 ? &y : &x, n - 1);
	if (n == 1)
		return fxi_lines_run(m, &x);
	status = fxi_lines_run(m, v->sign > 0 ? &x : &y);
	return status == FX_OK ? fxi_lines_run(m, v->sign > 0 ? &y : &x) : status;
}

static void free_weights(struct view *v)
{
	for (int a = 0; a < 3; a++)
		fx_free((void *)(uintptr_t)v->weight[a]);
}

/* Kernel transforms of all axes; the scale goes into the first. */
static int make_weights(fx_math *m, const fx_fine_grid *g, struct view *v, double scale, int64_t first_count,
	int64_t first_centre)
{
	for (int a = 0; a < v->shape->n_axes; a++) {
		int64_t count = a == 0 ? first_count : v->count[a], centre = a == 0 ? first_centre : v->count[a] / 2;

		v->weight[a] = deapodise_new(m, g, v->shape->fine[a], count, centre, a == 0 ? scale : 1);
		if (!v->weight[a]) {
			free_weights(v);
			return FX_ENOMEM;
		}
	}
	return FX_OK;
}

/* x and, where there is one, y of every slab of a real grid. */
static int real_slabs(fx_math *m, const struct view *v, struct real_pass *r)
{
	fxi_lines y = pass_of(v, 1);
	int64_t n = v->shape->fine[0], x_bytes = FXI_COLUMNS_SCRATCH(n) * (int64_t)sizeof(float), y_bytes = 0;
	int status = FX_OK;

	if (v->type == FX_CF32) {
		r->lanes = fxi_lanes_plan(m, n);
		status = r->lanes ? FX_OK : m->err->status;
	} else {
		r->plan = fxi_real_plan(m, n, &r->ld);
		x_bytes = FXI_LINES * r->ld * (int64_t)fx_type_size(v->type);
		status = r->plan ? FX_OK : m->err->status;
	}
	if (status == FX_OK && v->shape->n_axes > 1) {
		status = fxi_lines_plan(m, &y);
		if (status == FX_OK)
			y_bytes = fxi_lines_scratch(&y);
		r->y = &y;
	}
	if (status == FX_OK)
		status = fxi_scratch_new(m, x_bytes > y_bytes ? x_bytes : y_bytes, &r->scratch);
	if (status != FX_OK)
		return status;
	fx_parallel(m->n_threads, v->shape->fine[2] * v->n_coils, real_plane, r);
	fxi_scratch_free(&r->scratch);
	r->y = NULL;
	return FX_OK;
}

/* Half of the lines along x say all about a real grid; they fit in place, two reals a complex number. */
static int real_to_image(fx_math *m, const fx_fine_grid *g, struct view *v, double scale)
{
	const fxi_squeezed *s = v->shape;
	struct real_pass r = {.shape = s, .fine = v->fine};
	struct unfold u = {.shape = s, .fine = v->fine, .image = v->image};
	int status;

	v->pitch = s->fine[0] / 2;
	v->lines = s->dims[0] / 2 + 1;
	/* One more for even lengths: the mirror of position -N/2 is +N/2. */
	for (int a = 1; a < 3; a++)
		v->count[a] = s->dims[a] / 2 * 2 + 1;
	status = make_weights(m, g, v, scale, v->lines, 0);
	if (status != FX_OK)
		return status;
	r.weight = v->weight[0];
	status = real_slabs(m, v, &r);
	if (s->n_axes == 3 && status == FX_OK)
		status = run_outer(m, v, false);
	if (status == FX_OK)
		fx_parallel(m->n_threads, s->dims[2] * v->n_coils, v->type == FX_CF32 ? unfold_plane_f32 : unfold_plane_f64, &u);
	free_weights(v);
	return status;
}

static int need_image(fx_math *m, const fx_fine_grid *g, const fx_array *image, int64_t n_coils)
{
	if (image->type != g->type || image->dims[0] != g->dims[0] || image->dims[1] != g->dims[1] ||
		image->dims[2] != g->dims[2] || image->n != g->dims[0] * g->dims[1] * g->dims[2] * n_coils)
		return fx_math_fail(m, FX_EINVAL, "an image of %lld x %lld x %lld %s, %lld in all, where %lld of %lld x %lld x %lld %s belong",
			(long long)image->dims[0], (long long)image->dims[1], (long long)image->dims[2], fx_type_name(image->type),
			(long long)image->n, (long long)n_coils, (long long)g->dims[0], (long long)g->dims[1], (long long)g->dims[2],
			fx_type_name(g->type));
	return FX_OK;
}

static int transform(fx_math *m, const fx_fine_grid *g, int sign, double scale, fx_array *fine, fx_array *image)
{
	fxi_squeezed s;
	struct view v = {.shape = &s, .type = g->type, .sign = sign, .fine = fine->data, .image = image->data};
	int status = fxi_squeeze(m, g, &s);

	if (status == FX_OK)
		status = fxi_need_fine(m, g, fine, &v.n_coils);
	if (status == FX_OK)
		status = need_image(m, g, image, v.n_coils);
	if (status != FX_OK || image->n == 0)
		return status;
	if (s.n_axes == 0) {
		void *from = sign > 0 ? v.fine : v.image, *to = sign > 0 ? v.image : v.fine;

		if (g->type == FX_CF32)
			copy_scaled_f32(image->n, scale, g->real, from, to);
		else
			copy_scaled_f64(image->n, scale, g->real, from, to);
		return FX_OK;
	}
	for (int a = 0; a < 3; a++)
		v.count[a] = s.dims[a];
	if (g->real)
		return real_to_image(m, g, &v, scale);
	v.pitch = s.fine[0];
	v.lines = s.dims[0];
	status = make_weights(m, g, &v, scale, s.dims[0], s.dims[0] / 2);
	if (status == FX_OK) {
		status = run_passes(m, &v);
		free_weights(&v);
	}
	return status;
}

int fxi_host_fine_to_image(fx_math *m, const fx_fine_grid *g, fx_array *fine, double scale, fx_array *image)
{
	return transform(m, g, 1, scale, fine, image);
}

int fxi_host_image_to_fine(fx_math *m, const fx_fine_grid *g, const fx_array *image, double scale, fx_array *fine)
{
	if (g->real)
		return fx_math_fail(m, FX_ENOTSUP, "a real grid is only made into an image, not the other way");
	/* Not written to: towards the grid the image is only read. */
	return transform(m, g, -1, scale, fine, (fx_array *)(uintptr_t)image);
}

/* SPDX-License-Identifier: MIT */
/*
 * stack.c - see stack.h. Positions decide, not slice numbers or thickness: numbers follow the order of excitation, and
 * slices have gaps. Numbers are used only where a header has no usable geometry.
 */
#include "stack.h"

#include <fornix/diffusion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Single-precision positions a metre off centre round to 6e-5 mm; no two slices are as near as this. */
#define SAME_MM 0.01
#define SAME_DIRECTION 1e-3

struct geometry {
	bool usable;
	double axes[3][3];
	double along[3];   /* position along each axis */
};

struct entry {
	int64_t image;     /* order of arrival */
	int64_t slice, duplicate, volume;
	double along;      /* slice position, or number */
	unsigned counters[5];
};

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static struct geometry geometry_of(const ISMRMRD_ImageHeader *h)
{
	struct geometry g = {.usable = fx_image_axes(h, g.axes)};
	double position[3];

	for (int i = 0; i < 3; i++) {
		position[i] = h->position[i];
		if (!isfinite(position[i]) || !(h->field_of_view[i] > 0 || (i == 2 && h->matrix_size[2] == 1)))
			g.usable = false;
	}
	for (int a = 0; a < 3; a++) {
		for (int i = 0; !g.usable && i < 3; i++)
			g.axes[a][i] = a == i;
		g.along[a] = g.usable ? dot(position, g.axes[a]) : 0;
	}
	return g;
}

static bool same_geometry(const fxi_held *a, const struct geometry *g, const struct geometry *h)
{
	if (g->usable != h->usable)
		return false;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			if (fabs(g->axes[i][j] - h->axes[i][j]) > SAME_DIRECTION)
				return false;
	/* Slices may move along their normal only, volumes not at all. */
	for (int i = 0; i < (a->data->dims[2] > 1 ? 3 : 2); i++)
		if (fabs(g->along[i] - h->along[i]) > SAME_MM)
			return false;
	return true;
}

static bool same_stack(const fxi_held *a, const struct geometry *g, const fxi_held *b, const struct geometry *h)
{
	for (int i = 0; i < 4; i++)
		if (a->data->dims[i] != b->data->dims[i])
			return false;
	for (int i = 0; i < 3; i++)
		if (fabsf(a->head.field_of_view[i] - b->head.field_of_view[i]) > (float)SAME_MM)
			return false;
	return a->head.image_series_index == b->head.image_series_index && a->head.image_type == b->head.image_type &&
		same_geometry(a, g, h);
}

static int compare_counters(const struct entry *a, const struct entry *b)
{
	for (int i = 0; i < 5; i++)
		if (a->counters[i] != b->counters[i])
			return a->counters[i] < b->counters[i] ? -1 : 1;
	return 0;
}

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_position(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	return a->along != b->along ? (a->along > b->along) - (a->along < b->along) : compare_numbers(a->image, b->image);
}

static int by_counters_slice_arrival(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	int c = compare_counters(a, b);

	if (c == 0)
		c = compare_numbers(a->slice, b->slice);
	return c ? c : compare_numbers(a->image, b->image);
}

static int by_volume_slice(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;
	int c = compare_counters(a, b);

	if (c == 0)
		c = compare_numbers(a->duplicate, b->duplicate);
	return c ? c : compare_numbers(a->slice, b->slice);
}

/* Numbers the distinct positions of a stack of slices; returns how many there are. */
static int64_t number_slices(struct entry *e, int64_t n)
{
	int64_t slices = 0;
	double at = 0;

	qsort(e, (size_t)n, sizeof *e, by_position);
	for (int64_t i = 0; i < n; i++) {
		if (i == 0 || e[i].along - at > SAME_MM) {
			at = e[i].along;
			slices++;
		}
		e[i].slice = slices - 1;
	}
	return slices;
}

/* Images that agree in all counters and lie at the same place are told apart by their arrival. */
static int64_t number_volumes(struct entry *e, int64_t n)
{
	int64_t volumes = 0;

	qsort(e, (size_t)n, sizeof *e, by_counters_slice_arrival);
	for (int64_t i = 0; i < n; i++) {
		bool again = i > 0 && compare_counters(&e[i - 1], &e[i]) == 0 && e[i - 1].slice == e[i].slice;

		e[i].duplicate = again ? e[i - 1].duplicate + 1 : 0;
	}
	qsort(e, (size_t)n, sizeof *e, by_volume_slice);
	for (int64_t i = 0; i < n; i++) {
		if (i == 0 || compare_counters(&e[i - 1], &e[i]) != 0 || e[i - 1].duplicate != e[i].duplicate)
			volumes++;
		e[i].volume = volumes - 1;
	}
	return volumes;
}

struct teller {
	const char *name;
	void (*warn)(void *arg, const char *text);
	void *arg;
};

static void tell(const struct teller *t, const char *fmt, ...) FX_PRINTF(2, 3);
static void tell(const struct teller *t, const char *fmt, ...)
{
	char text[512];
	int used;
	va_list args;

	if (!t->warn)
		return;
	used = snprintf(text, sizeof text, "%s: ", t->name);
	va_start(args, fmt);
	vsnprintf(text + used, sizeof text - (size_t)used, fmt, args);
	va_end(args);
	t->warn(t->arg, text);
}

/* Distance of the slices: the mean, so that the first and the last are in place whatever lies between. */
static double slice_distance(const struct entry *e, int64_t n, int64_t slices, const struct teller *t)
{
	double first = e[0].along, last = e[n - 1].along, least = INFINITY, most = 0, mean;

	for (int64_t i = 1; i < n; i++) {
		double step = e[i].along - e[i - 1].along;

		if (e[i].slice == e[i - 1].slice)
			continue;
		least = fmin(least, step);
		most = fmax(most, step);
	}
	mean = (last - first) / (double)(slices - 1);
	if (most - least > fmax(2 * SAME_MM, 0.01 * mean))
		tell(t, "slices are unevenly spaced, %.4g to %.4g mm apart; the file says %.4g mm throughout", least, most, mean);
	return mean;
}

/* Slices that all lie in one place although they are numbered: the positions are not to be trusted. */
static bool positions_are_useless(const fxi_held_list *l, const struct entry *e, int64_t n, bool three_d)
{
	bool moves = false, numbered = false;

	for (int64_t i = 1; i < n; i++) {
		moves = moves || fabs(e[i].along - e[0].along) > SAME_MM;
		numbered = numbered || l->list[e[i].image].head.slice != l->list[e[0].image].head.slice;
	}
	return !three_d && numbered && !moves;
}

static void place(fxi_stack *s, const struct geometry *g, const ISMRMRD_ImageHeader *h, double first_along,
	double distance)
{
	s->has_geometry = g->usable;
	memcpy(s->axes, g->axes, sizeof s->axes);
	for (int i = 0; i < 3; i++) {
		double size = h->field_of_view[i] / (double)h->matrix_size[i];

		s->voxel_mm[i] = isfinite(size) && size > 0 ? size : 1;
	}
	if (distance > 0)
		s->voxel_mm[2] = distance;
	for (int i = 0; i < 3; i++) {
		double along[3] = {g->along[0], g->along[1], s->three_d ? g->along[2] : first_along};

		s->origin[i] = 0;
		/* MRD's position is the centre of voxel floor(N/2); a slice is its own centre. */
		for (int a = 0; a < 3 && g->usable; a++) {
			double steps = a == 2 && !s->three_d ? 0 : (double)(s->matrix[a] / 2);

			s->origin[i] += (along[a] - steps * s->voxel_mm[a]) * s->axes[a][i];
		}
	}
}

static void warn_geometry(const ISMRMRD_ImageHeader *h, const fxi_stack *s, bool useless, const struct teller *t)
{
	/* By value: the header is packed, so a pointer into it need not be aligned. */
	const float fov[3] = {h->field_of_view[0], h->field_of_view[1], h->field_of_view[2]};
	bool sized = fov[0] > 0 && fov[1] > 0 && (fov[2] > 0 || h->matrix_size[2] == 1);

	if (useless)
		tell(t, "its slices all have the same position; they are ordered by number, and no place in space is given");
	else if (!s->has_geometry && !sized)
		tell(t, "the field of view is %g x %g x %g mm, so the voxel size is unknown; no place in space is given",
			(double)fov[0], (double)fov[1], (double)fov[2]);
	else if (!s->has_geometry)
		tell(t, "the directions of readout, phase and slice are not orthogonal unit vectors, or the position is no "
			"number; no place in space is given");
	/* Simulators do; no scanner images less than a millimetre. */
	if (sized && fov[0] < 1 && fov[1] < 1)
		tell(t, "the field of view is %g x %g mm: was it written in metres?", (double)fov[0], (double)fov[1]);
}

static void fill_entries(const fxi_held_list *l, struct entry *e, int64_t n, const struct geometry *all, bool usable)
{
	for (int64_t i = 0; i < n; i++) {
		const ISMRMRD_ImageHeader *h = &l->list[e[i].image].head;

		e[i].along = usable ? all[e[i].image].along[2] : h->slice;
		e[i].counters[0] = h->repetition;
		e[i].counters[1] = h->phase;
		e[i].counters[2] = h->set;
		e[i].counters[3] = h->contrast;
		e[i].counters[4] = h->average;
	}
}

static int build_stack(const fxi_held_list *l, struct entry *e, int64_t n, const struct geometry *all,
	const struct teller *t, fx_error *err, fxi_stack *s)
{
	const fxi_held *first = &l->list[e[0].image];
	struct geometry g = all[e[0].image];
	const ISMRMRD_ImageHeader *h = &first->head;
	double distance = 0, first_along;
	bool useless, flat;
	int64_t slots;

	s->three_d = first->data->dims[2] > 1;
	for (int i = 0; i < 3; i++)
		s->matrix[i] = first->data->dims[i];
	s->n_channels = first->data->dims[3];
	fill_entries(l, e, n, all, g.usable);
	useless = positions_are_useless(l, e, n, s->three_d);
	/* A single slice has no neighbour to tell its distance from. */
	if (useless) {
		g.usable = false;
		fill_entries(l, e, n, all, false);
	}
	if (!s->three_d)
		s->matrix[2] = number_slices(e, n);
	flat = !s->three_d && s->matrix[2] == 1 && !(h->field_of_view[2] > 0);
	if (flat)
		g.usable = false;
	if (!s->three_d && s->matrix[2] > 1 && g.usable)
		distance = slice_distance(e, n, s->matrix[2], t);
	first_along = e[0].along;
	place(s, &g, h, first_along, distance);
	if (flat && all[e[0].image].usable)
		tell(t, "the slice's thickness is 0; no place in space is given");
	else
		warn_geometry(h, s, useless, t);
	s->n_volumes = number_volumes(e, n);
	if (!fx_mul_size(s->n_volumes, s->matrix[2], &slots) ||
	    !(s->images = fx_alloc(slots, sizeof *s->images)))
		return fx_error_set(err, FX_ENOMEM, "out of memory for %lld volumes", (long long)s->n_volumes);
	for (int64_t i = 0; i < slots; i++)
		s->images[i] = -1;
	for (int64_t i = 0; i < n; i++) {
		int64_t slices = s->three_d ? s->matrix[2] : 1;

		for (int64_t z = 0; z < slices; z++)
			s->images[e[i].volume * s->matrix[2] + e[i].slice + z] = e[i].image;
	}
	for (int64_t i = 0; i < slots; i++)
		s->n_missing += s->images[i] < 0;
	if (s->n_missing > 0)
		tell(t, "%lld of %lld slices are missing from its %lld volumes; they are 0", (long long)s->n_missing,
			(long long)slots, (long long)s->n_volumes);
	return FX_OK;
}

/* Gives each image the number of its stack; returns how many stacks there are. */
static int64_t assign(const fxi_held_list *l, const struct geometry *all, int64_t *stack_of, int64_t *first_of)
{
	int64_t n_stacks = 0;

	for (int64_t i = 0; i < l->n; i++) {
		int64_t s = 0;

		while (s < n_stacks && !same_stack(&l->list[first_of[s]], &all[first_of[s]], &l->list[i], &all[i]))
			s++;
		if (s == n_stacks)
			first_of[n_stacks++] = i;
		stack_of[i] = s;
	}
	return n_stacks;
}

int fxi_stacks_build(const fxi_held_list *l, const char *name, void (*warn)(void *arg, const char *text), void *warn_arg,
	fx_error *err, fxi_stack **out, int64_t *n_stacks)
{
	const struct teller teller = {name, warn, warn_arg};
	struct geometry *all = fx_alloc(l->n, sizeof *all);
	int64_t *stack_of = fx_alloc(l->n, sizeof *stack_of), *first_of = fx_alloc(l->n, sizeof *first_of);
	struct entry *members = fx_alloc(l->n, sizeof *members);
	fxi_stack *stacks = NULL;
	int status = FX_OK;

	*out = NULL;
	*n_stacks = 0;
	if (!all || !stack_of || !first_of || !members)
		status = FX_ENOMEM;
	for (int64_t i = 0; status == FX_OK && i < l->n; i++)
		all[i] = geometry_of(&l->list[i].head);
	if (status == FX_OK) {
		*n_stacks = assign(l, all, stack_of, first_of);
		stacks = fx_alloc(*n_stacks, sizeof *stacks);
		if (!stacks)
			status = FX_ENOMEM;
	}
	if (status != FX_OK)
		fx_error_set(err, status, "out of memory while sorting %lld images", (long long)l->n);
	for (int64_t s = 0; status == FX_OK && s < *n_stacks; s++) {
		int64_t n = 0;

		for (int64_t i = 0; i < l->n; i++)
			if (stack_of[i] == s)
				members[n++] = (struct entry){.image = i};
		status = build_stack(l, members, n, all, &teller, err, &stacks[s]);
	}
	fx_free(all);
	fx_free(stack_of);
	fx_free(first_of);
	fx_free(members);
	if (status != FX_OK) {
		fxi_stacks_free(stacks, *n_stacks);
		*n_stacks = 0;
		return status;
	}
	*out = stacks;
	return FX_OK;
}

void fxi_stacks_free(fxi_stack *stacks, int64_t n_stacks)
{
	for (int64_t s = 0; stacks && s < n_stacks; s++)
		fx_free(stacks[s].images);
	fx_free(stacks);
}

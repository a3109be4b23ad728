/* SPDX-License-Identifier: MIT */
/*
 * gather_slices.c - where the slices of a series lie. Positions decide, not slice numbers, which follow the order of excitation;
 * numbers are used only where headers have no usable geometry. What a product could write and warn about, uneven or
 * shifted slices, is refused here: tensors and fibres would be bent.
 */
#include "gather.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_DIRECTION 1e-3

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static bool of_volume(const fxi_gathered *e, int64_t volume)
{
	return volume < 0 || e->volume == volume;
}

/* Distinct positions, ascending; the mean distance. */
static int sort_positions(const fxi_gathered_list *l, int64_t volume, fxi_slices *s, fx_error *err)
{
	int64_t n = 0;

	s->along = fx_alloc(l->n, sizeof *s->along);
	if (!s->along)
		return fx_error_set(err, FX_ENOMEM, "no memory for the positions of %lld slices", (long long)l->n);
	for (int64_t i = 0; i < l->n; i++)
		if (of_volume(&l->list[i], volume))
			s->along[n++] = l->list[i].along;
	qsort(s->along, (size_t)n, sizeof *s->along, by_value);
	s->n = 0;
	for (int64_t i = 0; i < n; i++)
		if (s->n == 0 || s->along[i] - s->along[s->n - 1] > FXI_SAME_MM)
			s->along[s->n++] = s->along[i];
	return FX_OK;
}

static int check_spacing(const fxi_slices *s, fx_error *err)
{
	double mean = s->n > 1 ? (s->along[s->n - 1] - s->along[0]) / (double)(s->n - 1) : 0, least = mean, most = mean;
	const char *unit = s->placed ? "mm" : "slice numbers";

	for (int64_t i = 1; i < s->n; i++) {
		least = fmin(least, s->along[i] - s->along[i - 1]);
		most = fmax(most, s->along[i] - s->along[i - 1]);
	}
	/* Headers round positions; a hundredth of the distance moves no fibre. */
	if (most - least > fmax(2 * FXI_SAME_MM, 0.01 * mean))
		return fx_error_set(err, FX_EDATA, "the slices are %.4g to %.4g %s apart; a diffusion series must have evenly spaced "
			"ones: are some missing, or several stacks in one file?", least, most, unit);
	return FX_OK;
}

/* Slices that all lie in one place although they are numbered: the positions are not to be trusted. */
static bool positions_are_useless(const fxi_gathered_list *l, int64_t volume)
{
	const fxi_gathered *first = NULL;
	bool numbered = false;

	for (int64_t i = 0; i < l->n; i++) {
		const fxi_gathered *e = &l->list[i];

		if (!of_volume(e, volume))
			continue;
		first = first ? first : e;
		if (fabs(e->along - first->along) > FXI_SAME_MM)
			return false;
		numbered = numbered || e->head.slice != first->head.slice;
	}
	return numbered;
}

int fxi_gather_slice(const fxi_slices *s, const fx_lattice *lattice, fxi_gathered *e, fx_error *err)
{
	double axes[3][3], along = s->placed ? e->along : (double)e->head.slice;
	const ISMRMRD_ImageHeader *h = &e->head;
	int64_t at = 0;

	if (h->matrix_size[0] != lattice->dims[0] || h->matrix_size[1] != lattice->dims[1] ||
	    (h->matrix_size[2] > 1 && h->matrix_size[2] != lattice->dims[2]))
		return fx_error_set(err, FX_EDATA, "image %u (slice %u, repetition %u) is of %u x %u x %u voxels where the series has %lld x "
			"%lld; one series has one matrix: split the file", h->image_index, h->slice, h->repetition, h->matrix_size[0],
			h->matrix_size[1], h->matrix_size[2], (long long)lattice->dims[0], (long long)lattice->dims[1]);
	for (int a = 0; a < 3 && s->placed; a++) {
		bool same = e->placed && fx_image_axes(h, axes);

		for (int i = 0; i < 3; i++)
			same = same && fabs(axes[a][i] - s->axes[a][i]) < SAME_DIRECTION;
		for (int i = 0; i < 2; i++)
			same = same && fabs(e->across[i] - s->across[i]) < 2 * FXI_SAME_MM;
		if (!same)
			return fx_error_set(err, FX_EDATA, "image %u (slice %u, repetition %u) lies in another plane than the first one, or "
				"beside it; a diffusion series must keep its slices where they are: split the file where they move",
				h->image_index, h->slice, h->repetition);
	}
	while (at < s->n - 1 && s->along[at] < along - 2 * FXI_SAME_MM)
		at++;
	if (!(fabs(s->along[at] - along) <= 2 * FXI_SAME_MM))
		return fx_error_set(err, FX_EDATA, "image %u (slice %u, repetition %u) lies %.4g %s along the slice normal, where the series "
			"has no slice", h->image_index, h->slice, h->repetition, along, s->placed ? "mm" : "slices");
	e->slice = at;
	return FX_OK;
}

/* The entry of a volume that lies lowest, or NULL. */
static fxi_gathered *lowest(const fxi_gathered_list *l, int64_t volume)
{
	fxi_gathered *first = NULL;

	for (int64_t i = 0; i < l->n; i++)
		if (of_volume(&l->list[i], volume) && (!first || l->list[i].along < first->along))
			first = &l->list[i];
	return first;
}

int fxi_gather_lattice(fxi_gathered_list *l, int64_t volume, fxi_slices *s, fx_lattice *out, fx_error *err)
{
	fxi_gathered *first = lowest(l, volume);
	double step[3] = {0}, mm[3];
	bool useless = positions_are_useless(l, volume);
	int status;

	memset(s, 0, sizeof *s);
	if (!first)
		return fx_error_set(err, FX_EDATA, "there is no image to take the series' geometry from");
	s->placed = first->placed && !useless;
	for (int64_t i = 0; i < l->n && !s->placed; i++)
		l->list[i].along = l->list[i].head.slice;
	first = lowest(l, volume);
	status = sort_positions(l, volume, s, err);
	if (status == FX_OK)
		status = check_spacing(s, err);
	if (status != FX_OK)
		return status;
	memcpy(s->across, first->across, sizeof s->across);
	if (s->placed && fx_image_axes(&first->head, s->axes) && s->n > 1)
		for (int i = 0; i < 3; i++)
			step[i] = s->axes[2][i] * (s->along[s->n - 1] - s->along[0]) / (double)(s->n - 1);
	fx_lattice_of_image(&(fx_image){.head = first->head}, dot(step, step) > 0 ? step : NULL, s->n, out);
	if (!useless)
		return FX_OK;
	fx_lattice_voxel_mm(out, mm);
	memset(out->affine, 0, sizeof out->affine);
	for (int i = 0; i < 3; i++)
		out->affine[i][i] = mm[i];
	out->has_affine = false;
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/*
 * gather_counter.c - images kept for later, and which of their counters tells the volumes of a series apart where no header
 * says: the one with as many values as the table has rows.
 */
#include "gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number from an image's meta data; `otherwise` where it is not there. */
static int64_t meta_number(const fx_image *image, const char *name, int64_t otherwise)
{
	const char *text = fx_image_get_meta(image, name);
	char *end = NULL;
	long long value = text ? strtoll(text, &end, 10) : 0;

	return text && end != text && *end == '\0' ? (int64_t)value : otherwise;
}

static void take_counters(fxi_gathered *e, const fx_image *image, const fx_header *scan)
{
	const ISMRMRD_ImageHeader *h = &image->head;
	int64_t own = meta_number(image, FX_META_DIFFUSION, -1);

	e->counters[FX_DIFFUSION_NONE] = e->counters[FX_DIFFUSION_SEGMENT] = -1;
	e->counters[FX_DIFFUSION_AVERAGE] = h->average;
	e->counters[FX_DIFFUSION_CONTRAST] = h->contrast;
	e->counters[FX_DIFFUSION_PHASE] = h->phase;
	e->counters[FX_DIFFUSION_REPETITION] = h->repetition;
	e->counters[FX_DIFFUSION_SET] = h->set;
	for (int i = 0; i < 8; i++)
		e->counters[FX_DIFFUSION_USER_0 + i] = h->user_int[i];
	/* Readouts have counters that image headers have no place for. */
	if (own >= 0 && scan->diffusion_dimension != FX_DIFFUSION_NONE)
		e->counters[scan->diffusion_dimension] = own;
}

int fxi_gathered_add(fxi_gathered_list *l, const fx_image *image, const fx_header *scan, fx_error *err)
{
	double axes[3][3];
	fxi_gathered *e;

	if (!image->data || image->data->place != FX_HOST)
		return fx_error_set(err, FX_EDATA, "image %u has no data on the host", image->head.image_index);
	for (int i = 0; i < 3; i++)
		if (image->data->dims[i] != image->head.matrix_size[i] || image->data->dims[i] < 1)
			return fx_error_set(err, FX_EDATA, "image %u says %u voxels along axis %d and has %lld", image->head.image_index,
				image->head.matrix_size[i], i, (long long)image->data->dims[i]);
	if (image->data->dims[3] != 1 || image->data->n_dims > 4)
		return fx_error_set(err, FX_EDATA, "image %u has %lld channels; combine the coils before the series is gathered",
			image->head.image_index, (long long)image->data->dims[3]);
	if (l->n == l->room) {
		int64_t room = l->room ? 2 * l->room : 64;
		fxi_gathered *list = fx_alloc(room, sizeof *list);

		if (!list)
			return fx_error_set(err, FX_ENOMEM, "no memory to keep %lld images", (long long)room);
		if (l->n > 0)
			memcpy(list, l->list, (size_t)l->n * sizeof *list);
		fx_free(l->list);
		l->list = list;
		l->room = room;
	}
	e = &l->list[l->n++];
	*e = (fxi_gathered){.head = image->head, .data = fx_array_ref(image->data), .volume = -1};
	take_counters(e, image, scan);
	e->shots = meta_number(image, FX_META_SHOTS, 0);
	e->partial = fx_image_get_meta(image, "partial") != NULL;
	e->along = image->head.slice;
	e->placed = fx_image_axes(&image->head, axes);
	for (int a = 0; a < 3 && e->placed; a++) {
		double at = 0;

		for (int i = 0; i < 3; i++)
			at += axes[a][i] * (double)image->head.position[i];
		/* A value that is no number compares with none. */
		e->placed = at - at == 0;
		if (e->placed && a < 2)
			e->across[a] = at;
		else if (e->placed)
			e->along = at;
	}
	return FX_OK;
}

void fxi_gathered_drop(fxi_gathered_list *l, int64_t volume)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < l->n; i++) {
		if (volume < 0 || l->list[i].volume == volume)
			fx_array_unref(l->list[i].data);
		else
			l->list[kept++] = l->list[i];
	}
	l->n = kept;
}

void fxi_gathered_clear(fxi_gathered_list *l)
{
	fxi_gathered_drop(l, -1);
	fx_free(l->list);
	*l = (fxi_gathered_list){0};
}

static int by_number(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

	return (a > b) - (a < b);
}

/* The distinct values of a counter, ascending, into `values` (room for all entries); 0 where some image does not tell. */
static int64_t distinct(const fxi_gathered_list *l, int dimension, int64_t *values)
{
	int64_t n = 0;

	for (int64_t i = 0; i < l->n; i++) {
		values[i] = l->list[i].counters[dimension];
		if (values[i] < 0)
			return 0;
	}
	qsort(values, (size_t)l->n, sizeof *values, by_number);
	for (int64_t i = 0; i < l->n; i++)
		if (n == 0 || values[i] != values[n - 1])
			values[n++] = values[i];
	return n;
}

/* Gives every entry its volume; false where another counter gave it another one before. */
static bool assign(fxi_gathered_list *l, int dimension, const int64_t *values, int64_t n, bool check)
{
	for (int64_t i = 0; i < l->n; i++) {
		const int64_t *at = bsearch(&l->list[i].counters[dimension], values, (size_t)n, sizeof *values, by_number);

		if (check && l->list[i].volume != at - values)
			return false;
		l->list[i].volume = at - values;
	}
	return true;
}

int fxi_gather_find_counter(fxi_gathered_list *l, int64_t n, int *dimension, char *how, size_t size, fx_error *err)
{
	/* In the order in which scanners use them; where two of them say the same, the first is named. */
	static const int order[] = {FX_DIFFUSION_REPETITION, FX_DIFFUSION_CONTRAST, FX_DIFFUSION_SET, FX_DIFFUSION_PHASE,
		FX_DIFFUSION_AVERAGE, FX_DIFFUSION_USER_0, FX_DIFFUSION_USER_0 + 1, FX_DIFFUSION_USER_0 + 2,
		FX_DIFFUSION_USER_0 + 3, FX_DIFFUSION_USER_0 + 4, FX_DIFFUSION_USER_0 + 5, FX_DIFFUSION_USER_0 + 6,
		FX_DIFFUSION_USER_7};
	int64_t *values = fx_alloc(l->n + 1, sizeof *values);
	char counts[256] = "";
	int other = FX_DIFFUSION_NONE;

	*dimension = FX_DIFFUSION_NONE;
	if (!values)
		return fx_error_set(err, FX_ENOMEM, "no memory to count the volumes of %lld images", (long long)l->n);
	for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
		int64_t found = distinct(l, order[i], values);
		size_t used = strlen(counts);

		if (found > 1 || i == 0)
			snprintf(counts + used, sizeof counts - used, "%s%s %lld", used ? ", " : "",
				fx_diffusion_dimension_name(order[i]), (long long)found);
		if (found != n)
			continue;
		if (*dimension == FX_DIFFUSION_NONE) {
			*dimension = order[i];
			assign(l, order[i], values, found, false);
		} else if (other == FX_DIFFUSION_NONE && !assign(l, order[i], values, found, true)) {
			other = order[i];
		}
	}
	fx_free(values);
	if (*dimension == FX_DIFFUSION_NONE)
		return fx_error_set(err, FX_EDATA, "no counter has as many values as the gradient table has rows, %lld (%s): is the "
			"table of this scan, and is the scan whole? Set counter= to say which counter it is", (long long)n, counts);
	if (other != FX_DIFFUSION_NONE)
		return fx_error_set(err, FX_EDATA, "two counters have as many values as the gradient table has rows, %lld: %s and %s "
			"(%s); set counter= to say which one tells the weightings apart", (long long)n,
			fx_diffusion_dimension_name(*dimension), fx_diffusion_dimension_name(other), counts);
	snprintf(how, size, "%s, the counter with as many values as the table has rows (%s)",
		fx_diffusion_dimension_name(*dimension), counts);
	return FX_OK;
}

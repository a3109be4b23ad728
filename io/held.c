/* SPDX-License-Identifier: MIT */
/* held.c - images kept until a product is finished, and their planes as numbers (stack.h). */
#include "stack.h"

#include "mrd_wire.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int fxi_held_add(fxi_held_list *l, const fx_image *image, fx_error *err)
{
	const fx_array *d = image->data;
	const ISMRMRD_ImageHeader *h = &image->head;

	if (!d || d->place != FX_HOST || fxi_mrd_from_type(d->type) == 0 || d->n_dims > 4)
		return fx_error_set(err, FX_EINVAL, "an image needs data {x, y, z, channels} on the host, of a type MRD knows "
			"(this is %s)", d ? fx_type_name(d->type) : "none");
	if (d->dims[0] != h->matrix_size[0] || d->dims[1] != h->matrix_size[1] || d->dims[2] != h->matrix_size[2] ||
	    d->dims[3] != h->channels)
		return fx_error_set(err, FX_EINVAL, "an image's header says %d x %d x %d and %d channels but its data are "
			"%lld x %lld x %lld x %lld", h->matrix_size[0], h->matrix_size[1], h->matrix_size[2], h->channels,
			(long long)d->dims[0], (long long)d->dims[1], (long long)d->dims[2], (long long)d->dims[3]);
	if (d->n == 0)
		return fx_error_set(err, FX_EINVAL, "an image has no voxels");
	if (l->n == l->room) {
		int64_t room = l->room ? 2 * l->room : 64;
		fxi_held *list = realloc(l->list, (size_t)room * sizeof *list);

		if (!list)
			return fx_error_set(err, FX_ENOMEM, "out of memory for %lld images", (long long)room);
		l->list = list;
		l->room = room;
	}
	l->list[l->n].head = *h;
	l->list[l->n++].data = fx_array_ref(image->data);
	return FX_OK;
}

void fxi_held_clear(fxi_held_list *l)
{
	for (int64_t i = 0; i < l->n; i++)
		fx_array_unref(l->list[i].data);
	free(l->list);
	memset(l, 0, sizeof *l);
}

/* The array a plane lies in and the index of its first element; NULL where the plane is missing. */
static const fx_array *plane_of(const fxi_held_list *l, const fxi_stack *s, int64_t volume, int64_t slice,
	int64_t channel, int64_t *first)
{
	int64_t image = s->images[volume * s->matrix[2] + slice], n = s->matrix[0] * s->matrix[1];

	if (image < 0)
		return NULL;
	*first = s->three_d ? n * (slice + s->matrix[2] * channel) : n * channel;
	return l->list[image].data;
}

void fxi_stack_plane(const fxi_held_list *l, const fxi_stack *s, int64_t volume, int64_t slice, int64_t channel,
	float *out)
{
	int64_t n = s->matrix[0] * s->matrix[1], first = 0;
	const fx_array *a = plane_of(l, s, volume, slice, channel, &first);

	if (!a) {
		memset(out, 0, (size_t)n * sizeof *out);
		return;
	}
#define EACH(type, value) for (int64_t i = 0; i < n; i++) { const type v = ((const type *)a->data)[first + i]; out[i] = (float)(value); } break
	switch (a->type) {
	case FX_I16: EACH(int16_t, v);
	case FX_U16: EACH(uint16_t, v);
	case FX_I32: EACH(int32_t, v);
	case FX_U32: EACH(uint32_t, v);
	case FX_F32: EACH(float, v);
	case FX_F64: EACH(double, v);
	/* In double, since squares of floats overflow and underflow in single. */
	case FX_CF32: EACH(fx_cf32, sqrt((double)crealf(v) * crealf(v) + (double)cimagf(v) * cimagf(v)));
	default: EACH(fx_cf64, cabs(v));
	}
#undef EACH
}

void fxi_stack_plane_complex(const fxi_held_list *l, const fxi_stack *s, int64_t volume, int64_t slice, int64_t channel,
	fx_cf32 *out)
{
	int64_t n = s->matrix[0] * s->matrix[1], first = 0;
	const fx_array *a = plane_of(l, s, volume, slice, channel, &first);

	if (a && a->type == FX_CF32) {
		memcpy(out, FX_CF32_OF(a) + first, (size_t)n * sizeof *out);
	} else if (a && a->type == FX_CF64) {
		for (int64_t i = 0; i < n; i++)
			out[i] = (fx_cf32)FX_CF64_OF(a)[first + i];
	} else {
		float *real = (float *)out;

		/* Real values fill the first half and are spread from the back, so that none is overwritten before its turn. */
		fxi_stack_plane(l, s, volume, slice, channel, real);
		for (int64_t i = n - 1; i >= 0; i--) {
			real[2 * i] = real[i];
			real[2 * i + 1] = 0;
		}
	}
}

bool fxi_stack_is_complex(const fxi_held_list *l, const fxi_stack *s)
{
	for (int64_t i = 0; i < s->n_volumes * s->matrix[2]; i++)
		if (s->images[i] >= 0 && l->list[s->images[i]].data->type >= FX_CF32)
			return true;
	return false;
}

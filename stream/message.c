/* SPDX-License-Identifier: MIT */
/*
 * message.c - one refcounted box for every kind of payload. Copies share the arrays, so that handing a message to
 * two readers costs no samples; whoever wants to write asks fx_msg_own and then fx_array_own.
 */
#include "move.h"

#include "pool.h"

#include <stdlib.h>
#include <string.h>

struct fx_msg {
	int refs; /* atomic */
	unsigned kind;
	bool pooled;
	union {
		fx_acquisition acquisition;
		fx_weighted weighted; /* begins with an acquisition: fx_msg_to_weighted only changes the kind */
		fx_waveform waveform;
		fx_frame frame;
		fx_image image;
		fx_series series;
		fx_tensors tensors;
		fx_metric metric;
		fx_tracts tracts;
		char *text;
	} of;
};

_Static_assert(offsetof(fx_weighted, readout) == 0, "fx_msg_to_weighted turns one into the other in place");

static const struct {
	unsigned kind;
	const char *name;
} kinds[] = {
	{FX_ACQUISITION, "acquisition"}, {FX_WEIGHTED, "weighted"}, {FX_WAVEFORM, "waveform"},
	{FX_TEXT, "text"},               {FX_FRAME, "frame"},       {FX_IMAGE, "image"},
	{FX_SERIES, "series"},           {FX_TENSORS, "tensors"},   {FX_METRIC, "metric"},
	{FX_TRACTS, "tracts"},
};

const char *fx_kind_name(unsigned kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (kinds[i].kind == kind)
			return kinds[i].name;
	return "?";
}

static int diffusion_slots(fx_msg *m, fx_array **list[FXI_MSG_ARRAYS])
{
	int n = 0;

	if (m->kind == FX_SERIES) {
		list[n++] = &m->of.series.data;
		list[n++] = &m->of.series.mask;
	} else if (m->kind == FX_TENSORS) {
		list[n++] = &m->of.tensors.d;
		list[n++] = &m->of.tensors.s0;
		list[n++] = &m->of.tensors.residual;
		list[n++] = &m->of.tensors.mask;
		list[n++] = &m->of.tensors.flags;
	} else if (m->kind == FX_METRIC) {
		list[n++] = &m->of.metric.field;
		list[n++] = &m->of.metric.d;
		list[n++] = &m->of.metric.fa;
		list[n++] = &m->of.metric.md;
		list[n++] = &m->of.metric.mask;
	} else if (m->kind == FX_TRACTS) {
		list[n++] = &m->of.tracts.offsets;
		list[n++] = &m->of.tracts.points;
		list[n++] = &m->of.tracts.riemann;
		list[n++] = &m->of.tracts.values;
		list[n++] = &m->of.tracts.seeds;
	}
	return n;
}

int fxi_msg_arrays(fx_msg *m, fx_array **list[FXI_MSG_ARRAYS])
{
	int n = 0;

	if (m->kind == FX_ACQUISITION || m->kind == FX_WEIGHTED) {
		fx_acquisition *a = &m->of.acquisition;

		list[n++] = &a->data;
		list[n++] = &a->traj;
		list[n++] = &a->k;
		list[n++] = &a->weights;
		if (m->kind == FX_WEIGHTED)
			list[n++] = &m->of.weighted.phi2;
	} else if (m->kind == FX_WAVEFORM) {
		list[n++] = &m->of.waveform.data;
	} else if (m->kind == FX_IMAGE) {
		list[n++] = &m->of.image.data;
	} else if (m->kind == FX_FRAME) {
		fx_frame *f = &m->of.frame;

		list[n++] = &f->k;
		list[n++] = &f->weights;
		list[n++] = &f->phi2;
		list[n++] = &f->fhd;
		list[n++] = &f->direct;
		list[n++] = &f->maps;
		list[n++] = &f->kernel;
		list[n++] = &f->estimate;
		list[n++] = &f->first_k;
		list[n++] = &f->w;
	} else {
		n = diffusion_slots(m, list);
	}
	return n;
}

static bool known(unsigned kind)
{
	switch (kind) {
	case FX_ACQUISITION:
	case FX_WEIGHTED:
	case FX_WAVEFORM:
	case FX_TEXT:
	case FX_FRAME:
	case FX_IMAGE:
	case FX_SERIES:
	case FX_TENSORS:
	case FX_METRIC:
	case FX_TRACTS:
		return true;
	default:
		return false;
	}
}

size_t fxi_msg_bytes(void)
{
	return sizeof(fx_msg);
}

fx_msg *fxi_msg_new_in(fxi_pool *p, unsigned kind)
{
	fx_msg *m = kind == FX_ACQUISITION ? fxi_pool_take(p) : NULL;

	if (!m)
		return fx_msg_new(kind);
	memset(m, 0, offsetof(fx_msg, of) + sizeof m->of.weighted); /* which it may become */
	m->refs = 1;
	m->kind = kind;
	m->pooled = true;
	return m;
}

fx_msg *fx_msg_new(unsigned kind)
{
	fx_msg *m = known(kind) ? fx_alloc(1, sizeof *m) : NULL;

	if (!m)
		return NULL;
	m->refs = 1;
	m->kind = kind;
	if (kind == FX_WEIGHTED)
		m->of.weighted.frame_id = -1;
	else if (kind == FX_FRAME)
		m->of.frame.diffusion = -1;
	else if (kind == FX_SERIES)
		m->of.series.volume = -1;
	return m;
}

unsigned fx_msg_kind(const fx_msg *m)
{
	return m->kind;
}

fx_msg *fx_msg_ref(fx_msg *m)
{
	if (m)
		__atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
	return m;
}

static void free_meta(fx_image *image)
{
	for (int64_t i = 0; i < image->n_meta; i++) {
		free(image->meta[i].name);
		free(image->meta[i].value);
	}
	free(image->meta);
	image->meta = NULL;
	image->n_meta = 0;
}

void fx_drop(fx_msg *m)
{
	fx_array **list[FXI_MSG_ARRAYS] = {NULL};
	int n;

	if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	n = fxi_msg_arrays(m, list);
	for (int i = 0; i < n; i++)
		fx_array_unref(*list[i]);
	if (m->kind == FX_IMAGE)
		free_meta(&m->of.image);
	else if (m->kind == FX_TEXT)
		free(m->of.text);
	else if (m->kind == FX_SERIES)
		fx_series_info_unref(m->of.series.info);
	else if (m->kind == FX_TRACTS)
		fx_tracts_info_unref(m->of.tracts.info);
	if (m->pooled)
		fxi_pool_give(m);
	else
		fx_free(m);
}

/* Gives `copy` what a bitwise copy of the payload must not share: meta entries and text. */
static int copy_strings(const fx_msg *m, fx_msg *copy)
{
	if (m->kind == FX_TEXT && m->of.text) {
		copy->of.text = strdup(m->of.text);
		return copy->of.text ? FX_OK : FX_ENOMEM;
	}
	if (m->kind == FX_IMAGE) {
		const fx_image *from = &m->of.image;

		copy->of.image.n_meta = 0;
		copy->of.image.meta = NULL;
		for (int64_t i = 0; i < from->n_meta; i++)
			if (fx_image_set_meta(&copy->of.image, from->meta[i].name, from->meta[i].value) != FX_OK)
				return FX_ENOMEM;
	}
	return FX_OK;
}

int fx_msg_own(fx_msg **m)
{
	fx_msg *copy;
	fx_array **list[FXI_MSG_ARRAYS] = {NULL};
	int n, status;

	if (__atomic_load_n(&(*m)->refs, __ATOMIC_ACQUIRE) == 1)
		return FX_OK;
	copy = fx_msg_new((*m)->kind);
	if (!copy) {
		fx_drop(*m);
		*m = NULL;
		return FX_ENOMEM;
	}
	copy->of = (*m)->of;
	n = fxi_msg_arrays(copy, list);
	for (int i = 0; i < n; i++)
		fx_array_ref(*list[i]);
	if (copy->kind == FX_SERIES)
		fx_series_info_ref(copy->of.series.info);
	else if (copy->kind == FX_TRACTS)
		fx_tracts_info_ref(copy->of.tracts.info);
	status = copy_strings(*m, copy);
	fx_drop(*m);
	if (status != FX_OK) {
		fx_drop(copy);
		copy = NULL;
	}
	*m = copy;
	return status;
}

int64_t fx_msg_bytes(const fx_msg *m)
{
	fx_array **list[FXI_MSG_ARRAYS] = {NULL};
	int n = fxi_msg_arrays((fx_msg *)(uintptr_t)m, list);
	int64_t bytes = (int64_t)sizeof *m;

	for (int i = 0; i < n; i++)
		if (*list[i])
			bytes += (*list[i])->bytes;
	if (m->kind == FX_TEXT && m->of.text)
		bytes += (int64_t)strlen(m->of.text);
	return bytes;
}

fx_acquisition *fx_msg_acquisition(fx_msg *m)
{
	return m->kind == FX_ACQUISITION ? &m->of.acquisition : NULL;
}

fx_weighted *fx_msg_weighted(fx_msg *m)
{
	return m->kind == FX_WEIGHTED ? &m->of.weighted : NULL;
}

fx_waveform *fx_msg_waveform(fx_msg *m)
{
	return m->kind == FX_WAVEFORM ? &m->of.waveform : NULL;
}

fx_frame *fx_msg_frame(fx_msg *m)
{
	return m->kind == FX_FRAME ? &m->of.frame : NULL;
}

fx_image *fx_msg_image(fx_msg *m)
{
	return m->kind == FX_IMAGE ? &m->of.image : NULL;
}

fx_series *fx_msg_series(fx_msg *m)
{
	return m->kind == FX_SERIES ? &m->of.series : NULL;
}

fx_tensors *fx_msg_tensors(fx_msg *m)
{
	return m->kind == FX_TENSORS ? &m->of.tensors : NULL;
}

fx_metric *fx_msg_metric(fx_msg *m)
{
	return m->kind == FX_METRIC ? &m->of.metric : NULL;
}

fx_tracts *fx_msg_tracts(fx_msg *m)
{
	return m->kind == FX_TRACTS ? &m->of.tracts : NULL;
}

const char *fx_msg_text(const fx_msg *m)
{
	if (m->kind != FX_TEXT)
		return NULL;
	return m->of.text ? m->of.text : "";
}

fx_msg *fx_msg_new_text(const char *text)
{
	fx_msg *m = fx_msg_new(FX_TEXT);

	if (!m)
		return NULL;
	m->of.text = strdup(text);
	if (!m->of.text) {
		fx_drop(m);
		return NULL;
	}
	return m;
}

int fx_msg_to_weighted(fx_msg *m)
{
	/* The rest of the payload behind the readout is still zero: nothing writes there while it is an acquisition. */
	if (m->kind != FX_ACQUISITION || __atomic_load_n(&m->refs, __ATOMIC_ACQUIRE) != 1)
		return FX_EINVAL;
	m->kind = FX_WEIGHTED;
	m->of.weighted.phi2 = NULL;
	m->of.weighted.data_norm2 = 0;
	m->of.weighted.frame_id = -1;
	return FX_OK;
}

int fx_image_set_meta(fx_image *image, const char *name, const char *value)
{
	char *name_copy, *value_copy = strdup(value);
	fx_meta *grown;

	if (!value_copy)
		return FX_ENOMEM;
	for (int64_t i = 0; i < image->n_meta; i++)
		if (strcmp(image->meta[i].name, name) == 0) {
			free(image->meta[i].value);
			image->meta[i].value = value_copy;
			return FX_OK;
		}
	name_copy = strdup(name);
	grown = name_copy ? realloc(image->meta, (size_t)(image->n_meta + 1) * sizeof *grown) : NULL;
	if (!grown) {
		free(name_copy);
		free(value_copy);
		return FX_ENOMEM;
	}
	image->meta = grown;
	image->meta[image->n_meta++] = (fx_meta){name_copy, value_copy};
	return FX_OK;
}

const char *fx_image_get_meta(const fx_image *image, const char *name)
{
	for (int64_t i = 0; i < image->n_meta; i++)
		if (strcmp(image->meta[i].name, name) == 0)
			return image->meta[i].value;
	return NULL;
}

void fx_slot_take(fx_array **slot, fx_array *a)
{
	/* In this order, so that giving a slot its own array (with a reference of its own) is harmless. */
	fx_array *old = *slot;

	*slot = a;
	fx_array_unref(old);
}

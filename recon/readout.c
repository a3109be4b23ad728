/* SPDX-License-Identifier: MIT */
/* readout.c - cutting and joining readouts, and turning volumes on a frame's grid into images. */
#include <fornix/recon.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The message headers' version: MRD has only ever had this one. */
#define MRD_VERSION 1

/* Samples [first, first + count) of an array whose axis `axis` counts samples; *slot is replaced. */
static int crop_axis(fx_math *m, fx_array **slot, int axis, int64_t first, int64_t count)
{
	const fx_array *a = *slot;
	int64_t dims[FX_MAX_DIMS], inner = (int64_t)fx_type_size(a->type), outer = 1;
	fx_array *b;
	int status;

	memcpy(dims, a->dims, sizeof dims);
	dims[axis] = count;
	status = fx_array_new(a->type, a->n_dims, dims, &b);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory to crop a readout to %lld samples", (long long)count);
	for (int i = 0; i < axis; i++)
		inner *= a->dims[i];
	for (int i = axis + 1; i < a->n_dims; i++)
		outer *= a->dims[i];
	for (int64_t o = 0; o < outer && count > 0; o++)
		memcpy((char *)b->data + o * count * inner, (const char *)a->data + (o * a->dims[axis] + first) * inner,
			(size_t)(count * inner));
	fx_slot_take(slot, b);
	return FX_OK;
}

int fx_readout_crop(fx_math *m, fx_acquisition *a, int64_t first, int64_t count)
{
	int64_t samples = a->data->dims[0], centre = (int64_t)a->head.center_sample - first;
	int status = FX_OK;

	if (first < 0 || count < 0 || first + count > samples)
		return fx_math_fail(m, FX_EINVAL, "cannot keep samples %lld to %lld of a readout of %lld", (long long)first,
			(long long)(first + count), (long long)samples);
	if (first > 0 || count < samples) {
		status = crop_axis(m, &a->data, 0, first, count);
		if (status == FX_OK && a->traj)
			status = crop_axis(m, &a->traj, 1, first, count);
		if (status == FX_OK && a->k)
			status = crop_axis(m, &a->k, 1, first, count);
		if (status == FX_OK && a->weights)
			status = crop_axis(m, &a->weights, 0, first, count);
	}
	if (status != FX_OK)
		return status;
	a->head.center_sample = (uint16_t)(centre < 0 ? 0 : centre);
	a->head.number_of_samples = (uint16_t)count;
	a->head.discard_pre = 0;
	a->head.discard_post = 0;
	return FX_OK;
}

int fx_readout_trim(fx_math *m, fx_acquisition *a)
{
	int64_t samples = a->data->dims[0], pre = a->head.discard_pre, post = a->head.discard_post;

	if (pre == 0 && post == 0)
		return FX_OK;
	if (pre + post > samples)
		return fx_math_fail(m, FX_EDATA,
			"readout %u: discard_pre %lld and discard_post %lld leave nothing of its %lld samples",
			a->head.scan_counter, (long long)pre, (long long)post, (long long)samples);
	return fx_readout_crop(m, a, pre, samples - pre - post);
}

int fx_readout_finite(fx_math *m, const fx_acquisition *a)
{
	const float *v = (const float *)a->data->data;
	int64_t samples = a->data->dims[0];

	for (int64_t i = 0; i < 2 * a->data->n; i++)
		if (!isfinite(v[i]))
			return fx_math_fail(m, FX_EDATA,
				"readout %u (slice %u, step %u): sample %lld of coil %lld is not a finite number; the raw data are damaged",
				a->head.scan_counter, a->head.idx.slice, a->head.idx.kspace_encode_step_1,
				(long long)(i / 2 % samples), (long long)(i / 2 / samples));
	return FX_OK;
}

int fx_join(fx_math *m, fx_array *const *pieces, int64_t n, fx_array **out)
{
	int64_t dims[FX_MAX_DIMS], total = 0, at = 0;
	int last, status;

	*out = NULL;
	if (n == 0)
		return fx_math_fail(m, FX_EINVAL, "nothing to join");
	last = pieces[0]->n_dims - 1;
	memcpy(dims, pieces[0]->dims, sizeof dims);
	for (int64_t i = 0; i < n; i++)
		total += pieces[i]->dims[last];
	dims[last] = total;
	status = fx_array_new(pieces[0]->type, last + 1, dims, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory to join %lld readouts of together %lld samples", (long long)n,
			(long long)total);
	for (int64_t i = 0; i < n; i++) {
		if (pieces[i]->bytes > 0)
			memcpy((char *)(*out)->data + at, pieces[i]->data, (size_t)pieces[i]->bytes);
		at += pieces[i]->bytes;
	}
	return FX_OK;
}

int fx_join_samples(fx_math *m, fx_array *const *pieces, int64_t n, fx_array **out)
{
	int64_t total = 0, coils, size, at = 0;
	int status;

	*out = NULL;
	if (n == 0)
		return fx_math_fail(m, FX_EINVAL, "nothing to join");
	coils = pieces[0]->dims[1];
	size = (int64_t)fx_type_size(pieces[0]->type);
	for (int64_t i = 0; i < n; i++)
		total += pieces[i]->dims[0];
	status = fx_array_new2(pieces[0]->type, total, coils, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory to join %lld samples of %lld coils", (long long)total,
			(long long)coils);
	for (int64_t i = 0; i < n; i++) {
		int64_t samples = pieces[i]->dims[0];

		for (int64_t c = 0; c < coils && samples > 0; c++)
			memcpy((char *)(*out)->data + (c * total + at) * size,
				(const char *)pieces[i]->data + c * samples * size, (size_t)(samples * size));
		at += samples;
	}
	return FX_OK;
}

int fx_resize_centred(fx_math *m, const fx_array *a, const int64_t dims[3], fx_array **out)
{
	int64_t to[FX_MAX_DIMS], low[3], high[3], shift[3], volumes = 1;
	int64_t size = (int64_t)fx_type_size(a->type);
	bool same = true;
	int status;

	*out = NULL;
	memcpy(to, a->dims, sizeof to);
	for (int i = 0; i < 3; i++) {
		to[i] = dims[i];
		same = same && dims[i] == a->dims[i];
		/* target index t holds source index t + shift: centre floor(N/2) falls on centre floor(N/2) */
		shift[i] = a->dims[i] / 2 - dims[i] / 2;
		low[i] = shift[i] < 0 ? -shift[i] : 0;
		high[i] = a->dims[i] - shift[i] < dims[i] ? a->dims[i] - shift[i] : dims[i];
	}
	if (same) {
		*out = fx_array_ref((fx_array *)(uintptr_t)a);
		return FX_OK;
	}
	status = fx_array_new(a->type, a->n_dims < 3 ? 3 : a->n_dims, to, out);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a volume of %lld x %lld x %lld", (long long)dims[0],
			(long long)dims[1], (long long)dims[2]);
	for (int i = 3; i < FX_MAX_DIMS; i++)
		volumes *= a->dims[i];
	for (int64_t v = 0; v < volumes; v++)
		for (int64_t z = low[2]; z < high[2]; z++)
			for (int64_t y = low[1]; y < high[1]; y++) {
				int64_t t = ((v * to[2] + z) * to[1] + y) * to[0] + low[0];
				int64_t s = ((v * a->dims[2] + z + shift[2]) * a->dims[1] + y + shift[1]) * a->dims[0] +
					low[0] + shift[0];

				memcpy((char *)(*out)->data + t * size, (const char *)a->data + s * size,
					(size_t)((high[0] - low[0]) * size));
			}
	return FX_OK;
}

static int mrd_type(int type)
{
	switch (type) {
	case FX_U16:
		return ISMRMRD_USHORT;
	case FX_I16:
		return ISMRMRD_SHORT;
	case FX_U32:
		return ISMRMRD_UINT;
	case FX_I32:
		return ISMRMRD_INT;
	case FX_F32:
		return ISMRMRD_FLOAT;
	case FX_F64:
		return ISMRMRD_DOUBLE;
	case FX_CF32:
		return ISMRMRD_CXFLOAT;
	default:
		return ISMRMRD_CXDOUBLE;
	}
}

void fx_image_describe(fx_image *image)
{
	ISMRMRD_ImageHeader *h = &image->head;

	h->version = MRD_VERSION;
	h->data_type = (uint16_t)mrd_type(image->data->type);
	for (int i = 0; i < 3; i++)
		h->matrix_size[i] = (uint16_t)image->data->dims[i];
	h->channels = (uint16_t)image->data->dims[3];
	h->image_type = image->data->type >= FX_CF32 ? ISMRMRD_IMTYPE_COMPLEX : ISMRMRD_IMTYPE_MAGNITUDE;
}

static void fill_image_header(ISMRMRD_ImageHeader *h, const fx_frame *frame)
{
	const ISMRMRD_AcquisitionHeader *a = &frame->head;

	h->measurement_uid = a->measurement_uid;
	for (int i = 0; i < 3; i++) {
		h->field_of_view[i] = (float)frame->geometry.fov_mm[i];
		h->position[i] = frame->geometry.position[i];
		h->read_dir[i] = frame->geometry.read_dir[i];
		h->phase_dir[i] = frame->geometry.phase_dir[i];
		h->slice_dir[i] = frame->geometry.slice_dir[i];
		h->patient_table_position[i] = a->patient_table_position[i];
		h->physiology_time_stamp[i] = a->physiology_time_stamp[i];
	}
	h->average = a->idx.average;
	h->slice = a->idx.slice;
	h->contrast = a->idx.contrast;
	h->phase = a->idx.phase;
	h->repetition = a->idx.repetition;
	h->set = a->idx.set;
	h->acquisition_time_stamp = a->acquisition_time_stamp;
	h->image_index = (uint16_t)(frame->id + 1);
	h->image_series_index = 0;
	memcpy(h->user_int, a->user_int, sizeof h->user_int);
	memcpy(h->user_float, a->user_float, sizeof h->user_float);
}

/* What MRD's image header has no place for. */
static int add_meta(fx_image *image, const fx_frame *frame)
{
	char number[24];
	int status = frame->partial ? fx_image_set_meta(image, "partial", "true") : FX_OK;

	if (status == FX_OK && frame->n_shots > 0) {
		snprintf(number, sizeof number, "%lld", (long long)frame->n_shots);
		status = fx_image_set_meta(image, FX_META_SHOTS, number);
	}
	if (status == FX_OK && frame->diffusion >= 0) {
		snprintf(number, sizeof number, "%lld", (long long)frame->diffusion);
		status = fx_image_set_meta(image, FX_META_DIFFUSION, number);
	}
	return status;
}

int fx_frame_image(fx_math *m, const fx_frame *frame, const fx_array *volume, fx_msg **out)
{
	fx_array *data = NULL, *here = NULL;
	fx_image *image;
	int status;

	*out = NULL;
	/* An image is on its way out: from here on it is on the host. */
	status = m->ops->download(m, volume, &here);
	if (status == FX_OK)
		status = fx_resize_centred(m, here, frame->geometry.matrix, &data);
	fx_array_unref(here);
	if (status != FX_OK)
		return status;
	*out = fx_msg_new(FX_IMAGE);
	if (!*out) {
		fx_array_unref(data);
		return fx_math_fail(m, FX_ENOMEM, "no memory for an image message");
	}
	image = fx_msg_image(*out);
	image->data = data;
	fill_image_header(&image->head, frame);
	fx_image_describe(image);
	if (add_meta(image, frame) != FX_OK) {
		fx_drop(*out);
		*out = NULL;
		return fx_math_fail(m, FX_ENOMEM, "no memory for an image's meta data");
	}
	return FX_OK;
}

/* SPDX-License-Identifier: MIT */
/* to_integer: real images to whole numbers, by what they show: magnitudes, signed parts, phases. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UINT16, INT16, INT32, UINT32 };

struct state {
	int type;
	int64_t min, max, offset;
	int64_t n_clipped;
	bool told_type;
};

static const char *const types[] = {[UINT16] = "uint16", [INT16] = "int16", [INT32] = "int32", [UINT32] = "uint32", NULL};

static const struct {
	int array_type;
	int64_t min, max;
} ranges[] = {
	[UINT16] = {FX_U16, 0, UINT16_MAX}, [INT16] = {FX_I16, INT16_MIN, INT16_MAX}, [INT32] = {FX_I32, INT32_MIN, INT32_MAX},
	[UINT32] = {FX_U32, 0, UINT32_MAX},
};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, type, "uint16", types, "Type of the result"),
	FX_PROP(struct state, min, "0", -2147483648.0, 4294967295.0, "What is below becomes this"),
	FX_PROP(struct state, max, "4095", -2147483648.0, 4294967295.0, "What is above becomes this"),
	FX_PROP(struct state, offset, "2048", -2147483648.0, 4294967295.0,
		"Added to real and imaginary parts; a phase of pi is twice this, of 0 this"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (s->min > s->max)
		return fx_fail(ctx, FX_EINVAL, "min, %lld, is above max, %lld", (long long)s->min, (long long)s->max);
	if (s->min < ranges[s->type].min || s->max > ranges[s->type].max)
		return fx_fail(ctx, FX_EINVAL, "min and max, %lld and %lld, must lie within %s: %lld to %lld", (long long)s->min,
			(long long)s->max, types[s->type], (long long)ranges[s->type].min, (long long)ranges[s->type].max);
	return FX_OK;
}

static double shown(const struct state *s, int image_type, double v)
{
	switch (image_type) {
	case ISMRMRD_IMTYPE_REAL:
	case ISMRMRD_IMTYPE_IMAG:
		return v + (double)s->offset;
	case ISMRMRD_IMTYPE_PHASE:
		return v * (double)s->offset / M_PI + (double)s->offset;
	default:
		return fabs(v);
	}
}

static void put(fx_array *to, int64_t i, int64_t value)
{
	switch (to->type) {
	case FX_U16:
		((uint16_t *)to->data)[i] = (uint16_t)value;
		break;
	case FX_I16:
		((int16_t *)to->data)[i] = (int16_t)value;
		break;
	case FX_I32:
		((int32_t *)to->data)[i] = (int32_t)value;
		break;
	default:
		((uint32_t *)to->data)[i] = (uint32_t)value;
	}
}

/* A window that a viewer was told moves with the values. */
static int move_window(const struct state *s, fx_image *image)
{
	static const char entry[] = "GADGETRON_WindowCenter";
	const char *text = fx_image_get_meta(image, entry);
	char moved[32];

	if (!text || s->offset == 0)
		return FX_OK;
	snprintf(moved, sizeof moved, "%lld", strtoll(text, NULL, 10) + (long long)s->offset);
	return fx_image_set_meta(image, entry, moved);
}

static int apply(struct state *s, fx_ctx *ctx, fx_image *image)
{
	uint16_t image_type = image->head.image_type;
	fx_array *from = NULL, *to = NULL;
	int status = fx_array_convert(image->data, FX_F64, &from);

	if (status == FX_OK)
		status = fx_array_new(ranges[s->type].array_type, from->n_dims, from->dims, &to);
	for (int64_t i = 0; status == FX_OK && i < from->n; i++) {
		double v = shown(s, image_type, FX_F64_OF(from)[i]), c = fmin(fmax(v, (double)s->min), (double)s->max);

		s->n_clipped += !(v == c);
		put(to, i, llround(c));
	}
	fx_array_unref(from);
	if (status == FX_OK && (image_type == ISMRMRD_IMTYPE_REAL || image_type == ISMRMRD_IMTYPE_IMAG))
		status = move_window(s, image);
	if (status != FX_OK) {
		fx_array_unref(to);
		return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)image->data->n);
	}
	fx_slot_take(&image->data, to);
	fx_image_describe(image);
	if (image_type >= ISMRMRD_IMTYPE_MAGNITUDE && image_type <= ISMRMRD_IMTYPE_IMAG)
		image->head.image_type = image_type;
	else if (!s->told_type) {
		s->told_type = true;
		fx_warn(ctx, "real images of type %u, which is none of magnitude, phase, real and imaginary, are taken to be magnitudes",
			image_type);
	}
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int type = fx_msg_image(msg)->data->type, status;

	if (type != FX_F32 && type != FX_F64)
		return fx_emit(ctx, msg);
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = apply(self, ctx, fx_msg_image(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot make integers of an image");
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	fx_record_count(ctx, "clipped", s->n_clipped);
	return FX_OK;
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "to_integer",
	.summary = "Make integers of real images, clamped to a range",
	.description = "Magnitudes are rounded; real and imaginary parts get offset added, so that 0 lies within an unsigned range; phases v "
		"become v offset / pi + offset. Complex images and integers pass untouched. It scales nothing: put auto_scale or scale in "
		"front. Values that were clamped are counted in the record.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush,
};

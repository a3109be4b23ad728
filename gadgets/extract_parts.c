/* SPDX-License-Identifier: MIT */
/* extract_parts: several real parts of each complex image, every one a series of its own. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

enum { MAGNITUDE, PHASE, REAL, IMAGINARY, N_PARTS };

struct state {
	bool magnitude, phase, real, imaginary;
	float offset, phase_offset;
};

static const fx_prop props[] = {
	FX_PROP(struct state, magnitude, "true", 0, 1, "Give the magnitude, in the image's own series"),
	FX_PROP(struct state, phase, "false", 0, 1, "Give the phase in radians, in that series + 3000"),
	FX_PROP(struct state, real, "false", 0, 1, "Give the real part, in that series + 1000"),
	FX_PROP(struct state, imaginary, "false", 0, 1, "Give the imaginary part, in that series + 2000"),
	FX_PROP(struct state, offset, "0", -1e30, 1e30, "Added to real and imaginary parts"),
	FX_PROP(struct state, phase_offset, "0", -100, 100, "Added to phases, which lie between -pi and pi (radians)"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (!s->magnitude && !s->phase && !s->real && !s->imaginary)
		return fx_fail(ctx, FX_EINVAL, "magnitude, phase, real and imaginary are all false: no image would be left");
	return FX_OK;
}

static float value(const struct state *s, int part, const float v[2])
{
	switch (part) {
	case MAGNITUDE:
		return hypotf(v[0], v[1]);
	case PHASE:
		return atan2f(v[1], v[0]) + s->phase_offset;
	case REAL:
		return v[0] + s->offset;
	default:
		return v[1] + s->offset;
	}
}

static int take(const struct state *s, int part, const fx_array *from, fx_image *image)
{
	static const uint16_t types[] = {[MAGNITUDE] = ISMRMRD_IMTYPE_MAGNITUDE, [PHASE] = ISMRMRD_IMTYPE_PHASE,
		[REAL] = ISMRMRD_IMTYPE_REAL, [IMAGINARY] = ISMRMRD_IMTYPE_IMAG};
	static const uint16_t series[] = {[MAGNITUDE] = 0, [PHASE] = 3000, [REAL] = 1000, [IMAGINARY] = 2000};
	fx_array *to;
	int status = fx_array_new(FX_F32, from->n_dims, from->dims, &to);

	if (status != FX_OK)
		return status;
	for (int64_t i = 0; i < to->n; i++)
		FX_F32_OF(to)[i] = value(s, part, (const float *)from->data + 2 * i);
	fx_slot_take(&image->data, to);
	fx_image_describe(image);
	image->head.image_type = types[part];
	image->head.image_series_index = (uint16_t)(image->head.image_series_index + series[part]);
	return FX_OK;
}

/* Gives out every wanted part; the message is borrowed. */
static int give(const struct state *s, fx_ctx *ctx, fx_msg *msg, const fx_array *from)
{
	const bool wanted[N_PARTS] = {s->magnitude, s->phase, s->real, s->imaginary};

	for (int part = 0; part < N_PARTS; part++) {
		fx_msg *copy = wanted[part] ? fx_msg_ref(msg) : NULL;
		int status;

		if (!copy)
			continue;
		status = fx_msg_own(&copy);
		if (status == FX_OK)
			status = take(s, part, from, fx_msg_image(copy));
		if (status != FX_OK) {
			fx_drop(copy);
			return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)from->n);
		}
		status = fx_emit(ctx, copy);
		if (status != FX_OK)
			return status;
	}
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const fx_image *image = fx_msg_image(msg);
	fx_array *from = NULL;
	int status;

	/* A magnitude is a complex image whose imaginary part is 0; a phase or a real part is not. */
	if (image->data->type < FX_CF32 && image->head.image_type != ISMRMRD_IMTYPE_MAGNITUDE)
		return fx_emit(ctx, msg);
	status = fx_array_convert(image->data, FX_CF32, &from);
	if (status != FX_OK)
		fx_fail(ctx, status, "no memory for an image of %lld values", (long long)image->data->n);
	else
		status = give(self, ctx, msg, from);
	fx_array_unref(from);
	fx_drop(msg);
	return status;
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "extract_parts",
	.summary = "Magnitude, phase, real and imaginary parts of images, each as a series of its own",
	.description = "For one part in place of the image, extract is simpler. Magnitude images count as complex ones without imaginary part; "
		"phases, real and imaginary parts pass untouched.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.open = open_gadget, .process = process,
};

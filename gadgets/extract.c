/* SPDX-License-Identifier: MIT */
/* extract: one real part of complex images: magnitude, phase, real or imaginary. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

enum { MAGNITUDE, PHASE, REAL, IMAGINARY, TYPED };

struct state {
	int part;
};

static const char *const parts[] = {[MAGNITUDE] = "magnitude", [PHASE] = "phase", [REAL] = "real",
	[IMAGINARY] = "imaginary", [TYPED] = "typed", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, part, "magnitude", parts, "What to take; phase in radians, -pi to pi; typed: what the image's own type says, the magnitude where it says none of these"),
	FX_PROP_END
};

static float value(int part, const float v[2])
{
	switch (part) {
	case MAGNITUDE:
		return hypotf(v[0], v[1]);
	case PHASE:
		return atan2f(v[1], v[0]);
	case REAL:
		return v[0];
	default:
		return v[1];
	}
}

static int part_of(const fx_image *image)
{
	switch (image->head.image_type) {
	case ISMRMRD_IMTYPE_PHASE:
		return PHASE;
	case ISMRMRD_IMTYPE_REAL:
		return REAL;
	case ISMRMRD_IMTYPE_IMAG:
		return IMAGINARY;
	default:
		return MAGNITUDE;
	}
}

static int take(const struct state *s, fx_ctx *ctx, fx_image *image)
{
	static const uint16_t types[] = {[MAGNITUDE] = ISMRMRD_IMTYPE_MAGNITUDE, [PHASE] = ISMRMRD_IMTYPE_PHASE,
		[REAL] = ISMRMRD_IMTYPE_REAL, [IMAGINARY] = ISMRMRD_IMTYPE_IMAG};
	fx_array *from = NULL, *to = NULL;
	int part = s->part == TYPED ? part_of(image) : s->part;
	int status = fx_array_convert(image->data, FX_CF32, &from);

	if (status == FX_OK)
		status = fx_array_new(FX_F32, from->n_dims, from->dims, &to);
	for (int64_t i = 0; status == FX_OK && i < to->n; i++)
		FX_F32_OF(to)[i] = value(part, (const float *)from->data + 2 * i);
	fx_array_unref(from);
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)image->data->n);
	fx_slot_take(&image->data, to);
	fx_image_describe(image);
	image->head.image_type = types[part];
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status;

	/* a real image of a type is already what its type says */
	if (((const struct state *)self)->part == TYPED && fx_msg_image(msg)->data->type < FX_CF32)
		return fx_emit(ctx, msg);
	status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = take(self, ctx, fx_msg_image(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot extract from an image");
	}
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "extract",
	.summary = "Magnitude, phase, real or imaginary part of images",
	.description = "Several parts of the same images: write what there is, extract, write again under another name, since writers pass "
		"images on: <write_nifti/><extract part=\"phase\"/><write_nifti name=\"phase.nii.gz\"/>.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process,
};

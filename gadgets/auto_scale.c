/* SPDX-License-Identifier: MIT */
/* auto_scale: bring the bright end of each magnitude image to a fixed value, from a histogram. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

struct state {
	float max_value;
	int64_t histogram_bins;
	int64_t *counts;           /* {histogram_bins} */
};

static const fx_prop props[] = {
	FX_PROP(struct state, max_value, "2048", 1e-30, 1e30, "What the 99th percentile becomes"),
	FX_PROP(struct state, histogram_bins, "100", 1, 1e6, "Bins of the histogram from 0 to the image's largest value"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	s->counts = fx_alloc(s->histogram_bins, sizeof *s->counts);
	return s->counts ? FX_OK : fx_fail(ctx, FX_ENOMEM, "no memory for %lld bins", (long long)s->histogram_bins);
}

/*
 * The upper edge of the bin behind the one in which 99 % of the values are reached; 0 where no value is above 0. In single
 * precision throughout: which bin a value on an edge falls into decides the factor.
 */
static float bright_end(struct state *s, const fx_array *a)
{
	const float *v = FX_F32_OF(a);
	int64_t bins = s->histogram_bins, seen = 0, bin = 0;
	float max = 0;

	for (int64_t i = 0; i < a->n; i++)
		if (isfinite(v[i]) && v[i] > max)
			max = v[i];
	if (!(max > 0))
		return 0;
	for (int64_t i = 0; i < bins; i++)
		s->counts[i] = 0;
	for (int64_t i = 0; i < a->n; i++) {
		float at = floorf(v[i] / max * (float)bins);

		s->counts[at >= (float)bins ? bins - 1 : at > 0 ? (int64_t)at : 0]++; /* NaN and what is below 0 count as 0 */
	}
	while (bin < bins && (double)seen < 0.99 * (double)a->n)
		seen += s->counts[bin++];
	return (float)(bin + 1) * (max / (float)bins);
}

static int apply(struct state *s, fx_ctx *ctx, fx_image *image)
{
	fx_array *out = NULL;
	float end;
	double factor;
	int status = fx_array_convert(image->data, FX_F32, &out);

	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)image->data->n);
	end = bright_end(s, out);
	factor = end > 0 ? (double)(s->max_value / end) : 1;
	for (int64_t i = 0; i < out->n; i++)
		FX_F32_OF(out)[i] = (float)((double)FX_F32_OF(out)[i] * factor);
	fx_record_number(ctx, "factor", factor);
	fx_slot_take(&image->data, out);
	fx_image_describe(image);
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const fx_image *image = fx_msg_image(msg);
	int status;

	if (image->head.image_type != ISMRMRD_IMTYPE_MAGNITUDE || image->data->type >= FX_CF32)
		return fx_emit(ctx, msg);
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = apply(self, ctx, fx_msg_image(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot scale an image");
	}
	return fx_emit(ctx, msg);
}

static void close_gadget(void *self)
{
	fx_free(((struct state *)self)->counts);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "auto_scale",
	.summary = "Scale each magnitude image so that its 99th percentile has a fixed value",
	.description = "The percentile comes from a histogram from 0 to the image's largest value, and is rounded up by one to two bins, as "
		"Gadgetron's AutoScaleGadget does: the same images come out. Images of other types (phase, real, imaginary, complex) pass "
		"untouched. The factor of each image is in the record.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.open = open_gadget, .process = process, .close = close_gadget,
};

/* SPDX-License-Identifier: MIT */
/* intensity: one scaling of a whole examination: constant, or found on its first image; maps have factors of their own. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define USUAL_FACTOR 4.0   /* for images in units of noise */
#define USUAL_MAX 2048.0

struct state {
	bool constant, once;
	double factor, low, high;
	const char *dedicated_entry;
	double dedicated, gfactor, snr, std;
	double found;              /* 0: not yet */
};

static const fx_prop props[] = {
	FX_PROP(struct state, constant, "true", 0, 1, "Multiply by factor; else the factor comes from the images"),
	FX_PROP(struct state, factor, "4", -1e30, 1e30, "The constant factor; 0 or below: as with constant=false"),
	FX_PROP(struct state, low, "64", 0, 1e30, "Found: an image whose largest value is below is taken not to be in units of noise"),
	FX_PROP(struct state, high, "4095", 1e-30, 1e30, "Found: likewise above; and no value is to exceed this"),
	FX_PROP(struct state, once, "true", 0, 1, "Find the factor on the first image and keep it; else on every image"),
	FX_PROP(struct state, dedicated_entry, "Use_dedicated_scaling_factor", 0, 255, "Images with a meta entry of this name are multiplied by dedicated"),
	FX_PROP(struct state, dedicated, "100", -1e30, 1e30, "See dedicated_entry"),
	FX_PROP(struct state, gfactor, "100", -1e30, 1e30, "Factor of g-factor maps (meta entry GADGETRON_DataRole is Gfactor)"),
	FX_PROP(struct state, snr, "10", -1e30, 1e30, "Factor of SNR maps (SNR_MAP)"),
	FX_PROP(struct state, std, "1000", -1e30, 1e30, "Factor of maps of standard deviations (STD_MAP)"),
	FX_PROP_END
};

static double largest(const fx_array *a)
{
	double max = 0;

	for (int64_t i = 0; i < a->n; i++) {
		const float *v = (const float *)a->data + (a->type == FX_CF32 ? 2 * i : i);
		double m = a->type == FX_CF32 ? hypot((double)v[0], (double)v[1]) : fabs((double)v[0]);

		max = isfinite(m) && m > max ? m : max;
	}
	return max < FLT_EPSILON ? 1 : max;
}

/*
 * Images between low and high are taken to be in units of noise: a factor of 4, halved (but not below 1) while values would
 * exceed high. Others are scaled so that their largest value is 2048.
 */
static double find(const struct state *s, const fx_array *a)
{
	double max = largest(a), factor = USUAL_FACTOR;

	if (max < s->low || max > s->high)
		return USUAL_MAX / max;
	while (max * factor > s->high && factor >= 2)
		factor /= 2;
	return max * factor > s->high ? s->high / max : factor;
}

static double choose(struct state *s, const fx_image *image, const fx_array *a)
{
	const char *role = fx_image_get_meta(image, "GADGETRON_DataRole");

	if (role && strcmp(role, "SNR_MAP") == 0)
		return s->snr;
	if (role && strcmp(role, "Gfactor") == 0)
		return s->gfactor;
	if (role && strcmp(role, "STD_MAP") == 0)
		return s->std;
	if (*s->dedicated_entry && fx_image_get_meta(image, s->dedicated_entry))
		return s->dedicated;
	if (s->constant && s->factor > 0)
		return s->factor;
	if (s->found == 0 || !s->once)
		s->found = find(s, a);
	return s->found;
}

static int tell(fx_image *image, double factor)
{
	const char *before = fx_image_get_meta(image, "GADGETRON_ImageComment");
	char comment[1024], ratio[32];
	int status;

	snprintf(comment, sizeof comment, "%.900s%sx%.4g", before ? before : "", before && *before ? " " : "", factor);
	snprintf(ratio, sizeof ratio, "%.9g", factor);
	status = fx_image_set_meta(image, "GADGETRON_ImageComment", comment);
	return status == FX_OK ? fx_image_set_meta(image, "GADGETRON_ScaleRatio", ratio) : status;
}

static int apply(struct state *s, fx_ctx *ctx, fx_image *image)
{
	uint16_t image_type = image->head.image_type;
	bool is_complex = image->data->type >= FX_CF32;
	fx_array *out = NULL;
	double factor;
	int status = fx_array_convert(image->data, is_complex ? FX_CF32 : FX_F32, &out);

	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)image->data->n);
	factor = choose(s, image, out);
	for (int64_t i = 0; i < (is_complex ? 2 : 1) * out->n; i++)
		FX_F32_OF(out)[i] = (float)((double)FX_F32_OF(out)[i] * factor);
	fx_record_number(ctx, "factor", factor);
	fx_slot_take(&image->data, out);
	fx_image_describe(image);
	if (image_type != 0)
		image->head.image_type = image_type;
	status = tell(image, factor);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "no memory for an image's meta data");
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = apply(self, ctx, fx_msg_image(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot scale an image");
	}
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "intensity",
	.summary = "Scale all images of a scan by one factor, and maps by factors of their own",
	.description = "The factor is constant, or found on the first image as Gadgetron's GenericReconImageArrayScalingGadget finds it on its "
		"first array. It is told in the meta entries GADGETRON_ImageComment and GADGETRON_ScaleRatio.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process,
};

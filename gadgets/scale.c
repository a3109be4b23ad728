/* SPDX-License-Identifier: MIT */
/* scale: multiply images, and turn them into integers where a viewer wants them. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <complex.h>
#include <math.h>
#include <stdlib.h>

enum { SAME, FLOAT32, UINT16, INT16 };

struct state {
	double factor, percentile, target;
	int type;
	int64_t n_clipped;
};

static const char *const types[] = {[SAME] = "same", [FLOAT32] = "float", [UINT16] = "uint16", [INT16] = "int16", NULL};

static const fx_prop props[] = {
	FX_PROP(struct state, factor, "1", -1e30, 1e30, "Every value is multiplied by this"),
	FX_PROP(struct state, percentile, "0", 0, 100,
		"Above 0: instead of factor, scale each image so that this percentile of its magnitude becomes target"),
	FX_PROP(struct state, target, "2048", 1e-30, 1e30, "What the percentile becomes"),
	FX_PROP_WORD(struct state, type, "same", types,
		"Type of the result; uint16 and int16 take the magnitude, round, and clip (counted); float takes the magnitude"),
	FX_PROP_END
};

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Magnitudes as f32 (new): a signed value of a real image keeps its sign. */
static int magnitudes(fx_ctx *ctx, const fx_array *a, fx_array **out)
{
	fx_array *c = NULL;
	int status = fx_array_convert(a, a->type >= FX_CF32 ? FX_CF32 : FX_F32, &c);

	*out = NULL;
	if (status == FX_OK && c->type == FX_F32) {
		*out = c;
		return FX_OK;
	}
	if (status == FX_OK)
		status = fx_array_new(FX_F32, a->n_dims, a->dims, out);
	if (status != FX_OK) {
		fx_array_unref(c);
		return fx_fail(ctx, status, "no memory for an image of %lld values", (long long)a->n);
	}
	for (int64_t i = 0; i < a->n; i++)
		FX_F32_OF(*out)[i] = cabsf(FX_CF32_OF(c)[i]);
	fx_array_unref(c);
	return FX_OK;
}

static int choose_factor(struct state *s, fx_ctx *ctx, const fx_array *a, double *factor)
{
	fx_array *sorted;
	double at;
	int status;

	*factor = s->factor;
	if (s->percentile <= 0 || a->n == 0)
		return FX_OK;
	status = magnitudes(ctx, a, &sorted);
	if (status != FX_OK)
		return status;
	qsort(sorted->data, (size_t)sorted->n, sizeof(float), by_value);
	at = (double)FX_F32_OF(sorted)[(int64_t)floor((double)(sorted->n - 1) * s->percentile / 100)];
	fx_array_unref(sorted);
	*factor = at > 0 ? s->target / at : 1;
	fx_record_number(ctx, "factor", *factor);
	return FX_OK;
}

static void to_integers(struct state *s, const fx_array *from, double factor, fx_array *to)
{
	double low = s->type == UINT16 ? 0 : INT16_MIN, high = s->type == UINT16 ? UINT16_MAX : INT16_MAX;

	for (int64_t i = 0; i < from->n; i++) {
		double v = nearbyint((double)FX_F32_OF(from)[i] * factor), c = fmin(fmax(v, low), high);

		s->n_clipped += !(v == c);
		if (s->type == UINT16)
			((uint16_t *)to->data)[i] = (uint16_t)c;
		else
			((int16_t *)to->data)[i] = (int16_t)c;
	}
}

static int apply(struct state *s, fx_ctx *ctx, fx_image *image)
{
	fx_array *real = NULL, *out = NULL;
	double factor;
	int status = choose_factor(s, ctx, image->data, &factor);

	if (status != FX_OK)
		return status;
	if (s->type == SAME) {
		status = fx_array_convert(image->data, image->data->type >= FX_CF32 ? FX_CF32 : FX_F32, &out);
		for (int64_t i = 0; status == FX_OK && i < out->n; i++) {
			if (out->type == FX_CF32)
				FX_CF32_OF(out)[i] *= (float)factor;
			else
				FX_F32_OF(out)[i] *= (float)factor;
		}
	} else {
		status = magnitudes(ctx, image->data, &real);
		if (status == FX_OK)
			status = fx_array_new(s->type == UINT16 ? FX_U16 : s->type == INT16 ? FX_I16 : FX_F32, image->data->n_dims,
				image->data->dims, &out);
		if (status == FX_OK && s->type != FLOAT32)
			to_integers(s, real, factor, out);
		for (int64_t i = 0; status == FX_OK && s->type == FLOAT32 && i < out->n; i++)
			FX_F32_OF(out)[i] = (float)((double)FX_F32_OF(real)[i] * factor);
		fx_array_unref(real);
	}
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for a scaled image");
	fx_slot_take(&image->data, out);
	fx_image_describe(image);
	return FX_OK;
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

static int flush(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (s->n_clipped > 0)
		fx_warn(ctx, "%lld values did not fit the integer type and were clipped; lower scale.factor or scale.target",
			(long long)s->n_clipped);
	fx_record_count(ctx, "clipped", s->n_clipped);
	return FX_OK;
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "scale",
	.summary = "Scale images, and make integers of them where wanted",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process, .flush = flush,
};

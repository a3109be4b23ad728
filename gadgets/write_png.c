/* SPDX-License-Identifier: MIT */
/* write_png: images into preview.png. */
#include <fornix/gadget.h>

struct state {
	const char *name;
	double low, high;
	fx_sink *sink;
};

static const fx_prop props[] = {
	FX_PROP(struct state, name, "preview.png", 1, 255, "File name in the output folder"),
	FX_PROP(struct state, low, "1", 0, 100, "Percentile of the magnitude shown black"),
	FX_PROP(struct state, high, "99.5", 0, 100, "Percentile of the magnitude shown white"),
	FX_PROP_END
};

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;

	fx_sink_options options = {.format = FX_FORMAT_PNG, .name = s->name,
		.window_low = s->low, .window_high = s->high};

	return fx_sink_write(ctx, &s->sink, &options, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	return fx_sink_finish(ctx, &((struct state *)self)->sink);
}

static void close_gadget(void *self)
{
	fx_sink_abandon(((struct state *)self)->sink);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "write_png",
	.summary = "Write a mosaic of the images as PNG",
	.description = "A quick look, not data. Images pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

/* SPDX-License-Identifier: MIT */
/* write_png: images into preview.png, fibres into tracts.png. */
#include <fornix/gadget.h>

#include <stdio.h>
#include <string.h>

struct state {
	const char *name, *tracts;
	double low, high;
	fx_sink *sink, *picture;   /* of images; of the set of fibres that is under way */
	int64_t n_sets;
};

static const fx_prop props[] = {
	FX_PROP(struct state, name, "preview.png", 1, 255, "File name in the output folder, of images"),
	FX_PROP(struct state, low, "1", 0, 100, "Percentile of the magnitude shown black"),
	FX_PROP(struct state, high, "99.5", 0, 100, "Percentile of the magnitude shown white"),
	FX_PROP(struct state, tracts, "tracts.png", 1, 200, "File name of fibres; a second set gets _2 in front of the ending"),
	FX_PROP_END
};

/* Opens the picture of the next set. */
static int open_picture(struct state *s, fx_ctx *ctx, const fx_tracts_info *info)
{
	const char *ending = strrchr(s->tracts, '.');
	size_t stem = ending ? (size_t)(ending - s->tracts) : strlen(s->tracts);
	char name[256];
	fx_sink_options options = {.format = FX_FORMAT_PNG, .name = s->n_sets ? name : s->tracts,
		.window_low = s->low, .window_high = s->high, .tracts = info};

	snprintf(name, sizeof name, "%.*s_%lld%s", (int)stem, s->tracts, (long long)s->n_sets + 1, ending ? ending : "");
	return fx_sink_open(ctx, &options, &s->picture);
}

static int add_tracts(struct state *s, fx_ctx *ctx, fx_msg *msg)
{
	const fx_tracts *t = fx_msg_tracts(msg);
	int status = s->picture ? FX_OK : open_picture(s, ctx, t->info);

	if (status == FX_OK)
		status = fx_sink_tracts(ctx, s->picture, t);
	if (status == FX_OK && t->end) {
		status = fx_sink_finish(ctx, &s->picture);
		s->n_sets++;
	}
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot write %s", s->tracts);
	}
	return fx_emit(ctx, msg);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	fx_sink_options options = {.format = FX_FORMAT_PNG, .name = s->name, .window_low = s->low, .window_high = s->high};

	return fx_msg_kind(msg) == FX_TRACTS ? add_tracts(s, ctx, msg) : fx_sink_write(ctx, &s->sink, &options, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = fx_sink_finish(ctx, &s->sink);

	return status == FX_OK ? fx_sink_finish(ctx, &s->picture) : status;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_sink_abandon(s->sink);
	fx_sink_abandon(s->picture);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "write_png",
	.summary = "Write a mosaic of the images, and a picture of the fibres, as PNG",
	.description = "A quick look, not data: slices of the images in a sensible window; fibres projected along three axes, coloured by "
		"direction. Images and fibres pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE | FX_TRACTS, .gives = FX_IMAGE | FX_TRACTS, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

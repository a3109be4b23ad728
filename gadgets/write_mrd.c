/* SPDX-License-Identifier: MIT */
/* write_mrd: images into images.h5. */
#include <fornix/gadget.h>

struct state {
	const char *name;
	fx_sink *sink;
};

static const fx_prop props[] = {
	FX_PROP(struct state, name, "images.h5", 1, 255, "File name in the output folder"),
	FX_PROP_END
};

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;

	return fx_sink_write(ctx, &s->sink, &(fx_sink_options){.format = FX_FORMAT_MRD, .name = s->name}, msg);
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
	.abi = FX_ABI, .name = "write_mrd",
	.summary = "Write images into an MRD HDF5 file",
	.description = "Read by libismrmrd and by any HDF5 reader: group dataset, one image series. The "
		"file appears whole, at the end of the run. Images pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

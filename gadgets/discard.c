/* SPDX-License-Identifier: MIT */
/* discard: takes everything and gives nothing. */
#include <fornix/gadget.h>

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	(void)self;
	(void)ctx;
	fx_drop(msg);
	return FX_OK;
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "discard",
	.summary = "Take every message and give none",
	.description = "The end of a chain that is there for what its gadgets record or write, and the null chain: a client that asks for it sees "
		"that the server takes its data, and how fast.",
	.state_size = 1,
	.takes = FX_ACQUISITION | FX_WEIGHTED | FX_WAVEFORM | FX_TEXT | FX_FRAME | FX_IMAGE | FX_SERIES | FX_TENSORS | FX_METRIC | FX_TRACTS,
	.gives = 0, .places = FX_HOST | FX_DEVICE,
	.process = process,
};

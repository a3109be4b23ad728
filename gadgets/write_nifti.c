/* SPDX-License-Identifier: MIT */
/* write_nifti: images into image.nii.gz. */
#include <fornix/gadget.h>

#undef complex /* <complex.h> comes with MRD's structs; here it is the property's name */

struct state {
	const char *name;
	bool complex;
	fx_sink *sink;
};

static const fx_prop props[] = {
	FX_PROP(struct state, name, "image.nii.gz", 1, 255, "File name in the output folder"),
	FX_PROP(struct state, complex, "false", 0, 1, "Keep complex64 values instead of the magnitude"),
	FX_PROP_END
};

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;

	fx_sink_options options = {.format = FX_FORMAT_NIFTI, .name = s->name,
		.complex_values = s->complex};

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
	.abi = FX_ABI, .name = "write_nifti",
	.summary = "Write images as NIfTI volumes",
	.description = "Slices are ordered and spaced by their positions; other orientations and matrices "
		"go to files of their own (image_2.nii.gz ...); further volumes are the 4th dimension. RAS, sform and qform set. The file appears whole, at the end of the run. Images pass on.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_IMAGE, .needs = FX_IMAGE, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

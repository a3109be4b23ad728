/* SPDX-License-Identifier: MIT */
/* coil_maps: coil sensitivities of a frame from its density-weighted coil images. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

enum { WALSH };

struct state {
	int method;
	int64_t radius, iterations;
	bool reuse, save;
	fx_sink *sink;
	fx_array *kept[256];       /* reuse: maps by slice, of the first frame of that slice */
};

static const char *const methods[] = {[WALSH] = "walsh", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "walsh", methods, "How maps are made: walsh, from local covariance of the coil images"),
	FX_PROP(struct state, radius, "3", 1, 32, "Half width of the block of voxels that a map's value is made from"),
	FX_PROP(struct state, iterations, "10", 1, 1000, "Power iterations for the dominant eigenvector"),
	FX_PROP(struct state, reuse, "false", 0, 1, "Use the maps of a slice's first frame for its later frames too"),
	FX_PROP(struct state, save, "false", 0, 1, "Write coil_maps.nii.gz (complex64, coils in the 4th dimension)"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	if (!s->save)
		return FX_OK;
	return fx_sink_open(ctx, &(fx_sink_options){.format = FX_FORMAT_NIFTI, .name = "coil_maps.nii.gz",
		.complex_values = true}, &s->sink);
}

static int make_maps(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	unsigned slice = f->head.idx.slice;
	bool can_keep = s->reuse && slice < sizeof s->kept / sizeof s->kept[0];
	fx_array *maps = NULL;
	int status = FX_OK;

	if (can_keep && s->kept[slice]) {
		for (int i = 0; i < 3; i++)
			if (s->kept[slice]->dims[i] != f->grid[i])
				return fx_fail(ctx, FX_EDATA, "slice %u changes its matrix within the scan; set coil_maps.reuse=false", slice);
		maps = fx_array_ref(s->kept[slice]);
	} else {
		if (!f->direct)
			return fx_fail(ctx, FX_EINVAL, "maps are made from density-weighted coil images, which frame %lld has not; put "
				"<density/> in front of <mu/> and leave fhd.accumulate at both", (long long)f->id);
		status = fx_coil_maps_walsh(fx_math_of(ctx), f->direct, (int)s->radius, (int)s->iterations, &maps);
	}
	if (status != FX_OK)
		return status;
	if (can_keep && !s->kept[slice])
		s->kept[slice] = fx_array_ref(maps);
	fx_slot_take(&f->maps, maps);
	return FX_OK;
}

static int save_maps(struct state *s, fx_ctx *ctx, const fx_frame *f)
{
	fx_msg *image;
	int status = fx_frame_image(fx_math_of(ctx), f, f->maps, &image);

	if (status == FX_OK)
		status = fx_sink_add(ctx, s->sink, fx_msg_image(image));
	fx_drop(image);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = make_maps(s, ctx, fx_msg_frame(msg));
	if (status == FX_OK && s->sink)
		status = save_maps(s, ctx, fx_msg_frame(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot make coil maps");
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_sink *sink = s->sink;

	s->sink = NULL;
	return sink ? fx_sink_commit(ctx, sink) : FX_OK;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_sink_abandon(s->sink);
	for (size_t i = 0; i < sizeof s->kept / sizeof s->kept[0]; i++)
		fx_array_unref(s->kept[i]);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_maps",
	.summary = "Coil sensitivity maps of each frame",
	.description = "Walsh et al., Magn. Reson. Med. 43:682 (2000): at each voxel the dominant eigenvector of the coil images' "
		"covariance over a block around it, normalised to a sum of squares of 1, phase relative to the strongest coil. Made from "
		"the frame's own density-weighted coil images; one coil gives maps of phase only.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

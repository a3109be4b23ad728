/* SPDX-License-Identifier: MIT */
/* coil_maps: coil sensitivities of a frame from its density-weighted coil images. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

enum { WALSH };

#define N_KEPT 4096 /* slices whose maps can be kept; those beyond make their own for every frame */

struct state {
	int method;
	int64_t radius, iterations;
	bool reuse, save;
	fx_sink *sink;
	fx_array *kept[N_KEPT];    /* maps by slice: of its calibration, or with reuse of its first frame */
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

static int walsh(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **maps)
{
	if (!f->direct)
		return fx_fail(ctx, FX_EINVAL, "maps are made from density-weighted coil images, which frame %lld has not; put <density/> "
			"in front of <mu/> and leave fhd.accumulate at both", (long long)f->id);
	return fx_coil_maps_walsh(fx_math_of(ctx), f->direct, (int)s->radius, (int)s->iterations, maps);
}

/* Maps by a calibration frame of this slice, or by its first frame with reuse=true; NULL where there are none. */
static int kept_maps(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_array **maps)
{
	unsigned slice = f->head.idx.slice;

	*maps = slice < N_KEPT ? fx_array_ref(s->kept[slice]) : NULL;
	for (int i = 0; *maps && i < 3; i++)
		if ((*maps)->dims[i] != f->grid[i]) {
			int64_t is = (*maps)->dims[i];

			fx_array_unref(*maps);
			*maps = NULL;
			return fx_fail(ctx, FX_EDATA, "slice %u: the maps that are kept have %lld voxels along axis %d, the frame %lld; "
				"calibration and imaging need the same matrix, and coil_maps.reuse=false where it changes within a scan",
				slice, (long long)is, i, (long long)f->grid[i]);
		}
	return FX_OK;
}

static int make_maps(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	unsigned slice = f->head.idx.slice;
	fx_array *maps = NULL;
	int status = f->calibration ? FX_OK : kept_maps(s, ctx, f, &maps);

	if (status == FX_OK && !maps) {
		status = walsh(s, ctx, f, &maps);
		if (status == FX_OK && (s->reuse || f->calibration) && slice < N_KEPT)
			fx_slot_take(&s->kept[slice], fx_array_ref(maps));
	}
	if (status != FX_OK)
		return status;
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
	if (fx_msg_frame(msg)->calibration) {
		fx_drop(msg);
		return FX_OK;
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
	for (size_t i = 0; i < N_KEPT; i++)
		fx_array_unref(s->kept[i]);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_maps",
	.summary = "Coil sensitivity maps of each frame",
	.description = "Walsh et al., Magn. Reson. Med. 43:682 (2000): at each voxel the dominant eigenvector of the coil images' "
		"covariance over a block around it, normalised to a sum of squares of 1, phase relative to the strongest coil. Made from "
		"calibration readouts where the scan has them, else from the frame's own density-weighted coil images.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

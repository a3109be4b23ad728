/* SPDX-License-Identifier: MIT */
/* combine: one image out of a frame's coil images. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

enum { AUTO, MAPS, RSS };

struct state {
	int method;
};

static const char *const methods[] = {[AUTO] = "auto", [MAPS] = "maps", [RSS] = "rss", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "auto", methods,
		"maps: sum conj(S) I / sum |S|^2, complex; rss: root of the sum of squares; auto: maps where the frame has them"),
	FX_PROP_END
};

static int combine(struct state *s, fx_ctx *ctx, const fx_frame *f, fx_msg **image)
{
	fx_math *m = fx_math_of(ctx);
	fx_array *volume = NULL;
	int status;

	if (!f->direct)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has no direct coil images; put <density/> in front of <mu/> and leave "
			"fhd.accumulate at both or weighted", (long long)f->id);
	if (s->method == MAPS && !f->maps)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has no coil maps; put <coil_maps/> in front, or set combine.method=rss",
			(long long)f->id);
	status = fx_coils_to_image(m, s->method == RSS ? NULL : f->maps, f->direct, &volume);
	if (status == FX_OK)
		status = fx_frame_image(m, f, volume, image);
	fx_array_unref(volume);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	fx_msg *image = NULL;
	int status;

	if (fx_msg_frame(msg)->calibration) {
		fx_drop(msg);
		return FX_OK;
	}
	status = combine(self, ctx, fx_msg_frame(msg), &image);

	fx_drop(msg);
	if (status != FX_OK)
		return fx_fail(ctx, status, "cannot combine coils");
	return fx_emit(ctx, image);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "combine",
	.summary = "Combine a frame's direct coil images into one image",
	.description = "The direct images are the density-weighted sums of fhd (eq. 17.1 of the chapter), the gridded ones of grid, or "
		"those of cartesian. Source of the optimal combination: Roemer et al., Magn. Reson. Med. 16:192 (1990).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_IMAGE, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.process = process,
};

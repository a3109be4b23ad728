/* SPDX-License-Identifier: MIT */
/* grid: gridding and an inverse FFT, the baseline that iterative reconstruction is compared with. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

struct state {
	int kernel, partial;
	int64_t readouts_per_frame, frame_step, max_open_frames;
	fx_collector *collector;
	int64_t n_frames;
	fx_ctx *ctx;
};

static const char *const kernels[] = {[FX_GRID_CONVOLUTION] = "convolution", [FX_GRID_BILINEAR] = "bilinear", NULL};
static const char *const partials[] = {[FX_PARTIAL_EMIT] = "emit", [FX_PARTIAL_REFUSE] = "refuse", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, kernel, "convolution", kernels,
		"convolution: onto an oversampled grid, deapodised; bilinear: the chapter's simple gridding onto the matrix itself"),
	FX_PROP(struct state, readouts_per_frame, "0", 0, 1e9,
		"Readouts of one frame; 0: by LAST flags, encoding limits and counters"),
	FX_PROP(struct state, frame_step, "0", 0, 1e9,
		"Readouts between the starts of counted frames; less than readouts_per_frame makes a sliding window; 0: no overlap"),
	FX_PROP(struct state, max_open_frames, "64", 1, 1e6, "Frames that may be open at once (interleaved slices)"),
	FX_PROP_WORD(struct state, partial, "emit", partials, "A frame cut short by the end of input or a lost connection: emit it with a warning, or refuse"),
	FX_PROP_END
};

static int close_frame(void *arg, fx_open_frame *open)
{
	struct state *s = arg;
	fx_math *m = fx_math_of(s->ctx);
	fx_frame *f = open->frame;
	fx_msg *msg = open->msg;
	fx_array *samples;
	int status;

	if (!f->weights)
		return fx_fail(s->ctx, FX_EINVAL, "gridding needs density weights; put <density/> in front of <grid/>");
	status = fx_join_samples(m, open->samples, open->n_pieces, &samples);
	if (status != FX_OK)
		return status;
	status = fx_grid_image(m, s->kernel, f->grid, f->scale, f->k, samples, f->weights, &f->direct);
	fx_array_unref(samples);
	if (status != FX_OK)
		return status;
	s->n_frames++;
	fx_record_count(s->ctx, "frames", 1);
	if (f->partial)
		fx_warn(s->ctx, "frame %lld (slice %u, repetition %u) was cut short: %lld readouts came", (long long)f->id,
			f->head.idx.slice, f->head.idx.repetition, (long long)f->n_readouts);
	open->msg = NULL;
	return fx_emit(s->ctx, msg);
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	static const fx_collect_ops ops = {.close = close_frame};
	struct state *s = self;
	fx_collect_options options = {
		.framer = {.readouts_per_frame = s->readouts_per_frame, .frame_step = s->frame_step, .max_open = s->max_open_frames},
		.partial = s->partial, .fov_factor = 1, .need_k = true, .keep_samples = true,
	};

	s->ctx = ctx;
	return fx_collector_new(fx_math_of(ctx), fx_scan(ctx), &options, &ops, s, &s->collector);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status = fx_collector_add(s->collector, fx_msg_acquisition(msg), NULL, 0);

	(void)ctx;
	fx_drop(msg);
	return status;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int64_t n_partial = 0;
	int status = fx_collector_end(s->collector, fx_input_cut(ctx), &n_partial);

	if (status == FX_OK && s->n_frames == 0 && !fx_noise_only(ctx))
		status = fx_fail(ctx, FX_EDATA, "the input ended without one imaging readout that has samples inside the matrix");
	fx_record_count(ctx, "partial_frames", n_partial);
	return status;
}

static void close_gadget(void *self)
{
	fx_collector_free(((struct state *)self)->collector);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "grid",
	.summary = "Gridding and an inverse FFT",
	.description = "Density-weighted samples onto a Cartesian grid, an inverse FFT, deapodisation: coil images of each frame. Keeps a "
		"frame's samples until it is whole. Sources: Jackson et al., IEEE Trans. Med. Imaging 10:473 (1991); the chapter's "
		"bilinear variant (Figs. 17.1, 17.19).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_FRAME, .needs = FX_ACQUISITION, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

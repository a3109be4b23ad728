/* SPDX-License-Identifier: MIT */
/* fhd: F^H D of each frame, accumulated while its readouts arrive. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

enum { BOTH, UNWEIGHTED, WEIGHTED };

struct state {
	int method, precision, kernel, accumulate, partial;
	double tolerance, fov_factor;
	int64_t readouts_per_frame, frame_step, max_open_frames;
	fx_collector *collector;
	fx_fourier *fourier;       /* of the first frame, and of all that are like it: making one takes longer than a short readout */
	fx_fourier_spec spec;
	int64_t n_frames;
	fx_ctx *ctx;
};

/* What one open frame accumulates. */
struct sums {
	fx_fourier *fourier;
	bool own;                  /* frees it */
	fx_accumulator *plain, *weighted;
};

static const char *const methods[] = {[FX_FOURIER_DIRECT] = "direct", [FX_FOURIER_NUFFT] = "nufft",
	[FX_FOURIER_SEPARABLE] = "separable", NULL};
static const char *const kernels[] = {[FX_DIRECT_AUTO] = "auto", [FX_DIRECT_SCATTER] = "scatter", [FX_DIRECT_GATHER] = "gather",
	[FX_DIRECT_REGISTERS] = "registers", [FX_DIRECT_CONSTANT] = "constant", [FX_DIRECT_AOS] = "aos",
	[FX_DIRECT_HARDWARE] = "hardware", [FX_DIRECT_TUNED] = "tuned", NULL};
static const char *const precisions[] = {"single", "double", NULL};
static const char *const accumulates[] = {[BOTH] = "both", [UNWEIGHTED] = "unweighted", [WEIGHTED] = "weighted", NULL};
static const char *const partials[] = {[FX_PARTIAL_EMIT] = "emit", [FX_PARTIAL_REFUSE] = "refuse", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "nufft", methods,
		"direct: the exact sum, samples times voxels operations; separable: the same sum as matrix products, many times "
		"faster; nufft: gridding to the given tolerance and an FFT"),
	FX_PROP_WORD(struct state, precision, "single", precisions, "Arithmetic of the sums"),
	FX_PROP_WORD(struct state, kernel, "auto", kernels,
		"Of method=direct on a GPU, for comparisons: a step of the chapter's ladder, with its phases in single precision; tuned takes what "
		"`fornix tune` found; auto is the exact sum, and the fastest"),
	FX_PROP(struct state, tolerance, "1e-4", 1e-9, 1e-1, "Relative l2 error of nufft; below 1e-5 needs precision=double"),
	FX_PROP_WORD(struct state, accumulate, "both", accumulates,
		"Sums to make: unweighted for least squares, weighted (density) for the direct image, coil maps and start, or both"),
	FX_PROP(struct state, fov_factor, "1", 1, 2,
		"The estimate lives on a grid this much larger than the matrix and is cropped at the end: signal from outside the "
		"field of view would corrupt a least-squares fit"),
	FX_PROP(struct state, readouts_per_frame, "0", 0, 1e9,
		"Readouts of one frame; 0: by LAST flags, encoding limits and counters"),
	FX_PROP(struct state, frame_step, "0", 0, 1e9,
		"Readouts between the starts of counted frames; less than readouts_per_frame makes a sliding window; 0: no overlap"),
	FX_PROP(struct state, max_open_frames, "64", 1, 1e6, "Frames that may be open at once (interleaved slices)"),
	FX_PROP_WORD(struct state, partial, "emit", partials, "A frame cut short by the end of input or a lost connection: emit it with a warning, or refuse"),
	FX_PROP_END
};

/* Says what a frame will take before any of it is taken. */
static int plan(struct state *s, const fx_frame *f, const struct sums *sums)
{
	double n_sums = s->accumulate == BOTH ? 2 : 1;
	double bytes = fx_plan_bytes(fx_math_of(s->ctx), f, n_sums * (double)fx_fourier_bytes(sums->fourier, f->n_coils));

	if (s->n_frames == 0)
		fx_record_number(s->ctx, "planned_mb", ceil(bytes / 1e6));
	return fx_plan_check(fx_math_of(s->ctx), f, bytes);
}

/* The plan that `fornix tune` left for images of this size, if it did. */
static int take_kernel(struct state *s, fx_fourier_spec *spec)
{
	fx_array *kept = NULL;
	char key[80];
	int status;

	spec->direct.kernel = s->kernel;
	if (s->kernel != FX_DIRECT_TUNED)
		return FX_OK;
	status = fx_direct_tuned_key(fx_math_of(s->ctx), spec->dims, key);
	if (status == FX_OK)
		status = fx_cache_get(s->ctx, key, &kept);
	if (status == FX_OK && (!kept || !fx_direct_plan_unpack(kept, &spec->direct)))
		fx_warn(s->ctx, "kernel=tuned: nothing was tuned here for images of this size, its defaults are taken; run `fornix tune`");
	fx_array_unref(kept);
	return status;
}

static int take_fourier(struct state *s, fx_fourier_spec *spec, struct sums *sums)
{
	fx_math *m = fx_math_of(s->ctx);
	int status = FX_OK;

	if (!s->fourier) {
		status = take_kernel(s, spec);
		if (status == FX_OK)
			status = fx_fourier_new(m, spec, &s->fourier);
		s->spec = *spec;
	}
	spec->direct = s->spec.direct;
	/* method, precision and tolerance are the gadget's own */
	sums->own = status == FX_OK && (spec->scale != s->spec.scale || memcmp(spec->dims, s->spec.dims, sizeof spec->dims) != 0);
	if (sums->own)
		return fx_fourier_new(m, spec, &sums->fourier);
	sums->fourier = s->fourier;
	return status;
}

static int begin(void *arg, fx_open_frame *open, const fx_acquisition *a)
{
	struct state *s = arg;
	fx_frame *f = open->frame;
	fx_fourier_spec spec = {
		.method = s->method, .type = s->precision ? FX_CF64 : FX_CF32, .tolerance = s->tolerance,
		.dims = {f->grid[0], f->grid[1], f->grid[2]}, .scale = f->scale,
	};
	struct sums *sums = fx_alloc(1, sizeof *sums);
	int status;

	open->user = sums;
	if (!sums)
		return fx_fail(s->ctx, FX_ENOMEM, "no memory for a frame");
	f->method = s->method;
	f->tolerance = s->tolerance;
	if (a->density == FX_DENSITY_NONE && s->accumulate == WEIGHTED)
		return fx_fail(s->ctx, FX_EINVAL, "accumulate=weighted needs density weights; put <density/> in front of <mu/>");
	status = take_fourier(s, &spec, sums);
	if (status == FX_OK)
		status = plan(s, f, sums);
	if (status == FX_OK && s->accumulate != WEIGHTED)
		status = fx_accumulator_new(sums->fourier, f->n_coils, &sums->plain);
	if (status == FX_OK && s->accumulate != UNWEIGHTED &&
		(a->density == FX_DENSITY_GIVEN || a->density == FX_DENSITY_CELLS))
		status = fx_accumulator_new(sums->fourier, f->n_coils, &sums->weighted);
	return status;
}

/* Q is summed downstream while the scan runs: tell which frame this readout went to and how it is transformed. */
static int pass_on(struct state *s, const fx_frame *f, const fx_acquisition *a, const fx_array *phi2)
{
	fx_msg *msg = fx_msg_new(FX_WEIGHTED);
	fx_weighted *w;

	if (!msg)
		return fx_fail(s->ctx, FX_ENOMEM, "no memory for a readout");
	w = fx_msg_weighted(msg);
	w->readout.head = a->head;
	w->readout.k = fx_array_ref(a->k); /* Q needs no samples */
	w->phi2 = fx_array_ref((fx_array *)(uintptr_t)phi2);
	w->frame_id = f->id;
	for (int i = 0; i < 3; i++)
		w->grid[i] = f->grid[i];
	w->scale = f->scale;
	w->method = f->method;
	w->tolerance = f->tolerance;
	return fx_emit(s->ctx, msg);
}

static int add(void *arg, fx_open_frame *open, const fx_acquisition *a, const fx_array *phi2)
{
	struct state *s = arg;
	struct sums *sums = open->user;
	int status = FX_OK;

	if (!open->frame->calibration && fx_wanted(s->ctx, FX_WEIGHTED))
		status = pass_on(s, open->frame, a, phi2);
	if (status == FX_OK && sums->plain)
		status = fx_accumulator_add(sums->plain, a->k, a->data, NULL);
	if (status == FX_OK && sums->weighted)
		status = fx_accumulator_add(sums->weighted, a->k, a->data, a->weights);
	return status;
}

/* Finishes one sum into a cf32 slot of the frame; the accumulator ends here. */
static int finish(struct state *s, fx_accumulator **sum, double factor, fx_array **slot)
{
	fx_math *m = fx_math_of(s->ctx);
	fx_array *image = NULL;
	int status = fx_accumulator_finish(*sum, &image);

	*sum = NULL;
	if (status == FX_OK)
		status = fx_to_single(m, image, &image);
	if (status == FX_OK && factor != 1)
		status = m->ops->scale(m, factor, image);
	if (status == FX_OK)
		fx_slot_take(slot, image);
	else
		fx_array_unref(image);
	return status;
}

/* Iterative weights came with the whole frame: now the samples that were kept can be weighed and summed. */
static int add_kept(struct sums *sums, const fx_open_frame *open, fx_math *m)
{
	int64_t at = 0;
	int status = fx_accumulator_new(sums->fourier, open->frame->n_coils, &sums->weighted);

	for (int64_t i = 0; i < open->n_pieces && status == FX_OK; i++) {
		int64_t samples = open->samples[i]->dims[0];
		fx_array *w;

		status = fx_array_new1(FX_F32, samples, &w);
		if (status != FX_OK)
			return fx_math_fail(m, status, "no memory for %lld weights", (long long)samples);
		for (int64_t j = 0; j < samples; j++)
			FX_F32_OF(w)[j] = FX_F32_OF(open->frame->weights)[at + j];
		status = fx_accumulator_add(sums->weighted, open->k[i], open->samples[i], w);
		fx_array_unref(w);
		at += samples;
	}
	return status;
}

static int close_frame(void *arg, fx_open_frame *open)
{
	struct state *s = arg;
	struct sums *sums = open->user;
	fx_msg *msg = open->msg;
	int status = FX_OK;

	if (s->accumulate != UNWEIGHTED && open->density == FX_DENSITY_ITERATIVE)
		status = add_kept(sums, open, fx_math_of(s->ctx));
	if (status == FX_OK && sums->plain)
		status = finish(s, &sums->plain, 1, &open->frame->fhd);
	if (status == FX_OK && sums->weighted)
		status = finish(s, &sums->weighted,
			open->density == FX_DENSITY_GIVEN ? 1 / (double)open->n_pieces : 1, &open->frame->direct);
	if (status != FX_OK)
		return status;
	s->n_frames++;
	fx_record_count(s->ctx, "frames", 1);
	fx_record_number(s->ctx, "samples_per_frame", (double)open->n_samples);
	if (open->frame->partial)
		fx_warn(s->ctx, "frame %lld (slice %u, repetition %u) was cut short: %lld readouts came",
			(long long)open->frame->id, open->frame->head.idx.slice, open->frame->head.idx.repetition,
			(long long)open->frame->n_readouts);
	open->msg = NULL;
	return fx_emit(s->ctx, msg);
}

static void discard(void *arg, fx_open_frame *open)
{
	struct sums *sums = open->user;

	(void)arg;
	if (!sums)
		return;
	fx_accumulator_free(sums->plain);
	fx_accumulator_free(sums->weighted);
	if (sums->own)
		fx_fourier_free(sums->fourier);
	fx_free(sums);
	open->user = NULL;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	static const fx_collect_ops ops = {.begin = begin, .add = add, .close = close_frame, .discard = discard};
	struct state *s = self;
	fx_collect_options options = {
		.framer = {.readouts_per_frame = s->readouts_per_frame, .frame_step = s->frame_step, .max_open = s->max_open_frames},
		.partial = s->partial, .fov_factor = s->fov_factor, .need_k = true,
	};

	if (s->method == FX_FOURIER_NUFFT && s->precision == 0 && s->tolerance < 0.99e-5)
		return fx_fail(ctx, FX_EINVAL, "tolerance %g is beyond single precision (1e-5); set precision=double", s->tolerance);
	s->ctx = ctx;
	return fx_collector_new(fx_math_of(ctx), fx_scan(ctx), &options, &ops, s, &s->collector);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_weighted *w = fx_msg_weighted(msg);
	int status = fx_collector_add(s->collector, &w->readout, w->phi2, w->data_norm2);

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
	struct state *s = self;

	fx_collector_free(s->collector);
	fx_fourier_free(s->fourier);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "fhd",
	.summary = "F^H D of each frame, summed while its readouts arrive",
	.description = "F^H D[n] = sum over samples of Mu e^{+i 2pi k.x}, scaled by 1/sqrt(voxels): unweighted for the least-squares "
		"fit, and weighted by density for the direct image (the chapter's eq. 17.1), the coil maps and the start of CG. A frame "
		"is complete on the LAST flag of its unit, else at the encoding limits' count, else when a counter moves on or the "
		"input ends. Phases, sets, contrasts, repetitions and slices separate frames; segments and averages accumulate. "
		"Holds samples back only where their density weights are not yet known.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_WEIGHTED, .gives = FX_WEIGHTED | FX_FRAME, .needs = FX_WEIGHTED, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

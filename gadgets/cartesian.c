/* SPDX-License-Identifier: MIT */
/* cartesian: coil images of fully sampled Cartesian frames, by FFT. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

enum { MEAN, SEPARATE_AVERAGES };
enum { JOINED, SEPARATE_SEGMENTS };
enum { RECON, ENCODED };

struct state {
	int partial, averages, segments, matrix;
	int64_t max_open_frames;
	fx_collector *collector;
	int64_t n_frames;
	fx_ctx *ctx;
	int64_t n_auxiliary;
	bool told_centre, told_reverse, told_holes;
};

/* k-space of one frame. */
struct lines {
	fx_array *k;               /* cf32 {x, y, z, coils} on the encoded matrix */
	int64_t *n_seen;           /* {y, z}: how often each line came (averages) */
};

static const char *const partials[] = {[FX_PARTIAL_EMIT] = "emit", [FX_PARTIAL_REFUSE] = "refuse", NULL};

static const char *const averagings[] = {[MEAN] = "mean", [SEPARATE_AVERAGES] = "separate", NULL};
static const char *const segmentings[] = {[JOINED] = "joined", [SEPARATE_SEGMENTS] = "separate", NULL};
static const char *const matrices[] = {[RECON] = "recon", [ENCODED] = "encoded", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, averages, "mean", averagings, "Averages of one frame are averaged (mean), or an image each (separate)"),
	FX_PROP_WORD(struct state, segments, "joined", segmentings, "Segments are lines of one frame (joined), or an image each (separate)"),
	FX_PROP_WORD(struct state, matrix, "recon", matrices,
		"recon: the header's reconstructed matrix and field of view; encoded: all that was encoded, at its own voxel size"),
	FX_PROP(struct state, max_open_frames, "64", 1, 1e6, "Frames that may be open at once (interleaved slices)"),
	FX_PROP_WORD(struct state, partial, "emit", partials, "A frame cut short by the end of input or a lost connection: emit it with a warning, or refuse"),
	FX_PROP_END
};

static const fx_encoding *encoding_of(fx_ctx *ctx, const fx_acquisition *a)
{
	return &fx_scan(ctx)->encodings[a->head.encoding_space_ref];
}

static int begin(void *arg, fx_open_frame *open, const fx_acquisition *a)
{
	struct state *s = arg;
	const fx_encoding *e = encoding_of(s->ctx, a);
	const int64_t *n = open->frame->grid;
	struct lines *l = fx_alloc(1, sizeof *l);
	int64_t count;

	open->user = l;
	if (!l)
		return fx_fail(s->ctx, FX_ENOMEM, "no memory for a frame");
	if (e->acceleration[0] > 1 || e->acceleration[1] > 1)
		return fx_fail(s->ctx, FX_ENOTSUP, "the header says the scan is accelerated (%g x %g); this gadget reconstructs fully "
			"sampled scans", e->acceleration[0], e->acceleration[1]);
	if (fx_mul_size(n[1], n[2], &count))
		l->n_seen = fx_alloc(count, sizeof *l->n_seen);
	if (!l->n_seen || fx_array_new4(FX_CF32, n[0], n[1], n[2], open->frame->n_coils, &l->k) != FX_OK)
		return fx_fail(s->ctx, FX_ENOMEM, "no memory for a k-space of %lld x %lld x %lld and %lld coils", (long long)n[0],
			(long long)n[1], (long long)n[2], (long long)open->frame->n_coils);
	return FX_OK;
}

/* The row of k-space that a step counter means: the limits' centre is k = 0 (partial Fourier shifts it). */
static int64_t row_of(const fx_encoding *e, int counter, int64_t step, int64_t n)
{
	const fx_limit *l = &e->limits[counter];

	return step - (l->present ? l->center : n / 2) + n / 2;
}

static int64_t centre_of(struct state *s, const fx_acquisition *a, int64_t nx)
{
	int64_t samples = a->data->dims[0];

	if (a->head.center_sample > 0 || samples < nx)
		return a->head.center_sample;
	if (!s->told_centre) {
		s->told_centre = true;
		fx_info(s->ctx, "center_sample is 0 on full readouts: k = 0 is taken to be their middle");
	}
	return samples / 2;
}

static int add(void *arg, fx_open_frame *open, const fx_acquisition *a, const fx_array *phi2)
{
	struct state *s = arg;
	struct lines *l = open->user;
	const fx_encoding *e = encoding_of(s->ctx, a);
	const int64_t *n = open->frame->grid;
	int64_t samples = a->data->dims[0], x0 = n[0] / 2 - centre_of(s, a, n[0]);
	int64_t y = row_of(e, FX_STEP_1, a->head.idx.kspace_encode_step_1, n[1]);
	int64_t z = row_of(e, FX_STEP_2, a->head.idx.kspace_encode_step_2, n[2]);
	bool reverse = FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_REVERSE);

	(void)phi2;
	if (n[2] == 1)
		z = 0;
	if (y < 0 || y >= n[1] || z < 0 || z >= n[2] || x0 < 0 || x0 + samples > n[0])
		return fx_fail(s->ctx, FX_EDATA, "readout %u (steps %u, %u; %lld samples, centre %u) does not fit the encoded matrix "
			"%lld x %lld x %lld; the header's matrix or limits are wrong, or the readout is oversampled: put "
			"<remove_oversampling/> in front", a->head.scan_counter, a->head.idx.kspace_encode_step_1,
			a->head.idx.kspace_encode_step_2, (long long)samples, a->head.center_sample, (long long)n[0], (long long)n[1],
			(long long)n[2]);
	if (reverse && !s->told_reverse) {
		s->told_reverse = true;
		fx_warn(s->ctx, "reversed readouts (EPI) are turned round, but their phase is not corrected: expect ghosts");
	}
	l->n_seen[z * n[1] + y]++;
	for (int64_t c = 0; c < a->data->dims[1]; c++) {
		const fx_cf32 *from = FX_CF32_OF(a->data) + c * samples;
		fx_cf32 *to = FX_CF32_OF(l->k) + ((c * n[2] + z) * n[1] + y) * n[0] + x0;

		for (int64_t i = 0; i < samples; i++)
			to[i] += from[reverse ? samples - 1 - i : i];
	}
	return FX_OK;
}

/* Averages, and a word on lines that are missing inside what was sampled. */
static int64_t average(const struct lines *l, const fx_frame *f)
{
	const int64_t *n = f->grid;
	int64_t holes = 0, low = n[1], high = -1;

	for (int64_t y = 0; y < n[1]; y++)
		for (int64_t z = 0; z < n[2]; z++)
			if (l->n_seen[z * n[1] + y] > 0) {
				low = y < low ? y : low;
				high = y > high ? y : high;
			}
	for (int64_t z = 0; z < n[2]; z++)
		for (int64_t y = 0; y < n[1]; y++) {
			int64_t seen = l->n_seen[z * n[1] + y];

			holes += seen == 0 && y >= low && y <= high;
			for (int64_t c = 0; c < f->n_coils && seen > 1; c++)
				for (int64_t x = 0; x < n[0]; x++)
					FX_CF32_OF(l->k)[((c * n[2] + z) * n[1] + y) * n[0] + x] /= (float)seen;
		}
	return holes;
}

/* The matrix that the header wants, on the encoded field of view: k-space is zero-filled or cropped to it. */
static void wanted_matrix(const fx_encoding *e, fx_frame *f)
{
	for (int d = 0; d < 3; d++) {
		int64_t kept = f->geometry.matrix[d], wanted = e->recon.matrix[d];

		if (!e->has_recon || f->grid[d] == 1 || wanted < 1 || wanted == kept)
			continue;
		/* the same ratio of grid to image as before, at the wanted voxel size */
		f->grid[d] = llround((double)f->grid[d] * (double)wanted / (double)kept);
		f->geometry.matrix[d] = wanted;
	}
}

/* Nothing is cropped, resampled or filled up. */
static void keep_encoded(fx_frame *f)
{
	for (int d = 0; d < 3; d++) {
		f->geometry.fov_mm[d] *= (double)f->grid[d] / (double)f->geometry.matrix[d];
		f->geometry.matrix[d] = f->grid[d];
	}
}

static int close_frame(void *arg, fx_open_frame *open)
{
	struct state *s = arg;
	struct lines *l = open->user;
	fx_math *m = fx_math_of(s->ctx);
	fx_frame *f = open->frame;
	fx_msg *msg = open->msg;
	int64_t holes = average(l, f);
	int status;

	if (holes > 0 && !s->told_holes && !f->calibration) {
		s->told_holes = true;
		fx_warn(s->ctx, "%lld lines inside the sampled part of k-space are missing and taken as 0: expect aliasing",
			(long long)holes);
	}
	if (s->matrix == ENCODED)
		keep_encoded(f);
	else
		wanted_matrix(encoding_of(s->ctx, &(fx_acquisition){.head = f->head}), f);
	status = fx_resize_centred(m, l->k, f->grid, &f->direct);
	if (status == FX_OK && f->direct == l->k) {
		fx_array_unref(l->k);
		l->k = NULL;
	}
	if (status == FX_OK)
		status = m->ops->fft(m, f->direct, +1, f->scale);
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

static void discard(void *arg, fx_open_frame *open)
{
	struct lines *l = open->user;

	(void)arg;
	if (!l)
		return;
	fx_array_unref(l->k);
	fx_free(l->n_seen);
	fx_free(l);
	open->user = NULL;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	static const fx_collect_ops ops = {.begin = begin, .add = add, .close = close_frame, .discard = discard};
	struct state *s = self;
	fx_collect_options options = {
		.framer = {.max_open = s->max_open_frames, .split_averages = s->averages == SEPARATE_AVERAGES,
			.split_segments = s->segments == SEPARATE_SEGMENTS},
		.partial = s->partial, .fov_factor = 1,
	};

	s->ctx = ctx;
	return fx_collector_new(fx_math_of(ctx), fx_scan(ctx), &options, &ops, s, &s->collector);
}

/* Readouts that serve neither an image nor coil maps. */
static bool skipped(const ISMRMRD_AcquisitionHeader *head)
{
	return fx_is_auxiliary(head) && !fx_is_calibration(head);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status = FX_OK;

	if (skipped(&fx_msg_acquisition(msg)->head) || fx_msg_acquisition(msg)->data->dims[0] == 0) {
		s->n_auxiliary++;
		fx_drop(msg);
		return FX_OK;
	}
	status = fx_msg_own(&msg);
	if (status == FX_OK)
		status = fx_readout_trim(fx_math_of(ctx), fx_msg_acquisition(msg));
	if (status == FX_OK)
		status = fx_readout_finite(fx_math_of(ctx), fx_msg_acquisition(msg));
	if (status == FX_OK)
		status = fx_collector_add(s->collector, fx_msg_acquisition(msg), NULL, 0);
	fx_drop(msg);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "cannot take a readout in");
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int64_t n_partial = 0;
	int status = fx_collector_end(s->collector, fx_input_cut(ctx), &n_partial);

	if (status == FX_OK && s->n_frames == 0 && !fx_noise_only(ctx))
		status = fx_fail(ctx, FX_EDATA, "the input ended without one imaging readout that has samples");
	fx_record_count(ctx, "partial_frames", n_partial);
	fx_record_count(ctx, "readouts_not_imaging", s->n_auxiliary);
	return status;
}

static void close_gadget(void *self)
{
	fx_collector_free(((struct state *)self)->collector);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "cartesian",
	.summary = "Coil images of fully sampled Cartesian frames, by FFT",
	.description = "Lines are placed by the step counters about the encoding limits' centre, and along the readout about center_sample, "
		"so that partial Fourier and asymmetric echoes lie right (what is missing is 0). k-space is "
		"zero-filled or cropped to the matrix that the header wants, and the image to its field of view. The FFT is orthonormal over the "
		"encoded matrix. Accelerated scans are "
		"refused.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_FRAME, .needs = FX_ACQUISITION, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

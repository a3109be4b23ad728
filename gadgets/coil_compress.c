/* SPDX-License-Identifier: MIT */
/* coil_compress: fewer virtual coils that hold most of the signal. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

struct state {
	int64_t channels, training;
	double energy;
	fx_array *gram;            /* cf64 {coils, coils} of the training readouts */
	fx_array *matrix;          /* cf32 {coils, virtual coils} */
	int64_t n_coils;
	fx_msg_list held;          /* readouts that wait for the matrix */
	fx_framer *framer;         /* tells when the first frame is whole */
	bool calibrated;           /* calibration readouts have come: they train alone */
	bool bypass;
};

static const fx_prop props[] = {
	FX_PROP(struct state, channels, "0", 0, 4096, "Virtual coils to keep; 0: as many as energy asks for"),
	FX_PROP(struct state, energy, "0.99", 0.01, 1, "Share of the signal's energy to keep where channels is 0"),
	FX_PROP(struct state, training, "0", 0, 1e9, "Readouts to train on; 0: the first frame, or the calibration readouts"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_framer_options options = {.max_open = 4096};

	return fx_framer_new(fx_scan(ctx), &options, fx_err(ctx), &s->framer);
}

static int train(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	int64_t coils = a->data->dims[1];
	int status = FX_OK;

	if (!s->gram) {
		s->n_coils = coils;
		status = fx_array_new2(FX_CF64, coils, coils, &s->gram);
	}
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for the covariance of %lld coils", (long long)coils);
	if (coils != s->n_coils)
		return fx_fail(ctx, FX_EDATA, "readout %u has %lld coils, those before it %lld; a scan must keep its coils",
			a->head.scan_counter, (long long)coils, (long long)s->n_coils);
	return fx_gram_add(fx_math_of(ctx), a->data, s->gram);
}

static int learn(struct state *s, fx_ctx *ctx)
{
	double kept = 0;
	int status = fx_compression_matrix(fx_math_of(ctx), s->gram, s->channels, s->energy, &s->matrix, &kept);

	if (status != FX_OK)
		return status;
	fx_record_number(ctx, "channels", (double)s->matrix->dims[1]);
	fx_record_number(ctx, "energy", kept);
	fx_info(ctx, "%lld coils become %lld, %.2f %% of the energy", (long long)s->n_coils, (long long)s->matrix->dims[1],
		100 * kept);
	return FX_OK;
}

static int compress(struct state *s, fx_ctx *ctx, fx_msg *msg)
{
	fx_array *mixed = NULL;
	fx_acquisition *a;
	int status = fx_msg_own(&msg);

	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for a readout");
	a = fx_msg_acquisition(msg);
	if (a->data->dims[1] != s->n_coils)
		status = fx_fail(ctx, FX_EDATA, "readout %u has %lld coils, those before it %lld; a scan must keep its coils",
			a->head.scan_counter, (long long)a->data->dims[1], (long long)s->n_coils);
	if (status == FX_OK && fx_array_new2(FX_CF32, a->data->dims[0], s->matrix->dims[1], &mixed) != FX_OK)
		status = fx_fail(ctx, FX_ENOMEM, "no memory for a readout");
	if (status == FX_OK && mixed->n > 0)
		status = fx_math_of(ctx)->ops->coil_mix(fx_math_of(ctx), s->matrix, a->data, mixed);
	if (status != FX_OK) {
		fx_array_unref(mixed);
		fx_drop(msg);
		return status;
	}
	fx_slot_take(&a->data, mixed);
	a->head.active_channels = (uint16_t)s->matrix->dims[1];
	return fx_emit(ctx, msg);
}

static int release(struct state *s, fx_ctx *ctx)
{
	int status = s->matrix ? FX_OK : learn(s, ctx);

	for (int64_t i = 0; i < s->held.n; i++) {
		if (status == FX_OK)
			status = compress(s, ctx, s->held.list[i]);
		else
			fx_drop(s->held.list[i]);
	}
	s->held.n = 0;
	fx_msg_list_clear(&s->held);
	return status;
}

/* Trains on a readout; *ready is true once enough has been seen. */
static int look(struct state *s, fx_ctx *ctx, const fx_acquisition *a, bool *ready)
{
	bool calibration = FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION);
	fx_framed framed;
	int status = FX_OK;

	*ready = false;
	if (calibration) {
		s->calibrated = true;
		return train(s, ctx, a);
	}
	if (fx_is_auxiliary(&a->head) || a->data->dims[0] == 0)
		return FX_OK;
	if (s->calibrated) {
		*ready = true;
		return FX_OK;
	}
	status = train(s, ctx, a);
	if (status == FX_OK)
		status = fx_framer_add(s->framer, &a->head, fx_err(ctx), &framed);
	if (status == FX_OK)
		*ready = framed.n_closed > 0 || (s->training > 0 && s->held.n + 1 >= s->training);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_acquisition *a = fx_msg_acquisition(msg);
	bool ready;
	int status;

	if (s->matrix)
		return compress(s, ctx, msg);
	if (a->data->dims[1] == 1 || (s->channels > 0 && a->data->dims[1] <= s->channels))
		s->bypass = true;
	if (s->bypass)
		return fx_emit(ctx, msg);
	status = look(s, ctx, a, &ready);
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	if (fx_msg_list_push(&s->held, msg) != FX_OK)
		return fx_fail(ctx, FX_ENOMEM, "no memory to hold readouts");
	return ready ? release(s, ctx) : FX_OK;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;

	return s->held.n > 0 && s->gram ? release(s, ctx) : FX_OK;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_msg_list_clear(&s->held);
	fx_array_unref(s->gram);
	fx_array_unref(s->matrix);
	fx_framer_free(s->framer);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "coil_compress",
	.summary = "Compress the coils into fewer virtual ones",
	.description = "Principal components (SVD) of the calibration readouts, or of the first frame, which is held until it is whole; "
		"later readouts stream. Put it behind noise_adjust. One coil, or no more coils than channels, pass untouched. Source: "
		"Buehrer et al., Magn. Reson. Med. 57:1131 (2007).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

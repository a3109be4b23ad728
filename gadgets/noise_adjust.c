/* SPDX-License-Identifier: MIT */
/*
 * noise_adjust: prewhiten the coils with the noise covariance of the scan's own noise readouts, or of the earlier scan that
 * its header names. What is measured is left for later scans, where somebody keeps it.
 */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>
#include <string.h>

enum { REFUSE, PASS };
enum { COMPLEX, PARTS };

struct state {
	bool rescale;
	double bandwidth;
	int nonconforming, unit;
	const char *scale_only;
	int64_t n_coils, n_samples;
	double noise_dwell_us;
	fx_array *gram;            /* cf64 {coils, coils}: sum of x_a conj(x_b) over n_samples */
	fx_array *whitening;       /* cf32 {coils, coils}; NULL before the first imaging readout, or without noise */
	bool decided;
	int64_t n_late, n_passed;
};

static const char *const nonconformings[] = {[REFUSE] = "refuse", [PASS] = "pass", NULL};
static const char *const units[] = {[COMPLEX] = "complex", [PARTS] = "parts", NULL};

static const fx_prop props[] = {
	FX_PROP(struct state, rescale, "true", 0, 1,
		"Scale the noise covariance from the noise readouts' dwell time and receiver bandwidth to the imaging readouts'"),
	FX_PROP(struct state, bandwidth, "1", 1e-6, 1e6, "Relative receiver noise bandwidth where the header has none"),
	FX_PROP_WORD(struct state, nonconforming, "refuse", nonconformings, "A readout with other coils than the noise: refuse the scan, or pass it as it is"),
	FX_PROP_WORD(struct state, unit, "complex", units,
		"What becomes 1: the variance of a complex sample, or those of its real and of its imaginary part, which makes magnitudes SNR"),
	FX_PROP(struct state, scale_only, "", 0, 65535,
		"Names of coils (the header's coilLabel), separated by commas, that are scaled to their own noise and mixed with no other"),
	FX_PROP_END
};

static int take_noise(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	int64_t coils = a->data->dims[1];
	int status = FX_OK;

	if (s->decided) {
		s->n_late++;
		return FX_OK;
	}
	if (!s->gram) {
		s->n_coils = coils;
		s->noise_dwell_us = (double)a->head.sample_time_us;
		status = fx_array_new2(FX_CF64, coils, coils, &s->gram);
	}
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for the noise covariance of %lld coils", (long long)coils);
	if (coils != s->n_coils)
		return fx_fail(ctx, FX_EDATA, "noise readout %u has %lld coils, those before it %lld", a->head.scan_counter,
			(long long)coils, (long long)s->n_coils);
	s->n_samples += a->data->dims[0];
	return fx_gram_add(fx_math_of(ctx), a->data, s->gram);
}

/* Noise power per sample goes with bandwidth: what the noise readouts saw over what the imaging readouts see. */
static double power_ratio(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	double bandwidth = fx_scan(ctx)->noise_bandwidth, dwell = (double)a->head.sample_time_us;

	if (!s->rescale)
		return 1;
	if (!(bandwidth > 0))
		bandwidth = s->bandwidth;
	if (!(dwell > 0) || !(s->noise_dwell_us > 0)) {
		fx_warn(ctx, "a dwell time of 0 us: the noise covariance is not scaled from noise to imaging readouts");
		return 1;
	}
	return s->noise_dwell_us / (dwell * bandwidth);
}

/* gram, per sample, times a factor: a new array. */
static int covariance_of(const struct state *s, fx_ctx *ctx, double factor, fx_array **out)
{
	int status = fx_array_new2(FX_CF64, s->n_coils, s->n_coils, out);

	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for the noise covariance of %lld coils", (long long)s->n_coils);
	for (int64_t i = 0; i < (*out)->n; i++)
		FX_CF64_OF(*out)[i] = FX_CF64_OF(s->gram)[i] * (factor / (double)s->n_samples);
	return FX_OK;
}

/* What was measured is left for later scans, under this scan's measurement id. */
static int leave(const struct state *s, fx_ctx *ctx)
{
	const char *id = fx_scan(ctx)->measurement_id;
	fx_noise noise = {.dwell_us = s->noise_dwell_us, .n_samples = s->n_samples};
	int status;

	if (s->n_samples == 0 || !id || !*id)
		return FX_OK;
	status = covariance_of(s, ctx, 1, &noise.covariance);
	if (status == FX_OK)
		status = fx_noise_put(ctx, id, &noise);
	fx_noise_clear(&noise);
	return status;
}

/* The noise of the scan that the header names, where it is kept and fits. */
static int fetch(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	const char *id = fx_scan(ctx)->noise_dependency;
	fx_noise noise;
	int status = id && *id ? fx_noise_get(ctx, id, &noise) : FX_OK;

	if (!id || !*id || status != FX_OK)
		return status;
	if (!noise.covariance)
		fx_warn(ctx, "no noise is kept of measurement '%.200s', which the header names: coils are not prewhitened", id);
	else if (noise.covariance->dims[0] != a->data->dims[1])
		fx_warn(ctx, "the noise kept of measurement '%.200s' has %lld coils, this scan has %lld: coils are not prewhitened", id,
			(long long)noise.covariance->dims[0], (long long)a->data->dims[1]);
	else {
		s->n_coils = noise.covariance->dims[0];
		s->n_samples = noise.n_samples;
		s->noise_dwell_us = noise.dwell_us;
		fx_slot_take(&s->gram, noise.covariance);
		noise.covariance = NULL;
		for (int64_t i = 0; i < s->gram->n; i++) /* ours alone: the store gave it away */
			FX_CF64_OF(s->gram)[i] *= (double)s->n_samples;
		fx_record_text(ctx, "whitening", "noise of an earlier scan");
		fx_record_text(ctx, "noise_measurement", id);
	}
	fx_noise_clear(&noise);
	return FX_OK;
}

/* Coils of that name correlate with no other. */
static void separate(const struct state *s, fx_ctx *ctx, const char *name, size_t length, fx_array *covariance)
{
	const fx_header *scan = fx_scan(ctx);
	bool found = false;

	for (int64_t i = 0; i < scan->n_coil_names && i < s->n_coils; i++) {
		if (strlen(scan->coil_names[i]) != length || strncmp(scan->coil_names[i], name, length) != 0)
			continue;
		found = true;
		for (int64_t j = 0; j < s->n_coils; j++)
			if (j != i)
				FX_CF64_OF(covariance)[i + s->n_coils * j] = FX_CF64_OF(covariance)[j + s->n_coils * i] = 0;
	}
	if (!found)
		fx_warn(ctx, "the header names no coil '%.*s', which scale_only lists", (int)(length > 100 ? 100 : length), name);
}

static int whitening_of(struct state *s, fx_ctx *ctx, fx_array *covariance)
{
	int status;

	for (const char *name = s->scale_only; *name;) {
		size_t length = strcspn(name, ","), lead = strspn(name, " \t\r\n"), end = length;

		while (end > lead && strchr(" \t\r\n", name[end - 1]))
			end--;
		if (end > lead)
			separate(s, ctx, name + lead, end - lead, covariance);
		name += length + (name[length] == ',');
	}
	status = fx_whitening_matrix(fx_math_of(ctx), covariance, &s->whitening);
	if (status == FX_OK && s->unit == PARTS)
		for (int64_t i = 0; i < s->whitening->n; i++)
			FX_CF32_OF(s->whitening)[i] *= (float)M_SQRT2;
	return status;
}

static int decide(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	const char *id = fx_scan(ctx)->noise_dependency;
	fx_array *covariance;
	double ratio;
	int status = FX_OK;

	s->decided = true;
	if (s->n_samples > 0) {
		fx_record_text(ctx, "whitening", "noise readouts");
		status = leave(s, ctx);
	} else
		status = fetch(s, ctx, a);
	if (status != FX_OK)
		return status;
	if (s->n_samples == 0) {
		if (!id || !*id)
			fx_warn(ctx, "the scan has no noise readouts: coils are not prewhitened");
		fx_record_text(ctx, "whitening", "identity");
		return FX_OK;
	}
	ratio = power_ratio(s, ctx, a);
	status = covariance_of(s, ctx, ratio, &covariance);
	if (status != FX_OK)
		return status;
	status = whitening_of(s, ctx, covariance);
	fx_array_unref(covariance);
	fx_record_number(ctx, "noise_samples", (double)s->n_samples);
	fx_record_number(ctx, "power_ratio", ratio);
	return status;
}

static int whiten(struct state *s, fx_ctx *ctx, fx_msg **msg)
{
	fx_acquisition *a = fx_msg_acquisition(*msg);
	fx_array *white = NULL;
	int status;

	if (!s->whitening || a->data->dims[0] == 0)
		return FX_OK;
	if (a->data->dims[1] != s->n_coils && s->nonconforming == PASS) {
		s->n_passed++;
		return FX_OK;
	}
	if (a->data->dims[1] != s->n_coils)
		return fx_fail(ctx, FX_EDATA, "readout %u has %lld coils, the noise readouts %lld", a->head.scan_counter,
			(long long)a->data->dims[1], (long long)s->n_coils);
	status = fx_msg_own(msg);
	if (status == FX_OK)
		status = fx_array_new2(FX_CF32, a->data->dims[0], s->n_coils, &white);
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for a whitened readout");
	a = fx_msg_acquisition(*msg);
	status = fx_math_of(ctx)->ops->coil_mix(fx_math_of(ctx), s->whitening, a->data, white);
	fx_slot_take(&a->data, white);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_acquisition *a = fx_msg_acquisition(msg);
	int status = FX_OK;

	if (FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT)) {
		status = take_noise(s, ctx, a);
		fx_drop(msg);
		return status;
	}
	if (!s->decided)
		status = decide(s, ctx, a);
	if (status == FX_OK)
		status = whiten(s, ctx, &msg);
	if (status != FX_OK) {
		fx_drop(msg);
		return status;
	}
	return fx_emit(ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (!s->decided) /* a scan of noise alone */
		return leave(s, ctx);
	if (s->n_passed > 0)
		fx_warn(ctx, "%lld readouts have other coils than the noise and passed as they were", (long long)s->n_passed);
	if (s->n_late > 0)
		fx_warn(ctx, "%lld noise readouts came after the first imaging readout and were not used", (long long)s->n_late);
	return FX_OK;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_array_unref(s->gram);
	fx_array_unref(s->whitening);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "noise_adjust",
	.summary = "Prewhiten the coils with the scan's own noise readouts",
	.description = "The covariance C = L L^H of the noise readouts, scaled by dwell time and relative receiver noise bandwidth; "
		"data become L^{-1} D, whose noise has unit covariance (unit says of what): images are then in units of noise. Noise readouts are consumed. "
		"A scan without any takes the noise of the measurement that its header names as a dependency of type Noise, where that is "
		"kept (`fornix serve` keeps it, by measurement id); else data pass untouched, with a warning. A scan of noise alone leaves its "
		"covariance and no image. Source: Pruessmann et al., Magn. Reson. Med. 46:638 (2001).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

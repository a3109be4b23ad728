/* SPDX-License-Identifier: MIT */
/* remove_oversampling: crop each Cartesian readout to the reconstructed field of view. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

struct state {
	double factor;
};

static const fx_prop props[] = {
	FX_PROP(struct state, factor, "0", 0, 16,
		"Readout oversampling; 0 takes it from the header: encoded over reconstructed field of view"),
	FX_PROP_END
};

/* How a readout's encoding is oversampled; below 1 (after explaining) where that cannot be known. */
static double factor_of(const struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	const fx_header *scan = fx_scan(ctx);
	const fx_encoding *e;
	double factor = s->factor;

	if (a->head.encoding_space_ref >= scan->n_encodings) {
		fx_fail(ctx, FX_EDATA, "readout %u refers to encoding %u, but the header has %lld", a->head.scan_counter,
			a->head.encoding_space_ref, (long long)scan->n_encodings);
		return 0;
	}
	e = &scan->encodings[a->head.encoding_space_ref];
	/* the same matrix and field of view need no cropping, even where simulators leave the latter 0 */
	if (factor == 0 && e->encoded.fov_mm[0] == e->recon.fov_mm[0] && e->encoded.matrix[0] == e->recon.matrix[0])
		return 1;
	if (factor == 0)
		factor = e->encoded.fov_mm[0] / e->recon.fov_mm[0];
	if (!(factor >= 1)) { /* also NaN, from fields of view of 0 */
		fx_fail(ctx, FX_EDATA, "the header's fields of view along the readout, encoded %g mm and reconstructed %g mm, "
			"give no oversampling; set remove_oversampling.factor", e->encoded.fov_mm[0], e->recon.fov_mm[0]);
		return 0;
	}
	return factor;
}

/* Where k = 0 lies in a readout of that many samples: files that leave center_sample 0 mean the middle. */
static int64_t centre_of(const fx_acquisition *a)
{
	return a->head.center_sample > 0 ? a->head.center_sample : a->data->dims[0] / 2;
}

/*
 * The readout on a full, centred line of `full` samples, cropped in image space to `keep`, and back in k-space. The
 * line is orthonormal on both sides.
 */
static int crop(fx_math *m, const fx_acquisition *a, int64_t full, int64_t keep, fx_array **out)
{
	int64_t samples = a->data->dims[0], coils = a->data->dims[1], shift = full / 2 - centre_of(a);
	fx_array *line = NULL, *cropped = NULL;
	int status = m->ops->array_new(m, FX_CF32, 4, (int64_t[]){full, 1, 1, coils}, &line);

	*out = NULL;
	for (int64_t c = 0; c < coils && status == FX_OK; c++)
		for (int64_t i = 0; i < samples; i++)
			FX_CF32_OF(line)[c * full + i + shift] = FX_CF32_OF(a->data)[c * samples + i];
	if (status == FX_OK)
		status = m->ops->fft(m, line, +1, 1 / sqrt((double)full));
	if (status == FX_OK)
		status = fx_resize_centred(m, line, (int64_t[]){keep, 1, 1}, &cropped);
	/* orthonormal both ways: what a scan of the kept matrix would have given, noise included */
	if (status == FX_OK)
		status = m->ops->fft(m, cropped, -1, 1 / sqrt((double)keep));
	fx_array_unref(line);
	if (status == FX_OK)
		*out = cropped;
	else
		fx_array_unref(cropped);
	return status;
}

/* From here on the encoded matrix is smaller along the readout, and so is its field of view. */
static void set_matrix(fx_ctx *ctx, fx_acquisition *a, double factor)
{
	const fx_encoding *e = &fx_scan(ctx)->encodings[a->head.encoding_space_ref];

	for (int d = 0; d < 3; d++) {
		a->matrix[d] = d == 0 ? llround((double)e->encoded.matrix[0] / factor) : e->encoded.matrix[d];
		a->fov_mm[d] = d == 0 ? e->encoded.fov_mm[0] / factor : e->encoded.fov_mm[d];
	}
}

/* Keeps what corresponds to samples that were measured: an asymmetric echo stays one. */
static int shorten(fx_math *m, fx_acquisition *a, double factor)
{
	int64_t samples = a->data->dims[0], centre = centre_of(a);
	int64_t half = centre > samples - centre ? centre : samples - centre, full = 2 * half;
	int64_t keep = llround((double)full / factor), first, last;
	fx_array *cropped;
	int status = crop(m, a, full, keep, &cropped);

	if (status != FX_OK)
		return status;
	first = (int64_t)floor((double)(full / 2 - centre) / factor);
	last = keep - (int64_t)floor((double)(full - samples - (full / 2 - centre)) / factor);
	fx_slot_take(&a->data, NULL);
	status = fx_array_new2(FX_CF32, keep, cropped->dims[3], &a->data);
	if (status == FX_OK)
		for (int64_t i = 0; i < cropped->n; i++)
			FX_CF32_OF(a->data)[i] = FX_CF32_OF(cropped)[i];
	fx_array_unref(cropped);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a readout");
	a->head.center_sample = (uint16_t)(keep / 2);
	return fx_readout_crop(m, a, first, last - first);
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	const fx_acquisition *a = fx_msg_acquisition(msg);
	double factor;
	int status;

	if (FX_FLAG(a->head.flags, ISMRMRD_ACQ_IS_NOISE_MEASUREMENT) || a->data->dims[0] == 0)
		return fx_emit(ctx, msg);
	if (a->traj) {
		unsigned readout = a->head.scan_counter;

		fx_drop(msg);
		return fx_fail(ctx, FX_EDATA, "readout %u carries a trajectory: cropping its field of view along the readout would be "
			"wrong; leave this gadget out", readout);
	}
	factor = factor_of(s, ctx, a);
	if (factor == 1)
		return fx_emit(ctx, msg);
	status = factor > 1 ? fx_msg_own(&msg) : fx_err(ctx)->status;
	if (status == FX_OK)
		status = fx_readout_trim(fx_math_of(ctx), fx_msg_acquisition(msg));
	if (status == FX_OK)
		status = shorten(fx_math_of(ctx), fx_msg_acquisition(msg), factor);
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "cannot crop a readout");
	}
	set_matrix(ctx, fx_msg_acquisition(msg), factor);
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "remove_oversampling",
	.summary = "Crop each Cartesian readout to the reconstructed field of view",
	.description = "An inverse FFT along the readout, a crop about the centre, and an FFT back, both orthonormal. Asymmetric echoes stay "
		"so. Noise readouts pass untouched; readouts that carry a trajectory are refused. discard_pre and discard_post are applied.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process,
};

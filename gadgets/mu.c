/* SPDX-License-Identifier: MIT */
/* mu: Mu = conj(phi) D, readout by readout. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

enum { FROM_FILE = FX_VOXEL_BOX + 1 };

struct state {
	int voxel;
	const char *phi;
	fx_array *samples;         /* voxel=file: cf32, one readout's phi or every step's */
};

static const char *const voxels[] = {[FX_VOXEL_DELTA] = "delta", [FX_VOXEL_BOX] = "box", [FROM_FILE] = "file", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, voxel, "delta", voxels,
		"Voxel function: its Fourier transform is phi (1 for delta, a product of sincs for box; phi(0) = 1); file: phi itself"),
	FX_PROP_FILE(struct state, phi, "",
		"NIfTI of phi at the samples, complex or real: {samples} for every readout alike, or {samples, readouts} by the first "
		"phase-encoding counter"),
	FX_PROP_END
};

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_array *read = NULL;
	double affine[3][4];
	bool has_affine;
	int status;

	if ((s->voxel == FROM_FILE) != (*s->phi != 0))
		return fx_fail(ctx, FX_EINVAL, "voxel=file and phi=FILE go together");
	if (s->voxel != FROM_FILE)
		return FX_OK;
	status = fx_read_nifti(ctx, s->phi, &read, affine, &has_affine);
	if (status == FX_OK)
		status = fx_array_convert(read, FX_CF32, &s->samples);
	fx_array_unref(read);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "cannot take phi from %s", s->phi);
}

/* This readout's part of the file, cf32 {samples} (new). */
static int phi_from_file(const struct state *s, fx_ctx *ctx, const fx_acquisition *a, fx_array **phi)
{
	int64_t samples = a->data->dims[0], step = a->head.idx.kspace_encode_step_1, rows;
	int status;

	rows = samples > 0 && s->samples->n % samples == 0 ? s->samples->n / samples : 0;
	if (s->samples->dims[0] != samples || (rows > 1 && step >= rows))
		return fx_fail(ctx, FX_EDATA, "readout %u has %lld samples and step %lld, but %s holds %lld x %lld values of phi",
			a->head.scan_counter, (long long)samples, (long long)step, s->phi, (long long)s->samples->dims[0],
			(long long)(s->samples->n / (s->samples->dims[0] > 0 ? s->samples->dims[0] : 1)));
	status = fx_array_new1(FX_CF32, samples, phi);
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for phi of %lld samples", (long long)samples);
	for (int64_t i = 0; i < samples; i++)
		FX_CF32_OF(*phi)[i] = FX_CF32_OF(s->samples)[(rows > 1 ? step : 0) * samples + i];
	return FX_OK;
}

/* Turns the readout into Mu and tells its share of the data norm. */
static int weigh(struct state *s, fx_ctx *ctx, fx_weighted *w)
{
	fx_acquisition *a = &w->readout;
	fx_array *phi = NULL;
	int status = FX_OK;

	if (!a->k)
		return fx_fail(ctx, FX_EDATA, "readout %u has no trajectory in cycles/voxel; put <trajectory/> in front of <mu/>",
			a->head.scan_counter);
	if (s->voxel == FROM_FILE)
		status = phi_from_file(s, ctx, a, &phi);
	else if (s->voxel != FX_VOXEL_DELTA)
		status = fx_voxel_function(fx_math_of(ctx), s->voxel, a->k, a->matrix, &phi);
	if (status == FX_OK && phi)
		status = fx_array_own(&a->data);
	if (status == FX_OK)
		status = fx_apply_mu(fx_math_of(ctx), phi, a->data, &w->phi2, &w->data_norm2);
	fx_array_unref(phi);
	if (status != FX_OK)
		return fx_fail(ctx, status, "cannot weigh readout %u", a->head.scan_counter);
	if (!isfinite(w->data_norm2))
		return fx_fail(ctx, FX_EDATA,
			"readout %u (slice %u, step %u) holds samples that are not finite numbers; the raw data are damaged",
			a->head.scan_counter, a->head.idx.slice, a->head.idx.kspace_encode_step_1);
	return FX_OK;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = fx_msg_to_weighted(msg);
	if (status == FX_OK)
		status = weigh(self, ctx, fx_msg_weighted(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for a weighted readout");
	}
	return fx_emit(ctx, msg);
}

static void close_gadget(void *self)
{
	fx_array_unref(((struct state *)self)->samples);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "mu",
	.summary = "Weigh each readout with the voxel function: Mu = conj(phi) D",
	.description = "The chapter's cmpMu: rMu = rPhi rD + iPhi iD, iMu = rPhi iD - iPhi rD. Works readout by readout. Gives a "
		"kind of its own, so that what must see raw samples (noise_adjust) is refused behind it, and what needs Mu (fhd) "
		"is refused without it. Also sums ||D||^2 for the data residual. Source: Stone et al., J. Parallel Distrib. "
		"Comput. 68:1307 (2008).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_WEIGHTED, .needs = FX_ACQUISITION, .places = FX_HOST,
	.open = open_gadget, .process = process, .close = close_gadget,
};

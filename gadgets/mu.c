/* SPDX-License-Identifier: MIT */
/* mu: Mu = conj(phi) D, readout by readout. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

struct state {
	int voxel;
};

static const char *const voxels[] = {[FX_VOXEL_DELTA] = "delta", [FX_VOXEL_BOX] = "box", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, voxel, "delta", voxels,
		"Voxel function: its Fourier transform is phi (1 for delta, a product of sincs for box; phi(0) = 1)"),
	FX_PROP_END
};

/* Turns the readout into Mu and tells its share of the data norm. */
static int weigh(struct state *s, fx_ctx *ctx, fx_weighted *w)
{
	fx_acquisition *a = &w->readout;
	fx_array *phi = NULL;
	int status = FX_OK;

	if (!a->k)
		return fx_fail(ctx, FX_EDATA, "readout %u has no trajectory in cycles/voxel; put <trajectory/> in front of <mu/>",
			a->head.scan_counter);
	if (s->voxel != FX_VOXEL_DELTA)
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

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "mu",
	.summary = "Weigh each readout with the voxel function: Mu = conj(phi) D",
	.description = "The chapter's cmpMu: rMu = rPhi rD + iPhi iD, iMu = rPhi iD - iPhi rD. Works readout by readout. Gives a "
		"kind of its own, so that what must see raw samples (noise_adjust) is refused behind it, and what needs Mu (fhd) "
		"is refused without it. Also sums ||D||^2 for the data residual. Source: Stone et al., J. Parallel Distrib. "
		"Comput. 68:1307 (2008).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_WEIGHTED, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process,
};

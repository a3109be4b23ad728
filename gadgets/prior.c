/* SPDX-License-Identifier: MIT */
/* prior: lambda of the least-squares fit. */
#include <fornix/gadget.h>

struct state {
	double lambda;
};

static const fx_prop props[] = {
	FX_PROP(struct state, lambda, "0.01", 0, 1e6,
		"Weight of ||rho||^2, in units of the mean eigenvalue of F^H F (with coil maps), so that it needs no tuning to scale"),
	FX_PROP_END
};

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	int status = fx_msg_own(&msg);

	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for a frame");
	fx_msg_frame(msg)->lambda = s->lambda;
	fx_msg_frame(msg)->has_prior = true;
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "prior",
	.summary = "Prior of the least-squares fit: lambda ||rho||^2",
	.description = "Adds lambda W^H W with W = I to the normal equations. lambda is relative to the mean eigenvalue of F^H F, "
		"(sum |phi|^2 / N) times the mean of sum_c |S_c|^2, which does not depend on the density at the centre of k-space.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_FRAME, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.process = process,
};

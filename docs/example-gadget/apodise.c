/* SPDX-License-Identifier: MIT */
/*
 * apodise: a Hann window over k-space, from its centre to the edge of the matrix. Edges ring less and blur more.
 */
#include <fornix/fornix.h>

#include <math.h>

#define PI 3.14159265358979323846 /* strict C11 has no M_PI */

struct state {
	double strength;
};

static const fx_prop props[] = {
	FX_PROP(struct state, strength, "1", 0, 1, "Share of the signal taken away at the edge of k-space: 0 for "
		"none, 1 for a full Hann window"),
	FX_PROP_END
};

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	const struct state *s = self;
	fx_acquisition *readout = fx_msg_acquisition(msg);
	int status;

	if (fx_is_auxiliary(&readout->head)) /* noise and the like have no place in k-space */
		return fx_emit(ctx, msg);
	if (readout->k == NULL) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EINVAL, "the readout has no trajectory yet: put <trajectory/> before <apodise/>");
	}
	status = fx_msg_own(&msg);
	if (status != FX_OK)
		return fx_fail(ctx, status, "no memory for a readout of one's own");
	readout = fx_msg_acquisition(msg);
	status = fx_array_own(&readout->data);
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for samples of one's own");
	}
	for (int64_t m = 0; m < readout->data->dims[0]; m++) {
		const double *k = FX_F64_OF(readout->k) + 3 * m;
		double radius = fmin(sqrt(k[0] * k[0] + k[1] * k[1] + k[2] * k[2]), 0.5);
		double fall = sin(PI * radius);
		float window = (float)(1 - s->strength * fall * fall);

		for (int64_t coil = 0; coil < readout->data->dims[1]; coil++)
			FX_CF32_OF(readout->data)[m + readout->data->dims[0] * coil] *= window;
	}
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "apodise", .summary = "Window k-space so that edges ring less",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process,
};

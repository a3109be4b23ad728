/* SPDX-License-Identifier: MIT */
/* density: density compensation weights, or the request for them. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

enum { AUTO, ANALYTIC, PIPE_MENON };

struct state {
	int method;
	int64_t iterations;
	bool told;
};

static const char *const methods[] = {[AUTO] = "auto", [ANALYTIC] = "analytic", [PIPE_MENON] = "pipe_menon", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "auto", methods,
		"analytic: closed form of radial and spiral readouts; pipe_menon: iterative, any trajectory; auto: analytic where "
		"the header names such a trajectory and the readout has its shape, else pipe_menon"),
	FX_PROP(struct state, iterations, "6", 1, 1000, "Pipe-Menon iterations"),
	FX_PROP_END
};

/* Closed-form weights into a->weights; leaves NULL where the readout has no such form. */
static int analytic(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	const fx_encoding *e = &fx_scan(ctx)->encodings[a->head.encoding_space_ref];
	fx_array *weights = NULL;
	int status;

	if (s->method == AUTO && !fx_density_has_analytic(e, a->matrix))
		return FX_OK;
	/* as if this readout alone made the frame: only whoever closes the frame knows how many there are */
	status = fx_density_analytic(fx_math_of(ctx), a->k, a->matrix, 1, &weights);
	if (status != FX_OK)
		return fx_fail(ctx, status, "cannot weigh readout %u", a->head.scan_counter);
	if (!weights && s->method == ANALYTIC)
		return fx_fail(ctx, FX_EDATA, "readout %u is neither a spoke nor a spiral, so its density has no closed form; "
			"set density.method=pipe_menon", a->head.scan_counter);
	fx_slot_take(&a->weights, weights);
	return FX_OK;
}

static int mark(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	int status = FX_OK;

	if (!a->k)
		return fx_fail(ctx, FX_EDATA,
			"readout %u has no trajectory in cycles/voxel; put <trajectory/> in front of <density/>",
			a->head.scan_counter);
	if (a->density == FX_DENSITY_CELLS)
		return FX_OK; /* Cartesian calibration lines: trajectory knows their weights */
	if (s->method != PIPE_MENON)
		status = analytic(s, ctx, a);
	a->density = a->weights ? FX_DENSITY_GIVEN : FX_DENSITY_ITERATIVE;
	a->density_iterations = s->iterations;
	if (!s->told && status == FX_OK) {
		s->told = true;
		fx_record_text(ctx, "method", a->weights ? "analytic" : "pipe_menon");
	}
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	int status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = mark(self, ctx, fx_msg_acquisition(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for a readout");
	}
	return fx_emit(ctx, msg);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "density",
	.summary = "Density compensation weights of each sample",
	.description = "A weight is the k-space area or volume that a sample stands for, in Cartesian cells. Closed forms are "
		"computed here, readout by readout, so the chain keeps streaming. Iterative weights (Pipe and Menon, Magn. Reson. "
		"Med. 41:179, 1999) need the whole trajectory: they are requested here and computed where the frame closes (fhd, "
		"grid), which keeps samples until then. Weights serve the direct and gridded images, the coil maps and the start of "
		"CG; the least-squares objective stays unweighted.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .places = FX_HOST,
	.process = process,
};

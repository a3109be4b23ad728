/* SPDX-License-Identifier: MIT */
/* cg: the image that solves (F^H F + lambda W^H W) rho = F^H D. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

#include <math.h>

enum { FROM_DIRECT, FROM_ZERO, FROM_PREVIOUS };

#define N_PREVIOUS 1024 /* slices whose last estimate is kept for start=previous */

struct state {
	int64_t iterations;
	double tolerance;
	int start;
	int64_t n_frames, n_unconverged;
	double worst;              /* residual of the normal equations, of those that did not converge */
	fx_array *previous[N_PREVIOUS];
};

static const char *const starts[] = {[FROM_DIRECT] = "direct", [FROM_ZERO] = "zero",
	[FROM_PREVIOUS] = "previous", NULL};

static const fx_prop props[] = {
	FX_PROP(struct state, iterations, "10", 1, 1e6, "Iterations at most"),
	FX_PROP(struct state, tolerance, "1e-4", 0, 1, "Stop at ||A rho - b|| <= tolerance ||b||; 0 runs all iterations"),
	FX_PROP_WORD(struct state, start, "direct", starts,
		"direct: from the density-compensated image where the frame has one; zero; previous: from the last frame of the same "
		"slice, the first one from direct: a series in which little changes converges in fewer iterations"),
	FX_PROP_END
};

static int start_image(struct state *s, fx_math *m, const fx_frame *f, fx_array **x)
{
	fx_array *last = s->start == FROM_PREVIOUS && f->head.idx.slice < N_PREVIOUS ? s->previous[f->head.idx.slice] : NULL;
	int status;

	if (last && last->dims[0] == f->grid[0] && last->dims[1] == f->grid[1] && last->dims[2] == f->grid[2]) {
		status = m->ops->array_new(m, FX_CF32, 3, f->grid, x);
		return status == FX_OK ? m->ops->axpy(m, 1, last, *x) : status;
	}
	if (s->start == FROM_ZERO || !f->direct)
		return m->ops->array_new(m, FX_CF32, 3, f->grid, x);
	if (f->maps)
		return fx_coils_to_image(m, f->maps, f->direct, x);
	status = m->ops->array_new(m, FX_CF32, 3, f->grid, x);
	return status == FX_OK ? m->ops->axpy(m, 1, f->direct, *x) : status;
}

static void record(struct state *s, fx_ctx *ctx, fx_frame *f, const fx_cg_report *r)
{
	static const char *const stops[] = {[FX_STOP_NONE] = "none", [FX_STOP_CONVERGED] = "converged",
		[FX_STOP_ITERATIONS] = "iterations", [FX_STOP_ZERO] = "zero data"};

	f->iterations = r->iterations;
	f->stop = r->stop;
	f->residual_normal = r->residual_normal[r->n_residuals - 1];
	f->residual_data = r->residual_data[r->n_residuals - 1];
	fx_record_number(ctx, "iterations", (double)r->iterations);
	fx_record_text(ctx, "stop", stops[r->stop]);
	fx_record_numbers(ctx, "residual_normal", r->residual_normal, r->n_residuals);
	fx_record_numbers(ctx, "residual_data", r->residual_data, r->n_residuals);
	s->n_frames++;
	if (r->stop == FX_STOP_ITERATIONS && s->tolerance > 0) {
		s->n_unconverged++;
		s->worst = fmax(s->worst, f->residual_normal);
	}
}

static int solve(struct state *s, fx_ctx *ctx, fx_frame *f)
{
	fx_math *m = fx_math_of(ctx);
	fx_cg_options options = {.iterations = s->iterations, .tolerance = s->tolerance};
	double lambda_abs = 0;
	fx_cg_report report = {0};
	fx_array *b = NULL, *x = NULL;
	int status;

	if (!f->fhd || !f->kernel)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has no %s; cg needs <fhd accumulate=\"both\"/> and <toeplitz/> in front",
			(long long)f->id, f->fhd ? "normal operator" : "unweighted F^H D");
	if (f->n_coils > 1 && !f->maps)
		return fx_fail(ctx, FX_EINVAL, "frame %lld has %lld coils and no maps; put <coil_maps/> in front of <cg/>",
			(long long)f->id, (long long)f->n_coils);
	status = fx_lambda_absolute(m, f, &lambda_abs);
	if (status == FX_OK)
		status = fx_frame_right_side(m, f, &b);
	if (status == FX_OK)
		status = start_image(s, m, f, &x);
	if (status == FX_OK)
		status = fx_frame_solve(m, f, lambda_abs, f->data_norm2, b, &options, x, &report);
	if (status == FX_OK) {
		record(s, ctx, f, &report);
		if (s->start == FROM_PREVIOUS && f->head.idx.slice < N_PREVIOUS)
			fx_slot_take(&s->previous[f->head.idx.slice], fx_array_ref(x));
		fx_slot_take(&f->estimate, x);
		x = NULL;
	}
	fx_cg_report_free(&report);
	fx_array_unref(b);
	fx_array_unref(x);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	fx_msg *image = NULL;
	int status;

	if (fx_msg_frame(msg)->calibration) {
		fx_drop(msg);
		return FX_OK;
	}
	status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = solve(self, ctx, fx_msg_frame(msg));
	if (status == FX_OK)
		status = fx_frame_image(fx_math_of(ctx), fx_msg_frame(msg), fx_msg_frame(msg)->estimate, &image);
	fx_drop(msg);
	if (status != FX_OK)
		return fx_fail(ctx, status, "cannot solve");
	return fx_emit(ctx, image);
}

static int flush(void *self, fx_ctx *ctx)
{
	const struct state *s = self;

	if (s->n_unconverged > 0)
		fx_warn(ctx, "%lld of %lld frames stopped at cg.iterations=%lld before cg.tolerance=%g: the residual of the normal "
			"equations is %.1e at the worst; more iterations fit the data closer, and their noise", (long long)s->n_unconverged,
			(long long)s->n_frames, (long long)s->iterations, s->tolerance, s->worst);
	return FX_OK;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	for (int i = 0; i < N_PREVIOUS; i++)
		fx_array_unref(s->previous[i]);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "cg",
	.summary = "Solve (F^H F + lambda W^H W) rho = F^H D by conjugate gradients",
	.description = "Multi-coil (SENSE) normal equations: A = sum_c conj(S_c) T S_c + lambda W^H W, T the Toeplitz operator of Q. "
		"Residuals of the normal equations and of the data, ||F rho - D|| / ||D||, of every iteration go to run.json. Says when "
		"it did not converge; numbers that are not finite, or curvature that is not positive, stop it with an explanation. The "
		"estimate is cropped from the frame's grid to the image matrix. Source: Stone et al. 2008; Pruessmann et al., Magn. "
		"Reson. Med. 46:638 (2001).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_FRAME, .gives = FX_IMAGE, .needs = FX_FRAME, .places = FX_HOST | FX_DEVICE,
	.process = process, .flush = flush, .close = close_gadget,
};

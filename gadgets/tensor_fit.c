/* SPDX-License-Identifier: MIT */
/* tensor_fit: diffusion tensors of a series, by (reweighted) log-linear least squares. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <math.h>
#include <time.h>

#define LOW_B 1500       /* s/mm^2: above, signals sink into the noise floor and are not exponential either */
#define MANY_CLAMPED 0.1 /* of the voxels: more than noise in an object does */

enum { BY_OLS, BY_WLS };

struct state {
	int method, start;
	int64_t reweightings;
	bool provisional;
	double b0_max, b_min, b_max, floor;
	fx_fit *fit;
	fx_series_info *info;    /* of the series that is open */
	int64_t n_came, n_empty, first_empty;
	double last_volume_s;
};

static const char *const methods[] = {[BY_OLS] = "ols", [BY_WLS] = "wls", NULL};
static const char *const starts[] = {[FX_START_SIGNALS] = "signals", [FX_START_OLS] = "ols", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "wls", methods,
		"wls: least squares of logarithms, weighted by the squared signals; ols: without weights"),
	FX_PROP_WORD(struct state, start, "signals", starts,
		"First weights of wls, signals: the measured signals squared, as MRtrix's dwi2tensor; ols: an unweighted fit comes first"),
	FX_PROP(struct state, reweightings, "2", 0, 100, "Fits of wls after that, each weighted by the signals of the one before"),
	FX_PROP(struct state, provisional, "false", 0, 0,
		"Give the unweighted tensors as soon as the last volume is in, marked provisional, before those of wls"),
	FX_PROP(struct state, b0_max, "50", 0, 1e6, "Volumes up to this b (s/mm^2) count as b0 and are always fitted"),
	FX_PROP(struct state, b_min, "0", 0, 1e6, "Shells below this b (s/mm^2) are not fitted, b0 aside"),
	FX_PROP(struct state, b_max, "0", 0, 1e6,
		"Shells above this b (s/mm^2) are not fitted; 0: those above 1500 are not where the others do for a fit, else all are"),
	FX_PROP(struct state, floor, "0", 0, 10, "Eigenvalues below this (um^2/ms) are raised to it, and the voxel marked"),
	FX_PROP_END
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_fit(struct state *s, fx_ctx *ctx)
{
	fx_fit_spec spec = {.method = s->method == BY_OLS ? FX_FIT_OLS : FX_FIT_WLS, .start = s->start,
		.reweightings = (int)s->reweightings, .b0_max = s->b0_max, .b_min = s->b_min,
		.b_max = s->b_max > 0 ? s->b_max : LOW_B, .floor = s->floor, .stream = s->provisional && s->method == BY_WLS};
	char all[200], used[200];
	int status = fx_fit_new(fx_math_of(ctx), s->info, &spec, &s->fit);

	if (status == FX_EDATA && s->b_max == 0) {
		*fx_err(ctx) = (fx_error){0};
		spec.b_max = 0;
		status = fx_fit_new(fx_math_of(ctx), s->info, &spec, &s->fit);
	}
	if (status != FX_OK)
		return status;
	fx_shells_text(s->info, s->b0_max, all, sizeof all);
	fx_fit_shells_text(s->fit, used, sizeof used);
	fx_info(ctx, "fits %s (volumes) of the table's %s", used, all);
	fx_record_text(ctx, "shells", all);
	fx_record_text(ctx, "shells_used", used);
	return FX_OK;
}

static int add(struct state *s, fx_ctx *ctx, const fx_series *item)
{
	fx_math *m = fx_math_of(ctx);
	bool any = false;
	int status = FX_OK;

	if (s->info && s->info != item->info)
		return fx_fail(ctx, FX_EINVAL, "a series began before the end of the last one");
	if (!s->info) {
		s->info = fx_series_info_ref(item->info);
		status = open_fit(s, ctx);
	}
	if (status == FX_OK)
		status = fx_fit_add(s->fit, item->volume, item->data);
	if (status == FX_OK)
		status = m->ops->magnitude(m, item->data, NULL, &any);
	if (status != FX_OK)
		return status;
	s->n_came++;
	if (!any && item->data->n > 0 && s->n_empty++ == 0)
		s->first_empty = item->volume;
	s->last_volume_s = now_s();
	return FX_OK;
}

/* Counts of the final tensors, and what they say of the data. */
static int judge(fx_ctx *ctx, const struct state *s, const fx_tensors *t)
{
	fx_math *m = fx_math_of(ctx);
	int64_t n[9], fitted, inside;
	int status = m->ops->marks(m, t->flags, FX_TENSOR_OUTSIDE | FX_TENSOR_UNFITTED, 0, 1, NULL, NULL, n);

	if (status != FX_OK)
		return status;
	fitted = n[8];
	inside = fitted + n[1];
	fx_record_count(ctx, "voxels", fitted);
	fx_record_count(ctx, "unfitted", n[1]);
	fx_record_count(ctx, "clamped", n[2]);
	fx_record_count(ctx, "isotropic", n[3]);
	fx_record_count(ctx, "dropped", n[4]);
	if (inside > 0 && fitted == 0)
		return fx_fail(ctx, FX_EDATA, "no voxel could be fitted: none has positive, finite signals in enough volumes. Look at the "
			"images, and at the mask's place");
	if (fitted > 0 && n[3] == fitted)
		fx_warn(ctx, "all volumes are the same in every voxel: no diffusion is seen, and FA and directions are undefined");
	else if ((double)n[2] > MANY_CLAMPED * (double)fitted)
		fx_warn(ctx, "%.0f %% of the voxels had an eigenvalue below %g um^2/ms, raised to it: background or noise%s, or b-values "
			"that are not those of the volumes", 100 * (double)n[2] / (double)fitted, s->floor,
			n[0] > 0 ? "" : " (there is no mask; <dwi_mask/> in front makes one)");
	return FX_OK;
}

static void warn_of_volumes(const struct state *s, fx_ctx *ctx)
{
	if (s->n_empty > 0)
		fx_warn(ctx, "%lld volume%s without a positive signal, the first is volume %lld (counted from 0): fitted without",
			(long long)s->n_empty, s->n_empty > 1 ? "s" : "", (long long)s->first_empty);
	if (s->n_came < s->info->n_volumes)
		fx_warn(ctx, "only %lld of %lld volumes came; the tensors are of those", (long long)s->n_came,
			(long long)s->info->n_volumes);
}

static int end_series(struct state *s, fx_ctx *ctx, const fx_array *mask, unsigned caveats)
{
	fx_msg *out = NULL;
	int status;

	warn_of_volumes(s, ctx);
	if (s->n_came < s->info->n_volumes)
		caveats |= FX_CAVEAT_PARTIAL;
	if (s->provisional && s->method == BY_WLS) {
		status = fx_fit_provisional(s->fit, mask, &out);
		if (status != FX_OK)
			return status;
		fx_msg_tensors(out)->caveats |= caveats;
		fx_record_number(ctx, "seconds_to_provisional", now_s() - s->last_volume_s);
		status = fx_emit(ctx, out);
		if (status != FX_OK)
			return status;
	}
	status = fx_fit_finish(s->fit, mask, caveats, &out);
	if (status != FX_OK)
		return status;
	fx_record_number(ctx, "seconds_to_final", now_s() - s->last_volume_s);
	status = judge(ctx, s, fx_msg_tensors(out));
	if (status == FX_OK)
		return fx_emit(ctx, out);
	fx_drop(out);
	return status;
}

static void forget(struct state *s)
{
	fx_fit_free(s->fit);
	fx_series_info_unref(s->info);
	s->fit = NULL;
	s->info = NULL;
	s->n_came = s->n_empty = 0;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	const fx_series *item = fx_msg_series(msg);
	int status;

	if (!item->end) {
		status = add(s, ctx, item);
	} else {
		status = s->fit ? end_series(s, ctx, item->mask, item->caveats) :
			fx_fail(ctx, FX_EDATA, "the series ended without a volume");
		forget(s);
	}
	fx_drop(msg);
	return status;
}

/* A series that broke off gives the tensors of what came; where that is too little, the explanation becomes a warning. */
static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = s->fit ? end_series(s, ctx, NULL, FX_CAVEAT_PARTIAL) : FX_OK;

	forget(s);
	return status == FX_EDATA ? FX_OK : status;
}

static void close_gadget(void *self)
{
	forget(self);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "tensor_fit",
	.summary = "Fit diffusion tensors to a series",
	.description = "Fits ln S = ln S0 - b g^T D g in every voxel of the mask (of dwi_mask; else everywhere) to all b0 volumes and the "
		"shells between b_min and b_max; magnitudes are taken of complex volumes. Holds volumes back until the series ends. Signals "
		"that are not finite or not positive count nowhere; voxels without enough others have no tensor. With start=signals and two "
		"reweightings the result is that of MRtrix's dwi2tensor; start=ols with one is DIPY's WLS. Both starts lead to the same end "
		"with more reweightings. Gives S0 and the root mean square residual too, and marks voxels that were clamped, lack diffusion "
		"weighting or were fitted without some of their signals. Refuses tables of fewer than two b-values, or whose directions do "
		"not determine a tensor. Source: Veraart et al., NeuroImage 81:335 (2013).",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_SERIES, .gives = FX_TENSORS, .needs = FX_SERIES, .places = FX_HOST | FX_DEVICE,
	.process = process, .flush = flush, .close = close_gadget,
};

/* SPDX-License-Identifier: MIT */
/* connect: fibres that join regions, cut, ranked, in families. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

struct state {
	const char *targets, *target_labels, *source, *source_labels, *exclude, *json, *csv;
	int require;
	int64_t best, families;
	double cluster_mm, degenerate;
	bool resample, jacobi, optional, told;
	fx_regions *target_regions, *source_regions, *excluded;
	fx_connect *connect;
};

static const char *const requires[] = {[FX_REQUIRE_ANY] = "any", [FX_REQUIRE_ALL] = "all", NULL};

static const fx_prop props[] = {
	FX_PROP_FILE(struct state, targets, "", "Label image (NIfTI) of the target regions: whole numbers above 0; required, but for "
		"optional"),
	FX_PROP(struct state, optional, "false", 0, 1, "Without targets seek no connections and pass all fibres on, instead of refusing"),
	FX_PROP(struct state, target_labels, "", 0, 4000, "Those labels of it that are targets, such as \"3, 5\"; empty: all"),
	FX_PROP_WORD(struct state, require, "any", requires,
		"any: a fibre ends at the first target it meets; all: it must meet every target, and is cut at each in turn"),
	FX_PROP_FILE(struct state, source, "", "Label image of source regions; empty: where the seed lies (a target's label, or 0)"),
	FX_PROP(struct state, source_labels, "", 0, 4000, "Those labels of it that are sources; empty: all"),
	FX_PROP_FILE(struct state, exclude, "", "Image whose voxels that are not 0 discard a connection that crosses them before its target"),
	FX_PROP(struct state, resample, "false", 0, 1,
		"Allow region images in another space: the nearest voxel by their own affine counts. Else they are refused"),
	FX_PROP(struct state, best, "10", 1, 1e6, "Fibres kept of each pair, by rank"),
	FX_PROP(struct state, families, "10", 1, 1e4, "Families kept of each pair, each at least by its best fibre"),
	FX_PROP(struct state, cluster_mm, "0", 0, 1e4,
		"Fibres closer than this (mean closest-point distance, mm) are one family; 0: two edges of the smallest voxel"),
	FX_PROP(struct state, jacobi, "true", 0, 1, "Compute the Jacobi determinant of the kept geodesics; needs the metric in the chain"),
	FX_PROP(struct state, degenerate, "0.05", 0, 1, "Normalised Jacobi determinants below this at arrival are flagged degenerate"),
	FX_PROP(struct state, json, "connectivity.json", 1, 255, "File name in the output folder"),
	FX_PROP(struct state, csv, "connectivity.csv", 1, 255, "File name in the output folder"),
	FX_PROP_END
};

static int read_regions(fx_ctx *ctx, const char *path, const char *wanted, int use, fx_regions **out)
{
	fx_array *image = NULL;
	double affine[3][4];
	bool has_affine;
	int status;

	if (path[0] == '\0')
		return FX_OK;
	status = fx_read_nifti(ctx, path, &image, affine, &has_affine);
	if (status == FX_OK)
		status = fx_regions_new(image, (const double (*)[4])affine, has_affine, path, wanted, use, fx_err(ctx), out);
	fx_array_unref(image);
	return status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_connect_spec spec = {.require = s->require, .best = s->best, .families = s->families, .cluster_mm = s->cluster_mm,
		.jacobi = s->jacobi, .degenerate = s->degenerate, .resample = s->resample};
	int status = read_regions(ctx, s->targets, s->target_labels, FX_REGIONS_LABELS, &s->target_regions);

	if (status == FX_OK)
		status = read_regions(ctx, s->source, s->source_labels, FX_REGIONS_LABELS, &s->source_regions);
	if (status == FX_OK)
		status = read_regions(ctx, s->exclude, NULL, FX_REGIONS_ANY, &s->excluded);
	if (status == FX_OK && s->target_regions)
		status = fx_connect_new(fx_math_of(ctx), &spec, s->source_regions, s->target_regions, s->excluded, &s->connect);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	int status;

	if (!s->connect && s->optional) {
		if (!s->told)
			fx_info(ctx, "no targets are set: no connections are sought, and all fibres pass on");
		s->told = true;
		return fx_emit(ctx, msg);
	}
	if (!s->connect) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EINVAL, "targets is empty: name a label image of the regions that fibres are to reach");
	}
	if (fx_msg_kind(msg) == FX_METRIC) {
		status = fx_connect_metric(s->connect, msg);
		if (status == FX_OK)
			return fx_emit(ctx, msg);
	} else {
		status = fx_connect_add(s->connect, fx_msg_tracts(msg));
	}
	fx_drop(msg);
	return status;
}

static void report(fx_ctx *ctx, const struct state *s)
{
	fx_connect_counts n;

	fx_connect_count(s->connect, &n);
	fx_record_number(ctx, "fibres", (double)n.n_fibres);
	fx_record_number(ctx, "connected", (double)n.n_connected);
	fx_record_number(ctx, "excluded", (double)n.n_excluded);
	fx_record_number(ctx, "incomplete", (double)n.n_incomplete);
	fx_record_number(ctx, "pairs", (double)n.n_pairs);
	fx_record_number(ctx, "kept", (double)n.n_kept);
	fx_record_number(ctx, "families", (double)n.n_families);
	fx_record_number(ctx, "degenerate", (double)n.n_degenerate);
	if (n.n_fibres > 0 && n.n_connected == 0)
		fx_warn(ctx, "none of %lld fibres joins two of the regions (%lld cross an exclusion, %lld miss a target of require=all): "
			"more seeds, or seeds in a region, may", (long long)n.n_fibres, (long long)n.n_excluded, (long long)n.n_incomplete);
	if (n.n_unusable > 0)
		fx_warn(ctx, "%lld fibres were left out: their points or lengths are not finite", (long long)n.n_unusable);
	if (n.n_undetermined > 0)
		fx_warn(ctx, "%lld of %lld kept geodesics have no Jacobi determinant: followed again in double, they left the volume or "
			"ended elsewhere", (long long)n.n_undetermined, (long long)n.n_kept);
}

struct target {
	fx_ctx *ctx;
	fx_sink *sink;
};

static int write_text(void *arg, const char *text)
{
	struct target *t = arg;

	return fx_sink_text(t->ctx, t->sink, text);
}

static int write_file(fx_ctx *ctx, const fx_connect *c, const char *name, int (*text)(const fx_connect *, fx_text_fn, void *))
{
	fx_sink_options options = {.format = FX_FORMAT_TEXT, .name = name};
	struct target t = {.ctx = ctx};
	int status = fx_sink_open(ctx, &options, &t.sink);

	if (status != FX_OK)
		return status;
	status = text(c, write_text, &t);
	if (status == FX_OK)
		return fx_sink_commit(ctx, t.sink);
	fx_sink_abandon(t.sink);
	return status;
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_msg *batch = NULL;
	int status;

	if (!s->connect)
		return FX_OK;
	status = fx_connect_finish(s->connect, fx_input_cut(ctx) ? FX_CAVEAT_PARTIAL : 0);
	while (status == FX_OK) {
		status = fx_connect_next(s->connect, &batch);
		if (status != FX_OK || !batch)
			break;
		status = fx_emit(ctx, batch);
	}
	if (status == FX_OK)
		status = write_file(ctx, s->connect, s->json, fx_connect_json);
	if (status == FX_OK)
		status = write_file(ctx, s->connect, s->csv, fx_connect_csv);
	if (status == FX_OK)
		report(ctx, s);
	return status;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_connect_free(s->connect);
	fx_regions_free(s->target_regions);
	fx_regions_free(s->source_regions);
	fx_regions_free(s->excluded);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "connect",
	.summary = "Rank the fibres that join regions, by pair",
	.description = "A connection runs from where a fibre leaves its source to where it first enters a target; both ends lie between the "
		"fibre's points, on voxel faces. Without a source image the source is the target region that the seed lies in, or the seed itself "
		"(label 0), and each half of a fibre tracked both ways counts on its own. With one, seeds do not matter: a connection is any stretch "
		"between a source and a target with no other of either in between. Exclusions count on that stretch only. Geodesics are ranked "
		"by m = Euclidean length / Riemannian length (Astola et al. 2007; the unit is that of the metric), streamlines by length; ties go to the "
		"lower seed number. Kept fibres closer than cluster_mm are one family, a solution of its own. Where the Jacobi determinant "
		"(1 in flat space) is near 0 at arrival the ends are conjugate points that a continuum of geodesics joins: one family, flagged "
		"degenerate. Fibres of different metrics are refused. Holds fibres back: the kept ones, cut, leave at the end of input, pair by pair "
		"in rank order; the metric passes on. Any two points are joined by some geodesic: figures are measures and ranks, not "
		"proof. docs/connectivity.md describes the files.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_METRIC | FX_TRACTS, .gives = FX_METRIC | FX_TRACTS, .needs = FX_TRACTS, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

/* SPDX-License-Identifier: MIT */
/* dwi_collect: images into the volumes of a diffusion series, with its gradient table. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <stdio.h>
#include <string.h>

enum { REFUSE, ACCEPT };

struct state {
	const char *bval, *bvec, *grad;
	int counter, missing, averages, shot_phase;
	fx_array *bvals, *bvecs, *table;
	char name[160];
	fx_gather *gather;
};

/* In the order of enum fx_diffusion_dimension. */
static const char *const counters[] = {"auto", "average", "contrast", "phase", "repetition", "set", "segment", "user_0",
	"user_1", "user_2", "user_3", "user_4", "user_5", "user_6", "user_7", NULL};
static const char *const missing_words[] = {[REFUSE] = "refuse", [ACCEPT] = "drop", NULL};
static const char *const averages_words[] = {[REFUSE] = "refuse", [ACCEPT] = "mean", NULL};
static const char *const shot_words[] = {[REFUSE] = "refuse", [ACCEPT] = "allow", NULL};

static const fx_prop props[] = {
	FX_PROP_FILE(struct state, bval, "", "FSL's b-values, s/mm^2; empty: the scan header's own list"),
	FX_PROP_FILE(struct state, bvec, "", "FSL's b-vectors, 3 rows or 3 columns, in the image's axes"),
	FX_PROP_FILE(struct state, grad, "", "MRtrix's table instead, rows of x y z b in scanner axes"),
	FX_PROP_WORD(struct state, counter, "auto", counters, "Which counter tells the weightings apart, its value the table's row "
		"from 0; auto: the header's diffusionDimension, else the one counter with as many values as the table has rows"),
	FX_PROP_WORD(struct state, missing, "refuse", missing_words,
		"Volumes that are missing or lack slices: refuse, or drop them and their rows, and mark the products as partial"),
	FX_PROP_WORD(struct state, averages, "refuse", averages_words, "Several images of one slice and weighting: refuse, or take the "
		"mean of their magnitudes (complex means would cancel, since motion gives each its own phase)"),
	FX_PROP_WORD(struct state, shot_phase, "refuse", shot_words,
		"Images of several shots without a phase reference: refuse, or allow and mark the products"),
	FX_PROP_END
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int read_one(fx_ctx *ctx, const char *path, fx_array **out)
{
	fx_array *lengths = NULL;
	int status = fx_read_table(ctx, path, out, &lengths);

	fx_array_unref(lengths);
	return status;
}

static int read_tables(struct state *s, fx_ctx *ctx)
{
	int status;

	if (*s->grad && (*s->bval || *s->bvec))
		return fx_fail(ctx, FX_EINVAL, "grad= and bval=/bvec= are two tables; give one of them");
	if (!*s->bval != !*s->bvec)
		return fx_fail(ctx, FX_EINVAL, "bval= and bvec= belong together; %s= is missing", *s->bval ? "bvec" : "bval");
	if (*s->grad) {
		snprintf(s->name, sizeof s->name, "%.110s", base_name(s->grad));
		return read_one(ctx, s->grad, &s->table);
	}
	if (!*s->bval)
		return FX_OK;
	snprintf(s->name, sizeof s->name, "%.52s and %.52s", base_name(s->bval), base_name(s->bvec));
	status = read_one(ctx, s->bval, &s->bvals);
	return status == FX_OK ? read_one(ctx, s->bvec, &s->bvecs) : status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = read_tables(s, ctx);
	fx_gather_spec spec = {.scan = fx_scan(ctx), .bvals = s->bvals, .bvecs = s->bvecs, .grad = s->table,
		.table = *s->name ? s->name : NULL, .counter = s->counter, .drop_missing = s->missing == ACCEPT,
		.average = s->averages == ACCEPT, .allow_shots = s->shot_phase == ACCEPT};

	return status == FX_OK ? fx_gather_new(fx_math_of(ctx), &spec, &s->gather) : status;
}

static int emit_all(fx_ctx *ctx, fx_msg_list *ready)
{
	int status = FX_OK;

	for (int64_t i = 0; i < ready->n && status == FX_OK; i++) {
		fx_msg *msg = ready->list[i];

		ready->list[i] = NULL;
		status = fx_emit(ctx, msg);
	}
	fx_msg_list_clear(ready);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	fx_msg_list ready = {0};
	int status = fx_gather_add(((struct state *)self)->gather, fx_msg_image(msg), &ready), sent;

	fx_drop(msg);
	sent = emit_all(ctx, &ready);
	return status != FX_OK ? status : sent;
}

static void record(const struct state *s, fx_ctx *ctx, const fx_series_info *info, unsigned caveats)
{
	const fx_gather_report *r = fx_gather_report_of(s->gather);
	const fx_header *scan = fx_scan(ctx);
	const fx_limit *l = scan->n_encodings > 0 ? &scan->encodings[0].limits[FX_SLICE] : NULL;
	char shells[256];

	fx_record_text(ctx, "counter", r->counter);
	fx_record_text(ctx, "table", info->origin);
	fx_record_number(ctx, "volumes", (double)r->n_volumes);
	fx_record_number(ctx, "slices", (double)r->n_slices);
	fx_record_number(ctx, "held_most", (double)r->held_most);
	fx_record_number(ctx, "most_shots", (double)r->most_shots);
	fx_record_number(ctx, "shots_unjudged", (double)r->n_unjudged);
	fx_shells_text(info, 50, shells, sizeof shells);
	fx_record_text(ctx, "shells", shells);
	fx_info(ctx, "%lld volumes by %s; b (volumes): %s", (long long)r->n_volumes, r->counter, shells);
	if (r->n_scaled > 0)
		fx_warn(ctx, "%lld vectors of the gradient table were not of unit length; their b-values are taken as they are",
			(long long)r->n_scaled);
	if (r->n_averaged > 0)
		fx_warn(ctx, "%lld images are means of magnitudes with others of their slice and weighting: noise raises the mean where "
			"signal is low", (long long)r->n_averaged);
	if (r->n_dropped > 0)
		fx_warn(ctx, "%lld volumes are missing or lack slices and were left out", (long long)r->n_dropped);
	if (caveats & FX_CAVEAT_SHOT_PHASE)
		fx_warn(ctx, "images of up to %lld shots without a phase reference: where the head moved, signal is lost as if it "
			"diffused", (long long)r->most_shots);
	if (!info->lattice.has_affine)
		fx_warn(ctx, "the images do not tell where they lie; directions are right only in the image's own axes");
	if (l && l->present && l->max > l->min && l->max - l->min + 1 != r->n_slices && info->lattice.dims[2] == r->n_slices)
		fx_warn(ctx, "the scan header counts %lld slices, the images lie at %lld places", (long long)(l->max - l->min + 1),
			(long long)r->n_slices);
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	fx_msg_list ready = {0};
	int status = fx_gather_end(s->gather, fx_input_cut(ctx), &ready), sent;

	if (status == FX_OK && ready.n > 0) {
		const fx_series *end = fx_msg_series(ready.list[ready.n - 1]);

		record(s, ctx, end->info, end->caveats);
	}
	sent = emit_all(ctx, &ready);
	return status != FX_OK ? status : sent;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_gather_free(s->gather);
	fx_array_unref(s->bvals);
	fx_array_unref(s->bvecs);
	fx_array_unref(s->table);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "dwi_collect",
	.summary = "Gather images into the volumes of a diffusion series",
	.description = "Slices go to their place by position, volumes to their row of the gradient table by a counter. A volume "
		"leaves as soon as its last slice is there, where the counter and the number of slices (encodingLimits, or "
		"images of three dimensions) are known beforehand; with counter=auto and no diffusionDimension in the header, "
		"averages=mean or missing=drop all are held until the end. Complex images stay complex. FSL's b-vectors are in "
		"the image's axes, x turned round where its affine does not mirror; they are turned into scanner axes here. "
		"Images of b > 50 made from several shots are refused: each shot has a phase of its own (Anderson and "
		"Gore, Magn. Reson. Med. 32:379, 1994); images that do not tell their shots are not judged.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_IMAGE, .gives = FX_SERIES, .needs = FX_IMAGE, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

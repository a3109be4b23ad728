/* SPDX-License-Identifier: MIT */
/* track: fibres from seeds through a metric, in bounded batches in the order of their seeds. */
#include <fornix/diffusion.h>
#include <fornix/gadget.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BATCH_SEEDS 1024
#define FEWEST_SEEDS 32           /* a batch is work for all threads, however long its fibres are */
#define BATCH_POINTS (1 << 20)    /* 16 MiB with the Riemannian length */
/* A GPU is full with tens of thousands; with a rule for what is kept few points come back, and batches grow to the most. */
#define GPU_FEWEST 16384
#define GPU_SEEDS (1 << 20)
#define GPU_POINTS (1 << 23)
#define DECADE 64                 /* bins of the drift's histogram: 3.7 % wide */
#define DRIFT_BINS (16 * DECADE)
#define DRIFT_LOW 1e-12

enum { TAKE_AUTO, TAKE_PRINCIPAL, TAKE_SPHERE, TAKE_BOTH, TAKE_GIVEN, TAKE_RANDOM };
static const char *const methods[] = {[FX_TRACK_GEODESIC] = "geodesic", [FX_TRACK_STREAMLINE] = "streamline", NULL};
static const char *const integrators[] = {[FX_INTEGRATOR_EULER] = "euler", [FX_INTEGRATOR_RK2] = "rk2",
	[FX_INTEGRATOR_RK4] = "rk4", [FX_INTEGRATOR_FROZEN] = "frozen", NULL};
static const char *const forms[] = {[FX_TRACK_FORM_AUTO] = "auto", [FX_TRACK_FORM_KERNEL] = "kernel", [FX_TRACK_FORM_HALF] = "half",
	[FX_TRACK_FORM_TEXTURE] = "texture", [FX_TRACK_FORM_TEXTURE_HALF] = "texture_half", [FX_TRACK_FORM_COMPACT] = "compact", NULL};
static const char *const requires[] = {[FX_REQUIRE_ANY] = "any", [FX_REQUIRE_ALL] = "all", NULL};
static const char *const units[] = {"mm", "voxel", NULL};
static const char *const takes[] = {"auto", "principal", "sphere", "both", "given", "random", NULL};
static const char *const placements[] = {"centre", "random", NULL};
static const char *const stops[FX_N_TRACK_STOPS] = {"stopped_at_volume", "stopped_at_steps", "stopped_at_mask", "stopped_at_fa",
	"stopped_at_angle", "stopped_at_csf", "stopped_at_undefined", "stopped_at_target"};

struct tally {
	int64_t n_seeds, n_outside, n_missed, n_fibres, n_points, n_stops[FX_N_TRACK_STOPS], n_drifts, drifts[DRIFT_BINS];
	double seconds, drift_max;
};

struct state {
	int method, integrator, form, require, step_unit, directions, placement;
	double step, max_length, min_length, fa_stop, angle_stop, csf_stop, seed_label, seed_fa;
	int64_t max_steps, seeds_per_voxel, seed_count, n_directions, seed;
	bool both_ways, stop_mask;
	const char *seeds;
	fx_seeds_spec spec;
	fx_lattice lattice;     /* of the seeds' region */
	bool from_file, done;
	const char *targets, *target_labels, *source, *source_labels;
	fx_regions *target_regions, *source_regions;
	struct tally t;
};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, method, "geodesic", methods, "geodesic: shortest paths of the metric; streamline: along the principal "
		"eigenvector"),
	FX_PROP_WORD(struct state, integrator, "rk2", integrators, "rk2: true midpoint; frozen: van Aart et al.'s own, the midpoint with the "
		"Christoffel symbols of the step's start, which is of order 1"),
	FX_PROP_WORD(struct state, form, "auto", forms, "How the field is read between voxels, on a GPU: auto and kernel: single precision, interpolated "
		"in the kernel; half: numbers kept in half precision; texture, texture_half: by the texture units, whose weights have 8 bits; "
		"compact: six numbers a voxel, derivatives taken in the kernel. docs/diffusion.md states each one's error. The host has auto and kernel"),
	FX_PROP(struct state, step, "0.1", 1e-4, 1000, "Length of a step, in step_unit"),
	FX_PROP_WORD(struct state, step_unit, "voxel", units, "voxel: the smallest edge of a voxel"),
	FX_PROP(struct state, max_steps, "4096", 1, 100000000, "Steps each way from the seed"),
	FX_PROP(struct state, max_length, "-1", -1, 1e9, "mm, a whole fibre; 0: no bound; -1: 100 voxel edges for streamlines, else none"),
	FX_PROP(struct state, min_length, "-1", -1, 1e9, "mm; shorter fibres are dropped; -1: 5 voxel edges for streamlines, else 0"),
	FX_PROP(struct state, both_ways, "true", 0, 1, "Track along the seed's direction and against it, and join both into one fibre"),
	FX_PROP(struct state, stop_mask, "true", 0, 1, "Stop where the metric's mask ends; else at the volume's border alone"),
	FX_PROP(struct state, fa_stop, "-1", -1, 1, "Stop below this FA; 0: never; -1: 0.1 for streamlines, else never"),
	FX_PROP(struct state, angle_stop, "-1", -1, 180, "Stop at sharper turns over a voxel's length, degrees; 0: never; -1: 90 for "
		"streamlines, else never"),
	FX_PROP(struct state, csf_stop, "0", 0, 100, "Stop above this mean diffusivity, um^2/ms; 0: never"),
	FX_PROP_FILE(struct state, seeds, "mask", "mask: every voxel of the metric's mask; grid:SPACING (mm) over it; sphere:X,Y,Z,R (RAS mm); "
		"a NIfTI region, by its own affine; or a text file of x y z or x y z dx dy dz a line, RAS mm"),
	FX_PROP(struct state, seeds_per_voxel, "1", 1, 1000000000, "Of mask and regions"),
	FX_PROP(struct state, seed_count, "0", 0, 4294967295.0, "Of a sphere; of mask and regions: so many in all instead of per voxel"),
	FX_PROP(struct state, seed_label, "0", -1e15, 1e15, "Of a region: voxels of this value; 0: of every value but 0"),
	FX_PROP(struct state, seed_fa, "0", 0, 1, "Of mask and grid: no seeds below this FA"),
	FX_PROP_WORD(struct state, placement, "random", placements, "Of mask and regions: where in a voxel"),
	FX_PROP_WORD(struct state, directions, "auto", takes, "principal: along the principal eigenvector; sphere: n_directions evenly over the "
		"sphere at every place; both: these and the principal; given: dx dy dz of the file; random: n_directions at random; auto: given "
		"where there are, else principal"),
	FX_PROP(struct state, n_directions, "64", 1, 4294967295.0, "Of directions=sphere, both and random"),
	FX_PROP(struct state, seed, "1", 0, 9007199254740991.0, "Fixes everything random"),
	FX_PROP_FILE(struct state, targets, "", "Label image, as connect.targets: fibres that touch none are dropped where they are tracked, which "
		"on a GPU saves moving them; what connect finds is the same. Empty: all fibres pass on"),
	FX_PROP(struct state, target_labels, "", 0, 4000, "As connect.target_labels"),
	FX_PROP_WORD(struct state, require, "any", requires, "As connect.require: all: fibres that miss a target are dropped"),
	FX_PROP_FILE(struct state, source, "", "As connect.source: fibres that touch no source are dropped; with targets only"),
	FX_PROP(struct state, source_labels, "", 0, 4000, "As connect.source_labels"),
	FX_PROP_END
};

/* ---- seeds ------------------------------------------------------------------------------------ */

static int read_list(struct state *s, fx_ctx *ctx)
{
	fx_array *lengths = NULL;
	int status = fx_read_table(ctx, s->seeds, &s->spec.list, &lengths);
	int64_t columns;

	fx_array_unref(lengths);
	if (status != FX_OK)
		return status;
	columns = s->spec.list->dims[0];
	if (columns != 3 && columns != 6)
		return fx_fail(ctx, FX_EDATA, "%s has %lld columns from its first line on; a seed is x y z or x y z dx dy dz, in RAS mm",
			s->seeds, (long long)columns);
	for (int64_t i = 0; i < s->spec.list->n; i++)
		if (isnan(FX_F64_OF(s->spec.list)[i]))
			return fx_fail(ctx, FX_EDATA, "%s: seed %lld (comments and blank lines not counted) has no number in column %lld", s->seeds,
				(long long)(i / columns) + 1, (long long)(i % columns) + 1);
	return FX_OK;
}

static int read_region(struct state *s, fx_ctx *ctx)
{
	fx_array *data = NULL;
	int status = fx_read_nifti(ctx, s->seeds, &data, s->lattice.affine, &s->lattice.has_affine);

	if (status == FX_OK)
		status = fx_region_of_file(fx_math_of(ctx), s->seeds, data, &s->lattice, &s->spec.region);
	fx_array_unref(data);
	return status;
}

static int read_labels(fx_ctx *ctx, const char *path, const char *wanted, fx_regions **out)
{
	fx_array *image = NULL;
	double affine[3][4];
	bool has_affine;
	int status;

	if (path[0] == '\0')
		return FX_OK;
	status = fx_read_nifti(ctx, path, &image, affine, &has_affine);
	if (status == FX_OK)
		status = fx_regions_new(image, (const double (*)[4])affine, has_affine, path, wanted, FX_REGIONS_LABELS, fx_err(ctx), out);
	fx_array_unref(image);
	return status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	const char *slash = strrchr(s->seeds, '/');
	int status = fx_seeds_parse(s->seeds, &s->spec, fx_err(ctx));

	if (status != FX_OK)
		return status;
	s->from_file = s->spec.source == FX_SEEDS_LIST ||
		(s->spec.source == FX_SEEDS_REGION && strcmp(slash ? slash + 1 : s->seeds, "mask") != 0);
	if (s->spec.source == FX_SEEDS_BALL && s->seed_count == 0)
		return fx_fail(ctx, FX_EINVAL, "seeds in a sphere want their number: set seed_count");
	if (s->source[0] && !s->targets[0])
		return fx_fail(ctx, FX_EINVAL, "source is set and targets is not: a source alone keeps no fibre");
	status = read_labels(ctx, s->targets, s->target_labels, &s->target_regions);
	if (status == FX_OK)
		status = read_labels(ctx, s->source, s->source_labels, &s->source_regions);
	if (status != FX_OK)
		return status;
	if (s->from_file)
		status = s->spec.source == FX_SEEDS_LIST ? read_list(s, ctx) : read_region(s, ctx);
	s->spec.label = s->from_file ? s->seed_label : 0;
	s->spec.per_voxel = s->seeds_per_voxel;
	s->spec.count = s->seed_count;
	s->spec.centred = s->placement == 0;
	s->spec.n_directions = s->n_directions;
	s->spec.seed = (uint64_t)s->seed;
	s->spec.directions = s->directions == TAKE_AUTO
		? s->spec.list && s->spec.list->dims[0] == 6 ? FX_DIRECTIONS_GIVEN : FX_DIRECTIONS_PRINCIPAL
		: (int[]){[TAKE_PRINCIPAL] = FX_DIRECTIONS_PRINCIPAL, [TAKE_SPHERE] = FX_DIRECTIONS_SPHERE, [TAKE_BOTH] = FX_DIRECTIONS_BOTH,
			[TAKE_GIVEN] = FX_DIRECTIONS_GIVEN, [TAKE_RANDOM] = FX_DIRECTIONS_RANDOM}[s->directions];
	return status;
}

/* The metric's mask where FA is high enough, as the region of seeds, on the host. */
static int seed_mask(struct state *s, fx_ctx *ctx, const fx_metric *metric)
{
	fx_math *m = fx_math_of(ctx);
	fx_array *region = NULL, *fa = NULL;
	int status = m->ops->download(m, metric->mask, &region);

	if (status == FX_OK && s->seed_fa > 0)
		status = m->ops->download(m, metric->fa, &fa);
	if (status == FX_OK && s->seed_fa > 0)
		status = fx_array_own(&region);
	for (int64_t i = 0; status == FX_OK && fa && i < region->n; i++)
		((uint8_t *)region->data)[i] &= (double)FX_F32_OF(fa)[i] >= s->seed_fa;
	fx_array_unref(fa);
	if (status != FX_OK) {
		fx_array_unref(region);
		return fx_fail(ctx, status, "no memory for a mask of seeds");
	}
	fx_slot_take(&s->spec.region, region);
	s->lattice = metric->lattice;
	return FX_OK;
}

static int place_region(struct state *s, fx_ctx *ctx, const fx_metric *metric)
{
	static const char *const words[] = {"same", "other", "voxel by voxel"};
	int space, status = fx_region_space(fx_math_of(ctx), s->seeds, &s->lattice, &metric->lattice, &space);

	if (status != FX_OK)
		return status;
	fx_record_text(ctx, "seeds_space", words[space]);
	if (space == FX_REGION_BY_VOXEL)
		s->lattice = metric->lattice;
	else if (space == FX_REGION_ELSEWHERE)
		fx_info(ctx, "%s is of another space than the data: its own affine places the seeds", s->seeds);
	return FX_OK;
}

static int make_seeds(struct state *s, fx_ctx *ctx, const fx_metric *metric, fx_seeds **seeds)
{
	int status = FX_OK;

	if (s->from_file && s->spec.region)
		status = place_region(s, ctx, metric);
	else if (!s->from_file && s->spec.source != FX_SEEDS_BALL)
		status = seed_mask(s, ctx, metric);
	if (s->spec.region)
		s->spec.lattice = &s->lattice;
	return status == FX_OK ? fx_seeds_new(fx_math_of(ctx), &s->spec, seeds) : status;
}

/* ---- fibres ----------------------------------------------------------------------------------- */

static double or_voxels(double given, double voxels, double edge_mm, bool streamline)
{
	return given >= 0 ? given : streamline ? voxels * edge_mm : 0;
}

static fx_track_spec track_spec(const struct state *s, const fx_metric *metric)
{
	bool streamline = s->method == FX_TRACK_STREAMLINE;
	double mm[3], edge;

	fx_lattice_voxel_mm(&metric->lattice, mm);
	edge = fmin(mm[0], fmin(mm[1], mm[2]));
	return (fx_track_spec){.method = s->method, .integrator = s->integrator, .form = s->form, .step = s->step, .step_in_voxels = s->step_unit == 1,
		.max_steps = s->max_steps, .max_length_mm = or_voxels(s->max_length, 100, edge, streamline),
		.min_length_mm = or_voxels(s->min_length, 5, edge, streamline), .both_ways = s->both_ways, .stop_mask = s->stop_mask,
		.stop_fa = s->fa_stop >= 0 ? s->fa_stop : streamline ? 0.1 : 0,
		.stop_angle = s->angle_stop >= 0 ? s->angle_stop : streamline ? 90 : 0, .stop_md = s->csf_stop};
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count_stop(struct tally *t, float why)
{
	int i = (int)why;

	if (i >= 0 && i < FX_N_TRACK_STOPS)
		t->n_stops[i]++;
}

static void count_batch(struct tally *t, const fx_tracts *b, bool both_ways)
{
	t->n_fibres += b->n;
	t->n_points += b->n ? ((const uint32_t *)b->offsets->data)[b->n] : 0;
	for (int64_t i = 0; i < b->n; i++) {
		const float *v = FX_F32_OF(b->values) + b->info->n_values * i;
		double drift = (double)v[FX_VALUE_DRIFT];

		if (both_ways)
			count_stop(t, v[FX_VALUE_STOP_START]);
		count_stop(t, v[FX_VALUE_STOP_END]);
		if (isnan(drift))
			continue;
		t->drift_max = fmax(t->drift_max, drift);
		t->drifts[(int)fmin(fmax(DECADE * log10(drift / DRIFT_LOW), 0), DRIFT_BINS - 1)]++;
		t->n_drifts++;
	}
}

static double drift_median(const struct tally *t)
{
	int64_t below = 0;
	int i = 0;

	while (i < DRIFT_BINS - 1 && 2 * (below + t->drifts[i]) < t->n_drifts)
		below += t->drifts[i++];
	return fmin(DRIFT_LOW * pow(10, (i + 0.5) / DECADE), t->drift_max);
}

static void record(const struct state *s, fx_ctx *ctx)
{
	const struct tally *t = &s->t;

	fx_record_number(ctx, "n_seeds", (double)t->n_seeds);
	fx_record_number(ctx, "n_outside", (double)t->n_outside);
	fx_record_number(ctx, "n_dropped", (double)(t->n_seeds - t->n_outside - t->n_missed - t->n_fibres));
	if (s->target_regions)
		fx_record_number(ctx, "n_missed", (double)t->n_missed);
	fx_record_number(ctx, "n_fibres", (double)t->n_fibres);
	fx_record_number(ctx, "n_points", (double)t->n_points);
	fx_record_number(ctx, "points_per_s", t->seconds > 0 ? (double)t->n_points / t->seconds : NAN);
	if (s->method == FX_TRACK_GEODESIC && t->n_drifts) {
		fx_record_number(ctx, "drift_median", drift_median(t));
		fx_record_number(ctx, "drift_max", t->drift_max);
	}
	for (int i = 0; i < FX_N_TRACK_STOPS; i++)
		if (t->n_stops[i])
			fx_record_number(ctx, stops[i], (double)t->n_stops[i]);
}

/* All seeds, batch by batch. */
static int track_all(struct state *s, fx_ctx *ctx, fx_tracker *tracker, fx_tracts_info *info, fx_seeds *seeds)
{
	struct tally *t = &s->t;
	bool host = fx_math_on_host(fx_math_of(ctx));
	int64_t fewest = host ? FEWEST_SEEDS : GPU_FEWEST, limit = host ? BATCH_SEEDS : GPU_SEEDS, points = host ? BATCH_POINTS : GPU_POINTS;
	int64_t most = host ? 4 * fewest : fewest, first, n_outside;
	fx_array *batch;
	int status;

	while ((status = fx_seeds_next(seeds, most, &batch, &first)) == FX_OK && batch) {
		fx_msg *tracts = NULL;
		double from = now();
		fx_tracts *b;
		int64_t n, per_seed;

		n = batch->dims[1];
		n_outside = 0;
		status = fx_stopped(ctx) ? FX_ECANCELED : fx_tracker_run(tracker, info, batch, first, &tracts, &n_outside);
		fx_array_unref(batch);
		if (status != FX_OK)
			return status;
		t->seconds += now() - from;
		t->n_seeds += n;
		t->n_outside += n_outside;
		b = fx_msg_tracts(tracts);
		b->first = t->n_fibres;
		per_seed = (b->n ? ((const uint32_t *)b->offsets->data)[b->n] : 0) / n;
		most = points / (per_seed + 1);
		most = most < fewest ? fewest : most > limit ? limit : most;
		count_batch(t, b, s->both_ways);
		if (b->n == 0)
			fx_drop(tracts);
		else if ((status = fx_emit(ctx, tracts)) != FX_OK)
			return status;
	}
	return status;
}

/* What the user has to know of seeds that gave nothing. */
static int judge(const struct state *s, fx_ctx *ctx, const fx_metric *metric, const fx_seeds *seeds)
{
	const struct tally *t = &s->t;
	double low[3], high[3], data_low[3], data_high[3];

	if (t->n_outside == t->n_seeds) {
		fx_seeds_box(seeds, low, high);
		fx_lattice_box(&metric->lattice, data_low, data_high);
		return fx_fail(ctx, FX_EDATA, "all %lld seeds are outside the mask, or where a stop holds: they lie in x %.1f..%.1f, y %.1f..%.1f, z %.1f..%.1f mm, the data "
			"in x %.1f..%.1f, y %.1f..%.1f, z %.1f..%.1f mm (RAS); LPS positions have x and y with the other sign", (long long)t->n_seeds,
			low[0], high[0], low[1], high[1], low[2], high[2], data_low[0], data_high[0], data_low[1], data_high[1],
			data_low[2], data_high[2]);
	}
	if (t->n_outside)
		fx_warn(ctx, "%lld of %lld seeds are outside the mask, or where a stop holds, and give no fibre", (long long)t->n_outside, (long long)t->n_seeds);
	if (s->method == FX_TRACK_GEODESIC && t->n_drifts && drift_median(t) > 1)
		fx_warn(ctx, "half of the fibres do not follow the metric: their g(v, v), which a geodesic conserves, changes by more than %.0f %%. "
			"Tensors turn too far from voxel to voxel for this metric: lower metric.power, or track.step where it is large",
			100 * drift_median(t));
	if (t->n_fibres == 0 && t->n_missed > 0)
		fx_warn(ctx, "%lld fibres were tracked, and none touches what targets and source name", (long long)t->n_missed);
	else if (t->n_fibres == 0)
		fx_warn(ctx, "no fibre came of %lld seeds: all were shorter than min_length, or stopped at once", (long long)t->n_seeds);
	return FX_OK;
}

static int emit_end(const struct state *s, fx_ctx *ctx, fx_tracts_info *info)
{
	fx_msg *msg = fx_msg_new(FX_TRACTS);

	if (msg) {
		fx_msg_tracts(msg)->info = fx_tracts_info_ref(info);
		fx_msg_tracts(msg)->end = true;
		fx_msg_tracts(msg)->first = s->t.n_fibres;
	}
	return fx_emit(ctx, msg);
}

static void describe_seeds(const struct state *s, fx_tracts_info *info)
{
	const char *slash = strrchr(s->seeds, '/');
	size_t used = strlen(info->origin);

	snprintf(info->origin + used, sizeof info->origin - used, "; seeds %s, random numbers of seed %lld", slash ? slash + 1 : s->seeds,
		(long long)s->seed);
}

static int track(struct state *s, fx_ctx *ctx, const fx_metric *metric)
{
	fx_track_spec spec = track_spec(s, metric);
	fx_tracts_info *info = fx_tracts_info_new();
	fx_tracker *tracker = NULL;
	fx_seeds *seeds = NULL;
	int status = info ? make_seeds(s, ctx, metric, &seeds) : FX_ENOMEM;

	if (status == FX_OK)
		status = fx_tracker_new(fx_math_of(ctx), metric, &spec, &tracker);
	if (status == FX_OK && s->target_regions)
		status = fx_tracker_keep(tracker, s->source_regions, s->target_regions, s->require);
	if (status == FX_OK)
		status = fx_tracker_info(tracker, info);
	if (status == FX_OK) {
		describe_seeds(s, info);
		status = track_all(s, ctx, tracker, info, seeds);
	}
	if (status == FX_OK) {
		s->t.n_missed = fx_tracker_missed(tracker);
		record(s, ctx);
		status = judge(s, ctx, metric, seeds);
	}
	if (status == FX_OK)
		status = emit_end(s, ctx, info);
	fx_tracker_free(tracker);
	fx_seeds_free(seeds);
	fx_tracts_info_unref(info);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	fx_msg *keep;
	int status;

	if (s->done) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EDATA, "a second tensor field came; one set of fibres is tracked a run");
	}
	if (!fx_msg_metric(msg)->field) {
		fx_drop(msg);
		return fx_fail(ctx, FX_EDATA, "a metric came without its data");
	}
	s->done = true;
	keep = fx_msg_ref(msg);
	status = fx_emit(ctx, msg);
	if (status == FX_OK)
		status = track(s, ctx, fx_msg_metric(keep));
	fx_drop(keep);
	return status == FX_OK ? FX_OK : fx_fail(ctx, status, "cannot track");
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_array_unref(s->spec.list);
	fx_array_unref(s->spec.region);
	fx_regions_free(s->target_regions);
	fx_regions_free(s->source_regions);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "track",
	.summary = "Fibres from seeds: geodesics of the metric, or streamlines along the principal eigenvector",
	.description = "A geodesic goes from its seed in a given direction and bends as the metric's Christoffel symbols say, with "
		"steps of constant length in mm; it needs no stop but the volume and the number of steps (van Aart et al. "
		"2011), and by default stops at the mask too. A streamline follows the principal eigenvector; its stops are "
		"those of MRtrix's tensor tracking (FA 0.1, 5 to 100 voxels long) and 90 degrees over a voxel, where MRtrix "
		"has 60 for every step. Fibres leave in batches in the order of their seeds; each depends on its seed alone, "
		"so threads and batches change nothing. Seeds outside the mask, or where a stop holds already, give no fibre "
		"and are counted; a run with none inside is refused. Each fibre's drift is the largest relative change of "
		"g(v, v), which an exact geodesic conserves. The metric passes on, before the fibres.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_METRIC, .gives = FX_METRIC | FX_TRACTS, .needs = FX_METRIC, .places = FX_HOST | FX_DEVICE,
	.open = open_gadget, .process = process, .close = close_gadget,
};

/* SPDX-License-Identifier: MIT */
/* trajectory: k in cycles/voxel of the encoded matrix, whatever unit the file has; or from a table or a rule. */
#include <fornix/gadget.h>
#include <fornix/recon.h>
#include <fornix/trajectory.h>

#include <math.h>
#include <stdint.h>

enum { DROP, GROW, ERROR };
enum { THIRD_AUTO, THIRD_KZ, THIRD_IGNORE };
enum { KIND_DATA }; /* and from 1 on enum fx_rule_kind */
enum { HALF, FULL };
enum { DELAY_NONE, DELAY_AUTO };
enum { LINES_AUTO, LINES_CARTESIAN, LINES_DROP };

struct state {
	int unit, outside, third, kind, index, turn, delay, calibration;
	int64_t spokes;
	const char *file, *delay_us;
	fx_rule **rules;         /* one an encoding, made when it is first needed; NULL: trajectories come with the data */
	int64_t n_rules;
	fx_array *table, *lengths;
	double late_us[3];       /* delay_us */
	double shift[3];         /* samples: what delay=auto found */
	bool estimated;
	int decided;             /* enum fx_unit, FX_UNIT_AUTO while it is open */
	double max_abs[3];       /* largest |k| seen, in the file's unit */
	fx_msg_list held;        /* readouts that wait for the unit or the grown matrix */
	int64_t grown[3];        /* matrix of outside=grow, 0 before it is known */
	int64_t n_auxiliary, n_outside;
	bool told_third, told_outside;
};

static const char *const units[] = {[FX_UNIT_AUTO] = "auto", [FX_UNIT_CYCLES_PER_VOXEL] = "cycles_per_voxel",
	[FX_UNIT_RAD_PER_VOXEL] = "rad_per_voxel", [FX_UNIT_CYCLES_PER_FOV] = "cycles_per_fov",
	[FX_UNIT_PER_M] = "per_m", NULL};
static const char *const policies[] = {[DROP] = "drop", [GROW] = "grow", [ERROR] = "error", NULL};
static const char *const thirds[] = {[THIRD_AUTO] = "auto", [THIRD_KZ] = "kz", [THIRD_IGNORE] = "ignore", NULL};
static const char *const kinds[] = {[KIND_DATA] = "data", [FX_RULE_RADIAL] = "radial", [FX_RULE_GOLDEN] = "golden",
	[FX_RULE_GOLDEN3D] = "golden3d", [FX_RULE_SPIRAL] = "spiral", NULL};
static const char *const indices[] = {[FX_INDEX_AUTO] = "auto", [FX_INDEX_STEP_1] = "step_1", [FX_INDEX_ORDER] = "order",
	NULL};
static const char *const turns[] = {[HALF] = "half", [FULL] = "full", NULL};
static const char *const delays[] = {[DELAY_NONE] = "none", [DELAY_AUTO] = "auto", NULL};
static const char *const calibrations[] = {[LINES_AUTO] = "auto", [LINES_CARTESIAN] = "cartesian", [LINES_DROP] = "drop", NULL};

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, kind, "data", kinds,
		"Where trajectories come from: the data, or built-in spokes (equal or golden angle, two golden means in 3-D) or "
		"an Archimedean spiral, by counters and header"),
	FX_PROP_FILE(struct state, file, "",
		"Take trajectories from this file instead: text (kx ky [kz] a line, a blank line between readouts) or MRD; a single "
		"readout is turned for the others"),
	FX_PROP_WORD(struct state, index, "auto", indices,
		"Which of them a readout gets: by kspace_encode_step_1, or in order of arrival within its slice; auto: order for the "
		"golden kinds, step_1 otherwise"),
	FX_PROP(struct state, spokes, "0", 0, 1e9,
		"Readouts that go round once (radial, spiral, a single readout from a file); 0: as many as the header's limits tell"),
	FX_PROP_WORD(struct state, turn, "half", turns, "Radial: spokes fill half a turn (180/n degrees apart) or a full one"),
	FX_PROP(struct state, delay_us, "0", 1, 0,
		"How late gradients come, microseconds: one number, or three between commas for the axes of the trajectory"),
	FX_PROP_WORD(struct state, delay, "none", delays,
		"auto: estimate the delays from spokes read in opposite directions (holds the first frame)"),
	FX_PROP_WORD(struct state, unit, "auto", units,
		"Unit of the file's trajectory; auto takes the one that fills the matrix best, and refuses where several might"),
	FX_PROP_WORD(struct state, outside, "drop", policies,
		"Samples beyond the matrix: drop them (counted), grow the matrix to hold them (finer voxels, first frame is held), "
		"or stop with an error"),
	FX_PROP_WORD(struct state, third, "auto", thirds,
		"Third column of the trajectory: kz, or something to ignore (a weight); auto: kz where the matrix has more than one "
		"voxel along z"),
	FX_PROP_WORD(struct state, calibration, "auto", calibrations,
		"Calibration readouts that carry no trajectory: Cartesian lines, placed by step counters and center_sample, or to be "
		"dropped; auto: lines, but dropped where the trajectory comes from file= or kind="),
	FX_PROP_END
};

static const fx_encoding *encoding_of(fx_ctx *ctx, const fx_acquisition *a)
{
	const fx_header *scan = fx_scan(ctx);

	return a->head.encoding_space_ref < scan->n_encodings ? &scan->encodings[a->head.encoding_space_ref] : NULL;
}

/* How many columns of the trajectory are axes of k-space. */
static int n_axes(struct state *s, fx_ctx *ctx, const fx_acquisition *a, const fx_encoding *e)
{
	int64_t columns = a->traj->dims[0];

	if (columns < 3)
		return (int)columns;
	if (s->third == THIRD_KZ || (s->third == THIRD_AUTO && e->encoded.matrix[2] > 1))
		return 3;
	if (!s->told_third) {
		s->told_third = true;
		fx_info(ctx, "the trajectory's third column is not taken as kz: the matrix has %lld voxel(s) along z",
			(long long)e->encoded.matrix[2]);
		fx_record_text(ctx, "third_column", "ignored");
	}
	return 2;
}

/* A calibration line without a trajectory: its k follows from its counters. */
static bool is_line(const fx_acquisition *a)
{
	return !a->traj && fx_is_calibration(&a->head);
}

static bool lines_wanted(const struct state *s)
{
	return s->calibration == LINES_CARTESIAN || (s->calibration == LINES_AUTO && !s->rules);
}

/* Checks one readout and widens max_abs. */
static int look(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	const fx_encoding *e = encoding_of(ctx, a);

	if (!e)
		return fx_fail(ctx, FX_EDATA, "readout %u refers to encoding %u, but the header has %lld", a->head.scan_counter,
			a->head.encoding_space_ref, (long long)fx_scan(ctx)->n_encodings);
	if (is_line(a))
		return FX_OK;
	if (!a->traj)
		return fx_fail(ctx, FX_EDATA,
			"readout %u carries no trajectory; a Cartesian scan is for cartesian.xml", a->head.scan_counter);
	return fx_trajectory_extent(fx_math_of(ctx), a, n_axes(s, ctx, a, e), s->max_abs);
}

/* The unit by what was seen so far; a guess that later readouts overturn is an error, not a change of mind. */
static int decide(struct state *s, fx_ctx *ctx, const fx_acquisition *a, bool last)
{
	const fx_encoding *e = encoding_of(ctx, a);
	fx_error why = {0};
	fx_math quiet = *fx_math_of(ctx);
	int unit, status;

	if (is_line(a))
		return FX_OK;
	if (s->unit != FX_UNIT_AUTO) {
		s->decided = s->unit;
		return FX_OK;
	}
	quiet.err = &why;
	status = fx_unit_decide(&quiet, s->max_abs, e->encoded.matrix, e->encoded.fov_mm, &unit);
	if (status != FX_OK)
		return last || s->decided != FX_UNIT_AUTO ? fx_fail(ctx, status, "%s", why.text) : FX_OK;
	if (s->decided != FX_UNIT_AUTO && unit != s->decided)
		return fx_fail(ctx, FX_EDATA, "the first readouts look like %s, but readout %u makes it %s; set trajectory.unit",
			fx_unit_name(s->decided), a->head.scan_counter, fx_unit_name(unit));
	if (s->decided == FX_UNIT_AUTO) {
		fx_info(ctx, "trajectory unit: %s (guessed; trajectory.unit overrides)", fx_unit_name(unit));
		fx_record_text(ctx, "unit", fx_unit_name(unit));
	}
	s->decided = unit;
	return FX_OK;
}

/* ---- trajectories that do not come with the data ------------------------------------------------- */

static int read_file(struct state *s, fx_ctx *ctx)
{
	int status = fx_read_table(ctx, s->file, &s->table, &s->lengths);

	for (int64_t i = 0; status == FX_OK && i < s->table->n; i++)
		if (!isfinite(FX_F64_OF(s->table)[i]))
			status = fx_fail(ctx, FX_EDATA, "%s: row %lld is no place in k-space", s->file,
				(long long)(i / s->table->dims[0]) + 1);
	return status;
}

static int open_gadget(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	bool file = s->file[0] != '\0';
	int status = fx_delay_parse(s->delay_us, fx_err(ctx), s->late_us);

	if (status != FX_OK)
		return status;
	if (s->delay == DELAY_AUTO && (s->late_us[0] != 0 || s->late_us[1] != 0 || s->late_us[2] != 0))
		return fx_fail(ctx, FX_EINVAL, "delay=auto estimates what delay_us=%s tells: set one of them", s->delay_us);
	if (!file && s->kind == KIND_DATA)
		return FX_OK;
	if (file && s->kind != KIND_DATA)
		return fx_fail(ctx, FX_EINVAL, "file=%s and kind=%s both say where trajectories come from: set one of them", s->file,
			kinds[s->kind]);
	if (!file && s->unit != FX_UNIT_AUTO && s->unit != FX_UNIT_CYCLES_PER_VOXEL)
		return fx_fail(ctx, FX_EINVAL, "kind=%s is made in cycles/voxel: unit=%s is not for it", kinds[s->kind], units[s->unit]);
	if (!file)
		s->unit = FX_UNIT_CYCLES_PER_VOXEL;
	s->n_rules = fx_scan(ctx)->n_encodings;
	s->rules = fx_alloc(s->n_rules, sizeof(fx_rule *));
	if (!s->rules)
		return fx_fail(ctx, FX_ENOMEM, "no memory for trajectories");
	fx_record_text(ctx, "source", file ? s->file : kinds[s->kind]);
	return file ? read_file(s, ctx) : FX_OK;
}

/* Gives an imaging readout its trajectory. A table may be made for the readout as it came, or as discard_* leave it. */
static int attach(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	const fx_encoding *e = encoding_of(ctx, a);
	const fx_rule_options options = {.kind = s->table ? FX_RULE_TABLE : s->kind, .index = s->index,
		.full_turn = s->turn == FULL, .n_spokes = s->spokes, .table = s->table, .lengths = s->lengths, .name = s->file};
	fx_rule **rule;
	int status = FX_OK;

	if (!e)
		return fx_fail(ctx, FX_EDATA, "readout %u refers to encoding %u, but the header has %lld", a->head.scan_counter,
			a->head.encoding_space_ref, (long long)fx_scan(ctx)->n_encodings);
	rule = &s->rules[a->head.encoding_space_ref];
	if (!*rule)
		status = fx_rule_new(e, &options, fx_err(ctx), rule);
	if (status == FX_OK && s->table && ((const int32_t *)s->lengths->data)[0] < a->data->dims[0])
		status = fx_readout_trim(fx_math_of(ctx), a);
	return status == FX_OK ? fx_rule_readout(*rule, fx_math_of(ctx), a) : status;
}

/* ---- delays ------------------------------------------------------------------------------------- */

/* Shifts k by what was set or found. */
static int delay(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	double shift[3] = {s->shift[0], s->shift[1], s->shift[2]}, dwell = (double)a->head.sample_time_us;

	if (s->late_us[0] != 0 || s->late_us[1] != 0 || s->late_us[2] != 0) {
		if (!(dwell > 0))
			return fx_fail(ctx, FX_EDATA, "readout %u: sample_time_us is %g, so delay_us cannot be turned into samples",
				a->head.scan_counter, dwell);
		for (int d = 0; d < 3; d++)
			shift[d] = s->late_us[d] / dwell;
	}
	return fx_trajectory_delay(fx_math_of(ctx), a, shift);
}

static void tell_delays(struct state *s, fx_ctx *ctx, const fx_delay_report *r, double dwell, const int64_t matrix[3])
{
	double us[3];

	fx_record_count(ctx, "delay_pairs", r->n_pairs);
	if (!r->known[0] && !r->known[1] && !r->known[2]) {
		fx_warn(ctx, "delay=auto: of %lld spokes %lld pairs are opposed to 2 degrees, too few directions to tell delays; "
			"nothing was corrected", (long long)r->n_spokes, (long long)r->n_pairs);
		return;
	}
	for (int d = 0; d < 3; d++) {
		if (!r->known[d] && matrix[d] > 1)
			fx_warn(ctx, "delay=auto: no opposed spokes tell of axis %d; its delay was not corrected", d + 1);
		s->shift[d] = r->shift[d];
		us[d] = r->known[d] && dwell > 0 ? r->shift[d] * dwell : NAN;
	}
	fx_record_numbers(ctx, "delay_samples", r->shift, 3);
	fx_record_numbers(ctx, "delay_us", us, 3);
	fx_record_number(ctx, "delay_misfit_samples", r->residual);
	fx_info(ctx, "gradient delays from %lld pairs of opposed spokes: %.3f, %.3f, %.3f samples (misfit %.3f)",
		(long long)r->n_pairs, r->shift[0], r->shift[1], r->shift[2], r->residual);
	if (r->residual > 0.5)
		fx_warn(ctx, "delay=auto: the pairs of opposed spokes disagree by %.2f samples: the delays found are doubtful",
			r->residual);
}

/* Delays from the readouts that are held; their unit is decided. */
static int estimate(struct state *s, fx_ctx *ctx)
{
	fx_acquisition **list = fx_alloc(s->held.n, sizeof *list);
	fx_delay_report report;
	int status = list ? FX_OK : fx_fail(ctx, FX_ENOMEM, "no memory to look for opposed spokes");
	int64_t n = 0;

	for (int64_t i = 0; status == FX_OK && i < s->held.n; i++) {
		list[n] = fx_msg_acquisition(s->held.list[i]);
		if (is_line(list[n]))
			continue;
		status = fx_trajectory_convert(fx_math_of(ctx), list[n], encoding_of(ctx, list[n]), s->decided,
			n_axes(s, ctx, list[n], encoding_of(ctx, list[n])), encoding_of(ctx, list[n])->encoded.matrix);
		n++;
	}
	if (status == FX_OK && n > 0)
		status = fx_delay_estimate(fx_math_of(ctx), list, n, &report);
	if (status == FX_OK && n > 0)
		tell_delays(s, ctx, &report, (double)list[0]->head.sample_time_us,
			encoding_of(ctx, list[0])->encoded.matrix);
	s->estimated = true;
	fx_free(list);
	return status;
}

/* Readouts to hold for the estimate: the first frame of every slice by the header's limits; INT64_MAX where they are silent. */
static int64_t wanted_for_delays(fx_ctx *ctx)
{
	const fx_framer_options by_limits = {0};
	const fx_header *scan = fx_scan(ctx);
	const fx_limit *slices = &scan->encodings[0].limits[FX_SLICE];
	int64_t n = fx_framer_expected(scan, 0, &by_limits);

	return n > 0 && slices->present ? n * (slices->max - slices->min + 1) : n > 0 ? n : INT64_MAX;
}

/* Attaches k and the matrix it refers to, and deals with samples beyond it. */
static int convert(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	const fx_encoding *e = encoding_of(ctx, a);
	const int64_t *matrix = s->grown[0] > 0 ? s->grown : e->encoded.matrix;
	int status;

	if (is_line(a)) {
		fx_record_count(ctx, "calibration_lines", 1);
		return fx_trajectory_cartesian(fx_math_of(ctx), a, e, matrix);
	}
	status = fx_trajectory_convert(fx_math_of(ctx), a, e, s->decided, n_axes(s, ctx, a, e), matrix);
	if (status == FX_OK)
		status = delay(s, ctx, a);
	if (status == FX_OK)
		status = fx_trajectory_keep_inside(fx_math_of(ctx), a);
	if (status == FX_OK && a->n_outside > 0 && s->outside == ERROR)
		return fx_fail(ctx, FX_EDATA, "readout %u: %lld samples lie beyond the matrix; outside=drop leaves them out, "
			"outside=grow makes room", a->head.scan_counter, (long long)a->n_outside);
	s->n_outside += a->n_outside;
	return status;
}

static int send(struct state *s, fx_ctx *ctx, fx_msg *msg)
{
	int status = fx_msg_own(&msg);

	if (status == FX_OK)
		status = convert(s, ctx, fx_msg_acquisition(msg));
	if (status != FX_OK) {
		fx_drop(msg);
		return fx_fail(ctx, status, "no memory for a readout");
	}
	if (fx_msg_acquisition(msg)->data->dims[0] == 0) {
		fx_drop(msg); /* all of it lay outside; counted */
		return FX_OK;
	}
	return fx_emit(ctx, msg);
}

/* The matrix that holds every sample seen. */
static void grow(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	fx_trajectory_grow(encoding_of(ctx, a), s->decided, s->max_abs, s->grown);
	fx_info(ctx, "matrix grown to %lld x %lld x %lld to hold every sample", (long long)s->grown[0], (long long)s->grown[1],
		(long long)s->grown[2]);
	fx_record_numbers(ctx, "grown_matrix", (double[]){(double)s->grown[0], (double)s->grown[1], (double)s->grown[2]}, 3);
}

/* The first readout that is held and has a trajectory; a line where none has. */
static const fx_acquisition *first_held(const struct state *s)
{
	int64_t i = 0;

	while (i + 1 < s->held.n && is_line(fx_msg_acquisition(s->held.list[i])))
		i++;
	return fx_msg_acquisition(s->held.list[i]);
}

static int release(struct state *s, fx_ctx *ctx)
{
	int status = FX_OK;

	if (s->delay == DELAY_AUTO && !s->estimated && s->held.n > 0)
		status = estimate(s, ctx);
	if (s->outside == GROW && s->held.n > 0 && s->grown[0] == 0)
		grow(s, ctx, first_held(s));
	for (int64_t i = 0; i < s->held.n; i++) {
		fx_msg *msg = s->held.list[i];

		s->held.list[i] = NULL;
		if (status == FX_OK)
			status = send(s, ctx, msg);
		else
			fx_drop(msg);
	}
	s->held.n = 0;
	fx_msg_list_clear(&s->held);
	return status;
}

/* Trims a readout and looks at it; *skip is true for what is no part of an image. */
static int admit(struct state *s, fx_ctx *ctx, fx_msg **msg, bool *skip)
{
	fx_acquisition *a;
	int status;

	a = fx_msg_acquisition(*msg);
	*skip = a->data->dims[0] == 0 || (fx_is_auxiliary(&a->head) &&
		!(fx_is_calibration(&a->head) && (a->traj || lines_wanted(s))));
	if (*skip) {
		s->n_auxiliary++;
		return FX_OK;
	}
	status = fx_msg_own(msg);
	if (status != FX_OK)
		return status;
	a = fx_msg_acquisition(*msg);
	if (s->rules && !fx_is_auxiliary(&a->head))
		status = attach(s, ctx, a);
	if (status == FX_OK)
		status = fx_readout_trim(fx_math_of(ctx), a);
	if (status == FX_OK)
		status = fx_readout_finite(fx_math_of(ctx), a);
	if (status == FX_OK)
		status = look(s, ctx, a);
	if (status == FX_OK)
		status = decide(s, ctx, a, false);
	return status;
}

static int process(void *self, fx_ctx *ctx, fx_msg *msg)
{
	struct state *s = self;
	bool skip = false;
	int status = admit(s, ctx, &msg, &skip);

	if (status != FX_OK || skip) {
		fx_drop(msg);
		return status == FX_OK ? FX_OK : fx_fail(ctx, status, "cannot take a readout in");
	}
	/* lines need no unit; they wait only where others do, to keep the order */
	if (is_line(fx_msg_acquisition(msg)) && s->held.n == 0 && s->outside != GROW)
		return send(s, ctx, msg);
	/* with outside=grow the whole input is held: no later readout may need a larger matrix */
	if (s->decided == FX_UNIT_AUTO || s->outside == GROW || (s->delay == DELAY_AUTO && !s->estimated)) {
		if (fx_msg_list_push(&s->held, msg) != FX_OK)
			return fx_fail(ctx, FX_ENOMEM, "no memory to hold readouts");
		return s->decided != FX_UNIT_AUTO && s->outside != GROW && s->held.n >= wanted_for_delays(ctx) ? release(s, ctx) : FX_OK;
	}
	if (s->held.n > 0) {
		status = release(s, ctx);
		if (status != FX_OK) {
			fx_drop(msg);
			return status;
		}
	}
	return send(s, ctx, msg);
}

static int flush(void *self, fx_ctx *ctx)
{
	struct state *s = self;
	int status = FX_OK;

	if (s->held.n > 0 && s->decided == FX_UNIT_AUTO)
		status = decide(s, ctx, first_held(s), true);
	if (status == FX_OK)
		status = release(s, ctx);
	fx_record_count(ctx, "samples_outside", s->n_outside);
	fx_record_count(ctx, "readouts_not_imaging", s->n_auxiliary);
	if (s->n_outside > 0)
		fx_warn(ctx, "%lld samples lie beyond the matrix and were left out; outside=grow makes room for them",
			(long long)s->n_outside);
	return status;
}

static void close_gadget(void *self)
{
	struct state *s = self;

	fx_msg_list_clear(&s->held);
	for (int64_t i = 0; s->rules && i < s->n_rules; i++)
		fx_rule_free(s->rules[i]);
	fx_free(s->rules);
	fx_array_unref(s->table);
	fx_array_unref(s->lengths);
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "trajectory",
	.summary = "Trajectory in cycles/voxel, from whatever unit the file has",
	.description = "MRD defines no unit. One unit holds for all axes: the property, else the one among cycles/voxel, rad/voxel, "
		"cycles/FOV and 1/m that puts the best-filled axis nearest its Nyquist frequency; an ambiguous case is an error that "
		"lists the candidates. Readouts are held only until the unit is known, which the first one usually settles; with "
		"outside=grow all are held to the end of the input. Samples beyond the matrix are never wrapped. discard_pre and "
		"discard_post are applied; readouts that serve neither an image nor coil maps (navigators, dummies, empty ones) are "
		"counted and dropped. Files without trajectories get them from file= or a built-in kind; built-in ones need what the header "
		"tells (limits of the encoding steps, center_sample, for spirals trajectoryDescription's turns and equal_arcs), and what is missing "
		"is listed. Calibration readouts without a trajectory are Cartesian lines of the same matrix; in an encoding that is not "
		"itself Cartesian their step counters have k = 0 at half the matrix. Delays shift each axis along the readout; delay=auto "
		"finds them from spokes read in opposite directions "
		"(Peters 2003, Block and Uecker 2011), to first order.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.open = open_gadget, .process = process, .flush = flush, .close = close_gadget,
};

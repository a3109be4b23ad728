/* SPDX-License-Identifier: MIT */
/* trajectory: k in cycles/voxel of the encoded matrix, whatever unit the file has. */
#include <fornix/gadget.h>
#include <fornix/recon.h>

enum { DROP, GROW, ERROR };
enum { THIRD_AUTO, THIRD_KZ, THIRD_IGNORE };

struct state {
	int unit, outside, third;
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

static const fx_prop props[] = {
	FX_PROP_WORD(struct state, unit, "auto", units,
		"Unit of the file's trajectory; auto takes the one that fills the matrix best, and refuses where several might"),
	FX_PROP_WORD(struct state, outside, "drop", policies,
		"Samples beyond the matrix: drop them (counted), grow the matrix to hold them (finer voxels, first frame is held), "
		"or stop with an error"),
	FX_PROP_WORD(struct state, third, "auto", thirds,
		"Third column of the trajectory: kz, or something to ignore (a weight); auto: kz where the matrix has more than one "
		"voxel along z"),
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

/* Checks one readout and widens max_abs. */
static int look(struct state *s, fx_ctx *ctx, const fx_acquisition *a)
{
	const fx_encoding *e = encoding_of(ctx, a);

	if (!e)
		return fx_fail(ctx, FX_EDATA, "readout %u refers to encoding %u, but the header has %lld", a->head.scan_counter,
			a->head.encoding_space_ref, (long long)fx_scan(ctx)->n_encodings);
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

/* Attaches k and the matrix it refers to, and deals with samples beyond it. */
static int convert(struct state *s, fx_ctx *ctx, fx_acquisition *a)
{
	const fx_encoding *e = encoding_of(ctx, a);
	const int64_t *matrix = s->grown[0] > 0 ? s->grown : e->encoded.matrix;
	int status = fx_trajectory_convert(fx_math_of(ctx), a, e, s->decided, n_axes(s, ctx, a, e), matrix);

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

static int release(struct state *s, fx_ctx *ctx)
{
	int status = FX_OK;

	if (s->outside == GROW && s->held.n > 0 && s->grown[0] == 0)
		grow(s, ctx, fx_msg_acquisition(s->held.list[0]));
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
	/* calibration that comes without a trajectory (Cartesian lines) is no use to a non-Cartesian chain */
	*skip = a->data->dims[0] == 0 || (fx_is_auxiliary(&a->head) && !(fx_is_calibration(&a->head) && a->traj));
	if (*skip) {
		s->n_auxiliary++;
		return FX_OK;
	}
	status = fx_msg_own(msg);
	if (status != FX_OK)
		return status;
	a = fx_msg_acquisition(*msg);
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
	/* with outside=grow the whole input is held: no later readout may need a larger matrix */
	if (s->decided == FX_UNIT_AUTO || s->outside == GROW)
		return fx_msg_list_push(&s->held, msg) == FX_OK ? FX_OK : fx_fail(ctx, FX_ENOMEM, "no memory to hold readouts");
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
		status = decide(s, ctx, fx_msg_acquisition(s->held.list[0]), true);
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
}

const fx_gadget fx_plugin = {
	.abi = FX_ABI, .name = "trajectory",
	.summary = "Trajectory in cycles/voxel, from whatever unit the file has",
	.description = "MRD defines no unit. One unit holds for all axes: the property, else the one among cycles/voxel, rad/voxel, "
		"cycles/FOV and 1/m that puts the best-filled axis nearest its Nyquist frequency; an ambiguous case is an error that "
		"lists the candidates. Readouts are held only until the unit is known, which the first one usually settles; with "
		"outside=grow all are held to the end of the input. Samples beyond the matrix are never wrapped. discard_pre and "
		"discard_post are applied; readouts that serve neither an image nor coil maps (navigators, dummies, empty ones) are "
		"counted and dropped.",
	.props = props, .state_size = sizeof(struct state),
	.takes = FX_ACQUISITION, .gives = FX_ACQUISITION, .needs = FX_ACQUISITION, .places = FX_HOST,
	.process = process, .flush = flush, .close = close_gadget,
};

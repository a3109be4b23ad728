/* SPDX-License-Identifier: MIT */
/*
 * trajectory_rule.c - readouts that came without a trajectory get one: a row of a table, or what their counters and the
 * header's description say. Nothing is assumed that the header does not tell; what is missing is listed.
 */
#include <fornix/recon.h>
#include <fornix/trajectory.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846
#define GOLDEN_RATIO 1.61803398874989484820
/* roots of the two-dimensional golden recursion (Chan et al. 2009, table 1) */
#define GOLDEN_MEAN_1 0.46557123187676802666
#define GOLDEN_MEAN_2 0.68232780382801932737
#define MOST_COUNTS 65536

/* How many readouts of one series (slice, contrast, set, partition) have come. */
struct count {
	uint16_t slice, contrast, set, step_2;
	int64_t n;
};

struct fx_rule {
	fx_rule_options options;
	int64_t matrix[3];
	int64_t first_step;            /* of kspace_encoding_step_1 */
	int64_t n_spokes;
	int64_t n_partitions, center_partition; /* of a stack; 1 and 0 in 2-D */
	double turns, k_max;           /* spiral */
	bool equal_arcs;
	fx_array *table, *lengths;
	int64_t *starts;               /* of each block of the table */
	struct count *counts;
	int64_t n_counts, capacity;
};

static const char *const names[] = {"file", "radial", "golden", "golden3d", "spiral"};

/* ---- what the header says ---------------------------------------------------------------------- */

static void add_text(char *list, size_t size, const char *text)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? "; " : "", text);
}

static const fx_param *number_of(const fx_encoding *e, const char *name)
{
	const fx_param *p = fx_param_find(&e->description, name);

	return p && p->type != FX_PARAM_STRING && p->number > 0 && isfinite(p->number) ? p : NULL;
}

static void read_spiral(fx_rule *r, const fx_encoding *e, char *missing, size_t size)
{
	const fx_param *turns = number_of(e, "turns"), *k_max = number_of(e, "k_max");
	const fx_param *arcs = fx_param_find(&e->description, "equal_arcs"), *interleaves = number_of(e, "interleaves");

	r->turns = turns ? turns->number : 0;
	r->k_max = k_max ? k_max->number : 0.5;
	r->equal_arcs = arcs && arcs->number == 1;
	if (r->n_spokes == 0 && interleaves)
		r->n_spokes = (int64_t)interleaves->number;
	if (!turns)
		add_text(missing, size, "trajectoryDescription's parameter `turns` (of one interleaf, a number above 0)");
	if (!arcs || arcs->type == FX_PARAM_STRING || (arcs->number != 0 && arcs->number != 1))
		add_text(missing, size, "trajectoryDescription's parameter `equal_arcs` (1: samples at equal arcs, 0: at equal angles)");
}

static int read_header(fx_rule *r, const fx_encoding *e, fx_error *err)
{
	const fx_limit *one = &e->limits[FX_STEP_1], *two = &e->limits[FX_STEP_2];
	int kind = r->options.kind, index = r->options.index;
	char missing[512] = "";

	for (int d = 0; d < 3; d++)
		r->matrix[d] = e->encoded.matrix[d];
	r->first_step = one->present ? one->min : 0;
	r->n_spokes = r->options.n_spokes > 0 ? r->options.n_spokes : one->present ? one->max - one->min + 1 : 0;
	r->n_partitions = 1;
	if (kind == FX_RULE_SPIRAL)
		read_spiral(r, e, missing, sizeof missing);
	if (kind == FX_RULE_GOLDEN3D && r->matrix[2] == 1)
		return fx_error_set(err, FX_EDATA, "kind=golden3d makes a volume, and the encoded matrix has one plane; take golden");
	if (kind != FX_RULE_GOLDEN3D && kind != FX_RULE_TABLE && r->matrix[2] > 1) {
		if (!two->present || two->max <= two->min)
			add_text(missing, sizeof missing, "encodingLimits/kspace_encoding_step_2 (the partitions of a stack: the matrix has "
				"several planes)");
		r->n_partitions = two->max - two->min + 1;
		r->center_partition = two->present ? two->center : 0;
	}
	if (index == FX_INDEX_AUTO)
		index = kind == FX_RULE_GOLDEN || kind == FX_RULE_GOLDEN3D ? FX_INDEX_ORDER : FX_INDEX_STEP_1;
	r->options.index = index;
	if (r->n_spokes <= 0 && (kind == FX_RULE_RADIAL || kind == FX_RULE_SPIRAL))
		add_text(missing, sizeof missing, "encodingLimits/kspace_encoding_step_1 (how many readouts go round; the property "
			"`spokes` tells it too)");
	if (missing[0])
		return fx_error_set(err, FX_EDATA, "the header does not say enough for kind=%s; missing: %s. file= takes the "
			"trajectory itself", names[kind], missing);
	return FX_OK;
}

/* ---- tables ------------------------------------------------------------------------------------ */

static int read_table(fx_rule *r, fx_error *err)
{
	const fx_rule_options *o = &r->options;
	int64_t n, at = 0;

	if (!o->table || !o->lengths || o->table->n_dims != 2 || o->lengths->dims[0] < 1)
		return fx_error_set(err, FX_EINVAL, "a trajectory from a file without the file's table");
	if (o->table->dims[0] < 2 || o->table->dims[0] > 3)
		return fx_error_set(err, FX_EDATA, "%s: a trajectory has 2 or 3 columns (kx ky [kz]), not %lld", o->name,
			(long long)o->table->dims[0]);
	n = o->lengths->dims[0];
	r->starts = fx_alloc(n, sizeof *r->starts);
	if (!r->starts)
		return fx_error_set(err, FX_ENOMEM, "no memory for the trajectory of %lld readouts", (long long)n);
	for (int64_t i = 0; i < n; i++) {
		r->starts[i] = at;
		at += ((const int32_t *)o->lengths->data)[i];
	}
	r->table = fx_array_ref((fx_array *)o->table);
	r->lengths = fx_array_ref((fx_array *)o->lengths);
	if (n == 1 && r->n_spokes <= 0)
		return fx_error_set(err, FX_EDATA, "%s holds one readout, which is turned for the others, but the header has no "
			"encodingLimits/kspace_encoding_step_1 that tell how many go round; set the property `spokes`", o->name);
	return FX_OK;
}

int fx_rule_new(const fx_encoding *encoding, const fx_rule_options *options, fx_error *err, fx_rule **out)
{
	fx_rule *r = fx_alloc(1, sizeof *r);
	int status;

	*out = NULL;
	if (!r)
		return fx_error_set(err, FX_ENOMEM, "no memory for a trajectory");
	r->options = *options;
	status = read_header(r, encoding, err);
	if (status == FX_OK && options->kind == FX_RULE_TABLE)
		status = read_table(r, err);
	if (status != FX_OK) {
		fx_rule_free(r);
		return status;
	}
	*out = r;
	return FX_OK;
}

void fx_rule_free(fx_rule *r)
{
	if (!r)
		return;
	fx_array_unref(r->table);
	fx_array_unref(r->lengths);
	fx_free(r->starts);
	fx_free(r->counts);
	fx_free(r);
}

/* ---- which readout of the rule ------------------------------------------------------------------- */

static struct count *count_of(fx_rule *r, const ISMRMRD_AcquisitionHeader *h)
{
	struct count key = {h->idx.slice, h->idx.contrast, h->idx.set, h->idx.kspace_encode_step_2, 0}, *grown;

	for (int64_t i = r->n_counts - 1; i >= 0; i--) {
		struct count *c = &r->counts[i];

		if (c->slice == key.slice && c->contrast == key.contrast && c->set == key.set && c->step_2 == key.step_2)
			return c;
	}
	if (r->n_counts == MOST_COUNTS)
		return NULL;
	if (r->n_counts == r->capacity) {
		int64_t capacity = r->capacity ? 2 * r->capacity : 16;

		grown = fx_alloc(capacity, sizeof *grown);
		if (!grown)
			return NULL;
		if (r->n_counts)
			memcpy(grown, r->counts, (size_t)r->n_counts * sizeof *grown);
		fx_free(r->counts);
		r->counts = grown;
		r->capacity = capacity;
	}
	r->counts[r->n_counts] = key;
	return &r->counts[r->n_counts++];
}

static int index_of(fx_rule *r, fx_math *m, const fx_acquisition *a, int64_t *out)
{
	struct count *c;

	*out = (int64_t)a->head.idx.kspace_encode_step_1 - r->first_step;
	if (r->options.index == FX_INDEX_STEP_1)
		return *out >= 0 ? FX_OK : fx_math_fail(m, FX_EDATA, "readout %u: kspace_encode_step_1 is %u, below the header's "
			"limit of %lld", a->head.scan_counter, a->head.idx.kspace_encode_step_1, (long long)r->first_step);
	c = count_of(r, &a->head);
	if (!c)
		return fx_math_fail(m, FX_ENOMEM, "no memory to count the readouts of every slice");
	*out = c->n++;
	return FX_OK;
}

/* ---- the rules ----------------------------------------------------------------------------------- */

static double fraction(double x)
{
	return x - floor(x);
}

static void direction_of(const fx_rule *r, int64_t i, double direction[3])
{
	double angle = 0, z = 0;

	if (r->options.kind == FX_RULE_RADIAL)
		angle = (r->options.full_turn ? 2 : 1) * PI * (double)i / (double)r->n_spokes;
	else if (r->options.kind == FX_RULE_GOLDEN)
		angle = 2 * PI * fraction((double)i / (2 * GOLDEN_RATIO));
	else {
		z = fraction((double)i * GOLDEN_MEAN_1);
		angle = 2 * PI * fraction((double)i * GOLDEN_MEAN_2);
	}
	direction[0] = sqrt(1 - z * z) * cos(angle);
	direction[1] = sqrt(1 - z * z) * sin(angle);
	direction[2] = z;
}

static void spoke(const fx_rule *r, const fx_acquisition *a, int64_t i, double kz, fx_array *traj)
{
	int64_t samples = traj->dims[1], center = a->head.center_sample, columns = traj->dims[0];
	/* samples of the whole spoke, were it not cut short on one side */
	double whole = (double)(2 * center > 2 * (samples - center) - 1 ? 2 * center : 2 * (samples - center) - 1), u[3];

	direction_of(r, i, u);
	for (int64_t j = 0; j < samples; j++)
		for (int64_t d = 0; d < columns; d++)
			FX_F32_OF(traj)[d + columns * j] = (float)((double)(j - center) / whole * u[d] + (d == 2 ? kz : 0));
}

/* radius = k_max tau, angle = 2 pi turns tau; equal arcs: (b + tau)^2 = b^2 + t (1 + 2 b), b = 1/(2 pi turns) */
static void spiral(const fx_rule *r, int64_t i, double kz, fx_array *traj)
{
	int64_t samples = traj->dims[1], columns = traj->dims[0];
	double b = 1 / (2 * PI * r->turns), start = 2 * PI * fraction((double)i / (double)r->n_spokes);

	for (int64_t j = 0; j < samples; j++) {
		double t = (double)j / (double)samples, tau = r->equal_arcs ? sqrt(b * b + t * (1 + 2 * b)) - b : t;
		double angle = 2 * PI * r->turns * tau + start, k[3] = {r->k_max * tau * cos(angle), r->k_max * tau * sin(angle), kz};

		for (int64_t d = 0; d < columns; d++)
			FX_F32_OF(traj)[d + columns * j] = (float)k[d];
	}
}

/* Rows of block i of the table; a table of one block is turned by i of n_spokes. */
static int table_rows(const fx_rule *r, fx_math *m, const fx_acquisition *a, int64_t i, fx_array *traj)
{
	int64_t n_blocks = r->lengths->dims[0], columns = traj->dims[0], block = i, length;
	double angle = n_blocks == 1 ? 2 * PI * fraction((double)i / (double)r->n_spokes) : 0;

	if (r->options.index == FX_INDEX_ORDER)
		block = i % n_blocks;
	else if (n_blocks > 1 && r->n_spokes > 0 && n_blocks > r->n_spokes && n_blocks % r->n_spokes == 0)
		block = i + r->n_spokes * a->head.idx.kspace_encode_step_2; /* blocks for every partition */
	if (n_blocks == 1)
		block = 0;
	if (block >= n_blocks)
		return fx_math_fail(m, FX_EDATA, "readout %u is number %lld of its turn, but %s holds %lld readouts; index=order "
			"counts them as they come", a->head.scan_counter, (long long)block, r->options.name, (long long)n_blocks);
	length = ((const int32_t *)r->lengths->data)[block];
	if (length != traj->dims[1])
		return fx_math_fail(m, FX_EDATA, "readout %u has %lld samples, but readout %lld of %s has %lld", a->head.scan_counter,
			(long long)traj->dims[1], (long long)block, r->options.name, (long long)length);
	for (int64_t j = 0; j < length; j++) {
		const double *k = FX_F64_OF(r->table) + columns * (r->starts[block] + j);

		FX_F32_OF(traj)[columns * j] = (float)(cos(angle) * k[0] - sin(angle) * k[1]);
		FX_F32_OF(traj)[columns * j + 1] = (float)(sin(angle) * k[0] + cos(angle) * k[1]);
		if (columns == 3)
			FX_F32_OF(traj)[columns * j + 2] = (float)k[2];
	}
	return FX_OK;
}

int fx_rule_readout(fx_rule *r, fx_math *m, fx_acquisition *a)
{
	int64_t samples = a->data->dims[0], i, columns = r->matrix[2] > 1 ? 3 : 2;
	double kz = 0;
	fx_array *traj;
	int status = index_of(r, m, a, &i);

	if (status != FX_OK)
		return status;
	if (r->n_partitions > 1)
		kz = (double)((int64_t)a->head.idx.kspace_encode_step_2 - r->center_partition) / (double)r->matrix[2];
	if (r->options.kind == FX_RULE_TABLE)
		columns = r->table->dims[0];
	else if (r->options.kind != FX_RULE_SPIRAL && a->head.center_sample >= samples && samples > 0)
		return fx_math_fail(m, FX_EDATA, "readout %u: center_sample is %u of %lld samples, so where its spoke crosses k = 0 is "
			"not known", a->head.scan_counter, a->head.center_sample, (long long)samples);
	status = fx_array_new2(FX_F32, columns, samples, &traj);
	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for a trajectory of %lld samples", (long long)samples);
	if (r->options.kind == FX_RULE_TABLE)
		status = table_rows(r, m, a, i, traj);
	else if (r->options.kind == FX_RULE_SPIRAL)
		spiral(r, i, kz, traj);
	else
		spoke(r, a, i, kz, traj);
	if (status != FX_OK) {
		fx_array_unref(traj);
		return status;
	}
	fx_slot_take(&a->traj, traj);
	a->head.trajectory_dimensions = (uint16_t)columns;
	return FX_OK;
}

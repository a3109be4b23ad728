/* SPDX-License-Identifier: MIT */
/*
 * density_analytic.c - density weights in closed form, from the shape of one readout.
 *
 * Readouts that are rotated copies of each other, uniform in angle, share out a ring (2-D) or a shell (3-D) evenly. So a
 * sample's weight is its share of the ring that its radial interval covers: pi (b^2 - a^2) / n or 4 pi (b^3 - a^3) / (3 n).
 * This holds for spokes and for spirals of any pitch alike (the Jacobian of rotation, r dr dphi); intervals reach half-way
 * to the neighbours, the outermost sample's as far out as in.
 */
#include <fornix/recon.h>

#include <math.h>

#define PI 3.14159265358979323846

/* A spoke may miss the centre by this many Cartesian cells (gradient delays do that), a spiral's radius shrink by it. */
#define SLACK_CELLS 0.5
/* A step this many times longer than both neighbours' is a gap where samples were dropped. */
#define GAP 3

bool fx_density_has_analytic(const fx_encoding *encoding, const int64_t dims[3])
{
	int n_axes = (dims[0] > 1) + (dims[1] > 1) + (dims[2] > 1);
	const fx_limit *partitions = &encoding->limits[FX_STEP_2];

	/* A stack of stars or spirals counts its partitions as step 2; its weights are not a readout's own. */
	if (n_axes < 2 || (partitions->present && partitions->max > partitions->min))
		return false;
	switch (encoding->trajectory) {
	case FX_TRAJ_RADIAL:
	case FX_TRAJ_GOLDENANGLE:
		return true;
	case FX_TRAJ_SPIRAL:
		return n_axes == 2;
	default:
		return false;
	}
}

struct readout {
	const double *k;   /* {3, n} */
	int64_t n;
	int n_axes;        /* encoded ones: 2 or 3 */
	double slack[3];   /* SLACK_CELLS in cycles/voxel, per axis */
	double cells;      /* Cartesian cells in a unit of k-space */
};

static double length(const double v[3])
{
	return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static double step(const struct readout *r, int64_t i)
{
	double d[3];

	for (int axis = 0; axis < 3; axis++)
		d[axis] = r->k[3 * (i + 1) + axis] - r->k[3 * i + axis];
	return length(d);
}

static bool is_gap(const struct readout *r, int64_t i)
{
	double before = i > 0 ? step(r, i - 1) : 0, after = i + 2 < r->n ? step(r, i + 1) : 0;

	return r->n > 2 && step(r, i) > GAP * fmax(before, after) && fmax(before, after) > 0;
}

/*
 * Signed positions along the spoke, in `position`, if the readout is one: a straight line past the centre on which it
 * never turns back.
 */
static bool as_spoke(const struct readout *r, double *position)
{
	double u[3], extent, sign = 0;

	for (int axis = 0; axis < 3; axis++)
		u[axis] = r->k[3 * (r->n - 1) + axis] - r->k[axis];
	extent = length(u);
	if (!(extent > 0))
		return false;
	for (int64_t i = 0; i < r->n; i++) {
		const double *k = r->k + 3 * i;
		double s = (k[0] * u[0] + k[1] * u[1] + k[2] * u[2]) / extent;

		for (int axis = 0; axis < 3; axis++)
			if (fabs(k[axis] - s * u[axis] / extent) > r->slack[axis])
				return false;
		if (i > 0 && s < position[i - 1])
			return false;
		position[i] = s;
		sign += s;
	}
	/* centre-out and centre-in readouts lie on one side: make it the positive one, increasing outwards or not */
	if (sign < 0)
		for (int64_t i = 0; i < r->n; i++)
			position[i] = -position[i];
	return true;
}

/* Radii, if the readout winds from the centre outwards (or inwards, when it is read backwards). */
static bool as_spiral(const struct readout *r, double *position)
{
	bool inwards = length(r->k) > length(r->k + 3 * (r->n - 1));
	double slack = fmax(fmax(r->slack[0], r->slack[1]), r->slack[2]), widest = 0;

	if (r->n_axes != 2)
		return false;
	for (int64_t i = 0; i < r->n; i++) {
		int64_t j = inwards ? r->n - 1 - i : i;
		double radius = length(r->k + 3 * j);

		if ((i == 0 && radius > 2 * slack) || radius < widest - slack)
			return false;
		/* what wavers a little in a measured trajectory only ever widens the ring */
		widest = fmax(widest, radius);
		position[j] = widest;
	}
	return widest > 0;
}

/*
 * Area (volume) of the ring (shell) between 0 and `s`, odd in s, for one of n readouts. Out to `both` each direction is
 * seen by two readouts or by both ends of one.
 */
static double enclosed(const struct readout *r, double s, double both, int64_t n)
{
	double a = fabs(s), inner = fmin(a, both), whole, half;

	if (r->n_axes == 2) {
		whole = PI * a * a;
		half = PI * inner * inner / 2;
	} else {
		whole = 4 * PI / 3 * a * a * a;
		half = 2 * PI / 3 * inner * inner * inner;
	}
	/* the part within `both` counts half */
	return copysign((whole - half) * r->cells / (double)n, s);
}

/*
 * A sample that stands for an interval evenly weighs a little too much where the Jacobian g bends: at the centre of k-space
 * (2-D) or everywhere (3-D). By the Euler-Maclaurin formula its weight is the integral of g - (spacing^2 / 24) g'' over
 * the interval. Left out, the centre's excess would lift a disc of amplitude 1 by 2 %, a ball by 4 %.
 */
static double bend(const struct readout *r, double position, double low, double high, double both, int64_t n)
{
	bool one_sided = low == 0;
	double spacing = one_sided ? 2 * (high - position) : high - low, share = fabs(low + high) / 2 < both ? 0.5 : 1, curvature;

	if (r->n_axes == 2) /* g = 2 pi |s|: 4 pi at s = 0 */
		curvature = low < 0 && high > 0 ? 4 * PI : one_sided ? 2 * PI : 0;
	else                /* g = 4 pi s^2 */
		curvature = 8 * PI * (high - low);
	return share * curvature * spacing * spacing / 24 * r->cells / (double)n;
}

/* Where the interval between sample i and i + 1 is divided; beyond the ends and at gaps, as far as on the other side. */
static double border(const struct readout *r, const double *position, int64_t i, bool below)
{
	int64_t other = below ? i - 1 : i + 1, opposite = below ? i + 1 : i - 1;
	double inner = 0;

	if (other >= 0 && other < r->n && !is_gap(r, below ? i - 1 : i))
		return (position[i] + position[other]) / 2;
	if (opposite >= 0 && opposite < r->n && !is_gap(r, below ? i : i - 1))
		inner = (position[i] - position[opposite]) / 2;
	return position[i] + inner;
}

/* How far out the shorter side of a spoke reaches; the longer one's end where it is as good as symmetric. */
static double reach_of_both(const double *position, int64_t n)
{
	double least = fmin(position[0], position[n - 1]), most = fmax(position[0], position[n - 1]);
	double spacing = (most - least) / (double)(n - 1);

	if (least >= 0)
		return 0;
	return -least + 1.5 * spacing >= most ? INFINITY : -least + spacing / 2;
}

static void weigh(const struct readout *r, const double *position, bool spoke, int64_t n_readouts, float *weights)
{
	double both = spoke ? reach_of_both(position, r->n) : 0;

	for (int64_t i = 0; i < r->n; i++) {
		double from = border(r, position, i, true), to = border(r, position, i, false), low = fmin(from, to);
		double high = fmax(from, to), area;

		/* The innermost sample of a one-sided readout stands for all that is left of the centre. */
		if (both == 0 && (i == 0 || i == r->n - 1) && low < high - low && position[i] <= fmin(position[0], position[r->n - 1]))
			low = 0;
		area = enclosed(r, high, both, n_readouts) - enclosed(r, low, both, n_readouts);
		if (spoke)
			area -= bend(r, position[i], low, high, both, n_readouts);
		weights[i] = (float)fmax(area, 0);
	}
}

int fx_density_analytic(fx_math *m, const fx_array *k, const int64_t dims[3], int64_t n_readouts, fx_array **out)
{
	struct readout r = {.k = k->data, .n = k->dims[1], .cells = 1};
	double *position;
	bool spoke, known;
	int status = FX_OK;

	*out = NULL;
	if (k->type != FX_F64 || k->dims[0] != 3 || n_readouts < 1)
		return fx_math_fail(m, FX_EINVAL, "density weights need a trajectory f64 {3, samples} and at least one readout");
	for (int axis = 0; axis < 3; axis++) {
		if (dims[axis] <= 1)
			continue;
		r.n_axes++;
		r.cells *= (double)dims[axis];
		r.slack[axis] = SLACK_CELLS / (double)dims[axis];
	}
	if (r.n_axes < 2 || r.n < 2)
		return FX_OK;
	position = fx_alloc(r.n, sizeof *position);
	if (!position)
		return fx_math_fail(m, FX_ENOMEM, "no memory for the density weights of %lld samples", (long long)r.n);
	spoke = as_spoke(&r, position);
	known = spoke || as_spiral(&r, position);
	if (known)
		status = fx_array_new1(FX_F32, r.n, out);
	if (*out)
		weigh(&r, position, spoke, n_readouts, FX_F32_OF(*out));
	fx_free(position);
	return status == FX_OK ? FX_OK :
		fx_math_fail(m, status, "no memory for the density weights of %lld samples", (long long)r.n);
}

/* SPDX-License-Identifier: MIT */
/* track_lane.c - where a fibre starts, which of its points are kept, why it ends, and how its two halves are joined. */
#include "track.h"

#include <math.h>
#include <string.h>

#define FIRST_POINTS 512

static void turn(const double a[3][3], const double x[3], double y[3])
{
	for (int i = 0; i < 3; i++)
		y[i] = a[i][0] * x[0] + a[i][1] * x[1] + a[i][2] * x[2];
}

static bool inside(const fxi_track_field *f, const double x[3])
{
	for (int a = 0; a < 3; a++)
		if (!(x[a] >= -0.5 && x[a] < (double)f->dims[a] - 0.5))
			return false;
	return true;
}

/* True where the nearest voxel is in the mask; x is in the volume. */
static bool in_mask(const fxi_track_job *j, const double x[3])
{
	const int64_t *n = j->field.dims;
	const uint8_t *mask = j->metric->mask ? j->metric->mask->data : NULL;

	return !mask || mask[((int64_t)(x[2] + 0.5) * n[1] + (int64_t)(x[1] + 0.5)) * n[0] + (int64_t)(x[0] + 0.5)];
}

/* Trilinear interpolation of `n_parts` numbers a voxel, held within the outermost centres. */
static void sample(const fxi_track_field *f, const float *map, int n_parts, const double x[3], double *out)
{
	int64_t at = 0, stride[3], step = n_parts;
	double part[3];

	for (int a = 0; a < 3; a++) {
		int64_t n = f->dims[a], cell = n < 2 || x[a] < 0 ? 0 : x[a] >= (double)(n - 1) ? n - 2 : (int64_t)x[a];

		part[a] = n < 2 ? 0 : fmin(1, fmax(0, x[a] - (double)cell));
		stride[a] = n < 2 ? 0 : step;
		at += cell * step;
		step *= n;
	}
	for (int c = 0; c < n_parts; c++)
		out[c] = 0;
	for (int corner = 0; corner < 8; corner++) {
		int i = corner & 1, k = corner >> 1 & 1, m = corner >> 2;
		double weight = (i ? part[0] : 1 - part[0]) * (k ? part[1] : 1 - part[1]) * (m ? part[2] : 1 - part[2]);

		for (int c = 0; c < n_parts; c++)
			out[c] += weight * (double)map[at + i * stride[0] + k * stride[1] + m * stride[2] + c];
	}
}

/* Direction in RAS, mm: as asked, or the principal eigenvector; false where there is none. */
static bool start_direction(const fxi_track_job *j, const double x[3], const double asked[3], double mm[3])
{
	double d[6], values[3], vectors[3][3], length;

	turn(j->plan->to_mm, asked, mm);
	if (asked[0] == 0 && asked[1] == 0 && asked[2] == 0) {
		sample(&j->field, j->metric->d->data, 6, x, d);
		fx_tensor_eigen(d, values, vectors);
		if (!(values[0] > 0))
			return false;
		memcpy(mm, vectors[0], sizeof vectors[0]);
	}
	length = sqrt(mm[0] * mm[0] + mm[1] * mm[1] + mm[2] * mm[2]);
	for (int i = 0; i < 3; i++)
		mm[i] /= length;
	return isfinite(length) && length > 0;
}

void fxi_lane_set_out(fxi_lane *lane, fxi_track_lanes *s, int l)
{
	for (int i = 0; i < 3; i++) {
		s->x[i][l] = lane->start[i];
		s->v[i][l] = lane->backward ? -lane->v[i] : lane->v[i];
	}
	s->scale[l] = 1;
	s->length[l] = s->riemann[l] = 0;
	lane->steps = 0;
	lane->here_length = lane->here_riemann = 0;
	lane->set_out = false;
	memcpy(lane->last, lane->start, sizeof lane->last);
}

bool fxi_lane_load(fxi_track_job *j, fxi_lane *lane, fxi_track_lanes *s, int l)
{
	lane->active = false;
	for (;;) {
		int64_t seed = atomic_fetch_add(&j->next, 1);
		const double *x = j->starts + 6 * seed;
		double mm[3], index[3];

		if (seed >= j->n)
			return false;
		if (!inside(&j->field, x) || !in_mask(j, x) || !start_direction(j, x, x + 3, mm)) {
			atomic_fetch_add(&j->n_outside, 1);
			continue;
		}
		turn(j->plan->to_index, mm, index);
		for (int i = 0; i < 3; i++)
			lane->v[i] = (float)(j->plan->method == FX_TRACK_STREAMLINE ? mm[i] : index[i]);
		memcpy(lane->start, x, sizeof lane->start);
		lane->active = true;
		lane->backward = false;
		lane->seed = seed;
		lane->n = lane->n_forward = 0;
		lane->length = lane->riemann = 0;
		lane->drift = 0;
		lane->seen = 0;
		fxi_lane_set_out(lane, s, l);
		return true;
	}
}

/* The bits of all voxels that the box around two places, and a little more, meets. */
static uint32_t bits_between(const fxi_track_job *j, const double a[3], const double b[3])
{
	const uint32_t *bits = j->keep->bits->data;
	const int64_t *n = j->field.dims;
	int64_t low[3], high[3];
	uint32_t seen = 0;

	for (int k = 0; k < 3; k++) {
		low[k] = (int64_t)floor(fmin(a[k], b[k]) + 0.5 - FX_TRACK_NEAR);
		high[k] = (int64_t)floor(fmax(a[k], b[k]) + 0.5 + FX_TRACK_NEAR);
		low[k] = low[k] > 0 ? low[k] : 0;
		high[k] = high[k] < n[k] - 1 ? high[k] : n[k] - 1;
	}
	for (int64_t z = low[2]; z <= high[2]; z++)
		for (int64_t y = low[1]; y <= high[1]; y++)
			for (int64_t x = low[0]; x <= high[0]; x++)
				seen |= bits[(z * n[1] + y) * n[0] + x];
	return seen;
}

/* What the step to the point at hand comes near to. */
static void see(const fxi_track_job *j, fxi_lane *lane, const double x[3])
{
	lane->seen |= bits_between(j, lane->n > 0 ? lane->last : x, x);
	memcpy(lane->last, x, sizeof lane->last);
}

static bool worth_keeping(const fxi_track_job *j, const fxi_lane *lane)
{
	return !j->keep || ((j->keep->any == 0 || (lane->seen & j->keep->any)) && (lane->seen & j->keep->all) == j->keep->all);
}

static bool keep_point(fxi_track_job *j, fxi_lane *lane, const fxi_track_lanes *s, int l)
{
	const double (*a)[4] = j->plan->affine;
	double x = s->x[0][l], y = s->x[1][l], z = s->x[2][l];
	float *to;

	if (lane->n == lane->capacity) {
		int64_t capacity = lane->capacity ? 2 * lane->capacity : FIRST_POINTS;
		float *more = fx_alloc(capacity, 4 * sizeof *more);

		if (!more)
			return false;
		if (lane->n > 0)
			memcpy(more, lane->points, (size_t)lane->n * 4 * sizeof *more);
		fx_free(lane->points);
		lane->points = more;
		lane->capacity = capacity;
	}
	if (j->keep)
		see(j, lane, (const double[]){x, y, z});
	to = lane->points + 4 * lane->n++;
	to[0] = (float)(a[0][0] * x + a[0][1] * y + a[0][2] * z + a[0][3]);
	to[1] = (float)(a[1][0] * x + a[1][1] * y + a[1][2] * z + a[1][3]);
	to[2] = (float)(a[2][0] * x + a[2][1] * y + a[2][2] * z + a[2][3]);
	to[3] = (float)s->riemann[l];
	return true;
}

/* True where the path turned by more than the angle within one voxel's length. */
static bool turned(const fxi_track_job *j, fxi_lane *lane, const fxi_track_lanes *s, int l)
{
	double v[3] = {(double)s->v[0][l], (double)s->v[1][l], (double)s->v[2][l]}, mm[3];
	float cosine = 0;

	if (j->plan->method == FX_TRACK_GEODESIC)
		turn(j->plan->to_mm, v, mm);
	else
		memcpy(mm, v, sizeof mm);
	for (int i = 0; i < 3; i++)
		cosine += lane->towards[i] * (float)mm[i];
	if (lane->steps > 0 && cosine < j->cos_angle)
		return true;
	if (lane->steps == 0 || s->length[l] - lane->towards_length >= j->plan->voxel) {
		for (int i = 0; i < 3; i++)
			lane->towards[i] = (float)mm[i];
		lane->towards_length = s->length[l];
	}
	return false;
}

/* Why the point where the lane is cannot be kept; -1 where it can. */
static int refusal(fxi_track_job *j, fxi_lane *lane, const fxi_track_lanes *s, int l)
{
	const fx_track_plan *p = j->plan;
	const double x[3] = {s->x[0][l], s->x[1][l], s->x[2][l]};
	double value;

	if (!s->defined[l])
		return FX_TRACK_STOP_UNDEFINED;
	if (p->stop_mask && !in_mask(j, x))
		return FX_TRACK_STOP_MASK;
	if (p->stop_fa > 0) {
		sample(&j->field, j->metric->fa->data, 1, x, &value);
		if (value < p->stop_fa)
			return FX_TRACK_STOP_FA;
	}
	if (p->stop_md > 0) {
		sample(&j->field, j->metric->md->data, 1, x, &value);
		if (value > p->stop_md)
			return FX_TRACK_STOP_CSF;
	}
	if (p->stop_angle > 0 && turned(j, lane, s, l))
		return FX_TRACK_STOP_ANGLE;
	return -1;
}

bool fxi_lane_accept(fxi_track_job *j, fxi_lane *lane, fxi_track_lanes *s, int l)
{
	const fx_track_plan *p = j->plan;
	int stop = refusal(j, lane, s, l);
	float change;

	if (stop >= 0)
		return fxi_lane_end(j, lane, stop);
	if (lane->steps == 0 && !lane->backward)
		lane->square = s->square[l];
	if ((lane->steps > 0 || !lane->backward) && !keep_point(j, lane, s, l))
		return false;
	lane->here_length = s->length[l];
	lane->here_riemann = s->riemann[l];
	change = fabsf(s->scale[l] * s->scale[l] * s->square[l] / lane->square - 1);
	lane->drift = change > lane->drift ? change : lane->drift;
	/* A step more than the length allows is not begun; the billionth is for lengths that are a whole number of steps. */
	if (lane->steps == p->max_steps ||
		(p->max_length > 0 && lane->length + s->length[l] + p->step > p->max_length * (1 + 1e-9)))
		return fxi_lane_end(j, lane, FX_TRACK_STOP_STEPS);
	lane->steps++;
	return true;
}

/* The whole fibre, second half first and turned round; Riemannian length counts from its first point. */
static bool join(fxi_track_job *j, fxi_lane *lane, double length, double riemann, int stop_start)
{
	fxi_fibre *f = &j->fibres[lane->seed];
	int64_t n_back = lane->n - lane->n_forward;
	double before = riemann - lane->riemann; /* of the second half */

	/* The millionth is for lengths that are a whole number of steps: sums of single-precision steps, which round to either side. */
	if (lane->n < 2 || length < j->plan->min_length * (1 - 1e-6))
		return true;
	if (!worth_keeping(j, lane)) {
		atomic_fetch_add(&j->n_missed, 1);
		return true;
	}
	f->points = fx_alloc(lane->n, 4 * sizeof *f->points);
	if (!f->points)
		return false;
	f->n = lane->n;
	for (int64_t i = 0; i < n_back; i++) {
		memcpy(f->points + 4 * i, lane->points + 4 * (lane->n - 1 - i), 4 * sizeof *f->points);
		f->points[4 * i + 3] = (float)(before - (double)f->points[4 * i + 3]);
	}
	memcpy(f->points + 4 * n_back, lane->points, (size_t)lane->n_forward * 4 * sizeof *f->points);
	for (int64_t i = n_back; n_back > 0 && i < f->n; i++)
		f->points[4 * i + 3] = (float)(before + (double)f->points[4 * i + 3]);
	f->values[FX_VALUE_LENGTH] = (float)length;
	f->values[FX_VALUE_RIEMANN] = (float)riemann;
	f->values[FX_VALUE_MEASURE] = (float)(length / riemann);
	f->values[FX_VALUE_DRIFT] = j->plan->method == FX_TRACK_GEODESIC ? lane->drift : 0;
	f->values[FX_VALUE_STOP_START] = (float)stop_start;
	f->values[FX_VALUE_STOP_END] = (float)lane->stop_end;
	f->values[FX_VALUE_SEED] = (float)n_back;
	return true;
}

bool fxi_lane_end(fxi_track_job *j, fxi_lane *lane, int stop)
{
	if (lane->n == 0) { /* the seed itself was refused */
		atomic_fetch_add(&j->n_outside, 1);
		lane->active = false;
		return true;
	}
	if (lane->backward) {
		lane->active = false;
		return join(j, lane, lane->length + lane->here_length, lane->riemann + lane->here_riemann, stop);
	}
	lane->n_forward = lane->n;
	lane->length = lane->here_length;
	lane->riemann = lane->here_riemann;
	lane->stop_end = stop;
	lane->backward = lane->set_out = lane->active = j->plan->both_ways;
	return lane->active || join(j, lane, lane->length, lane->riemann, -1);
}

/* SPDX-License-Identifier: MIT */
/*
 * track.c - steps of geodesics: x'' = -g^-1 w, w_l = x'^i (d_i g x')_l - (1/2) x'^T (d_l g) x' (van Aart et al. 2011, without their
 * 27 symbols). The equation is homogeneous of degree two, so the velocity may be made 1 mm long before every step: it
 * stays the same path.
 */
#include "track.h"

#include <math.h>
#include <string.h>

#include "track_fetch.h"

/* Integrators by the numbers of enum fx_integrator. */
enum { EULER = 0, RK2, RK4, FROZEN };

#define INLINE static inline __attribute__((always_inline))

/*
 * Loops over lanes have no local arrays and take no local's address: gcc would give these a place in memory for each lane, and not
 * vectorise.
 */
typedef struct vector {
	float x, y, z;
} vector;

/* d v, of the symmetric tensor that starts at row `at`, in lane l. */
INLINE vector times(float parts[24][W], int at, int l, vector v)
{
	float xx = parts[at][l], xy = parts[at + 1][l], yy = parts[at + 2][l];
	float xz = parts[at + 3][l], yz = parts[at + 4][l], zz = parts[at + 5][l];

	return (vector){xx * v.x + xy * v.y + xz * v.z, xy * v.x + yy * v.y + yz * v.z, xz * v.x + yz * v.y + zz * v.z};
}

INLINE float dot(vector a, vector b)
{
	return a.x * b.x + a.y * b.y + a.z * b.z;
}

/* g^-1 v of lane l, by cofactors. */
INLINE vector solve(float parts[24][W], int l, vector v)
{
	float xx = parts[0][l], xy = parts[1][l], yy = parts[2][l], xz = parts[3][l], yz = parts[4][l], zz = parts[5][l];
	float axx = yy * zz - yz * yz, axy = xz * yz - xy * zz, ayy = xx * zz - xz * xz;
	float axz = xy * yz - xz * yy, ayz = xy * xz - xx * yz, azz = xx * yy - xy * xy;
	float scale = 1 / (xx * axx + xy * axy + xz * axz);

	return (vector){scale * (axx * v.x + axy * v.y + axz * v.z), scale * (axy * v.x + ayy * v.y + ayz * v.z),
		scale * (axz * v.x + ayz * v.y + azz * v.z)};
}

/* Acceleration of lane l. */
INLINE vector accelerate(float parts[24][W], int l, vector v)
{
	vector dx = times(parts, 6, l, v), dy = times(parts, 12, l, v), dz = times(parts, 18, l, v);
	vector minus_w = {0.5f * dot(v, dx) - (v.x * dx.x + v.y * dy.x + v.z * dz.x),
		0.5f * dot(v, dy) - (v.x * dx.y + v.y * dy.y + v.z * dz.y),
		0.5f * dot(v, dz) - (v.x * dx.z + v.y * dy.z + v.z * dz.z)};

	return solve(parts, l, minus_w);
}

typedef struct symmetric {
	float xx, xy, yy, xz, yz, zz;
} symmetric;

/* v^T q v */
INLINE float square_of(symmetric q, vector v)
{
	return q.xx * v.x * v.x + q.yy * v.y * v.y + q.zz * v.z * v.z +
		2 * (q.xy * v.x * v.y + q.xz * v.x * v.z + q.yz * v.y * v.z);
}

void FXI_NAME(fxi_track_look)(const fxi_track_field *f, fxi_track_lanes *s)
{
	fetch24(f, s->x, s->parts);
#pragma omp simd
	for (int l = 0; l < W; l++) {
		float xx = s->parts[0][l], xy = s->parts[1][l], yy = s->parts[2][l];
		float xz = s->parts[3][l], yz = s->parts[4][l], zz = s->parts[5][l];
		symmetric g = {xx, xy, yy, xz, yz, zz};
		vector v = {s->v[0][l], s->v[1][l], s->v[2][l]};
		float minor = xx * yy - xy * xy;
		float det = xx * (yy * zz - yz * yz) + xy * (xz * yz - xy * zz) + xz * (xy * yz - xz * yy);
		float square = square_of(g, v);

		/* Positive leading minors; comparisons with NaN are false. */
		s->square[l] = square;
		s->defined[l] = (xx > 0) & (minor > 0) & (det > 0) & (square > 0) & (square < 1e30f);
	}
}

/* The state of a stage: where the metric is asked, with which velocity, and what it says. */
struct stage {
	double x[3][W];
	float v[3][W], a[3][W], parts[24][W];
} __attribute__((aligned(64)));

/*
 * New position, velocity of 1 mm, and the running sums; u is the mean velocity of the step
 * (which may be s->v itself, so that the position comes first), a the mean acceleration.
 */
INLINE void finish(const fxi_track_field *f, fxi_track_lanes *s, float u[3][W], float a[3][W])
{
	double top_x = (double)f->dims[0] - 0.5, top_y = (double)f->dims[1] - 0.5, top_z = (double)f->dims[2] - 0.5;
	const symmetric q = {f->square[0], f->square[1], f->square[2], f->square[3], f->square[4], f->square[5]};
	float h = f->step;

#pragma omp simd
	for (int l = 0; l < W; l++) {
		vector by = {u[0][l], u[1][l], u[2][l]};
		double x = s->x[0][l] + (double)(h * by.x), y = s->x[1][l] + (double)(h * by.y), z = s->x[2][l] + (double)(h * by.z);

		s->length[l] += (double)(h * sqrtf(square_of(q, by)));
		s->x[0][l] = x;
		s->x[1][l] = y;
		s->x[2][l] = z;
		s->inside[l] = (x >= -0.5) & (x < top_x) & (y >= -0.5) & (y < top_y) & (z >= -0.5) & (z < top_z);
	}
#pragma omp simd
	for (int l = 0; l < W; l++) {
		vector v = {s->v[0][l] + h * a[0][l], s->v[1][l] + h * a[1][l], s->v[2][l] + h * a[2][l]};
		float n = sqrtf(square_of(q, v));

		s->riemann[l] += (double)(h * sqrtf(s->square[l]));
		s->scale[l] *= n;
		s->v[0][l] = v.x / n;
		s->v[1][l] = v.y / n;
		s->v[2][l] = v.z / n;
	}
}

/* t: the stage `ahead` mm from s, by the velocity `by` and the acceleration `a`. */
INLINE void place(fxi_track_lanes *s, float ahead, float by[3][W], float a[3][W], struct stage *t)
{
	for (int k = 0; k < 3; k++)
#pragma omp simd
		for (int l = 0; l < W; l++) {
			t->x[k][l] = s->x[k][l] + (double)(ahead * by[k][l]);
			t->v[k][l] = s->v[k][l] + ahead * a[k][l];
		}
}

INLINE void accelerate_all(float parts[24][W], float v[3][W], float a[3][W])
{
#pragma omp simd
	for (int l = 0; l < W; l++) {
		vector to = accelerate(parts, l, (vector){v[0][l], v[1][l], v[2][l]});

		a[0][l] = to.x;
		a[1][l] = to.y;
		a[2][l] = to.z;
	}
}

static void advance_rk4(const fxi_track_field *f, fxi_track_lanes *s)
{
	static const float ahead[3] = {0.5f, 0.5f, 1}, weight[3] = {1 / 3.0f, 1 / 3.0f, 1 / 6.0f};
	float u[3][W], a[3][W], v0[3][W], a0[3][W];
	struct stage t;

	accelerate_all(s->parts, s->v, a0);
	memcpy(v0, s->v, sizeof v0);
	for (int k = 0; k < 3; k++)
		for (int l = 0; l < W; l++) {
			u[k][l] = v0[k][l] / 6;
			a[k][l] = a0[k][l] / 6;
		}
	for (int i = 0; i < 3; i++) {
		place(s, ahead[i] * f->step, v0, a0, &t);
		fetch24(f, t.x, t.parts);
		accelerate_all(t.parts, t.v, t.a);
		for (int k = 0; k < 3; k++)
			for (int l = 0; l < W; l++) {
				u[k][l] += weight[i] * t.v[k][l];
				a[k][l] += weight[i] * t.a[k][l];
			}
		memcpy(v0, t.v, sizeof v0);
		memcpy(a0, t.a, sizeof a0);
	}
	finish(f, s, u, a);
}

void FXI_NAME(fxi_track_advance)(const fxi_track_field *f, fxi_track_lanes *s)
{
	struct stage t;

	if (f->integrator == RK4) {
		advance_rk4(f, s);
		return;
	}
	accelerate_all(s->parts, s->v, t.a);
	if (f->integrator == EULER) {
		finish(f, s, s->v, t.a);
		return;
	}
	place(s, 0.5f * f->step, s->v, t.a, &t);
	if (f->integrator == FROZEN) {
		accelerate_all(s->parts, t.v, t.a);
	} else {
		fetch24(f, t.x, t.parts);
		accelerate_all(t.parts, t.v, t.a);
	}
	finish(f, s, t.v, t.a);
}

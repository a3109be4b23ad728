/* SPDX-License-Identifier: MIT */
/*
 * track.c - steps of geodesics: x'' = -G w, w_l = x'^i (d_i g x')_l - (1/2) x'^T (d_l g) x' (van Aart et al. 2011, without their
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

/* sum d v, of the symmetric tensor that starts at row `at`. */
INLINE void times(float parts[24][W], int at, int l, float x, float y, float z, float out[3])
{
	out[0] = parts[at][l] * x + parts[at + 1][l] * y + parts[at + 3][l] * z;
	out[1] = parts[at + 1][l] * x + parts[at + 2][l] * y + parts[at + 4][l] * z;
	out[2] = parts[at + 3][l] * x + parts[at + 4][l] * y + parts[at + 5][l] * z;
}

/* Acceleration of lane l. */
INLINE void accelerate(float parts[24][W], int l, float x, float y, float z, float a[3])
{
	float dx[3], dy[3], dz[3], wx, wy, wz;

	times(parts, 6, l, x, y, z, dx);
	times(parts, 12, l, x, y, z, dy);
	times(parts, 18, l, x, y, z, dz);
	wx = x * dx[0] + y * dy[0] + z * dz[0] - 0.5f * (x * dx[0] + y * dx[1] + z * dx[2]);
	wy = x * dx[1] + y * dy[1] + z * dz[1] - 0.5f * (x * dy[0] + y * dy[1] + z * dy[2]);
	wz = x * dx[2] + y * dy[2] + z * dz[2] - 0.5f * (x * dz[0] + y * dz[1] + z * dz[2]);
	times(parts, 0, l, -wx, -wy, -wz, a);
}

INLINE float length2(const float q[6], float x, float y, float z)
{
	return q[0] * x * x + q[2] * y * y + q[5] * z * z + 2 * (q[1] * x * y + q[3] * x * z + q[4] * y * z);
}

void FXI_NAME(fxi_track_look)(const fxi_track_field *f, fxi_track_lanes *s)
{
	fetch24(f, s->x, s->parts);
#pragma omp simd
	for (int l = 0; l < W; l++) {
		float xx = s->parts[0][l], xy = s->parts[1][l], yy = s->parts[2][l];
		float xz = s->parts[3][l], yz = s->parts[4][l], zz = s->parts[5][l];
		float adj[6] = {yy * zz - yz * yz, xz * yz - xy * zz, xx * zz - xz * xz, xy * yz - xz * yy, xy * xz - xx * yz,
			xx * yy - xy * xy};
		float det = xx * adj[0] + xy * adj[1] + xz * adj[3];
		float square = length2(adj, s->v[0][l], s->v[1][l], s->v[2][l]) / det;

		/* Positive leading minors; comparisons with NaN are false. */
		s->square[l] = square;
		s->defined[l] = (xx > 0) & (adj[5] > 0) & (det > 0) & (square > 0) & (square < 1e30f);
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
	double top[3] = {(double)f->dims[0] - 0.5, (double)f->dims[1] - 0.5, (double)f->dims[2] - 0.5};
	float h = f->step, q[6];

	memcpy(q, f->square, sizeof q);
#pragma omp simd
	for (int l = 0; l < W; l++) {
		double x = s->x[0][l] + (double)(h * u[0][l]), y = s->x[1][l] + (double)(h * u[1][l]);
		double z = s->x[2][l] + (double)(h * u[2][l]);

		s->length[l] += (double)(h * sqrtf(length2(q, u[0][l], u[1][l], u[2][l])));
		s->x[0][l] = x;
		s->x[1][l] = y;
		s->x[2][l] = z;
		s->inside[l] = (x >= -0.5) & (x < top[0]) & (y >= -0.5) & (y < top[1]) & (z >= -0.5) & (z < top[2]);
	}
#pragma omp simd
	for (int l = 0; l < W; l++) {
		float x = s->v[0][l] + h * a[0][l], y = s->v[1][l] + h * a[1][l], z = s->v[2][l] + h * a[2][l];
		float n = sqrtf(length2(q, x, y, z));

		s->riemann[l] += (double)(h * sqrtf(s->square[l]));
		s->scale[l] *= n;
		s->v[0][l] = x / n;
		s->v[1][l] = y / n;
		s->v[2][l] = z / n;
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
		float out[3];

		accelerate(parts, l, v[0][l], v[1][l], v[2][l], out);
		a[0][l] = out[0];
		a[1][l] = out[1];
		a[2][l] = out[2];
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

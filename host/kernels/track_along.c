/* SPDX-License-Identifier: MIT */
/* track_along.c - steps of streamlines: x' = e_1 of the interpolated tensor, kept on the side of the step before. */
#include "track.h"

#include <math.h>
#include <string.h>

#define JACOBI_REAL float
#define JACOBI_SQRT sqrtf
#define JACOBI_ABS fabsf
#include "jacobi.h"
#include "track_fetch.h"

/* Integrators by the numbers of enum fx_integrator. */
enum { EULER = 0, RK2, RK4 };

#define INLINE static inline __attribute__((always_inline))

/* Unit principal directions of parts, on the side of `side`; and the largest eigenvalue. */
INLINE void principal(float parts[24][W], float side[3][W], float e[3][W], float value[W])
{
#pragma omp simd
	for (int l = 0; l < W; l++) {
		float most, x, y, z, n;
		JACOBI_DECLARE;

		axx = parts[0][l];
		axy = parts[1][l];
		ayy = parts[2][l];
		axz = parts[3][l];
		ayz = parts[4][l];
		azz = parts[5][l];
		JACOBI_SOLVE;
		most = axx, x = v00, y = v01, z = v02;
		x = ayy > most ? v10 : x;
		y = ayy > most ? v11 : y;
		z = ayy > most ? v12 : z;
		most = ayy > most ? ayy : most;
		x = azz > most ? v20 : x;
		y = azz > most ? v21 : y;
		z = azz > most ? v22 : z;
		most = azz > most ? azz : most;
		n = sqrtf(x * x + y * y + z * z); /* twelve rotations leave it 1 to a few roundings */
		n = x * side[0][l] + y * side[1][l] + z * side[2][l] < 0 ? -n : n;
		e[0][l] = x / n;
		e[1][l] = y / n;
		e[2][l] = z / n;
		value[l] = most;
	}
}

void FXI_NAME(fxi_track_look_along)(const fxi_track_field *f, fxi_track_lanes *s)
{
	float value[W], e[3][W];

	fetch6(f, s->x, s->parts);
	principal(s->parts, s->v, e, value);
	memcpy(s->v, e, sizeof e);
#pragma omp simd
	for (int l = 0; l < W; l++) {
		s->square[l] = 1 / value[l];
		s->defined[l] = (value[l] > 0) & (value[l] < 1e12f) & (e[0][l] == e[0][l]);
	}
}

/* Directions `ahead` mm away along `by`. */
INLINE void direction_at(const fxi_track_field *f, fxi_track_lanes *s, float ahead, float by[3][W], float e[3][W])
{
	double x[3][W];
	float parts[24][W], value[W];

	for (int k = 0; k < 3; k++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			x[k][l] = s->x[k][l] + (double)(ahead * (f->to_index[k][0] * by[0][l] + f->to_index[k][1] * by[1][l] +
				f->to_index[k][2] * by[2][l]));
	fetch6(f, x, parts);
	principal(parts, s->v, e, value);
}

INLINE void move(const fxi_track_field *f, fxi_track_lanes *s, float u[3][W])
{
	double top[3] = {(double)f->dims[0] - 0.5, (double)f->dims[1] - 0.5, (double)f->dims[2] - 0.5};
	float h = f->step;

	for (int k = 0; k < 3; k++)
#pragma omp simd
		for (int l = 0; l < W; l++)
			s->x[k][l] += (double)(h * (f->to_index[k][0] * u[0][l] + f->to_index[k][1] * u[1][l] +
				f->to_index[k][2] * u[2][l]));
#pragma omp simd
	for (int l = 0; l < W; l++) {
		double x = s->x[0][l], y = s->x[1][l], z = s->x[2][l];
		float n = sqrtf(u[0][l] * u[0][l] + u[1][l] * u[1][l] + u[2][l] * u[2][l]);

		s->length[l] += (double)(h * n);
		s->riemann[l] += (double)(h * n * sqrtf(s->square[l]));
		s->inside[l] = (x >= -0.5) & (x < top[0]) & (y >= -0.5) & (y < top[1]) & (z >= -0.5) & (z < top[2]);
	}
}

void FXI_NAME(fxi_track_advance_along)(const fxi_track_field *f, fxi_track_lanes *s)
{
	static const float ahead[3] = {0.5f, 0.5f, 1}, weight[3] = {1 / 3.0f, 1 / 3.0f, 1 / 6.0f};
	float e[3][W], u[3][W], next[3][W];

	memcpy(e, s->v, sizeof e);
	memcpy(u, s->v, sizeof u);
	if (f->integrator == RK2)
		direction_at(f, s, 0.5f * f->step, e, u);
	for (int k = 0; f->integrator == RK4 && k < 3; k++)
		for (int l = 0; l < W; l++)
			u[k][l] /= 6;
	for (int i = 0; f->integrator == RK4 && i < 3; i++) {
		direction_at(f, s, ahead[i] * f->step, e, next);
		memcpy(e, next, sizeof e);
		for (int k = 0; k < 3; k++)
			for (int l = 0; l < W; l++)
				u[k][l] += weight[i] * e[k][l];
	}
	move(f, s, u);
}

/* SPDX-License-Identifier: MIT */
/*
 * track_geodesic.cuh - steps of geodesics, as host/kernels/track.c takes them: x'' = -g^-1 w, w_l = x'^i (d_i g x')_l - (1/2) x'^T (d_l g) x'. The
 * LANES threads of a fibre hold 4 / LANES of its four tensors, g and the three derivatives: w is a sum over these, one or two
 * shuffles deep, and the thread that has g solves for all. Everything else each thread does for itself, to the same bits.
 */
#ifndef FORNIX_CUDA_TRACK_GEODESIC_CUH
#define FORNIX_CUDA_TRACK_GEODESIC_CUH

#include "track_walk.cuh"

namespace track {

__device__ static inline void times(const float d[6], const float v[3], float out[3])
{
	out[0] = d[0] * v[0] + d[1] * v[1] + d[3] * v[2];
	out[1] = d[1] * v[0] + d[2] * v[1] + d[4] * v[2];
	out[2] = d[3] * v[0] + d[4] * v[1] + d[5] * v[2];
}

__device__ static inline float dot(const float a[3], const float b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* v^T q v */
__device__ static inline float square_of(const float q[6], const float v[3])
{
	return q[0] * v[0] * v[0] + q[2] * v[1] * v[1] + q[5] * v[2] * v[2] + 2 * (q[1] * v[0] * v[1] + q[3] * v[0] * v[2] + q[4] * v[1] * v[2]);
}

/* RK2 chooses at compile time; any other number: by what the walk says. */
template <class CELL, int N_LANES, bool RK2> struct geodesic {
	static const int LANES = N_LANES, T = 4 / LANES;
	CELL cell;
	float p[T][6], a[3];         /* the field, and the acceleration, where the fibre was looked at */
	int lane, first;             /* the thread's first tensor */

	__device__ void begin(int in_group)
	{
		lane = LANES == 1 ? 0 : in_group;
		first = lane * T;
	}

	__device__ void direction(const fxi_track_view &g, const float v[3], float mm[3]) const
	{
		for (int i = 0; i < 3; i++)
			mm[i] = (float)g.affine[i][0] * v[0] + (float)g.affine[i][1] * v[1] + (float)g.affine[i][2] * v[2];
	}

	/* out = the acceleration at velocity v; square: g(v, v), NaN where g is not finite and positive. Only the thread with g has it. */
	__device__ void accelerate(const float t[T][6], const float v[3], float out[3], float *square) const
	{
		float w[3] = {0, 0, 0}; /* minus w */

#pragma unroll
		for (int k = 0; k < T; k++) {
			int which = first + k;
			float u[3];

			times(t[k], v, u);
			float q = dot(v, u);
			if (k == 0)
				*square = q;
			float by = which == 0 ? 0 : which == 1 ? v[0] : which == 2 ? v[1] : v[2], half = 0.5f * q;
			bool some = which > 0; /* what a thread has of g may be anything: it must not come in by 0 x infinity */

			w[0] += some ? (which == 1 ? half : 0) - by * u[0] : 0;
			w[1] += some ? (which == 2 ? half : 0) - by * u[1] : 0;
			w[2] += some ? (which == 3 ? half : 0) - by * u[2] : 0;
		}
#pragma unroll
		for (int apart = 1; apart < LANES; apart *= 2)
#pragma unroll
			for (int i = 0; i < 3; i++)
				w[i] += __shfl_xor_sync(FULL, w[i], apart);
		const float *g = t[0];
		float axx = g[2] * g[5] - g[4] * g[4], axy = g[3] * g[4] - g[1] * g[5], ayy = g[0] * g[5] - g[3] * g[3];
		float axz = g[1] * g[4] - g[3] * g[2], ayz = g[1] * g[3] - g[0] * g[4], azz = g[0] * g[2] - g[1] * g[1];
		float det = g[0] * axx + g[1] * axy + g[3] * axz, scale = inverse(det);

		out[0] = scale * (axx * w[0] + axy * w[1] + axz * w[2]);
		out[1] = scale * (axy * w[0] + ayy * w[1] + ayz * w[2]);
		out[2] = scale * (axz * w[0] + ayz * w[1] + azz * w[2]);
		/* Positive leading minors; comparisons with NaN are false. */
		if (!(g[0] > 0 && azz > 0 && det > 0 && *square > 0 && *square < 1e30f))
			*square = NAN;
		if (LANES > 1)
#pragma unroll
			for (int i = 0; i < 3; i++)
				out[i] = __shfl_sync(FULL, out[i], 0, LANES);
	}

	template <class STATE> __device__ void look(const fxi_track_view &g, STATE &s)
	{
		float square;

		cell.eval(g, s.c, s.f, p);
		accelerate(p, s.v, a, &square);
		s.square = LANES > 1 ? __shfl_sync(FULL, square, 0, LANES) : square;
	}

	/* The acceleration `ahead` mm from s by the velocity `by` and the acceleration `slope`; v: the velocity there. */
	template <class STATE>
	__device__ void stage(const fxi_walk &w, STATE &s, float ahead, const float by[3], const float slope[3], float v[3], float out[3])
	{
		float x[3], t[T][6], unused;

		for (int i = 0; i < 3; i++) {
			x[i] = s.f[i] + ahead * by[i];
			v[i] = s.v[i] + ahead * slope[i];
		}
		settle(w.view, s, x, cell, lane, first);
		__syncwarp();
		cell.eval(w.view, s.c, x, t);
		accelerate(t, v, out, &unused);
	}

	/* Mean velocity and acceleration of a step. */
	template <class STATE> __device__ void mean_of(const fxi_walk &w, STATE &s, float u[3], float m[3])
	{
		const float h = w.view.step;
		float unused;

		if (RK2 || w.integrator == FX_INTEGRATOR_RK2) {
			stage(w, s, 0.5f * h, s.v, a, u, m);
		} else if (w.integrator == FX_INTEGRATOR_FROZEN) {
			for (int i = 0; i < 3; i++)
				u[i] = s.v[i] + 0.5f * h * a[i];
			accelerate(p, u, m, &unused);
		} else if (w.integrator == FX_INTEGRATOR_RK4) {
			float v0[3], a0[3], v1[3], a1[3];

			for (int i = 0; i < 3; i++) {
				v0[i] = s.v[i];
				a0[i] = a[i];
				u[i] = v0[i] / 6;
				m[i] = a0[i] / 6;
			}
			for (int k = 0; k < 3; k++) {
				float ahead = k < 2 ? 0.5f : 1, weight = k < 2 ? 1 / 3.0f : 1 / 6.0f;

				stage(w, s, ahead * h, v0, a0, v1, a1);
				for (int i = 0; i < 3; i++) {
					u[i] += weight * v1[i];
					m[i] += weight * a1[i];
					v0[i] = v1[i];
					a0[i] = a1[i];
				}
			}
		} else {
			for (int i = 0; i < 3; i++) {
				u[i] = s.v[i];
				m[i] = a[i];
			}
		}
	}

	template <class STATE> __device__ void advance(const fxi_walk &w, STATE &s, bool moving, step *made)
	{
		const float h = w.view.step;
		float u[3], m[3];

		mean_of(w, s, u, m);
		if (!moving)
			return;
		float chord = square_of(w.view.square, u);

		made->length = h * (chord * inverse_root(chord));
		made->riemann = h * (s.square * inverse_root(s.square));
		for (int i = 0; i < 3; i++) {
			s.f[i] += h * u[i];
			s.v[i] += h * m[i];
		}
		/* n and 1/n to fit each other: their product is what the drift of thousands of steps is made of. */
		float square = square_of(w.view.square, s.v), by = inverse_root(square), n = square * by;
		by += by * (1 - n * by);
		made->divided = n;
		for (int i = 0; i < 3; i++)
			s.v[i] *= by;
	}
};

/* RK2 without rules beyond mask, volume and steps, the common case, apart; everything else in one. */
template <class CELL, int LANES> static int launch_geodesic(fx_math *m, const fxi_walk *w)
{
	if (w->integrator == FX_INTEGRATOR_RK2 && !w->rules)
		return launch<geodesic<CELL, LANES, true>, false>(m, *w);
	return launch<geodesic<CELL, LANES, false>, true>(m, *w);
}

} // namespace track

#endif

/* SPDX-License-Identifier: MIT */
/*
 * track_along.cu - steps of streamlines, as host/kernels/track_along.c takes them: x' = e_1 of the interpolated tensor, kept on the side of the step
 * before. A thread a fibre; the eigenvectors cost more than the field. One path for every architecture. D is compact as it is.
 */
#include "track_eigen.cuh"
#include "track_walk.cuh"

namespace track {

template <class CELL> struct along {
	static const int LANES = 1;
	CELL cell;
	int first;

	__device__ void begin(int) { first = 0; }

	__device__ void direction(const fxi_track_view &, const float v[3], float mm[3]) const
	{
		for (int i = 0; i < 3; i++)
			mm[i] = v[i];
	}

	/* e = the principal direction at x, on the side of `side`; the largest eigenvalue. */
	__device__ float ask(const fxi_track_view &g, const int c[3], const float x[3], const float side[3], float e[3]) const
	{
		float d[1][6], value, n;

		cell.eval(g, c, x, d);
		value = principal(d[0], e);
		n = sqrtf(e[0] * e[0] + e[1] * e[1] + e[2] * e[2]); /* twelve rotations leave it 1 to a few roundings */
		n = e[0] * side[0] + e[1] * side[1] + e[2] * side[2] < 0 ? -n : n;
		for (int i = 0; i < 3; i++)
			e[i] /= n;
		return value;
	}

	template <class STATE> __device__ void look(const fxi_track_view &g, STATE &s)
	{
		float e[3], value = ask(g, s.c, s.f, s.v, e);

		for (int i = 0; i < 3; i++)
			s.v[i] = e[i];
		s.square = value > 0 && value < 1e12f && e[0] == e[0] ? 1 / value : NAN;
	}

	__device__ void to_voxels(const fxi_track_view &g, float h, const float mm[3], float out[3]) const
	{
		for (int i = 0; i < 3; i++)
			out[i] = h * (g.to_index[i][0] * mm[0] + g.to_index[i][1] * mm[1] + g.to_index[i][2] * mm[2]);
	}

	/* The direction `ahead` mm from s along `by`. */
	template <class STATE> __device__ void stage(const fxi_walk &w, STATE &s, float ahead, const float by[3], float e[3])
	{
		float x[3];

		to_voxels(w.view, ahead, by, x);
		for (int i = 0; i < 3; i++)
			x[i] += s.f[i];
		settle(w.view, s, x, cell, 0, 0);
		ask(w.view, s.c, x, s.v, e);
	}

	template <class STATE> __device__ void advance(const fxi_walk &w, STATE &s, bool moving, step *made)
	{
		const float h = w.view.step;
		float u[3] = {s.v[0], s.v[1], s.v[2]}, by[3];

		if (!moving)
			return;
		if (w.integrator == FX_INTEGRATOR_RK2) {
			stage(w, s, 0.5f * h, s.v, u);
		} else if (w.integrator == FX_INTEGRATOR_RK4) {
			float e[3] = {s.v[0], s.v[1], s.v[2]}, next[3];

			for (int i = 0; i < 3; i++)
				u[i] /= 6;
			for (int k = 0; k < 3; k++) {
				stage(w, s, (k < 2 ? 0.5f : 1) * h, e, next);
				for (int i = 0; i < 3; i++) {
					e[i] = next[i];
					u[i] += (k < 2 ? 1 / 3.0f : 1 / 6.0f) * e[i];
				}
			}
		}
		to_voxels(w.view, h, u, by);
		for (int i = 0; i < 3; i++)
			s.f[i] += by[i];
		made->length = h * sqrtf(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
		made->riemann = made->length * sqrtf(s.square);
		made->divided = 1;
	}
};

} // namespace track

using namespace track;

int fxi_walk_along(fx_math *m, const fxi_walk *w, int form)
{
	if (form == FX_TRACK_FORM_HALF)
		return launch<along<half_cell<1, 1>>, true>(m, *w);
	if (form == FX_TRACK_FORM_TEXTURE || form == FX_TRACK_FORM_TEXTURE_HALF)
		return launch<along<texture_cell<1>>, true>(m, *w);
	return launch<along<plain_cell<1, 6>>, true>(m, *w);
}

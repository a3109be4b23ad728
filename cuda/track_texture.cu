/* SPDX-License-Identifier: MIT */
/*
 * track_texture.cu - geodesics as van Aart et al. (2011) fetch them: six textures of four numbers, which the texture units interpolate with weights
 * of 8 fractional bits; a thread a fibre. Of halves, the units read the same and give single precision. One path for every architecture.
 */
#include "track_geodesic.cuh"

using namespace track;

int fxi_walk_texture(fx_math *m, const fxi_walk *w, int lanes)
{
	(void)lanes;
	return launch_geodesic<texture_cell<4>, 1>(m, w);
}

/* SPDX-License-Identifier: MIT */
/*
 * track_half.cu - geodesics through a field kept in half precision, 64 bytes a voxel, interpolated in single precision. One path for every
 * architecture.
 */
#include "track_geodesic.cuh"

using namespace track;

int fxi_walk_half(fx_math *m, const fxi_walk *w, int lanes)
{
	if (lanes == 4)
		return launch_geodesic<half_cell<1, 4>, 4>(m, w);
	return launch_geodesic<half_cell<2, 4>, 2>(m, w);
}

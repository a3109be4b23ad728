/* SPDX-License-Identifier: MIT */
/*
 * track_compact.cu - geodesics through six numbers a voxel, 24 bytes: a fibre that enters a cell takes the derivatives at its corners from the
 * 32 voxels around. One path for every architecture.
 */
#include "track_geodesic.cuh"

using namespace track;

int fxi_walk_compact(fx_math *m, const fxi_walk *w, int lanes)
{
	if (lanes == 4)
		return launch_geodesic<compact_cell<1>, 4>(m, w);
	return launch_geodesic<compact_cell<2>, 2>(m, w);
}

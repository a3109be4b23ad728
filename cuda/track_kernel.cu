/* SPDX-License-Identifier: MIT */
/*
 * track_kernel.cu - geodesics through the field as it is, in single precision, interpolated in the kernel. One path for every
 * architecture: fp32 units and shuffles.
 */
#include "track_geodesic.cuh"

using namespace track;

int fxi_walk_kernel(fx_math *m, const fxi_walk *w, int lanes)
{
	if (lanes == 4)
		return launch_geodesic<plain_cell<1, 24>, 4>(m, w);
	if (lanes == 2)
		return launch_geodesic<plain_cell<2, 24>, 2>(m, w);
	return launch_geodesic<plain_cell<4, 24>, 1>(m, w);
}

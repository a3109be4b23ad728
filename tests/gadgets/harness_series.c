/* SPDX-License-Identifier: MIT */
/* harness_series.c - diffusion series to push in. */
#include "harness.h"

#include <CUnit/CUnit.h>
#include <math.h>
#include <string.h>

fx_series_info *harness_series_info(const int64_t dims[3], const double voxel_mm[3], int64_t n, const double (*table)[4])
{
	fx_series_info *info = fx_series_info_new(n);

	CU_ASSERT_PTR_NOT_NULL_FATAL(info);
	info->lattice.has_affine = true;
	for (int i = 0; i < 3; i++) {
		info->lattice.dims[i] = dims[i];
		info->lattice.affine[i][i] = voxel_mm[i];
	}
	for (int64_t v = 0; v < n; v++) {
		double length = sqrt(table[v][1] * table[v][1] + table[v][2] * table[v][2] + table[v][3] * table[v][3]);

		info->gradients[v].b = table[v][0];
		for (int i = 0; i < 3; i++)
			info->gradients[v].dir[i] = length > 0 ? table[v][i + 1] / length : 0;
	}
	strcpy(info->origin, "a test's table");
	return info;
}

void harness_series(fx_series_info *info, const float *data, fx_msg **messages)
{
	const int64_t *dims = info->lattice.dims, voxels = dims[0] * dims[1] * dims[2];

	for (int64_t v = 0; v <= info->n_volumes; v++) {
		fx_msg *m = fx_msg_new(FX_SERIES);
		fx_series *s;

		CU_ASSERT_PTR_NOT_NULL_FATAL(m);
		s = fx_msg_series(m);
		s->info = fx_series_info_ref(info);
		s->end = v == info->n_volumes;
		s->volume = s->end ? -1 : v;
		if (!s->end) {
			CU_ASSERT_EQUAL_FATAL(fx_array_new(FX_F32, 3, dims, &s->data), FX_OK);
			memcpy(s->data->data, data + v * voxels, (size_t)voxels * sizeof *data);
		}
		messages[v] = m;
	}
}

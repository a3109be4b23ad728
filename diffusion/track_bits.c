/* SPDX-License-Identifier: MIT */
/* track_bits.c - marks each voxel that is tracked in with the regions whose voxels reach into it, in whatever space these lie. */
#include "diffusion/track_bits.h"

#include <math.h>

#include "diffusion/regions.h"

#define BITS 31                /* of targets under FX_REQUIRE_ALL; the last is the sources' */
#define SOURCE_BIT (1u << 31)
/* A voxel's neighbour in its own space only touches it: overlaps below this, well below FX_TRACK_NEAR, are the affines' rounding. */
#define TOUCH 1e-4

/* The range of voxels that half an edge on each side of a region's voxel reaches, along each axis of the lattice; false: none. */
static bool reach(const fx_lattice *l, const double half[3], const double at[3], int64_t low[3], int64_t high[3])
{
	for (int k = 0; k < 3; k++) {
		double from = ceil(at[k] - half[k] + TOUCH - 0.5), to = floor(at[k] + half[k] - TOUCH + 0.5);

		if (!(from <= (double)(l->dims[k] - 1)) || !(to >= 0))
			return false;
		low[k] = from > 0 ? (int64_t)from : 0;
		high[k] = to < (double)(l->dims[k] - 1) ? (int64_t)to : l->dims[k] - 1;
	}
	return true;
}

static void mark(uint32_t *bits, const fx_lattice *l, const int64_t low[3], const int64_t high[3], uint32_t bit)
{
	for (int64_t z = low[2]; z <= high[2]; z++)
		for (int64_t y = low[1]; y <= high[1]; y++)
			for (int64_t x = low[0]; x <= high[0]; x++)
				bits[(z * l->dims[1] + y) * l->dims[0] + x] |= bit;
}

/* Region k gets bit first << (k - 1), or all of them `first` where they share it. */
static int mark_regions(fx_math *m, const fx_lattice *l, const fx_regions *r, uint32_t first, bool share, uint32_t *bits)
{
	double to_index[3][4], half[3];
	const int64_t *n = r->lattice.dims;
	int status = fx_lattice_inverse(l, to_index, m->err);

	if (status != FX_OK)
		return status;
	for (int i = 0; i < 3; i++) { /* half the box, in the lattice's voxels, around a voxel of the region's */
		half[i] = 0;
		for (int k = 0; k < 3; k++)
			half[i] += 0.5 * fabs(to_index[i][0] * r->lattice.affine[0][k] + to_index[i][1] * r->lattice.affine[1][k] +
				to_index[i][2] * r->lattice.affine[2][k]);
	}
	for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
		double index[3] = {(double)(i % n[0]), (double)(i / n[0] % n[1]), (double)(i / (n[0] * n[1]))}, mm[3], at[3];
		int64_t low[3], high[3];

		if (r->region[i] <= 0)
			continue;
		fx_affine_apply(r->lattice.affine, index, mm);
		fx_affine_apply((const double (*)[4])to_index, mm, at);
		if (reach(l, half, at, low, high))
			mark(bits, l, low, high, share ? first : first << (r->region[i] - 1));
	}
	return FX_OK;
}

int fxi_track_bits(fx_math *m, const fx_lattice *lattice, const fx_regions *sources, const fx_regions *targets, int require,
	fx_array **out, uint32_t *any, uint32_t *all)
{
	bool each = require == FX_REQUIRE_ALL && targets->n < BITS;
	int status = fx_array_new(FX_U32, 3, lattice->dims, out);

	if (status != FX_OK)
		return fx_math_fail(m, status, "no memory for the targets' voxels");
	*any = each ? 0 : 1;
	*all = (each ? (1u << targets->n) - 1 : 0) | (sources ? SOURCE_BIT : 0);
	status = mark_regions(m, lattice, targets, 1, !each, (*out)->data);
	if (status == FX_OK && sources)
		status = mark_regions(m, lattice, sources, SOURCE_BIT, true, (*out)->data);
	return status;
}

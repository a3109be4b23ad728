/* SPDX-License-Identifier: MIT */
/* track_bits.h - regions as bits of the voxels that are tracked in: how the tracker knows which fibres `connect` can use. */
#ifndef FORNIX_DIFFUSION_TRACK_BITS_H
#define FORNIX_DIFFUSION_TRACK_BITS_H

#include <fornix/diffusion.h>

/*
 * u32 {x, y, z} (new, on the host) on `lattice`, and what fx_track_keep asks of it: a voxel has the bits of all regions that reach into it, wherever their
 * images lie. FX_REQUIRE_ALL of more than 30 targets: one bit for all of them, which keeps fibres that a bit a target would not.
 */
int fxi_track_bits(fx_math *m, const fx_lattice *lattice, const fx_regions *sources, const fx_regions *targets, int require,
	fx_array **out, uint32_t *any, uint32_t *all);

#endif

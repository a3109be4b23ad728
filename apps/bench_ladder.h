/* SPDX-License-Identifier: MIT */
/*
 * bench_ladder.h - F^H D as plain C loops, in the order in which Kirk & Hwu's chapter on Stone et al. (2008) changes them. They are
 * what `fornix bench fhd` compares the library with, and are used for nothing else.
 */
#ifndef FORNIX_APPS_BENCH_LADDER_H
#define FORNIX_APPS_BENCH_LADDER_H

#include <stdint.h>

/** Single precision, real and imaginary parts apart, as there. Voxels in voxels from the centre, k in cycles a voxel. */
typedef struct fxi_ladder {
	int64_t n_samples, n_voxels;
	float *kx, *ky, *kz, *r_phi, *i_phi, *r_d, *i_d, *r_mu, *i_mu; /* n_samples */
	float *x, *y, *z, *r_out, *i_out;                             /* n_voxels; sums start at 0 */
} fxi_ladder;

/** Fig. 17.4: Mu = conj(Phi) D inside the loop over samples, voxels innermost: every term reads and writes the sums. */
void fxi_ladder_sequential(fxi_ladder *l);
/** Loop fission: Mu of all samples first. */
void fxi_ladder_fissioned(fxi_ladder *l);
/** Loops interchanged: samples innermost, each voxel gathers its sum. */
void fxi_ladder_gather(fxi_ladder *l);
/** Likewise, voxel and sum in local variables. */
void fxi_ladder_registers(fxi_ladder *l);

#endif

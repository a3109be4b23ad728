/* SPDX-License-Identifier: MIT */
/* regions.h - how connect's files see a label image, and where a fibre is inside which region. */
#ifndef FORNIX_DIFFUSION_REGIONS_H
#define FORNIX_DIFFUSION_REGIONS_H

#include <fornix/diffusion.h>

#define FXI_REGIONS_NAME 256
#define FXI_REGIONS_MOST 65536 /* labels of an image */

struct fx_regions {
	char name[FXI_REGIONS_NAME];
	fx_lattice lattice;
	double to_index[3][4];   /* RAS mm to voxel index */
	int32_t *region;         /* {x, y, z}: 0, or 1 + place in `labels` */
	int64_t n;
	int64_t *labels;         /* ascending */
	int64_t *n_voxels;
};

/* A stretch of a fibre inside one region. Positions are vertex numbers with fractions. */
struct fxi_visit {
	double from, to;
	int32_t region;          /* as in `region` above: never 0, but for a seed that lies in none */
};

struct fxi_visits {
	int64_t n, capacity;
	struct fxi_visit *list;
};

/*
 * The visits of a fibre (points {3, n} in RAS mm, finite) in order, replacing what `out` holds. Steps are followed through every voxel
 * that they cross, so a visit begins and ends where the line meets a voxel's face, whatever the step. Touching an edge or corner is no
 * visit.
 */
int fxi_regions_visits(const fx_regions *r, const float *points, int64_t n, struct fxi_visits *out, fx_error *err);
int fxi_visits_push(struct fxi_visits *v, double from, double to, int32_t region, fx_error *err);
void fxi_visits_free(struct fxi_visits *v);

#endif

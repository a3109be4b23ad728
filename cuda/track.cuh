/* SPDX-License-Identifier: MIT */
/*
 * track.cuh - what the files of fibre tracking share: the field in the form that it is read in, where fibres start, how they are walked
 * and what comes of each half of one.
 *
 * Positions are a cell of the grid and single-precision fractions of it: exact to 6e-8 voxel wherever the cell is, without a double.
 */
#ifndef FORNIX_CUDA_TRACK_CUH
#define FORNIX_CUDA_TRACK_CUH

#include "cuda.cuh"

#include <fornix/diffusion.h>

/** Where the field lies and how far a step goes, as kernels take it. */
struct fxi_track_view {
	int dims[3], last[3];        /* the last cell along each axis; 0 where there is one voxel */
	uint32_t stride[3];          /* voxels from a cell's first corner to its second; 0 on an axis of one voxel */
	float middle[3];             /* of the fractions that are in a cell for certain: half; 0 on an axis of one voxel */
	float top[3];                /* fraction of the last cell at which the volume ends */
	float square[6];             /* A^T A: the square of a velocity in voxels is its length in mm, squared */
	float to_index[3][3];
	float step;
	double affine[3][4];
	int64_t voxels;
	const float *field;          /* {24, x, y, z}, or {6, x, y, z} of D */
	const void *packed;          /* half: 4 x 8 halves a voxel, 6 used of each 8 (D: 8); compact: 6 floats */
	cudaTextureObject_t textures[6];
	const uint8_t *mask;         /* {x, y, z}, or NULL */
	const uint8_t *corners;      /* {x, y, z}: bit c says whether corner c of the cell is in the mask; NULL: no mask */
	const float *fa, *md;
	const uint32_t *bits;        /* of fx_track_keep, or NULL */
};

/** A seed as it sets out. */
struct fxi_track_start {
	int cell[3];
	float part[3], v[3];
	int usable;                  /* inside, with a direction */
	int padding[2];
};

/** What became of one half of a fibre. */
struct fxi_track_half {
	int n;                       /* points; the second half's do not count the seed */
	int stop;
	float length, riemann, drift;
	uint32_t seen;
	int padding[2];
};

/** One launch. */
struct fxi_walk {
	fxi_track_view view;
	int64_t n_items, cap;        /* halves to walk; points that each has room for */
	const uint32_t *order;       /* seeds in the order in which they are taken, or NULL */
	const fxi_track_start *starts;
	fxi_track_half *halves;      /* {directions, seeds} */
	int directions;              /* 1 or 2 halves a seed in `halves` */
	int phase;                   /* 0: items are forward halves, 1: backward, 2: both of each seed in turn */
	int per_warp;                /* fibres that a warp walks at once */
	float4 *points;              /* {cap, halves}, or where `bases` say; NULL: only counted */
	const int64_t *bases;        /* first point of each half, or NULL */
	unsigned long long *ticket;
	int integrator;
	bool stop_mask;
	int max_steps;
	double max_length, step_mm;
	float stop_fa, stop_md, cos_angle, voxel;
	bool rules;                  /* any stop or length but mask, volume and steps, or `bits` */
};

/** What track_prepare makes. */
struct fxi_track_prepared {
	int form;
	fxi_track_view view;
	void *packed, *corners;
	cudaArray_t arrays[6];
	cudaEvent_t made;            /* behind the kernels that filled it */
};

/* track_start.cu: {n} starts, and seeds sorted by the cell that they start in. */
int fxi_track_begin(fx_math *m, const fx_track_plan *plan, const fxi_track_view *view, const float *d, const double *starts, int64_t n,
	fxi_track_start *out);
int fxi_track_sort(fx_math *m, const fxi_track_view *view, const fxi_track_start *starts, int64_t n, uint32_t *order);

/* track_collect.cu */
struct fxi_track_gather {
	int64_t n;
	int directions;
	int method;
	float min_length;
	bool keep;
	uint32_t any, all;
	const fxi_track_start *starts;
	const fxi_track_half *halves;
	int64_t *first;              /* {n + 1}: points before each seed's fibre */
	uint32_t *place;             /* {n + 1}: fibres before it */
	unsigned long long *counts;  /* {4}: outside, missed, fibres, points */
};
/** Judges every seed's fibre; fills first and place, and totals = {fibres, points, outside, missed} once the GPU is through. */
int fxi_track_judge(fx_math *m, const fxi_track_gather *g, int64_t totals[4]);
/** bases[half] of the kept fibres: where the second walk puts their points; -1: nowhere. */
int fxi_track_bases(fx_math *m, const fxi_track_gather *g, int64_t *bases);
/** The kept fibres' points, lengths, values and seeds, in order. */
int fxi_track_collect(fx_math *m, const fxi_track_gather *g, const float4 *points, int64_t cap, const int64_t *bases, fx_track_arrays *out);

/* track_geodesic_*.cu, track_along.cu: one launch with `lanes` threads a fibre; 0: as many as pay. */
int fxi_walk_kernel(fx_math *m, const fxi_walk *w, int lanes);
int fxi_walk_half(fx_math *m, const fxi_walk *w, int lanes);
int fxi_walk_compact(fx_math *m, const fxi_walk *w, int lanes);
int fxi_walk_texture(fx_math *m, const fxi_walk *w, int lanes);
int fxi_walk_along(fx_math *m, const fxi_walk *w, int form);

#endif

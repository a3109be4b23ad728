/* SPDX-License-Identifier: MIT */
/* track.h - one fibre's bookkeeping on the host: what track.c and track_lane.c share. */
#ifndef FORNIX_HOST_TRACK_H
#define FORNIX_HOST_TRACK_H

#include <fornix/backend.h>
#include <fornix/diffusion.h>
#include <stdatomic.h>

#include "kernels/track.h"

/** What became of a seed. */
typedef struct fxi_fibre {
	float *points;              /**< {4, n}: RAS mm and Riemannian length; NULL where there is no fibre to keep */
	int64_t n;
	float values[FX_N_VALUES];
} fxi_fibre;

/** What all threads share. */
typedef struct fxi_track_job {
	fx_math *m;
	const fx_track_plan *plan;
	const fx_metric_arrays *metric;
	const fx_track_keep *keep;  /**< or NULL */
	fxi_track_field field;
	const double *starts;       /**< {6, n} */
	int64_t n, n_lanes;         /**< seeds; lanes of a worker that are used */
	float cos_angle;
	fxi_fibre *fibres;          /**< n */
	_Atomic int64_t next, n_outside, n_missed;
	atomic_int status;
} fxi_track_job;

/** The fibre that a lane is on. */
typedef struct fxi_lane {
	bool active, backward;
	bool set_out;               /**< is to be put at its start once the others have made their step */
	int64_t seed, n, n_forward; /**< points kept so far, and of the first half */
	int64_t steps;              /**< of this half */
	int64_t capacity;
	float *points;              /**< {4, capacity}, the second half behind the first */
	double start[3], length, riemann; /**< of the seed; of the first half */
	double here_length, here_riemann; /**< of this half up to the last point that was kept */
	float v[3], square, drift, towards[3];
	double towards_length;      /**< where the direction was `towards` */
	int stop_end;
	uint32_t seen;              /**< bits of the voxels that it came near */
	double last[3];             /**< the last point that was kept */
} fxi_lane;

/** Puts the next seed that has a start into lane l; false where none is left. */
bool fxi_lane_load(fxi_track_job *j, fxi_lane *lane, fxi_track_lanes *s, int l);
/** Puts a lane whose `set_out` is true at its seed. */
void fxi_lane_set_out(fxi_lane *lane, fxi_track_lanes *s, int l);
/** Behind a look: keeps the point, or ends the half where a rule says so. False: the job is to be given up. */
bool fxi_lane_accept(fxi_track_job *j, fxi_lane *lane, fxi_track_lanes *s, int l);
/** Ends the half that the lane is on, for that reason. False: the job is to be given up. */
bool fxi_lane_end(fxi_track_job *j, fxi_lane *lane, int stop);

#endif

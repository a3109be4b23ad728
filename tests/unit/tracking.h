/* SPDX-License-Identifier: MIT */
/* tracking.h - what the suites of fibres share: plain metrics and steps, lattices, seeds, a run of the tracker, its points. */
#ifndef FORNIX_TESTS_TRACKING_H
#define FORNIX_TESTS_TRACKING_H

#include "fields.h"

#include <stdio.h>

static const fx_metric_spec plain = {.kind = FX_METRIC_INVERSE, .floor = 1e-3};
static const fx_track_spec steady = {.method = FX_TRACK_GEODESIC, .integrator = FX_INTEGRATOR_RK2, .step = 0.5,
	.step_in_voxels = true, .max_steps = 100};

static inline fx_lattice straight(int64_t nx, int64_t ny, int64_t nz, double mm, double x, double y, double z)
{
	double axes[3][3] = {{mm, 0, 0}, {0, mm, 0}, {0, 0, mm}}, origin[3] = {x, y, z};

	return lattice_of(nx, ny, nz, axes, origin);
}

static inline fx_array *seeds_of(int64_t n, const double *six)
{
	fx_array *a = NULL;

	if (fx_array_new2(FX_F64, 6, n, &a) != FX_OK)
		CU_FAIL_FATAL("no memory for a test's seeds");
	if (n > 0)
		memcpy(a->data, six, (size_t)n * 6 * sizeof *six);
	return a;
}

/* Tracks; the message is the caller's. */
static inline fx_msg *track(fx_math *m, fx_msg *metric, const fx_track_spec *spec, int64_t n, const double *six, int64_t *n_outside)
{
	fx_tracts_info *info = fx_tracts_info_new();
	fx_array *seeds = seeds_of(n, six);
	fx_tracker *t = NULL;
	fx_msg *out = NULL;

	if (fx_tracker_new(m, fx_msg_metric(metric), spec, &t) != FX_OK || fx_tracker_info(t, info) != FX_OK ||
		fx_tracker_run(t, info, seeds, 0, &out, n_outside) != FX_OK) {
		printf("\n%s\n", m->err->text);
		CU_FAIL_FATAL("a test could not track");
	}
	fx_tracker_free(t);
	fx_array_unref(seeds);
	fx_tracts_info_unref(info);
	return out;
}

static inline const float *points_of(fx_msg *tracts, int64_t fibre, int64_t *n)
{
	const fx_tracts *t = fx_msg_tracts(tracts);
	const uint32_t *offsets = t->offsets->data;

	*n = (int64_t)offsets[fibre + 1] - offsets[fibre];
	return FX_F32_OF(t->points) + 3 * (int64_t)offsets[fibre];
}

static inline double value_of(fx_msg *tracts, int64_t fibre, int value)
{
	return (double)FX_F32_OF(fx_msg_tracts(tracts)->values)[FX_N_VALUES * fibre + value];
}

#endif

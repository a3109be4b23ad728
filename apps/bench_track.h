/* SPDX-License-Identifier: MIT */
/* bench_track.h - the workload of `fornix bench track`, which the host's and the GPU's part share. */
#ifndef FORNIX_APPS_BENCH_TRACK_H
#define FORNIX_APPS_BENCH_TRACK_H

#include <fornix/fornix.h>

#include "apps/bench.h"

typedef struct fxi_track_options {
	int64_t matrix[3];
	int n_seeds, n_steps, n_threads, n_runs;
} fxi_track_options;

typedef struct fxi_track_bench {
	const fxi_track_options *o;
	fx_error *err;
	fx_msg *metric;
	fx_array *seeds;         /* f64 {6, n}: voxel indices, which are mm too */
	JsonBuilder *json;
} fxi_track_bench;

/** The ring field's metric and its seeds, on the host; tells and records how long the metric took. */
int fxi_track_prepare(fxi_track_bench *b);
void fxi_track_drop(fxi_track_bench *b);
/** Everything that is measured on the CUDA backend: forms, step lengths, and the throughput of many fibres. */
int fxi_track_measure_gpu(fxi_track_bench *b);
void fxi_track_put(JsonBuilder *j, const char *name, double value);
int fxi_track_ascending(const void *a, const void *b);

#endif

/* SPDX-License-Identifier: MIT */
/* cluster.h - items in order of rank into groups around leaders. */
#ifndef FORNIX_DIFFUSION_CLUSTER_H
#define FORNIX_DIFFUSION_CLUSTER_H

#include <fornix/diffusion.h>

/* Distance between items i and j; symmetric, not negative; NaN counts as far. */
typedef double (*fxi_distance_fn)(const void *arg, int64_t i, int64_t j);

/*
 * Leader clustering (Hartigan, Clustering Algorithms, 1975, ch. 3) of n items that come best first: an item joins the nearest leader
 * within `threshold`, the better one of equals, or else leads a group of its own. So leader[leader[i]] == leader[i] <= i, every group's
 * leader is its best item, and leaders lie further apart than the threshold. `distance` (may be NULL) gets each item's to its leader.
 * n times the number of leaders calls of `between`.
 */
void fxi_cluster_leaders(int64_t n, fxi_distance_fn between, const void *arg, double threshold, int64_t *leader, double *distance);

/*
 * Points {3, n} at equal arc lengths of about `spacing` along a polyline, both ends included, at most `most` (>= 2); returns how many. `out` has
 * room for `most` points.
 */
int64_t fxi_line_resample(const float *points, int64_t n, double spacing, int64_t most, float *out);

#endif

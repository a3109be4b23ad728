/* SPDX-License-Identifier: MIT */
/* metric.h - inner loops of metric_build: tensors of FXI_METRIC_LANES voxels side by side, in double. */
#ifndef FORNIX_HOST_KERNELS_METRIC_H
#define FORNIX_HOST_KERNELS_METRIC_H

#include "kernels.h"

#define FXI_METRIC_LANES 16

/** Eigenvalues (in no order) and eigenvectors: vectors[3 i + k] is component k of the i-th. */
FXI_DECLARE(void, fxi_metric_eigen, (double d[6][FXI_METRIC_LANES], double values[3][FXI_METRIC_LANES],
	double vectors[9][FXI_METRIC_LANES]));
/** sum values v v^T */
FXI_DECLARE(void, fxi_metric_compose, (double values[3][FXI_METRIC_LANES],
	double vectors[9][FXI_METRIC_LANES], double d[6][FXI_METRIC_LANES]));
/** r d r^T; r in rows */
FXI_DECLARE(void, fxi_metric_turn, (const double *r, double d[6][FXI_METRIC_LANES],
	double out[6][FXI_METRIC_LANES]));

#endif

/* SPDX-License-Identifier: MIT */
/* compare_tracts.h - `fornix compare` of two tract files. */
#ifndef FORNIX_APPS_COMPARE_TRACTS_H
#define FORNIX_APPS_COMPARE_TRACTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fxi_tracts_options {
	bool paired;          /**< fibre i of A with fibre i of B */
	bool json;
	int64_t max_fibres;   /**< of each set, whose nearest is searched; 0: all */
	double max_distance;  /**< mm; below 0: not asked for */
	int n_threads;
} fxi_tracts_options;

/** Reads, compares, prints; says why it failed. The exit status. */
int fxi_compare_tracts(const char *a, const char *b, const fxi_tracts_options *o);

#endif

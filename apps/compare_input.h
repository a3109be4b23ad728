/* SPDX-License-Identifier: MIT */
/* compare_input.h - images to compare, from NIfTI or MRD, told apart by content. */
#ifndef FORNIX_APPS_COMPARE_INPUT_H
#define FORNIX_APPS_COMPARE_INPUT_H

#include <fornix/array.h>

typedef struct fxi_compared {
	fx_array *data;      /**< real or complex {x, y, z, volumes ...}, without trailing dims of 1 beyond the third */
	bool has_affine;
	double affine[3][4]; /**< RAS mm */
} fxi_compared;

/**
 * Reads a NIfTI file, or every image of an MRD HDF5 file: slices of one orientation become the third dimension in
 * the order of their positions, further volumes (and channels) the fourth. FX_EDATA where MRD images differ in size.
 */
int fxi_compared_read(const char *path, fx_error *err, fxi_compared *out);

#endif

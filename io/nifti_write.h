/* SPDX-License-Identifier: MIT */
/* nifti_write.h - one stack of images (stack.h) as one NIfTI file. */
#ifndef FORNIX_IO_NIFTI_WRITE_H
#define FORNIX_IO_NIFTI_WRITE_H

#include "aside.h"
#include "stack.h"

/**
 * Writes header and voxels, compressed where `gz`: float32 magnitudes, or complex64 where complex_values and some image is
 * complex. Volumes are the 4th dimension and channels the 5th, or the 4th where there is one volume. NIfTI-1, or
 * NIfTI-2 where a dimension is beyond 32767. sform and qform agree (code 1, scanner), or both codes are 0.
 */
int fxi_nifti_write(fxi_aside *file, bool gz, const fxi_held_list *images, const fxi_stack *stack, bool complex_values,
	fx_error *err);

#endif

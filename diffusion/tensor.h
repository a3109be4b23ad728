/* SPDX-License-Identifier: MIT */
/* tensor.h - what the files on tensor fields share. */
#ifndef FORNIX_DIFFUSION_TENSOR_H
#define FORNIX_DIFFUSION_TENSOR_H

#include <fornix/diffusion.h>

/** FX_EINVAL, explained, unless d, mask and flags have the types and the shapes that message.h says. */
int fxi_tensors_check(fx_math *m, const fx_tensors *t);

#endif

/* SPDX-License-Identifier: MIT */
/* gpu.h - the GPUs of this machine, asked of the driver without waking one: no context, no memory taken. */
#ifndef FORNIX_SERVE_GPU_H
#define FORNIX_SERVE_GPU_H

#include "link.h"

/** *gpus has n = 0 where there is no driver or no GPU. The driver's library stays loaded. */
void fxi_gpus_find(fxi_link_gpus *gpus);

#endif

/* SPDX-License-Identifier: MIT */
/* nufft.c - inner loops of spreading and interpolation; the code is in nufft_template.h, once for each precision. */
#include "nufft.h"

#define REAL float
#define POINT fxi_point_f32
#define FN(name) FXI_NAME(FXI_JOIN(name, f32))
#include "nufft_template.h"
#undef REAL
#undef POINT
#undef FN

#define REAL double
#define POINT fxi_point_f64
#define FN(name) FXI_NAME(FXI_JOIN(name, f64))
#include "nufft_template.h"

/* SPDX-License-Identifier: MIT */
/* direct.c - inner loops of the exact sums; the code is in direct_template.h, once for each precision. */
#include "direct.h"
#include "sincos.h"

#define REAL float
#define PHASE uint32_t
#define SIGNED int32_t
#define FN(name) FXI_NAME(FXI_JOIN(name, f32))
#define SIN_COEFFICIENTS SINCOS_F32_SIN
#define COS_COEFFICIENTS SINCOS_F32_COS
#include "direct_template.h"
#undef REAL
#undef PHASE
#undef SIGNED
#undef FN
#undef SIN_COEFFICIENTS
#undef COS_COEFFICIENTS

#define REAL double
#define PHASE uint64_t
#define SIGNED int64_t
#define FN(name) FXI_NAME(FXI_JOIN(name, f64))
#define SIN_COEFFICIENTS SINCOS_F64_SIN
#define COS_COEFFICIENTS SINCOS_F64_COS
#include "direct_template.h"

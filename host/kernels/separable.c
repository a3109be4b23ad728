/* SPDX-License-Identifier: MIT */
/* separable.c - the matrix product of exact sums, and its factors; the code is in separable_template.h, once for each precision. */
#include "separable.h"
#include "sincos.h"

/* A tile of sums, and what it is made of, fill the registers: 32 of them, or 16. */
#define COLUMNS 6
#define VECTORS (VECTOR_BYTES == 64 ? 2 : 1)

#define REAL float
#define PHASE uint32_t
#define SIGNED int32_t
#define FN(name) FXI_NAME(FXI_JOIN(name, f32))
#define SIN_COEFFICIENTS SINCOS_F32_SIN
#define COS_COEFFICIENTS SINCOS_F32_COS
#include "separable_template.h"
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
#include "separable_template.h"

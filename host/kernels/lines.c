/* SPDX-License-Identifier: MIT */
/* lines.c - gather and scatter of blocks of lines; the code is in lines_template.h, once for each precision. */
#include "lines.h"

#include <string.h>

#define REAL float
#define COMPLEX fx_cf32
#define FN(name) FXI_NAME(FXI_JOIN(name, f32))
#include "lines_template.h"
#undef REAL
#undef COMPLEX
#undef FN

#define REAL double
#define COMPLEX fx_cf64
#define FN(name) FXI_NAME(FXI_JOIN(name, f64))
#include "lines_template.h"

/* SPDX-License-Identifier: MIT */
/*
 * kernels.h - inner loops that are compiled once per instruction-set level (cmake/FornixFlags.cmake).
 *
 * A kernel file defines functions named FXI_NAME(fn), which FXI_ISA turns into fn_base, fn_v3, fn_v4. Outside,
 * FXI_PICK(fn) gives the best of them for this processor.
 */
#ifndef FORNIX_HOST_KERNELS_H
#define FORNIX_HOST_KERNELS_H

#include <fornix/base.h>

#define FXI_JOIN_(a, b) a##_##b
#define FXI_JOIN(a, b) FXI_JOIN_(a, b)
#define FXI_NAME(fn) FXI_JOIN(fn, FXI_ISA)

#ifdef FXI_ISA /* inside a kernel: the prototype of the variant that is being compiled */
#define FXI_DECLARE(ret, fn, args) ret FXI_NAME(fn) args
#elif defined FXI_HAVE_X86_LEVELS
#define FXI_PICK(fn) (fxi_isa_level() >= 4 ? fn##_v4 : fxi_isa_level() >= 3 ? fn##_v3 : fn##_base)
#define FXI_DECLARE(ret, fn, args) ret fn##_base args; ret fn##_v3 args; ret fn##_v4 args
#else
#define FXI_PICK(fn) (fn##_base)
#define FXI_DECLARE(ret, fn, args) ret fn##_base args
#endif

/** 4 with AVX-512 (F, BW, CD, DQ, VL), 3 with AVX2 and FMA, else 1. FORNIX_ISA=1|3|4 in the environment lowers it. */
int fxi_isa_level(void);

#endif

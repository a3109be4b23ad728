/* SPDX-License-Identifier: MIT */
/* lanes.h - a vector of floats as wide as the instruction set that the kernel is compiled for, and its shuffles. */
#ifndef FORNIX_HOST_KERNELS_LANES_H
#define FORNIX_HOST_KERNELS_LANES_H

#if defined __AVX512F__
#define LANES 16
#define LANES_LOG2 4
#define LANES_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LANES_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LANES_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define LANES_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif defined __AVX__
#define LANES 8
#define LANES_LOG2 3
#define LANES_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define LANES_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#define LANES_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define LANES_ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define LANES 4
#define LANES_LOG2 2
#define LANES_LOW 0, 4, 1, 5
#define LANES_HIGH 2, 6, 3, 7
#define LANES_EVEN 0, 2, 4, 6
#define LANES_ODD 1, 3, 5, 7
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), may_alias));
/** The same at any float's address. */
typedef float lanes_at __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define AT(p) (*(lanes *)(p))
#define CONST_AT(p) (*(const lanes *)(p))

/** Interleaves the lower (upper) halves of two vectors: a0 b0 a1 b1 ... */
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, LANES_LOW)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, LANES_HIGH)
/** The even (odd) elements of two vectors that follow each other in memory. */
#define PICK_EVEN(a, b) __builtin_shufflevector(a, b, LANES_EVEN)
#define PICK_ODD(a, b) __builtin_shufflevector(a, b, LANES_ODD)

/** Floats of one element of LANES lines: real parts, then imaginary ones. */
#define COLUMN (2 * LANES)

/** One complex number a lane. */
typedef struct column {
	lanes re, im;
} column;

static inline __attribute__((always_inline)) column times(column a, float re, float im)
{
	return (column){a.re * re - a.im * im, a.re * im + a.im * re};
}

static inline __attribute__((always_inline)) column plus(column a, column b)
{
	return (column){a.re + b.re, a.im + b.im};
}

static inline __attribute__((always_inline)) column minus(column a, column b)
{
	return (column){a.re - b.re, a.im - b.im};
}

/** -i a */
static inline __attribute__((always_inline)) column turned(column a)
{
	return (column){a.im, -a.re};
}

#endif

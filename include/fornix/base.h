/* SPDX-License-Identifier: MIT */
/*
 * base.h - what every other header needs: status codes, the error slot,
 * complex numbers, checked sizes.
 */
#ifndef FORNIX_BASE_H
#define FORNIX_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Plugins and backends built for another number are refused when loaded. */
#define FX_ABI 3u

#define FX_EXPORT __attribute__((visibility("default")))
#define FX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/** Complex samples: real part first, as in MRD, FFTW and BLAS. */
#ifdef __cplusplus
typedef struct fx_cf32 { float re, im; } fx_cf32;
typedef struct fx_cf64 { double re, im; } fx_cf64;
#else
typedef float _Complex fx_cf32;
typedef double _Complex fx_cf64;
/* C11's CMPLXF and CMPLX, which glibc keeps from clang: re + i im without a product, so infinities stay where they are. */
#define FX_CF32(re, im) __builtin_complex((float)(re), (float)(im))
#define FX_CF64(re, im) __builtin_complex((double)(re), (double)(im))
#endif

/** What a fallible function returns. Negative means failure. */
enum fx_status {
	FX_OK = 0,
	FX_ENOMEM = -1,    /**< memory that the input asked for could not be had */
	FX_EINVAL = -2,    /**< a property, an argument or a pipeline is wrong */
	FX_EDATA = -3,     /**< the input's content is wrong or damaged */
	FX_EIO = -4,       /**< a file, socket or device failed */
	FX_ENOTSUP = -5,   /**< right, but not something this build or backend can do */
	FX_ECANCELED = -6  /**< stopped from outside: Ctrl-C, or another gadget failed first */
};

/** A static English word for a status, such as "bad data". Never NULL. */
FX_EXPORT const char *fx_status_text(int status);

#define FX_ERROR_TEXT 1024

/** Where a failure is explained. The first explanation stays; later ones are ignored. */
typedef struct fx_error {
	int status;               /**< FX_OK while nothing failed */
	char text[FX_ERROR_TEXT]; /**< one sentence that says what, where, and the way out */
} fx_error;

/**
 * Records a failure and returns `status`, so that `return fx_error_set(...)` reads well.
 * `err` may be NULL (the text is dropped). Keeps an explanation that is already there.
 */
FX_EXPORT int fx_error_set(fx_error *err, int status, const char *fmt, ...) FX_PRINTF(3, 4);
FX_EXPORT int fx_error_setv(fx_error *err, int status, const char *fmt, va_list args) FX_PRINTF(3, 0);

/** a * b into *out; false (and *out untouched) when negative or beyond int64. */
FX_EXPORT bool fx_mul_size(int64_t a, int64_t b, int64_t *out);

/**
 * Zeroed memory for `count` elements of `size` bytes, aligned to 64 bytes.
 * Returns NULL when the product overflows or memory is short: for sizes that come from input.
 * Release with fx_free.
 */
FX_EXPORT void *fx_alloc(int64_t count, size_t size);
FX_EXPORT void fx_free(void *memory);

/** Bytes this process may still take (physical memory free now, or the limit of its cgroup or its own, RLIMIT_DATA, if lower). */
FX_EXPORT int64_t fx_memory_available_bytes(void);

#ifdef __cplusplus
}
#endif
#endif

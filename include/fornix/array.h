/* SPDX-License-Identifier: MIT */
/*
 * array.h - refcounted, contiguous, typed arrays that know where they live.
 *
 * Dimensions are listed fastest first, as MRD and Fortran do: an image of nx x ny x nz voxels
 * and nc coils is {nx, ny, nz, nc}.
 */
#ifndef FORNIX_ARRAY_H
#define FORNIX_ARRAY_H

#include <fornix/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_MAX_DIMS 8

enum fx_type {
	FX_U8 = 1, FX_I16, FX_U16, FX_I32, FX_U32, FX_F32, FX_F64, FX_CF32, FX_CF64
};

enum fx_place { FX_HOST = 1, FX_DEVICE = 2 };

/** Bytes of one element; 0 for an unknown type. */
FX_EXPORT size_t fx_type_size(int type);
/** "cf32" and the like; "?" for an unknown type. */
FX_EXPORT const char *fx_type_name(int type);

/**
 * Read the fields freely; only array.c writes them. Elements may be written to while `refs` is
 * one, that is by whoever holds the only reference: fx_array_own gives such an array.
 */
typedef struct fx_array {
	int refs;                  /**< atomic */
	int type;                  /**< enum fx_type */
	int place;                 /**< enum fx_place */
	int device;                /**< device number where place is FX_DEVICE */
	int n_dims;
	int64_t dims[FX_MAX_DIMS]; /**< fastest first; dims beyond n_dims are 1 */
	int64_t n;                 /**< number of elements, may be 0 */
	int64_t bytes;
	void *data;                /**< 64-byte aligned; NULL only when n is 0 */
	void *event;               /**< device: what to wait for before reading; NULL on the host */
	void (*release)(struct fx_array *); /**< how `data` is freed */
} fx_array;

/** A zeroed host array. Fails with FX_ENOMEM (overflow or short memory) or FX_EINVAL (bad dims). */
FX_EXPORT int fx_array_new(int type, int n_dims, const int64_t *dims, fx_array **out);
/**
 * An array whose memory somebody else manages (a backend's): shape and place are set, `data` and `event` are NULL and the
 * caller's to set; `release` gets it when the last reference goes.
 */
FX_EXPORT int fx_array_wrap(int type, int n_dims, const int64_t *dims, int place, int device,
	void (*release)(struct fx_array *), fx_array **out);
/** Shorthands; a dim of 1 is kept, n_dims is the number in the name. */
FX_EXPORT int fx_array_new1(int type, int64_t d0, fx_array **out);
FX_EXPORT int fx_array_new2(int type, int64_t d0, int64_t d1, fx_array **out);
FX_EXPORT int fx_array_new4(int type, int64_t d0, int64_t d1, int64_t d2, int64_t d3, fx_array **out);

/** One more reference, to share. NULL gives NULL. */
FX_EXPORT fx_array *fx_array_ref(fx_array *a);
/** Drops a reference. NULL is fine. */
FX_EXPORT void fx_array_unref(fx_array *a);
/** Makes *a writable: copies it, and drops the shared one, where others hold it too. */
FX_EXPORT int fx_array_own(fx_array **a);
/** A copy with elements converted to `type` (real<->real, complex<->complex, real->complex). */
FX_EXPORT int fx_array_convert(const fx_array *a, int type, fx_array **out);
/** True where type and all dims are the same. */
FX_EXPORT bool fx_array_same_shape(const fx_array *a, const fx_array *b);

#define FX_F32_OF(a) ((float *)(a)->data)
#define FX_F64_OF(a) ((double *)(a)->data)
#define FX_CF32_OF(a) ((fx_cf32 *)(a)->data)
#define FX_CF64_OF(a) ((fx_cf64 *)(a)->data)

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: MIT */
/*
 * stack.h - sorts images into volumes and series: what a NIfTI file or a mosaic needs to know of them.
 *
 * Images of one series, type, matrix, channel count, field of view and orientation make a stack. Two-dimensional ones
 * become slices, ordered by their positions along the slice normal; images with a third dimension are volumes as they are.
 * Everything else that differs becomes a further volume, ordered by repetition, phase, set, contrast and average
 * (the first the slowest), then by arrival.
 */
#ifndef FORNIX_IO_STACK_H
#define FORNIX_IO_STACK_H

#include <fornix/message.h>

/** An image kept for later: its header, and its data shared. */
typedef struct fxi_held {
	ISMRMRD_ImageHeader head;
	fx_array *data;   /**< {x, y, z, channels} on the host */
} fxi_held;

typedef struct fxi_held_list {
	int64_t n, room;
	fxi_held *list;
} fxi_held_list;

/** Keeps an image. FX_EINVAL where its data are not on the host or do not match its header, or not of a type that MRD knows. */
int fxi_held_add(fxi_held_list *l, const fx_image *image, fx_error *err);
void fxi_held_clear(fxi_held_list *l);

typedef struct fxi_stack {
	int64_t matrix[3];         /**< x, y and slices */
	int64_t n_volumes, n_channels;
	bool three_d;              /**< each image is a whole volume */
	bool has_geometry;         /**< axes and origin are meant; else they are LPS's own */
	double voxel_mm[3];        /**< 1 where unknown; along slices their distance */
	double axes[3][3];         /**< unit vectors of x, y and slice, LPS */
	double origin[3];          /**< LPS mm, centre of voxel (0, 0, 0) */
	int64_t *images;           /**< [volume * slices + slice]: index of the image, -1 where there is none */
	int64_t n_missing;
} fxi_stack;

/**
 * Makes stacks, in order of their first image, of the images in `l`. What a user should know (geometry that is missing,
 * slices that are unevenly spaced or missing) goes to `warn`, which may be NULL; `name` is the product's, for that.
 */
int fxi_stacks_build(const fxi_held_list *l, const char *name, void (*warn)(void *arg, const char *text), void *warn_arg,
	fx_error *err, fxi_stack **out, int64_t *n_stacks);
void fxi_stacks_free(fxi_stack *stacks, int64_t n_stacks);

/** Values of the plane `slice` of volume `volume` and channel `channel`: x*y floats, magnitudes where complex; 0 where missing. */
void fxi_stack_plane(const fxi_held_list *l, const fxi_stack *s, int64_t volume, int64_t slice, int64_t channel,
	float *out);
/** The same as complex numbers. */
void fxi_stack_plane_complex(const fxi_held_list *l, const fxi_stack *s, int64_t volume, int64_t slice, int64_t channel,
	fx_cf32 *out);
/** True where some image of the stack is complex. */
bool fxi_stack_is_complex(const fxi_held_list *l, const fxi_stack *s);

#endif

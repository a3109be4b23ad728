/* SPDX-License-Identifier: MIT */
/* gather.h - what the parts of a series' gathering share: images kept until their volume is whole, and where they go. */
#ifndef FORNIX_DIFFUSION_GATHER_H
#define FORNIX_DIFFUSION_GATHER_H

#include <fornix/diffusion.h>

/* Single-precision positions a metre off centre round to 6e-5 mm; no two slices are as near as this. */
#define FXI_SAME_MM 0.01

/** An image kept until its volume is whole. */
typedef struct fxi_gathered {
	ISMRMRD_ImageHeader head;
	fx_array *data;                                /* as it came, shared */
	int64_t counters[FX_N_DIFFUSION_DIMENSIONS];   /* -1: the image does not tell */
	int64_t shots;                                 /* excitations; 0: the image does not tell */
	bool partial;                                  /* cut short */
	bool placed;                                   /* along is a position, not a number */
	double along;                                  /* mm along the slice normal, or the slice number */
	double across[2];                              /* mm along the read and phase direction */
	int64_t volume;                                /* index into the table; -1: not known yet */
	int64_t slice;                                 /* index into the lattice, once that is known */
} fxi_gathered;

typedef struct fxi_gathered_list {
	int64_t n, room;
	fxi_gathered *list;
} fxi_gathered_list;

/** Keeps what matters of an image. FX_EDATA where it has several channels or its header and data disagree, FX_ENOMEM. */
int fxi_gathered_add(fxi_gathered_list *l, const fx_image *image, const fx_header *scan, fx_error *err);
/** Drops the entries of a volume (-1: all). */
void fxi_gathered_drop(fxi_gathered_list *l, int64_t volume);
void fxi_gathered_clear(fxi_gathered_list *l);

/**
 * The counter whose values tell the volumes of a table of n apart, and each entry's volume by it: in order of the values.
 * FX_EDATA, listing the counts, where none fits, or several that disagree. `how` says what was found.
 */
int fxi_gather_find_counter(fxi_gathered_list *l, int64_t n, int *dimension, char *how, size_t size, fx_error *err);

/** Positions of the slices, ascending. */
typedef struct fxi_slices {
	int64_t n;
	double *along;
	bool placed;
	double across[2];
	double axes[3][3];
} fxi_slices;

/**
 * The lattice of the entries of one volume (-1: of all of them). FX_EDATA where slices are unevenly spaced, shifted
 * or of several orientations. Entries without usable positions are ordered by number. Release slices->along with fx_free.
 */
int fxi_gather_lattice(fxi_gathered_list *l, int64_t volume, fxi_slices *slices, fx_lattice *out, fx_error *err);
/** Which slice an entry is, into entry->slice. FX_EDATA where it is none of them. */
int fxi_gather_slice(const fxi_slices *slices, const fx_lattice *lattice, fxi_gathered *entry, fx_error *err);

#endif

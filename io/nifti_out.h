/* SPDX-License-Identifier: MIT */
/* nifti_out.h - the parts of writing a NIfTI file: bytes, compressed or not, and the header of either version. */
#ifndef FORNIX_IO_NIFTI_OUT_H
#define FORNIX_IO_NIFTI_OUT_H

#include <fornix/message.h>
#include <zlib.h>

#include "aside.h"

typedef struct fxi_nifti_out {
	fxi_aside *file;        /**< borrowed */
	bool gz;
	z_stream z;
	unsigned char *buffer;
} fxi_nifti_out;

int fxi_nifti_out_open(fxi_nifti_out *o, fxi_aside *file, bool gz, fx_error *err);
int fxi_nifti_out_write(fxi_nifti_out *o, const void *data, size_t bytes, fx_error *err);
/** What the compression still holds back. */
int fxi_nifti_out_finish(fxi_nifti_out *o, fx_error *err);
/** Frees what it uses; also after a failed open. */
void fxi_nifti_out_close(fxi_nifti_out *o);

/** What both versions of the header hold, in NIfTI's own terms. Start it from fxi_nifti_facts_new. */
typedef struct fxi_nifti_facts {
	int64_t dim[8];
	double pixdim[8];
	int sform, qform;        /**< codes */
	double srow[3][4], quatern[3], offset[3];
	int datatype, bitpix, intent;
	double intent_p1, cal_min, cal_max;
	const char *description; /**< NULL: the program's name */
	const char *comment;     /**< text of a header extension, or NULL; at most 1 GiB */
} fxi_nifti_facts;

/** Of one voxel, without geometry. */
fxi_nifti_facts fxi_nifti_facts_new(int datatype, int bitpix);
/**
 * Voxel sizes, and where the lattice has an affine sform and, unless it shears, the
 * same qform; codes 1 (scanner).
 */
void fxi_nifti_geometry(fxi_nifti_facts *f, const fx_lattice *l);
/** Header and extension: NIfTI-1, or NIfTI-2 where a dimension is beyond 32767. */
int fxi_nifti_header_write(fxi_nifti_out *o, const fxi_nifti_facts *f, fx_error *err);

#endif

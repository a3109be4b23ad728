/* SPDX-License-Identifier: MIT */
/* nifti_read.h - images from files: NIfTI of any flavour, and MRD HDF5 images. */
#ifndef FORNIX_IO_NIFTI_READ_H
#define FORNIX_IO_NIFTI_READ_H

#include <fornix/message.h>

/** What stands beside the voxels of a NIfTI file. */
typedef struct fxi_nifti_info {
	double affine[3][4];     /**< voxel index to RAS millimetres; meaningful where has_affine */
	bool has_affine;         /**< sform, else qform; else false, and affine is diag(pixdim) */
	int sform_code, qform_code, intent;
	int n_dims;              /**< as the file has it, 1 to 7 */
	int type;                /**< what the voxels become by themselves: FX_F32, FX_F64 or FX_CF32 */
	int64_t dims[7];         /**< 1 beyond the file's own */
	double pixdim[7];        /**< mm, then the file's own units */
	char description[80];
} fxi_nifti_info;

/**
 * Reads NIfTI-1 or -2, .nii or .nii.gz, any byte order, with scl_slope and scl_inter applied. *data (new) has the file's
 * dims without trailing ones (at least 3): cf32 for complex files, f64 for float64 and for integers of 32 and 64 bits,
 * f32 otherwise. FX_EIO, FX_EDATA or FX_ENOMEM (with the bytes it would take) with a sentence.
 */
int fxi_nifti_read(const char *path, fx_error *err, fx_array **data, fxi_nifti_info *info);

/** The same piece by piece, for files that need not be in memory whole. */
typedef struct fxi_nifti fxi_nifti;
int fxi_nifti_open(const char *path, fx_error *err, fxi_nifti **out, fxi_nifti_info *info);
/**
 * The next out->n voxels, into an array of the file's own type, or f32 for any real one. Reading the last ones also sees
 * whether a compressed file is whole.
 */
int fxi_nifti_next(fxi_nifti *f, fx_array *out, fx_error *err);
void fxi_nifti_close(fxi_nifti *f);

/** Images of an MRD HDF5 file: n messages of kind FX_IMAGE, by series number, then as they are stored. */
typedef struct fxi_images {
	int64_t n;
	fx_msg **list;
} fxi_images;

/** Reads every image of `group` (NULL: the only group that holds image series). Free with fxi_images_free. */
int fxi_mrd_images_read(const char *path, const char *group, fx_error *err, fxi_images *out);
void fxi_images_free(fxi_images *images);

#endif

/* SPDX-License-Identifier: MIT */
/* nifti_source.h - a diffusion series or a tensor image in NIfTI as the input of a run. */
#ifndef FORNIX_IO_NIFTI_SOURCE_H
#define FORNIX_IO_NIFTI_SOURCE_H

#include "../stream/source.h"

/** What a NIfTI file does not say of itself. Each as the user wrote it; NULL where not given. */
typedef struct fxi_nifti_options {
	const char *bval, *bvec;   /**< FSL's two tables */
	const char *grad;          /**< or MRtrix's one of four columns */
	const char *tensor_order;  /**< "nifti", "mrtrix", "fsl": what a 4-D file of six volumes needs to be taken as tensors */
	const char *tensor_frame;  /**< "ras", "image", "fsl"; NULL: what programs of that order write */
	const char *tensor_unit;   /**< "um2/ms", "mm2/s"; NULL or "auto": told from the values */
} fxi_nifti_options;

/**
 * Opens a NIfTI file of any flavour as FX_SERIES items, a volume each and then the end mark, read one at a time; or as one
 * FX_TENSORS message. A series without tables in the options takes STEM.bval and STEM.bvec beside it, and says so in the
 * source's note. FX_EDATA where lengths disagree (both files and counts) or the file is no series and no tensor image;
 * FX_EINVAL where options are missing, contradict or mean nothing.
 */
int fxi_nifti_source_open(const char *path, const fxi_nifti_options *options, fx_error *err, fxi_source **out);

/**
 * The gradient table of a series of `info->n_volumes` volumes in file `path`, from the files that the options name or, failing
 * those, from beside it; fills gradients and origin of `info` (its lattice is set). *note (new, free()) is what the user should know, or NULL.
 */
int fxi_nifti_gradients(const char *path, const fxi_nifti_options *options, fx_series_info *info, fx_error *err, char **note);
/** True where such a table was named or lies beside the file. */
bool fxi_nifti_has_gradients(const char *path, const fxi_nifti_options *options);
/** What stands behind the last slash. */
const char *fxi_file_name(const char *path);

#endif

/* SPDX-License-Identifier: MIT */
/* run_input.h - what `fornix run` is told of its input, and how that reaches the source or the pipeline. */
#ifndef FORNIX_APPS_RUN_INPUT_H
#define FORNIX_APPS_RUN_INPUT_H

#include "apps/common.h"
#include "io/nifti_source.h"

/**
 * Opens the input where it is a NIfTI file, whose kind the pipeline has to know before it is loaded; else *out is NULL
 * (raw data wait until the pipeline was found right). FX_EINVAL for options that the input has no use for.
 */
int fxi_run_open_nifti(const char *path, const char *group, const fxi_nifti_options *options, fx_error *err, fxi_source **out);
/**
 * The --set texts of a run, and for raw data those of the gradient table's files, for the gadget that sorts images into a
 * series. Free with g_strfreev.
 */
char **fxi_run_assignments(char *const *assignments, const fxi_nifti_options *options, bool raw);

#endif

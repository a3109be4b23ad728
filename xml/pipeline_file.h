/* SPDX-License-Identifier: MIT */
/* pipeline_file.h - native pipeline files: an element is a gadget, an attribute is a property. */
#ifndef FORNIX_XML_PIPELINE_FILE_H
#define FORNIX_XML_PIPELINE_FILE_H

#include "stream/pipeline.h"

#define FXI_PIPELINE_NAMESPACE "urn:fornix:pipeline:1"

/**
 * Reads a pipeline file. Names and values are taken as they stand, with their lines; whether such gadgets and
 * properties exist is the chain's to say. The comment in front of the first gadget becomes the description.
 * Free *out with fxi_pipeline_free. FX_EIO where the file cannot be read, FX_EINVAL (file and line in the text)
 * where it is no pipeline, FX_ENOTSUP for Gadgetron's forms, FX_ENOMEM.
 */
int fxi_pipeline_load(const char *path, fx_error *err, fxi_pipeline **out);

/** The same from memory; `file` is for messages, `folder` the base of relative paths in properties. */
int fxi_pipeline_parse(const char *text, size_t size, const char *file, const char *folder, fx_error *err,
	fxi_pipeline **out);

#endif

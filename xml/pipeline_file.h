/* SPDX-License-Identifier: MIT */
/*
 * pipeline_file.h - pipeline files: the native form, in which an element is a gadget and an attribute a property; and Gadgetron's
 * two, which gadgetron.h translates.
 */
#ifndef FORNIX_XML_PIPELINE_FILE_H
#define FORNIX_XML_PIPELINE_FILE_H

#include "stream/pipeline.h"

struct fxi_gadgetron;

#define FXI_PIPELINE_NAMESPACE "urn:fornix:pipeline:1"

/**
 * Reads a pipeline file. Names and values are taken as they stand, with their lines; whether such gadgets and
 * properties exist is the chain's to say. The comment in front of the first gadget becomes the description.
 * Free *out with fxi_pipeline_free. FX_EIO where the file cannot be read, FX_EINVAL (file and line in the text)
 * where it is no pipeline or names what does not exist, FX_ENOTSUP where a Gadgetron configuration needs what Fornix has not,
 * FX_ENOMEM.
 */
int fxi_pipeline_load(const char *path, fx_error *err, fxi_pipeline **out);

/** The same; *report (the caller's, fxi_gadgetron_free) tells of a Gadgetron configuration's elements, also on failure; else NULL. */
int fxi_pipeline_load_telling(const char *path, fx_error *err, struct fxi_gadgetron **report, fxi_pipeline **out);

/** The same from memory; `file` is for messages, `folder` the base of relative paths in properties. */
int fxi_pipeline_parse(const char *text, size_t size, const char *file, const char *folder, fx_error *err,
	fxi_pipeline **out);

#endif

/* SPDX-License-Identifier: MIT */
/* pipeline.h - a pipeline as it was written: names and texts with their places, before any plugin is looked at. */
#ifndef FORNIX_STREAM_PIPELINE_H
#define FORNIX_STREAM_PIPELINE_H

#include <fornix/base.h>

typedef struct fxi_setting {
	char *name, *value;
	int line;              /**< 0 where it came from --set */
} fxi_setting;

typedef struct fxi_stage {
	char *gadget;          /**< element name */
	int line;
	int64_t n_settings;
	fxi_setting *settings;
} fxi_stage;

typedef struct fxi_pipeline {
	char *file;            /**< as the user named it, for messages */
	char *folder;          /**< base of relative paths in properties */
	char *summary;         /**< or NULL */
	char *description;     /**< the opening comment, or NULL */
	int64_t n_stages;
	fxi_stage *stages;
} fxi_pipeline;

/** An empty pipeline of that file and folder (copied; folder may be NULL). NULL when memory is short, as below. */
fxi_pipeline *fxi_pipeline_new(const char *file, const char *folder);
void fxi_pipeline_free(fxi_pipeline *p);
/** Appends a stage; valid until the next one is added. */
fxi_stage *fxi_pipeline_add(fxi_pipeline *p, const char *gadget, int line);
fxi_setting *fxi_stage_add(fxi_stage *stage, const char *name, const char *value, int line);

/**
 * Applies "GADGET.PROPERTY=VALUE". GADGET is a name, or NAME#2 for the second of that name: a bare name that is there
 * twice is refused. Whether the gadget has the property is seen when the chain is loaded.
 */
int fxi_pipeline_set(fxi_pipeline *p, const char *assignment, fx_error *err);

#endif

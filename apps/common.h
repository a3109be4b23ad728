/* SPDX-License-Identifier: MIT */
/* common.h - what the verbs share: options, messages, gadgets and pipelines by name. */
#ifndef FORNIX_APPS_COMMON_H
#define FORNIX_APPS_COMMON_H

#include <fornix/message.h>
#include <glib.h>

#include "apps/apps.h"
#include "stream/chain.h"
#include "stream/pipeline.h"
#include "stream/registry.h"

/** What a scan consists of, and so what a pipeline starts from. */
#define FXI_SCAN_KINDS ((unsigned)FX_ACQUISITION | (unsigned)FX_WAVEFORM | (unsigned)FX_TEXT)

/**
 * Parses a verb's options and sees that between `least` and `most` arguments remain (argv[1] is the first). `usage` is
 * what stands behind "fornix VERB", `summary` what it does. On a wrong call it has said why, and returns false. Prints
 * help and ends the program for --help. Texts of options are freed with g_free.
 */
bool fxi_apps_options(const char *usage, const char *summary, const GOptionEntry *entries, int least, int most,
	int *argc, char ***argv);

/** "fornix: " and the text, on stderr. */
void fxi_apps_say(const char *fmt, ...) FX_PRINTF(1, 2);

/** The shipped gadgets and those in the folders of FORNIX_GADGET_PATH (separated by colons). Says why it failed. */
int fxi_apps_registry(fxi_registry **out);

/** Names of the shipped pipelines, sorted; free with g_strfreev. */
char **fxi_apps_pipeline_names(void);
/**
 * Loads a pipeline by path (with a slash or ending in .xml) or by a shipped one's name, and applies assignments
 * (GADGET.PROPERTY=VALUE, ends with NULL; NULL for none). Explains itself in *err, with the nearest name where there is one.
 */
int fxi_apps_pipeline(const char *name, char *const *assignments, fx_error *err, fxi_pipeline **out);
/**
 * The chain of a pipeline whose input is not known: of a scan, or, where its first gadget wants that, of images, a diffusion
 * series or a tensor image. *kinds is what it starts from. Where none of them will do, *err says what is wrong with a scan.
 */
int fxi_apps_chain(const fxi_pipeline *pipeline, fxi_registry *registry, fx_error *err, fxi_chain **out, unsigned *kinds);

#endif

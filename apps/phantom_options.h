/* SPDX-License-Identifier: MIT */
/* phantom_options.h - the command line of `fornix phantom`. */
#ifndef FORNIX_APPS_PHANTOM_OPTIONS_H
#define FORNIX_APPS_PHANTOM_OPTIONS_H

#include <glib.h>

#include "apps/phantom.h"
#include "apps/phantom_dwi.h"

/** Texts as GLib's option parser leaves them; freed by fxi_phantom_options_clear. */
typedef struct fxi_phantom_options {
	char *output, *truth, *trajectory, *matrix, *fov, *oblique, *position, *unit, *partial, *delay, *field_map;
	char **shapes;
	int coils, acceleration, readouts, samples, repetitions, averages, slices, noise_readouts, columns, threads;
	double noise, correlation, gain_spread, dwell, noise_dwell, noise_bandwidth, oversampling, echo, spacing, te;
	gint64 seed;
	gboolean golden, full_turn, interleaved, stream, no_truth, no_flags, no_limits, attach, detach;
	fxi_phantom_dwi_options dwi;
} fxi_phantom_options;

/** The defaults; texts are NULL where nothing was said. */
fxi_phantom_options fxi_phantom_defaults(void);
/** Entries that fill `o`, for fxi_apps_options; free with g_free. */
GOptionEntry *fxi_phantom_entries(fxi_phantom_options *o);
void fxi_phantom_options_clear(fxi_phantom_options *o);
/** Turns words and lists into a job (fxi_phantom_prepare is still to come). FX_EINVAL names the option. */
int fxi_phantom_read_options(const fxi_phantom_options *o, const char *kind, fx_error *err, fxi_phantom_job *job);

#endif

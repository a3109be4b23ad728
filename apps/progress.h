/* SPDX-License-Identifier: MIT */
/* progress.h - lines and one progress bar on standard error, from any thread, without one tearing the other. */
#ifndef FORNIX_APPS_PROGRESS_H
#define FORNIX_APPS_PROGRESS_H

#include <fornix/base.h>
#include <pthread.h>

typedef struct fxi_progress {
	pthread_mutex_t lock;
	bool bar;          /**< standard error is a terminal that wants one */
	bool shown;        /**< the bar stands on the current line */
	double start_s, drawn_s;
} fxi_progress;

/** `bar` asks for a bar where standard error is a terminal. */
void fxi_progress_start(fxi_progress *p, bool bar);
/** fraction in 0..1, negative where unknown; drawn at most ten times a second. */
void fxi_progress_update(fxi_progress *p, double fraction, int64_t n_messages);
/** Prints a whole line; the bar makes room for it. */
void fxi_progress_line(fxi_progress *p, const char *fmt, ...) FX_PRINTF(2, 3);
/** Takes the bar away. */
void fxi_progress_end(fxi_progress *p);
/** Seconds since start. */
double fxi_progress_seconds(const fxi_progress *p);
/** True where standard error is a terminal. */
bool fxi_progress_on_terminal(void);

#endif

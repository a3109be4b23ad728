/* SPDX-License-Identifier: MIT */
/* send.h - the parts of `fornix send`: what comes back (send_receive.c) and how long it took (send_stats.c). */
#ifndef FORNIX_APPS_SEND_H
#define FORNIX_APPS_SEND_H

#include "apps/common.h"
#include "apps/progress.h"
#include "io/wire.h"
#include "stream/services.h"

#include <pthread.h>
#include <stdatomic.h>

/** When readouts went out and images came in. Any thread. */
typedef struct fxi_send_stats fxi_send_stats;

fxi_send_stats *fxi_send_stats_new(void);
void fxi_send_stats_free(fxi_send_stats *s);
/** A readout that was just sent. */
void fxi_send_stats_sent(fxi_send_stats *s, const ISMRMRD_AcquisitionHeader *head);
/**
 * An image that was just received: its latency is from the last readout sent of its slice, contrast, phase, repetition and set; where none has
 * these counters, from the last readout sent at all.
 */
void fxi_send_stats_received(fxi_send_stats *s, const ISMRMRD_ImageHeader *head);
int64_t fxi_send_stats_images(fxi_send_stats *s);

typedef struct fxi_send {
	fxi_wire_in *in;
	fxi_wire_out *out;
	int fd;
	fxi_files *files;      /* where images are written; NULL: not kept */
	const char *name;      /* of the product */
	bool quiet, query;     /* query: answers go to standard output */
	fxi_progress progress;
	fxi_send_stats *stats;

	/* by the receiving thread, read when it has ended */
	pthread_t thread;
	atomic_bool closed;    /* the server's close message came */
	fx_error failure;      /* receiving, or writing what came, failed */
	fxi_product *product;
	int64_t n_images, n_texts, n_answers, n_errors, n_warnings, n_others;
	char first_error[FX_ERROR_TEXT];
} fxi_send;

/** Receives until the server closes. */
void *fxi_send_receive(void *send);

/** What --stats prints: numbers of messages, bytes, seconds, and latencies, as JSON to a file, or "-". */
typedef struct fxi_send_report {
	const char *server, *config, *input;
	int64_t n_readouts, n_waveforms, n_images_sent;
	double send_s, seconds, late_s;  /* late_s: how far sending fell behind --rate, at the worst */
	double rate;
	bool input_failed;
} fxi_send_report;
int fxi_send_stats_write(fxi_send *send, const fxi_send_report *report, const char *path, fx_error *err);

#endif

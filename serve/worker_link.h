/* SPDX-License-Identifier: MIT */
/* worker_link.h - a worker's side of link.h: one thread listens, any may ask and wait for the answer. */
#ifndef FORNIX_SERVE_WORKER_LINK_H
#define FORNIX_SERVE_WORKER_LINK_H

#include "link.h"

#include <pthread.h>

typedef struct fxi_worker_link {
	int fd, stop_fd;         /**< stop_fd (an eventfd) becomes readable when the session has to end */
	pthread_t listener;
	pthread_mutex_t asking;  /**< held by who waits for an answer: one at a time */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool has_answer, gone;
	fxi_link_message answer;
	int answer_fd;
	fxi_noise_store noise;   /**< the supervisor's, through the link */
} fxi_worker_link;

/** Starts listening. FX_ENOMEM, FX_EIO. */
int fxi_worker_link_open(fxi_worker_link *w, int fd, fx_error *err);
/** Sends and waits: *m becomes the answer, *fd (the caller's) what came with it. FX_EIO where the server is gone. */
int fxi_worker_link_ask(fxi_worker_link *w, fxi_link_message *m, int with_fd, int *fd, fx_error *err);
/** From here on a crash tells the supervisor which thread, so which gadget, it was. */
void fxi_worker_link_catch_crashes(const fxi_worker_link *w);

#endif

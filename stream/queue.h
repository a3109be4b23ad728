/* SPDX-License-Identifier: MIT */
/*
 * queue.h - what lies between two gadgets: messages in order, bounded in bytes. One thread puts, one gets; any
 * thread may abort.
 */
#ifndef FORNIX_STREAM_QUEUE_H
#define FORNIX_STREAM_QUEUE_H

#include <fornix/message.h>

typedef struct fxi_queue fxi_queue;

/** NULL when memory is short. A message larger than the bound passes alone, when nothing else waits. */
fxi_queue *fxi_queue_new(int64_t max_bytes);
/** Drops what is left inside. NULL is fine. */
void fxi_queue_free(fxi_queue *q);
/**
 * Consumes msg on every path; waits while it does not fit, and adds the seconds of that to *waited_s. FX_ECANCELED
 * after an abort, FX_ENOMEM when short.
 */
int fxi_queue_put(fxi_queue *q, fx_msg *msg, double *waited_s);
/** The same for n messages at once, in order; those that were not put are dropped. */
int fxi_queue_put_all(fxi_queue *q, fx_msg *const *msgs, int64_t n, double *waited_s);
/** Waits for the next message; NULL at the end, that is closed and empty. FX_ECANCELED after an abort. */
int fxi_queue_get(fxi_queue *q, fx_msg **out);
/** No more will be put. */
void fxi_queue_close(fxi_queue *q);
/** Wakes both sides for good; what waited inside is dropped when the queue is freed. */
void fxi_queue_abort(fxi_queue *q);
/** The most bytes that were inside at once. */
int64_t fxi_queue_peak_bytes(fxi_queue *q);

/** Seconds of a clock that only goes forward. */
double fxi_now_s(void);

#endif
